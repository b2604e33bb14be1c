"""Random chains of updates of slices: NumPy's results, the same bits compiled as evaluated.

Boxes go forwards and backwards, with steps, with integers for some axes, and may be empty; values
are numbers, or are read from other arrays, or from the array that is updated, inside of the box and
outside; old values live on or die; chains run as they stand, and as bodies of loops and branches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu.target import CPU
from fnarray.compile.pipeline import compile_graph
from fnarray.core.avals import ShapedArray
from fnarray.core.trace import trace_graph
from tests.property.programs import COMMON

WAYS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
Index = tuple[int | slice, ...]


@dataclass(frozen=True)
class Step:
    """One update: ``arrays[target]`` at ``index``, by a number plus elements of other arrays.

    ``kept`` says whether the updated array stands beside the old one, or in place of it.
    """

    target: int
    index: Index
    way: str
    number: float
    reads: tuple[tuple[int, Index], ...]
    kept: bool


Steps = tuple[Step, ...]


@st.composite
def indices(draw, shape: tuple[int, ...]) -> Index:
    """Boxes of an array, and rows of it."""
    found: list[int | slice] = []
    for n in shape:
        if draw(st.integers(0, 3)) == 0:
            found.append(draw(st.integers(-n, n - 1)))
            continue
        step = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2]))
        ends = st.one_of(st.none(), st.integers(-n - 1, n + 1))
        found.append(slice(draw(ends), draw(ends), step))
    return tuple(found)


@st.composite
def alike(draw, shape: tuple[int, ...], index: Index) -> Index:
    """Boxes of as many elements along each axis as another one."""
    found: list[int | slice] = []
    for n, ix in zip(shape, index, strict=True):
        if isinstance(ix, int):
            found.append(draw(st.integers(0, n - 1)))
            continue
        count = len(range(*ix.indices(n)))
        first = draw(st.integers(0, n - count))
        forwards = slice(first, first + count)
        last = first - 1 if first else None
        backwards = slice(first + count - 1, last, -1) if count else forwards
        found.append(draw(st.sampled_from([ix, forwards, forwards, backwards])))
    return tuple(found)


@st.composite
def chains(draw, ways: tuple[str, ...] = ("set", *WAYS)) -> tuple[tuple[int, ...], Steps]:
    """A shape, and updates of arrays of that shape: of three to begin with."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    steps: list[Step] = []
    count = 3
    for _ in range(draw(st.integers(1, 6))):
        index = draw(indices(shape))
        read = st.tuples(st.integers(0, count - 1), alike(shape, index))
        kept = draw(st.integers(0, 3)) == 0
        way = draw(st.sampled_from(ways))
        number = draw(st.integers(-3, 3))
        reads = tuple(draw(st.lists(read, max_size=2)))
        target = draw(st.integers(0, count - 1))
        steps.append(Step(target, index, way, number, reads, kept))
        count += kept
    return shape, tuple(steps)


def updated(steps: Steps, arrays: Any) -> list[Any]:
    """Run a chain on arrays that have ``.at``."""
    arrays = list(arrays)
    for s in steps:
        x = arrays[s.target]
        value: Any = np.asarray(s.number).astype(x.dtype)[()]
        for k, index in s.reads:
            value = value + arrays[k][index]
        new = getattr(x.at[s.index], s.way)(value)
        if s.kept:
            arrays.append(new)
        else:
            arrays[s.target] = new
    return arrays


def by_numpy(steps: Steps, arrays: Any) -> list[np.ndarray]:
    """Run a chain on NumPy's arrays."""
    arrays = [a.copy() for a in arrays]
    for s in steps:
        x = arrays[s.target]
        value: Any = np.asarray(s.number).astype(x.dtype)[()]
        for k, index in s.reads:
            value = value + arrays[k][index]
        new = x.copy()
        new[s.index] = value if s.way == "set" else WAYS[s.way](new[s.index], value)
        if s.kept:
            arrays.append(new)
        else:
            arrays[s.target] = new
    return arrays


