"""Programs above the thresholds that small tests stay below; each is a builder of ``(f, args)``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import fnarray
import fnarray.numpy as jnp
from fnarray import lax

Built = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: dict[str, Callable[[], Built]] = {}


def program(build: Callable[[], Built]) -> Callable[[], Built]:
    """Register a builder under its own name."""
    PROGRAMS[build.__name__] = build
    return build


def f32(*shape: int) -> fnarray.ShapeDtypeStruct:
    """Return an abstract float32 argument."""
    return fnarray.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape: int) -> fnarray.ShapeDtypeStruct:
    """Return an abstract int32 argument."""
    return fnarray.ShapeDtypeStruct(shape, jnp.int32)


@program
def chain_in_parallel() -> Built:
    """An elementwise chain of a million elements."""
    return lambda x: jnp.exp(jnp.sin(x) * 2) + x, (f32(1000, 1000),)


@program
def folds_in_parallel() -> Built:
    """Sums and maxima of everything, in chunks that are added up."""
    return lambda x: (jnp.sum(x), jnp.max(x, 0), jnp.sum(x * x, 1)), (f32(1000, 1000),)


@program
def many_streams() -> Built:
    """More arrays than one loop may touch."""
    return lambda *xs: [a * b for a, b in pairwise(xs)], tuple(f32(100) for _ in range(40))


@program
def long_chain() -> Built:
    """Five hundred operations on small arrays, an eighth of them sums."""

    def f(x, y):
        for k in range(500):
            x = x * jnp.sum(y) if k % 8 == 0 else jnp.sin(x) + y * k
        return x

    return f, (f32(8, 9), f32(8, 9))


@program
def library_product() -> Built:
    """A product of matrices large enough for BLAS, and its gradients."""
    gradients = fnarray.grad(lambda a, b: jnp.sum(jnp.tanh(a @ b)), (0, 1))
    return gradients, (f32(200, 300), f32(300, 100))


@program
def product_inside_loop() -> Built:
    """Matrix products above the library's threshold inside a loop."""
    return lambda a: lax.fori_loop(0, 5, lambda i, x: a @ x / 2, a), (f32(60, 60),)


@program
def scalar_product_inside_loops() -> Built:
    """Scalar products above the library's threshold inside every kind of body."""

    def f(x):
        total = lax.fori_loop(0, 3, lambda i, c: c + x @ x, 0.0)
        total = lax.scan(lambda c, _: (c + x @ (x + c), c), total, None, length=3)[0]
        total = lax.while_loop(lambda c: x @ x + c < 1e9, lambda c: c * 2 + x @ x, total)
        return lax.cond(total > 0, lambda x: x @ x, lambda x: -total, x)

    return f, (f32(40_000),)


@program
def batched_products() -> Built:
    """Products of stacks, contracted over other axes than the last."""
    return lambda a, b: jnp.einsum("bij,bkj->bik", a, b), (f32(20, 40, 50), f32(20, 30, 50))


@program
def rows_in_chunks() -> Built:
    """A loop over independent rows with a while loop each."""

    def row(x):
        return lax.while_loop(lambda c: c[1] < 40, lambda c: (c[0] * x + 0.1, c[1] + 1), (x, 0))[0]

    return fnarray.vmap(row), (f32(5000),)


@program
def scan_over_large_carry() -> Built:
    """A carry of a thousand elements that must be kept twice."""

    def step(c, x):
        return jnp.roll(c, 1) * x + jnp.sum(c), c[:3]

    return lambda c, xs: lax.scan(step, c, xs), (f32(1000), f32(50))


@program
def scan_updates_in_place() -> Built:
    """Elements of a large carry set one by one, and branches between two of them."""

    def step(c, k):
        c = c.at[k].set(c[k - 1] + 1)
        return lax.cond(k > 3, lambda c: c.at[0].add(1.0), lambda c: c, c), None

    return lambda c, ks: lax.scan(step, c, ks)[0], (f32(1000), i32(50))


@program
def masked_elimination() -> Built:
    """LU with masks in nested loops."""

    def lu(a):
        n = a.shape[0]
        rows = jnp.arange(n)

        def step(k, a):
            factor = jnp.where(rows > k, a[:, k] / a[k, k], 0.0)
            update = jnp.where(rows > k, a[k], 0.0)
            a = a - jnp.outer(factor, update)
            return a.at[:, k].set(jnp.where(rows > k, factor, a[:, k]))

        return lax.fori_loop(0, n, step, a)

    return lu, (f32(40, 40),)


@program
def small_vectors_in_registers() -> Built:
    """Three-vectors and three-by-three products in a scan, and their gradient."""

    def f(w, x, xs):
        def step(x, u):
            x = jnp.tanh(w @ x + u)
            return x, jnp.linalg.norm(x)

        return jnp.sum(lax.scan(step, x, xs)[1])

    return fnarray.grad(f), (f32(3, 3), f32(3), f32(100, 3))


