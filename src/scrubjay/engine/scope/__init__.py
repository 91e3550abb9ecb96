"""A scope: opened, its keys, head and cells, rotation, due work, destruction."""
