"""What every turn of a loop computes alike is computed once, before the loop."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu.target import CPU
from fnarray.compile.simplify import simplified
from fnarray.core.avals import ShapedArray
from fnarray.core.forms import Contract, Map, Reduce, Reindex, Scan, While
from fnarray.core.trace import trace_graph

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4)).astype(np.float32)
A = RNG.normal(size=(4, 4)).astype(np.float32) / 4


def scanned(x, a, length=3):
    """A product, a fold of functions and a nested call of constants, a product that is carried."""

    def turn(c, t):
        fixed = a @ a + fnp.exp(a).sum(0)
        soft = fnarray.nn.softmax(a)
        return c @ fixed * 0.1 + soft[0], (c @ soft, fixed, t * fixed[0, 0])

    return lax.scan(turn, x, x[:length])


def counted(x, a):
    """The same in a loop that ends when a sum is reached; its turns are not known."""
    return lax.while_loop(
        lambda s: (s[1] < 5) & (s[0].sum() < 1e6),
        lambda s: (s[0] @ (a @ a) + fnp.tanh(a)[0], s[1] + 1),
        (x, 0),
    )


def none(x, a):
    """A loop that takes no turn."""
    return lax.while_loop(lambda c: c.sum() > 1e9, lambda c: c @ (a @ a), x)


def within(x, a):
    """A loop in a loop."""
    inner = lambda c: lax.fori_loop(0, 2, lambda _, d: d @ (a @ a) + (c @ a)[:, :1], c)  # noqa: E731
    return lax.fori_loop(0, 3, lambda _, c: inner(c), x)


FUNCTIONS = (scanned, counted, none, within)


def leaves(tree):
    return [np.asarray(v) for v in fnarray.tree.leaves(tree)]


@pytest.mark.cpu
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_the_same(function):
    """Compiled loops give what eager ones do, mapped and differentiated too."""
    programs = [function, fnarray.vmap(lambda x: function(x[None], A))]
    if function is scanned:
        total = lambda x, a: sum(v.sum() for v in fnarray.tree.leaves(function(x, a)))  # noqa: E731
        programs.append(fnarray.grad(total, (0, 1)))
    for k, program in enumerate(programs):
        args = (X,) if k == 1 else (X, A)
        for ours, want in zip(
            leaves(fnarray.jit(program)(*args)), leaves(program(*args)), strict=True
        ):
            np.testing.assert_allclose(ours, want, rtol=1e-4, atol=1e-4)


def bodies(function, loop=Scan | While):
    """Return the forms that are in the body of the loop of a program, and all others."""
    avals = [ShapedArray(v.shape, v.dtype) for v in (X, A)]
    flat = lambda *args: fnarray.tree.leaves(function(*args))  # noqa: E731
    block = simplified(trace_graph(flat, avals, "program").jaxpr, CPU)
    (node,) = (n for n in block.nodes if isinstance(n.form, loop))
    inside = [n.form for n in node.bodies[-1].nodes]
    return inside, [n.form for n in block.nodes if n is not node]


def count(forms, kind):
    return sum(isinstance(f, kind) for f in forms)


def test_products_and_folds_of_constants_are_moved():
    """The products of what is carried stay, and so does what is cheap."""
    inside, before = bodies(scanned)
    assert count(inside, Contract) == 2
    assert count(before, Contract) == 1
    assert count(inside, Reduce) == 0
    inside, before = bodies(counted)
    assert (count(inside, Contract), count(before, Contract)) == (1, 1)
    assert not any(isinstance(f, Map) and "tanh" in f.template for f in inside)


def test_loops_of_one_turn_and_cheap_constants_stay_as_they_are():
    """Nothing is gained by an array of sums, or where there is no second turn."""
    _, before = bodies(lambda x, a: scanned(x, a, 1), Scan)
    assert count(before, Contract) == 0
    _, before = bodies(lambda x, a: lax.fori_loop(0, 4, lambda _, c: c + 2 * a[0], x))
    assert not any(isinstance(f, Map) for f in before)


def test_what_is_large_beside_the_constants_stays():
    """No array is kept that takes many times the room of what it is computed from."""

    def wide(x, a):
        column = x[:, :1]
        return lax.fori_loop(
            0, 4, lambda _, c: c + fnp.exp(column * fnp.ones((1, 70_000)))[:, :4], x
        )

    inside, _ = bodies(wide)
    assert any(isinstance(f, Map) and "exp" in f.template for f in inside)


def test_transposes_of_what_is_moved_move_along():
    """Turns read rows; what is read as it is, too, is not turned twice."""

    def across(x, a):
        return lax.fori_loop(0, 3, lambda _, c: c + fnp.sin(c) * (a @ x.T).T, x)

    def both(x, a):
        def turn(_, c):
            product = a @ x.T
            return c + product.T * product.sum()

        return lax.fori_loop(0, 3, turn, x)

    for program in (across, both):
        inside, before = bodies(program)
        assert (count(inside, Contract), count(before, Contract)) == (0, 1)
        assert any(isinstance(f, Reindex) for f in inside) is (program is both)
        got, want = fnarray.jit(program)(X, A), program(X, A)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)
