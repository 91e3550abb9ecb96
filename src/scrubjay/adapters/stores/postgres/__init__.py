"""The PostgreSQL store: sealed rows, slots, catalog and shared values of one installation."""
