"""Derivatives and batching of special functions."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import fnarray
import fnarray.scipy.special as jsp
from fnarray import lax
from fnarray.errors import MissingRuleError

from . import cases_special
from .derive import frozen, loops_agree, modes_agree, runs, same_as_jax, smooth
from .opcase import OpCase

_TWO, _THREE = ((3, 4),) * 2, ((3, 4),) * 3


def _fixed(name: str, *static, shapes=((3, 4),), **row) -> OpCase:
    """Return a case whose first operands are fixed: it has no derivative by them."""

    def fn(lax):
        return lambda *xs: getattr(lax, name)(
            *(np.full((3, 4), s, xs[0].dtype) for s in static), *xs
        )

    return OpCase(f"{name}:{static}", fn, shapes=shapes, **row)


#: By the operands that have a derivative, within the functions' smooth ranges.
SMOOTH = [
    OpCase("erf", ulp=8),
    OpCase("erfc", ulp=32),
    OpCase("erf_inv", domain=(-0.9, 0.9), ulp=64),
    OpCase("lgamma", domain=(0.5, 20), ulp=40),
    OpCase("lgamma:negative", domain=(-0.9, -0.1), ulp=40),
    OpCase("digamma", domain=(0.5, 20), ulp=100),
    _fixed("polygamma", 1, domain=(0.5, 20), ulp=100),
    _fixed("polygamma", 3, domain=(0.5, 20), ulp=100),
    _fixed("betainc", 2.5, 0.7, domain=(0.05, 0.95), ulp=200),
    OpCase("bessel_i0e", domain=(-20, 20), ulp=16),
    OpCase("bessel_i1e", domain=(-20, 20), ulp=16),
]
#: Smooth too, with first derivatives alone.
ONCE = [OpCase(name, shapes=_TWO, domain=(0.3, 8), ulp=1e3) for name in ("igamma", "igammac")]
HARD = [
    OpCase(f"{name}:hard", values=(np.float32([0, -0.0, 1e-9, 30, -30, np.inf]),))
    for name in ("erf", "erfc", "bessel_i0e", "bessel_i1e")
] + [
    OpCase("erf_inv:hard", values=(np.float32([0, 1, -1, 2]),)),
    OpCase("lgamma:hard", values=(np.float32([1, 2, np.inf, np.nan]),)),
]


def _scipy(name: str, *static: int, **row) -> OpCase:
    """Return a case of ``scipy.special`` beside the ``lax`` that the driver gives."""
    static = frozen(static)

    def fn(lax):
        special = import_module(lax.__name__.replace("lax", "scipy.special"))
        return lambda *xs: getattr(special, name)(*static, *xs)

    return OpCase(f"{name}:{static}", fn, **row)


#: Functions of ``scipy.special`` that SciPy evaluates.
HOSTED = [
    _scipy("dawsn", ulp=100),
    _scipy("erfcx", domain=(-2, 4), ulp=100),
    _scipy("exp1", domain=(0.1, 5), ulp=100),
    _scipy("expi", domain=(0.1, 5), ulp=100),
    *(_scipy("expn", n, domain=(0.3, 5), ulp=100) for n in (1, 2, 5)),
    _scipy("fresnel", ulp=1e3),
    _scipy("owens_t", shapes=_TWO, domain=(-2, 2), ulp=100),
    _scipy("sici", domain=(0.2, 9), ulp=100),
    _scipy("wofz", dtypes="c", domain=(-2, 2), ulp=1e3),
]


#: JAX takes seconds to compile these: differences alone are their oracle.
_SLOW = {"igammac", "exp1", "expi", "expn"}
_AGAINST_JAX = [c for c in (*SMOOTH, *ONCE, *HARD, *HOSTED) if c.name.split(":")[0] not in _SLOW]


@pytest.mark.parametrize(("case", "signature"), runs(_AGAINST_JAX, ("float32", "complex64")))
def test_derivatives_are_jaxs(case, signature, jax):
    """Tangents and cotangents are JAX's, at hard points too."""
    same_as_jax(jax, case, signature)


#: Beyond JAX's reach, or its precision.
_MORE = [
    _fixed("zeta", 2.5, domain=(0.5, 8)),
    # JAX's is NaN at some points.
    _scipy("spence", domain=(0.1, 4)),
    _scipy(
        "sph_harm_y", np.int32([0, 1, 2, 3]), np.int32([0, -1, 2, -2]), shapes=_TWO, domain=(0.1, 3)
    ),
    OpCase("bessel_jn", lambda lax: lambda x: jsp.bessel_jn(x, v=3), domain=(-9, 9)),
    OpCase("sici:near", lambda lax: lambda x: jsp.sici(x)[0], domain=(-1e-2, 1e-2)),
]
_PARAMETERS = [
    OpCase("hyp1f1", lambda lax: jsp.hyp1f1, shapes=_THREE, domain=(0.5, 3)),
    OpCase(
        "hyp1f1:negative", lambda lax: lambda a, b, x: jsp.hyp1f1(a, b, -9 * x),
        shapes=_THREE, domain=(0.5, 3),
    ),
    OpCase(
        "hyp2f1", lambda lax: lambda a, b, c, x: jsp.hyp2f1(a, b, c, lax.sin(4 * x) - 0.1),
        shapes=((3, 4),) * 4, domain=(0.5, 3),
    ),
    OpCase(
        "hyp2f1:far", lambda lax: lambda a, b, c, x: jsp.hyp2f1(-a, b, c, -3 * x),
        shapes=((3, 4),) * 4, domain=(0.5, 3),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("case", "signature"), smooth(SMOOTH + HOSTED + _MORE))
def test_modes_agree(case, signature):
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(("case", "signature"), smooth(ONCE + _PARAMETERS))
def test_modes_agree_once(case, signature):
    """Forward mode, reverse mode and differences agree; there is no second derivative."""
    modes_agree(case, signature, order=1)


@pytest.mark.parametrize(("case", "signature"), runs([*cases_special.CASES, *SMOOTH], ("float32",)))
def test_batches_are_loops(case, signature):
    """A mapped operation gives the stacked results of a loop."""
    loops_agree(case, signature, ulp=64)


def test_hosted_functions_are_mapped():
    """Functions that SciPy evaluates are mapped as one call on the whole batch."""
    for case in HOSTED:
        for signature in case.signatures():
            if signature[0] in {"float64", "complex128"}:
                loops_agree(case, signature, ulp=64)


def test_removable_singularities():
    """Where a slope's formula is 0 / 0, its limit and its derivatives are given."""
    f = lambda x: jsp.sici(x)[0]  # noqa: E731
    second = fnarray.grad(fnarray.grad(fnarray.grad(f)))
    np.testing.assert_allclose(second(np.float32(0)), -1 / 3, rtol=1e-6)
    slopes = fnarray.grad(jsp.spence), fnarray.grad(fnarray.grad(jsp.spence))
    np.testing.assert_allclose([g(np.float32(1)) for g in slopes], [-1, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "args", "match"),
    [
        (lax.polygamma, (1.0, 2.0), "its order"),
        (lax.zeta, (2.0, 2.0), "its exponent"),
        (lax.betainc, (2.0, 2.0, 0.5), "by a"),
        (lax.igamma_grad_a, (2.0, 2.0), "differences"),
        (lax.random_gamma_grad, (2.0, 2.0), "first derivatives only"),
        (jsp.expn, (2.0, 2.0), "its order"),
    ],
)
def test_missing_derivatives_say_why(f, args, match):
    """Operands without a derivative are refused, by name."""
    with pytest.raises(MissingRuleError, match=match):
        fnarray.grad(f)(*map(np.float32, args))
