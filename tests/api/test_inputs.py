"""What any input gets, eagerly and compiled: JAX's result, or an error that says what was wrong."""

from __future__ import annotations

import array
import decimal
import fractions
import re
from itertools import product
from typing import NamedTuple

import jax.numpy
import ml_dtypes
import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.config import enable_x64

from ..oracle import in_one

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = tuple(np.dtype(f"{s}int{w}") for s in ("", "u") for w in (8, 16, 32, 64))


def same(got, want) -> None:
    """Trees agree: structure, shapes, dtypes, weak types, and values, NaN and -0 included."""
    gots, got_tree = jax.tree.flatten(got)
    wants, want_tree = jax.tree.flatten(want)
    assert got_tree == want_tree
    for g, w in zip(gots, wants, strict=True):
        assert type(np.asarray(g)) is np.ndarray
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        assert g.weak_type == w.weak_type or g.dtype == bool
        a, b = np.asarray(g), np.asarray(w)
        if a.dtype.kind in "fcV":
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            eps = 2.0 ** {2: -8, 4: -21, 8: -50}[a.real.dtype.itemsize]
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=eps, atol=0)
        else:
            np.testing.assert_array_equal(a, b)


def agrees(oracle, text: str, wide: bool = False, **values) -> None:
    """An expression over ``np`` and ``lax`` gives JAX's result, op by op and compiled."""
    code = f"lambda np, lax: lambda values: (lambda {', '.join(values)}: {text})(**values)"
    run = eval(code)
    with oracle.enable_x64(wide), enable_x64(wide):
        theirs = {k: oracle.numpy.asarray(v) for k, v in values.items()}
        want = in_one(run(oracle.numpy, oracle.lax), theirs)
        ours = run(fnp, lax)
        same(ours({k: fnp.asarray(v) for k, v in values.items()}), want)
        same(fa.jit(ours)(values), want)


# ---- how an array lies in memory -----------------------------------------------------------------


class Sub(np.ndarray):
    """A subclass with another idea of arithmetic."""

    def __add__(self, other):
        return self * 0


def _unaligned(x: np.ndarray) -> np.ndarray:
    out = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    assert out.dtype.itemsize == 1 or not out.flags.aligned
    return out


LAYOUTS = {
    "contiguous": lambda x, _: x.copy(),
    "fortran": lambda x, _: np.asfortranarray(x),
    "transposed": lambda x, _: x.T.copy().T,
    "reversed": lambda x, _: x[::-1, ::-1].copy()[::-1, ::-1],
    "strided": lambda x, _: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "broadcast": lambda x, _: np.broadcast_to(x[:1], x.shape),
    "read-only": lambda x, _: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "byte-swapped": lambda x, _: x.astype(x.dtype.newbyteorder()),
    "unaligned": lambda x, _: _unaligned(x),
    "mapped": lambda x, path: np.memmap(path / "x", x.dtype, "w+", shape=x.shape),
    "subclass": lambda x, _: x.copy().view(Sub),
    "matrix": lambda x, _: x.copy().view(np.matrix),
    "record": lambda x, _: np.rec.array(x.copy()),
    "field": lambda x, _: np.array([(0, row) for row in x], [("a", "i1"), ("b", x.dtype, 4)])["b"],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64, np.float16, "?"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype, tmp_path):
    """Results depend on values alone, share no memory with the input, and leave it as it was."""
    x = LAYOUTS[layout](X.astype(dtype), tmp_path)
    if layout == "mapped":
        x[...] = X
    before, plain = x.tobytes(), np.array(x, subok=False)
    # The oracle is NumPy, in the dtype that is canonical without 64-bit types: JAX refuses some.
    short = {"float64": np.float32, "int64": np.int32}.get(plain.dtype.name, plain.dtype)
    plain = plain.astype(np.dtype(short).newbyteorder("="))
    for run in (_layout_program, _compiled_layout_program):
        out = run({"x": x})
        expected = {"same": plain, "turned": plain.T, "first": plain[0], "twice": [plain, plain]}
        for name, want in expected.items():
            got = out[name] if isinstance(want, list) else [out[name]]
            for g, w in zip(got, want if isinstance(want, list) else [want], strict=True):
                view = np.asarray(g)
                assert type(view) is np.ndarray
                assert view.dtype == w.dtype
                np.testing.assert_array_equal(view, w)
                assert not np.shares_memory(view, x)
                # Nothing of the argument's class is left to act on what follows.
                np.testing.assert_array_equal(np.asarray(g.reshape(-1)), w.reshape(-1))
        np.testing.assert_array_equal(np.asarray(out["sum"]), np.cumsum(plain * 1, 1)[:, -1])
    assert x.tobytes() == before


