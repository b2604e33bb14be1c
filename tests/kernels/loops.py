"""Compiled loops that map a function over arrays: each compiles once per dtype."""

from __future__ import annotations

import functools

import numpy as np

import fnarray_kernels.numba_side  # noqa: F401 - tells Numba of the kernels
from fnarray.compile.cache import KernelSource
from fnarray.compile.cpu import build, jit

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


def compiled(fn, arity):
    """Return a compiled loop that maps `fn` over arrays into the last one."""

    def run(*arrays):
        assert len(arrays) == arity + 1
        assert arrays[-1].flags.c_contiguous
        arrays = [np.ascontiguousarray(a) for a in arrays]
        _kernel(fn, tuple(a.dtype.name for a in arrays))(*arrays)

    return run


def special_loop(name, arity):
    """Return a compiled loop that maps a special function over arrays, as the emitter calls it."""
    names = ["x", "y", "z"][:arity]
    call = f"fk.special.{name}({', '.join(f'{n}[i]' for n in names)})"
    text = f"def kernel({', '.join(names)}, out):\n    for i in range(out.shape[0]):\n"

    def run(*arrays):
        code = {"float32": "f32[1]", "float64": "f64[1]"}
        source = KernelSource(
            f"{text}        out[i] = {call}\n", tuple(code[a.dtype.name] for a in arrays)
        )
        build.load(source)(*map(np.ascontiguousarray, arrays[:-1]), arrays[-1])

    return run
