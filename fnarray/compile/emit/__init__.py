"""From plans to Numba source: kernels, and the plain-Python driver that calls them."""
