"""``numpy.linalg`` beside JAX's: values, shapes, dtypes, errors; and compiled beside eager."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.config import enable_x64

from ..oracle import in_one

jax = pytest.importorskip("jax")

#: Functions that magnify roundings by the condition number.
LOOSE = ("cond", "lstsq", "tensorinv", "matrix_power")
DTYPES = ("float32", "complex128")


def draw(word: str, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Return matrices of a dtype, of the kind that a word says."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    if np.dtype(dtype).kind in "iu":
        x = rng.integers(-4, 5, shape)
    if word == "singular":
        x = x * (np.arange(shape[-1]) > 0)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return np.asarray(x).astype(dtype)
    if word == "hermitian":
        x = (x + x.conj().swapaxes(-1, -2)) / 2
    elif word == "positive":
        x = x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    elif word == "triangular":
        x = np.triu(x)
    elif word == "dominant":
        x = x + 2 * np.eye(shape[-1])
    return x.astype(dtype)


def case(path: str, *shapes: tuple[int, ...], word: str = "dominant", **settings: Any) -> Any:
    """One call: the function, its arrays' shapes (vectors are plain), its settings."""
    label = "-".join((path, *map(str, shapes), *(f"{k}={v}" for k, v in settings.items())))
    frozen = MappingProxyType(settings)
    return pytest.param(path, shapes or ((3, 4, 4),), word, frozen, id=label)


CASES = [
    case("cholesky", word="positive"),
    case("cholesky", word="positive", upper=True),
    case("cholesky", word="hermitian"),
    case("cholesky", (0, 0)),
    *(case("qr", s, mode=m) for s in ((5, 3), (2, 3, 5)) for m in ("reduced", "complete", "r")),
    case("qr", (5, 3), mode="raw"),
    *(case("svd", s, full_matrices=f) for s in ((5, 3), (2, 3, 5)) for f in (True, False)),
    case("svd", (2, 5, 3), compute_uv=False),
    case("svd", (3, 4, 4), word="hermitian", hermitian=True),
    case("svd", (3, 4, 4), word="hermitian", hermitian=True, compute_uv=False),
    case("svdvals", (2, 3, 5)),
    case("eigh", word="hermitian"),
    case("eigh", word="dominant", UPLO="U", symmetrize_input=False),
    case("eigvalsh", word="hermitian"),
    case("eig"),
    case("eigvals"),
    case("inv"),
    case("inv", (0, 0)),
    *(case("det", (2, n, n)) for n in (0, 1, 2, 3, 4, 5, 30)),
    case("det", word="singular"),
    *(case("slogdet", (2, n, n)) for n in (0, 1, 4, 30)),
    case("slogdet", word="singular"),
    case("solve", (4, 4), (4,)),
    case("solve", (4, 4), (4, 2)),
    case("solve", (4, 4), (3, 4, 2)),
    case("solve", (3, 4, 4), (4,)),
    case("solve", (3, 1, 4, 4), (2, 4, 2)),
    case("solve", (40, 40), (40, 3)),
    case("solve", (0, 0), (0, 2)),
    case("lstsq", (5, 3), (5,)),
    case("lstsq", (5, 3), (5, 2)),
    case("lstsq", (3, 5), (3, 2)),
    case("lstsq", (5, 3), (5, 2), word="singular"),
    case("pinv", (2, 5, 3)),
    case("pinv", (2, 3, 5)),
    case("pinv", (5, 3), word="singular"),
    case("pinv", (4, 4), rtol=0.3),  # the cut-off of singular values, which drops one of four
    case("matrix_rank", (2, 5, 3)),
    case("matrix_rank", (2, 5, 3), word="singular"),
    case("matrix_rank", (3,)),
    *(case("matrix_power", n=n) for n in (0, 1, 2, 5, -2)),
    *(case("cond", p=p) for p in (None, 2, -2, 1, -1, np.inf, "fro")),
    case("multi_dot_", (2, 3), (3, 4), (4, 5)),
    case("multi_dot_", (3,), (3, 40), (40, 2), (2,)),
    case("tensorinv", (4, 6, 8, 3)),
    case("tensorinv", (24, 8, 3), ind=1),
    case("tensorsolve", (2, 3, 6), (2, 3)),
    *(case("norm", (3, 4), ord=o, axis=(0, 1)) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf)),
    case("norm", (2, 3, 4), ord="nuc", axis=(0, 2), keepdims=True),
    case("norm", (2, 3, 4), ord=2, axis=(2, 0)),
    case("matrix_norm", (2, 3, 4), ord="nuc"),
]


