"""Doors with somebody else's words: each translates another system's calls to ours."""
