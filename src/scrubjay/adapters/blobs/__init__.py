"""Blobs: persistence of sealed byte strings that are too large for a row."""