def find(module: Any, path: str) -> Any:
    """Return a function; one whose name ends in ``_`` takes its arrays as a list."""
    if path.endswith("_"):
        return lambda *arrays: getattr(module, path[:-1])(list(arrays))
    return getattr(module, path)


def leaves(x: Any) -> list[Any]:
    return [y for item in x for y in leaves(item)] if isinstance(x, tuple | list) else [x]


def assert_same(got: Any, want: Any, tolerance: float = 300) -> None:
    """Results agree in structure, dtype and, to some units in the last place, values."""
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        eps = np.finfo(g.dtype).eps if g.dtype.kind in "fc" else 0
        scale = max(1, np.nanmax(abs(w[np.isfinite(w)]), initial=0))
        np.testing.assert_allclose(g, w, rtol=tolerance * eps, atol=tolerance * eps * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("path", "shapes", "word", "settings"), CASES)
def test_matches_jax(path, shapes, word, settings, dtype):
    """Values, shapes and dtypes are JAX's, in single and double precision, real and complex."""
    arrays = [draw(word, s, dtype, seed) for seed, s in enumerate(shapes)]
    wide = dtype in ("float64", "complex128")
    with enable_x64(wide), jax.enable_x64(wide):
        got = find(jnp.linalg, path)(*arrays, **settings)
        want = in_one(lambda: find(jax.numpy.linalg, path)(*arrays, **settings))
        assert_same(
            got, want, 3000 if path in ("cond", "lstsq", "tensorinv", "matrix_power") else 300
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
@pytest.mark.parametrize(
    ("values", "rtol", "rank"),
    [
        ((4, 2, 1, 0.5), None, 4),
        ((4, 2, 1, 0), None, 3),
        ((4, 2, 1, 0.5), 0.2, 3),
        ((4, 2, 1, 0.5), 0.3, 2),
        ((4, 2, 1, 0.5), 0.0, 4),
    ],
)
def test_pinv_inverts_the_singular_values_above_its_cutoff(values, rtol, rank, shape, dtype):
    """A matrix of known factors has the inverse of known factors, to some units in the last place.

    Those above `rtol` of the largest are inverted, the others dropped; what is left obeys
    Moore's and Penrose's equations.
    """
    u, v = (np.linalg.qr(draw("", (n, 4), "complex128", n))[0] for n in shape)
    if np.dtype(dtype).kind == "f":
        u, v = (np.linalg.qr(x.real)[0] for x in (u, v))
    s, wide = np.array(values, float), dtype == "complex128"
    a = ((u * s) @ v.conj().T).astype(dtype)
    kept = (u[:, :rank] * s[:rank]) @ v[:, :rank].conj().T
    want = (v[:, :rank] / s[:rank]) @ u[:, :rank].conj().T
    with enable_x64(wide):
        got = np.asarray(jnp.linalg.pinv(a, rtol=rtol))
    assert got.dtype == dtype
    limit = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=limit)
    for made, meant in (
        (got @ kept @ got, got),
        (kept @ got @ kept, kept),
        ((got @ kept).conj().T, got @ kept),
        ((kept @ got).conj().T, kept @ got),
    ):
        np.testing.assert_allclose(made, meant, rtol=0, atol=4 * limit)


#: One case of each function: operations are compiled for every shape in ``tests/ops``.
JITTED = list({c.values[0]: c for c in reversed(CASES)}.values())


@pytest.mark.parametrize("part", range(4))
def test_compiled_matches_eager(part):
    """Compiled code gives what NumPy and LAPACK give."""
    chosen = tuple(c.values for c in JITTED[part::4])
    arrays = [
        [draw(word, s, "float32", seed) for seed, s in enumerate(shapes)]
        for _, shapes, word, _ in chosen
    ]

    calls = tuple((path, MappingProxyType(settings)) for path, _, _, settings in chosen)

    def program(arrays):
        return [
            find(jnp.linalg, path)(*xs, **settings)
            for (path, settings), xs in zip(calls, arrays, strict=True)
        ]

    for c, got, want in zip(chosen, fnarray.jit(program)(arrays), program(arrays), strict=True):
        assert_same(got, want, 20000 if c[0] in ("cond", "tensorinv", "slogdet") else 1000)


