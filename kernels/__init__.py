"""Hand-written functions that compiled code calls; they know NumPy and Numba, nothing else."""
