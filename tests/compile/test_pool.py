"""The pool shares loops among threads: every iteration once, whoever comes, and however few."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import config, lax
from fnarray.compile.cpu import blas, build, launch
from fnarray.compile.cpu.native import pool
from fnarray.compile.cpu.target import CPU
from fnarray.compile.target import Limits

ADD = """\
def kernel(start, stop, x, w, n):
    for i in range(start, stop):
        w[0] = x[i]
        x[i] = w[0] + f32(n)
"""
SUM = """\
def kernel(start, stop, x, out):
    acc = f64(0.0)
    for i in range(start, stop):
        acc = acc + x[i]
    out[0] = acc
"""
BOTH = """\
def kernel(total, part, n):
    for i in range(n):
        total[i] = total[i] + part[i]
"""
natively = pytest.mark.skipif(not pool.is_known(), reason="the system has no such pool")


def add() -> object:
    """Return a kernel that adds a number, through a working array."""
    return build.load(build.KernelSource(ADD, ("i64", "i64", "f32[1]", "f32[1]", "i64")))


@pytest.fixture(params=[1, 2, 5], ids="{} threads".format)
def threads(request):
    """So many threads, whatever the machine has."""
    before = config.num_threads
    config.update("num_threads", request.param)
    yield request.param
    config.update("num_threads", before)


def run(x: np.ndarray, n: int) -> None:
    """Add a number to an array, in chunks."""
    launch.launch(CPU.limits, add(), x.size, (x,), ((1, np.float32),), (n,))


@pytest.mark.parametrize("size", [1, 2, 63, 1000, 100_003])
def test_every_iteration_runs_once(threads, size) -> None:
    """Whatever the number of threads, and with fewer iterations than threads."""
    x = np.arange(size, dtype=np.float32)
    for _ in range(20):
        run(x, 1)
    np.testing.assert_array_equal(x, np.arange(size, dtype=np.float32) + 20)


def test_sums_do_not_depend_on_the_threads(threads) -> None:
    """Chunks are of fixed size, and are added up in order."""
    x = np.random.default_rng(0).normal(size=100_003)
    total = np.empty(1)
    kernel = build.load(build.KernelSource(SUM, ("i64", "i64", "f64[1]", "f64[1]")))
    both = build.load(build.KernelSource(BOTH, ("f64[1]", "f64[1]", "i64")))
    launch.launch(CPU.limits, kernel, x.size, (x, total), (), (), ((1, both),))
    step = -(-x.size // CPU.limits.chunks // CPU.limits.grain) * CPU.limits.grain
    want = 0.0
    for start in range(0, x.size, step):
        part = 0.0
        for value in x[start : start + step].tolist():
            part += value
        want += part
    assert total[0] == pytest.approx(want, rel=1e-15)


def test_several_callers_at_once(threads) -> None:
    """One of them has the pool; the others work alone, and nobody waits for nobody."""
    arrays = [np.zeros(1000 + k, np.float32) for k in range(6)]

    def often(x: np.ndarray) -> None:
        for _ in range(200):
            run(x, 1)

    with ThreadPoolExecutor(6) as callers:
        list(callers.map(often, arrays))
    for x in arrays:
        np.testing.assert_array_equal(x, np.full_like(x, 200))


@natively
def test_wrong_arguments_are_refused() -> None:
    """Their number, and what is no array."""
    spec, x = add().__self__, np.zeros(4, np.float32)
    for args in ((x, x), (x, 1, 2), (x, x, 1, 2)):
        with pytest.raises(TypeError, match="other arguments"):
            pool.launcher()(spec, 1, 1, 4, *args)
    with pytest.raises(TypeError):
        pool.launcher()(spec, 1, 1, 4, x, x, "1")


LOOPS = """\
def kernel(x, y, a, b, out, n, turns, cores, parts, m, k, w, left, right):
    p = x
    q = y
    for t in range(turns):
        scale = f32(t)
        fk.threads.share(cores, parts)
        for i in range(n):
            total = f32(0.0)
            for j in range(3):
                total = total + p[u(i + j)]
            q[u(i + 1)] = total * scale
        p, q = q, p
        fk.threads.share(cores, cores)
        for i in range(cores):
            fk.gemm.part(a, b, out, m, k, w, left, right, i, cores)
