"""``scipy.stats`` beside JAX's and SciPy's: values in and out of the support, derivatives."""

from __future__ import annotations

import importlib
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fnarray
from fnarray.config import enable_x64
from fnarray.scipy import stats

from ..oracle import in_one
from .test_linalg import assert_same

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.scipy.stats")

X = np.array([-3.0, -1.0, -0.2, 0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.7, 4.0, 25.0])
K = np.array([-2.0, 0.0, 1.0, 2.0, 3.0, 7.0])
Q = np.array([-0.5, 0.0, 0.01, 0.3, 0.5, 0.9, 1.0, 1.5])
DENSITY = ("logpdf", "pdf")
TAILS = ("cdf", "logcdf", "sf", "logsf")
#: Distribution, functions, first argument, shapes, whether it has loc, whether it has scale.
TABLE = [
    ("norm", (*DENSITY, *TAILS), X, (), True, True),
    ("norm", ("ppf", "isf"), Q[1:-1], (), True, True),
    ("uniform", (*DENSITY, "cdf"), X, (), True, True),
    ("uniform", ("ppf",), Q, (), True, True),
    ("expon", (*DENSITY, *TAILS), X, (), True, True),
    ("expon", ("ppf",), Q, (), True, True),
    ("gamma", (*DENSITY, *TAILS), X, (1.5,), True, True),
    ("gamma", DENSITY, X, (0.5,), True, True),
    ("beta", (*DENSITY, *TAILS), X, (1.5, 2.5), True, True),
    ("chi2", (*DENSITY, *TAILS), X, (3.0,), True, True),
    ("bernoulli", ("logpmf", "pmf"), K, (0.3,), True, False),
    ("bernoulli", ("cdf",), X, (0.3,), False, False),
    ("bernoulli", ("ppf",), np.delete(Q, 1), (0.3,), False, False),
    ("poisson", ("logpmf", "pmf", "cdf"), K, (2.5,), True, False),
    ("binom", ("logpmf", "pmf"), K, (5.0, 0.3), True, False),
    ("nbinom", ("logpmf", "pmf"), K, (5.0, 0.3), True, False),
    ("geom", ("logpmf", "pmf"), K, (0.3,), True, False),
    ("betabinom", ("logpmf", "pmf"), K, (5.0, 1.5, 2.5), True, False),
    ("cauchy", (*DENSITY, *TAILS), X, (), True, True),
    ("cauchy", ("ppf", "isf"), Q[2:-2], (), True, True),
    ("laplace", (*DENSITY, "cdf"), X, (), True, True),
    ("logistic", (*DENSITY, "cdf", "sf"), X, (), True, True),
    ("logistic", ("ppf", "isf"), Q[1:-1], (), True, True),
    ("gumbel_r", (*DENSITY, "cdf", "logcdf", "sf"), X, (), True, True),
    ("gumbel_l", (*DENSITY, "cdf", "sf", "logsf"), X, (), True, True),
    ("gumbel_r", ("ppf",), Q[2:-2], (), True, True),
    ("gumbel_l", ("ppf",), Q[2:-2], (), True, True),
    ("pareto", (*DENSITY, *TAILS), X, (1.5,), True, True),
    ("pareto", ("ppf",), Q, (1.5,), True, True),
    ("t", DENSITY, X, (3.5,), True, True),
    ("gennorm", (*DENSITY, "cdf"), X, (1.5,), False, False),
    ("vonmises", DENSITY, X, (1.5,), False, False),
    ("wrapcauchy", DENSITY, X[3:-1], (0.4,), False, False),
    ("truncnorm", (*DENSITY, *TAILS), X, (-1.0, 2.0), True, True),
    ("truncnorm", (*DENSITY, *TAILS), X, (1.0, 2.0), True, True),
]
ROWS = [
    pytest.param(name, f, x, shapes, loc, scale, id=f"{name}.{f}{i}")
    for i, (name, functions, x, shapes, loc, scale) in enumerate(TABLE)
    for f in functions
]


def arguments(x: Any, shapes: tuple[float, ...], loc: bool, scale: bool) -> tuple[Any, ...]:
    """Arguments with the location and scale that a distribution has; arrays cannot change."""
    x = np.array(x)
    x.flags.writeable = False
    return (x, *shapes, *([0.25] if loc and scale else [1.0] if loc else []), *([1.5] * scale))


@pytest.mark.parametrize(("name", "f", "x", "shapes", "loc", "scale"), ROWS)
def test_matches_scipy(name, f, x, shapes, loc, scale):
    """Values are SciPy's in double precision, inside the support, at its edges and outside."""
    args = arguments(x, shapes, loc, scale)
    with np.errstate(all="ignore"):
        want = getattr(getattr(scipy.stats, name), f)(*args)
    with enable_x64(True):
        got = getattr(getattr(stats, name), f)(*args)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("name", "f", "x", "shapes", "loc", "scale"), ROWS)
