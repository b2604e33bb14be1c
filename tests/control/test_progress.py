"""Watched loops give what they gave, in every transform, and tell how far they are."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax


def step(c, x):
    c = jnp.sin(c) * 0.5 + x
    return c, c.sum()


def add(i, v):
    return v * 0.9 + i


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 7, 120, 127])
def test_a_scan_is_the_same(length, reverse):
    """Bit for bit, whatever its number of turns, with rows left over or not."""
    xs, c = jnp.arange(2.0 * length).reshape(length, 2) / 100, jnp.zeros(2)
    plain = fa.jit(lambda c, xs: lax.scan(step, c, xs, reverse=reverse))(c, xs)
    body = fa.progress(length, "mine")(step)
    watched = fa.jit(lambda c, xs: lax.scan(body, c, xs, reverse=reverse))(c, xs)
    for a, b in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (2, 3), (-5, 123)])
def test_a_counted_loop_is_the_same(lower, upper):
    """With bounds known and with bounds computed."""
    want = fa.jit(lambda v: lax.fori_loop(lower, upper, add, v))(1.0)
    body, bound = fa.progress()(add), fa.progress(200)(add)
    assert fa.jit(lambda v: lax.fori_loop(lower, upper, body, v))(1.0) == want
    assert fa.jit(lambda v, n: lax.fori_loop(lower, n, bound, v))(1.0, upper) == want


def test_derivatives_and_rows():
    """Gradients and lanes of a watched loop are those of the loop."""
    body = fa.progress()(step)

    def loss(watch, c, xs):
        c, ys = lax.scan(body if watch else step, c, xs)
        return c.sum() + (ys**2).sum()

    c, xs = jnp.ones(2), jnp.arange(24.0).reshape(12, 2) / 10
    plain = fa.grad(loss, (1, 2))(False, c, xs)
    watched = fa.grad(loss, (1, 2))(True, c, xs)
    for a, b in zip(plain, watched, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    lanes = jnp.stack([c, 2 * c])
    rows = [fa.vmap(lambda c, w=w: loss(w, c, xs))(lanes) for w in (False, True)]
    np.testing.assert_allclose(*rows, rtol=1e-6)


def test_the_log_has_a_line_for_each_tenth(caplog):
    """Each run begins anew, and ends with all turns done."""
    body = fa.progress(100, "training")(step)
    f = fa.jit(lambda c, xs: lax.scan(body, c, xs)[0])
    with caplog.at_level(logging.INFO, "fnarray.progress"):
        for _ in range(2):
            f(jnp.zeros(2), jnp.ones((100, 2)))
    lines = [r.getMessage() for r in caplog.records if r.name == "fnarray.progress"]
    assert len(lines) == 20
    assert lines[0].startswith("training: 10 of 100 turns")
    assert lines[-1].startswith("training: 100 of 100 turns")


def test_a_body_alone_is_what_it_was():
    """Called by itself or by something else than a loop, it is the function."""
    body = fa.progress(3)(add)
    assert body(1, 2.0) == add(1, 2.0)
    assert body.__name__ == "add"
    np.testing.assert_array_equal(lax.map(fa.progress(3)(jnp.sin), jnp.arange(3.0)).shape, (3,))


def test_wrong_use():
    """A number of turns that is not the loop's; numbers and bodies that are none."""
    with pytest.raises(ValueError, match=r"the scan over step takes 4 turns. Write progress\(4\)"):
        lax.scan(fa.progress(3)(step), jnp.zeros(2), jnp.ones((4, 2)))
    with pytest.raises(ValueError, match="Say how many turns"):
        fa.jit(lambda n: lax.fori_loop(0, n, fa.progress()(add), 1.0))(3)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        fa.progress(0)
    with pytest.raises(TypeError, match="n must be an int, got 'a'"):
        fa.progress("a")
    with pytest.raises(TypeError, match="expected a loop's body, got 3"):
        fa.progress(2)(3)
    with pytest.raises(TypeError, match="scans over a Ref"):
        lax.scan(fa.progress(2)(step), jnp.zeros(2), fa.new_ref(jnp.ones((2, 2))))


def test_compiling_says_how_far_it_is(caplog, monkeypatch):
    """In the log, where there is no terminal, once it takes longer than one likes to wait."""
    from fnarray.compile import pipeline
    from fnarray.compile.cpu import build

    monkeypatch.setattr(pipeline, "PATIENCE", 0.0)

    def long(x):
        for _ in range(20):
            x = jnp.tanh(jnp.sin(x)) + 0.125
        return x

    monkeypatch.setattr(build, "_stored", lambda *_: None)
    with caplog.at_level(logging.INFO, "fnarray.compile"):
        fa.jit(long)(jnp.ones(3))
    assert any("compiling" in r.getMessage() and "long" in r.getMessage() for r in caplog.records)
