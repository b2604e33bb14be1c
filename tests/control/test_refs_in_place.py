"""Calls that are differentiated, of functions whose rules take a Ref and write it going back."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray


def _tap(lib):
    """Return a function that adds its cotangent to a Ref, and doubles it."""

    @lib.custom_vjp
    def tap(x, ref):
        return x * 1

    def backward(ref, g):
        ref[...] += g
        return g * 2, None

    tap.defvjp(lambda x, ref: (x, ref), backward)
    return tap


def _scanned(lib, tap, x, ref):
    return lib.lax.scan(lambda c, a: (tap(c, ref) * a, c), x, lib.numpy.arange(1.0, 4.0))[0]


def _scanned_backwards(lib, tap, x, ref):
    rows = lib.numpy.arange(1.0, 4.0)
    return lib.lax.scan(lambda c, a: (tap(c, ref) * a, c), x, rows, reverse=True)[1].sum()


def _counted(lib, tap, x, ref):
    return lib.lax.fori_loop(0, 3, lambda i, c: tap(c, ref) * (i + 1), x)


def _carried(lib, tap, x, ref):
    return lib.lax.scan(lambda c, _: ({"a": tap(c["a"], ref)}, None), {"a": x}, length=2)[0]["a"]


PROGRAMS = {
    "jit": lambda lib, tap, x, ref: lib.jit(tap)(x, ref),
    "jit-closed-over": lambda lib, tap, x, ref: lib.jit(lambda x: tap(x, ref) * x)(x),
    "jit-static": lambda lib, tap, x, ref: lib.jit(lambda n, x: tap(x, ref) * n, static_argnums=0)(
        3, x
    ),
    "jit-inline": lambda lib, tap, x, ref: lib.jit(tap, inline=True)(x, ref),
    "jit-of-jit": lambda lib, tap, x, ref: lib.jit(lambda x: lib.jit(tap)(x, ref) * x)(x),
    "scan": _scanned,
    "scan-reverse": _scanned_backwards,
    "scan-tree": _carried,
    "fori_loop": _counted,
    "checkpoint": lambda lib, tap, x, ref: lib.checkpoint(lambda x: tap(x, ref) * x)(x),
    "jit-of-scan": lambda lib, tap, x, ref: lib.jit(lambda x: _scanned(lib, tap, x, ref))(x),
}


def _check(run):
    got, want = run(fnarray), run(jax)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=2e-6)


@pytest.mark.parametrize("around", ["eager", "jit"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_way_back_writes_the_ref(program, around):
    """Gradients, and what the way back leaves in the Ref, are JAX's: called as is, and jitted."""

    def run(lib):
        ref, x = lib.new_ref(lib.numpy.float32(0)), lib.numpy.float32(2)
        tap, fun = _tap(lib), PROGRAMS[program]

        def grad(x, ref):
            return lib.grad(lambda x, ref: fun(lib, tap, x, ref))(x, ref)

        return (lib.jit(grad) if around == "jit" else grad)(x, ref), ref[...]

    _check(run)


def test_examples_have_refs_of_their_own():
    """Under ``vmap`` each example writes to its row of a Ref that is mapped."""

    def run(lib):
        ref, xs = lib.new_ref(lib.numpy.zeros(3)), lib.numpy.arange(3.0)
        return lib.vmap(lib.grad(lib.jit(_tap(lib))))(xs, ref), ref[...]

    _check(run)


def test_each_way_back_writes_again():
    """A pullback of a jitted function adds to the Ref whenever it is called."""

    def run(lib):
        ref, x = lib.new_ref(lib.numpy.float32(0)), lib.numpy.float32(2)
        y, pull = lib.vjp(lib.jit(_tap(lib)), x, ref)
        return y, pull(x)[0], pull(3 * x)[0], ref[...]

    _check(run)


def test_branches_write_in_place():
    """A branch chosen by a known value writes its Ref going back, which JAX has no rule for."""
    tap, ref = _tap(fnarray), fnarray.new_ref(np.float32(0))

    def fun(x):
        return fnarray.lax.cond(x > 0, lambda x: tap(x, ref), lambda x: x * 3, x)

    assert fnarray.grad(fun)(2.0) == 2
    assert fnarray.grad(fun)(-2.0) == 3
    assert fnarray.grad(lambda x: fnarray.lax.switch(1, [fun, lambda x: tap(x, ref)], x))(1.0) == 2
    assert ref[...] == 2


def test_rows_of_a_ref_are_handed_on():
    """By a loop over the rows, or over indices with the whole Ref: each row has its cotangent."""
    tap = _tap(fnarray)
    rows, x = fnarray.new_ref(np.zeros(3, np.float32)), np.float32(1)

    def over_rows(x):
        return fnarray.lax.scan(lambda c, row: (tap(c, row), None), x, rows)[0]

    assert fnarray.grad(over_rows)(x) == 8
    np.testing.assert_array_equal(rows[...], [4, 2, 1])

    whole = fnarray.custom_vjp(lambda x, ref, i: x * 1)

    def backward(kept, g):
        ref, i = kept
        ref.addupdate(g, i)
        return g * 2, None, None

    whole.defvjp(lambda x, ref, i: (x, (ref, i)), backward)

    def over_indices(x):
        return fnarray.lax.scan(lambda c, i: (whole(c, rows, i), None), x, np.arange(3))[0]

    assert fnarray.grad(over_indices)(x) == 8
    np.testing.assert_array_equal(rows[...], [8, 4, 2])


@pytest.mark.parametrize("place", ["carry", "rows"])
def test_a_ref_that_comes_twice_is_refused_first(place):
    """The same Ref twice in a carry or in rows is a `ValueError`, whatever the body returns."""
    for lib in fnarray, jax:
        ref = lib.new_ref(lib.numpy.zeros(3))
        init, xs = ((ref, ref), None) if place == "carry" else (None, (ref, ref))
        with pytest.raises(ValueError, match="only one reference to a mutable array"):
            lib.lax.scan(lambda c, x: (None, None), init, xs, length=3)
