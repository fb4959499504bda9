"""Answers from summaries: independence tests, marginal likelihoods, independent change and heterogeneity."""
