"""Copies of a scope in other forms, and how they are read again."""
