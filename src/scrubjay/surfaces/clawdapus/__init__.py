"""The memory plane of a Clawdapus pod: recall before a turn, retain after it, forget on request.

Everything but `routes` is pure translation and can be used, and tested, without a web server.
"""
