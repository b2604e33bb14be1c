"""``scipy.linalg`` beside JAX's and SciPy's: values, shapes, dtypes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fnarray.numpy as jnp
import fnarray.scipy.linalg as ours
from fnarray.config import enable_x64

from ..oracle import in_one
from .test_linalg import assert_same, draw

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.scipy.linalg")


def case(name: str, *shapes: tuple[int, ...], word: str = "dominant", **settings: Any) -> Any:
    """One call: the function, its arrays' shapes, its settings."""
    label = "-".join((name, *map(str, shapes), *(f"{k}={v}" for k, v in settings.items())))
    return pytest.param(name, shapes or ((4, 4),), word, settings, id=label)


CASES = [
    *(case("cholesky", word="positive", lower=b) for b in (True, False)),
    case("cholesky", (3, 4, 4), word="positive"),
    case("eigh", word="hermitian", eigvals_only=True),
    case("eigh", (3, 4, 4), word="hermitian", lower=False, eigvals_only=True),
    case("det"),
    case("inv", (3, 4, 4)),
    *(case("lu", s, permute_l=p) for s in ((4, 4), (5, 3), (3, 5)) for p in (False, True)),
    case("lu_factor"),
    *(case("qr", (5, 3), mode=m) for m in ("full", "r", "economic")),
    *(case("qr", (3, 5), mode=m, pivoting=True) for m in ("full", "r", "economic")),
    case("qr_multiply", (5, 3), (2, 5)),
    case("qr_multiply", (5, 3), (3, 2), mode="left", pivoting=True),
    case("svd", (3, 5)),
    case("svd", (3, 5), compute_uv=False),
    *(case("solve", (4, 4), (4, 2), word="positive", assume_a=a) for a in ("gen", "pos", "sym")),
    case("solve", (3, 4, 4), (4,)),
    *(
        case("solve_triangular", (4, 4), (4, 2), trans=t, lower=b, unit_diagonal=not b)
        for t in (0, "T", 2)
        for b in (False, True)
    ),
    case("solve_triangular", (3, 4, 4), (4,)),
    *(case("polar", (5, 3), side=s, method="svd") for s in ("left", "right")),
    case("polar", (5, 3)),
    case("polar", (3, 5), side="left"),
    case("schur"),
    case("schur", output="complex"),
    case("hessenberg"),
    case("hessenberg", (3, 4, 4), calc_q=True),
    case("expm", (3, 4, 4)),
    case("expm", word="triangular", upper_triangular=True),
    case("expm_frechet", (4, 4), (4, 4)),
    case("expm_frechet", (4, 4), (4, 4), compute_expm=False),
    case("sqrtm", word="positive"),
    case("solve_sylvester", (4, 4), (3, 3), (4, 3)),
    case("toeplitz", (4,)),
    case("toeplitz", (2, 3), (4,)),
    case("hankel", (4,)),
    case("hankel", (3,), (4,)),
    case("circulant", (2, 3)),
    case("companion", (2, 4)),
    *(case("convolution_matrix", (3,), n=n, mode=m) for n in (2, 5) for m in ("full", "same")),
    *(case("convolution_matrix", (3,), n=n, mode="valid") for n in (2, 5)),
    *(case("fiedler_companion", (n,)) for n in (1, 2, 3, 6, 7)),
    case("leslie", (2, 3), (2, 2)),
    case("block_diag", (2, 3), (4,), ()),
]
REAL = [
    case("fiedler", (2, 3)),
    case("eigh_tridiagonal", (5,), (4,), eigvals_only=True),
    case("eigh_tridiagonal", (5,), (4,), eigvals_only=True, select="i", select_range=(1, 2)),
]


def compare(name: str, shapes: Any, word: str, settings: dict, dtype: str) -> None:
    arrays = [draw(word, s, dtype, seed) for seed, s in enumerate(shapes)]
    wide = dtype in ("float64", "complex128")
    with enable_x64(wide), jax.enable_x64(wide):
        got = getattr(ours, name)(*arrays, **settings)
        assert_same(got, in_one(lambda: getattr(theirs, name)(*arrays, **settings)), 3000)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("name", "shapes", "word", "settings"), CASES)
