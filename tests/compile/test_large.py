"""Programs of many operations: no recursion, text that grows with the program, kernels that end."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray.compile.cpu.target import CPU
from fnarray.compile.pipeline import compile_graph

X = np.linspace(0.1, 1, 16, dtype=np.float32)


def chain(m, x, n):
    y = x
    for k in range(n // 2):
        y = m.sin(y) if k % 3 else y * 0.999 + x
    return y


def wide(m, x, n):
    total = m.zeros_like(x)
    for k in range(n // 2):
        total = total + x * (k % 7)
    return total


def halves(m, x, n):
    parts = [x * (k % 7 + 1.0) for k in range(n // 2)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)] + (
            parts[-1:] if len(parts) % 2 else []
        )
    return parts[0]


def calls(m, x, n):
    step = (lambda x: m.tanh(x) * 0.9 + 0.1) if m is np else _step
    for _ in range(n // 3):
        x = step(x)
    return x


_step = fa.jit(lambda x: fnp.tanh(x) * 0.9 + 0.1)


def results(m, x, n):
    return [x * float(k % 97) for k in range(n)]


SHAPES = {f.__name__: f for f in (chain, wide, halves, calls, results)}


def texts(program, n, transform=lambda f: f):
    """Return the texts of the kernels of a program of n operations."""
    f = transform(lambda x: program(fnp, x, n))
    return [k.source.text for k in compile_graph(fa.make_jaxpr(f)(X)).source.kernels]


def gradient(f):
    return fa.grad(lambda x: fnp.sum(f(x)))


@pytest.mark.parametrize("shape", SHAPES)
def test_10_000_operations_become_kernels_that_can_be_compiled(shape):
    """No recursion limit is met; no kernel grows with the program, nor a statement of it."""
    few, many = (texts(SHAPES[shape], n) for n in (5_000, 10_000))
    assert max(map(len, many)) < 1.5 * max(map(len, few))
    assert max(len(line) for text in many for line in text.splitlines()) < 4_000
    assert sum(map(len, many)) < 2.5 * sum(map(len, few))


@pytest.mark.parametrize("shape", ["chain", "calls"])
def test_gradients_of_3_000_operations_do_too(shape):
    """What their backward pass reads is kept, by kernels that do not grow."""
    few, many = (texts(SHAPES[shape], n, gradient) for n in (600, 3_000))
    assert max(map(len, many)) < 2 * max(map(len, few))


@pytest.mark.parametrize("shape", SHAPES)
def test_results_of_several_kernels(shape):
    """They are NumPy's, where one loop, or one kernel, does not hold the program."""
    program, n = SHAPES[shape], 3 * CPU.limits.kernel
    got = fa.jit(lambda x: program(fnp, x, n))(X)
    want = program(np, X.astype(float), n)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=2e-5)


def butterflies(x):
    """Return a Fourier transform as pairs of single numbers."""
    if len(x) == 1:
        return x
    even, odd, half = butterflies(x[::2]), butterflies(x[1::2]), len(x) // 2
    out = [(0.0, 0.0)] * len(x)
    for k, ((a, b), (c, d)) in enumerate(zip(even, odd, strict=True)):
        u, v = np.cos(np.pi * k / half).item(), -np.sin(np.pi * k / half).item()
        c, d = u * c - v * d, u * d + v * c
        out[k], out[k + half] = (a + c, b + d), (a - c, b - d)
    return out


def test_single_numbers_are_computed_once():
    """Each is a line of one kernel, however many are made of it."""

    def f(x):
        return [fnp.asarray(part) for z in butterflies([(v, 0.0) for v in x]) for part in z]

    graph = fa.make_jaxpr(f)(X)
    (kernel,) = compile_graph(graph).source.kernels
    lines = [line for line in kernel.source.text.splitlines() if line.startswith("    t")]
    assert len(lines) < 1.2 * len(graph.jaxpr.eqns)
    got = np.asarray(fa.jit(f)(X)).reshape(-1, 2)
    want = np.fft.fft(X.astype(float))
    np.testing.assert_allclose(got[:, 0] + 1j * got[:, 1], want, atol=1e-5)


def test_layers_of_a_network_are_the_same_kernels():
    """What each adds to is kept, not written into it as the sum of all that was added before."""

    def f(x, ws):
        for w in ws:
            x = x + (x - fnp.mean(x, 1, keepdims=True)) @ w
            x = x + fnp.tanh(x - fnp.mean(x, 1, keepdims=True)) @ w
        return x

    ws = [np.zeros((256, 256), np.float32) for _ in range(10)]
    graph = fa.make_jaxpr(f)(np.zeros((64, 256), np.float32), ws)
    kernels = [k.source.text for k in compile_graph(graph).source.kernels]
    assert len(kernels) > 20
    assert len(set(kernels)) < 10


NESTED = """
import sys
import fnarray as fa, fnarray.numpy as fnp
def f(x):
    return x * 1.5
for _ in range(400):
    f = fa.jit((lambda g: lambda x: g(x) + 1.0)(f))
x = fnp.ones(3)
def total(x):
    return f(x).sum()
assert f(x).tolist() == [401.5] * 3
assert fa.grad(total)(x).tolist() == fa.jit(fa.grad(total))(x).tolist() == [1.5] * 3
assert fa.vmap(f)(fnp.ones((2, 3))).tolist() == [[401.5] * 3] * 2
assert str(fa.make_jaxpr(f)(x)).count("jit") >= 400
@fa.jit
def endless(x):
    return endless(x) + 1
try:
    endless(x)
except RecursionError:
    print("ended")
"""


def test_functions_nested_deeply():
    """400 functions compiled within each other, transformed; one without end still ends."""
    done = subprocess.run(
        [sys.executable, "-c", NESTED], capture_output=True, text=True, check=True, timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "ended\n"
