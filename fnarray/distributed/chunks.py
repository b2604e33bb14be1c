"""Arrays as chunks of Dask's, and as xarray's data: NumPy's functions on them are ours.

A class of their own has NumPy's protocols: on other arrays ``numpy.mean(x)`` gives what it gives in
JAX's programs, an array of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .. import numpy as ours
from ..core.array import Array, ArrayElsewhere, ArrayImpl, asarray
from ..numpy._methods import array_methods
from ..numpy.fft import __name__ as _fft
from ..numpy.linalg import __name__ as _linalg

_HOMES = {"numpy": "", "numpy.fft": _fft, "numpy.linalg": _linalg}


class Chunk(ArrayImpl):
    """An array that NumPy's functions take as it is, and of which they make others."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Apply one of NumPy's functions of elements, on ours if there is one of that name."""
        found = getattr(ours, ufunc.__name__, None)
        if method == "__call__" and not kwargs and found is not None:
            return chunked(found(*args))
        return chunked(getattr(ufunc, method)(*_plain(args), **_plain(kwargs)))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Apply one of NumPy's functions, ours of that name if it takes the arguments."""
        kwargs = {k: v for k, v in kwargs.items() if k != "like"}
        found = _ours(func)
        if found is not None:
            try:
                return chunked(found(*args, **kwargs))
            except (TypeError, NotImplementedError):  # an argument of NumPy's alone, such as out=
                pass
        return chunked(func(*_plain(args), **_plain(kwargs)))

    def __reduce__(self) -> Any:
        return as_chunk, (self._data,)


def as_chunk(x: Any) -> Chunk:
    """Return an array as a chunk: ``dask_array.map_blocks(as_chunk)``, ``DataArray(as_chunk(x))``.

    Parameters
    ----------
    x : array-like
    """
    x = x.on_host() if isinstance(x, ArrayElsewhere) else asarray(np.asarray(x))
    return Chunk(x._data, x.aval)


def chunked(x: Any) -> Any:
    """Return a value with chunks in the place of arrays."""
    if isinstance(x, Chunk):
        return x
    if isinstance(x, ArrayImpl):
        return Chunk(x._data, x.aval)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
        return as_chunk(x)
    if type(x) is list:
        return [*map(chunked, x)]
    return (*map(chunked, x),) if type(x) is tuple else x


def _ours(func: Any) -> Any:
    home = _HOMES.get(getattr(func, "__module__", None) or "numpy")
    if home is None:
        return None
    place = getattr(ours, home.rpartition(".")[2]) if home else ours
    return getattr(place, func.__name__, None)


def _plain(x: Any) -> Any:
    """Return a value with NumPy's arrays in the place of ours."""
    if isinstance(x, Array):
        return np.asarray(x)
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    return type(x)(map(_plain, x)) if type(x) in (list, tuple) else x


def _wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return chunked(method(*args, **kwargs))

    return call


def _install() -> None:
    for name, member in array_methods().items():
        if isinstance(member, property):
            if name in ("T", "mT", "real", "imag"):
                setattr(Chunk, name, property(_wrapped(member.fget)))  # type: ignore[arg-type]
        elif name not in ("__array_namespace__", "devices"):
            setattr(Chunk, name, _wrapped(member))


_install()
