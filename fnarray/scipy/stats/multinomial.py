"""Multinomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...core.eager import replayed
from ...numpy._promote import promote_dtypes_inexact
from .. import special

__all__ = ["logpmf", "pmf"]
__dir__ = __all__.copy


@replayed
def logpmf(x: Any, n: Any, p: Any) -> Array:
    """Logarithm of the probability of counts along the last axis.

    Parameters
    ----------
    x, p : array_like
        Counts and probabilities, along the last axis.
    n : array_like
        Number of trials; counts of another sum are impossible.
    """
    p, *_ = promote_dtypes_inexact(p)
    x, n = jnp.asarray(x).astype(p.dtype), jnp.asarray(n).astype(p.dtype)
    terms = special.xlogy(x, p) - special.gammaln(x + 1)
    value = special.gammaln(n + 1) + jnp.sum(terms, axis=-1)
    return jnp.where(jnp.sum(x, axis=-1) == n, value, -np.inf)


@replayed
def pmf(x: Any, n: Any, p: Any) -> Array:
    """Probability."""
    return jnp.exp(logpmf(x, n, p))