def inputs(shape: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    """Arrays of small integers, whose sums and products are exact."""
    rng = np.random.default_rng(len(shape))
    found = [rng.integers(-4, 5, shape) for _ in range(3)]
    if dtype == "complex64":
        return [
            (a + 1j * b).astype(dtype) for a, b in zip(found, found[1:] + found[:1], strict=True)
        ]
    return [a.astype(dtype) for a in found]


def same(got: Any, want: Any) -> None:
    """Compare results exactly."""
    for g, w in zip(got, want, strict=True):
        g = np.asarray(g)
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


@settings(max_examples=100, **COMMON)
@given(chains())
def test_chains_give_what_numpy_does(chain: Any) -> None:
    """On arguments, on values made before, on zeros that several updates begin from."""
    shape, steps = chain
    a, b, c = inputs(shape)

    def f(a, b, c):
        return updated(steps, (a, b * 2, fnp.zeros_like(c)))

    want = by_numpy(steps, (a, b * 2, np.zeros_like(c)))
    same(fnarray.jit(f)(a, b, c), want)
    same(f(*map(fnp.asarray, (a, b, c))), want)


@settings(max_examples=50, **COMMON)
@given(chains(), st.sampled_from(["fori", "scan", "while", "cond"]))
def test_chains_in_bodies_give_what_numpy_does(chain: Any, kind: str) -> None:
    """Carries are updated in place, twice, and read on the way."""
    shape, steps = chain
    steps = tuple(
        replace(s, reads=tuple(r for r in s.reads if r[0] < 3))
        for s in steps
        if not s.kept and s.target < 3
    )
    arrays = inputs(shape)

    def f(*arrays):
        body = lambda c: tuple(updated(steps, c))  # noqa: E731
        if kind == "fori":
            return lax.fori_loop(0, 2, lambda i, c: body(c), arrays)
        if kind == "scan":
            return lax.scan(lambda c, _: (body(c), None), arrays, None, length=2)[0]
        if kind == "while":
            return lax.while_loop(
                lambda c: c[0] < 2, lambda c: (c[0] + 1, body(c[1])), (0, arrays)
            )[1]
        return lax.cond(arrays[0].sum() < 10**6, body, lambda c: c, body(arrays))

    with np.errstate(all="ignore"):
        want = by_numpy(steps, by_numpy(steps, arrays))
    same(fnarray.jit(f)(*arrays), want)


@settings(max_examples=40, **COMMON)
@given(
    chains(ways=("set", "add", "multiply")),
    st.sampled_from(["float16", "int32", "uint8", "complex64"]),
)
def test_chains_hold_in_other_dtypes(chain: Any, dtype: str) -> None:
    """Compiled results have the bits of evaluated ones."""
    shape, steps = chain
    arrays = [fnp.asarray(a) for a in inputs(shape, dtype)]
    want = updated(steps, arrays)
    same(fnarray.jit(lambda *a: updated(steps, a))(*arrays), [np.asarray(w) for w in want])


@settings(max_examples=20, **COMMON)
@given(chains(ways=("set",)))
def test_chains_hold_for_booleans(chain: Any) -> None:
    """Sums of booleans are unions."""
    shape, steps = chain
    arrays = [a > 0 for a in inputs(shape)]
    steps = tuple(replace(s, number=abs(s.number)) for s in steps)
    same(fnarray.jit(lambda *a: updated(steps, a))(*arrays), by_numpy(steps, arrays))


@settings(max_examples=20, **COMMON)
@given(chains(ways=("set", "add", "multiply")))
def test_gradients_are_those_of_jax(chain: Any) -> None:
    """Transposed updates are slices and updates."""
    shape, steps = chain
    arrays = inputs(shape)

    def loss(*arrays):
        return sum(((k + 1) * x * x).sum() for k, x in enumerate(updated(steps, arrays)))

    got = fnarray.jit(fnarray.grad(loss, argnums=(0, 1, 2)))(*arrays)
    want = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*map(jax.numpy.asarray, arrays))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


@settings(max_examples=30, **COMMON)
@given(chains(), st.sampled_from([(0, 10**6), (10**6, 0)]))
def test_chains_hold_in_many_kernels_and_chunks(chain: Any, limits: tuple[int, int]) -> None:
    """One statement a kernel, every loop in chunks: what is overwritten comes from elsewhere."""
    shape, steps = chain
    arrays = inputs(shape)
    kernel, parallel = limits
    target = replace(CPU, limits=replace(CPU.limits, kernel=kernel, parallel=parallel))
    avals = [ShapedArray(a.shape, a.dtype) for a in arrays]
    closed = trace_graph(lambda a, b, c: updated(steps, (a, b * 2, c)), avals, "chain")
    got = compile_graph(closed, target).run(*map(np.asarray, closed.consts), *arrays)
    same(got, by_numpy(steps, (arrays[0], arrays[1] * 2, arrays[2])))


@pytest.mark.slow
@settings(max_examples=2000, **{**COMMON, "derandomize": False})
@given(chains())
def test_many_chains_give_what_numpy_does(chain: Any) -> None:
    """The same, drawn anew each time."""
    shape, steps = chain
    arrays = inputs(shape)
    same(fnarray.jit(lambda *a: updated(steps, a))(*arrays), by_numpy(steps, arrays))
