"""Factors of matrices by blocks of a grid, against what they must multiply to, and SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cuda.processor import ONE_THREAD, simulated
from fnarray.compile.pipeline import compile_graph
from fnarray.config import scoped
from fnarray.ops.linalg_orthogonal import geqrf

from .host import HOST
from .ptx import PTX

DTYPES = ("float32", "float64", "complex64", "complex128")
#: Rows that give iterations trouble: equal sizes, equal values, none, and none that fit.
HARD = ("random", "hermitian", "permutation", "jordan", "zero", "large", "tiny", "rank 1", "whole")


@pytest.fixture(autouse=True)
def wide():
    """Double precision is there."""
    with scoped("enable_x64", True):
        yield


def matrix(kind: str, n: int, dtype: str, m: int = 0) -> np.ndarray:
    """Return a matrix of a kind."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((m or n, n))
    if dtype.startswith("complex"):
        a = a + 1j * rng.standard_normal(a.shape)
    made: dict[str, Any] = {
        "random": a,
        "hermitian": a + a.conj().T if not m else a,
        "permutation": np.roll(np.eye(n), 1, 0),
        "jordan": np.eye(n, k=1) + 2 * np.eye(n),
        "zero": 0 * a,
        "large": a * 1e25,
        "tiny": a * 1e-30,
        "rank 1": a[:, :1] @ a[:1],
        "whole": np.round(2 * a.real),
    }
    return made[kind].astype(dtype)


def computed(fun: Any, a: np.ndarray, target: Any = ONE_THREAD) -> list[np.ndarray]:
    """Return a program's results by a reading of its kernels; the host has no part in it."""
    lowered = fnarray.jit(fun).lower(a)
    executable = compile_graph(lowered._traced.closed, target)
    assert not executable.source.steps
    return [np.asarray(x, _wide(x)) for x in executable.run(a.copy())]


