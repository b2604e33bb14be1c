"""``jax.experimental.pallas.triton``: none of its names are there; see the package."""
