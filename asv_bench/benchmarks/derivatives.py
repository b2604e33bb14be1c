"""Measured programs of the transforms: gradients, Hessians, batches, loops in lanes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from .cases import case, compiled, normal


# --- loops ---------------------------------------------------------------------------------------
@case(target=20.0, rtol=2e-2)
def grad_hodgkin_huxley_10k(m):
    """Four scalar carries, 10,000 steps (Hodgkin and Huxley 1952), reverse mode."""
    jnp = m.numpy

    def rates(v):
        am = 0.1 * (v + 40) / (1 - jnp.exp(-(v + 40) / 10))
        bm = 4 * jnp.exp(-(v + 65) / 18)
        ah = 0.07 * jnp.exp(-(v + 65) / 20)
        bh = 1 / (1 + jnp.exp(-(v + 35) / 10))
        an = 0.01 * (v + 55) / (1 - jnp.exp(-(v + 55) / 10))
        bn = 0.125 * jnp.exp(-(v + 65) / 80)
        return am, bm, ah, bh, an, bn

    def loss(conductances):
        g_na, g_k, g_l = conductances

        def step(state, current):
            v, a, h, n = state
            am, bm, ah, bh, an, bn = rates(v)
            flow = g_na * a**3 * h * (v - 50) + g_k * n**4 * (v + 77) + g_l * (v + 54.387)
            v = v + 0.01 * (current - flow)
            a = a + 0.01 * (am * (1 - a) - bm * a)
            h = h + 0.01 * (ah * (1 - h) - bh * h)
            n = n + 0.01 * (an * (1 - n) - bn * n)
            return (v, a, h, n), v

        start = tuple(jnp.float32(x) for x in (-65.0, 0.05, 0.6, 0.32))
        _, voltage = m.lax.scan(step, start, jnp.full(10_000, 10, jnp.float32))
        return jnp.mean((voltage + 60) ** 2)

    return compiled(m, m.grad(loss), np.array([120, 36, 0.3], np.float32))


@case(target=1.0)
def grad_tanh_recurrence_10k(m):
    """A scalar recurrence of 10,000 steps, reverse mode."""

    def loss(w):
        step = lambda c, _: (m.numpy.tanh(w * c + 0.1), None)  # noqa: E731
        return m.lax.scan(step, m.numpy.float32(0.5), None, length=10_000)[0]

    return compiled(m, m.grad(loss), np.float32(0.9))


@case(target=1.0, rtol=1e-2)
def grad_lotka_volterra_1k(m):
    """Runge-Kutta of order 4, 1,000 steps, squared distance to data, reverse mode."""
    jnp = m.numpy

    def loss(parameters, data):
        a, b, c, d = parameters

        def field(y):
            return jnp.stack([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])

        def step(y, _):
            k1 = field(y)
            k2 = field(y + 0.005 * k1)
            k3 = field(y + 0.005 * k2)
            k4 = field(y + 0.01 * k3)
            y = y + (0.01 / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
            return y, y

        _, ys = m.lax.scan(step, jnp.array([10.0, 5.0]), None, length=1000)
        return jnp.mean((ys - data) ** 2)

    start = np.array([1.1, 0.4, 0.4, 0.1], np.float32)
    return compiled(m, m.grad(loss), start, normal(1000, 2))


@case(target=1.0)
def vmap_newton_20k_lanes(m):
    """Square roots by Newton's method, a loop in each lane; all take about as many turns."""

    def root(a):
        def unsettled(state):
            x, previous = state
            return m.numpy.abs(x - previous) > 1e-6 * x

        def improve(state):
            x, _ = state
            return 0.5 * (x + a / x), x

        return m.lax.while_loop(unsettled, improve, (a, 3 * a))[0]

    return compiled(m, m.vmap(root), 1 + np.abs(normal(20_000)))


@case(target=3.0)
def vmap_collatz_20k_lanes(m):
    """20,000 lanes whose numbers of turns differ a hundredfold."""

    def turns(n):
        def halve(state):
            n, k = state
            return m.numpy.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return m.lax.while_loop(lambda s: s[0] > 1, halve, (n, 0))[1]

    return compiled(m, m.vmap(turns), np.arange(1, 20_001, dtype=np.int32))


