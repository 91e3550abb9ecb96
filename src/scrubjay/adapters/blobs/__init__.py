"""Blobs: where sealed byte strings too large for a row are kept."""
