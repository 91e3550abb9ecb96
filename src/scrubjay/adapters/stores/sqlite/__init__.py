"""SQLite store: sealed rows, one file per scope, and a catalog."""
