"""Summaries from files, added up one at a time."""
