"""BLAS threads, processors, worker pools and optional imports."""
