"""Stacks of matrices that threads share, part by part."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import fnarray as fa
import fnarray.numpy as fnp
import fnarray.scipy.linalg as fsp
from fnarray import lax
from fnarray.compile.cpu.build import KernelSource
from tests.compilers.compare import Report, both

COUNT, N = 60, 40


def systems(dtype: str, count: int = COUNT) -> np.ndarray:
    """Matrices that pivoting exchanges rows of, the same on every call."""
    x = np.random.default_rng(count).standard_normal((2, count, N, N))
    return (x[0] + 1j * x[1] if dtype[0] == "c" else x[0]).astype(dtype)


def squares(a: np.ndarray) -> np.ndarray:
    """Positive definite matrices."""
    return a @ a.swapaxes(-1, -2).conj() + 10 * np.eye(N, dtype=a.dtype)


def each(f, *stacks):
    """Apply a function to each matrix."""
    return np.stack([f(*xs) for xs in zip(*stacks, strict=True)])


CASES = {
    "solve": (fnp.linalg.solve, np.linalg.solve, lambda a: (a, a[..., :3])),
    "triangle": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        lambda a, b: each(lambda x, y: scipy.linalg.solve_triangular(x, y, lower=True), a, b),
        lambda a: (np.tril(a) + 9 * np.eye(N, dtype=a.dtype), a[..., :30]),
    ),
    "cholesky": (fnp.linalg.cholesky, np.linalg.cholesky, lambda a: (squares(a),)),
    "slogdet": (
        lambda a: fnp.linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1], lambda a: (a,)
    ),
    "inverse": (fnp.linalg.inv, np.linalg.inv, lambda a: (a,)),
    "qr": (lambda a: abs(fnp.linalg.qr(a)[1]), lambda a: abs(np.linalg.qr(a)[1]), lambda a: (a,)),
    "lu": (
        lambda a: fsp.lu(a)[2], lambda a: each(lambda x: scipy.linalg.lu(x)[2], a), lambda a: (a,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", CASES)
def test_each_matrix_of_a_stack_is_its_own(name, dtype):
    """Results are NumPy's or SciPy's, to the bit those of each matrix alone, whoever computes."""
    ours, theirs, operands = CASES[name]
    args = operands(systems(dtype))
    with fa.enable_x64(True):
        f = fa.jit(ours)
        got = np.asarray(f(*args))
        alone = each(lambda *xs: np.asarray(f(*xs)), *(x[:5] for x in args))
    want = theirs(*(x.astype("c16" if dtype[0] == "c" else "f8") for x in args))
    scale = abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=scale * (1e-3 if dtype in "f4c8" else 1e-11))
    np.testing.assert_array_equal(got[:5], alone)


def test_few_matrices_are_one_call():
    """Threads are asked where they have 40 us of work, or a stack of one would be a loop."""
    for count, shared in ((COUNT, True), (3, False), (1, False)):
        a = systems("f4", count)
        text = fa.jit(fnp.linalg.solve).lower(a, a[..., :3]).as_text(dialect="numba")
        assert ("threads.share" in text) == shared


SHARED = """
def kernel(x0, x1, out0, cores0, parts0):
    fk.threads.share(cores0, parts0)
    for i0 in range(cores0 * 2):
        low0 = 8 * i0 // (cores0 * 2)
        high0 = 8 * (i0 + 1) // (cores0 * 2)
        fk.linalg.linear_solve{}(x0[9 * low0 : 9 * high0], x1[3 * low0 : 3 * high0], out0[3 * low0 : 3 * high0], high0 - low0, 3, 1)
"""  # noqa: E501 (as it is emitted)


@pytest.mark.parametrize(("code", "name"), [("f32", ""), ("c64", "_complex")])
def test_both_compilers_give_the_same_bits(code, name):
    """Parts of flat arrays are handed to functions that are code of their own."""
    dtype = {"f32": "f4", "c64": "c8"}[code]
    a = systems(dtype, 8)[:, :3, :3].ravel()
    b, out = systems(dtype, 8)[:, 3, :3].ravel(), np.zeros(24, dtype)
    report = Report()
    src = KernelSource(SHARED.format(name), (f"{code}[1]",) * 3 + ("i64", "i64"))
    both(report, src)(a, b, out, 2, 4)
    assert not report.fallbacks
    assert not report.differences, report.differences[0]
