"""Contractions: working dtypes, views without copies, precision, and the native kernel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import scoped
from fnarray.core.contraction import contracted, working_dtype
from fnarray.core.forms import Contract
from fnarray.ops.contract import canonical_precision
from fnarray_kernels import gemm

rng = np.random.default_rng(2)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
PLAIN = Contract((1,), (0,), (), ())


@pytest.mark.parametrize(
    ("lhs", "rhs", "out", "wide"),
    [
        ("float16", "float16", "float16", "float32"),
        (bfloat16, bfloat16, "float32", "float32"),
        ("int8", "int8", "int8", "int8"),
        ("int8", "int8", "int32", "int32"),
        ("int8", "int8", "float32", "float32"),
        ("float32", "float32", "int32", "float32"),
        ("float32", "float32", "float64", "float64"),
        ("complex64", "complex64", "float32", "complex64"),
        ("int32", "float64", "float64", "float64"),
    ],
)
def test_sums_are_formed_in_a_dtype_that_holds_them(lhs, rhs, out, wide):
    """Half precision adds up in float32; nothing is narrowed before the sum is complete."""
    assert working_dtype(np.dtype(lhs), np.dtype(rhs), np.dtype(out)) == np.dtype(wide)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("largest", [100, 2**31 - 1])
def test_integers_wrap(dtype, largest):
    """Products of integers wrap at their width, by whichever route they are computed."""
    top = min(largest, np.iinfo(dtype).max)
    a, b = (rng.integers(0, top, s).astype(dtype) for s in ((40, 30), (30, 50)))
    want = np.einsum("ik,kj->ij", a, b, dtype=dtype)
    np.testing.assert_array_equal(contracted(a, b, PLAIN, np.dtype(dtype)), want)


@pytest.mark.parametrize("terms", [30, 1500])
@pytest.mark.parametrize(
    ("lhs", "rhs", "out"),
    [("int8", "int8", "int32"), ("uint8", "int8", "int16"), ("int8", "int8", "uint32"),
     ("uint8", "uint8", "int32"), ("int16", "int8", "int32")],
)  # fmt: skip
def test_small_integers_are_exact(lhs, rhs, out, terms):
    """Sums of products at the ends of small types are exact, or wrap, in whichever floats."""
    a, b = (
        rng.choice([np.iinfo(d).min, np.iinfo(d).max], s).astype(d)
        for d, s in ((lhs, (20, terms)), (rhs, (terms, 20)))
    )
    want = np.einsum("ik,kj->ij", a.astype(np.int64), b.astype(np.int64)).astype(out)
    np.testing.assert_array_equal(contracted(a, b, PLAIN, np.dtype(out)), want)


def test_transposed_operands_are_not_copied():
    """A product of views multiplies the views' memory: no larger array than the result is made."""
    import tracemalloc

    a, b = np.ones((1500, 400), np.float32), np.ones((300, 1500), np.float32)
    tracemalloc.start()
    contracted(a, b, Contract((0,), (1,), (), ()), np.dtype(np.float32))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 400 * 300 * 4


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        ("highest", (lax.Precision.HIGHEST,) * 2),
        (("high", "float32"), (lax.Precision.HIGH, lax.Precision.HIGHEST)),
        (lax.Precision.DEFAULT, (lax.Precision.DEFAULT,) * 2),
        ("F32_F32_F32", lax.DotAlgorithmPreset.F32_F32_F32),
    ],
)
def test_precision_spellings(given, meant):
    """Every spelling of a precision is one canonical, hashable value."""
    assert canonical_precision(given) == meant
    with scoped("default_matmul_precision", given if isinstance(given, str) else None):
        assert canonical_precision(None) == (meant if isinstance(given, str) else None)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 1, 0, 2), (0, 2, 2, 2), (3, 7, 1, 1)])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_kernel_multiplies_stacks(dtype, sizes, left, right):
    """The kernel for loops gives NumPy's products, of matrices that lie transposed as well."""
    batch, m, k, n = sizes
    a = rng.integers(0, 2 if dtype == "bool" else 9, (batch, m, k)).astype(dtype)
    b = rng.integers(0, 2 if dtype == "bool" else 9, (batch, k, n)).astype(dtype)
    out = np.empty(batch * m * n, dtype)
    lies = (x.swapaxes(1, 2) if turned else x for x, turned in ((a, left), (b, right)))
    gemm.batched(*(x.reshape(-1) for x in lies), out, batch, m, k, n, left, right)
    np.testing.assert_array_equal(out.reshape(batch, m, n), a @ b)


