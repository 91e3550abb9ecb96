"""Sealed rows in SQLite: one file per scope, and a catalog of them."""