def test_is_of_jax_dtype(name, f, x, shapes, loc, scale):
    """Dtypes and shapes are JAX's in single precision, and values to its accuracy."""
    args = arguments(x.astype(np.float32), shapes, loc, scale)
    got = getattr(getattr(stats, name), f)(*args)
    want = in_one(lambda: getattr(getattr(theirs, name), f)(*args))
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    finite = np.isfinite(want)
    np.testing.assert_allclose(np.asarray(got)[finite], want[finite], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", sorted({row[0] for row in TABLE}))
def test_distributions_are_modules_of_documented_functions(name):
    """A distribution imports by its name; functions have JAX's heads and say what they are."""
    module = importlib.import_module(f"fnarray.scipy.stats.{name}")
    assert module is getattr(stats, name)
    assert "distribution" in module.__doc__
    for kind in (k for row in TABLE if row[0] == name for k in row[1]):
        f = getattr(module, kind)
        assert (f.__module__, f.__qualname__) == (f"fnarray.scipy.stats.{name}", kind)
        assert pickle.loads(pickle.dumps(f)) is f
        want = inspect.signature(getattr(getattr(theirs, name), kind)).parameters.values()
        got = inspect.signature(f).parameters.values()
        assert [(p.name, p.default) for p in got] == [(p.name, p.default) for p in want]
        words = ("distribution", "``p", " = ", "Parameters", "Returns", "References")
        assert all(word in f.__doc__ for word in words)


def test_arguments_by_position_and_name():
    """Location and scale go by either; what does not fit is refused, naming the parameters."""
    assert stats.norm.cdf(1.0, 0.5, 2.0) == stats.norm.cdf(x=1.0, scale=2.0, loc=0.5)
    for args, named in (((), {}), ((1.0, 2.0, 3.0, 4.0), {}), ((1.0,), {"size": 3})):
        with pytest.raises(TypeError, match=r"norm\.cdf: .* parameters are x, loc, scale"):
            stats.norm.cdf(*args, **named)


SMOOTH = [r for r in ROWS if r.values[1] in ("logpdf", "logpmf", "cdf", "logcdf", "sf")]


@pytest.mark.parametrize(("name", "f", "x", "shapes", "loc", "scale"), SMOOTH)
def test_derivatives_are_finite_and_central(name, f, x, shapes, loc, scale):
    """Gradients in the parameters are central differences, and no NaN outside the support."""
    face = getattr(getattr(stats, name), f)
    args = arguments(x, shapes, loc, scale)
    first = 1 if name in ("poisson", "bernoulli", "binom", "nbinom", "geom", "betabinom") else 0
    # The incomplete beta function has derivatives in its argument alone, as in JAX.
    skip = name == "beta" and f != "logpdf"
    positions = range(max(first, 1), len(args)) if not skip else [len(args) - 1]
    with enable_x64(True):
        values = np.asarray(face(*args))
        for k in positions:
            if name in ("binom", "betabinom") and k == 1:
                continue
            step = 1e-6

            def moved(d, k=k):
                return face(*(a + d if i == k else a for i, a in enumerate(args)))

            slope = np.asarray(fnarray.jvp(moved, (0.0,), (1.0,))[1])
            with np.errstate(invalid="ignore"):
                central = (np.asarray(moved(step)) - np.asarray(moved(-step))) / (2 * step)
            inside = np.isfinite(values) & np.isfinite(central) & (abs(central) < 1e3)
            assert not np.isnan(slope[np.isfinite(values)]).any()
            np.testing.assert_allclose(slope[inside], central[inside], rtol=1e-4, atol=1e-6)


TINY = np.geomspace(1e-7, 0.5, 60)
FAR = np.concatenate([-np.geomspace(1e-3, 200, 60), np.geomspace(1e-3, 200, 60)])
#: Where formulas lose digits: the far ends, values near 1, large shapes.
ENDS = [
    ("norm", "pdf", FAR / 16, ()),
    ("norm", "cdf", FAR / 16, ()),
    ("norm", "sf", FAR / 16, ()),
    ("norm", "logcdf", FAR / 16, ()),
    ("laplace", "pdf", FAR / 3, ()),
    ("logistic", "pdf", FAR / 3, ()),
    ("logistic", "ppf", np.concatenate([TINY, 1 - TINY]), ()),
    ("cauchy", "pdf", FAR, ()),
    ("cauchy", "logcdf", FAR, ()),
    ("cauchy", "logsf", FAR, ()),
    ("cauchy", "ppf", np.concatenate([TINY, 1 - TINY]), ()),
    ("cauchy", "isf", np.concatenate([TINY, 1 - TINY]), ()),
    ("gamma", "logcdf", TINY * 80, (2.5,)),
    ("gamma", "logsf", TINY * 80, (2.5,)),
    ("chi2", "logcdf", TINY * 80, (3.0,)),
    ("beta", "cdf", TINY * 1.9, (0.2, 0.3)),
    ("beta", "logcdf", TINY * 1.9, (2.0, 3.5)),
    ("beta", "logsf", TINY * 1.9, (2.0, 3.5)),
    ("t", "logpdf", FAR, (300.0,)),
    ("gennorm", "cdf", FAR / 40, (1.5,)),
]


@pytest.mark.parametrize(("name", "f", "x", "shapes"), ENDS, ids=[".".join(r[:2]) for r in ENDS])
def test_digits_at_the_ends(name, f, x, shapes):
    """In float32 all but the last digits are SciPy's of float64, eager and compiled."""
    x = np.float32(x)
    given = tuple(map(np.float32, shapes))
    want = getattr(getattr(scipy.stats, name), f)(np.float64(x), *map(np.float64, given))
    ours = getattr(getattr(stats, name), f)
    kept = np.abs(want) > 2e-38
    for call in (ours, fnarray.jit(ours)):
        np.testing.assert_allclose(call(x, *given)[kept], want[kept], rtol=1e-6)
    slope = fnarray.vmap(fnarray.grad(ours), (0, *[None] * len(given)))(x[::7], *given)
    assert np.all(np.isfinite(slope))


def test_slope_of_the_normal_distribution_is_its_density(x64):
    """The rounding error of the square is put back there, too; second slopes, ends, NaN."""
    x = np.concatenate([np.linspace(-37, 37, 401), [0.0, -0.0, np.inf, -np.inf]])
    want = np.array([np.exp(-0.5 * float(v) ** 2) for v in x]) / np.sqrt(2 * np.pi)
    slope = fnarray.vmap(fnarray.grad(stats.norm.cdf))
    np.testing.assert_allclose(slope(x), want, rtol=4e-13)
    np.testing.assert_array_equal(slope(x), stats.norm.pdf(x))
    x, want = x[:-2], want[:-2]
    second = fnarray.vmap(fnarray.grad(fnarray.grad(stats.norm.cdf)))(x)
    np.testing.assert_allclose(second, -x * want, rtol=4e-13)
    assert np.isnan(stats.norm.cdf(np.nan))
    assert np.isnan(stats.norm.pdf(np.nan))
    np.testing.assert_array_equal(stats.norm.cdf(np.array([-np.inf, np.inf, 1e300])), [0, 1, 1])


def test_multivariate_normal():
    """Densities are SciPy's; batches of points and covariances broadcast; gradients are JAX's."""
    rng = np.random.default_rng(0)
    m = rng.normal(size=(3, 3))
    cov, mean, x = m @ m.T + np.eye(3), rng.normal(size=3), rng.normal(size=(5, 3))
    x.flags.writeable = False
    want = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    with enable_x64(True), jax.enable_x64(True):
        density = stats.multivariate_normal
        assert_same(density.logpdf(x, mean, cov), want)
        assert_same(density.pdf(x, mean, cov), np.exp(want))
        stacked = density.logpdf(x, mean, np.broadcast_to(cov, (5, 3, 3)))
        assert_same(stacked, want)
        single = theirs.multivariate_normal
        for args in ((x, 0.5, 2.0), (x, mean, 2.0)):
            assert_same(density.logpdf(*args), in_one(single.logpdf, *args))
        got = fnarray.grad(lambda m, c: density.logpdf(x, m, c).sum(), (0, 1))(mean, cov)
        want = in_one(jax.grad(lambda m, c: single.logpdf(x, m, c).sum(), (0, 1)), mean, cov)
        assert_same(got[0], want[0], 1e4)
        assert_same(got[1], want[1], 1e4)
    with pytest.raises(ValueError, match=r"\(3,\) needs.*\(2, 2\)"):
        density.logpdf(x, mean, np.eye(2))


def test_dirichlet_and_multinomial():
    """Densities on the simplex, with and without the last component, and of counts."""
    alpha, x = np.array([1.5, 2.0, 0.7]), np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
    with enable_x64(True):
        want = scipy.stats.dirichlet.logpdf(x, alpha)
        assert_same(stats.dirichlet.logpdf(x, alpha), want)
        assert_same(stats.dirichlet.logpdf(x[:2], alpha), want)
        assert_same(stats.dirichlet.pdf(x, alpha), np.exp(want))
        assert stats.dirichlet.logpdf(x + 0.1, alpha)[0] == -np.inf
        counts, p = np.array([[1, 2, 2], [5, 0, 0], [1, 1, 1]]), np.array([0.2, 0.3, 0.5])
        want = scipy.stats.multinomial.logpmf(counts, 5, p)
        assert_same(stats.multinomial.logpmf(counts, 5, p), want)
        assert_same(stats.multinomial.pmf(counts, 5, p), np.exp(want))
    with pytest.raises(ValueError, match="vector"):
        stats.dirichlet.logpdf(x, np.ones((2, 2)))
    with pytest.raises(ValueError, match="components"):
        stats.dirichlet.logpdf(np.ones((5, 2)), alpha)


def test_counts_of_poisson_are_whole():
    """What lies between two counts has no probability, as in SciPy."""
    k = np.array([1.5, 2, -1, 0])
    want = scipy.stats.poisson.pmf(k, 2.0)
    np.testing.assert_allclose(stats.poisson.pmf(k, 2.0), want, rtol=1e-6)


def test_entropy_of_poisson():
    """Small and large means, and their boundary, agree with the sum."""
    mu = np.array([0.0, 0.1, 1.0, 9.0, 59.0, 61.0, 200.0, 5000.0])
    k = np.arange(8000.0)
    logs = np.maximum(scipy.stats.poisson.logpmf(k, mu[:, None]), -1e4)
    want = -np.sum(np.exp(logs) * logs, -1)
    with enable_x64(True):
        np.testing.assert_allclose(stats.poisson.entropy(mu), want, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_statistics_of_samples(axis):
    """Modes, ranks and standard errors are JAX's, along each axis and over all."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (6, 5)).astype(np.float32)
    y = x.copy()
    y[0, 0] = np.nan

    def all_of(m):
        return [
            *(m.mode(x, axis=axis, keepdims=k) for k in (False, True)),
            *(
                m.rankdata(x, how, axis=axis)
                for how in ("average", "min", "max", "dense", "ordinal")
            ),
            m.sem(x, axis=axis),
            m.sem(y, axis=axis, nan_policy="omit"),
        ]

    assert_same(all_of(stats), in_one(lambda: all_of(theirs)))
    x = y
    assert np.isnan(stats.rankdata(x)).all()
    with pytest.raises(ValueError, match="'x'"):
        stats.rankdata(x, "x")
    with pytest.raises(ValueError, match="nan_policy"):
        stats.mode(x, nan_policy="raise")


@pytest.mark.parametrize("bw", [None, "silverman", 0.7, lambda kde: kde.n ** (-1 / (kde.d + 4))])
@pytest.mark.parametrize("d", [1, 2])
def test_kernel_densities(bw, d):
    """Densities, integrals and pytrees are JAX's."""
    rng = np.random.default_rng(0)
    data, points, weights = rng.normal(size=(d, 20)), rng.normal(size=(d, 7)), rng.uniform(size=20)
    with enable_x64(True), jax.enable_x64(True):
        ours, other = (m.gaussian_kde(data, bw, weights) for m in (stats, theirs))
        for name in ("neff", "covariance", "inv_cov", "weights"):
            assert_same(getattr(ours, name), getattr(other, name))
        assert_same(ours.logpdf(points), other.logpdf(points), 1e4)
        assert_same(ours(points), other(points), 1e4)
        mean, cov = np.full(d, 0.3), 0.5 * np.eye(d)
        got, want = (kde.integrate_gaussian(mean, cov) for kde in (ours, other))
        assert_same(got, want, 1e4)
        assert_same(ours.integrate_kde(ours), other.integrate_kde(other), 1e4)
        got = fnarray.jit(lambda kde, x: kde.pdf(x))(ours, points)
        assert_same(got, other(points), 1e4)
        if d == 1:
            assert_same(ours.integrate_box_1d(-1, 0.5), other.integrate_box_1d(-1, 0.5), 1e4)
        else:
            with pytest.raises(ValueError, match="one dimension"):
                ours.integrate_box_1d(-1, 0.5)
        got = ours.resample(fnarray.random.key(0), (5,))
        assert_same(got, other.resample(jax.random.key(0), (5,)), 1e4)
    with pytest.raises(ValueError, match="dimensions"):
        ours.logpdf(np.ones((5, 7)))


def test_kernel_densities_refuse():
    """Too few samples, unknown methods and weights of another shape are refused."""
    for args, words in (
        (([1.0],), "two samples"),
        (([1.0, 2.0], "x"), "'x'"),
        (([1.0, 2.0], None, np.ones(3)), r"\(3,\)"),
    ):
        with pytest.raises(ValueError, match=words):
            stats.gaussian_kde(np.array(args[0]), *args[1:])
