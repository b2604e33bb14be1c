"""What it is to do as JAX does: the same results, and refusals of the same kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import fnarray
from fnarray.core.dtypes import float0


def same(got: Any, want: Any, rtol: float = 1e-5) -> None:
    """Compare trees: structure, and of each leaf shape, dtype, weak type and values."""
    mine, theirs = fnarray.tree.structure(got), jax.tree.structure(want)
    assert str(mine) == str(theirs)
    for a, b in zip(fnarray.tree.leaves(got), jax.tree.leaves(want), strict=True):
        if isinstance(b, int | float | str):  # also where JAX hands back the number it was given
            assert a == b
            continue
        assert np.shape(a) == np.shape(b)
        if np.dtype(b.dtype) == jax.dtypes.float0:
            assert np.dtype(a.dtype) == float0
            continue
        assert a.dtype == b.dtype
        assert getattr(a, "weak_type", False) == getattr(b, "weak_type", False)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


def refused(run: Callable[[Any, str], Any], text: str, error: type[Exception], said: str) -> None:
    """Check that a call raises one type of error here and in JAX, and what the message says."""
    with pytest.raises(error):
        run(jax, text)
    with pytest.raises(error, match=re.compile(said, re.DOTALL)):
        run(fnarray, text)
