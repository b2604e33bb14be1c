"""The processor as a target: Numba kernels, threads, NumPy and LAPACK steps."""
