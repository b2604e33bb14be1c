"""Derivatives and batching of elementwise operations, conversions and choices."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.errors import MissingRuleError

from . import cases
from .derive import halves_agree, is_array, loops_agree, modes_agree, runs, same_as_jax, smooth
from .opcase import OpCase

_MISSING = {"nextafter"}
#: Constant but for steps: what differences see is rounding.
_STEPS = {"reduce_precision", "bitcast_convert_type", "stop_gradient"}
_TABLES = (
    cases.ARITHMETIC, cases.POWERS, cases.TRANSCENDENTAL, cases.ROUNDING, cases.COMPLEX,
    cases.CONVERSIONS, cases.CHOICES,
)  # fmt: skip


def _named(case: OpCase) -> str:
    return case.name.split(":")[0]


CASES = [case for t in _TABLES for case in t if _named(case) not in _MISSING]


_DRAWN = [c for c in CASES if c.values is None and _named(c) not in _STEPS]


def _hard(name: str, *xs, kind=np.float32, **row) -> OpCase:
    return OpCase(f"{name}:hard", values=tuple(np.asarray(x, kind) for x in xs), **row)


def _power(y: int) -> OpCase:
    return _hard("integer_pow", [0, -0.0, 1, -2, np.inf, np.nan], params={"y": y})


_edges = [0, -0.0, 1, -1, 0.5, -2, np.inf, -np.inf, np.nan]
_pairs = np.repeat(_edges, len(_edges)), np.tile(_edges, len(_edges))
_small = np.repeat([0.0, -0.0, 1, 2, -3], 5), np.tile([0, 1, 2, -1, -2], 5)

HARD = [
    *(_hard(name, _edges) for name in (
        "abs", "sign", "square", "neg", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log",
        "log1p", "sin", "cos", "atan", "sinh", "cosh", "asinh", "floor", "ceil", "round",
    )),
    _hard("tanh", [0, 30, -30, np.inf, -np.inf, np.nan]),
    _hard("logistic", [0, 30, -30, -200, 200, np.nan]),
    *(_hard(name, [0, 1, -1, 2, np.nan]) for name in ("asin", "acos", "acosh", "atanh")),
    *(_hard(name, *_pairs) for name in ("add", "sub", "mul", "max", "min", "pow")),
    _hard("div", [0, 1, -1, np.inf, np.nan], [2, 0, -0.0, 3, 1]),
    _hard("rem", [5, -5, 5, -5, 6, 1], [3, 3, -3, -3, 3, np.inf]),
    _hard("atan2", [0, 1, 0, -1, 0], [1, 0, -1, 0, 0]),
    OpCase("pow:int", values=(np.float32(_small[0]), np.int32(_small[1]))),
    *map(_power, (-2, -1, 0, 1, 2, 3)),
    OpCase(
        "select_n:range",
        shapes=((3, 4),) * 3,
        dtypes=("int32", "float32", "float32"),
        domain=(0, 2),
    ),
    _hard("clamp", [0, 0, 0, 0, 2], [-1, 0, 1, 3, 1], [1, 1, 1, 1, 0]),
    _hard("abs", [0, 3 + 4j, -1j], kind=np.complex64),
    *(_hard(name, [1 + 2j, 1 + 2j, 3], [1 + 2j, 1 + 3j, 2], kind=np.complex64)
      for name in ("max", "min")),
    _hard(
        "select_n",
        [-1, 0, 4],
        # The branch not taken has an infinite slope, which stays out of the derivative.
        fn=lambda lax: lambda x: lax.select(x > 0, lax.sqrt(lax.select(x > 0, x, x * 0 + 1)), x),
    ),
]  # fmt: skip


def _differs_from_jax(case: OpCase, signature) -> bool:
    """Whether JAX's derivative is not the function's: there differences alone are the oracle.

    JAX takes the sign of complex numbers for constant, the slope of ``acosh`` to the left of the
    imaginary axis with the other sign, choices by numbers out of range for choices of nothing, and
    crossed bounds of `clamp` for constants; by scalar bounds it has no derivative.
    """
    if case.name in {"select_n:int", "clamp", "clamp:arrays"}:
        return True
    return _named(case) in {"sign", "acosh"} and any("complex" in s for s in signature)


_HARD_NAMES = {_named(case) for case in HARD}
#: JAX is slow to compile transcendental functions: once each, and in complex numbers differences
#: alone are their oracle.
_AGAINST_JAX = [
    *runs(HARD, ("float32",)),
    *runs([c for c in cases.TRANSCENDENTAL if _named(c) not in _HARD_NAMES], ("float32",)),
    *runs([c for c in CASES if c not in cases.TRANSCENDENTAL], ("float32", "complex64")),
]


@pytest.mark.parametrize(("case", "signature"), _AGAINST_JAX)
def test_derivatives_are_jaxs(case, signature, jax):
    """Tangents and cotangents are JAX's, at hard points too."""
    if not _differs_from_jax(case, signature):
        same_as_jax(jax, case, signature)


