"""Compiled loops, shared by the tests of this folder: each function compiles once per dtype."""

from __future__ import annotations

import functools

import numba
import pytest

import fnarray_kernels.numba_side  # noqa: F401 - tells Numba of the kernels


@functools.cache
def _compiled(fn, arity):
    if arity == 1:

        def loop(x, out):
            for i in range(x.shape[0]):
                out[i] = fn(x[i])

    else:

        def loop(x, y, out):
            for i in range(x.shape[0]):
                out[i] = fn(x[i], y[i])

    return numba.njit(error_model="numpy")(loop)


@pytest.fixture(scope="session")
def compiled():
    """Give ``compiled(fn, arity)``: a compiled loop that maps `fn` over arrays into `out`."""
    return _compiled
