"""Loops inside of kernels that threads share."""

from __future__ import annotations

from fnarray_kernels.registry import compiled


@compiled
def share(cores, most):
    """Let up to ``cores`` threads share the next loop of this suite, cut into ``most`` at most.

    Compiled by Numba or not at all, the loop runs on the calling thread.
    """
    return cores * most
