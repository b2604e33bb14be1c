"""``jax.experimental.pallas``: none of its names, which compile through XLA, are there.

Libraries import it with their other modules and use it on the accelerators that they have kernels
for: they run without; who does use it is told.
"""