# --- models --------------------------------------------------------------------------------------
def mlp(m, parameters, x):
    """A multilayer perceptron with tanh layers; the last is linear."""
    for w, b in parameters[:-1]:
        x = m.numpy.tanh(x @ w + b)
    w, b = parameters[-1]
    return x @ w + b


def cross_entropy(m, logits, labels):
    """Mean negative log likelihood of one-hot labels."""
    return -m.numpy.mean(m.numpy.sum(m.nn.log_softmax(logits) * labels, axis=-1))


def network(m):
    """Parameters of 784-512-256-10, and a batch of 128."""
    sizes = (784, 512, 256, 10)
    parameters = [
        (m.numpy.asarray(0.05 * normal(i, o)), m.numpy.zeros(o)) for i, o in pairwise(sizes)
    ]
    labels = np.eye(10, dtype=np.float32)[np.arange(128) % 10]
    return parameters, m.numpy.asarray(normal(128, 784)), m.numpy.asarray(labels)


@case(target=0.9, rtol=1e-3)
def mlp_sgd_step(m):
    """One step of gradient descent on a batch of 128."""
    parameters, x, labels = network(m)

    def step(parameters, x, labels):
        loss = lambda p: cross_entropy(m, mlp(m, p, x), labels)  # noqa: E731
        return m.tree.map(lambda p, g: p - 0.1 * g, parameters, m.grad(loss)(parameters))

    return partial(m.jit(step), parameters, x, labels)


@case(target=1.0, rtol=1e-3)
def logistic_value_and_grad(m):
    """Multinomial logistic regression: 1,797 digits of 64 pixels."""

    def loss(w, b, x, labels):
        return cross_entropy(m, x @ w + b, labels) + 1e-3 * m.numpy.sum(w * w)

    labels = np.eye(10, dtype=np.float32)[np.arange(1797) % 10]
    return compiled(
        m,
        m.value_and_grad(loss, argnums=(0, 1)),
        0.1 * normal(64, 10),
        np.zeros(10, np.float32),
        normal(1797, 64),
        labels,
    )


@case(target=1.0, rtol=1e-3)
def per_example_gradients(m):
    """Gradients of a 64-32-10 network for each of 256 examples."""

    def loss(parameters, x, label):
        return cross_entropy(m, mlp(m, parameters, x)[None], label[None])

    sizes = (64, 32, 10)
    parameters = [
        (m.numpy.asarray(0.1 * normal(i, o)), m.numpy.zeros(o)) for i, o in pairwise(sizes)
    ]
    labels = np.eye(10, dtype=np.float32)[np.arange(256) % 10]
    each = m.jit(m.vmap(m.grad(loss), in_axes=(None, 0, 0)))
    return partial(each, parameters, m.numpy.asarray(normal(256, 64)), m.numpy.asarray(labels))


def rosenbrock(x):
    """Sum over neighbours of Rosenbrock's valley (1960)."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@case(target=1.0, rtol=1e-3)
def hessian_rosenbrock_100(m):
    """Second derivatives in 100 dimensions."""
    return compiled(m, m.hessian(rosenbrock), normal(100))


# --- without compilation -------------------------------------------------------------------------
def chain(m, x, length):
    """Nonlinear operations in a row, ending in a sum."""
    steps = (m.numpy.sin, m.numpy.tanh, m.numpy.exp, lambda v: v * 0.5, lambda v: v + 0.1)
    for k in range(length):
        x = steps[k % len(steps)](x)
    return m.numpy.sum(x)


@case(target=2.0)
def eager_grad_20_ops(m):
    """Reverse mode of 20 operations on 16 elements, op by op."""
    return partial(m.grad(lambda x: chain(m, x, 20)), m.numpy.asarray(normal(16)))


@case(target=1.0, kind="fresh")
def transform_grad_500_ops(m):
    """Trace and transform ``grad`` of 500 operations; nothing is compiled."""
    x = m.numpy.asarray(normal(16))

    def prepare():
        m.clear_caches()
        trace = m.make_jaxpr(m.grad(lambda x: chain(m, x, 500)))

        def call():
            trace(x)
            return x

        return call

    return prepare
