"""Distillers: what is worth remembering of a turn."""
