"""Products of vectors, matrices and tensors, and ``linalg``'s norms, agree with ``jax.numpy``."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray.numpy as fnp
from fnarray.api.jit import jit
from fnarray.numpy import linalg

from .numpy_oracle import both_raise, compare

RNG = np.random.default_rng(1)


def operand(shape: tuple[int, ...], kind: str) -> np.ndarray:
    if kind == "i":
        return RNG.integers(-4, 5, shape).astype(np.int32)
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape)).astype(np.complex64) if kind == "c" else x.astype("f4")


SHAPES = (
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((4, 1, 2, 3), (5, 3, 4)), ((2, 0), (0, 3)),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["f", "i", "c"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_have_numpys_values(shapes, kind):
    """Matrix products of all ranks, and products by labels of axes, agree with NumPy."""
    a, b = (operand(s, kind) for s in shapes)
    for name in ("matmul", "dot", "outer", "kron"):
        got, want = getattr(fnp, name)(a, b), getattr(np, name)(a, b)
        assert (got.shape, got.dtype) == (want.shape, a.dtype), name
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)
    c = np.moveaxis(b, -2, -1) if b.ndim > 1 else b
    for name in ("inner", "tensordot"):
        args = (a, c) if name == "inner" else (a, c, ((-1,), (-1,)))
        np.testing.assert_allclose(
            getattr(fnp, name)(*args), getattr(np, name)(*args), rtol=1e-5, atol=1e-5
        )
    if a.shape[-1:] == c.shape[-1:] and c.ndim == 1:
        want = (a.conj() * c).sum(-1)
        np.testing.assert_allclose(fnp.vecdot(a, c), want, rtol=1e-5, atol=1e-5)


#: Small tables over the oracle's arrays: types from JAX.
LIKE_NUMPY = """
jnp.dot(2.0, f)
jnp.dot(w, 3)
jnp.dot(i, v)
jnp.matmul(f, i.T)
jnp.matmul(b, b.T)
jnp.matmul(e16, e16)
jnp.outer(v, 2)
jnp.outer(w, 3.0)
jnp.vdot(c, d)
jnp.vdot(f, i)
jnp.inner(f, 2)
jnp.inner(b, b[0])
jnp.tensordot(f, g)
jnp.tensordot(f, g.T, 1)
jnp.tensordot(f, g, 0)
jnp.tensordot(f[None], g, ((1, 2), (0, 1)))
jnp.kron(2, f)
jnp.kron(v, f)
jnp.cross(f, g)
jnp.cross(f.T, g.T, axis=0)
jnp.diagonal(f)
jnp.diagonal(f, 1)
jnp.diagonal(f, -1)
jnp.diagonal(f, 7)
jnp.diagonal(f[None], 0, 0, 2)
jnp.trace(f)
jnp.trace(i, 1)
jnp.trace(f[None], 0, 1, 2)
jnp.linalg.norm(f)
jnp.linalg.norm(i, axis=1)
jnp.linalg.norm(f, 1)
jnp.linalg.norm(f, np.inf)
jnp.linalg.norm(f, -1, (1, 0))
jnp.linalg.norm(v, 3)
jnp.linalg.norm(v, 0)
jnp.linalg.norm(v, -np.inf)
jnp.linalg.norm(c, keepdims=True)
jnp.linalg.norm(f, 2, 0, True)
jnp.linalg.vector_norm(f)
jnp.linalg.vector_norm(f, axis=1, ord=3)
jnp.linalg.matrix_norm(f[None], ord=1)
jnp.linalg.outer(v, v)
jnp.linalg.trace(f[None])
jnp.linalg.diagonal(f[None], offset=1)
jnp.linalg.cross(v, f)
"""
LIKE_JAX = """
jnp.cross(f[:, :2], g)
jnp.matmul(i8, i8, preferred_element_type="int32")
jnp.dot(f, g.T, precision="highest")
jnp.trace(b)
jnp.trace(u8[:, None] * u8)
jnp.matvec(f, v)
jnp.vecmat(c[:, 0], d)
jnp.vecdot(c, d, axis=0)
"""
ERRORS = (TypeError, ValueError, IndexError, NotImplementedError)
BAD = """
jnp.matmul(f, g)
jnp.matmul(f, 2)
jnp.matmul(jnp.zeros((2, 2, 3)), jnp.zeros((3, 3, 4)))
jnp.matmul([1], [1])
jnp.dot(f, f)
jnp.vdot(f, v)
jnp.inner(f, v[:2])
jnp.vecdot(f, v[:2])
jnp.matvec(f, v[:2])
jnp.matvec(v, v)
jnp.tensordot(f, g, 1)
jnp.tensordot(f, g, 5)
jnp.tensordot(f, g, ((0,), (0, 1)))
jnp.tensordot(f, g, ((5,), (0,)))
jnp.cross(jnp.zeros(4), v)
jnp.diagonal(v)
jnp.diagonal(f, 0, 0, 0)
jnp.trace(v)
jnp.outer(v, v, v)
jnp.linalg.norm(f, "oops")
jnp.linalg.norm(f[None], 2)
jnp.linalg.norm(f, 3)
jnp.linalg.outer(f, v)
jnp.linalg.cross(v[:2], v[:2])
jnp.einsum("ij->k", f)
jnp.einsum("ij,jk->ik", f, f)
jnp.einsum("ij", v)
jnp.einsum("ii", f)
jnp.einsum("ij,jk", f)
jnp.einsum("ij", [[1.0]])
jnp.einsum(f, 0)
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("text", lines(LIKE_NUMPY))
def test_values_are_numpys_and_types_jaxs(text):
    """Values agree with NumPy; shapes, dtypes and weak types with JAX."""
    compare(text, rtol=1e-5, values="numpy")


