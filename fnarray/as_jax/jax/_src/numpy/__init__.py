"""``jax._src.numpy``."""
