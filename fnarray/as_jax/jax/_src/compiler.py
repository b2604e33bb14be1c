"""``jax._src.compiler``: nothing of it has a meaning here."""
