"""Products of matrices of real numbers, which are our own where registers have 512 bits.

On other processors the same tests hold of BLAS's, but for those of bits.
"""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu import blas
from fnarray.compile.cpu.blas import product_of
from fnarray.compile.cpu.native import few, gemm, load, panels
from fnarray.compile.cpu.processor import processor
from fnarray.compile.target import Limits
from fnarray.core.forms import Contract
from tests.processors import X86, assembly_for

#: Rows, terms and columns: of a part of a tile, of whole tiles, of one more; of more terms than are
#: added at a time, of more rows than a panel meets, of two panels and a narrow one;
#: of rows that are laid out where columns lie together; of as many rows as are one block, and one
#: more, of float32 and of float64.
SIZES = [
    (2, 1, 2), (3, 5, 7), (4, 8, 16), (12, 16, 32), (13, 17, 33), (25, 300, 70), (50, 513, 49),
    (100, 256, 15), (970, 20, 40), (31, 31, 129), (253, 270, 199),
    (575, 3, 34), (576, 3, 34), (287, 3, 34), (288, 260, 40),
]  # fmt: skip
#: Every product is one for `blas.matmul`, however small.
EAGER = Limits(serial=0, share=1)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    """Normal numbers, the same on every call."""
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """Return the largest error beside the largest entry, in roundings."""
    return float(np.abs(got - want).max() / np.abs(want).max() / np.finfo(got.dtype).eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("stack", [(), (3,)])
def test_products_are_those_of_double_precision(dtype, stack):
    """All sizes, rows or columns together in either factor, views between whose rows others lie."""
    for (m, k, n), left, right in itertools.product(SIZES, (False, True), (False, True)):
        a = numbers(dtype, *stack, *((k, m + 3) if left else (m, k + 3)))
        b = numbers(dtype, *stack, *((n, k + 5) if right else (k, n + 5)))
        a, b = a[..., :-3], b[..., :-5]
        a, b = a.swapaxes(-1, -2) if left else a, b.swapaxes(-1, -2) if right else b
        got = blas.matmul(EAGER, a, b)
        assert got.dtype == dtype
        assert got.shape == (*stack, m, n)
        assert error(got, a.astype("f8") @ b.astype("f8")) < (8 if dtype == "f4" else 64)


@pytest.mark.parametrize(("k", "most"), [(200, 1.3), (300, 1.0), (4000, 0.8)])
def test_terms_are_added_in_short_chains(k, most):
    """Of positive terms, where errors of a long chain are of one sign with what it comes to."""
    a, b = np.abs(numbers("f4", 40, k)), np.abs(numbers("f4", k, 17))
    got, want = np.asarray(fnarray.jit(lambda a, b: a @ b)(a, b)), a.astype("f8") @ b.astype("f8")
    bound = most if gemm.symbol("s") else 16  # BLAS's chains are as long as it likes
    assert np.sqrt(np.mean((got - want) ** 2)) < bound * np.spacing(np.float32(want.max()))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("k", [7, 300])
def test_a_matrix_times_its_own_transpose_is_computed_once(dtype, k):
    """Above the diagonal it is what is below; with real numbers of our own, the product's bits."""
    for rows in (383, 384, 450, 900):
        x = numbers(dtype, rows, k)
        got = blas.matmul(EAGER, x, x.T)
        assert bool(blas._below(x, x.T, got)) == (rows >= 384)
        assert error(got, x.astype("c16") @ x.T.astype("c16")) < 16
        if rows >= 384:
            np.testing.assert_array_equal(np.triu(got, 113), np.tril(got, -113).T)
        if dtype != "c8" and rows * rows * k < gemm.large():
            np.testing.assert_array_equal(got, blas.matmul(EAGER, x, x.T.copy()))
    assert not blas._below(x, x[::-1].T, got)


def test_small_stacks_are_enough():
    """Threads of musl have 128 kB, and servers make theirs as small."""
    code = """
import threading, numpy as np, fnarray
a = np.ones((200, 300), np.float32)
f = fnarray.jit(lambda a: (a.T @ (a * 2), a @ a.T, a.T @ a[:, :7], (a @ a.T) @ a))
want = [x.sum() for x in f(a)]
found = []
threading.stack_size(128 << 10)
thread = threading.Thread(target=lambda: found.extend(x.sum() for x in f(a)))
thread.start()
thread.join()
assert found == want and len(want) == 4
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_entry_beside_the_result_is_touched():
    """What lies around the rows of a result, and beyond its last, stays as it is."""
    for (m, k, n), dtype in itertools.product(SIZES, ("f4", "f8")):
        a, b, around = numbers(dtype, m, k), numbers(dtype, k, n), np.full((m + 2, n + 6), 7, dtype)
        out = around[1:-1, 3:-3]
        if not blas._ours([(a, b, out)], 1):
            np.matmul(a, b, out=out)
        np.testing.assert_allclose(out, a @ b, rtol=1e-3, atol=1e-3)
        out[:] = 7
        assert (around == 7).all()


def test_infinities_and_nans_stay_in_their_rows():
    """What is computed beside the result's edge reaches nothing that is kept."""
    a, b = numbers("f4", 30, 20), numbers("f4", 20, 35)
    a[7, 3], b[4, 34] = np.nan, np.inf
    want = np.ones((30, 35), bool)
    want[7], want[:, 34] = False, False
    np.testing.assert_array_equal(np.isfinite(blas.matmul(EAGER, a, b)), want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_no_cut_changes_a_bit(dtype):
    """Parts for threads, rows alone or with others, matrices alone or in a stack: the same bits."""
    if gemm.symbol("s") is None:
        assert load.product("fnarray_product_s") is None  # BLAS has an order of its own
        return
    a, b = numbers(dtype, 61, 700), numbers(dtype, 700, 90)
    whole = blas.matmul(EAGER, a, b)
    for rows, columns in itertools.product(
        (slice(0, 2), slice(5, 61)), (slice(0, 90), slice(3, 8))
    ):
        part = blas.matmul(EAGER, a[rows], b[:, columns])
        np.testing.assert_array_equal(part, whole[rows, columns])
    np.testing.assert_array_equal(blas.matmul(EAGER, np.stack([a, a]), np.stack([b, b]))[1], whole)
    np.testing.assert_array_equal(blas.matmul(EAGER, np.asfortranarray(a), b), whole)
    np.testing.assert_array_equal(blas.matmul(EAGER, a, np.asfortranarray(b)), whole)


def called(name: str | None, *args: np.ndarray | int) -> None:
    """Call a routine of object code."""
    words = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in args]
    address = load.product(name or "")
    assert address
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))(address)(*words)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_small_matrices_have_the_bits_of_large_ones(dtype):
    """Of every shape of a tile's end, zeros of both signs, NaN and infinities; nothing beside."""
    letter = "s" if dtype == "f4" else "d"
    if gemm.symbol(letter) is None:
        assert few.symbol(letter, True) is None
        return
    sizes = itertools.product((2, 4, 5, 8, 9, 64), (1, 9, 64), (2, 8, 15, 16, 17, 33, 64))
    for (m, k, n), left, right in itertools.product(sizes, (0, 1), (0, 1)):
        a, b = numbers(dtype, m, k), numbers(dtype, k, n)
        a[0], b[0, 1] = -0.0, np.nan
        a[1, -1] = np.inf
        a = np.ascontiguousarray(a.T) if left else a
        b = np.ascontiguousarray(b.T) if right else b
        got, want = np.full((2, m + 1, n), 7, dtype)
        called(few.symbol(letter, bool(right)), a, b, got, m, k, n, left)
        lies = m if left else k, k if right else n, n, left, right, 1, 0, 0, 0
        called(gemm.symbol(letter), a, b, want, m, k, n, *lies)
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4"])
def test_small_products_inside_of_programs(dtype):
    """Alone, in a loop, in a stack and transposed; real ones are one call."""
    with fnarray.enable_x64(dtype == "f8"):
        a, b = (10 * numbers("f4", 20, 20)).astype(dtype), numbers("f4", 20, 20).astype(dtype)

        @fnarray.jit
        def run(a, b):
            turns = lax.fori_loop(
                0, 2, lambda _, x: (x @ b.T) / 8, a.astype(fnp.promote_types(dtype, "f4"))
            )
            return a @ b, a.T @ b, fnarray.vmap(lambda x: x.T @ b)(fnp.stack([a, b])), turns

        text = run.lower(a, b).as_text(dialect="numba")
        assert ("fk.gemm.few(" in text) == (dtype[0] != "c")  # the loop divides
        wide_a, wide_b = (x.astype("c16") for x in (a, b))
        want = (
            wide_a @ wide_b, wide_a.T @ wide_b, np.stack([wide_a, wide_b]).swapaxes(1, 2) @ wide_b,
            wide_a @ wide_b.T @ wide_b.T / 64,
        )  # fmt: skip
        for x, y in zip(run(a, b), want, strict=True):
            np.testing.assert_allclose(np.asarray(x), y, 1e-3, 1e-3)


