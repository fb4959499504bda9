"""The entries of all methods, by category."""
