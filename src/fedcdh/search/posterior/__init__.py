"""Posterior distributions over DAGs from the scores of families: exact sums, and samples."""
