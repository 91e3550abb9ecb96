"""Surfaces: they translate, and do nothing else."""
