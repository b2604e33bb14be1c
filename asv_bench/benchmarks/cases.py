"""The measured programs, each written once over a module that is ``fnarray`` or ``jax``.

A builder takes the module and returns a call without arguments. What to run untimed before each
timing (a function nobody has traced yet, say) is a builder of kind ``fresh``: it returns a function
that prepares the call.

``target`` is the least ratio of JAX's time to ours at which the case counts as met.
"""

from __future__ import annotations

import random as stdlib_random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One measured program."""

    name: str
    build: Callable[[Any], Any]
    target: float
    kind: str = "steady"  # steady: block after each call; burst: after many; fresh: prepare first
    rtol: float = 1e-4
    scaled: bool = False  # relative to the largest entry, and but for one in a thousand
    hand: Callable[[], Call] | None = None  # the same, in loops written by hand


CASES: dict[str, Case] = {}


def case(target: float, **options: Any) -> Callable[[Callable], Callable]:
    """Register a builder under its own name."""

    def register(build: Callable) -> Callable:
        CASES[build.__name__] = Case(build.__name__, build, target, **options)
        return build

    return register


def normal(*shape: int) -> np.ndarray:
    """Float32 normal numbers, the same on every call."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def compiled(m: Any, f: Callable, *args: Any) -> Call:
    """Compile ``f`` and apply it to device arrays made from NumPy's, and there before we start."""
    return partial(m.jit(f), *(m.numpy.asarray(a).block_until_ready() for a in args))


# --- calls ---------------------------------------------------------------------------------------
@case(target=2.0, kind="burst")
def call_scalar(m):
    """One compiled addition: nothing but the path of a call."""
    return compiled(m, lambda x: x + 1, np.float32(1))


@case(target=4.0, kind="burst")
def call_40_leaves(m):
    """A dictionary of 40 small arrays in and out, as in a training step."""
    tree = {f"layer{i}": (m.numpy.ones(4), m.numpy.zeros(4)) for i in range(20)}
    return partial(m.jit(lambda t: m.tree.map(lambda x: x + 1, t)), tree)


@case(target=4.0, kind="burst")
def eager_add_16(m):
    """Addition of 16 elements, not compiled."""
    x = m.numpy.asarray(normal(16))
    return lambda: x + x


@case(target=4.0, kind="burst")
def eager_sin_16(m):
    """Sine of 16 elements, not compiled."""
    return partial(m.numpy.sin, m.numpy.asarray(normal(16)))


@case(target=4.0, kind="burst")
def eager_sum_16(m):
    """Sum of 16 elements, not compiled."""
    return partial(m.numpy.sum, m.numpy.asarray(normal(16)))


# --- whole arrays --------------------------------------------------------------------------------
@case(target=1.0)
def selu_1m(m):
    """An exponential and a branch an element."""
    return compiled(m, m.nn.selu, normal(1_000_000))


@case(target=1.0)
def gelu_1m(m):
    """The tanh form."""
    return compiled(m, m.nn.gelu, normal(1_000_000))


