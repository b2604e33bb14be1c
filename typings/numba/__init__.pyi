"""See `numba.core`."""
