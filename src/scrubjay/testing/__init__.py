"""Contracts any implementation of a port can run, and the named fakes that pass them."""
