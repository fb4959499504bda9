"""Differences between clients: regressions of single clients and tests of their deviations."""
