"""``jax.extend.ifrt_programs``: there is no IFRT, whose programs libraries fetch for Pathways."""

#: JAX's module of programs.
ifrt_programs = None
