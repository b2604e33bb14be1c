"""Logarithms of sums of powers, two terms at a time.

Composed of other operations they would be right, but not their derivatives where both terms are
equal: a maximum and an absolute value have corners there, which cancel in the sum alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .kit.calls import eq, exp, exp2, mul, select, sub
from .kit.checks import FLOAT
from .kit.declare import elementwise
from .kit.rules import partials

__all__: list[str] = []  # not of lax: fnarray.numpy has them, for any dtypes


def _template(power: str, unit: float) -> Callable[[np.dtype], str]:
    """Return the expression: infinities of one sign, whose difference is NaN, are their own sum."""

    def of(dtype: np.dtype) -> str:
        scale = "float64" if dtype == np.float64 else "float32"
        return (
            "(({0} + {1}) if ({0} - {1}) != ({0} - {1}) else (sc.maximum({0}, {1}) + "
            f"sc.to_{scale}({unit!r}) * vm.log1p(vm.{power}(-sc.abs_({{0}} - {{1}})))))"
        )

    return of


def _share(power: Callable[..., Any], k: int) -> Callable[..., Any]:
    """Derivative by term ``k``: its share of the sum; infinity's share of infinity is all."""

    def finite(x: Any) -> Any:
        return select(eq(x, np.inf), 0, x)

    def part(g: Any, out: Any, *terms: Any) -> Any:
        return mul(g, power(sub(finite(terms[k]), finite(out))))

    return part


@elementwise(
    _template("exp", 1.0),
    eval=np.logaddexp,
    dtypes=FLOAT,
    cost=30,
    jvp=partials(_share(exp, 0), _share(exp, 1)),
)
def logaddexp(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))``."""


@elementwise(
    _template("exp2", 1 / math.log(2)),
    eval=np.logaddexp2,
    dtypes=FLOAT,
    cost=30,
    jvp=partials(_share(exp2, 0), _share(exp2, 1)),
)
def logaddexp2(x: Any, y: Any) -> Any:
    """``log2(2**x + 2**y)``."""
