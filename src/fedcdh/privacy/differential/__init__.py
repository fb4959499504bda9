"""Differential privacy: noisy summaries and the discrete Gaussian sampler."""
