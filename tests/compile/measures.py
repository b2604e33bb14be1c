"""Programs that measure n on the scale of a threshold, and what NumPy computes in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu.target import CPU

f32 = np.float32


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float32 numbers in (-1, 1), the same for the same shape and seed."""
    return np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(f32)


Case = tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]


def dear(n: int) -> Case:
    """A function's value, and n additions, that two loops' worth of elements read."""

    def f(x):
        y = lax.exp(x)
        for _ in range(n):
            y = lax.add(y, x)
        return lax.sub(y[1:], y[:-1])

    def want(x):
        y = np.exp(x) + n * x
        return [y[1:] - y[:-1]]

    return f, want, (numbers(40),)


def plain(n: int) -> Case:
    """A value of n additions that is read by two loops' worth of elements."""

    def f(x):
        y = x
        for _ in range(n):
            y = lax.add(y, x)
        return lax.sub(y[1:], y[:-1])

    return f, lambda x: [(n + 1) * (x[1:] - x[:-1])], (numbers(40),)


def spread(n: int) -> Case:
    """Quotients that n places read each, in a loop whose turns see one another's."""

    def f(x, y):
        return lax.fori_loop(
            0, 2, lambda _, a: a - (x / y)[None, :] * a, fnp.ones((n, x.size), f32)
        )

    def want(x, y):
        return [np.broadcast_to((1 - x / y) ** 2, (n, x.size))]

    return f, want, (numbers(20), 1 + numbers(20) ** 2)


def tall(n: int) -> Case:
    """A chain of n values."""

    def f(x):
        for _ in range(n):
            x = lax.add(x, f32(0.5))
        return x

    return f, lambda x: [x + 0.5 * n], (numbers(7),)


def registers(n: int) -> Case:
    """A carry of n elements, rotated, and updated at a place known at run time."""

    def f(x):
        def turn(i, c):
            c = lax.concatenate([c[1:], c[:1]], 0)
            return lax.dynamic_update_slice(c, c[:1] * f32(2), (i,))

        return lax.fori_loop(0, 3, turn, x)

    def want(x):
        for i in range(3):
            x = np.roll(x, -1)
            x[i] = 2 * x[0]
        return [x]

    return f, want, (numbers(n),)


def vector(n: int) -> Case:
    """Carries of n and of twelve elements that dear functions and sums run over."""

    def turn(c):
        return lax.log(lax.exp(c) + f32(1)) - lax.reduce_sum(lax.exp(c - f32(9)), (0,))

    def f(x, y):
        return lax.fori_loop(0, 3, lambda i, c: [turn(x) for x in c], [x, y])

    def want(*xs):
        for _ in range(3):
            xs = [np.log(np.exp(x) + 1) - np.exp(x - 9).sum() for x in xs]
        return xs

    return f, want, (numbers(n), numbers(12))


def abreast(n: int) -> Case:
    """Sums over the middle axis of what has n columns, of all rows, and of products."""

    def f(x, y):
        rows = lax.reduce_sum(x, (0,)), lax.reduce_max(x, (0,)), lax.dot(y, x)
        return *rows, lax.reduce_sum(lax.exp(lax.reshape(x, (3, 4, n))), (1,))

    def want(x, y):
        return [x.sum(0), x.max(0), y @ x, np.exp(x.reshape(3, 4, n)).sum(1)]

    return f, want, (numbers(12, n), numbers(5, 12))


def unroll(n: int) -> Case:
    """A fold of n terms inside a loop, of a small vector."""

    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: c * lax.reduce_max(x, (0,)) + f32(1), f32(2))

    def want(x):
        c = 2.0
        for _ in range(3):
            c = c * x.max() + 1
        return [c]

    return f, want, (numbers(n),)


