"""Of JAX's internals what widely used libraries fetch, by JAX's names for it."""
