"""Derivatives and batching of linear algebra: beside JAX's, central differences, stacked loops."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
import fnarray.scipy.linalg as sl
from fnarray.config import enable_x64

from ..oracle import in_one
from .test_linalg import assert_same, draw, leaves

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.scipy.linalg")


def call(path: str, **settings: Any) -> tuple[str, Any, Any]:
    """Return a label, our function and JAX's; paths begin with the module's letter."""
    module, name = path.split(".")
    mine = {"n": jnp.linalg, "l": fnarray.lax.linalg, "s": sl}[module]
    other = {"n": jax.numpy.linalg, "l": jax.lax.linalg, "s": theirs}[module]
    label = "-".join((path, *(f"{k}={v}" for k, v in settings.items())))
    frozen = MappingProxyType(settings)
    pair = (getattr(m, name) for m in (mine, other))
    return label, *(lambda *xs, f=f: f(*xs, **frozen) for f in pair)


def case(path: str, *operands: tuple[str, tuple[int, ...]], **settings: Any) -> Any:
    """One function of arrays, each given by a word and a shape."""
    label, mine, other = call(path, **settings)
    return pytest.param(mine, other, operands, id="-".join((label, *(str(s) for _, s in operands))))


A, P, H = (("dominant", (4, 4)), ("positive", (4, 4)), ("hermitian", (4, 4)))
TALL, WIDE, B = ("", (5, 3)), ("", (3, 5)), ("", (4, 2))
CASES = [
    case("l.cholesky", P),
    case("l.cholesky", ("positive", (2, 3, 3))),
    *(case("l.lu", x) for x in (A, TALL, WIDE)),
    *(case("l.qr", x, full_matrices=False) for x in (A, TALL)),
    *(case("l.svd", x, full_matrices=False) for x in (A, TALL, WIDE)),
    *(case("l.svd", x, compute_uv=False) for x in (TALL, WIDE)),
    case("l.eigh", H),
    case("l.eig", A, enable_eigvec_derivs=True),
    *(
        case(
            "l.triangular_solve",
            A,
            B if left else ("", (2, 4)),
            left_side=left,
            lower=low,
            transpose_a=turn,
            conjugate_a=turn != low,
            unit_diagonal=left != low,
        )
        for left in (True, False)
        for low in (True, False)
        for turn in (True, False)
    ),
    case("l.tridiagonal_solve", ("", (4,)), ("", (4,)), ("", (4,)), B),
    case("n.solve", A, ("", (4,))),
    case("n.solve", ("dominant", (3, 4, 4)), B),
    case("n.inv", A),
    *(case("n.det", ("dominant", (n, n))) for n in (2, 3, 4)),
    case("n.slogdet", ("dominant", (2, 4, 4))),
    case("n.eigvals", A),
    *(case("n.pinv", x) for x in (TALL, WIDE)),
    case("n.cond", A),
    case("n.matrix_power", A, n=-2),
    *(case("n.norm", TALL, ord=o) for o in ("nuc", 2, -2, 1)),
    case("s.expm", A),
    case("s.cholesky", P),
    case("s.polar", TALL, method="svd"),
]


def like(outs: list[Any], rebuild: Any, seed: int) -> Any:
    """Return cotangents of results, in the results' structure."""
    cts = []
    for k, out in enumerate(outs):
        out = np.asarray(out)
        if out.dtype.kind in "fc":
            cts.append(draw("", out.shape, out.dtype.name, seed + k))
        else:
            cts.append(np.zeros(out.shape, jax.dtypes.float0))
    if not isinstance(rebuild, tuple | list):
        return cts[0]
    return type(rebuild)(*cts) if hasattr(rebuild, "_fields") else type(rebuild)(cts)


def floats(x: Any) -> list[np.ndarray]:
    return [y for y in map(np.asarray, leaves(x)) if y.dtype.kind in "fc"]


def pairing(cts: Any, tangents: Any) -> float:
    """Inner product of cotangents and tangents: the real part, without conjugation."""
    pairs = zip(floats(cts), floats(tangents), strict=True)
    return sum((c * t).sum() for c, t in pairs).real


#: Rules with a branch for complex numbers; the others are tested on these alone.
BRANCHING = ("l.lu", "l.qr", "l.svd", "l.eigh", "n.slogdet", "n.det", "s.polar")
RUNS = [
    pytest.param(*c.values, dtype, id=f"{c.id}-{dtype}")
    for c in CASES
    for dtype in ("complex128", "float64")
    if dtype == "complex128" or c.id.startswith(BRANCHING)
]


