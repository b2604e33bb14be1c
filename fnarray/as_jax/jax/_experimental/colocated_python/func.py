"""``jax.experimental.colocated_python.func``: nothing of it is needed in one process."""
