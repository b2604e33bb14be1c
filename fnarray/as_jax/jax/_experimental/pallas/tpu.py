"""``jax.experimental.pallas.tpu``: none of its names are there; see the package."""
