"""Every operation, against JAX: values, shapes, dtypes, weak types, errors; and compiled."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64

from .derive import frozen
from .opcase import OpCase, is_wide

TABLES = [
    t
    for t in ("cases", "cases_shape", "cases_reduce", "cases_special", "cases_linalg")
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

#: Runs compiled as one program.
BATCH = 16


#: Dtypes whose kernels are their twins' but for names: one of the two is compiled.
TWINS = {"bfloat16": "float16", "uint8": "uint32", "complex128": "complex64", "uint64": "int64"}


def _is_twin(case: OpCase, signature: tuple[str, ...]) -> bool:
    """Whether another run of the case compiles the same code for another width."""
    return tuple(TWINS.get(name, name) for name in signature) in set(case.signatures()) - {
        signature
    }


COMPILED = [r.values for r in RUNS if not _is_twin(*r.values)]


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
        try:
            want = leaves(case.call(oracle.lax, *args))
        except oracle.errors.JaxRuntimeError:  # clamp of what has no order, without emitters
            asked = oracle.jit(
                lambda *xs: case.call(oracle.lax, *xs),
                compiler_options={"xla_cpu_use_fusion_emitters": True},
            )
            want = leaves(asked(*args))
        got = leaves(case.call(lax, *args))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert_close(g, w, case.ulp)
        # A weak bool means nothing; JAX makes some.
        assert g.dtype == bool or g.weak_type == w.weak_type


def _batches(size: int):
    """Part the runs into programs of ``size``: a kernel of many loops compiles in half the time."""
    for wide in (False, True):
        runs = [run for run in COMPILED if is_wide(run[1]) is wide]
        for k in range(0, len(runs), size):
            batch = runs[k : k + size]
            names = f"{batch[0][0].name}..{batch[-1][0].name}"
            yield pytest.param(batch, wide, id=f"{names}-{'64' if wide else '32'}-{k // size}")


def _differs(got, want, ulp: float) -> str:
    """Say how a compiled result differs from an evaluated one; nothing where it does not."""
    try:
        assert_close(got, want, ulp)
    except AssertionError as error:
        return str(error)
    return "" if got.weak_type == want.weak_type else f"weak_type is {got.weak_type}"


@pytest.mark.parametrize(("batch", "wide"), list(_batches(BATCH)))
def test_compiled_matches_eager(batch, wide):
    """Compiled code gives what evaluation by NumPy gives; arrays are traced, the rest is static."""
    calls = tuple((case, frozen(case.args(signature))) for case, signature in batch)

    def program(arrays):
        """Every call, on traced arrays."""
        left = iter(arrays)
        return [
            case.call(lax, *(next(left) if isinstance(a, np.ndarray) else a for a in args))
            for case, args in calls
        ]

    traced = [a for _, args in calls for a in args if isinstance(a, np.ndarray)]
    with enable_x64(wide):
        want, got = program(traced), fnarray.jit(program)(traced)
    wrong = {}
    for (case, signature), ours, theirs in zip(batch, got, want, strict=True):
        for g, w in zip(leaves(ours), leaves(theirs), strict=True):
            if text := _differs(g, w, max(case.ulp, 4 if w.dtype.kind in "fcV" else 0)):
                wrong["-".join((case.name, *signature))] = text
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


@pytest.mark.parametrize("case", ERRORS, ids=lambda c: c.name)
def test_refuses_as_jax(case: OpCase, oracle):
    """Bad operands raise the error JAX raises, and ours says what to do."""
    with pytest.raises(case.jax_raises or case.raises):
        case.call(oracle.lax, *case.values)
    with pytest.raises(case.raises, match=case.match or None):
        case.call(lax, *case.values)
