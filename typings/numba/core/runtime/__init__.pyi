"""Numba's runtime."""
