"""``jax.experimental.pallas.ops``: kernels that JAX ships for accelerators."""
