"""Control flow gives JAX's values, dtypes, weak types and printed graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.lax


@dataclass(frozen=True, eq=False)
class Row:
    """A program, written once for both packages, and its arguments."""

    name: str
    program: Callable[[Any], Callable[..., Any]]
    args: tuple[Any, ...]


X = np.arange(5, dtype=np.float32)
X.flags.writeable = False  # branches capture it
F = np.float32(2.5)
TABLE = (X * 1.5, np.arange(10, dtype=np.int32).reshape(5, 2))


def _powers(lax):
    return lambda n, x: lax.fori_loop(0, n, lambda i, c: lax.mul(c, x), F)


def _collatz(lax):
    def step(state):
        n, turns = state
        odd = lax.eq(lax.rem(n, 2), 1)
        following = lax.cond(odd, lambda n: lax.add(lax.mul(n, 3), 1), lambda n: lax.div(n, 2), n)
        return following, lax.add(turns, 1)

    return lambda n: lax.while_loop(lambda s: lax.gt(s[0], 1), step, (n, 0))


def _nested(lax):
    def row(c, x):
        inner = lax.fori_loop(0, 3, lambda i, v: lax.add(lax.mul(v, x), c["w"]), c["w"])
        return {"w": inner, "n": lax.add(c["n"], 1)}, (inner, x)

    return lambda xs: lax.scan(row, {"w": F, "n": 0}, xs)


ROWS = (
    Row(
        "associative_scan-other-sequence",
        lambda lax: lambda x: lax.associative_scan(lambda a, b: [*map(lax.add, a, b)], (x, x)),
        (X,),
    ),
    Row(
        "scan-length-float",
        lambda lax: lambda x: lax.scan(lambda c, _: (lax.mul(c, x), c), x, None, length=3.0),
        (F,),
    ),
    Row("cond", lambda lax: lambda p, x: lax.cond(p, lax.sin, lax.cos, x), (True, X)),
    Row("cond-number", lambda lax: lambda p, x: lax.cond(p, lax.sin, lax.cos, x), (0, X)),
    Row("cond-float", lambda lax: lambda p, x: lax.cond(p, lax.sin, lax.cos, x), (0.5, X)),
    Row(
        "cond-operand",
        lambda lax: lambda p: lax.cond(p, lambda x: 1, lambda x: 2, operand=None),
        (True,),
    ),
    Row(
        "cond-legacy", lambda lax: lambda p, x: lax.cond(p, x, lax.sin, F, lambda y: x), (False, X)
    ),
    Row(
        "cond-captures",
        lambda lax: lambda p, x: lax.cond(p, lambda: lax.add(x, X), lambda: x),
        (False, X),
    ),
    Row("cond-weak", lambda lax: lambda p, x: lax.cond(p, lambda: 1.0, lambda: x), (True, F)),
    Row(
        "cond-tree",
        lambda lax: (
            lambda p, x: lax.cond(
                p, lambda t: {"a": t[0], "b": t}, lambda t: {"a": F, "b": (t[1], 2.0)}, (F, x)
            )
        ),
        (True, 1.0),
    ),
    Row("switch", lambda lax: lambda i, x: lax.switch(i, [lax.sin, lax.cos, lax.neg], x), (1, X)),
    Row("switch-low", lambda lax: lambda i, x: lax.switch(i, [lax.sin, lax.cos], x), (-7, X)),
    Row(
        "switch-high",
        lambda lax: lambda i, x: lax.switch(i, [lax.sin, lax.cos], x),
        (np.uint8(7), X),
    ),
    Row("switch-one", lambda lax: lambda i, x: lax.switch(i, [lax.sin], x), (3, X)),
    Row(
        "while",
        lambda lax: (
            lambda x: lax.while_loop(lambda c: lax.lt(c, 100.0), lambda c: lax.mul(c, 2.0), x)
        ),
        (3.0,),
    ),
    Row(
        "while-captures",
        lambda lax: lambda x, y: lax.while_loop(lambda c: lax.lt(c, y), lambda c: lax.mul(c, x), x),
        (F, np.float32(1e3)),
    ),
    Row(
        "while-weak",
        lambda lax: lambda x: lax.while_loop(lambda c: lax.lt(c, F), lambda c: lax.add(c, F), x),
        (0.0,),
    ),
    Row("collatz", _collatz, (27,)),
    Row(
        "fori-static",
        lambda lax: lambda x: lax.fori_loop(2, 7, lambda i, c: lax.add(c, i), x),
        (1,),
    ),
    Row(
        "fori-empty", lambda lax: lambda x: lax.fori_loop(7, 2, lambda i, c: lax.add(c, i), x), (1,)
    ),
    Row(
        "fori-unroll",
        lambda lax: lambda x: lax.fori_loop(0, 9, lambda i, c: lax.add(c, i), x, unroll=4),
        (1,),
    ),
    Row("fori-traced", _powers, (3, F)),
    Row(
        "fori-invariant",
        lambda lax: lambda x: lax.fori_loop(0, 3, lambda i, c: (lax.add(c[0], c[1]), c[1]), (x, x)),
        (F,),
    ),
    Row(
        "scan",
        lambda lax: lambda x: lax.scan(lambda c, y: (lax.add(c, y), lax.mul(c, y)), F, x),
        (X,),
    ),
    Row(
        "scan-reverse",
        lambda lax: lambda x: lax.scan(lambda c, y: (lax.sub(y, c), c), F, x, reverse=True),
        (X,),
    ),
    Row(
        "scan-unroll",
        lambda lax: lambda x: lax.scan(lambda c, y: (lax.sub(y, c), c), F, x, unroll=2),
        (X,),
    ),
    Row(
        "scan-length",
        lambda lax: lambda x: lax.scan(lambda c, _: (lax.mul(c, x), None), F, None, length=4),
        (F,),
    ),
    Row(
        "scan-zero",
        lambda lax: lambda x: lax.scan(lambda c, _: (lax.mul(c, x), c), F, None, length=0),
        (F,),
    ),
    Row(
        "scan-tree",
        lambda lax: (
            lambda xs: lax.scan(lambda c, x: ({"a": lax.add(c["a"], x[0])}, x), {"a": F}, xs)
        ),
        (TABLE,),
    ),
    Row("scan-constant", lambda lax: lambda x: lax.scan(lambda c, y: (c, 2.0), F, x), (X,)),
    Row(
        "scan-forward",
        lambda lax: lambda x: lax.scan(lambda c, y: (lax.add(c, 1.0), (y, c)), 0.0, x),
        (X,),
    ),
    Row("scan-strengthened", lambda lax: lambda x: lax.scan(lambda c, y: (y, c), 1, x), (X,)),
    Row("scan-nested", _nested, (X,)),
    Row("map", lambda lax: lambda x: lax.map(lambda t: lax.mul(t, 2.0), x), (X,)),
    Row("map-tree", lambda lax: lambda t: lax.map(lambda r: {"s": r[0], "t": r}, t), (TABLE,)),
    Row("associative", lambda lax: lambda x: lax.associative_scan(lax.add, x), (X,)),
    Row(
        "associative-even",
        lambda lax: lambda x: lax.associative_scan(lax.mul, x),
        (np.arange(1, 9, dtype=np.int32),),
    ),
    Row(
        "associative-reverse",
        lambda lax: lambda x: lax.associative_scan(lax.max, x, reverse=True),
        (np.float32([3, 1, 4, 1, 5, 9, 2]),),
    ),
    Row(
        "associative-axis",
        lambda lax: lambda x: lax.associative_scan(lax.add, x, axis=1),
        (np.arange(12, dtype=np.float32).reshape(2, 6),),
    ),
    Row(
        "associative-pair",
        lambda lax: (
            lambda t: lax.associative_scan(
                lambda a, b: (lax.mul(a[0], b[0]), lax.add(lax.mul(b[0], a[1]), b[1])), t
            )
        ),
        ((X, X),),
    ),
    Row("associative-two", lambda lax: lambda x: lax.associative_scan(lax.add, x), (X[:2],)),
    Row("associative-none", lambda lax: lambda x: lax.associative_scan(lax.add, x), (X[:0],)),
    Row(
        "associative-bool", lambda lax: lambda x: lax.associative_scan(lax.bitwise_or, x), (X > 2,)
    ),
)
ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def leaves_of(value: Any) -> list[tuple[Any, ...]]:
    leaves = fnarray.tree.leaves(value)
    return [(np.asarray(x), getattr(x, "weak_type", None)) for x in leaves]


def assert_same(got: Any, want: Any, *, weak: bool = True) -> None:
    mine, theirs = leaves_of(got), leaves_of(want)
    assert str(fnarray.tree.structure(got)) == str(fnarray.tree.structure(want))
    for (x, w), (y, v) in zip(mine, theirs, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-6)
        # What JAX forwards it may return as the bare Python number.
        assert not weak or v is None or w == v


@functools.cache
def reference(row: Row) -> Any:
    import jax

    return jax.jit(row.program(jax.lax))(*row.args)


@ROW
def test_eager(row, jax):
    """Called outside jit, a program gives JAX's values, dtypes, weak types and structure."""
    assert_same(row.program(fnarray.lax)(*row.args), reference(row))


