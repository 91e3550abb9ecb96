"""Implementations of the ports. Each knows the ports and the domain, and no other adapter."""
