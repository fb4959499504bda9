"""Federated causal discovery from heterogeneous data."""