@pytest.mark.parametrize("name", ["inv", "det", "eigh", "svd", "qr", "cholesky", "slogdet", "pinv"])
def test_integers_become_floats(name):
    """Integer matrices are decomposed in the default float."""
    x = draw("positive", (3, 3), "int32", 0)
    want = in_one(lambda: getattr(jax.numpy.linalg, name)(x))
    assert_same(getattr(jnp.linalg, name)(x), want, 1000)


ERRORS = [
    ("cholesky", ((2, 3),), {}, ValueError, r"\(2, 3\)"),
    ("inv", ((2, 3),), {}, ValueError, r"\(2, 3\)"),
    ("inv", ((3,),), {}, ValueError, r"\(3,\)"),
    ("det", ((2, 3),), {}, ValueError, r"\(2, 3\)"),
    ("slogdet", ((2, 3),), {}, ValueError, r"\(2, 3\)"),
    ("slogdet", ((3, 3),), {"method": "svd"}, ValueError, "svd"),
    ("eigh", ((2, 3),), {}, ValueError, r"\(2, 3\)"),
    ("eigh", ((3, 3),), {"UPLO": "X"}, ValueError, "UPLO"),
    ("eig", ((2, 3),), {}, ValueError, r"\(2, 3\)"),
    ("qr", ((3, 3),), {"mode": "x"}, ValueError, "mode 'x'"),
    ("qr", ((3,),), {}, TypeError, "rank at least 2"),
    ("svd", ((3,),), {}, TypeError, "rank at least 2"),
    ("solve", ((2, 3), (2,)), {}, ValueError, r"\(2, 3\).*\(2,\)"),
    ("solve", ((3, 3), (2,)), {}, ValueError, r"\(3, 3\).*\(2,\)"),
    ("solve", ((3,), (3,)), {}, ValueError, r"\(3,\)"),
    ("lstsq", ((3, 3), (2,)), {}, ValueError, r"\(3, 3\) and \(2,\)"),
    ("lstsq", ((2, 3, 3), (3,)), {}, TypeError, r"\(2, 3, 3\)"),
    ("pinv", ((3,),), {}, ValueError, r"\(3,\)"),
    ("matrix_power", ((2, 3),), {"n": 2}, TypeError, r"\(2, 3\)"),
    ("matrix_power", ((3, 3),), {"n": 2.0}, TypeError, "integer, got 2.0"),
    ("multi_dot_", ((3, 3),), {}, ValueError, "at least two"),
    ("tensorinv", ((3, 3),), {"ind": 0}, ValueError, "got 0"),
    ("cond", ((3,),), {}, ValueError, r"\(3,\)"),
    ("cond", ((3, 3),), {"p": "x"}, ValueError, "'x'"),
    ("norm", ((3, 3),), {"ord": 3}, ValueError, "order 3"),
]


@pytest.mark.parametrize(("path", "shapes", "settings", "error", "match"), ERRORS)
def test_refuses(path, shapes, settings, error, match):
    """Bad matrices raise errors that say the shapes; JAX raises too, most often the same."""
    arrays = [np.ones(s, np.float32) for s in shapes]
    with pytest.raises((ValueError, TypeError)):
        find(jax.numpy.linalg, path)(*arrays, **settings)
    with pytest.raises(error, match=match):
        find(jnp.linalg, path)(*arrays, **settings)


@pytest.mark.parametrize("name", ["cholesky", "inv", "eigh", "svd", "qr", "eig", "solve", "det"])
def test_half_types_are_refused(name):
    """LAPACK has no half precision; the error names the dtype and says what to do."""
    x = jnp.ones((4, 4), jnp.float16)
    with pytest.raises(TypeError, match=r"float16.*Convert"):
        getattr(jnp.linalg, name)(*((x, x) if name == "solve" else (x,)))


