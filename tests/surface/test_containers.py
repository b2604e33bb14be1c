"""What functions with several results return them in: a list and a tuple are other pytrees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.scipy.linalg
import jax.scipy.signal
import pytest

import fnarray

CASES: dict[str, Callable[..., Any]] = {
    "meshgrid": lambda m, x, v: m.numpy.meshgrid(v, v),
    "meshgrid none": lambda m, x, v: m.numpy.meshgrid(),
    "meshgrid sparse": lambda m, x, v: m.numpy.meshgrid(v, v, v, sparse=True, indexing="ij"),
    "broadcast_arrays": lambda m, x, v: m.numpy.broadcast_arrays(x, v),
    "split": lambda m, x, v: m.numpy.split(v, 3),
    "hsplit": lambda m, x, v: m.numpy.hsplit(x, 3),
    "array_split": lambda m, x, v: m.numpy.array_split(v, 2),
    "unstack": lambda m, x, v: m.numpy.unstack(x),
    "atleast_1d": lambda m, x, v: m.numpy.atleast_1d(1.0, v),
    "gradient": lambda m, x, v: m.numpy.gradient(x),
    "gradient one": lambda m, x, v: m.numpy.gradient(x, axis=(0,)),
    "histogram": lambda m, x, v: m.numpy.histogram(v),
    "histogramdd": lambda m, x, v: m.numpy.histogramdd(x),
    "ix_": lambda m, x, v: m.numpy.ix_(v, v),
    "indices": lambda m, x, v: m.numpy.indices((2, 3), sparse=True),
    "ogrid": lambda m, x, v: m.numpy.ogrid[:2, :3],
    "tril_indices": lambda m, x, v: m.numpy.tril_indices(3),
    "average": lambda m, x, v: m.numpy.average(v, returned=True),
    "modf": lambda m, x, v: m.numpy.modf(v),
    "frexp": lambda m, x, v: m.numpy.frexp(v),
    "slogdet": lambda m, x, v: m.numpy.linalg.slogdet(x),
    "qr": lambda m, x, v: m.numpy.linalg.qr(x),
    "svd": lambda m, x, v: m.numpy.linalg.svd(x),
    "eigh": lambda m, x, v: m.numpy.linalg.eigh(x),
    "lstsq": lambda m, x, v: m.numpy.linalg.lstsq(x, v),
    "lax split": lambda m, x, v: m.lax.split(v, (1, 2)),
    "lax sort": lambda m, x, v: m.lax.sort([v, v]),
    "lax top_k": lambda m, x, v: m.lax.top_k(v, 2),
    "lax approx_max_k": lambda m, x, v: m.lax.approx_max_k(v, 2),
    "lax approx_min_k": lambda m, x, v: m.lax.approx_min_k(v, 2),
    "lax reduce": lambda m, x, v: m.lax.reduce(
        [v, v], [0.0, 0.0], lambda a, b: [a[0] + b[0], a[1] + b[1]], (0,)
    ),
    "lax lu": lambda m, x, v: m.lax.linalg.lu(x),
    "lax qr": lambda m, x, v: m.lax.linalg.qr(x),
    "lax eig": lambda m, x, v: m.lax.linalg.eig(x),
    "lax eigh": lambda m, x, v: m.lax.linalg.eigh(x),
    "lax svd": lambda m, x, v: m.lax.linalg.svd(x),
    "lax schur": lambda m, x, v: m.lax.linalg.schur(x),
    "lax schur alone": lambda m, x, v: m.lax.linalg.schur(x, compute_schur_vectors=False),
    "lax hessenberg": lambda m, x, v: m.lax.linalg.hessenberg(x),
    "lax tridiagonal": lambda m, x, v: m.lax.linalg.tridiagonal(x),
    "scipy lu": lambda m, x, v: m.scipy.linalg.lu(x),
    "scipy lu_factor": lambda m, x, v: m.scipy.linalg.lu_factor(x),
    "scipy cho_factor": lambda m, x, v: m.scipy.linalg.cho_factor(x),
    "scipy schur": lambda m, x, v: m.scipy.linalg.schur(x),
    "scipy hessenberg": lambda m, x, v: m.scipy.linalg.hessenberg(x, calc_q=True),
    "scipy polar": lambda m, x, v: m.scipy.linalg.polar(x),
    "scipy stft": lambda m, x, v: m.scipy.signal.stft(m.numpy.ones(300)),
}


def kind(x: Any) -> Any:
    """Return lists, tuples and named tuples as what they are, arrays as one."""
    if isinstance(x, list | tuple):
        fields = getattr(x, "_fields", None)
        return list if isinstance(x, list) else tuple, fields, [kind(part) for part in x]
    return "array"


@pytest.mark.parametrize("name", CASES)
def test_results_come_in_what_jax_has_them_in(name: str) -> None:
    def kind_of(module: Any) -> Any:
        with module.enable_x64(False):
            shapes = [module.ShapeDtypeStruct(shape, "float32") for shape in ((3, 3), (3,))]
            return kind(module.eval_shape(partial(CASES[name], module), *shapes))

    assert kind_of(fnarray) == kind_of(jax)