def _layout_program(tree):
    x = fnp.asarray(tree["x"])
    return {
        "same": x,
        "turned": x.T,
        "first": x[0],
        "twice": [x, x],
        "sum": (x * 1).sum(1, dtype=(x * 1).dtype),
    }


_compiled_layout_program = fa.jit(_layout_program)


@pytest.mark.parametrize(
    "take", [fnp.asarray, fa.device_put, lax.stop_gradient, fa.jit(lambda x: x)]
)
def test_later_writes_to_the_argument_are_not_seen(take):
    """An array made of a NumPy array is a copy of it."""
    x = X.copy()
    y = take(x)
    x[...] = -1
    np.testing.assert_array_equal(np.asarray(y), X)


def test_arrays_cannot_be_written_through_views():
    """What NumPy sees of an array is read-only; a copy is asked for by name."""
    y = fa.jit(lambda x: x + 1)(X)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(y)[0, 0] = 7
    np.array(y)[0, 0] = 7
    np.testing.assert_array_equal(np.asarray(y), X + 1)


@pytest.mark.parametrize(
    "x", [np.ma.masked_array(X, X > 5), np.ma.masked], ids=["array", "constant"]
)
@pytest.mark.parametrize("take", [lax.neg, fa.jit(lambda x: x)], ids=["eager", "compiled"])
def test_masked_arrays_are_refused(take, x, jax):
    """A mask would be lost without a word; JAX refuses too."""
    with pytest.raises(ValueError, match="masked"):
        jax.jit(lambda x: x)(x)
    with pytest.raises(ValueError, match="mask"):
        take(x)


def test_large_arrays():
    """200 MB goes through, whole, in pieces on several cores, and folded."""
    x = np.arange(50_000_000, dtype=np.int32)
    x[-1] = -5
    y, total, least = fa.jit(lambda x: (x + 1, x.sum(), x.min()))(x)
    got = np.asarray(y)
    assert (got[0], got[1 << 24], got[-1]) == (1, (1 << 24) + 1, -4)
    assert got.sum(dtype=np.int64) == x.sum(dtype=np.int64) + x.size
    assert int(total) == int(x.sum(dtype=np.int64).astype(np.int32))
    assert int(least) == int(lax.reduce_min(x, (0,))) == -5
    assert x[0] == 0


# ---- sizes ---------------------------------------------------------------------------------------

SIZES = """
x + 1
x.T * 2
x.sum()
x.sum(0)
x.sum(1)
x.prod(1)
x.any(0)
x.all()
np.cumsum(x, 1)
np.cumsum(x, 0)
np.sort(x, 1)
np.argsort(x, 0)
x @ x.T
x.T @ x
np.concatenate([x, x], 0)
np.concatenate([x, np.ones((2, x.shape[1]), x.dtype)])
x.reshape(-1, 1) if x.size else x.reshape(0, 1, 7)
x[:0]
x[:, ::-1]
x[:, None]
np.where(x > 0, x, -x)
np.broadcast_to(x, (2, *x.shape))
np.pad(x, 1)
np.stack([x, x], -1)
np.tile(x, (2, 1))
x.astype('int8')
x[np.zeros((0,), 'int32')]
lax.reduce_max(x, (0,))
lax.reduce_min(x, (0, 1))
np.exp(x).sum(1)
np.mean(x, 0)
np.zeros((0, 3)) @ np.zeros((3, 0))
np.zeros((2, 0)) @ np.zeros((0, 2))
""".strip().splitlines()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)], ids=str)
def test_zero_sizes(shape, jax):
    """Arrays without elements, and of one, have JAX's results."""
    text = f"[{', '.join(f'({line})' for line in SIZES)}]"
    agrees(jax, text, x=np.full(shape, 2, np.float32))