@pytest.mark.parametrize(("mine", "other", "operands", "dtype"), RUNS)
def test_matches_jax(mine, other, operands, dtype):
    """Forward derivatives are JAX's; reverse ones meet them in an inner product."""
    xs = [draw(word, shape, dtype, k) for k, (word, shape) in enumerate(operands)]
    ts = [
        draw("hermitian" if word == "hermitian" else "", shape, dtype, 10 + k)
        for k, (word, shape) in enumerate(operands)
    ]
    with enable_x64(True), jax.enable_x64(True):
        out, tangents = fnarray.jvp(mine, xs, ts)
        assert_same(floats((out, tangents)), floats(in_one(lambda: jax.jvp(other, xs, ts))), 1e5)
        cts = like(leaves(out), out, 20)
        back = fnarray.vjp(mine, *xs)[1](cts)
    np.testing.assert_allclose(pairing(cts, tangents), pairing(back, ts), rtol=1e-9, atol=1e-9)


MORE = [
    pytest.param(lambda x: fnarray.lax.linalg.qr(x, full_matrices=False), (WIDE,), id="qr-wide"),
    pytest.param(
        lambda x: fnarray.lax.linalg.qr(x, full_matrices=False, pivoting=True)[:2],
        (WIDE,),
        id="qr-pivoting",
    ),
    pytest.param(
        lambda x: fnarray.lax.linalg.svd(x, full_matrices=False, subset_by_index=(1, 3))[1],
        (TALL,),
        id="svd-subset",
    ),
    pytest.param(lambda x: fnarray.lax.linalg.eigh(x, subset_by_index=(1, 3)), (H,), id="eigh"),
    pytest.param(sl.sqrtm, (P,), id="sqrtm"),
    pytest.param(sl.solve_sylvester, (A, P, A), id="sylvester"),
    pytest.param(lambda a, e: sl.expm_frechet(a, e)[1], (A, H), id="frechet"),
    pytest.param(lambda a, b: sl.lu_solve(sl.lu_factor(a), b, trans=1), (A, B), id="lu_solve"),
    pytest.param(lambda a, b: sl.solve(a, b, assume_a="pos"), (P, B), id="cho_solve"),
    pytest.param(lambda a, b: sl.eigh(a, b, eigvals_only=True), (H, P), id="eigh-general"),
    pytest.param(lambda a, b: jnp.linalg.lstsq(a, b)[0], (TALL, ("", (5, 2))), id="lstsq"),
    pytest.param(
        lambda r, w: fnarray.lax.linalg.cholesky_update(jnp.triu(r), w),
        (P, ("", (4,))),
        id="cholesky_update",
    ),
    pytest.param(
        lambda a, c: fnarray.lax.linalg.symmetric_product(a, c, alpha=2.0, beta=3.0),
        (TALL, ("", (5, 5))),
        id="symmetric_product",
    ),
    pytest.param(lambda x: fnarray.lax.linalg.qdwh(x)[:2], (TALL,), id="qdwh"),
]


@pytest.mark.parametrize(("f", "operands"), MORE)
def test_central_differences(f, operands):
    """Forward derivatives are central differences; reverse ones meet them in inner products."""
    xs = [draw(word, shape, "float64", k) for k, (word, shape) in enumerate(operands)]
    ts = [
        draw("hermitian" if word in ("hermitian", "positive") else "", shape, "float64", 10 + k)
        for k, (word, shape) in enumerate(operands)
    ]
    step = 1e-6
    with enable_x64(True):
        out, tangent = fnarray.jvp(f, xs, ts)
        ahead, behind = (
            floats(f(*(x + sign * step * t for x, t in zip(xs, ts, strict=True))))
            for sign in (1, -1)
        )
        for t, a, b in zip(floats(tangent), ahead, behind, strict=True):
            np.testing.assert_allclose(t, (a - b) / (2 * step), rtol=1e-6, atol=1e-7)
        cts = like(leaves(out), out, 20)
        back = fnarray.vjp(f, *xs)[1](cts)
    np.testing.assert_allclose(pairing(cts, tangent), pairing(back, ts), rtol=1e-9)


