"""``jax.experimental.compilation_cache``: where compiled programs are kept."""