def test_rank_0(jax):
    """Scalars of every kind have JAX's results."""
    lines = (
        "x + 1, -x, x.sum(), np.cumsum(x), np.sort(x[None]), x.T, x.reshape(1, 1), x[None], x[...]",
        "np.where(x > 0, x, 0), x * x, x[()], np.stack([x, x]), np.broadcast_to(x, (2, 0)), abs(x)",
        "np.maximum(x, 2), np.ravel(x), np.dot(x, x), np.argmax(x), np.flip(x), np.squeeze(x)",
    )
    for value in (np.float32(2.5), np.int8(4), 7):
        agrees(jax, f"[{', '.join(lines)}]", x=value)


def test_reducing_nothing_that_has_no_start_is_an_error(jax):
    """The largest of no elements is refused, by name, eagerly and compiled."""
    x = np.zeros((0, 3), np.float32)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError):
            getattr(jax.numpy, name)(x)
        for wrap in (lambda f: f, fa.jit):
            with pytest.raises(ValueError, match=name):
                wrap(getattr(fnp, name))(x)


# ---- numbers -------------------------------------------------------------------------------------


def _edges(dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    values = {info.min, info.min + 1, -7, -1, 0, 1, 2, 7, info.max - 1, info.max}
    return np.array(sorted(v for v in values if v >= info.min), dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_division(dtype, jax):
    """By zero, of the least by -1, and of every sign: quotients, remainders, products."""
    edges = _edges(dtype)
    x, y = np.repeat(edges, edges.size), np.tile(edges, edges.size)
    agrees(
        jax,
        "[lax.div(x, y), lax.rem(x, y), lax.mul(x, y), x // y, x % y, np.divmod(x, y),"
        " np.fmod(x, y), x / y, lax.neg(x), lax.sign(x), x + y, x - y]",
        wide=dtype.itemsize == 8,
        x=x,
        y=y,
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(dtype, jax):
    """Past the width, by the width, by nothing, and by negative amounts."""
    width = 8 * dtype.itemsize
    by = [0, 1, width - 1, width, width + 1, 100] + ([-1, -100] if dtype.kind == "i" else [])
    edges = _edges(dtype)
    agrees(
        jax,
        "[lax.shift_left(x, y), lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y),"
        " x << y, x >> y]",
        wide=dtype.itemsize == 8,
        x=np.repeat(edges, len(by)),
        y=np.tile(np.array(by, dtype), edges.size),
    )


_REALS = [
    np.nan,
    np.inf,
    -np.inf,
    0,
    -0.0,
    0.99,
    -0.99,
    1.5,
    -1.5,
    126.9,
    127.5,
    128,
    -128.9,
    255.5,
]
_REALS += [256, -1, 65535, 65536, 2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1e4, 2.0**32, 1e30]
_REALS += [2.0**63, -(2.0**63), 2.0**64, -1e30, 1e-30]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_conversions_of_floats(dtype, jax):
    """NaN, infinities and values out of range become the integers they become in JAX."""
    with np.errstate(all="ignore"):
        x = np.array(_REALS, dtype)
    names = [d.name for d in INTEGERS if d.itemsize < 8] + [
        "bool",
        "float16",
        "bfloat16",
        "float32",
    ]
    text = f"[x.astype(t) for t in {names}]"
    agrees(jax, text, x=x)
    agrees(jax, f"[x.astype(t) for t in {[*names, 'int64', 'uint64', 'float64']}]", wide=True, x=x)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_conversions_of_integers(dtype, jax):
    """Integers wrap into narrower ones, and round into floats."""
    names = [d.name for d in INTEGERS] + ["bool", "float16", "bfloat16", "float32", "float64"]
    agrees(jax, f"[x.astype(t) for t in {names}]", wide=True, x=_edges(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_special_floats(dtype, jax):
    """Division by zero, NaN, infinities and signed zeros, in pairs."""
    v = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5], dtype)
    agrees(
        jax,
        "[x / y, lax.rem(x, y), x // y, x % y, np.maximum(x, y), np.minimum(x, y), x < y, x <= y,"
        " x == y, x != y, np.where(x > y, x, y), np.sign(x), abs(x), -x, np.isnan(x), np.isinf(x),"
        " np.isfinite(x), np.sqrt(x), np.floor(x), np.round(x), np.clip(x, -1, 1), np.signbit(x),"
        " np.nan_to_num(x), np.logical_and(x, y), x.reshape(7, 7).max(0), x.reshape(7, 7).min(1),"
        " x.reshape(7, 7).argmax(0), x.reshape(7, 7).argmin(1), np.sort(x), np.argsort(x),"
        " np.nanmax(x), np.reciprocal(x)]",
        wide=dtype is np.float64,
        x=np.repeat(v, v.size),
        y=np.tile(v, v.size),
    )


# ---- what is no array ----------------------------------------------------------------------------


class Point:
    """A class that no one registered as a container."""


class ArrayLike:
    """An object that NumPy takes for an array; a compiled function does not."""

    def __array__(self, dtype=None, copy=None):
        return X


NO_ARRAYS = {
    "str": "a",
    "bytes": b"ab",
    "strings": np.array(["a"]),
    "object": object(),
    "objects": np.array([1, None], object),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "records": np.zeros(2, [("a", "f4")]),
    "long double": np.ones(2, np.longdouble),
    "set": {1},
    "range": range(3),
    "function": len,
    "class": int,
    "Decimal": decimal.Decimal(1),
    "Fraction": fractions.Fraction(1, 2),
    "array.array": array.array("f", [1.0]),
    "memoryview": memoryview(b"abc"),
    "Point": Point(),
    "__array__": ArrayLike(),
}


@pytest.mark.parametrize("kind", NO_ARRAYS)
def test_what_is_no_array_is_refused_by_name(kind, jax):
    """A `TypeError`, as in JAX; it names the function, the argument, and what came."""
    bad = NO_ARRAYS[kind]

    def scale(left, right):
        return right

    with pytest.raises(TypeError):
        jax.jit(scale)(1, bad)
    with pytest.raises(TypeError) as caught:
        fa.jit(scale)(1, bad)
    assert "scale" in str(caught.value)
    assert "right" in str(caught.value)
    assert str(type(bad)) in str(caught.value) or repr(bad) in str(caught.value)
    with pytest.raises(TypeError):
        jax.lax.add(bad, bad)
    with pytest.raises(TypeError, match=r"lax\.add"):
        lax.add(bad, bad)
    with pytest.raises(TypeError, match=r"lax\.mul"):
        fa.jit(lambda x: lax.mul(x, bad), effects="off")(1.0)


@pytest.mark.parametrize("bad", [[1, 2], [[1, 2], [3]], None, (1.0,), {"a": 1}], ids=str)
def test_containers_are_no_operands(bad):
    """Operations take arrays; compiled functions take containers of them."""
    with pytest.raises(TypeError, match=r"lax\.add"):
        lax.add(bad, 1)
    with pytest.raises(TypeError, match=r"numpy\.add"):
        fnp.add(bad, 1)
    assert fa.tree.structure(fa.jit(lambda x: x)(bad)) == fa.tree.structure(bad)


@pytest.mark.parametrize("bad", [[[1, 2], [3]], [1, "north"], [None], {"a": 1}, [X, X[0]]], ids=str)
def test_lists_that_make_no_array(bad, jax):
    """Ragged and mixed lists are errors of the same type as in JAX."""
    with pytest.raises((TypeError, ValueError)) as theirs:
        jax.numpy.array(bad)
    with pytest.raises(theirs.type):
        fnp.array(bad)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40, 10**30, -(10**30)])
def test_python_ints_out_of_range(value, jax):
    """An int that does not fit is an `OverflowError` that gives it; never its low bits."""
    for run, word in (
        (lambda: fa.jit(lambda big: big + 1)(value), "big"),
        (lambda: fa.jit(lambda x: lax.add(x, value))(1), r"lax\.add"),
        (lambda: lax.add(value, 1), r"lax\.add"),
        (lambda: fnp.asarray(value), ""),
        (lambda: fnp.add(value, 1), ""),
    ):
        with pytest.raises(OverflowError, match=str(value)) as caught:
            run()
        caught.match(word)
    with jax.enable_x64(True), enable_x64(True):
        if abs(value) < 2**62:
            assert int(fa.jit(lambda x: x + 1)(value)) == value + 1
        else:
            with pytest.raises(OverflowError, match=str(value)):
                fa.jit(lambda x: x + 1)(value)


def test_the_largest_python_ints_that_fit(jax):
    """The ends of the range pass."""
    for value in (2**31 - 1, -(2**31)):
        agrees(jax, "[x, x + 1, x - 1, -x, x * 2]", x=value)
        assert int(fa.jit(lambda x: x)(value)) == value


def test_numpy_scalars_of_64_bits_keep_their_low_bits(jax):
    """NumPy integers carry a width, and are narrowed as in JAX."""
    for x in (np.int64(2**40 + 5), np.array([2**40 + 5, -1]), np.uint64(2**64 - 1)):
        agrees(jax, "[x, x + 1]", x=x)


# ---- containers ----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A container that needs no registration."""

    a: object
    b: object


def test_containers_come_back(jax):
    """Any nesting of containers, empty ones and None included."""
    for tree in ({}, [], (), None, {"b": X, "a": [1, (2.0, None)]}, Pair(X, {"k": Pair(1, ())})):
        same(fa.jit(lambda t: t)(tree), jax.jit(lambda t: t)(tree))


def test_keys_that_cannot_be_compared_have_an_order():
    """Leaves of such a dict do not depend on how it was filled (JAX refuses it)."""
    first, second = {1: 1.0, "a": 2.0}, {"a": 2.0, 1: 1.0}
    assert fa.tree.leaves(first) == fa.tree.leaves(second)
    leaves = fa.jit(lambda t: fa.tree.leaves(t))
    assert leaves(first) == leaves(second)


def test_a_container_within_itself_is_refused():
    """An endless container ends in an error, not in a crash."""
    loop: list = []
    loop.append(loop)
    with pytest.raises((RecursionError, ValueError)):
        fa.jit(lambda t: t)(loop)


# ---- wrong shapes, dtypes, axes, indices ---------------------------------------------------------

_SHAPE, _TYPE, _VALUE, _INDEX = (TypeError, ValueError), TypeError, ValueError, IndexError
#: Expression, error, and words of our message; over x: f32[3,4], i: i32[4].
WRONG = [
    ("lax.add(x, x[:2])", TypeError, "lax.add (3, 4) (2, 4)"),
    ("lax.add(x, i)", TypeError, "lax.add float32 int32"),
    ("x + x[:2]", _SHAPE, "(3, 4) (2, 4)"),
    ("x @ x", TypeError, "matmul (3, 4)"),
    ("lax.dot_general(x, x, (((1,), (0,)), ((), ())))", TypeError, "dot_general (4,) (3,)"),
    ("np.concatenate([x, i])", TypeError, "concatenate (3, 4) (4,)"),
    ("np.concatenate([])", _VALUE, "concatenate"),
    ("np.concatenate([x, x], axis=2)", _VALUE, "concatenate 2"),
    ("np.stack([x, i])", _VALUE, "stack (3, 4) (4,)"),
    ("np.reshape(x, (5, 2))", TypeError, "reshape (3, 4) (5, 2)"),
    ("np.reshape(x, (-1, -1))", TypeError, "reshape -1"),
    ("np.sum(x, axis=2)", _VALUE, "sum 2"),
    ("np.sum(x, axis=(0, 0))", _VALUE, "sum (0, 0)"),
    ("np.argmax(x, axis=4)", Exception, "argmax 4"),
    ("np.sort(x, axis=3)", _VALUE, "sort 3"),
    ("np.cumsum(x, axis=2)", _VALUE, "cumsum 2"),
    ("np.transpose(x, (0, 0))", TypeError, "transpose (0, 0)"),
    ("np.squeeze(x, 0)", _VALUE, "squeeze (3, 4)"),
    ("np.expand_dims(x, 5)", _VALUE, "expand_dims 5"),
    ("np.flip(x, 3)", _VALUE, "flip 3"),
    ("np.roll(x, 1, axis=4)", _VALUE, "roll 4"),
    ("np.broadcast_to(x, (2, 4))", _VALUE, "broadcast_to (3, 4) (2, 4)"),
    ("np.split(x, 2)", _VALUE, "split 3 2"),
    ("np.einsum('ij,jk', x, x)", Exception, "einsum ij,jk"),
    ("np.zeros((-1, 2))", TypeError, "full -1"),
    ("np.zeros((2, 1.5))", TypeError, "full 1.5"),
    ("np.ones(2, dtype='foo')", TypeError, "foo"),
    ("np.ones(2, dtype=object)", TypeError, "object"),
    ("x.astype('M8[s]')", TypeError, "M8"),
    ("lax.exp(i)", TypeError, "lax.exp int32"),
    ("lax.bitwise_and(x, x)", TypeError, "lax.and float32"),
    ("lax.slice(x, (0, 0), (4, 4))", TypeError, "slice (4, 4) (3, 4)"),
    ("lax.dynamic_slice(x, (0, 0), (5, 5))", TypeError, "dynamic_slice (5, 5) (3, 4)"),
    ("lax.dynamic_slice(x, (0.5, 0), (1, 1))", TypeError, "dynamic_slice float32"),
    ("lax.dynamic_update_slice(x, np.zeros((9, 9)), (0, 0))", TypeError, "(9, 9) (3, 4)"),
    ("lax.top_k(x, 5)", _VALUE, "top_k 5 4"),
    ("lax.select_n(x > 0, x, x, x)", _SHAPE, "select_n 2"),
    ("lax.pad(x, 0, ((0, 0, 0),) * 2)", TypeError, "pad float32 int32"),
    ("x[0, 0, 0]", _INDEX, "2 3"),
    ("x[1.5]", TypeError, "float"),
    ("x['a']", TypeError, "'a'"),
    ("x[::0]", _VALUE, "zero"),
    ("x[[0, 1]]", TypeError, "sequence"),
    ("x[mask]", _INDEX, "(2,) (3,)"),
    ("x[..., ...]", _INDEX, "ellipsis"),
    ("lax.cond(x, lambda: 1, lambda: 2)", TypeError, "cond (3, 4)"),
    ("lax.scan(lambda c, x: (c, x), 0, None)", _VALUE, "scan length"),
    ("lax.scan(lambda c, x: (c, x), 0, (x, i))", _VALUE, "scan 3 4"),
    ("lax.scan(lambda c, x: c, 0, x)", TypeError, "scan pair"),
    ("lax.while_loop(lambda c: c, lambda c: c, x)", TypeError, "while_loop (3, 4)"),
    ("lax.fori_loop(0.5, 2, lambda i, c: c, 1)", TypeError, "fori_loop float32"),
]


@pytest.mark.parametrize(("text", "error", "words"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_arguments(text, error, words, jax):
    """Both libraries refuse, op by op and while tracing; ours says what it got."""
    mask = np.ones(2, bool)
    mask.flags.writeable = False
    run = eval(f"lambda np, lax, mask: lambda x, i: {text}")
    i = np.arange(4, dtype=np.int32)
    with pytest.raises(error):
        run(jax.numpy, jax.lax, mask)(jax.numpy.asarray(X), jax.numpy.asarray(i))
    ours = run(fnp, lax, mask)
    for call in (lambda: ours(fnp.asarray(X), fnp.asarray(i)), lambda: fa.jit(ours)(X, i)):
        with pytest.raises(error) as caught:
            call()
        said = str(caught.value)
        shown = said.replace("[3,4]", "(3, 4)")  # avals are shown as float32[3,4]
        missing = [w for w in re.findall(r"\(.*?\)|\S+", words) if w not in shown]
        assert not missing, f"{missing} missing in {said!r}"


@pytest.mark.parametrize("index", list(product([-9, -3, -1, 0, 2, 3, 8], [0, 7])), ids=str)
def test_indices_out_of_bounds_clamp_as_in_jax(index, jax):
    """Reads clamp or fill, writes are dropped, slices shift, for static and traced indices."""
    i, j = index
    agrees(
        jax,
        "[x[i, j], x[i], x.at[i].set(0), x.at[i, j].add(5), lax.dynamic_slice(x, (i, j), (2, 2)),"
        " lax.dynamic_update_slice(x, x[:2, :2], (i, j)), np.take(x, i, axis=0),"
        " x.at[i].get(mode='fill', fill_value=-1), np.take(x, i, axis=0, mode='wrap'),"
        " lax.dynamic_index_in_dim(x, j, 1), x[np.stack([i, j])]]",
        x=X,
        i=np.int32(i),
        j=np.int32(j),
    )


@pytest.mark.parametrize("start", [-3, -128, 100, 127])
def test_narrow_indices_reach_the_end_of_a_long_axis(start):
    """An int8 start counts from the end of 200 elements (in JAX its sum with 200 wraps)."""
    x, i = np.arange(200, dtype=np.float32), np.int8(start)
    for wrap in (lambda f: f, fa.jit):
        got = wrap(lambda x, i: lax.dynamic_slice(x, (i,), (1,)))(x, i)
        assert int(got[0]) == start % 200
        got = wrap(lambda x, i: lax.dynamic_update_slice(x, -x[:1] - 1, (i,)))(x, i)
        assert int(fnp.argmin(got)) == start % 200
