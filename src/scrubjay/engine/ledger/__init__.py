"""The ledger: turns, sessions, timeline, and what a model extracts from turns."""
