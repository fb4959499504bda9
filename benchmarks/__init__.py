"""Measurements of speed, calibration and accuracy, each a module to run with `python -m benchmarks.<name>`."""
