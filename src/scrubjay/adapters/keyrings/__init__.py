"""Keyrings: where the keys that open everything else come from."""