@program
def sizes_at_the_registers_limit() -> Built:
    """Carries of 15, 16 and 17 elements."""

    def f(a, b, c):
        def step(s, _):
            a, b, c = s
            return (a * 2 + b[:15], b[::-1] + c[1:], c.at[2].add(jnp.sum(a))), None

        return lax.scan(step, (a, b, c), None, length=9)[0]

    return f, (f32(15), f32(16), f32(17))


@program
def network() -> Built:
    """A small convolutional network's gradient."""

    def loss(kernel, w, x):
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME")
        window = (1, 1, 2, 2)
        y = lax.reduce_window(jnp.maximum(y, 0), -jnp.inf, lax.max, window, window, "VALID")
        return jnp.mean((y.reshape(x.shape[0], -1) @ w) ** 2)

    return fnarray.grad(loss, (0, 1)), (f32(8, 3, 3, 3), f32(8 * 14 * 14, 10), f32(4, 3, 28, 28))


@program
def scatter_and_gather() -> Built:
    """Rows gathered and added into bins, with gradients."""

    def f(x, i):
        return jnp.sum(jnp.zeros((50, 7)).at[i].add(x[i] * 2) ** 2)

    return fnarray.value_and_grad(f), (f32(50, 7), i32(3000))


@program
def slice_updates() -> Built:
    """Inner parts of an array set and added to by slices."""

    def f(x, y):
        x = x.at[1:-1, 2:-2, :, 0].set(y[1:-1, 2:-2] * 2)
        return x.at[1:-1, 2:-2, :, 1].add(x[2:, 2:-2, :, 0] - x[:-2, 2:-2, :, 0])

    return f, (f32(21, 21, 7, 3), f32(21, 21, 7))


@program
def equation_of_state() -> Built:
    """Polynomials in three variables over a short inner axis."""

    def f(s, t, p):
        out = s * 0
        for k in range(60):
            out = (out * t + 0.1 * k) * s + jnp.sqrt(jnp.abs(p)) * (0.3 * k)
        return out / (1 + p * s)

    return f, (f32(51, 51, 7), f32(51, 51, 7), f32(7))


@program
def sorts_and_cumulates() -> Built:
    """Whole-array steps: sorting, cumulative sums, top k."""

    def f(x):
        y = jnp.sort(x, 0)
        return jnp.cumsum(y, 1), lax.top_k(x, 3), jnp.argsort(x)

    return f, (f32(300, 40),)


@program
def nested_loops() -> Built:
    """A scan in a while loop in a scan, with a branch."""

    def inner(c, x):
        return lax.cond(x > 0, lambda c: c + x, lambda c: c * x, c), c

    def outer(c, xs):
        c = lax.while_loop(lambda c: jnp.sum(c) < 1, lambda c: lax.scan(inner, c, xs)[0] + 1, c)
        return c, jnp.sum(c)

    return lambda c, xs: lax.scan(outer, c, xs), (f32(30), f32(10, 4))


@program
def random_walks() -> Built:
    """Random bits, splits and normal numbers in a scan."""

    def f(key):
        def step(c, key):
            return c + fnarray.random.normal(key, (3,)), c

        return lax.scan(step, jnp.zeros(3), fnarray.random.split(key, 20))

    return f, (fnarray.random.key(0),)


@program
def attention() -> Built:
    """Softmax attention over heads, and its gradient."""

    def f(q, k, v):
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4
        return jnp.sum(jnp.einsum("bhqk,bkhd->bqhd", fnarray.nn.softmax(s), v) ** 2)

    shape = f32(2, 64, 4, 16)
    return fnarray.grad(f), (shape, shape, shape)


@program
def hessian() -> Built:
    """The Hessian of a sum of products."""
    return fnarray.hessian(lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2)), (f32(30),)


@program
def linear_solves() -> Built:
    """Library steps: solve, Cholesky, eigenvalues."""

    def f(a, b):
        s = a @ a.T + jnp.eye(a.shape[0])
        return jnp.linalg.solve(s, b), jnp.linalg.cholesky(s), jnp.linalg.eigvalsh(s)

    return fnarray.jacrev(lambda a, b: f(a, b)[0]), (f32(20, 20), f32(20))


@program
def halves() -> Built:
    """Half precision in maps, folds and loops."""

    def f(x):
        y = jnp.tanh(x) * 3
        return lax.fori_loop(0, 4, lambda i, c: c + jnp.sum(y), jnp.float16(0)), jnp.sum(y, 0)

    return f, (fnarray.ShapeDtypeStruct((40, 30), jnp.float16),)


@program
def complex_numbers() -> Built:
    """A Fourier transform between complex maps."""

    def f(x):
        y = jnp.fft.fft(x * (1 + 2j))
        return jnp.abs(y) ** 2, jnp.sum(y)

    return f, (f32(128),)
