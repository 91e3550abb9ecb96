"""Stores: persistence of sealed rows."""
