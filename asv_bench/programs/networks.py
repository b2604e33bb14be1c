"""Small models as one writes them by hand: parameters are arguments, gradients are asked for."""

from __future__ import annotations

from itertools import pairwise

import numpy

from .registry import numbers, program


def weights(*sizes: int) -> tuple[numpy.ndarray, ...]:
    """Matrices and shifts of a network, layer by layer."""
    pairs = pairwise(sizes)
    return tuple(
        w
        for i, (n, k) in enumerate(pairs)
        for w in (numbers(n, k, seed=i) / n**0.5, numpy.zeros(k))
    )


def perceptron(np, parameters, x):
    """Layers of tanh, the last one linear."""
    *hidden, w, b = parameters
    for v, c in zip(hidden[::2], hidden[1::2], strict=True):
        x = np.tanh(x @ v + c)
    return x @ w + b


def softmax(np, x):
    """Exponentials that add to one along the last axis."""
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def cross_entropy(np, scores, labels):
    """Mean of minus the logarithm of what is given to the right class, from one-hot labels."""
    top = np.max(scores, -1, keepdims=True)
    total = top[..., 0] + np.log(np.sum(np.exp(scores - top), -1))
    return np.mean(total - np.sum(scores * labels, -1))


def one_hot(n: int, classes: int) -> numpy.ndarray:
    """Labels drawn for ``n`` examples."""
    return numpy.eye(classes)[numpy.random.default_rng(9).integers(0, classes, n)]


@program(
    test={"batch": 3, "width": 5},
    small={"batch": 32, "width": 32},
    large={"batch": 256, "width": 256},
    grad=True,
)
def mlp(m, batch, width):
    """Two hidden layers with rectifiers, and a softmax."""
    np = m.numpy

    def run(x, w1, b1, w2, b2, w3, b3):
        x = np.maximum(x @ w1 + b1, 0)
        x = np.maximum(x @ w2 + b2, 0)
        return softmax(np, x @ w3 + b3)

    return run, (numbers(batch, width, seed=7), *weights(width, width, width, 10))


@program(
    test={"batch": 3, "width": 5},
    small={"batch": 32, "width": 32},
    large={"batch": 256, "width": 256},
    numpy=False,
)
def mlp_gradient(m, batch, width):
    """One step of gradient descent on a network of three layers."""

    def run(x, labels, *parameters):
        loss = lambda ps: cross_entropy(m.numpy, perceptron(m.numpy, ps, x), labels)  # noqa: E731
        value, slopes = m.value_and_grad(loss)(parameters)
        return value, tuple(p - 0.1 * g for p, g in zip(parameters, slopes, strict=True))

    return run, (
        numbers(batch, width, seed=7),
        one_hot(batch, 10),
        *weights(width, width, width, 10),
    )


def convolve(np, x, kernel):
    """Valid convolution of (n, h, w, c) with (k, k, c, d), unrolled over the kernel."""
    k = kernel.shape[0]
    h, w = x.shape[1] - k + 1, x.shape[2] - k + 1
    return sum(x[:, i : i + h, j : j + w, :] @ kernel[i, j] for i in range(k) for j in range(k))


