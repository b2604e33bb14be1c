"""Kernels for a GPU, read by the processor, compute what the processor's own do."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cuda import block
from fnarray.compile.cuda.processor import ONE_THREAD, simulated
from fnarray.config import scoped

sys.path.append(str(Path(__file__).parents[2] / "asv_bench"))
from fnarray_kernels import grid
from tests.control.test_against_jax import ROWS
from tests.replay import corpus

from . import wider
from .compare import Report, both
from .host import HOST
from .programs import EVERY_NAME as EVERY

TARGETS = {"one": ONE_THREAD, "four": simulated(4), "lowered": HOST}
ELEMENTWISE = {
    "chain": lambda x: jnp.tanh(x) * x + jnp.sin(x) / (1 + x * x),
    "gelu": fnarray.nn.gelu,
    "roots": lambda x: jnp.cbrt(x) + jnp.sqrt(abs(x)) * jnp.log1p(abs(x)),
    "errors": lambda x: lax.erf(x) * 0.5,
    "powers": lambda x: abs(x) ** 1.7 + x**3 + jnp.exp2(x),
    "integers": lambda x: (x * 100).astype(jnp.int32) // 7 % 5,
    "halves": lambda x: (x.astype(jnp.bfloat16) * 3 + 1).astype(jnp.float16),
}


def check(report: Report) -> None:
    """Fail with the first difference."""
    assert report.programs
    assert not report.differences, report.differences[0]


@pytest.mark.parametrize("lanes", TARGETS)
@pytest.mark.parametrize("name", EVERY)
def test_programs_agree(name: str, lanes: str) -> None:
    """Results are the processor's: with one lane, with four that meet, and as lowered for a GPU."""
    f, args = EVERY[name]
    report = Report()
    # Newton's method would take another number of turns where products are rounded once.
    with both(report, TARGETS[lanes]), scoped("effects", "off"), scoped("cuda_fma", False):
        fnarray.jit(lambda *xs: f(*xs))(*args)
    check(report)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_control_flow_agrees(row) -> None:
    """Branches and loops, on one thread or turned by the driver, give the same."""
    report = Report()
    f = row.program(lax)
    with both(report), scoped("effects", "off"):
        fnarray.jit(lambda *args: f(*args))(*row.args)
    check(report)


def _corpus(part: str, every: int, lanes: str) -> Report:
    report, count = Report(), iter(range(1 << 30))

    def run(f, *args):
        if next(count) % every == 0:
            try:
                fnarray.jit(f)(*args)
            except (TypeError, ValueError, NotImplementedError, fnarray.errors.FnarrayError):
                return "refused by both"
        return ""

    with (
        both(report, TARGETS[lanes]),
        mock.patch.object(corpus, "text_of", run),
        scoped("effects", "off"),
    ):
        for _ in getattr(corpus, part)():
            pass
    return report


@pytest.mark.parametrize(("every", "lanes"), [(11, "one"), (23, "four"), (9, "lowered")])
def test_operations_agree(every: int, lanes: str) -> None:
    """Cases of all operations, in all dtypes that they take, give the same."""
    check(_corpus("operations", every, lanes))


@pytest.mark.parametrize(("every", "lanes"), [(9, "one"), (17, "four"), (10, "lowered")])
def test_random_programs_agree(every: int, lanes: str) -> None:
    """Random programs, their gradients and batches give the same."""
    check(_corpus("random_programs", every, lanes))


@pytest.mark.parametrize("lanes", TARGETS)
def test_wider_programs_agree(lanes: str) -> None:
    """Updates, windows, sorts, keys and linear algebra of all dtypes, one after the other."""
    report = Report()
    with both(report, TARGETS[lanes]), scoped("effects", "off"), scoped("cuda_fma", False):
        for seed in (2, 7):
            run, args = wider.program(seed)
            fnarray.jit(run)(*args)
    check(report)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", TARGETS)
@pytest.mark.parametrize("part", ["operations", "random_programs"])
def test_the_whole_corpus_agrees(part: str, lanes: str) -> None:
    """All of both."""
    check(_corpus(part, 1, lanes))


def test_a_missing_barrier_shows() -> None:
    """Lanes that read what others write, without waiting, get something else."""

    def shifted(x, out, n, wait):
        i = grid.lane()
        x[i] = i + 1.0
        if wait:
            grid.sync()
        out[i] = x[(i + 1) % n]

    def run(wait: bool) -> np.ndarray:
        out = np.zeros(8)
        grid.run(shifted, 1, 8, np.zeros(8), out, 8, wait)
        return out

    np.testing.assert_array_equal(run(True), [2, 3, 4, 5, 6, 7, 8, 1])
    assert (run(False) != run(True)).any()


@pytest.mark.parametrize("lanes", [32, 64, 96 + 32])
def test_folds_of_a_block_add_up_its_warps(lanes: int, monkeypatch) -> None:
    """The text that a GPU gets for sums over a block, on lanes that meet; all have the result."""
    shared: dict[int, float] = {}

    def from_warp(x, distance):
        there = grid.from_lane(x, distance)
        return there if grid.lane() % 32 + distance < 32 else x

    monkeypatch.setattr(block, "from_warp", from_warp)
    monkeypatch.setattr(block, "show", lambda x, place: shared.update({place: x}))
    monkeypatch.setattr(block, "shown", lambda like, place: shared[place])
    given = np.random.default_rng(0).standard_normal(lanes)
    for word, fold in ((grid.block_sum, np.sum), (grid.block_max, np.max)):
        out = np.zeros(lanes)

        def kernel(out, word=word):
            out[grid.lane()] = block.TEXTS[word](given[grid.lane()])

        grid.run(kernel, 1, lanes, out)
        np.testing.assert_allclose(out, fold(given), rtol=1e-12)


def test_errors_of_lanes_are_raised() -> None:
    """The first error of a lane ends the others, which may wait at a barrier."""

    def failing(x):
        if grid.lane() == 1:
            raise ZeroDivisionError
        grid.sync()

    with pytest.raises(ZeroDivisionError):
        grid.run(failing, 2, 4, np.zeros(1))


def _same_bits(f, args) -> Report:
    report = Report(exact=True)
    with both(report, HOST), scoped("effects", "off"), scoped("cuda_fma", False):
        fnarray.jit(lambda *xs: f(*xs))(*args)
    return report


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_without_contraction_elementwise_bits_are_the_processors(name: str) -> None:
    """Scalar words are the same instructions on both."""
    x = np.random.default_rng(0).standard_normal(1001, np.float32) * 3
    check(_same_bits(ELEMENTWISE[name], (x,)))
