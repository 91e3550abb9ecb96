"""The service: every verb over HTTP, for whoever holds a key."""
