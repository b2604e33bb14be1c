"""Vector quantisation as ``jax.scipy.cluster.vq`` names it."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact_operands

__all__ = ["vq"]
__dir__ = __all__.copy


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """Give each observation the nearest code.

    Parameters
    ----------
    obs : array
        Observations (n, k), or (n,) of one feature.
    code_book : array
        Codes (m, k), or (m,).
    check_finite : bool
        Accepted for compatibility.

    Returns
    -------
    code : integer array (n,)
        Number of the nearest code.
    dist : array (n,)
        Euclidean distance to it.

    Raises
    ------
    ValueError
        For ranks that differ, or other than 1 and 2.
    """
    if jnp.ndim(obs) != jnp.ndim(code_book) or jnp.ndim(obs) not in (1, 2):
        raise ValueError(
            "scipy.cluster.vq.vq: observations and code_book should have the same rank, 1 or 2; "
            f"got shapes {jnp.shape(obs)} and {jnp.shape(code_book)}."
        )
    obs, code_book = inexact_operands("scipy.cluster.vq.vq", obs, code_book)
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    distances = jnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    return jnp.argmin(distances, -1), jnp.min(distances, -1)
