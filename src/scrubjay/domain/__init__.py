"""Values and rules of memory: standard library only, no input or output."""
