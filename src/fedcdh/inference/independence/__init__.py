"""Conditional independence from summaries: one test per file, all behind the `IndependenceTest` protocol."""
