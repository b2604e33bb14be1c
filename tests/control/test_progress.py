"""Watched loops give what they gave, in every transform, and tell how far they are."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import export, lax
from fnarray.control import progress
from fnarray.experimental import checkify


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


@pytest.fixture
def at_once(monkeypatch):
    """Loops are shown whenever they look at the clock, however quick they are."""
    monkeypatch.setattr(progress, "_EVERY", 0)


def turns_told(caplog):
    """Return how many turns each line of the log says are done."""
    lines = [r.getMessage() for r in caplog.records if r.name == "fnarray.progress"]
    return [int(line.split(": ")[1].split()[0]) for line in lines]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("length", "told"), [(100, range(10, 101, 10)), (107, None)])
@pytest.mark.usefixtures("at_once")
def test_the_log_has_a_line_for_each_tenth(caplog, length, told, reverse):
    """Each run begins anew, and ends with all turns done."""
    body = fa.progress(length, f"training{length}{reverse}")(step)
    f = fa.jit(lambda c, xs: lax.scan(body, c, xs, reverse=reverse)[0])
    with caplog.at_level(logging.INFO, "fnarray.progress"):
        for _ in range(2):
            f(jnp.zeros(2), jnp.ones((length, 2)))
    lines = turns_told(caplog)
    first, second = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    assert first == second == sorted(set(first))
    assert first[-1] == length
    assert told is None or first == list(told)


@pytest.mark.usefixtures("at_once")
def test_what_ticks(caplog):
    """Loops of Python's, of computed bounds, inside of others, and in lanes, do too."""

    def by_host(c, x):
        return jnp.fft.fft(c).real + x, None

    def lines_of(f, *args):
        caplog.clear()
        with caplog.at_level(logging.INFO, "fnarray.progress"):
            fa.jit(f)(*args)
        return turns_told(caplog)

    host = fa.progress(label="host")(by_host)
    lines = lines_of(lambda c, xs: lax.scan(host, c, xs)[0], jnp.zeros(4), jnp.ones((40, 4)))
    assert lines == list(range(4, 41, 4))
    bound = fa.progress(200, label="bound")(add)
    assert lines_of(lambda v, n: lax.fori_loop(0, n, bound, v), 1.0, 200)[-1] == 200
    many = fa.progress(label="many")(add)
    twice = lines_of(
        lambda v: lax.fori_loop(0, 2, lambda i, v: lax.fori_loop(0, 50, many, v), v), 1.0
    )
    assert twice == [*range(5, 51, 5)] * 2
    lanes = lines_of(fa.vmap(lambda v: lax.fori_loop(0, 50, many, v)), jnp.ones(3))
    assert lanes == [*range(5, 51, 5)]


@pytest.mark.usefixtures("at_once")
def test_what_is_made_of_a_watched_loop(caplog):
    """A derivative, checked or exported program tells of the loop once, not of what runs back."""

    def loss(c, xs):
        return lax.scan(fa.progress(label="once", parts=5)(step), c, xs)[0].sum()

    c, xs = jnp.ones(2), jnp.ones((20, 2))
    exported = export.deserialize(export.export(fa.jit(loss))(c, xs).serialize())
    made = [loss, fa.grad(loss), checkify.checkify(loss), exported.call]
    for f in made:
        caplog.clear()
        with caplog.at_level(logging.INFO, "fnarray.progress"):
            fa.jit(f)(c, xs)
        assert turns_told(caplog) == [4, 8, 12, 16, 20]


def test_quick_loops_call_nothing(monkeypatch):
    """A loop that has ended before it is due is not shown, nor is Python called by it."""
    calls = []
    monkeypatch.setattr(progress._Bar, "_show", lambda *args: calls.append(args))
    monkeypatch.setattr(progress, "_EVERY", 1 << 30)
    body = fa.progress(label="quick")(step)
    fa.jit(lambda c, xs: lax.scan(body, c, xs)[0])(jnp.zeros(2), jnp.ones((1000, 2)))
    assert not calls


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("shape", [2, 1024])
def test_what_is_raised_while_a_loop_is_shown(monkeypatch, shape):
    """An interrupt ends loop and program, in machine code too, and the next run is whole."""

    def turn(c, x):
        return (c * 0.5 if shape < 3 else jnp.fft.fft(c).real) + x, None

    f = fa.jit(lambda c, xs: lax.scan(fa.progress(label=f"raises{shape}")(turn), c, xs)[0])
    args = jnp.zeros(shape), jnp.ones((100, shape))
    told = []

    def interrupt(bar, done, passed):
        told.append(done)
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(progress._Bar, "_show", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fa.block_until_ready(f(*args))
            for _ in range(1000):
                pass
    assert told == [10]
    assert fa.block_until_ready(f(*args)).shape == (shape,)


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


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_terminal_shows_bars(monkeypatch, kind):
    """A compilation's goes away, a loop's ends full; a terminal without moves shows none."""
    from fnarray.compile import progress as compiling

    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("COLUMNS", "60")
    reader, writer = os.openpty()
    with os.fdopen(writer, "w") as stream, monkeypatch.context() as m:
        m.setattr(sys, "stderr", stream)
        ended, begun = threading.Event(), time.monotonic() - 83
        compiling.show("mine", 4, lambda: ended.set() or 3, ended, begun)
        bar = progress._Bar("train", 100)
        bar.at(40, 5000)
        bar.at(100, 7000)
        stream.flush()
        os.set_blocking(reader, False)
        found = b""
        with suppress(BlockingIOError):  # a terminal gives what it has in pieces
            while True:
                found += os.read(reader, 1 << 16)
        text = found.decode()
    os.close(reader)
    if kind == "dumb":
        assert not text
        return
    assert "compiling" in text
    assert "3/4" in text
    elapsed = [60 * int(m) + int(s) for m, s in re.findall(r"0:(\d\d):(\d\d)", text)]
    assert 83 <= max(elapsed) < 600  # seconds later on a busy machine
    assert " 40%" in text
    assert "100%" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 2  # the cursor comes back
