"""Whether the probabilities of a result are calibrated: cells, statements with their truth, reliability, diagram."""
