"""Stacks of few columns are computed by columns, and laid out in one loop of vectors."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu.native.elements import whole_rows
from fnarray.config import config

from .helpers import code, compiled, run

RNG = np.random.default_rng(0)


def field(m, s):
    """A system of three equations."""
    x, y, z = s[..., 0], s[..., 1], s[..., 2]
    return m.stack([y - x, x * (2 - z) - y, x * y - z / 3], -1)


def step(m, s):
    """A step that takes the system apart three times."""
    first = field(m, s)
    second = field(m, s + first / 4)
    third = field(m, s + second / 2)
    return s + (first + 2 * second + third) / 8


def turned(m, s):
    """Five steps."""
    if m is fnp:
        return lax.fori_loop(0, 5, lambda _, s: step(m, s), s)
    for _ in range(5):
        s = step(m, s)
    return s


def kept(m, s):
    """A stack that is read as it is, too."""
    a = field(m, s)
    return a[..., 0] * a[..., 2] + a.sum(-1), (a + 1)[..., 1]


def unlike(m, s):
    """Pieces of one and of two columns, with a column of another array, and a broadcast."""
    a = m.concatenate([s[..., 1:] * s[..., :1], s[..., :1] + 1], -1)
    b = a * s - 2 * a
    return b, b[..., 2] / (b[..., 0] * b[..., 0] + 1)


def halves(m, s):
    """Results of two dtypes."""
    a = field(m, s)
    return (a > 0) | (s > 0), (a + s)[..., 1]


def placed(m, s):
    """Columns in zeros, added up: what the gradient of a program by columns is made of."""
    zero = m.zeros_like(s[..., :1])
    a = m.concatenate([zero, s[..., 1:2], zero], -1) + m.concatenate([s[..., :1], zero, zero], -1)
    return a.sum(-1), a[..., 1] - a[..., 2]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("fun", [step, turned, kept, unlike, halves, placed])
@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 3), (37, 3), (4, 33, 3), (1000, 3)])
def test_results_are_those_of_numpy(fun, shape):
    """Of any number of rows, NaN and infinities among them, donated, and in lanes of `vmap`."""
    x = RNG.uniform(-1, 1, shape).astype(np.float32)
    x.reshape(-1)[7:10] = [np.nan, np.inf, -0.0][: max(x.size - 7, 0)]
    with np.errstate(all="ignore"):
        want = fun(np, x)
    for f in (
        lambda x: fun(fnp, x),
        fnarray.vmap(lambda x: fun(fnp, x)),
    ):
        for given in ((), (0,)):
            got = fnarray.jit(f, donate_argnums=given)(fnp.asarray(x))
            for g, w in zip(
                *((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True
            ):
                np.testing.assert_allclose(np.asarray(g), w, rtol=2e-5, atol=1e-6)


def test_gradients_add_up_columns():
    """Those of eager derivatives; the columns in zeros are one array, negative zeros are kept."""
    x = RNG.uniform(-1, 1, (50, 3)).astype(np.float32)
    slope = fnarray.grad(lambda x: (field(fnp, x) ** 2).sum())
    np.testing.assert_allclose(np.asarray(fnarray.jit(slope)(x)), slope(x), rtol=1e-5, atol=1e-6)
    assert "w1" not in code(compiled(slope, x))
    pad = lambda x, k: lax.pad(x[:, k : k + 1], np.float32(0), ((0, 0, 0), (k, 2 - k, 0)))  # noqa: E731
    added = fnarray.jit(lambda x: pad(x, 0) + pad(x, 2))(-np.zeros_like(x))
    assert not np.signbit(np.asarray(added)).any()


@pytest.fixture(params=[1, 2])
def threads(request):
    """So many threads."""
    before = config.num_threads
    config.update("num_threads", request.param)
    yield request.param
    config.update("num_threads", before)


@pytest.mark.usefixtures("threads")
def test_threads_give_the_same():
    """Rows that threads share out, in turns of a loop."""
    x = RNG.uniform(-1, 1, (30_001, 3)).astype(np.float32)
    np.testing.assert_allclose(run(lambda x: turned(fnp, x), x)[0], turned(np, x), rtol=1e-4)


def test_a_step_is_one_loop():
    """Nothing is kept between its parts, and nothing is computed twice."""
    x = RNG.uniform(-1, 1, (1000, 3)).astype(np.float32)
    text = code(compiled(lambda x: step(fnp, x), x))
    assert text.count("for i") == 1
    assert "w0" not in text
    turns = code(compiled(lambda x: turned(fnp, x), x))
    assert "w1" not in turns
    stays = code(compiled(lambda x: kept(fnp, x)[0], x))
    assert stays.count("for i") >= 2


def test_pieces_are_no_reason_to_keep_what_they_are_laid_out_of():
    """Each is read once, however large the whole is."""
    x = RNG.uniform(-1, 1, (1000, 3)).astype(np.float32)
    text = code(compiled(lambda x: lax.fori_loop(0, 3, lambda _, x: field(fnp, fnp.sin(x)), x), x))
    assert "w2" not in text


def test_what_is_read_elsewhere_too_is_computed_once():
    """A stack with its reverse reads each number in two turns: a function of it is an array."""
    x = RNG.uniform(-1, 1, 1000).astype(np.float32)

    def twice(m, x):
        y = m.exp(x)
        return m.stack([y, y[::-1] + 1], -1)

    executable = compiled(lambda x: twice(fnp, x), x)
    assert code(executable).count("vm.exp") == 1
    np.testing.assert_allclose(executable.run(x)[0], twice(np, x), rtol=1e-6)


ROWS = {
    "out[u(3 * i)] = x[i]; out[u(3 * i + 1)] = x[i]; out[u(3 * i + 2)] = x[i]": {"out"},
    "out[u(3 * i)] = x[i]; out[u(3 * i + 2)] = x[i]": set(),
    "out[u(2 * i)] = x[u(2 * i + 1)]; out[u(2 * i + 1)] = x[u(2 * i)]": {"out", "x"},
    "out[u(2 * i)] = x[i]; out[u(2 * i + 1)] = x[i]; out[i] = x[i]": set(),
    "out[u(2 * i)] = x[i]; out[u(2 * i + 1)] = x[i]; out[u(3 * i)] = x[i]": set(),
    "out[u(n * i)] = x[i]; out[u(n * i + 1)] = x[i]": set(),
    "out[u(2 * j)] = x[i]; out[u(2 * j + 1)] = x[i]": set(),
}


@pytest.mark.parametrize("body", ROWS)
def test_rows_are_whole_where_all_their_columns_are(body):
    """And where nothing else of the array is written in the loop."""
    (loop,) = ast.parse(f"for i in range(n):\n    {body}").body
    assert isinstance(loop, ast.For)
    assert {x.value.id for x in whole_rows(loop)} == ROWS[body]
