"""Whole scopes out and in: export, backup, verify, audit."""