@pytest.mark.parametrize("text", lines(LIKE_JAX))
def test_agrees_with_jax(text):
    """Values and types agree with JAX."""
    compare(text, rtol=1e-5)


@pytest.mark.parametrize("text", lines(BAD))
def test_bad_arguments_raise_on_both_sides(text):
    """Both sides refuse."""
    assert both_raise(text, ERRORS)


EINSUMS = (
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("ij->j", (2, 3)), ("ba", (2, 3)), ("i,i->i", (3,), (3,)), ("i,j->ij", (2,), (3,)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("b...,b...->...b", (2, 3, 4), (2, 3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ij,ij->", (2, 3), (2, 3)), ("iii->i", (3, 3, 3)),
    ("abc,abd->abcd", (2, 3, 4), (2, 3, 5)), ("ij,kl->", (2, 3), (4, 5)),
    ("aab,b->a", (2, 2, 3), (3,)),
    ("iij,jk->ik", (3, 3, 2), (2, 4)), ("...i->...", (2, 3, 4)),
    ("ab,bc,ca->", (2, 3), (3, 4), (4, 2)),
    ("a,b,c->abc", (2,), (3,), (4,)), ("ij,j", (2, 1), (3,)), (",i", (), (3,)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
)  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum_sums_products_as_numpy_does(case):
    """Every way of naming axes gives NumPy's sums, in any order of contraction, and compiled."""
    spec, *shapes = case
    for kind in "fi":
        xs = [operand(s, kind) for s in shapes]
        want = np.einsum(spec, *xs)
        for optimize in ("auto", True, False):
            got = fnp.einsum(spec, *xs, optimize=optimize)
            assert (got.shape, got.dtype) == (want.shape, xs[0].dtype)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    if len(spec) > 8:
        got = jit(lambda *xs: fnp.einsum(spec, *xs))(*xs)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_einsum_takes_operands_and_lists_in_turn():
    """The form without a string means the same, ellipses included."""
    a, b = operand((5, 2, 3), "f"), operand((3, 4), "f")
    want = np.einsum("...ij,jk->...ik", a, b)
    got = fnp.einsum(a, [..., 0, 1], b, [1, 2], [..., 0, 2])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)  # sums of three may cancel
    np.testing.assert_allclose(fnp.einsum(b, [1, 0]), b.T)


def test_einsum_path_is_that_of_jax():
    """The order of contractions is the one JAX would choose."""
    xs = [operand(s, "f") for s in ((2, 9), (9, 4), (4, 5))]
    spec = "ij,jk,kl->il"
    assert fnp.einsum_path(spec, *xs)[0] == jax.numpy.einsum_path(spec, *xs)[0]
    path = fnp.einsum_path(spec, *xs, optimize=False)[0]
    np.testing.assert_allclose(
        fnp.einsum(spec, *xs, optimize=path), np.einsum(spec, *xs), rtol=1e-4
    )


def test_compiled_products_agree_with_eager_ones():
    """Products, norms and diagonals are the same compiled."""

    def function(a, b, k):
        return (
            fnp.matmul(a, b), fnp.kron(a[0], b[:2]), fnp.trace(b @ a, k), fnp.cross(a, b.T),
            linalg.norm(a, axis=1), linalg.norm(b, 1), fnp.tensordot(a, b.T), fnp.vdot(a, b.T),
        )  # fmt: skip

    a, b, k = operand((4, 3), "f"), operand((3, 4), "f"), np.int32(1)
    for got, want in zip(jit(function)(a, b, k), function(a, b, k), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["dot", "matmul", "vdot", "inner", "vecdot"])
def test_eager_products_of_long_vectors_are_summed_in_parts(name):
    """Where much cancels the error is that of compiled sums: a tenth of what one go of BLAS has."""
    rng = np.random.default_rng(0)
    off, exact = [], []
    for _ in range(20):
        a, b = (rng.standard_normal(100_000, np.float32) for _ in range(2))
        exact.append(a.astype(np.float64) @ b)
        off.append(float(getattr(fnp, name)(fnp.asarray(a), fnp.asarray(b))) - exact[-1])
    unit = np.spacing(np.float32(np.max(np.abs(exact))))
    assert np.sqrt(np.mean(np.square(off))) < 3 * unit


def test_eager_stacks_of_products_of_vectors_are_summed_in_parts():
    """Rows of a stack are summed as vectors alone are."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((20, 50_000), np.float32) for _ in range(2))
    exact = np.einsum("ij,ij->i", a.astype(np.float64), b)
    off = np.asarray(fnp.einsum("ij,ij->i", a, b)) - exact
    assert np.sqrt(np.mean(off**2)) < 3 * np.spacing(np.float32(np.abs(exact).max()))