@pytest.mark.parametrize("rank", [4, 3, 2])
def test_determinants_of_any_rank(rank):
    """Gradient and Hessian of a determinant, a polynomial, hold at singular matrices."""
    rng = np.random.default_rng(rank)
    x = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 4))

    def minor(rows, columns):
        keep = [[i for i in range(4) if i not in some] for some in (rows, columns)]
        return np.linalg.det(x[np.ix_(*keep)])

    with enable_x64(True):
        gradient = np.asarray(fnarray.grad(jnp.linalg.det)(x))
        compiled = np.asarray(fnarray.jit(fnarray.grad(jnp.linalg.det))(x))
        hessian = np.asarray(fnarray.hessian(jnp.linalg.det)(x))
    for i, j in np.ndindex(4, 4):
        want = (-1) ** (i + j) * minor((i,), (j,))
        np.testing.assert_allclose((gradient[i, j], compiled[i, j]), want, atol=1e-12)
        for k, m in np.ndindex(4, 4):
            sign = (-1) ** (i + j + k + m) * (1 if (k > i) == (m > j) else -1)
            want = sign * minor((i, k), (j, m)) if i != k and j != m else 0
            np.testing.assert_allclose(hessian[i, j, k, m], want, atol=1e-12)


SECOND = [
    pytest.param(lambda m, x: m.linalg.slogdet(x)[1], "dominant", id="slogdet"),
    pytest.param(lambda m, x: m.linalg.inv(x).sum(), "dominant", id="inv"),
    pytest.param(lambda m, x: m.linalg.solve(x, x[0]).sum(), "dominant", id="solve"),
    pytest.param(lambda m, x: (m.linalg.cholesky(x) ** 2 * x).sum(), "positive", id="cholesky"),
    pytest.param(lambda m, x: m.linalg.eigh(x)[0][0], "hermitian", id="eigh"),
    pytest.param(lambda m, x: m.linalg.svd(x, compute_uv=False)[0], "dominant", id="svd"),
]


@pytest.mark.parametrize(("f", "word"), SECOND)
def test_second_derivatives(f, word):
    """Hessians are JAX's."""
    x = draw(word, (3, 3), "float64", 0)
    with enable_x64(True), jax.enable_x64(True):
        got = fnarray.hessian(lambda a: f(jnp, a))(x)
        want = in_one(lambda: jax.hessian(lambda a: f(jax.numpy, a))(x))
        assert_same(got, want, 1e5)


BATCHED = [
    pytest.param(fnarray.lax.linalg.cholesky, (P,), id="cholesky"),
    pytest.param(fnarray.lax.linalg.lu, (TALL,), id="lu"),
    pytest.param(fnarray.lax.linalg.qr, (TALL,), id="qr"),
    pytest.param(fnarray.lax.linalg.svd, (WIDE,), id="svd"),
    pytest.param(fnarray.lax.linalg.eigh, (H,), id="eigh"),
    pytest.param(fnarray.lax.linalg.eig, (A,), id="eig"),
    pytest.param(
        lambda a, b: fnarray.lax.linalg.triangular_solve(a, b, left_side=True), (A, B), id="tri"
    ),
    pytest.param(
        lambda a, b: fnarray.lax.linalg.triangular_solve(a, b), (A, ("", (2, 4))), id="tri-right"
    ),
    pytest.param(jnp.linalg.solve, (A, B), id="solve"),
    pytest.param(fnarray.lax.linalg.tridiagonal_solve, (*(("", (4,)),) * 3, B), id="tridiagonal"),
    pytest.param(jnp.linalg.det, (A,), id="det"),
    pytest.param(jnp.linalg.slogdet, (A,), id="slogdet"),
    pytest.param(jnp.linalg.pinv, (TALL,), id="pinv"),
    pytest.param(sl.expm, (A,), id="expm"),
    pytest.param(sl.schur, (A,), id="schur"),
    pytest.param(sl.solve_sylvester, (A, P, A), id="sylvester"),
    pytest.param(
        lambda a, b: fnarray.vjp(jnp.linalg.solve, a, b)[1](b), (A, B), id="solve-backwards"
    ),
]


