"""Random programs of what `tests.property` lacks: updates, windows, sorts, keys, linear algebra.

Steps are drawn one after the other; each takes arrays that are there, of any dtype, and adds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import lax, random
from tests.replay import corpus

DTYPES = ("float32", "float16", "bfloat16", "int32", "int8", "uint32", "bool", "complex64")
Step = Callable[[list[Any]], Any]
Draw = np.random.Generator


def _inexact(x: Any) -> Any:
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(np.float32)


def _real(x: Any) -> Any:
    return x.real if jnp.iscomplexobj(x) else x


def _number(x: Any) -> Any:
    return x.astype(np.int32) if x.dtype == bool else x


def _single(x: Any) -> Any:
    return x.astype(np.complex64 if jnp.iscomplexobj(x) else np.float32)


def _rows(x: Any, n: int, m: int) -> Any:
    """Return any array's elements as a matrix."""
    return jnp.resize(x.reshape(-1), (n, m))


def _update(draw: Draw) -> Callable[[Any, Any], Any]:
    how = str(draw.choice(["add", "multiply", "min", "max", "set"]))
    mode = str(draw.choice(["drop", "clip"]))
    at = draw.integers(-3, 7, 4) if how != "set" else np.array([4, 0, 9, 2])

    def step(x: Any, y: Any) -> Any:
        x = _rows(_number(x if how not in ("min", "max") else _real(x)), 5, 3)
        rows = _rows(_real(y), 4, 3).astype(x.dtype)
        return getattr(x.at[at], how)(rows, mode="drop" if how == "set" else mode)

    return step


def _window(draw: Draw) -> Callable[[Any, Any], Any]:
    size, stride = (int(draw.integers(1, 4)) for _ in "ab")
    pads, most = str(draw.choice(["SAME", "VALID"])), bool(draw.integers(2))
    shapes = (size, 2), (stride, 1), pads

    def sums(x: Any) -> Any:
        return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, *shapes)

    def largest(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, *shapes)

    def step(x: Any, y: Any) -> Any:
        if not most:
            return sums(_rows(_number(x), 6, 4))
        x = _rows(_inexact(_real(x)), 6, 4)
        return fnarray.vjp(largest, x)[1](largest(x) * 2)[0]

    return step


def _sort(draw: Draw) -> Callable[[Any, Any], Any]:
    which = int(draw.integers(5))

    def step(x: Any, y: Any) -> Any:
        x, y = _rows(x, 3, 7), _rows(y, 3, 7)
        if which == 0:
            return jnp.sort(x, 0, descending=True)
        if which == 1:
            return lax.sort((_real(x), y), num_keys=1, dimension=1)[1]
        if which == 2:
            return jnp.argsort(x, 1)
        if which == 3:
            return lax.top_k(_number(_real(x)), 3)[0]
        return jnp.unique(_real(x), size=9)

    return step


def _running(draw: Draw) -> Callable[[Any, Any], Any]:
    name = str(draw.choice(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]))
    reverse, axis = bool(draw.integers(2)), int(draw.integers(2))

    def step(x: Any, y: Any) -> Any:
        x = _number(x if name in ("cumsum", "cumprod") else _real(x))
        x = _inexact(x) if name == "cumlogsumexp" else x
        return getattr(lax, name)(jnp.tanh(_rows(_inexact(x), 4, 6)), axis, reverse)

    return step


def _key(draw: Draw) -> Callable[[Any, Any], Any]:
    name = str(draw.choice(["normal", "uniform", "bits", "gamma", "permutation", "randint"]))

    def step(x: Any, y: Any) -> Any:
        key = random.fold_in(random.key(3), _real(x).reshape(-1)[0].astype(np.int32))
        if name == "permutation":
            return random.permutation(key, 9)
        if name == "randint":
            return random.randint(key, (4,), -9, 9)
        if name == "gamma":
            return random.gamma(key, 1.5, (5,))
        return getattr(random, name)(random.split(key)[1], (7,))

    return step


