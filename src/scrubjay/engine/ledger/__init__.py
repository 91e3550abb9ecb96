"""The ledger: turns, sessions, timeline, and extraction by a language model."""
