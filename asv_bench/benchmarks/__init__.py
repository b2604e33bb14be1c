"""Timings of fnarray; the cases are shared with the comparison against JAX."""
