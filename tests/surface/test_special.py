"""`fnarray.scipy.special` against SciPy, and its dtypes against JAX."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special as scipy_special

import fnarray
from fnarray.scipy import special

X = np.array([-7.5, -3.2, -1.5, -0.3, 0.2, 0.9, 1.0, 2.7, 6.1, 14.0], np.float32)
P = X[X > 0]
UNIT = np.array([1e-30, 1e-6, 0.01, 0.2, 0.5, 0.73, 0.95, 0.9999], np.float32)
WHOLE = np.arange(1, 8)

CALLS = {
    "erf": (X,),
    "erfc": (X,),
    "erfinv": (UNIT,),
    "ndtr": (X,),
    "ndtri": (UNIT,),
    "log_ndtr": (np.concatenate([X, np.float32([-30, -12, -10, 5, 5.5, 9])]),),
    "expit": (X,),
    "logit": (UNIT,),
    "xlogy": (np.float32([0, 0, 1, 2, 0]), np.float32([0, 3, 2, 5, np.nan])),
    "xlog1py": (np.float32([0, 0, 1, 2, 0]), np.float32([-1, 3, 2, 1e-5, np.nan])),
    "entr": (np.float32([-1, 0, 0.5, 3]),),
    "rel_entr": (np.float32([0, 1, 1, -1, 2]), np.float32([1, 0, 2, 1, 3])),
    "kl_div": (np.float32([0, 1, 1, 2]), np.float32([1, 0, 2, 3])),
    "boxcox": (P, np.float32(0.3)),
    "boxcox:zero": (P, np.float32(0)),
    "boxcox1p": (P, np.float32(-0.4)),
    "gammaln": (X,),
    "loggamma": (P,),
    "gammasgn": (X,),
    "gamma": (X,),
    "digamma": (X,),
    "polygamma": (2, P),
    "zeta": (P + 1, np.float32(1.5)),
    "gammainc": (P, np.float32(2.0)),
    "gammaincc": (P, np.float32(2.0)),
    "betaln": (P, np.float32(2.5)),
    "betaln:large": (
        np.float32([2, 1e4, 3e5, 9, -0.5, -7.5]),
        np.float32([1e4, 7, 2e6, 8, 1e4, 8]),
    ),
    "beta": (X, np.float32(1.25)),
    "betainc": (P, np.float32(2.5), np.float32(0.3)),
    "factorial": (WHOLE,),
    "poch": (P, np.float32(1.5)),
    "comb": (np.arange(9), 3),
    "multigammaln": (P + 3, 3),
    "i0": (X,),
    "i0e": (X,),
    "i1": (X,),
    "i1e": (X,),
    "softmax": (X,),
    "log_softmax": (X,),
    "logsumexp": (X,),
    "bernoulli": (12,),
    "dawsn": (X,),
    "erfcx": (P,),
    "exp1": (P,),
    "expi": (X,),
    "expn": (2, P),
    "fresnel": (X,),
    "hyp1f1": (np.float32(0.5), np.float32(1.5), P),
    "hyp2f1": (np.float32(0.5), np.float32(1.5), np.float32(2.5), np.float32([-0.4, 0.1, 0.8])),
    "owens_t": (X, np.float32(0.7)),
    "sici": (P,),
    "spence": (P,),
    "wofz": ((X + 1j).astype(np.complex64),),
    "sph_harm_y": (np.array([0, 1, 3]), np.array([0, -1, 2]), P[:3], P[3:6]),
}


#: What only JAX needs.
MORE = {"sph_harm_y": {"n_max": 3}}


@pytest.mark.parametrize("name", CALLS)
def test_matches_scipy(name, jax):
    """Values are SciPy's in double precision; shape, dtype and weak type are JAX's."""
    function = name.split(":")[0]
    args = CALLS[name]
    got = getattr(special, function)(*args)
    wide = [
        np.asarray(a, np.float64) if isinstance(a, np.ndarray) and a.dtype == np.float32 else a
        for a in args
    ]
    want = getattr(scipy_special, function)(*wide)
    more = MORE.get(function, {})
    theirs = jax.eval_shape(lambda: getattr(jax.scipy.special, function)(*args, **more))
    if not isinstance(got, tuple):
        got, want, theirs = (got,), (want,), (theirs,)
    for g, w, t in zip(got, want, theirs, strict=True):
        np.testing.assert_allclose(g, w, rtol=3e-5, atol=2e-6)
        assert (g.shape, g.dtype, g.weak_type) == (t.shape, t.dtype, t.weak_type)


def test_bessel_jn():
    """Orders 0 to v lie along the first axis."""
    want = [scipy_special.jv(k, P.astype(np.float64)) for k in range(4)]
    np.testing.assert_allclose(special.bessel_jn(P, v=3), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("normalized", [False, True])
def test_lpmn_values(normalized, x64):
    """All associated Legendre functions up to a degree, by order and degree; derivatives too."""
    z = np.linspace(-0.99, 0.99, 7)
    of = scipy_special.factorial
    for top in (0, 1, 6):
        want = np.zeros((top + 1, top + 1, z.size))
        for degree in range(top + 1):
            for order in range(degree + 1):
                square = (2 * degree + 1) * of(degree - order) / (4 * np.pi * of(degree + order))
                factor = np.sqrt(square) if normalized else 1.0
                want[order, degree] = factor * scipy_special.lpmv(order, degree, z)
        got = special.lpmn_values(top, top, z, normalized)
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
    total = lambda z: special.lpmn_values(3, 3, z, normalized).sum()  # noqa: E731
    slope = (np.asarray(total(z + 1e-6)) - np.asarray(total(z - 1e-6))) / 2e-6
    np.testing.assert_allclose(np.asarray(fnarray.grad(total)(z)).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize("name", ["ndtri", "log_ndtr", "erf", "gammaln", "i1"])
def test_double(name, x64):
    """In float64 the error is a few units in the last place of float64."""
    args = [np.asarray(a, np.float64) for a in CALLS[name]]
    got = np.asarray(getattr(special, name)(*args))
    assert got.dtype == np.float64
    rtol = 1e-8 if name == "log_ndtr" else 1e-13  # the series has three terms
    np.testing.assert_allclose(got, getattr(scipy_special, name)(*args), rtol=rtol)


def test_riemann_zeta():
    """Without ``q`` it is Riemann's function, which JAX leaves out."""
    np.testing.assert_allclose(special.zeta(P + 1), scipy_special.zeta(P + 1.0), rtol=1e-6)


