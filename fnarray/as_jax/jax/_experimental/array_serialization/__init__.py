"""``jax.experimental.array_serialization``: the interface that checkpointing libraries extend."""