def halved(np, x):
    """Largest of each two by two."""
    n, h, w, c = x.shape
    return np.max(np.reshape(x, (n, h // 2, 2, w // 2, 2, c)), (2, 4))


@program(
    test={"batch": 2, "size": 10},
    small={"batch": 4, "size": 28},
    large={"batch": 16, "size": 44},
    grad=True,
)
def convnet(m, batch, size):
    """Two convolutions of 3 x 3, pooled, and a linear layer."""
    np = m.numpy

    def run(x, k1, k2, w):
        x = halved(np, np.maximum(convolve(np, x, k1), 0))
        x = np.maximum(convolve(np, x, k2), 0)
        return np.reshape(x, (batch, -1)) @ w

    return run, _convnet(batch, size)


def _convnet(batch, size):
    rest = (size - 2) // 2 - 2
    return (
        numbers(batch, size, size, 1),
        numbers(3, 3, 1, 6, seed=1) / 3,
        numbers(3, 3, 6, 12, seed=2) / 7,
        numbers(rest * rest * 12, 10, seed=3) / 50,
    )


@program(
    test={"batch": 2, "size": 10},
    small={"batch": 4, "size": 28},
    large={"batch": 16, "size": 44},
    numpy=False,
)
def convnet_gradient(m, batch, size):
    """Gradient of all parameters of the small convolutional network."""
    np = m.numpy

    def run(x, labels, *parameters):
        def loss(ps):
            k1, k2, w = ps
            y = halved(np, np.maximum(convolve(np, x, k1), 0))
            y = np.maximum(convolve(np, y, k2), 0)
            return cross_entropy(np, np.reshape(y, (batch, -1)) @ w, labels)

        return m.grad(loss)(parameters)

    x, *parameters = _convnet(batch, size)
    return run, (x, one_hot(batch, 10), *parameters)


@program(
    test={"n": 5, "width": 8, "heads": 2},
    small={"n": 32, "width": 64, "heads": 4},
    large={"n": 256, "width": 256, "heads": 8},
    grad=True,
)
def attention(m, n, width, heads):
    """Self-attention of several heads with a causal mask, and a residual feed-forward layer."""
    np = m.numpy

    def split(x):
        return np.transpose(np.reshape(x, (n, heads, width // heads)), (1, 0, 2))

    def run(x, wq, wk, wv, wo, w1, w2):
        q, k, v = split(x @ wq), split(x @ wk), split(x @ wv)
        scores = np.einsum("hid,hjd->hij", q, k) / (width // heads) ** 0.5
        past = np.arange(n)[:, None] >= np.arange(n)[None, :]
        mixed = np.einsum("hij,hjd->hid", softmax(np, np.where(past, scores, -1e9)), v)
        x = x + np.reshape(np.transpose(mixed, (1, 0, 2)), (n, width)) @ wo
        return x + np.maximum(x @ w1, 0) @ w2

    square = [numbers(width, width, seed=i) / width**0.5 for i in range(4)]
    wide = numbers(width, 4 * width, seed=5) / width**0.5, numbers(4 * width, width, seed=6) / width
    return run, (numbers(n, width), *square, *wide)


def sigmoid(np, x):
    """Logistic curve."""
    return 1 / (1 + np.exp(-x))


RECURRENT = {
    "test": {"steps": 4, "batch": 2, "width": 3},
    "small": {"steps": 30, "batch": 4, "width": 16},
    "large": {"steps": 100, "batch": 32, "width": 128},
}


def _recurrent(steps, batch, width, gates):
    return (
        numbers(steps, batch, width),
        numbers(width, gates * width, seed=1) / width**0.5,
        numbers(width, gates * width, seed=2) / width**0.5,
        numbers(gates * width, seed=3),
    )


@program(**RECURRENT, grad=True)
def lstm(m, steps, batch, width):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), scanned."""
    np = m.numpy

    def run(xs, wx, wh, b):
        def step(carry, x):
            h, c = carry
            gates = x @ wx + h @ wh + b
            i, f, o, g = (gates[:, k * width : (k + 1) * width] for k in range(4))
            c = sigmoid(np, f) * c + sigmoid(np, i) * np.tanh(g)
            h = sigmoid(np, o) * np.tanh(c)
            return (h, c), h

        zero = np.zeros((batch, width), xs.dtype)
        return m.lax.scan(step, (zero, zero), xs)[1]

    return run, _recurrent(steps, batch, width, 4)


@program(**RECURRENT, grad=True)
def gru(m, steps, batch, width):
    """Gated recurrent unit (Cho 2014), scanned."""
    np = m.numpy

    def run(xs, wx, wh, b):
        def step(h, x):
            from_x, from_h = x @ wx + b, h @ wh
            at = lambda y, k: y[:, k * width : (k + 1) * width]  # noqa: E731
            reset = sigmoid(np, at(from_x, 0) + at(from_h, 0))
            update = sigmoid(np, at(from_x, 1) + at(from_h, 1))
            new = np.tanh(at(from_x, 2) + reset * at(from_h, 2))
            h = (1 - update) * new + update * h
            return h, h

        return m.lax.scan(step, np.zeros((batch, width), xs.dtype), xs)[1]

    return run, _recurrent(steps, batch, width, 3)


@program(**RECURRENT, numpy=False)
def lstm_gradient(m, steps, batch, width):
    """Gradient of a recurrent network by time."""
    run, arrays = lstm(m, steps, batch, width)
    loss = lambda ws, xs: m.numpy.mean(run(xs, *ws)[-1] ** 2)  # noqa: E731
    return (lambda xs, *ws: m.grad(loss)(ws, xs)), arrays


@program(
    test={"n": 9, "k": 4}, small={"n": 500, "k": 20}, large={"n": 50_000, "k": 50}, numpy=False
)
def logistic_gradient(m, n, k):
    """Gradient of a penalised logistic loss."""
    np = m.numpy

    def loss(w, x, y):
        z = x @ w
        return np.mean(np.logaddexp(0.0, z) - y * z) + 0.01 * np.sum(w * w)

    y = (numbers(n, seed=2) > 0).astype(float)
    return (lambda w, x, y: m.value_and_grad(loss)(w, x, y)), (numbers(k), numbers(n, k, seed=1), y)


@program(test={"n": 12, "k": 3}, small={"n": 500, "k": 8}, large={"n": 20_000, "k": 16})
def k_means(m, n, k):
    """Ten of Lloyd's iterations, sums by one-hot products."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(x, centres):
        def step(_, centres):
            apart = np.sum((x[:, None, :] - centres[None, :, :]) ** 2, -1)
            mine = (np.argmin(apart, -1)[:, None] == np.arange(k)[None, :]).astype(x.dtype)
            return (mine.T @ x) / np.maximum(np.sum(mine, 0), 1)[:, None]

        return loop(0, 10, step, centres)

    x = numbers(n, 3)
    return run, (x, x[:k].copy())


def rosenbrock(np, x):
    """A narrow curved valley, coupled along the coordinates."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + np.prod(np.cos(x))


@program(test={"n": 4}, small={"n": 10}, large={"n": 80}, numpy=False)
def hessian(m, n):
    """Second derivatives of a function of ten variables."""
    return m.hessian(lambda x: rosenbrock(m.numpy, x)), (numbers(n),)


@program(
    test={"n": 3, "lanes": 4},
    small={"n": 6, "lanes": 200},
    large={"n": 6, "lanes": 20_000},
    numpy=False,
)
def batched_jacobians(m, n, lanes):
    """Jacobian of a small map at many points: ``vmap`` of ``jacfwd``."""
    np = m.numpy

    def f(x):
        return np.stack([np.sin(x[i]) * x[i - 1] + np.exp(-(x[i] ** 2)) for i in range(n)])

    return m.vmap(m.jacfwd(f)), (numbers(lanes, n),)


@program(
    test={"batch": 4, "width": 3},
    small={"batch": 64, "width": 8},
    large={"batch": 2000, "width": 16},
    numpy=False,
)
def per_example_gradients(m, batch, width):
    """Gradients of a tiny network, one for each example, and their squared lengths."""
    np = m.numpy

    def run(x, y, *parameters):
        def loss(ps, x, y):
            return np.sum((perceptron(np, ps, x) - y) ** 2)

        slopes = m.vmap(m.grad(loss), (None, 0, 0))(parameters, x, y)
        return slopes, sum(np.sum(g * g, tuple(range(1, g.ndim))) for g in slopes)

    return run, (numbers(batch, width, seed=7), numbers(batch, 2, seed=8), *weights(width, 8, 2))


@program(
    test={"n": 5, "turns": 3},
    small={"n": 20, "turns": 20},
    large={"n": 200, "turns": 100},
    numpy=False,
)
def adam_fit(m, n, turns):
    """Fit a curve by Adam (Kingma and Ba 2014), the whole descent in one loop."""
    np = m.numpy

    def run(w, x, y):
        slope = m.grad(lambda w: np.mean((np.tanh(x @ w) - y) ** 2))

        def step(t, carry):
            w, first, second = carry
            g = slope(w)
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
            rate = 0.01 * np.sqrt(1 - 0.999 ** (t + 1.0)) / (1 - 0.9 ** (t + 1.0))
            return w - rate * first / (np.sqrt(second) + 1e-8), first, second

        return m.lax.fori_loop(0, turns, step, (w, np.zeros_like(w), np.zeros_like(w)))[0]

    return run, (numbers(n), numbers(4 * n, n, seed=1), numbers(4 * n, seed=2))