def test_edges_of_the_normal_quantile():
    """Infinite at 0 and 1, NaN outside."""
    got = np.asarray(special.ndtri(np.float32([0, 1, -0.1, 1.1, np.nan])))
    np.testing.assert_array_equal(got, [-np.inf, np.inf, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: special.erf([1.0]), TypeError, "position 0"),
        (lambda: special.xlogy(1.0, None), TypeError, "position 1"),
        (lambda: special.factorial(3, exact=True), NotImplementedError, "math.factorial"),
        (lambda: special.multigammaln(3.0, 0), ValueError, "positive"),
        (lambda: special.multigammaln(3.0, 2.5), ValueError, "whole"),
        (lambda: special.bernoulli(-1), ValueError, "negative"),
        (lambda: special.log_ndtr(1.0, series_order=-1), ValueError, "series_order"),
        (lambda: special.lpmn_values(1, 2, X, True), NotImplementedError, "one number"),
        (lambda: special.lpmn_values(2, 2, 0.5, True), ValueError, "one axis"),
    ],
)
def test_refuses(call, error, match):
    """Bad arguments are named in the error."""
    with pytest.raises(error, match=match):
        call()


def test_derivative_by_the_shape_compiles_in_single_precision():
    """What a kernel computes in float64 is rounded before the operations that follow."""
    slope = fnarray.grad(lambda a, x: special.gammainc(a / 2, x))
    np.testing.assert_array_equal(fnarray.jit(slope)(3.0, 1.5), slope(3.0, 1.5))


def test_logarithms_of_beta_lose_no_digits(x64):
    """Of large arguments too, where differences of `gammaln`, SciPy's among them, lose most."""
    pairs = [(1, 10**9), (2, 10**6), (9, 10**6), (8, 9), (7, 8), (5000, 5000), (40, 10**5)]
    want = [-math.log(b * math.comb(a + b - 1, min(b, a - 1))) for a, b in pairs]
    np.testing.assert_allclose(special.betaln(*np.float64(pairs).T), want, rtol=1e-14)
    ways = np.array([2.0, 30, 5000]), np.array([1e6, 60, 1e4])
    want = scipy_special.comb(*ways[::-1])[:2]
    np.testing.assert_allclose(special.comb(*ways[::-1])[:2], want, rtol=1e-12)
    slopes = fnarray.grad(special.betaln, (0, 1))(2.0, 1e4)
    digamma = scipy_special.digamma
    want = digamma(2.0) - digamma(10002.0), digamma(1e4) - digamma(10002.0)
    np.testing.assert_allclose(slopes, want, rtol=1e-11)


