"""Carapace: four memory tools, the brief before the first word, and a record of every call.

`memory.py` is the plugin, `pipeline.py` and `host.py` are the side that calls it, `server.py` is
the socket. The words of this package are Carapace's: a *group* is a scope, an *entry* a memory, a
*type* a kind, `delete` is forget. See docs/carapace.md.
"""