@pytest.mark.parametrize(("case", "signature"), smooth(_DRAWN))
def test_modes_agree(case, signature):
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(_DRAWN, ("float16", "bfloat16")))
def test_half_types(case, signature):
    """Derivatives of half types are of those types, and the modes agree."""
    halves_agree(case, signature)


@pytest.mark.parametrize(
    ("case", "signature"),
    runs(
        [c for t in (*_TABLES, cases.BITS, cases.COMPARISONS) for c in t],
        ("float32", "complex64", "int32", "bool", "uint8"),
        active=is_array,
    ),
)
def test_batches_are_loops(case, signature):
    """A mapped operation gives the stacked results of a loop."""
    loops_agree(case, signature)


@pytest.mark.parametrize("name", ["asin", "acos", "acosh"])
def test_slopes_beside_poles_keep_digits_and_second_ones_are_infinite(name, jax):
    """Two units in the last place beside 1 and -1; at them, JAX's infinities to third order."""
    x = np.float32(1 + np.geomspace(1e-7, 0.5, 200) * (1 if name == "acosh" else -1))
    x = np.concatenate([x, -x])
    slope, wide = fnarray.grad(getattr(lax, name)), np.asarray(x, np.float64)
    exact = (-1 if name == "acos" else 1) / np.sqrt(np.abs((1 - wide) * (1 + wide)))
    assert np.max(np.abs(fnarray.vmap(slope)(x) - exact) / np.spacing(np.float32(exact))) <= 2.1
    slope, theirs, poles = getattr(lax, name), getattr(jax.lax, name), np.float32([1, -1])
    for _ in range(3):
        slope, theirs = fnarray.grad(slope), jax.grad(theirs)
        np.testing.assert_array_equal(fnarray.vmap(slope)(poles), jax.vmap(theirs)(poles))
    assert fnarray.grad(getattr(lax, name))(0.5).weak_type


def test_a_missing_derivative_says_why():
    """`nextafter` has no slope, and the error says what to do."""
    with pytest.raises(MissingRuleError, match="the operand in its place"):
        fnarray.grad(lambda x: lax.nextafter(x, x))(1.0)


def test_stop_gradient_stops(jax):
    """The derivative of what is stopped is zero, in trees too."""
    f = lambda lax: lambda x: lax.stop_gradient({"a": x})["a"] * x  # noqa: E731
    assert float(fnarray.grad(f(lax))(3.0)) == float(jax.grad(f(jax.lax))(3.0)) == 3.0


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "tanh", "sqrt", "max", "logistic"])
def test_derivatives_keep_weak_types(name, jax):
    """Derivatives of weakly typed numbers are weakly typed, so that they promote nothing."""
    args = (1.5, 2.5)[: 2 if name in {"add", "sub", "mul", "div", "max"} else 1]
    got = fnarray.jvp(getattr(lax, name), args, args)
    want = jax.jvp(getattr(jax.lax, name), args, args)
    assert [x.weak_type for x in got] == [x.weak_type for x in want]
    slope = fnarray.grad(getattr(lax, name))(*args)
    assert slope.weak_type == jax.grad(getattr(jax.lax, name))(*args).weak_type