"""
KINDS = ("f32[1]",) * 5 + ("i64",) * 9


@pytest.mark.parametrize(("rows", "columns"), [(70, 33), (5, 100), (1, 64), (64, 1), (3, 3)])
@pytest.mark.parametrize("compiler", ["native", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_loops_and_products_inside_of_kernels(
    threads, compiler, rows, columns, left, right
) -> None:
    """The text means the same whoever shares it: buffers that change places, parts of products."""
    before, rng = config.compiler, np.random.default_rng(0)
    x, y = (rng.normal(size=1002).astype(np.float32) for _ in range(2))
    a, b = (rng.normal(size=s).astype(np.float32) for s in (rows * 20, 20 * columns))
    want, other = x.copy(), y.copy()
    for t in range(3):
        sums = (want[:-2] + want[1:-1] + want[2:]) * np.float32(t)
        other[1:-1] = sums
        want, other = other, want
    out = np.empty(rows * columns, np.float32)
    config.update("compiler", compiler)
    try:
        kernel = build.load(build.KernelSource(LOOPS, KINDS))
        kernel(x, y, a, b, out, 1000, 3, launch.cores(), 7, rows, 20, columns, left, right)
    finally:
        config.update("compiler", before)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(x, other)
    product = (a.reshape(20, rows).T if left else a.reshape(rows, 20)) @ (
        b.reshape(columns, 20).T if right else b.reshape(20, columns)
    )
    np.testing.assert_allclose(out.reshape(rows, columns), product, rtol=1e-4, atol=1e-4)


def test_programs_share_their_loops(threads) -> None:
    """A stencil, a roll and a product in a loop: the bits of one thread."""

    def turn(_, ab):
        a, b = ab
        a = a.at[1:-1, 1:-1].set(0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, 2:] + b[1:-1, :-2]))
        return fnp.roll(b, 1, 1) - fnp.tanh(a), a

    f = fnarray.jit(lambda a, b: lax.fori_loop(0, 3, turn, (a, b)))
    a, b = np.random.default_rng(0).normal(size=(2, 300, 300)).astype(np.float32)
    assert "fk.threads.share" in f.lower(a, b).as_text(dialect="numba")
    several = f(a, b)
    config.update("num_threads", 1)
    for x, y in zip(several, f(a, b), strict=True):
        np.testing.assert_array_equal(x, y)


def _strided(rng, rows: int, columns: int, how: str, dtype: str) -> np.ndarray:
    """Return a matrix whose rows lie together, or its columns, or rows with gaps, or nothing."""
    x = rng.normal(size=(rows, columns)) + (1j * rng.normal(size=(rows, columns)))
    x = (x if dtype in "FD" else x.real).astype(dtype)
    if how == "columns":
        return np.asfortranarray(x)
    step = {"rows": (1, 0), "gaps": (1, 3), "apart": (2, 3)}[how]
    wide = np.zeros((rows, step[0] * columns + step[1]), dtype)
    view = wide[:, : step[0] * columns : step[0]]
    view[:] = x
    return view


SHAPES = ((130, 40, 70), (70, 40, 130), (1, 900, 300), (900, 300, 1), (300, 900, 1))


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_shared(threads, dtype, shape) -> None:
    """Matrices and vectors of any layout."""
    rng, (m, k, n) = np.random.default_rng(0), shape
    limits = Limits(serial=0, share=1)
    for left in ("rows", "columns", "gaps", "apart"):
        for right in ("rows", "columns", "gaps", "apart"):
            a, b = _strided(rng, m, k, left, dtype), _strided(rng, k, n, right, dtype)
            got, want = blas.matmul(limits, a, b), np.matmul(a, b)
            far = 1e-5 if dtype in "fF" else 1e-13
            np.testing.assert_allclose(got, want, rtol=far, atol=far * np.abs(want).max())


@pytest.mark.parametrize(("columns", "parts"), [(50, 1), (300, 2), (5000, 3)])
def test_a_vector_times_a_narrow_matrix_stays_whole(threads, monkeypatch, columns, parts) -> None:
    """Each thread reads neighbours enough of each row, and the product is NumPy's."""
    cuts: list[int] = []
    cut = blas._blocks

    def counted(lhs, rhs, out, count):
        cuts.append(count)
        return cut(lhs, rhs, out, count)

    monkeypatch.setattr(blas, "_blocks", counted)
    monkeypatch.setattr(blas, "threads", lambda: 3)
    a, b = np.ones((1, 40)), np.random.default_rng(0).normal(size=(40, columns))
    got = blas.matmul(Limits(serial=0, share=1), a, b)
    np.testing.assert_allclose(got, a @ b, rtol=1e-12, atol=1e-12)
    assert cuts == [parts]


@pytest.mark.parametrize("stack", [1, 2, 3, 20])
def test_stacks_of_products_are_shared(threads, stack) -> None:
    """Few matrices by machine code, many by NumPy."""
    a, b = np.random.default_rng(0).normal(size=(2, stack, 30, 30))
    got = blas.matmul(Limits(serial=0, share=1), a, b.transpose(0, 2, 1))
    np.testing.assert_allclose(got, a @ b.transpose(0, 2, 1), rtol=1e-12, atol=1e-12)


PROCESS = """
import os, sys
sys.path.insert(0, {folder!r})
import numpy as np
import fnarray
import fnarray.numpy as fnp
from fnarray import config, lax
config.update("num_threads", 3)
from tests.compile.test_pool import run
x = np.zeros(5000, np.float32)
run(x, 1)
child = os.fork()
for _ in range(100):
    run(x, 1)
assert (x == 101).all()
if child:
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    print("both")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_forks_and_exits(tmp_path) -> None:
    """A child starts threads of its own, and a process ends while threads wait for work."""
    folder = str(Path(__file__).parents[2])
    out = subprocess.run(
        [sys.executable, "-c", PROCESS.format(folder=folder)],
        capture_output=True, text=True, timeout=100,
        env={**os.environ, "FNARRAY_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (out.stdout, out.returncode) == ("both\n", 0), out.stderr
