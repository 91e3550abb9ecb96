"""Keyrings: storage and wrapping of the keys."""
