"""Pure functions: scores in, a ranking and its reasons out. Loads numpy, so import it late."""
