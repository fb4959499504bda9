"""Marginal likelihoods of a variable given its parents, from the clients' moments alone."""
