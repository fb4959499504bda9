"""Attacks on what leaves a site, to be run: python -m benchmarks.attacks.NAME --help

docs/threat-model.md quotes them. Every attack has what a coordinator has, the plan and the summary, and
nothing else unless it says so. The rows it is after are used to draw up the balance only.
"""