@pytest.mark.parametrize(
    ("cpu", "tile", "register"),
    [
        ("znver5", "tile.12.2:", "zmm"),
        ("znver5", "tile.12.2.whole:", "zmm"),
        ("znver3", "tile.6.2.whole:", "ymm"),
        ("znver5", "strip.8.2:", "zmm"),
        ("znver3", "strip.4.2:", "ymm"),
    ],
)
@pytest.mark.parametrize("letter", ["s", "d"])
def test_tiles_keep_their_sums_in_registers(letter, cpu, tile, register, monkeypatch):
    """The loop over terms multiplies and adds from registers, and writes nothing."""
    if not X86:
        assert gemm.symbol(letter) is None
        return
    known = replace(processor(), wide=register == "zmm", features="+avx2,+fma")
    for module in (gemm, panels):
        monkeypatch.setattr(module, "processor", lambda: known)
    small = tile.startswith("strip")
    text = few.text(few.NAME + letter) if small else gemm.text(gemm.NAME + letter)
    lines = assembly_for(cpu, text, straight=True).splitlines()
    inside = next(k for k in range(lines.index(tile), len(lines)) if "vfmadd" in lines[k])
    first = max(k for k in range(inside) if lines[k].startswith("."))
    last = next(k for k in range(inside, len(lines)) if lines[k].startswith("\tj"))
    turn = lines[first:last]
    sums = 2 * int(tile.split(".")[1])
    assert sum("vfmadd" in line and f"%{register}" in line for line in turn) == sums
    assert not any("vmov" in line and line.endswith(")") for line in turn)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_short_rows_times_a_vector_are_loops(dtype):
    """Up to sixteen numbers in a row, the vector first or last, shared or one for each matrix."""
    with fnarray.enable_x64(dtype == "f8"):
        for k in (1, 3, 9, 16, 17):
            x, v, w = numbers(dtype, 3, 9000, k), numbers(dtype, k), numbers(dtype, 3, k)

            @fnarray.jit
            def run(x, v, w):
                last = fnp.einsum("bij,j->bi", x, v), fnp.einsum("bij,bj->bi", x, w)
                return *last, fnp.einsum("j,bij->bi", v, x)

            for got, want in zip(
                run(x, v, w), (x @ v, np.einsum("bij,bj->bi", x, w), x @ v), strict=True
            ):
                np.testing.assert_allclose(got, want, 1e-4 if dtype == "f4" else 1e-12, 1e-5)
            driver = run.lower(x, v, w).compile().as_text().partition("def main")[2]
            assert ("= h0(" in driver) == (k > 16)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 3, 3), (4, 4, 4), (2, 8, 3)])