def _wide(x: np.ndarray) -> Any:
    return {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    """Return a matrix turned and conjugated."""
    return np.swapaxes(x, -1, -2).conj()


def near(x: np.ndarray, y: np.ndarray, dtype: Any, size: Any = 1.0) -> None:
    """Say whether two arrays are the same but for roundings of numbers of a size."""
    room = 60 * max(x.shape[-1], 1) * np.finfo(dtype).eps
    np.testing.assert_array_less(abs(x - y), room * size + 1e-300)


def is_schur(a: np.ndarray, t: np.ndarray, z: np.ndarray) -> None:
    """Check a Schur form: vectors, product, and blocks in their standard form."""
    size = abs(a).max() or 1.0
    near(z @ t @ adjoint(z), a.astype(t.dtype), a.dtype, size)
    near(z @ adjoint(z), np.eye(len(a)), a.dtype)
    below = np.diagonal(t, -1)
    np.testing.assert_array_equal(np.tril(t, -2), 0)
    if a.dtype.kind == "c":
        np.testing.assert_array_equal(below, 0)
        return
    for k in np.flatnonzero(below):
        assert t[k, k] == t[k + 1, k + 1]
        assert t[k, k + 1] * t[k + 1, k] < 0
        assert k + 2 >= len(a) or t[k + 2, k + 1] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", HARD)
def test_schur(kind, dtype) -> None:
    """The form multiplies to the matrix, and is LAPACK's standard one."""
    for n in (1, 2, 3, 7, 12):
        a = matrix(kind, n, dtype)
        is_schur(a, *computed(lax.linalg.schur, a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", HARD)
def test_eigenvectors_of_both_sides(kind, dtype) -> None:
    """Vectors have length 1, and a real largest entry; those of real values of real matrices are.

    A matrix times its vectors is the values times them, within roundings of the matrix.
    """
    for n in (1, 2, 3, 7, 12):
        a = matrix(kind, n, dtype)
        w, left, right = computed(lax.linalg.eig, a)
        wide, size = a.astype(np.complex128), abs(a).max() or 1.0
        near(wide @ right, right * w, dtype, size)
        near(adjoint(wide) @ left, left * w.conj(), dtype, size)
        for v in (left, right):
            near(np.linalg.norm(v, axis=0), np.ones(n), dtype)
            if dtype.startswith("float"):
                assert not v[:, w.imag == 0].imag.any()
        if dtype.startswith("float"):
            first = np.flatnonzero(w.imag > 0)
            np.testing.assert_array_equal(w[first + 1], w[first].conj())
            np.testing.assert_array_equal(right[:, first + 1], right[:, first].conj())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "hermitian", "large"])
def test_square_roots(kind, dtype) -> None:
    """Their squares are the matrix, as well as those of SciPy's are, and they are principal."""
    for n in (1, 2, 5, 12):
        a = matrix(kind, n, dtype)
        (root,) = computed(fnarray.scipy.linalg.sqrtm, a)
        wide = a.astype(np.complex128)
        theirs = scipy.linalg.sqrtm(wide)
        size = max(abs(wide).max(), abs(theirs).max() ** 2 * n) or 1.0
        near(root @ root, wide, dtype, size)
        values = np.linalg.eigvals(root)
        assert (values.real >= -1e-3 * abs(values).max(initial=0)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_are_lapacks(dtype) -> None:
    """What is packed, what it stands for, and products with that, from both sides."""

    def fun(a):
        packed, taus = geqrf(a)
        turned = jnp.swapaxes(a, -1, -2)
        q = lax.linalg.householder_product(packed, taus)
        few = lax.linalg.householder_product(packed, taus[..., :2])
        sides = [(a, True), (turned, False)]
        products = [
            lax.linalg.ormqr(packed, taus, c, left=left, transpose=t)
            for c, left in sides
            for t in (False, True)
        ]
        return packed, taus, q, few, *products

    a = matrix("random", 4, dtype, 7)
    turned = a.swapaxes(-1, -2)
    (want, scales), _ = scipy.linalg.qr(a, mode="raw")
    whole, _ = scipy.linalg.qr(a)
    assert scales[0] != 0
    packed, taus, q, few, *products = computed(fun, a)
    near(packed, want, dtype, 9)
    near(taus, scales, dtype)
    near(q, whole[:, :4], dtype)
    near(few[:, :2], whole[:, :2], dtype)
    wanted = whole @ a, adjoint(whole) @ a, turned @ whole, turned @ adjoint(whole)
    for got, right in zip(products, wanted, strict=True):
        near(got, right, dtype, 9)


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_factors_of_what_is_added_to(dtype) -> None:
    """Rotations against the vector give the factor that a new factorisation has."""
    a = matrix("random", 6, dtype)

    def fun(a):
        factor = jnp.linalg.cholesky(a @ a.T, upper=True)
        return lax.linalg.cholesky_update(factor, a[0])

    (got,) = computed(fun, a)
    want = np.linalg.cholesky(a @ a.T + np.outer(a[0], a[0])).T
    near(abs(got), abs(want), dtype, 90)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_of_badly_scaled_matrices(dtype) -> None:
    """Each column of vectors is as good as LAPACK's, which balances."""
    rng = np.random.default_rng(5)
    scales = 10.0 ** rng.uniform(-3, 3, 9)
    a = (matrix("random", 9, dtype) * scales[:, None] / scales).astype(dtype)
    w, left, right = computed(lax.linalg.eig, a)
    wide = a.astype(np.complex128)
    want, lefts, rights = scipy.linalg.eig(a, left=True, right=True)
    theirs = (
        abs(wide @ rights - rights * want).max(),
        abs(adjoint(wide) @ lefts - lefts * want.conj()).max(),
    )
    assert abs(wide @ right - right * w).max() <= 8 * theirs[0]
    assert abs(adjoint(wide) @ left - left * w.conj()).max() <= 8 * theirs[1]


def test_the_square_root_of_nothing() -> None:
    """Two values of zero have no difference to divide by."""
    (root,) = computed(fnarray.scipy.linalg.sqrtm, np.zeros((4, 4)))
    np.testing.assert_array_equal(root, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (9, 4), (4, 9)])
@pytest.mark.parametrize("full", [False, True])
def test_qr(shape, full, dtype) -> None:
    """Factors, and with exchanges their order, are SciPy's, signs included."""
    m, n = shape
    a = matrix("random", n, dtype, m)
    mode = "full" if full else "economic"
    for pivoting in (False, True):
        fun = lambda x, p=pivoting: lax.linalg.qr(x, pivoting=p, full_matrices=full)  # noqa: E731
        got = computed(fun, a)
        want = scipy.linalg.qr(a, mode=mode, pivoting=pivoting)
        for x, y in zip(got[:2], want, strict=False):
            near(x, y, dtype, 4.0)
        if pivoting:
            np.testing.assert_array_equal(got[2], want[2])


def test_columns_that_are_alike_keep_their_lengths() -> None:
    """Lengths lose their digits from step to step where little is left, and are made anew."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((12, 1)) + 1e-5 * rng.standard_normal((12, 8))
    _, r, order = computed(lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False), a)
    want = scipy.linalg.qr(a, mode="economic", pivoting=True)
    np.testing.assert_array_equal(order, want[2])
    np.testing.assert_allclose(np.diagonal(r), np.diagonal(want[1]), rtol=1e-7)


def test_rank_deficient_matrices_have_factors() -> None:
    """What is left of a matrix of rank 1 after a step is nothing but roundings."""
    a = matrix("rank 1", 6, "float64", 8)
    q, r, order = computed(lambda x: lax.linalg.qr(x, pivoting=True), a)
    near(q @ r, a[:, order], "float64", 8.0)
    near(np.abs(r[1:]), 0 * r[1:], "float64", 8.0)


def test_matrices_that_are_not_finite_have_nan() -> None:
    """Their neighbours have results; the iteration is not tried."""
    a = np.stack([matrix("random", 4, "float64")] * 3)
    a[1, 2, 1] = np.nan
    t, z = computed(lax.linalg.schur, a)
    is_schur(a[0], t[0], z[0])
    is_schur(a[2], t[2], z[2])
    assert np.isnan(z[1]).all()
    np.testing.assert_array_equal(np.tril(t[1], -1), 0)
    for x in computed(lax.linalg.eig, a):
        np.testing.assert_array_equal(np.isnan(x).reshape(3, -1).all(1), [False, True, False])
    (root,) = computed(fnarray.scipy.linalg.sqrtm, a)
    np.testing.assert_array_equal(np.isnan(root).reshape(3, -1).all(1), [False, True, False])


@pytest.mark.parametrize(
    ("read", "dtype"),
    [
        pytest.param(simulated(3), "float32", id="three lanes-float32"),
        pytest.param(simulated(3), "complex128", id="three lanes-complex128"),
        pytest.param(HOST, "complex128", id="lowered-complex128"),
        pytest.param(HOST, "float32", id="lowered-float32", marks=pytest.mark.slow),
        pytest.param(PTX, "float32", id="ptx-float32"),
        pytest.param(PTX, "complex128", id="ptx-complex128", marks=pytest.mark.slow),
    ],
)
def test_readings_agree(read, dtype) -> None:
    """Several lanes, the lowered text and PTX give what one thread gives, but for contraction."""
    a = np.stack([matrix(kind, 5, dtype) for kind in ("random", "permutation")])
    t, z = computed(lax.linalg.schur, a, read)
    for k in range(2):
        is_schur(a[k], t[k], z[k])
    w, left, right = computed(lax.linalg.eig, a, read)
    wide = a.astype(np.complex128)
    near(wide @ right, right * w[:, None], dtype, 4.0)
    near(adjoint(wide) @ left, left * w[:, None].conj(), dtype, 4.0)
    q, r, order = computed(lambda x: lax.linalg.qr(x, pivoting=True), a, read)
    near(q @ r, np.take_along_axis(wide, order[:, None], -1), dtype, 4.0)
    (root,) = computed(fnarray.scipy.linalg.sqrtm, a[:1], read)
    near(root @ root, wide[:1], dtype, 40.0)


def test_values_alone_and_one_side() -> None:
    """What is not asked for is not computed; values are NumPy's."""
    a = matrix("random", 6, "float64")
    for left, right in ((False, False), (True, False), (False, True)):
        fun = lambda x, s=(left, right): lax.linalg.eig(  # noqa: E731
            x, compute_left_eigenvectors=s[0], compute_right_eigenvectors=s[1]
        )
        w, *vectors = computed(fun, a)
        assert len(vectors) == left + right
        np.testing.assert_allclose(np.sort_complex(w), np.sort_complex(np.linalg.eigvals(a)))
