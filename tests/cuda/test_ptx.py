"""The PTX of kernels, run with all lanes of a grid, beside the processor's results."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.compile.cuda import build
from fnarray.compile.emit.source import KernelSource
from fnarray.compile.pipeline import compile_graph
from fnarray.config import scoped

from .compare import Report, both, numbers, ulps
from .programs import EVERY_NAME, PROGRAMS
from .ptx import PTX, Kernel, kernel_of
from .ptx_memory import Fault

MORE = (
    "cumulative_long",
    "sorted_by_two_keys",
    "product_of_many_terms",
    "whole_argmin",
    "read_along_both_axes",
    "ends_joined",
    "product_of_halves",
    "sums_of_few",
)


@pytest.mark.parametrize("name", [*PROGRAMS, *MORE])
def test_programs_agree(name: str) -> None:
    """Results are the processor's; ``python -m tests.cuda --ptx`` runs the whole corpus."""
    f, args = EVERY_NAME[name]
    report = Report()
    with both(report, PTX), scoped("effects", "off"), scoped("cuda_fma", False):
        fnarray.jit(lambda *xs: f(*xs))(*args)
    assert report.programs
    assert not report.differences, report.differences[0]


def test_contracted_sums_agree() -> None:
    """With a multiplier that adds as well."""
    report = Report()
    f, args = EVERY_NAME["layer_norm_keeps_sums_in_registers"]
    with both(report, PTX), scoped("effects", "off"), scoped("cuda_fma", True):
        fnarray.jit(lambda *xs: f(*xs))(*args)
    assert not report.differences, report.differences[0]


def test_functions_of_the_hardware_are_close() -> None:
    """Their instructions are off by as much as they may be; special numbers are what they are."""
    x, y = numbers()
    got: list[np.ndarray] = []

    def run(f, *args):
        graph = fnarray.jit(f).lower(*args)._traced.closed
        with scoped("cuda_fma", True):
            (out,) = compile_graph(graph, PTX).run(*args)
        got.append(out)
        return out

    with np.errstate(all="ignore"):
        wide = np.tanh(x.astype(np.float64))
        assert ulps(run(jnp.tanh, x), wide) <= 2.5
        quotient = x.astype(np.float64) / y.astype(np.float64)
        assert ulps(run(jnp.divide, x, y), quotient) <= 2
    assert np.signbit(got[0][:2]).tolist() == [False, True]
    assert np.array_equal(np.isnan(got[1]), np.isnan(quotient))


def _run(body: str, lanes: int = 64) -> np.ndarray:
    text = "def kernel(x, out):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    out = np.zeros(lanes, np.float32)
    x = np.arange(lanes, dtype=np.float32)
    kernel_of(KernelSource(text, ("f32[1]", "f32[1]")))(1, lanes, x, out)
    return out


TURNED = """r = room(f32(0.0), 64)
r[lane()] = x[lane()]
{sync}
out[lane()] = r[63 - lane()]
"""


def test_lanes_meet() -> None:
    """What a lane wrote before a barrier, others read behind it."""
    np.testing.assert_array_equal(_run(TURNED.format(sync="sync()")), np.arange(64)[::-1])


def test_a_missing_barrier_is_found() -> None:
    """Also where the order of this run would have hidden it."""
    with pytest.raises(Fault, match="no barrier between"):
        _run(TURNED.format(sync=""))


SUMMED = """r = room(f32(0.0), 4)
if lane() < 4:
    r[lane()] = f32(0.0)
{first}
atomic_add(r, lane() % 4, x[lane()])
{then}
out[lane()] = r[lane() % 4]
"""


def test_sums_of_a_block_are_behind_barriers() -> None:
    """Lanes may add at once; what was there before, and who reads after, is apart."""
    want = np.tile(np.arange(64.0).reshape(16, 4).sum(0), 16)
    np.testing.assert_array_equal(_run(SUMMED.format(first="sync()", then="sync()")), want)
    for first, then in (("", "sync()"), ("sync()", "")):
        with pytest.raises(Fault, match="no barrier between"):
            _run(SUMMED.format(first=first, then=then))


def test_lanes_that_write_one_place_are_found() -> None:
    """Which of them comes last is chance."""
    with pytest.raises(Fault, match="write"):
        _run("out[0] = x[lane()]")


def test_a_barrier_for_some_lanes_is_found() -> None:
    """The others never come."""
    with pytest.raises(Fault, match="never come"):
        _run("if lane() < 32:\n    sync()\nout[lane()] = x[lane()]")


@pytest.mark.parametrize("text", ["out[lane()] = x[lane() + 1000]", "out[lane() + 1] = x[lane()]"])
def test_memory_of_others_is_found(text) -> None:
    """Reads and writes behind an array's end."""
    with pytest.raises(Fault, match="out of bounds"):
        _run(text)


def test_memory_off_its_alignment_is_found() -> None:
    """Four numbers at once begin at a multiple of sixteen bytes."""
    with pytest.raises(Fault, match="off its alignment"):
        _run("store4(out, 4 * (lane() // 32) + 1, load4(x, 0))")


def test_a_block_has_whole_warps() -> None:
    """Sums exchange between the lanes of a warp, all of which must be there."""
    source = KernelSource(
        "def kernel(x, out):\n    out[lane()] = block_sum(x[lane()])\n", ("f32[1]", "f32[1]")
    )
    text = build.assembly(source, "sm_90")
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    Kernel(text, source.signature).run(1, 64, x, out)
    np.testing.assert_array_equal(out, np.full(64, 64))
    with pytest.raises(Fault, match="never come"):
        Kernel(text, source.signature).run(1, 16, x, out)