def library(n: int) -> Case:
    """Products of n multiplications or a few more, outside of a loop and inside."""

    def f(x, w):
        out = lax.dot(x, w)
        return out, lax.fori_loop(0, 2, lambda i, c: c * f32(0.5) + lax.dot(x, w), out)

    return f, lambda x, w: [x @ w, x @ w * 1.75], (numbers(-(-n // 256), 16), numbers(16, 16))


def narrow(n: int) -> Case:
    """A product with n columns, of 10,000 multiplications or a few less."""
    return (
        lambda a, b: lax.dot(a, b),
        lambda a, b: [a @ b],
        (numbers(500 // n, 20), numbers(20, n)),
    )


def thin(n: int) -> Case:
    """A product with rows of n multiplications or a few less, 16,000 in all."""
    return (
        lambda a, b: lax.dot(a, b),
        lambda a, b: [a @ b],
        (numbers(16000 // n, n // 8), numbers(n // 8, 8)),
    )


def workspace(n: int) -> Case:
    """Temporaries of some n bytes between kernels: a fold's result, read by all that follows."""

    def f(x):
        for _ in range(2):
            x = lax.mul(lax.rev(x, (0,)), lax.reduce_max(lax.cumsum(x), (0,)))
        return lax.sub(x, lax.rev(x, (0,)))

    def want(x):
        for _ in range(2):
            x = x[::-1] * np.cumsum(x).max()
        return [x - x[::-1]]

    return f, want, (np.abs(numbers(min(max(n // 4, 1), 1000))) / f32(100),)


def streams(n: int) -> Case:
    """A loop that reads n arrays."""

    def f(*xs):
        return [lax.add(xs[0], x) for x in xs[1:]]

    return f, lambda *xs: [xs[0] + x for x in xs[1:]], tuple(numbers(9, seed=k) for k in range(n))


def parallel(n: int) -> Case:
    """Maps and folds of n element operations."""

    def f(x):
        return lax.sin(x), lax.reduce_sum(x, (0,)), lax.reduce_max(x, (0,))

    return f, lambda x: [np.sin(x), x.sum(), x.max()], (numbers(n // 4),)


def kernel(n: int) -> Case:
    """A program of n statements that need each other's whole result."""

    def f(x):
        for _ in range(n):
            x = lax.sub(x, lax.reduce_max(lax.rev(x, (0,))[:1], (0,)))
        return x

    def want(x):
        for _ in range(n):
            x = x - x[-1]
        return [x]

    return f, want, (numbers(3),)


def straight(n: int) -> Case:
    """Two numbers that n turns, written out, rotate: eight operations each."""

    def f(x):
        a, b = x[0], x[1]
        for _ in range(n):
            a, b = a * f32(0.6) - b * f32(0.8) + f32(1), a * f32(0.8) + b * f32(0.6) + f32(2)
        return [a, b]

    return f, f, (numbers(3),)


def siblings(n: int) -> Case:
    """A program of n results, which one loop may hold."""

    def f(x):
        return [lax.add(x, f32(k)) for k in range(n)]

    return f, lambda x: [x + k for k in range(n)], (numbers(3),)


def spelled(n: int) -> Case:
    """Arrays of n elements, and a shift by a constant of n."""

    def f(x):
        return lax.add(lax.rev(x, (0,)), f32(n)), lax.reduce_sum(x, (0,))

    return f, lambda x: [x[::-1] + n, x.sum()], (numbers(n),)


def updates(count: int, size: int) -> Case:
    """Loops over part of an array, one after another."""

    def f(x):
        for k in range(count):
            x = x.at[1:-1].add(x[2:] * f32(0.1 * k))
        return x

    def want(x):
        for k in range(count):
            x[1:-1] = x[1:-1] + x[2:] * f32(0.1 * k)
        return [x]

    return f, want, (numbers(size),)


def loops(n: int) -> Case:
    """n loops over few elements."""
    return updates(n, 40)


def little(n: int) -> Case:
    """Many loops over parts of n elements."""
    return updates(CPU.limits.loops + 2, n)


def chunked_rows(n: int) -> Case:
    """n rows that run in chunks."""
    return (
        lambda x: lax.map(lambda r: lax.reduce_sum(lax.sin(r), (0,)), x),
        lambda x: [np.sin(x).sum(1)],
        (numbers(n, 5),),
    )


def shared(n: int) -> Case:
    """A loop around one over elements, of work n or so, which threads may share."""
    return (
        lambda x: lax.fori_loop(0, 2, lambda i, c: lax.sin(c), x),
        lambda x: [np.sin(np.sin(x))],
        (numbers(max(-(-n // 16), 100)),),
    )


def product(n: int) -> Case:
    """A product of matrices with n multiplications, or a few more."""
    rows = -(-n // (64 * 64))
    return lambda a, b: lax.dot(a, b), lambda a, b: [a @ b], (numbers(rows, 64), numbers(64, 64))


def turn(n: int) -> Case:
    """A loop, a scan and one in another whose turns are n multiplications or a few more."""

    def f(x, w):
        def step(c, _):
            for _ in range(8):
                c = c * w
            return c, lax.reduce_sum(c, (0,))

        def inner(c, _):
            return lax.scan(step, c, None, length=1)[0], None

        once = lax.fori_loop(0, 2, lambda i, c: step(c, None)[0], x)
        return once, lax.scan(step, x, None, length=2)[1], lax.scan(inner, x, None, length=2)[0]

    def want(x, w):
        turns = [x * w**8, x * w**16]
        return [turns[1], np.array([t.sum(dtype="f8") for t in turns]), turns[1]]

    return f, want, (numbers(-(-n // 8)), np.float32(1) + numbers(-(-n // 8)) / 64)


def product_in_loop(n: int) -> Case:
    """A product with n multiplications or a few more, more than BLAS leaves to one thread."""
    rows = max(-(-n // (256 * 256)), 17)
    return (
        lambda a, b: lax.fori_loop(0, 2, lambda i, c: lax.dot(c, b), a),
        lambda a, b: [a @ b @ b],
        (numbers(rows, 256), numbers(256, 256) / f32(16)),
    )


def matrix(n: int) -> Case:
    """A Cholesky factor of order n, outside of a loop and inside."""

    def f(a):
        def again(i, c):
            return lax.linalg.cholesky(lax.add(a, lax.mul(c, f32(0))))

        return lax.linalg.cholesky(a), lax.fori_loop(0, 2, again, a)

    def want(a):
        factor = np.linalg.cholesky(a.astype(np.float64))
        return [factor, factor]

    a = numbers(n, n)
    return f, want, (a @ a.T / f32(n) + np.eye(n, dtype=f32),)


def few(n: int) -> Case:
    """The n largest of many."""
    return lambda x: lax.top_k(x, n)[0], lambda x: [np.sort(x)[::-1][:n]], (numbers(20_000),)


def transform(n: int) -> Case:
    """Transforms of n numbers, or a few less, in lines of five."""
    x = numbers(n // 5, 5).astype(np.complex64)
    return lambda x: lax.fft(x, "FFT", (5,)), lambda x: [np.fft.fft(x)], (x,)


def lanes(n: int) -> Case:
    """n lanes of a loop, whose turns differ tenfold."""

    def f(x):
        return fnarray.vmap(
            lambda n: lax.while_loop(lambda c: c < n, lambda c: c * f32(2), f32(1))
        )(x)

    x = np.abs(numbers(n)) * f32(500)
    return f, lambda x: [2.0 ** np.ceil(np.maximum(np.log2(x), 0))], (x,)


def row(n: int) -> Case:
    """Maps of n elements a row, of one less, and an update of that box."""

    def f(x):
        y = lax.mul(x, x)
        d = lax.sub(y[:, 1:], x[:, :-1])
        return y, d, lax.dynamic_update_slice(x, d, (0, 1))

    def want(x):
        y = x * x
        d = y[:, 1:] - x[:, :-1]
        return y, d, np.concatenate([x[:, :1], d], 1)

    return f, want, (numbers(5, max(n, 2)),)


def lane_state(n: int) -> Case:
    """Three lanes of a loop that carries n elements."""

    def f(x):
        def halved(row):
            return lax.while_loop(
                lambda c: lax.reduce_max(c, (0,)) > f32(1), lambda c: c * f32(0.5), row
            )

        return fnarray.vmap(halved)(x)

    def want(x):
        turns = np.ceil(np.maximum(np.log2(x.max(1, keepdims=True)), 0))
        return [x / 2.0**turns]

    return f, want, (np.abs(numbers(3, max(n, 1))) * np.array([[1], [30], [900]], f32),)


def strips(n: int) -> Case:
    """Rows of n bytes that are read across."""
    x = numbers(n // 256 or 64, 64)
    return (lambda x: lax.transpose(x, (1, 0)) + f32(1)), (lambda x: [x.T + 1]), (x,)


def pieces(n: int) -> Case:
    """An array laid out of n pieces and three, which a loop reads at two places; one with holes."""

    def f(x):
        y = lax.concatenate([x, *[x[:2]] * (n + 2)], 0)
        return y[1:] - y[:-1], lax.pad(x, f32(2), ((1, 0, 1),)) * f32(3)

    def want(x):
        y, z = np.concatenate([x, *[x[:2]] * (n + 2)]), np.full(18, 6, f32)
        z[1::2] = 3 * x
        return [y[1:] - y[:-1], z]

    return f, want, (numbers(9),)


def views(n: int) -> Case:
    """A product that is laid out in another shape, and an argument that one reads in another."""

    def f(x):
        return lax.reshape(lax.dot(lax.reshape(x, (60, n + 300)), x), (3, 1200))

    return f, lambda x: [(x.reshape(60, -1) @ x).reshape(3, 1200)], (numbers(n + 300, 60),)


def group(n: int) -> Case:
    """A loop that carries 32 rows, of n numbers and more, of which each goes its own way."""

    def f(x):
        return lax.fori_loop(0, 5, lambda k, y: lax.add(lax.mul(y, f32(0.5)), x), x)

    def want(x):
        y = x
        for _ in range(5):
            y = y * 0.5 + x
        return [y]

    return f, want, (numbers(32, n + 1),)


def renewed(n: int) -> Case:
    """A loop that replaces n numbers of three rows by means, and one that ends by itself."""

    def turn(x):
        return x.at[:, 1:-1].set((x[:, 2:] + x[:, :-2]) * f32(0.5))

    def f(x):
        y = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, turn(s[1])), (0, x))[1]
        return lax.fori_loop(0, 4, lambda _, x: turn(x), x), y

    def want(x):
        rows = [x]
        for _ in range(4):
            x = x.copy()
            x[:, 1:-1] = (x[:, 2:] + x[:, :-2]) * f32(0.5)
            rows.append(x)
        return [rows[4], rows[3]]

    return f, want, (numbers(3, n + 2),)


def exchanged(n: int) -> Case:
    """A wave's steps, to which n more sums are added."""

    def f(x, y):
        def turn(_, c):
            a, b = c
            new = b[2:] + b[:-2] - a[1:-1]
            for _ in range(n):
                new = lax.add(new, f32(0.5))
            return b, a.at[1:-1].set(new)

        return lax.fori_loop(0, 5, turn, (x, y))

    def want(x, y):
        for _ in range(5):
            x, y = y, np.concatenate([x[:1], y[2:] + y[:-2] - x[1:-1] + 0.5 * n, x[-1:]])
        return [x, y]

    return f, want, (numbers(30), 1 - numbers(30))


def vectors(n: int) -> Case:
    """Products of rows of n numbers with a vector, from either side."""

    def f(x, y):
        return lax.dot(x, y), lax.dot(y, lax.transpose(x, (1, 0)))

    return f, lambda x, y: [x @ y, y @ x.T], (numbers(7000, max(n, 1)), numbers(max(n, 1)))


def rotated(n: int) -> Case:
    """Six rows of n numbers times the rows two before each, the last before the first."""

    def f(x):
        return lax.mul(lax.concatenate([x[4:], x[:4]], 0), x)

    return f, lambda x: [np.roll(x, 2, 0) * x], (numbers(6, n),)


def padded(n: int) -> Case:
    """Rows of n numbers, next to zeros and to ones, times another; rows, too, of halves."""

    def f(x):
        y = lax.mul(lax.pad(x[:, 1:], f32(0), ((0, 0, 0), (0, 1, 0))), x)
        z = lax.sub(lax.pad(x[1:, :-1], f32(1), ((1, 0, 0), (1, 0, 0))), x)
        return y, z, lax.add(lax.pad(x[2:-2], f32(np.inf), ((2, 2, 0), (0, 0, 0))), x)

    def want(x):
        y = np.pad(x[:, 1:], ((0, 0), (0, 1))) * x
        z = np.pad(x[1:, :-1], ((1, 0), (1, 0)), constant_values=1) - x
        return [y, z, np.pad(x[2:-2], ((2, 2), (0, 0)), constant_values=np.inf) + x]

    return f, want, (numbers(6, max(n, 2)),)


def masked(n: int) -> Case:
    """What n additions make, padded, and what they make laid over most of another, times that."""

    def f(x):
        y = over = x[:, 1:]
        for _ in range(n):
            y, over = lax.add(y, x[:, 1:]), lax.sub(over, x[:, 1:])
        z = lax.mul(lax.pad(y, f32(0), ((0, 0, 0), (0, 1, 0))), x)
        return z, lax.mul(lax.dynamic_update_slice(x, over[1:], (1, 0)), x)

    def want(x):
        y, over = np.pad((n + 1) * x[:, 1:], ((0, 0), (0, 1))), x.copy()
        over[1:, :-1] = (1 - n) * x[1:, 1:]
        return [y * x, over * x]

    return f, want, (numbers(6, 40),)


def lines(n: int) -> Case:
    """Results of n bytes, and what a loop's turns hand on."""

    def f(x):
        return x + f32(1), lax.fori_loop(0, 3, lambda _, c: c * f32(0.5) + x, x)

    def want(x):
        c = x
        for _ in range(3):
            c = c * f32(0.5) + x
        return [x + 1, c]

    return f, want, (numbers(max(n, 4) // 4),)


#: For each limit, what measures it. ``turns`` weighs an estimate: it has no size of its own.
MEASURES: dict[str, Callable[[int], Case]] = {
    "dear": dear, "plain": plain, "spread": spread,
    "tall": tall, "registers": registers, "vector": vector, "abreast": abreast,
    "unroll": unroll, "library": library, "narrow": narrow, "thin": thin,
    "streams": streams, "workspace": workspace, "parallel": parallel, "turns": chunked_rows,
    "turn": turn, "shared": shared, "split": product_in_loop,
    "kernel": kernel, "numbers": straight, "loop": siblings,
    "grain": chunked_rows, "chunks": parallel, "serial": product, "share": product,
    "alone": product_in_loop, "spelled": spelled, "matrix": matrix, "matrix_inside": matrix,
    "few": few, "transform": transform, "lanes": lanes, "lane_state": lane_state, "row": row,
    "group": group, "strips": strips, "views": views, "pieces": pieces, "vectors": vectors,
    "twofold": renewed, "exchanged": exchanged, "rotated": rotated, "padded": padded,
    "masked": masked,
    "brief": little, "loops": loops, "little": little, "lines": lines,
}  # fmt: skip
