"""One small module per peer, run by that peer's own interpreter."""
