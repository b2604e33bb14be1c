"""Products of boxes of arrays, and sums of them: read where they lie, added where they go.

The oracle is NumPy's `einsum` in double precision; and the program without the pass, to the bit.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fnarray
from fnarray.compile import pipeline
from fnarray.compile.cpu import sums
from fnarray.compile.cpu.processor import processor

np_ = fnarray.numpy


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def stencil(m, x, w, size):
    """A convolution as people write it out."""
    k = len(w)
    return sum(
        m.einsum("nijc,cd->nijd", x[:, i : i + size, j : j + size], w[i, j])
        for i in range(k)
        for j in range(k)
    )


#: Programs of a module of arrays, their operands, and how many steps they are to be.
CASES = {
    "stencil": (lambda m, x, w: stencil(m, x, w, 16), (3, 18, 18, 40), (3, 3, 40, 24), 1),
    "many terms": (lambda m, x, w: stencil(m, x, w, 14), (2, 15, 15, 300), (2, 2, 300, 40), 1),
    "odd sizes": (lambda m, x, w: stencil(m, x, w, 33), (3, 37, 37, 17), (5, 5, 17, 5), 1),
    "parts of rows": (
        lambda m, x, w: m.dot(x[:, :99], w[0]) + m.dot(x[:, 99:], w[1]),
        (300, 198),
        (2, 99, 70),
        1,
    ),
    "rows from below": (
        lambda m, x, w: m.dot(x[::-1], w[0]) + m.dot(x[:], w[1]),
        (300, 90),
        (2, 90, 70),
        0,
    ),
    "every other": (
        lambda m, x, w: m.dot(x[::-1, ::2], w[0]) + m.dot(x[:, 1::2], w[1]),
        (300, 180),
        (2, 90, 70),
        1,
    ),
    "transposed": (
        lambda m, x, w: m.dot(x[:99].T, w[0]) + m.dot(x[99:].T, w[1]),
        (198, 300),
        (2, 99, 70),
        1,
    ),
    "second transposed": (
        lambda m, x, w: m.dot(x[:, :99], w[0].T) + m.dot(x[:, 99:], w[1].T),
        (300, 198),
        (2, 70, 99),
        1,
    ),
    "to a start": (
        lambda m, x, w: (
            w[0, 0] + m.dot(x[:, :99], w[0]) + m.dot(x[:, 99:], w[1]) + m.dot(x[:, 9:108], w[1])
        ),
        (300, 198),
        (2, 99, 70),
        2,
    ),
    "pairs": (
        lambda m, x, w: (
            (m.dot(x[:299], w[0]) + m.dot(x[1:], w[1]))
            + (m.dot(x[1:], w[2]) + m.dot(x[:299], w[3]))
        ),
        (300, 90),
        (4, 90, 70),
        2,
    ),
    "apart": (
        lambda m, x, w: m.concatenate([m.dot(x[:, :99], w[0]), m.dot(x[:, 99:], w[1])], 1),
        (300, 198),
        (2, 99, 70),
        2,
    ),
}


def compiled(name, x, w):
    """Return what a case is, compiled anew, and how many of its steps are products of boxes."""
    program = CASES[name][0]
    fnarray.clear_caches()
    pipeline._executables.clear()
    run = fnarray.jit(lambda x, w: program(np_, x, w))
    x, w = np_.asarray(x), np_.asarray(w)
    text = run.lower(x, w).compile().as_text()
    return np.asarray(run(x, w)), text.count("# products (host)")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_numpy(name, dtype, monkeypatch):
    """They are steps of their own, and the same as NumPy's views multiplied, where those are."""
    program, x, w, steps = CASES[name]
    x, w = numbers(*x, dtype=dtype), numbers(*w, seed=1, dtype=dtype)
    want = program(np, x.astype(float), w.astype(float))
    with fnarray.enable_x64(dtype == np.float64):
        got, found = compiled(name, x, w)
        monkeypatch.setattr(sums, "_words", lambda *_: None)
        viewed, _ = compiled(name, x, w)
    assert got.dtype == viewed.dtype == dtype
    assert not processor().wide or found == steps
    scale = np.abs(want).max() * np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=20 * scale)
    np.testing.assert_allclose(viewed, want, rtol=0, atol=20 * scale)


