"""A target that is one folder: other text, other loops, no libraries, the same results."""

from __future__ import annotations

import numpy as np
import pytest

from fnarray import lax
from fnarray.errors import UnsupportedOnTarget

from . import functions as f
from .helpers import compiled, run
from .toy.target import TOY

X = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)


@pytest.mark.parametrize("fun", [f.softmax, f.layer_norm, f.polynomial, f.transposed_sum])
def test_results_are_the_processors(fun) -> None:
    """Text of another target, interpreted, computes what the processor's does."""
    for got, want in zip(run(fun, X, target=TOY), run(fun, X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_text_is_the_targets_own() -> None:
    """Syntax and the order of loops are the target's; the plan is the same kind of value."""
    executable = compiled(lambda x: lax.add(lax.sin(x), lax.rev(x, (1,))), X, target=TOY)
    source = executable.source.kernels[0].source.text
    assert source.startswith("void kernel(f32 *x0, ")
    assert source.index("< 7;") < source.index("< 5;")  # columns outside, rows inside
    assert "auto t0 = " in source
    assert " in range" not in source


def test_steps_are_refused_with_their_place() -> None:
    """What needs a library is refused while it is scheduled, by name and line."""
    with pytest.raises(UnsupportedOnTarget, match=r"sort at .*test_toy_target.*toy target"):
        compiled(lambda x: lax.sort(x, dimension=0), X, target=TOY)


def test_dtypes_without_a_code_are_refused() -> None:
    """A target that says nothing of halves refuses them; the processor's table holds them."""
    halves = X.astype(np.float16)
    with pytest.raises(UnsupportedOnTarget, match=r"float16.*float32"):
        compiled(lambda x: lax.add(x, x), halves, target=TOY)
    np.testing.assert_array_equal(run(lambda x: lax.add(x, x), halves)[0], halves + halves)