@pytest.mark.parametrize("name", ["eigh", "svd", "cholesky", "qr", "inv", "eig", "pinv", "eigvals"])
def test_nan_goes_through(name):
    """A matrix that holds NaN gives NaN, and its neighbours in the stack their own results."""
    x = draw("positive", (3, 4, 4), "float32", 0)
    x[1] = np.nan
    got = leaves(getattr(jnp.linalg, name)(x))
    want = leaves(in_one(lambda: getattr(jax.numpy.linalg, name)(x)))
    assert_same([g[::2] for g in got], [w[::2] for w in want])
    assert all(np.isnan(np.asarray(g[1])).any() for g in got)


def test_singular_systems_are_not_finite():
    """A singular matrix in a stack spoils its own solution only, as in JAX."""
    a = draw("dominant", (3, 4, 4), "float32", 0)
    a[1] = 0
    x = np.asarray(jnp.linalg.solve(a, np.ones(4, np.float32)))
    assert not np.isfinite(x[1]).any()
    assert np.isfinite(x[::2]).all()


def test_subsets_are_parts_of_the_whole():
    """Selecting values by index gives those values and vectors."""
    x = draw("hermitian", (3, 5, 5), "complex64", 0)
    v, w = fnarray.lax.linalg.eigh(x)
    assert_same(fnarray.lax.linalg.eigh(x, subset_by_index=(1, 3)), (v[..., 1:3], w[..., 1:3]))
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    part = jnp.linalg.svd(x, full_matrices=False, subset_by_index=(1, 3))
    assert_same(part, (u[..., 1:3], s[..., 1:3], vh[..., 1:3, :]))
    with pytest.raises(ValueError, match="within 5 values"):
        fnarray.lax.linalg.svd(x, full_matrices=False, subset_by_index=(2, 6))


POLYNOMIALS = [
    (1, -6, 11, -6), (0, 0, 2, -3, 1), (1, 2, 0, 0), (0, 0, 1, 0, 2, 0), (0, 0), (3,), (1, 1j),
]  # fmt: skip


@pytest.mark.parametrize("p", POLYNOMIALS, ids=str)
def test_roots(p):
    """Roots are JAX's, with zeros in front of the coefficients too; and compiled."""
    p = np.array(p, np.complex64 if 1j in p else np.float32)
    assert_same(jnp.roots(p), jax.numpy.roots(p))
    want = jax.numpy.roots(p, strip_zeros=False)
    assert_same(jnp.roots(p, strip_zeros=False), want)
    compiled = fnarray.jit(lambda p: jnp.roots(p, strip_zeros=False))
    assert_same(compiled(p), want)
    with pytest.raises(fnarray.errors.ConcretizationTypeError, match="strip_zeros=False"):
        fnarray.jit(jnp.roots)(np.ones(3, np.float32))


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal_samples(method):
    """The same key gives JAX's samples, by each method."""
    key, other = fnarray.random.key(3), jax.random.key(3)
    cov, mean = draw("positive", (2, 3, 3), "float32", 0), draw("", (4, 1, 3), "float32", 1)
    for shape in (None, (5, 4, 2)):
        got = fnarray.random.multivariate_normal(key, mean, cov, shape, method=method)
        want = jax.random.multivariate_normal(other, mean, cov, shape, method=method)
        assert_same(got, want)
    with pytest.raises(ValueError, match=r"\(3,\) and \(2, 2\)"):
        fnarray.random.multivariate_normal(key, np.zeros(3), np.eye(2))
    with pytest.raises(ValueError, match="'qr'"):
        fnarray.random.multivariate_normal(key, mean, cov, method="qr")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("n", "m"), [(3, None), (3, 5), (5, 3)])
def test_orthogonal_samples(n, m, dtype):
    """The same key gives JAX's matrices."""
    got = fnarray.random.orthogonal(fnarray.random.key(3), n, (2,), dtype, m)
    assert_same(got, jax.random.orthogonal(jax.random.key(3), n, (2,), dtype, m))


def test_multi_dot_takes_the_cheap_order():
    """A chain is multiplied so that the fewest products are made."""
    a, b, c = np.ones((50, 2)), np.ones((2, 50)), np.ones((50, 1))
    shapes = [
        tuple(v.aval.shape)
        for eqn in fnarray.make_jaxpr(lambda *xs: jnp.linalg.multi_dot(xs))(a, b, c).eqns
        for v in eqn.outvars
        if eqn.primitive.name == "dot_general"
    ]
    assert shapes == [(2, 1), (50, 1)]