@pytest.mark.parametrize("name", ["i0", "i1"])
def test_derivatives_of_bessel_functions_keep_digits(name):
    """To third order, and where they are small: near 0, where differences of theirs lose all."""
    size = np.geomspace(1e-30, 60, 300)
    x = np.float32(np.concatenate([[0], size, -size]))
    f = getattr(special, name)
    for order in range(1, 4):
        f = fnarray.grad(f)
        # SciPy's own recurrence loses nothing: it adds what is of one sign.
        want = scipy_special.ivp(int(name[1]), np.float64(x), order)
        np.testing.assert_allclose(fnarray.jit(fnarray.vmap(f))(x), want, rtol=6e-7)


@pytest.mark.parametrize("run", [lambda f: f, fnarray.jit], ids=["eager", "compiled"])
def test_quotients_next_to_one_keep_digits(run):
    """Logarithms of odds and of quotients, and divergences, whose terms cancel there."""
    gap = np.float32(np.concatenate([np.geomspace(1e-3, 0.49, 80), -np.geomspace(1e-3, 0.49, 80)]))
    x = np.float32(0.5) + gap
    np.testing.assert_allclose(run(special.logit)(x), scipy_special.logit(x * 1.0), rtol=3e-7)
    q = np.float32(np.geomspace(1e-3, 1e3, gap.size))
    p = np.concatenate([q * (1 + gap), q * np.float32(1e-6), q * np.float32(1e6)])
    q = np.tile(q, 3)
    for name in ("rel_entr", "kl_div"):
        want = getattr(scipy_special, name)(np.float64(p), np.float64(q))
        np.testing.assert_allclose(run(getattr(special, name))(p, q), want, rtol=1e-6)
    slopes = run(fnarray.vmap(fnarray.grad(special.kl_div, (0, 1))))(p, q)
    log_quotient = np.log(np.float64(p) / np.float64(q))
    np.testing.assert_allclose(slopes[0], log_quotient, rtol=1e-6)
    np.testing.assert_allclose(slopes[1], (np.float64(q) - p) / q, rtol=1e-6)


def test_edges_of_quotients():
    """Zeros, numbers that are no probabilities, infinities and NaN, as in SciPy."""
    x = np.float32([-0.5, -0.0, 0, 1, 1.5, np.inf, -np.inf, np.nan, 1e-38, 0.5])
    with np.errstate(all="ignore"):
        for logit in (special.logit, fnarray.jit(special.logit)):
            np.testing.assert_allclose(logit(x), scipy_special.logit(x), rtol=1e-6)
        p, q = (v.ravel() for v in np.meshgrid(x[1:], x[1:]))
        for name in ("rel_entr", "kl_div"):
            want = getattr(scipy_special, name)(p, q)
            finite = np.isfinite(want)
            np.testing.assert_allclose(
                getattr(special, name)(p, q)[finite], want[finite], rtol=1e-5, atol=1e-6
            )


def test_incomplete_gamma_of_few_per_cent(x64):
    """Far below a large order the quotient, not its distance to one, has the digits."""
    a, x = np.float64([80.0, 80, 200, 15]), np.float64([0.0169, 0.3, 3, 1e-5])
    want = scipy_special.gammainc(a, x)
    np.testing.assert_allclose(fnarray.jit(special.gammainc)(a, x), want, rtol=1e-12)
    want = scipy_special.betainc(a, 20.0, x / 30)
    np.testing.assert_allclose(fnarray.jit(special.betainc)(a, 20.0, x / 30), want, rtol=2e-12)


@pytest.mark.parametrize("run", [lambda f: f, fnarray.jit], ids=["eager", "compiled"])
def test_digamma_of_negative_numbers_in_double_precision(run, x64):
    """By reflection, from the distance to the next pole: the recurrence is the oracle."""
    x = -np.linspace(0.03, 19.97, 500)
    x = x[np.abs(x - np.round(x)) > 0.01]
    want = scipy_special.digamma(x + 20) - sum(1 / (x + k) for k in range(20))
    np.testing.assert_allclose(run(special.digamma)(x), want, rtol=1e-13, atol=3e-14)
    edges = np.array([-1.0, -2, -0.0, 0, -np.inf, np.nan])
    assert np.isnan(run(special.digamma)(edges)).all()


def test_exponential_integral_has_no_slope_below_zero():
    """As it has no value there."""
    x = np.float32([-2, -0.5, 0.5])
    slope = fnarray.vmap(fnarray.grad(special.exp1))(x)
    np.testing.assert_allclose(slope, [np.nan, np.nan, -np.exp(-0.5) / 0.5], rtol=1e-6)