@case(target=1.0, rtol=1e-3)
def black_scholes_1m(m):
    """A European call: log, exp, square root and two error functions."""

    def cdf(x):
        return 0.5 * (1 + m.lax.erf(x / np.sqrt(2).astype(np.float32)))

    def price(spot, strike, years):
        rate, volatility = 0.02, 0.3
        spread = volatility * m.numpy.sqrt(years)
        d1 = (m.numpy.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
        return spot * cdf(d1) - strike * m.numpy.exp(-rate * years) * cdf(d1 - spread)

    u = np.random.default_rng(0).uniform(0.5, 1.5, (3, 1_000_000)).astype(np.float32)
    return compiled(m, price, 100 * u[0], 100 * u[1], u[2])


@case(target=3.0, rtol=1e-3)
def trig_log_1m(m):
    """Sine, cosine and logarithm mixed, ending in one array."""
    jnp = m.numpy
    return compiled(
        m, lambda x: jnp.sin(x) * jnp.cos(2 * x) + jnp.log(1 + x * x), normal(1_000_000)
    )


@case(target=1.0)
def softmax_4000x256(m):
    """A maximum, a sum and a map a row."""
    return compiled(m, m.nn.softmax, normal(4000, 256))


@case(target=1.0)
def layer_norm_4000x256(m):
    """Mean and variance a row, then a map with a scale and a shift a column."""

    def layer_norm(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        return centred * m.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * scale + shift

    return compiled(m, layer_norm, normal(4000, 256), normal(256), normal(256))


@case(target=1.0)
def column_stats_20000x64(m):
    """Mean, deviation, minimum and maximum of each column."""
    return compiled(m, lambda x: (x.mean(0), x.std(0), x.min(0), x.max(0)), normal(20_000, 64))


# --- sequential ----------------------------------------------------------------------------------
@case(target=1.0)
def scan_scalar_100k(m):
    """A filter of one state, a hundred thousand steps."""

    def smooth(xs):
        def step(state, x):
            state = 0.9 * state + 0.1 * x
            return state, state

        return m.lax.scan(step, 0.0, xs)[1]

    return compiled(m, smooth, normal(100_000))


@case(target=1.0, rtol=1e-3)
def rk4_lotka_volterra_10k(m):
    """Two coupled populations, four evaluations a step."""
    dt = 0.001

    def field(y):
        prey, hunters = y
        return m.numpy.stack(
            [1.1 * prey - 0.4 * prey * hunters, 0.1 * prey * hunters - 0.4 * hunters]
        )

    def step(y, _):
        k1 = field(y)
        k2 = field(y + dt / 2 * k1)
        k3 = field(y + dt / 2 * k2)
        k4 = field(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return compiled(
        m, lambda y: m.lax.scan(step, y, None, length=10_000)[1], np.array([10, 5], np.float32)
    )


@case(target=1.0)
def stencil_256_100_steps(m):
    """Explicit heat flow on a square with fixed edges."""

    def step(_, u):
        flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.2 * flow)

    return compiled(m, lambda u: m.lax.fori_loop(0, 100, step, u), normal(256, 256))


@case(target=1.0)
def edit_distance_500(m):
    """Levenshtein's table, a scan inside a scan."""
    jnp, scan = m.numpy, m.lax.scan

    def distance(a, b):
        def row(above, letter):
            def cell(left, xs):
                corner, up, other = xs
                best = jnp.minimum(jnp.minimum(left, up) + 1, corner + (letter != other))
                return best, best

            left = above[0] + 1
            cells = scan(cell, left, (above[:-1], above[1:], b))[1]
            return jnp.concatenate([left[None], cells]), None

        return scan(row, jnp.arange(b.shape[0] + 1), a)[0][-1]

    letters = np.random.default_rng(0).integers(0, 4, (2, 500), np.int32)
    return compiled(m, distance, *letters)


@case(target=3.0)
def bubble_sort_500(m):
    """Two updates a trip of a loop in a loop: any copy of the array shows."""
    jnp, loop = m.numpy, m.lax.fori_loop

    def swap(j, x):
        a, b = x[j], x[j + 1]
        return x.at[j].set(jnp.minimum(a, b)).at[j + 1].set(jnp.maximum(a, b))

    def sort(x):
        n = x.shape[0]
        return loop(0, n - 1, lambda i, x: loop(0, n - 1 - i, swap, x), x)

    return compiled(m, sort, normal(500))


@case(target=1.0)
def garch_10k(m):
    """The log-likelihood of a GARCH(1,1) model."""
    jnp = m.numpy

    def loglik(params, shocks):
        omega, alpha, beta = params

        def step(variance, shock):
            term = -0.5 * (jnp.log(variance) + shock**2 / variance)
            return omega + alpha * shock**2 + beta * variance, term

        return m.lax.scan(step, jnp.var(shocks), shocks)[1].sum()

    return compiled(m, loglik, np.array([0.1, 0.1, 0.8], np.float32), normal(10_000))


# --- first calls ---------------------------------------------------------------------------------
# Bounded and smooth in any order, so that both modules agree on the result.
UNARY = ("sin", "cos", "tanh", "arctan", "arcsinh", "exp", "abs", "negative")


def chain(m: Any, names: Sequence[str], scale: float = 0.5) -> Callable:
    """Compose eight elementwise functions, a product and a sum: ten operations."""

    def f(x):
        for name in names:
            x = getattr(m.numpy, name)(x)
        return x * scale + 1

    return f


class Unseen:
    """Chains in an order no process has compiled yet; both modules draw the same orders.

    Eight names have 40,320 orders and the scale is new as well, so neither an in-memory nor a
    disk cache, filled by this run or an earlier one, is likely to hold the result.
    """

    entropy = time.time_ns()

    def __init__(self, m: Any) -> None:
        self.m = m
        self.draw = stdlib_random.Random(self.entropy)

    def __call__(self) -> Callable:
        names = self.draw.sample(UNARY, len(UNARY))
        return self.m.jit(chain(self.m, tuple(names), self.draw.uniform(1, 2)))


@case(target=0.33, kind="fresh")
def first_call_10_ops(m):
    """Trace, compile and run a function that nothing has seen."""
    unseen, x = Unseen(m), m.numpy.asarray(normal(1000))
    return lambda: partial(unseen(), x)


@case(target=5.0, kind="fresh")
def second_size_10_ops(m):
    """Call again with another length: shapes are symbolic in our kernels, static in XLA's."""
    unseen, x, y = Unseen(m), m.numpy.asarray(normal(1000)), m.numpy.asarray(normal(1003))

    def prepare():
        f = unseen()
        f(x).block_until_ready()
        return partial(f, y)

    return prepare


# --- own processes: run by process.py, which measures them from inside or outside -----------------
@case(target=0.83, kind="start")
def warm_process(m):
    """Start Python, import, and run a function that an earlier process compiled."""
    return compiled(m, chain(m, UNARY), normal(1000))


@case(target=0.9, kind="memory")
def memory_chain_100mb(m):
    """Ten operations on 100 MB: the result is 100 MB, anything more is temporary."""
    # Made by the module: a NumPy source that JAX lets go of late would hide as much of the peak.
    x = m.numpy.ones(25_000_000).block_until_ready()
    run = m.jit(chain(m, UNARY))
    run(m.numpy.ones(1000)).block_until_ready()  # what a compiler takes is not the program's
    return partial(run, x)
