"""The memory plane of a Clawdapus pod: recall before a turn, retain after it, forget on request.

Everything but `routes` works without a web server.
"""
