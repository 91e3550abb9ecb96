"""Measurements: every figure beside a floor or a peer that ran in the same minutes."""
