"""Surfaces: translations of foreign interfaces to the verbs."""
