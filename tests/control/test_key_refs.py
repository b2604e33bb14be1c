"""Refs of random keys: a state that is split where it lies."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray


def _draw(lib, ref, where=...):
    left, taken = lib.random.split(ref[where])
    ref[where] = left
    return lib.random.normal(taken, (2,))


def _argument(lib):
    ref = lib.new_ref(lib.random.key(0))
    step = lib.jit(lambda ref: _draw(lib, ref))
    return step(ref), step(ref), _draw(lib, ref), lib.random.key_data(lib.freeze(ref))


def _closed_over(lib):
    refs = lib.new_ref(lib.random.split(lib.random.key(0), 4))

    @lib.jit
    def run(i):
        return lib.lax.scan(lambda c, k: (c, _draw(lib, refs, k)), 0, i + lib.numpy.arange(3))[1]

    return run(0), run(1), _draw(lib, refs, 2), lib.random.key_data(refs[1:])


def _mapped(lib):
    refs = lib.new_ref(lib.random.split(lib.random.key(1), (3, 4)))
    draws = lib.jit(lib.vmap(lambda ref: _draw(lib, ref, 2)))(refs)
    refs[..., 1] = lib.random.split(lib.random.key(5), 3)
    rows = lib.lax.scan(lambda c, ref: (c, lib.random.uniform(ref[0])), 0, refs)[1]
    return draws, rows, lib.random.key_data(refs[...])


def _inside(lib):
    def f(key):
        ref = lib.new_ref(key)
        return _draw(lib, ref), _draw(lib, ref), lib.random.key_data(lib.freeze(ref))

    return f(lib.random.key(3)), lib.jit(f)(lib.random.key(3, impl="rbg"))


def _seen(lib):
    ref = lib.new_ref(lib.random.key(1))
    (leaf,) = lib.tree.leaves({"state": ref})
    facts = leaf is ref, isinstance(ref, lib.Ref), str(lib.typeof(ref)) == "Ref{key<fry>[]}"
    return facts, ref.shape == (), str(ref.dtype) == "key<fry>"


@pytest.mark.parametrize("program", [_argument, _closed_over, _mapped, _inside, _seen])
def test_gives_what_jax_gives(program):
    """Draws, and the keys that are left, are JAX's."""
    got, want = jax.tree.leaves(program(fnarray)), jax.tree.leaves(program(jax))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-6)


def test_keys_are_replaced_by_keys():
    """Numbers are no keys, and nothing is added to keys."""
    ref = fnarray.new_ref(fnarray.random.key(1))
    for use in (
        lambda: ref.addupdate(1),
        lambda: ref.__setitem__(..., fnarray.numpy.ones(2)),
        lambda: ref.__setitem__(..., fnarray.random.key(1, impl="rbg")),
    ):
        with pytest.raises(TypeError, match="holds random keys of 'threefry2x32'"):
            use()
