"""Compiled loops, shared by the tests of this folder: each function compiles once per dtype."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fnarray_kernels.numba_side  # noqa: F401 - tells Numba of the kernels
from fnarray.compile.cpu import jit

_CODES = {"bool": "b1", **{f"float{n}": f"f{n}" for n in (32, 64)}}
_CODES |= {f"{kind}int{n}": f"{kind or 'i'}{n}" for kind in ("", "u") for n in (8, 16, 32, 64)}


@functools.cache
def _kernel(fn, dtypes):
    if len(dtypes) == 2:

        def loop(x, out):
            for i in range(x.shape[0]):
                out[i] = fn(x[i])

    elif len(dtypes) == 3:

        def loop(x, y, out):
            for i in range(x.shape[0]):
                out[i] = fn(x[i], y[i])

    else:

        def loop(x, y, z, out):
            for i in range(x.shape[0]):
                out[i] = fn(x[i], y[i], z[i])

    # By the compiler of kernels, which takes a third of the time that njit does.
    return jit.compile_kernel(loop, tuple(f"{_CODES[d]}[1]" for d in dtypes)).entry_point


def _compiled(fn, arity):
    def run(*arrays):
        assert len(arrays) == arity + 1
        assert arrays[-1].flags.c_contiguous
        arrays = [np.ascontiguousarray(a) for a in arrays]
        _kernel(fn, tuple(a.dtype.name for a in arrays))(*arrays)

    return run


@pytest.fixture(scope="session")
def compiled():
    """Give ``compiled(fn, arity)``: a compiled loop that maps `fn` over arrays into `out`."""
    return _compiled
