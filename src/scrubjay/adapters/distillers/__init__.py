"""Distillers: derive memories from a turn."""
