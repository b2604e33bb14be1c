"""Functions with rules of their own for vmap, and linear ones with transposes of their own."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.custom_batching import custom_vmap, sequential_vmap
from fnarray.custom_derivatives import linear_call
from fnarray.errors import MissingRuleError

X = np.arange(3, dtype=np.float32)


def _with_rule():
    """Return a function of two arguments whose batches are computed otherwise."""

    @custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        return jnp.cos(x) * y * axis_size, in_batched[0] or in_batched[1]

    return f


def test_a_rule_stands_for_the_function_on_batches():
    """One example runs the function; vmap runs the rule, under jit and nested too."""
    f = _with_rule()
    np.testing.assert_allclose(f(1.0, 2.0), 2 * np.sin(1.0), rtol=1e-6)
    for run in (fnarray.vmap(f), fnarray.jit(fnarray.vmap(f))):
        np.testing.assert_allclose(run(X, X), 3 * np.cos(X) * X, rtol=1e-6)
    np.testing.assert_allclose(fnarray.vmap(f, (0, None))(X, 2.0), 6 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(fnarray.vmap(lambda v: f(y=v, x=v))(X), 3 * np.cos(X) * X, rtol=1e-6)
    outer = fnarray.vmap(fnarray.vmap(f, (0, None)), (None, 0))(X, X)
    np.testing.assert_allclose(outer, 3 * np.outer(X, np.cos(X)), rtol=1e-6)


def test_forward_derivatives_keep_the_rule():
    """jvp of the function under vmap is jvp of the rule, whichever comes first."""
    f = _with_rule()
    t = X + 1
    wanted = -3 * np.sin(X) * X * t + 3 * np.cos(X) * t
    _, inside = fnarray.vmap(lambda x, t: fnarray.jvp(f, (x, x), (t, t)))(X, t)
    _, outside = fnarray.jvp(lambda x: fnarray.vmap(f)(x, x), (X,), (t,))
    np.testing.assert_allclose(inside, wanted, rtol=1e-5)
    np.testing.assert_allclose(outside, wanted, rtol=1e-5)


def test_reverse_mode():
    """grad of the function is its own; of its vmap that of the rule."""
    f = _with_rule()
    np.testing.assert_allclose(fnarray.grad(f)(1.0, 2.0), 2 * np.cos(1.0), rtol=1e-6)
    got = fnarray.grad(lambda x: fnarray.vmap(f)(x, x).sum())(X)
    np.testing.assert_allclose(got, 3 * (np.cos(X) - X * np.sin(X)), rtol=1e-5)


def test_sequential_vmap_is_a_loop():
    """Trees go through, example by example; what is not mapped stays."""

    @sequential_vmap
    def g(tree, scale):
        assert tree["a"].ndim < 2
        return {"out": tree["a"] * scale}

    np.testing.assert_array_equal(fnarray.vmap(g, (0, None))({"a": X}, 2.0)["out"], 2 * X)
    twice = fnarray.vmap(fnarray.vmap(g, (0, None)), (0, None))({"a": np.ones((2, 3), "f")}, 2.0)
    np.testing.assert_array_equal(twice["out"], np.full((2, 3), 2.0))


def test_what_a_rule_must_be():
    """A function without a rule, a rule of another structure, and mapped closures are refused."""
    bare = custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="no rule for vmap"):
        bare(1.0)
    bare.def_vmap(lambda size, batched, x: ((x, x), (True, True)))
    with pytest.raises(TypeError, match="structure"):
        fnarray.vmap(bare)(X)

    def closing(x):
        inner = custom_vmap(lambda y: x * y)
        inner.def_vmap(lambda size, batched, y: (y, batched[0]))
        return inner(2.0 * x)

    with pytest.raises(MissingRuleError, match="closes over"):
        fnarray.vmap(closing)(X)


def _divided(r, x):
    """Return ``x / r``, whose transpose says three times as much."""
    return linear_call(lambda r, x: x / r, lambda r, t: 3 * t / r, r, x)


def test_linear_call_is_transposed_as_its_author_says():
    """The given transpose runs in reverse mode; its own transpose is the function again."""
    assert _divided(2.0, 4.0) == 2.0
    assert fnarray.grad(lambda x: _divided(2.0, x))(1.0) == 1.5
    (once,) = fnarray.linear_transpose(lambda x: _divided(2.0, x), 1.0)(1.0)
    assert once == 1.5

    def back(t):
        return fnarray.linear_transpose(lambda x: _divided(2.0, x), 1.0)(t)[0]

    assert fnarray.linear_transpose(back, 1.0)(1.0)[0] == 0.5
    assert fnarray.jit(_divided)(2.0, 4.0) == 2.0


def test_linear_call_under_other_transforms():
    """Tangents go through residuals as well; batches are summed where an operand is shared."""
    out, tangent = fnarray.jvp(_divided, (2.0, 3.0), (1.0, 1.0))
    assert (out, tangent) == (1.5, -0.25)
    np.testing.assert_allclose(fnarray.vmap(_divided)(X + 1, X), X / (X + 1))
    rows = fnarray.vmap(_divided, (0, None))
    assert fnarray.grad(lambda x: rows(X + 1, x).sum())(1.0) == pytest.approx(5.5)


def test_transposes_are_of_the_shape_of_arguments():
    """A transpose that returns something else is refused when the call is made."""
    with pytest.raises(TypeError, match="like linear_args"):
        linear_call(lambda r, x: x * r, lambda r, t: t[None], 2.0, 3.0)
