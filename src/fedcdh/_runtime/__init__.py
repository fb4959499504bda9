"""Support for running the package on one machine; nothing here knows of data, graphs or studies.

- `array_types`: type aliases for numpy arrays
- `blas_threads`: one thread for linear algebra
- `cpu_count`: the number of processors, and of workers by default
- `lazy_exports`: packages whose public names are imported when they are first used
- `optional_imports`: libraries that may be missing
- `worker_pool`: work on many parts, one after the other, in threads or by joblib
"""
