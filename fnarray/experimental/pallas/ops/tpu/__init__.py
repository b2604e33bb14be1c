"""``jax.experimental.pallas.ops.tpu``: kernels for TPUs; there are none here."""
