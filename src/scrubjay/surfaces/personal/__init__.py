"""Personal memory: a person owns it, and can see, export, correct, restrict and destroy it."""
