"""Algorithm 1, methods, settings, result, drift, stability and the scikit-learn estimator."""