def test_stacks_of_the_smallest_matrices_are_loops(dtype, sizes):
    """A call for each of thousands would take longer than its product; larger ones stay calls."""
    m, k, n = sizes
    a, b = numbers(dtype, 3000, m, k), numbers(dtype, 3000, k, n)
    if dtype[0] == "c":
        a, b = a + 1j * a[::-1], b - 1j * b[::-1]
    with fnarray.enable_x64(True):
        f = fnarray.jit(lambda a, b: a @ b)
        text = f.lower(a, b).as_text(dialect="numba")
        assert "= h0(" not in text
        assert "gemm" not in text
        got = np.asarray(f(a, b))
        larger = f.lower(numbers("f4", 3000, 6, 6), numbers("f4", 3000, 6, 6))
    assert got.dtype == dtype
    assert error(got, np.matmul(a.astype("c16"), b.astype("c16"))) < 8
    assert "= h0(" in larger.as_text(dialect="numba")


def test_large_products_called_alone_have_the_bits_of_programs():
    """A product of 128 x 128 runs compiled without `jit` as well; a smaller one is NumPy's."""
    for n in (20, 130):
        a, b = (
            fnarray.numpy.asarray(numbers("f4", n, n)),
            fnarray.numpy.asarray(numbers("f4", n, 9)),
        )
        x = np.asarray(a @ a)
        assert error(x, np.asarray(a, "f8") @ np.asarray(a, "f8")) < 8
        np.testing.assert_allclose(a.T @ b, np.asarray(a).T @ np.asarray(b), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(x, fnarray.jit(lambda a: a @ a)(a))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_between_kernels_are_those_of_double_precision(dtype):
    """In all layouts that their operands have, of which no copy is made, and of views of others."""
    for m, k, n in ((700, 20, 30), (30, 700, 21), (5, 300, 300)):
        for left, right in itertools.product((False, True), (False, True)):
            a = numbers(dtype, *((k, m) if left else (m, k)))
            b = numbers(dtype, *((n, k) if right else (k, n)))
            form = Contract((0 if left else 1,), (1 if right else 0,), (), ())
            step = product_of(form, np.dtype(dtype), Limits())
            want = (a.T if left else a).astype("f8") @ (b.T if right else b).astype("f8")
            for x, y in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
                (got,) = step(x, y)
                assert got.dtype == dtype
                assert got.flags.c_contiguous
                assert error(got, want) < (8 if dtype == "f4" else 64)


def test_only_a_product_of_two_axes_exchanges_its_factors():
    """The transpose of a product whose axes are all one factor's is computed as it stands."""
    random = np.random.default_rng(0)
    for left, right in [((2, 3, 4), (4,)), ((4,), (4, 2, 3)), ((3, 4), (4, 5))]:
        a, b = (random.normal(size=n).astype(np.float32) for n in (left, right))
        dims = ((len(left) - 1,), (0,)), ((), ())
        found = fnarray.jit(lambda a, b, dims=dims: fnarray.lax.dot_general(a, b, dims).T)(a, b)
        np.testing.assert_allclose(found, np.tensordot(a, b, 1).T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "complex64", "int8", "uint32", "bool"]
)
@pytest.mark.parametrize(
    "spelled", ["ij,jk->ik", "ji,kj->ik", "hij,hkj->hik", "i,ij->j", "ij,ij->"]
)
def test_products_of_every_dtype(spelled: str, dtype: str) -> None:
    """BLAS is asked for what it knows: a product is the same from the driver and inside a loop."""
    sizes = {"h": 3, "i": 41, "j": 40, "k": 42} if "k" in spelled else {"i": 160, "j": 120}
    lhs, rhs = spelled.split("->")[0].split(",")
    draw = np.random.default_rng(len(spelled)).integers
    x = draw(-1, 2, (2, *(sizes[a] for a in lhs)))
    y = draw(-1, 2, tuple(sizes[a] for a in rhs))
    if dtype == "bool":
        x, y = x == 1, y == 1
    a, b = (fnp.asarray(v).astype(dtype) for v in (x, y))
    want = np.asarray([np.einsum(spelled, part, y) for part in x]).astype(a.dtype)

    def product(x):
        return fnp.einsum(spelled, x, b)

    outside = fnarray.jit(lambda x: [product(x[0]), product(x[1])])(a)
    inside = fnarray.jit(lambda x: lax.map(product, x))(a)
    in_scan = fnarray.jit(lambda x: lax.scan(lambda c, row: (c + 1, product(row)), 0, x)[1])(a)
    for got in (fnp.stack(outside), inside, in_scan):
        assert got.dtype == a.dtype
        assert (np.asarray(got) == want).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(
    "spelled",
    [
        "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "ghbqd,ghbdk->ghbqk",
        "bgqhd,bgkhd->bghqk",
    ],
)  # fmt: skip
def test_stacks_of_several_axes_keep_blas_to_one_thread(spelled, dtype, monkeypatch):
    """Batches of heads: views of the operands, along one axis each, that our threads share."""
    sizes = {"b": 3, "h": 2, "g": 2, "q": 40, "k": 50, "d": 24}
    lhs, rhs = (
        numbers(dtype, *(sizes[a] for a in axes)) for axes in spelled.partition("->")[0].split(",")
    )
    found: list[int] = []
    multiply = np.matmul

    def seen(a, b, **keywords):
        found.append(a.ndim)
        return multiply(a, b, **keywords)

    monkeypatch.setattr(blas.np, "matmul", seen)
    got = product_of_text(spelled, lhs, rhs)
    monkeypatch.undo()
    assert all(n <= 3 for n in found)
    want = np.einsum(spelled, lhs.astype(complex), rhs.astype(complex))
    np.testing.assert_allclose(got, want, atol=2e-5)


def product_of_text(spelled: str, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Contract as a program does whose products are all for `blas.matmul`."""
    (first, second), result = spelled.partition("->")[0].split(","), spelled.partition("->")[2]
    batch = [a for a in first if a in second and a in result]
    summed = [a for a in first if a in second and a not in result]
    at = [tuple(x.index(a) for a in axes) for axes in (summed, batch) for x in (first, second)]
    form = Contract(at[0], at[1], at[2], at[3])
    axes = [*batch, *(a for x in (first, second) for a in x if a not in (*batch, *summed))]
    (out,) = product_of(form, lhs.dtype, EAGER)(lhs, rhs)
    return out.transpose([axes.index(a) for a in result])
