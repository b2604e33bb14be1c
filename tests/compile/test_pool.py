"""The pool shares loops among threads: every iteration once, whoever comes, and however few."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fnarray import config
from fnarray.compile.cpu import build, launch
from fnarray.compile.cpu.native import pool
from fnarray.compile.cpu.target import CPU

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


PROCESS = """
import os, sys
sys.path.insert(0, {folder!r})
import numpy as np
from fnarray import config
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