@pytest.mark.parametrize("size", [3, 1, 0])
@pytest.mark.parametrize(("f", "operands"), BATCHED)
def test_batching_is_a_stacked_loop(f, operands, size):
    """``vmap`` over each choice of operands gives what a loop over the axis gives."""
    for chosen in range(1, 2 ** len(operands)):
        axes = tuple(0 if chosen >> k & 1 else None for k in range(len(operands)))
        if size != 3 and None in axes and chosen != 1:
            continue
        xs = [
            draw(word, (size, *shape) if axis == 0 else shape, "float32", k)
            for k, ((word, shape), axis) in enumerate(zip(operands, axes, strict=True))
        ]
        got = leaves(fnarray.vmap(f, in_axes=axes)(*xs))
        assert all(g.shape[0] == size for g in got)
        for i in range(size):
            want = f(*(x[i] if axis == 0 else x for x, axis in zip(xs, axes, strict=True)))
            assert_same([g[i] for g in got], want, 1e4)


def test_missing_derivatives_say_what_to_do():
    """What has no derivative says why, and what has one."""
    x = draw("dominant", (4, 3), "float32", 0)
    square = draw("dominant", (4, 4), "float32", 0)
    for f, a, words in (
        (fnarray.lax.linalg.qr, x, "full_matrices=False"),
        (fnarray.lax.linalg.svd, x, "full_matrices=False"),
        (fnarray.lax.linalg.schur, square, "eigvals"),
        (jnp.linalg.eig, square, "enable_eigvec_derivs"),
    ):
        with pytest.raises(NotImplementedError, match=words):
            fnarray.jvp(f, (a,), (a,))


def test_gradients_inside_loops_run():
    """A scan over solves has the gradient of the unrolled product, as JAX's has."""
    a, b = draw("dominant", (3, 3), "float32", 0), draw("", (3,), "float32", 1)
    b.flags.writeable = False

    def run(lib, lax):
        def loss(a):
            x, _ = lax.scan(lambda x, _: (lib.linalg.solve(a, x), None), b, None, length=4)
            return (x * x).sum()

        return loss

    got = fnarray.grad(run(jnp, fnarray.lax))(a)
    assert_same(got, in_one(lambda: jax.grad(run(jax.numpy, jax.lax))(a)), 1e4)


def _second(f, x, t):
    """Slope along ``t`` of the gradient of ``f``."""
    return fnarray.jvp(fnarray.grad(f), (x,), (t,))[1]


@pytest.mark.parametrize("run", [lambda f: f, fnarray.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("f", "bound"),
    [
        (lambda x: jnp.linalg.det(x / 7), 1e-7),
        (lambda x: jnp.sum(sl.expm(x / 8) ** 2), 2.5e-7),
        (lambda x: jnp.sum(jnp.linalg.inv(x + 8 * jnp.eye(len(x), dtype=x.dtype)) ** 2), 2.5e-7),
    ],
    ids=["det", "expm", "inv"],
)
def test_second_slopes_keep_digits(f, bound, run):
    """Of matrices of order 30 they are within a few units of the largest, in single precision."""
    rng = np.random.default_rng(3)
    x, t = (rng.standard_normal((30, 30)) for _ in range(2))
    got = run(lambda x, t: _second(f, x, t))(np.float32(x), np.float32(t))
    with enable_x64(True):
        want = _second(f, np.float64(np.float32(x)), np.float64(np.float32(t)))
    assert np.sqrt(np.mean((np.asarray(got, float) - want) ** 2)) < bound * np.max(np.abs(want))


@pytest.mark.parametrize("run", [lambda f: f, fnarray.jit], ids=["eager", "compiled"])
def test_second_slopes_of_exponentials_are_of_any_size(run, x64):
    """Directions of 0, of stacks, complex ones, of no entries; large and small ones scale."""
    second = run(lambda a, e, d: _frechet_slope(a, e, d))
    rng = np.random.default_rng(4)
    a, e, d = rng.standard_normal((3, 2, 4, 4)) + 1j * rng.standard_normal((3, 2, 4, 4))
    base = second(a, e, d)
    np.testing.assert_allclose(second(a, e * 1e9, d) * 1e-9, base, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(second(a, e, d * 1e-9) * 1e9, base, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(second(a, d, e), base, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(second(a, e * 0, d), 0)
    assert second(a[:, :0, :0], e[:, :0, :0], d[:, :0, :0]).shape == (2, 0, 0)


def _frechet_slope(a, e, d):
    """Second derivative of the exponential at ``a``, along ``e`` and ``d``."""
    slope = lambda a: fnarray.jvp(sl.expm, (a,), (e,))[1]  # noqa: E731
    return fnarray.jvp(slope, (a,), (d,))[1]
