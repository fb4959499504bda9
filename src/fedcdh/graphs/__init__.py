"""Partially directed graphs, background knowledge, Meek's rules, equivalence, d-separation, metrics and conversions."""
