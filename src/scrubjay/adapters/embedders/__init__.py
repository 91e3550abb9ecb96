"""Embedders: texts to vectors. Each loads what it needs on first use."""
