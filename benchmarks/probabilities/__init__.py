"""Calibration of the probabilities of a result: cells, statements with their truth, reliability, diagram."""