def test_matches_jax(name, shapes, word, settings, dtype):
    """Values, shapes and dtypes are JAX's."""
    compare(name, shapes, word, settings, dtype)


@pytest.mark.parametrize(("name", "shapes", "word", "settings"), REAL)
def test_matches_jax_on_real_arrays(name, shapes, word, settings):
    """Values, shapes and dtypes are JAX's, where it takes real arrays only."""
    compare(name, shapes, word, settings, "float64")


SIZES = ("dft", "hilbert", "helmert", "invhilbert", "pascal", "invpascal", "hadamard")


@pytest.mark.parametrize("name", SIZES)
def test_matrices_of_a_size(name):
    """Values are SciPy's, dtypes JAX's."""
    for n in (1, 2, 4):
        got = getattr(ours, name)(n)
        want = getattr(scipy.linalg, name)(n)
        assert got.dtype == getattr(theirs, name)(n).dtype
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("dft", {"scale": "sqrtn"}),
        ("dft", {"scale": "n"}),
        ("helmert", {"full": True}),
        ("pascal", {"kind": "lower"}),
        ("pascal", {"kind": "upper"}),
        ("invpascal", {"kind": "lower"}),
    ],
)
def test_kinds_of_matrices_of_a_size(name, settings):
    """Each kind is SciPy's."""
    want = getattr(scipy.linalg, name)(5, **settings)
    np.testing.assert_allclose(getattr(ours, name)(5, **settings), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", [(4,), (4, 2), (3, 4, 2)])
def test_solutions_by_factors(dtype, lower, shape):
    """Factors solve the systems that they are factors of."""
    a, b = draw("positive", (4, 4), dtype, 0), draw("", shape, dtype, 1)
    assert_same(ours.cho_solve(ours.cho_factor(a, lower), b), np.linalg.solve(a, b))
    c = draw("dominant", (4, 4), dtype, 0)
    for trans, op in enumerate((c, c.T, c.conj().T)):
        got = ours.lu_solve(ours.lu_factor(c), b, trans=trans)
        assert_same(got, np.linalg.solve(op, b), 1000)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("lower", [False, True])
def test_generalised_eigenvalues(dtype, kind, lower):
    """Values and, by residuals, vectors solve the problem of each type; SciPy reads as we do."""
    a, b = draw("hermitian", (4, 4), dtype, 0), draw("positive", (4, 4), dtype, 1)
    with enable_x64(True):
        w, v = ours.eigh(a, b, lower=lower, type=kind)
        assert_same(ours.eigh(a, b, lower=lower, type=kind, eigvals_only=True), w)
    np.testing.assert_allclose(w, scipy.linalg.eigh(a, b, type=kind, eigvals_only=True))
    v = np.asarray(v)
    left, right = {1: (a @ v, b @ v), 2: (a @ b @ v, v), 3: (b @ a @ v, v)}[kind]
    np.testing.assert_allclose(left, right * np.asarray(w), atol=1e-10)


def test_vectors_of_tridiagonal_matrices():
    """Vectors satisfy their equation."""
    d, e = draw("", (5,), "float64", 0), draw("", (4,), "float64", 1)
    with enable_x64(True):
        w, v = map(np.asarray, ours.eigh_tridiagonal(d, e))
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    np.testing.assert_allclose(matrix @ v, v * w, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_rsf2csf_is_the_same_matrix(dtype):
    """The complex form is triangular and of the matrix that the real form is of."""
    a = draw("", (6, 6), dtype, 3)
    t, z = scipy.linalg.schur(a, output="real" if dtype == "float64" else "complex")
    with enable_x64(True):
        t, z = map(np.asarray, ours.rsf2csf(t, z))
    np.testing.assert_allclose(np.tril(t, -1), 0, atol=1e-14)
    np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
    np.testing.assert_allclose(z @ z.conj().T, np.eye(6), atol=1e-12)


def test_funm_is_the_matrix_function():
    """The exponential by the general way is the exponential."""
    a = draw("", (5, 5), "float64", 0)
    with enable_x64(True), jax.enable_x64(True):
        got = ours.funm(a, jnp.exp)
        np.testing.assert_allclose(got, scipy.linalg.expm(a), atol=1e-10)
        error = ours.funm(a, jnp.exp, disp=False)[1]
        want = theirs.funm(a, jax.numpy.exp, disp=False)[1]
        assert float(error) < 1e-10
        assert error.dtype == want.dtype


def test_expm_refuses_to_square_forever():
    """A matrix that needs more squarings than allowed gives NaN, as in JAX."""
    assert np.isnan(ours.expm(np.full((2, 2), 1e6, np.float32))).all()
    assert np.isfinite(ours.expm(np.full((2, 2), -1e4, np.float32), max_squarings=20)).all()


ERRORS = [
    ("cholesky", ((2, 3),), {}, r"\(2, 3\)"),
    ("cho_solve", None, {}, r"\(3, 3\).*\(2,\)"),
    ("expm", ((2, 3),), {}, r"\(2, 3\)"),
    ("sqrtm", ((2, 3),), {}, r"\(2, 3\)"),
    ("schur", ((2, 3),), {}, r"\(2, 3\)"),
    ("schur", ((3, 3),), {"output": "x"}, "'x'"),
    ("qr", ((3, 3),), {"mode": "x"}, "'x'"),
    ("solve", ((3, 3), (3,)), {"assume_a": "x"}, "'x'"),
    ("solve_triangular", ((3, 3), (3,)), {"trans": "X"}, "'X'"),
    ("solve_triangular", ((3, 3), (2,)), {}, r"\(3, 3\).*\(2,\)"),
    ("polar", ((3, 3),), {"side": "x"}, "'x'"),
    ("polar", ((3, 3),), {"method": "x"}, "'x'"),
    ("eigh", ((3, 3),), {"type": 4}, "got 4"),
    ("eigh_tridiagonal", ((3,), (3,)), {}, r"\(3,\) and \(3,\)"),
    ("rsf2csf", ((2, 3), (3, 3)), {}, "T must be square"),
    ("solve_sylvester", ((3, 3), (2, 2), (2, 3)), {}, r"\(3, 3\), \(2, 2\) and \(2, 3\)"),
    ("companion", ((1,),), {}, "two coefficients"),
    ("convolution_matrix", ((3,),), {"n": 3, "mode": "x"}, "'x'"),
    ("block_diag", ((2, 2, 2),), {}, r"\(2, 2, 2\) at position 0"),
    ("leslie", ((3,), (3,)), {}, r"\(3,\) and \(3,\)"),
    ("dft", (), {"n": 3, "scale": "x"}, "'x'"),
    ("hadamard", (), {"n": 3}, "got 3"),
    ("pascal", (), {"n": 3, "kind": "x"}, "'x'"),
]


@pytest.mark.parametrize(("name", "shapes", "settings", "match"), ERRORS)
def test_refuses(name, shapes, settings, match):
    """Bad arguments raise errors that say what was got."""
    if shapes is None:
        arrays: Any = [(np.eye(3), True), np.ones(2)]
    else:
        arrays = [np.ones(s, np.float32) for s in shapes]
    with pytest.raises(ValueError, match=match):
        getattr(ours, name)(*arrays, **settings)


def test_matrices_may_be_lists():
    """As in SciPy: nested lists of numbers are matrices, integers among them too."""
    a, b = [[2, 0.5], [0.5, 4]], [1.0, 2]
    lower = [[2.0, 0], [1, 4]]
    for name, args in {
        "cholesky": (a,),
        "cho_solve": ((lower, True), b),
        "eigh": (a,),
        "expm_frechet": (a, a),
        "lu": (a,),
        "lu_factor": (a,),
        "polar": (a,),
        "qr": (a,),
        "rsf2csf": ([[2.0, 1], [0, 4]], [[1.0, 0], [0, 1]]),
        "solve_sylvester": (a, a, a),
        "solve_triangular": (lower, b),
        "svd": (a,),
    }.items():
        got = jax.tree.leaves(getattr(ours, name)(*args))
        want = jax.tree.leaves(getattr(scipy.linalg, name)(*args))
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(np.abs(x), np.abs(y), 1e-5, 1e-6)
    np.testing.assert_array_equal(ours.toeplitz(2), [[2]])
    assert not ours.toeplitz(2).weak_type