@pytest.mark.skipif(not processor().wide, reason="the order of BLAS's terms is not known")
@pytest.mark.parametrize("name", CASES)
def test_no_bit_changes(name):
    """Each product is added to those before it, as arrays of programs of their own are.

    Of more terms than a panel has (256), the sums of some are added to those before.
    """
    program, x, w, _ = CASES[name]
    x, w = numbers(*x), numbers(*w, seed=1)
    got, _ = compiled(name, x, w)
    outside = SimpleNamespace(
        einsum=fnarray.jit(np_.einsum, static_argnums=0),
        dot=fnarray.jit(np_.dot),
        concatenate=np_.concatenate,
    )
    want = np.asarray(program(outside, np_.asarray(x), np_.asarray(w)))
    bits = 2e-6 * np.abs(want).max() if w.shape[-2] > 256 else 0
    np.testing.assert_allclose(got, want, rtol=0, atol=bits)


def test_gradients_are_those_of_convolutions():
    """What reads and what makes boxes is differentiated as before."""
    x, w = np_.asarray(numbers(2, 18, 18, 32)), np_.asarray(numbers(3, 3, 32, 40, seed=1))

    def convolved(x, w):
        return fnarray.lax.conv_general_dilated(
            x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(f):
        return fnarray.jit(fnarray.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=(0, 1)))

    found = loss(lambda x, w: stencil(np_, x, w, 16))(x, w)
    for got, want in zip(found, loss(convolved)(x, w), strict=True):
        scale = np.abs(np.asarray(want)).max()
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=0, atol=1e-5 * scale)


def test_what_others_read_stays():
    """A product that is a result, or read twice, is made; what is added to it is not lost."""
    x, w = numbers(300, 90), numbers(2, 90, 70, seed=1)

    def program(x, w):
        first, second = x[:299] @ w[0], x[1:] @ w[1]
        both = first + second
        return first, both * both + second, both

    exact = program(x.astype(float), w.astype(float))
    for got, want in zip(fnarray.jit(program)(x, w), exact, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5, atol=2e-4)


#: Contractions whose first operand is no stack of matrices as it lies.
CONTRACTIONS = {
    "eabxy,abiyz->abexiz": ((5, 6, 4, 8, 8), (6, 4, 5, 8, 9)),
    "abexiy,abiyz->aexz": ((6, 4, 5, 8, 5, 8), (6, 4, 5, 8, 9)),
    "abexiy,abyzi->aexz": ((6, 4, 5, 8, 5, 8), (6, 4, 8, 9, 5)),
    "ijkl,jm->iklm": ((11, 12, 13, 14), (12, 35)),
    "ijk,ikm->jm": ((64, 48, 40), (64, 40, 33)),
    "ijk,imk->jm": ((64, 48, 40), (64, 33, 40)),
    "bqhd,bkhd->bhqk": ((3, 70, 4, 32), (3, 65, 4, 32)),
    "bhqk,bkhd->bhqd": ((3, 4, 70, 65), (3, 65, 4, 32)),
    "ajbk,jc->abkc": ((40, 600, 3, 4), (600, 16)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("text", CONTRACTIONS)
def test_axes_that_lie_apart_are_read_where_they_lie(text, dtype):
    """Batches, rows and terms are loops, whatever their order."""
    x, y = (numbers(*s, seed=k, dtype=dtype) for k, s in enumerate(CONTRACTIONS[text]))
    want = np.einsum(text, x.astype(float), y.astype(float), optimize=True)
    with fnarray.enable_x64(dtype == np.float64):
        got = np.asarray(fnarray.jit(lambda x, y: np_.einsum(text, x, y))(x, y))
    assert got.dtype == dtype
    scale = np.abs(want).max() * np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=20 * scale)


def test_where_axes_lie_apart_nothing_is_copied(monkeypatch):
    """The contractions above are such products, where there are any."""
    found = []
    inner = sums.product_where_it_lies
    monkeypatch.setattr(
        sums, "product_where_it_lies", lambda *a: found.append(inner(*a)) or found[-1]
    )
    for text in ("ijkl,jm->iklm", "abexiy,abiyz->aexz"):
        fnarray.clear_caches()
        x, y = (numbers(*s, seed=k) for k, s in enumerate(CONTRACTIONS[text]))
        fnarray.jit(lambda x, y, text=text: np_.einsum(text, x, y) + 1)(x, y)
    assert not processor().wide or (len(found) == 2 and all(found))