@pytest.mark.parametrize(("left", "right"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(32, 128, 513), (60, 300, 193), (700, 90, 80), (1, 9000, 200)])
def test_kernel_multiplies_in_parts_and_pieces(sizes, parts, left, right):
    """Parts fill the product, each in pieces of few columns where it is a large one."""
    m, k, n = sizes
    a, b = (rng.integers(0, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    lies = [(x.T if turned else x).reshape(-1) for x, turned in ((a, left), (b, right))]
    out = np.full(m * n, np.nan, np.float32)
    for i in range(parts):
        gemm.part(*lies, out, m, k, n, left, right, i, parts)
    np.testing.assert_array_equal(out.reshape(m, n), a @ b)


@pytest.mark.parametrize("n", [16_384, 20_001, 300_000])
def test_products_of_many_terms_are_accurate(n):
    """A long sum of equal terms does not drift, compiled or eager, odd lengths included."""
    x = np.full((n, 3), 0.1, np.float32) * np.arange(1, 4, dtype=np.float32)
    want = x.astype(np.float64).T @ x.astype(np.float64)

    def f(x):
        return lax.dot(lax.transpose(x, (1, 0)), x)

    for product in (f, fnarray.jit(f)):
        np.testing.assert_allclose(product(x), want, rtol=3e-5)


@pytest.mark.parametrize(
    ("dims", "turn", "shapes"),
    [
        ((((1,), (0,)), ((), ())), (1, 0), ((40, 30), (40, 50))),
        ((((2,), (1,)), ((0,), (0,))), (2, 1, 0), ((40, 3, 5), (5, 40, 30))),
        ((((2,), (1,)), ((0,), (0,))), (0, 2, 1), ((5, 40, 30), (5, 40, 30))),
        ((((2, 1), (0, 1)), ((), ())), (2, 0, 1), ((40, 5, 30), (5, 40, 30))),
        ((((1,), (0,)), ((), ())), (2, 1, 0), ((30, 40, 5), (40, 30))),
    ],
)
def test_transposes_are_absorbed(dims, turn, shapes):
    """A product of a transposed operand is the same whether the transpose is written or read."""
    x, y = (rng.normal(size=s).astype(np.float32) for s in shapes)

    def product(x, y):
        return lax.dot_general(lax.transpose(lax.exp(x), turn), y, dims)

    want = lax.dot_general(np.exp(x).transpose(turn), y, dims)
    np.testing.assert_allclose(fnarray.jit(product)(x, y), want, rtol=1e-4, atol=1e-4)
    (loop,) = fnarray.jit(lambda x, y: lax.scan(lambda c, t: (c, product(t, y)), 0.0, x)[1:])(
        x[None], y
    )
    np.testing.assert_allclose(loop[0], product(x, y), rtol=1e-4, atol=1e-4)


def test_slices_are_no_transposes():
    """A product of some rows and columns has as many terms as they are."""
    x = rng.normal(size=(40, 50)).astype(np.float32)
    product = fnarray.jit(lambda x: lax.dot(x[:30, :20], x[:20, :45]))
    np.testing.assert_allclose(product(x), x[:30, :20] @ x[:20, :45], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [0, 1, 5, 300])
def test_rows_times_columns_in_pairs(k):
    """A batch of two axes is no product of matrices, though its terms lie as those of one do."""
    a, b = (np.random.default_rng(k).normal(size=shape).astype("f4") for shape in ((3, k), (k, 3)))
    numbers = ((1,), (0,)), ((0,), (1,))
    want = np.einsum("ij,ji->i", a.astype("f8"), b.astype("f8"))
    for f in (lax.dot_general, fnarray.jit(lax.dot_general, static_argnums=2)):
        np.testing.assert_allclose(f(a, b, numbers), want, 1e-4, 1e-4)
