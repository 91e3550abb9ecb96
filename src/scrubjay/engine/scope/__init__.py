"""Scopes: open, keys, head, cells, rotation, due work, destroy."""
