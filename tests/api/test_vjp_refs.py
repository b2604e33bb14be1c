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


def _read_only(r, y):
    return (r[...] * y).sum()


def _overwritten(r, y):
    r[0] = fnarray.numpy.sin(r[1]) * y
    r[...] = r[...] * r[...]
    return r[...].sum() * y


def _looped(r, y):
    fnarray.lax.fori_loop(0, 3, lambda i, _: r.__setitem__(i, r[i] * y + r[(i + 1) % 3]), None)
    return r[...] @ r[...]


def _pure(f):
    """The function of a value, which gives its result and what it left in the Ref."""

    def of_value(x, y):
        ref = fnarray.new_ref(x)
        out = f(ref, y)
        return out, fnarray.freeze(ref)

    return of_value


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [_read_only, _overwritten, _looped])
def test_refs_have_derivatives(f, compiled):
    """A Ref is the state before and after: jvp, linearize and vjp are those of that function."""
    wrap = fnarray.jit if compiled else lambda f: f
    f = wrap(f)
    jnp, of_value = fnarray.numpy, _pure(f)
    x, y = jnp.arange(1.0, 4.0), jnp.float32(0.7)
    tx, ty, ct, left = jnp.array([0.5, -1.0, 2.0]), jnp.float32(3), jnp.float32(2), jnp.ones(3)
    (out, state), (t_out, t_state) = fnarray.jvp(of_value, (x, y), (tx, ty))
    _, pull = fnarray.vjp(of_value, x, y)
    cx, cy = pull((ct, left))

    ref, t = fnarray.new_ref(x), fnarray.new_ref(tx)
    got = fnarray.jvp(f, (ref, y), (t, ty))
    _close((*got, ref[...], t[...]), (out, t_out, state, t_state))
    ref, t = fnarray.new_ref(x), fnarray.new_ref(tx)
    value, push = fnarray.linearize(f, ref, y)
    _close((value, push(t, ty), ref[...], t[...]), (out, t_out, state, t_state))
    ref, gradient = fnarray.new_ref(x), fnarray.new_ref(left)
    value, pull = fnarray.vjp(f, ref, y)
    placeholder, c = pull.with_refs(gradient, fnarray.ad.GradValue())(ct)
    assert type(placeholder).__name__ == "GradRef"
    _close((value, ref[...], gradient[...], c), (out, state, cx, cy))
    with pytest.raises(ValueError, match="accumulated into a Ref"):
        pull(ct)


def _close(got, want):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-6, atol=1e-6)


def test_jvp_of_refs_is_jaxs():
    """Values, tangents and what is left in both Refs are those that JAX gives."""

    def program(lib):
        def f(x, r):
            r[...] = r[...] * x
            return r[...] * 2

        ref, t = lib.new_ref(3.0), lib.new_ref(1.0)
        run = lambda ref, t: lib.jvp(f, (2.0, ref), (1.0, t))  # noqa: E731
        return (*run(ref, t), *lib.jit(run)(ref, t), ref[...], t[...])

    _close(program(fnarray), program(jax))
    with pytest.raises(ValueError, match="gradient must lie in a Ref"):
        fnarray.grad(lambda r: r[...] ** 2)(fnarray.new_ref(1.0))
    with pytest.raises(ValueError, match="tangent must be one, too"):
        fnarray.jvp(lambda r: r[...], (fnarray.new_ref(1.0),), (1.0,))


def _stash(lib):
    stash = lib.custom_vjp(lambda ref, x: x)

    def bwd(ref, ct):
        ref[...] = ct
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), bwd)
    return stash


def _stashed_rows(lib, wrap):
    stash, ref = _stash(lib), lib.new_ref(lib.numpy.zeros((4, 2)))

    def f(x, ref):
        def turn(c, row):
            return lib.numpy.sin(stash(row, c)), None

        return lib.lax.scan(turn, x, ref)[0].sum()

    return wrap(lib.grad(f))(lib.numpy.arange(2.0), ref), ref[...]


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_of_refs_take_gradients(compiled):
    """A loop over rows of a Ref hands each to a function that writes it on the way back."""
    got = _stashed_rows(fnarray, fnarray.jit if compiled else lambda f: f)
    _close(got, _stashed_rows(jax, jax.jit if compiled else lambda f: f))
    with fnarray.disable_jit():
        _close(_stashed_rows(fnarray, lambda f: f), got)
