"""Memories: retain, supersede, read, forget, purge, trust."""
