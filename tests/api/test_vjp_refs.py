"""Cotangents that go to Refs, and residuals that are exchanged: ``vjp(...)[1].with_refs``."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray


def _into_refs(lib):
    x, zeros = lib.numpy.arange(6.0), lib.numpy.zeros(6)
    _, pull = lib.vjp(lambda x, d: lib.numpy.sin(x) * d["a"] + d["b"], x, {"a": 2.0, "b": zeros})
    ref = lib.new_ref(zeros)
    into = pull.with_refs(ref, {"a": lib.ad.GradValue(), "b": lib.ad.DontWant()})
    (nothing, d), _ = into(lib.numpy.ones(6)), into(x)
    names = [type(nothing).__name__, type(d["b"]).__name__]
    return ref[...], d["a"], names == ["GradRef", "DidntWant"]


def _of_microbatches(lib):
    w, xs = lib.numpy.arange(3.0), lib.numpy.arange(12.0).reshape(4, 3) / 9
    total = lib.new_ref(lib.numpy.zeros(3))

    @lib.jit
    def run(w, total):
        def turn(c, x):
            y, pull = lib.vjp(lambda w: lib.numpy.sin(x @ w), w)
            pull.with_refs(total)(lib.numpy.float32(1))
            return c + y, None

        return lib.lax.scan(turn, 0.0, xs)[0]

    return run(w, total), run(w, total), total[...]


def _exchanged(lib):
    ones = lib.numpy.ones
    _, pull = lib.vjp(lambda x, w: lib.numpy.sin(x) @ w, ones((2, 3)), ones((3, 4)))
    kept = [type(r).__name__ for r in pull.args_res], len(pull.opaque_residuals)
    before = pull(ones((2, 4)))
    pull.args_res[1] = 2 * pull.args_res[1]
    compiled = lib.jit(lambda pull, ct: pull(ct))(pull, ones((2, 4)))
    return before, pull(ones((2, 4))), compiled, kept[0][0] == "NotNeeded", kept[1]


@pytest.mark.parametrize("program", [_into_refs, _of_microbatches, _exchanged])
def test_gives_what_jax_gives(program):
    """Cotangents are added to Refs, given, or left out; residuals may be exchanged."""
    got, want = jax.tree.leaves(program(fnarray)), jax.tree.leaves(program(jax))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-6, atol=1e-6)


def test_what_does_not_fit_is_refused():
    """A Ref of another shape, and another structure, are named before anything is computed."""
    _, pull = fnarray.vjp(fnarray.numpy.sin, 2.0)
    with pytest.raises(ValueError, match=r"argument float32\[\] goes to a Ref\{float32\[\]\}"):
        pull.with_refs(fnarray.new_ref(fnarray.numpy.zeros(2)))
    with pytest.raises(ValueError, match="structure of the arguments"):
        pull.with_refs(fnarray.ad.DontWant(), fnarray.ad.DontWant())
    with pytest.raises(AttributeError, match="no attribute 'residue'"):
        _ = pull.residue


def _products(lib, wanted):
    w, x = lib.numpy.ones((4, 4)), lib.numpy.arange(4.0)
    _, pull = lib.vjp(lambda w, x, y: lib.numpy.tanh(w @ x) @ y, w, x, x)
    kinds = [lib.ad.GradValue() if one else lib.ad.DontWant() for one in wanted]
    return str(lib.make_jaxpr(lambda: pull.with_refs(*kinds)(1.0))()).count("dot_general")


@pytest.mark.parametrize("wanted", [(1, 1, 1), (1, 0, 1), (0, 1, 0), (0, 0, 1)])
def test_what_nobody_wants_is_not_computed(wanted):
    """A backward pass has as many products as JAX's, or fewer where arguments are not wanted."""
    ours, all_of_them = _products(fnarray, wanted), _products(fnarray, (1, 1, 1))
    assert ours <= _products(jax, wanted)
    assert ours <= all_of_them - wanted.count(0)