@ROW
def test_jitted(row, jax):
    """Compiled as a whole, a program gives JAX's result."""
    assert_same(fnarray.jit(row.program(fnarray.lax))(*row.args), reference(row))


# A Python loop cannot stack an int beside floats: it does not know what comes.
LOOPABLE = [row for row in ROWS if row.name != "scan-strengthened"]


@pytest.mark.parametrize("row", LOOPABLE, ids=lambda row: row.name)
def test_op_by_op(row):
    """Under disable_jit control flow runs as Python does, to the same values."""
    want = fnarray.jit(row.program(fnarray.lax))(*row.args)
    if row.name == "scan-zero":
        with pytest.raises(ValueError, match="length 0"), fnarray.disable_jit():
            row.program(fnarray.lax)(*row.args)
        return
    with fnarray.disable_jit():
        got = row.program(fnarray.lax)(*row.args)
    for x, y in zip(fnarray.tree.leaves(got), fnarray.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)


@ROW
def test_printed(row, jax):
    """The traced program prints as JAX's does, character for character."""
    args = row.args
    assert str(fnarray.make_jaxpr(row.program(fnarray.lax))(*args)) == str(
        jax.make_jaxpr(row.program(jax.lax))(*args)
    )


def test_carry_of_narrow_numbers_where_64_bits_are_on():
    """A Python number of the first carry gives way to what the body makes, however wide it is."""
    for lib in (jax, fnarray):
        with lib.enable_x64(True):
            one, half = lib.numpy.int32(1), lib.numpy.float32(0.5)
            counts = lib.lax.while_loop(lambda c: c < 3, lambda c, one=one: one + c, 0)
            sums, each = lib.lax.scan(lambda c, _, half=half: (half + c, c), 0.0, None, length=2)
            powers = lib.lax.fori_loop(0, 2, lambda i, c, half=half: half * c, 1.0)
            found = [x.dtype for x in (counts, sums, each, powers)]
            assert found == [np.int32, np.float32, np.float32, np.float32]


def test_loops_of_batches_without_jit():
    """Under ``disable_jit`` a condition that differs between examples cannot be Python's."""
    for lib in (jax, fnarray):

        def double(x, lib=lib):
            return lib.lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)

        with lib.disable_jit():
            assert list(lib.vmap(double)(np.arange(1.0, 4.0, dtype=np.float32))) == [16, 16, 12]
            assert lib.grad(double)(2.0) == 8
