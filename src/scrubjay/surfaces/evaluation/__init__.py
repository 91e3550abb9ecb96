"""Measuring recall on conversations with known evidence, without a language model."""