def _algebra(draw: Draw) -> Callable[[Any, Any], Any]:
    which = int(draw.integers(7))

    def step(x: Any, y: Any) -> Any:
        a, b = jnp.tanh(_single(_rows(x, 4, 4))), jnp.tanh(_single(_rows(y, 4, 2)))
        a = jnp.where(jnp.isfinite(a), a, 0) + 3 * jnp.eye(4, dtype=a.dtype)
        b = jnp.where(jnp.isfinite(b), b, 1)
        if which == 0:
            return jnp.linalg.solve(a, b.astype(jnp.result_type(a, b)))
        if which == 1:
            return jnp.linalg.cholesky(a @ a.conj().T)
        if which == 2:
            return jnp.abs(jnp.linalg.qr(a)[1])
        if which == 3:
            return jnp.linalg.slogdet(a)[1]
        if which == 4:
            return jnp.linalg.inv(a)
        if which == 5:
            return jnp.linalg.eigvalsh(a + a.conj().T)
        return jnp.abs(jnp.fft.fft(b, axis=0))

    return step


def _convolution(draw: Draw) -> Callable[[Any, Any], Any]:
    pads, stride = str(draw.choice(["SAME", "VALID"])), int(draw.integers(1, 3))
    wider = bool(draw.integers(2))

    def step(x: Any, y: Any) -> Any:
        x = _rows(_number(_real(x)), 3, 8)[None]
        # Infinities would meet padding, which one way of convolving multiplies and another skips.
        w = (4 * jnp.tanh(_rows(_inexact(_real(y)), 6, 3))).astype(x.dtype).reshape(2, 3, 3)
        whole = jnp.issubdtype(x.dtype, jnp.integer)
        unsigned = jnp.issubdtype(x.dtype, jnp.unsignedinteger)
        wide = np.uint32 if unsigned else np.int32 if whole else np.float32
        return lax.conv_general_dilated(
            x, w, (stride,), pads, preferred_element_type=wide if wider else None
        )

    return step


def _loop(draw: Draw) -> Callable[[Any, Any], Any]:
    which, turns = int(draw.integers(4)), int(draw.integers(1, 4))

    def step(x: Any, y: Any) -> Any:
        x = jnp.tanh(_rows(_inexact(_real(x)), 3, 4))
        if which == 0:
            return lax.scan(lambda c, t: (c * 0.5 + t, c), x[0], x, reverse=True)[1]
        if which == 1:
            return fnarray.vmap(
                lambda r: lax.while_loop(lambda s: s.sum() < 3, lambda s: s * s + 1, r)
            )(jnp.where(jnp.isfinite(x), x, 1))
        if which == 2:
            return lax.fori_loop(0, turns, lambda i, c: jnp.roll(c, i) + c * 0.5, x)
        return fnarray.vmap(lambda r: lax.cond(r[0] > 0, jnp.sin, lambda v: v * v, r))(x)

    return step


def _plain(draw: Draw) -> Callable[[Any, Any], Any]:
    which = int(draw.integers(5))

    def step(x: Any, y: Any) -> Any:
        x, y = _rows(_number(x), 4, 5), _rows(_number(y), 4, 5)
        if which == 0:
            return x * 2 + y
        if which == 1:
            return jnp.where(_real(x) > _real(y), x, y).sum(0)
        if which == 2:
            return x.T @ y
        if which == 3:
            return jnp.pad(x, ((1, 0), (0, 2))).astype(str(draw_dtype))
        return jnp.argmax(_real(x), 1)

    draw_dtype = draw.choice(["float32", "bfloat16", "int32"])
    return step


_KINDS = (_update, _window, _sort, _running, _key, _algebra, _convolution, _loop, _plain)


def program(seed: int) -> tuple[Callable[..., tuple[Any, ...]], list[np.ndarray]]:
    """Return a function and its arguments."""
    draw = np.random.default_rng(seed)
    args = []
    for dtype in draw.choice(DTYPES, 3):
        x = np.round(3 * draw.standard_normal((4, 6)), 2)
        x = abs(x) if dtype.startswith("u") else x + 1j * x.T.reshape(4, 6) if "c" in dtype else x
        args.append(x.astype(jnp.dtype(str(dtype))))
    steps = [_KINDS[k](draw) for k in draw.integers(0, len(_KINDS), 6)]
    places = [draw.integers(0, 3 + k, 2) for k in range(len(steps))]

    def run(*xs: Any) -> tuple[Any, ...]:
        held = list(xs)
        for step, (a, b) in zip(steps, places, strict=True):
            held.append(step(held[a], held[b]))
        return tuple(held[3:])

    return run, args


def programs(first: int, count: int) -> Iterator[tuple[str, str]]:
    """Return names and texts of programs of seeds from ``first`` on, as `corpus` has them."""
    for seed in range(first, first + count):
        run, args = program(seed)
        yield f"wider {seed}", corpus.text_of(run, *args)
