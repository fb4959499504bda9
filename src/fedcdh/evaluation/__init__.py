"""Simulated studies, baselines and the paper's experiments."""
