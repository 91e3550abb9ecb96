"""The same conversations and questions for us and for others, side by side: `make bench-peers`."""
