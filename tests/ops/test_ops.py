"""Every operation, against JAX: values, shapes, dtypes, weak types, errors; and compiled."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64

from .opcase import OpCase, is_wide

TABLES = [
    t
    for t in ("cases", "cases_shape", "cases_reduce", "cases_special")
    if find_spec(f"{__package__}.{t}")
]
_MODULES = [import_module(f"{__package__}.{t}") for t in TABLES]
CASES = [case for m in _MODULES for case in m.CASES]
ERRORS = [case for m in _MODULES for case in getattr(m, "ERRORS", [])]
RUNS = [
    pytest.param(case, signature, id="-".join((case.name, *signature[:1], str(i))))
    for i, case in enumerate(CASES)
    for signature in case.signatures()
]


@pytest.fixture(scope="module")
def oracle():
    """JAX's `lax`, with a switch for 64-bit types."""
    return pytest.importorskip("jax")


def leaves(x):
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, tuple | list) else [x]


def assert_close(got, want, ulp: float) -> None:
    """Equal but for NaN payloads, or within ``ulp`` units in the last place of the larger part."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    half = got.dtype.itemsize == 2
    eps = 2.0**-10 if got.dtype == np.float16 else 2.0**-7 if half else np.finfo(got.dtype).eps
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    limit = min(ulp, 2) if half else ulp
    a, b = got.astype(wide), want.astype(wide)
    if limit == 0:
        np.testing.assert_array_equal(a, b)
        if got.dtype.kind != "c":
            real = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[real], np.signbit(b)[real])
    else:
        np.testing.assert_allclose(a, b, rtol=limit * eps, atol=limit * eps * 1e-2)


@pytest.mark.parametrize(("case", "signature"), RUNS)
def test_matches_jax(case: OpCase, signature, oracle):
    """Value, shape, dtype and weak type are JAX's."""
    wide = is_wide(signature)
    args = case.args(signature)
    with oracle.enable_x64(wide), enable_x64(wide):
        want = leaves(case.call(oracle.lax, *args))
        got = leaves(case.call(lax, *args))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert_close(g, w, case.ulp)
        # A weak bool means nothing; JAX makes some.
        assert g.dtype == bool or g.weak_type == w.weak_type


@pytest.mark.parametrize(("case", "signature"), [r for r in RUNS if r.values[1]])
def test_compiled_matches_eager(case: OpCase, signature):
    """Compiled code gives what evaluation by NumPy gives."""
    args = case.args(signature)
    with enable_x64(True) if is_wide(signature) else nullcontext():
        want = leaves(case.call(lax, *args))
        got = leaves(fnarray.jit(lambda *xs: case.call(lax, *xs))(*args))
    for g, w in zip(got, want, strict=True):
        assert_close(g, w, max(case.ulp, 4 if g.dtype.kind in "fcV" else 0))
        assert g.weak_type == w.weak_type


@pytest.mark.parametrize("case", ERRORS, ids=lambda c: c.name)
def test_refuses_as_jax(case: OpCase, oracle):
    """Bad operands raise the error JAX raises, and ours says what to do."""
    with pytest.raises(case.jax_raises or case.raises):
        case.call(oracle.lax, *case.values)
    with pytest.raises(case.raises, match=case.match):
        case.call(lax, *case.values)
