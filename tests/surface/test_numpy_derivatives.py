"""Every differentiable function of ``numpy``, argument by argument, as HIPS autograd checked them.

Forward mode against central differences, reverse against forward mode, maps against loops; against
JAX's gradients when slow tests run. A test holds the table complete.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.numpy
from fnarray.config import effects, enable_x64
from fnarray.core.tangents import differentiable

_rng = np.random.default_rng(0)
#: What the names in expressions stand for: ``p q`` are in (0, 1), ``z`` is complex.
VALUES = {
    "a": _rng.normal(size=(3, 4)),
    "b": _rng.normal(size=(3, 4)) + 0.1,
    "u": _rng.normal(size=4),
    "v": _rng.normal(size=3),
    "s": np.float64(0.7),
    "r": _rng.normal(size=(3, 1)),
    "p": _rng.uniform(0.1, 0.9, (3, 4)),
    "q": _rng.uniform(0.1, 0.9, 4),
    "m": _rng.normal(size=(4, 2)),
    "w": _rng.normal(size=(4, 4)),
    "c": _rng.normal(size=(2, 3, 4)),
    "z": _rng.normal(size=(3, 4)) + 1j * _rng.normal(size=(3, 4)),
}
I2 = np.array([[0, 2], [1, 1]])
MASK = np.array([True, False, True, True])

_MAPS = """
abs absolute arcsinh arctan asinh atan cbrt cos cosh deg2rad degrees exp exp2 expm1 fabs i0 negative
positive rad2deg radians sin sinc sinh square tan tanh real conj conjugate nan_to_num copy asarray
array modf
"""
_POSITIVE = "log log10 log1p log2 sqrt reciprocal"
_WITHIN = "arccos acos arcsin asin arctanh atanh"
_BEYOND = "arccosh acosh"
_STEPS = "ceil floor rint round around trunc sign"
_BINARY = """
add subtract multiply maximum minimum fmax fmin arctan2 atan2 hypot logaddexp logaddexp2 copysign
"""
_QUOTIENTS = "divide true_divide mod remainder fmod"
_FOLDS = (
    "sum mean prod var std max min amax amin nansum nanmean nanprod nanvar nanstd nanmax nanmin"
)
_RUNNING = "cumsum cumprod nancumsum nancumprod"


def _spread(names: str, *variants: str) -> dict[str, tuple[str, ...]]:
    return {n: tuple(re.sub(r"\bF\b", f"jnp.{n}", v) for v in variants) for n in names.split()}


TABLE: dict[str, tuple[str, ...]] = {
    **_spread(_MAPS, "F(a)", "F(s)", "F(c)"),
    **_spread(_POSITIVE, "F(p)", "F(s)", "F(p) * F(q)"),
    **_spread(_WITHIN, "F(p)", "F(s)", "F(-q)"),
    **_spread(_BEYOND, "F(p + 1)", "F(s + 1)"),
    **_spread(_STEPS, "F(a) * a"),
    **_spread(_BINARY, "F(a, b)", "F(a, s)", "F(u, a)", "F(r, u)", "F(a, 0.3)", "F(0.3, s)"),
    **_spread(_QUOTIENTS, "F(a, p)", "F(a, 1.3)", "F(s, p)", "F(r, q)"),
    **_spread(
        _FOLDS, "F(a)", "F(a, axis=0)", "F(a, axis=-1, keepdims=True)", "F(c, axis=(0, 2))", "F(u)"
    ),
    **_spread(_RUNNING, "F(a)", "F(a, axis=0)", "F(c, axis=-1)"),
    **_spread("nanmedian median", "F(a)", "F(a, axis=1)", "F(a, axis=0, keepdims=True)"),
    **_spread("acos asin", "F(q)"),
    **_spread("mod remainder fmod", "F(a, p + 0.2)"),
    **_spread("divmod", "F(a, p + 0.2)[1]"),
    **_spread("power pow float_power", "F(p, b)", "F(p, s)", "F(q, a)", "F(p, 3.0)"),
    **_spread("power pow", "F(a, 3)", "F(a, 2)", "F(p, -1.5)", "F(2.0, a)", "F(p, u)"),
    **_spread("astype", "F(a, float)"),
    **_spread("angle", "F(z)"),
    **_spread("imag", "F(z)"),
    **_spread("floor_divide heaviside", "F(a, p) * a"),
    **_spread("ldexp", "F(a, 2)"),
    **_spread("frexp", "F(a)[0]"),
    **_spread("clip", "F(a, -0.5, 0.5)", "F(a, q - 1, p)", "F(a, max=s)"),
    **_spread("where", "F(a > 0, a, b)", "F(MASK, u, s)", "F(a > b, a, 1.0)"),
    **_spread("select", "F([a > 1, a > 0], [a, b * b], u)"),
    **_spread("piecewise", "F(a, [a > 0.5, a < 0], [lambda x: x * x, 2.0, lambda x: -x])"),
    **_spread("choose", "F(np.array([0, 1, 0, 1]), [u, q])"),
    **_spread("interp", "F(q, np.array([0.0, 0.4, 1.0]), v)", "F(p, np.linspace(0, 1, 4), u)"),
    **_spread("unwrap", "F(3 * u)"),
    # products
    **_spread("dot", "F(a, m)", "F(a, u)", "F(u, u)", "F(s, a)", "F(c, m)", "F(c, u)", "F(u, w)"),
    **_spread("matmul", "F(a, m)", "F(a, u)", "F(v, a)", "F(u, q)", "F(c, m)", "F(a, w[None])"),
    **_spread("matvec", "F(a, u)", "F(c, u)"),
    **_spread("vecmat", "F(v, a)", "F(v, c)"),
    **_spread("vecdot", "F(a, b)", "F(a, u)", "F(c, a)", "F(a, b, axis=0)"),
    **_spread("vdot", "F(a, b)", "F(u, q)"),
    **_spread("inner", "F(a, b)", "F(u, q)", "F(c, a)", "F(s, u)"),
    **_spread("outer", "F(u, v)", "F(a, v)"),
    **_spread("kron", "F(a, m)", "F(u, v)", "F(u, a)"),
    **_spread("cross", "F(v, a[:, 0])", "F(b[:, :3], a[:, 1:])", "F(a[:, :3], v)"),
    **_spread("tensordot", "F(c, a)", "F(a, b, 0)", "F(c, a, ((1, 2), (0, 1)))", "F(a, m, 1)"),
    **_spread("einsum", "F('ij,jk', a, m)", "F('ij->j', a)", "F('bij,ij->b', c, a)",
              "F('ii->i', w)", "F('i,j->ji', u, v)", "F('...j,j', c, u)"),
    **_spread("convolve correlate", "F(u, v)", "F(u, v, mode='same')", "F(v, u, mode='valid')"),
    **_spread("trace", "F(w)", "F(a, 1)", "F(c, axis1=0, axis2=2)"),
    **_spread("average", "F(a)", "F(a, axis=0)", "F(a, 1, q)", "F(a, weights=p)"),
    **_spread("cov corrcoef", "F(a)", "F(a, b)", "F(a, rowvar=False)"),
    **_spread("trapezoid", "F(a)", "F(a, dx=0.3, axis=0)", "F(a, u)"),
    **_spread("ptp", "F(a)", "F(a, axis=1)"),
    **_spread("quantile nanquantile", "F(a, 0.3)", "F(a, s, axis=1)", "F(u, np.array([0.2, 0.9]))"),
    **_spread("percentile nanpercentile", "F(a, 30.0, axis=0)"),
    **_spread("cumulative_sum cumulative_prod", "F(u)", "F(a, axis=1, include_initial=True)"),
    **_spread("diff", "F(a)", "F(a, 2, axis=1)", "F(u, prepend=s)"),
    **_spread("ediff1d", "F(u)", "F(u, to_end=v)"),
    **_spread("gradient", "F(u)", "F(a)", "F(a, 0.5, axis=1)"),
    **_spread("bincount", "F(np.array([0, 2, 0, 1]), u, length=3)"),
    **_spread("histogram", "F(q, bins=3, weights=u)[0]"),
    **_spread("histogram2d", "F(q, q, bins=2, weights=u)[0]"),
    # order
    **_spread("sort", "F(a)", "F(a, axis=0)", "F(a, axis=None)"),
    **_spread("partition", "F(u, 2)", "F(a, 1, axis=0)"),
    **_spread("take_along_axis", "F(a, jnp.argsort(a, axis=1), 1)", "F(m, I2, 0)"),
    **_spread("unique unique_values", "F(u, size=4)"),
    **_spread("union1d", "F(u, v, size=7)"),
    # shapes
    **_spread("ravel flip squeeze transpose atleast_1d atleast_2d atleast_3d",
              "F(a)", "F(c)"),
    **_spread("permute_dims", "F(c, (2, 0, 1))"),
    **_spread("matrix_transpose fliplr flipud diagonal tril triu rot90", "F(a)"),
    **_spread("tril triu diagonal", "F(a, 1)"),
    **_spread("reshape", "F(a, (4, 3))", "F(a, -1)", "F(c, (2, -1))"),
    **_spread("resize", "F(a, (2, 5))"),
    **_spread("expand_dims", "F(a, 1)", "F(a, (0, -1))"),
    **_spread("moveaxis", "F(c, 0, 2)", "F(c, (0, 1), (1, 0))"),
    **_spread("swapaxes", "F(c, 0, 2)"),
    **_spread("rollaxis", "F(c, 2)"),
    **_spread("roll", "F(a, 2)", "F(a, (1, -1), (0, 1))"),
    **_spread("broadcast_to", "F(u, (2, 4))", "F(r, (3, 2))", "F(s, (2,))"),
    **_spread("broadcast_arrays", "F(u, s)"),
    **_spread("meshgrid", "F(u, v)"),
    **_spread("repeat", "F(a, 2)", "F(a, 2, axis=0)", "F(u, np.array([1, 0, 2, 1]))"),
    **_spread("tile", "F(a, 2)", "F(a, (2, 1))", "F(u, (2, 3))"),
    **_spread("pad", "F(a, 1)", "F(a, ((1, 0), (2, 1)), mode='edge')", "F(u, 2, mode='wrap')",
              "F(u, 2, mode='reflect')", "F(u, 2, mode='mean')"),
    **_spread("concatenate concat", "F([a, b])", "F([a, r], axis=1)", "F([a, b], axis=None)"),
    **_spread("stack", "F([a, b])", "F([u, q], axis=1)"),
    **_spread("vstack hstack dstack", "F([a, b])", "F([u, q])"),
    **_spread("column_stack", "F([v, a])"),
    **_spread("append", "F(a, b)", "F(a, r, axis=1)"),
    **_spread("block", "F([[a, r], [a, r]])"),
    **_spread("split array_split", "F(a, 2, axis=1)", "F(u, [1, 3])"),
    **_spread("hsplit", "F(a, 2)"),
    **_spread("vsplit", "F(w, 2)"),
    **_spread("dsplit", "F(c, 2)"),
    **_spread("unstack", "F(a)", "F(a, axis=1)"),
    **_spread("delete", "F(a, 1, axis=0)"),
    **_spread("insert", "F(u, 1, s)", "F(a, 1, u, axis=0)"),
    **_spread("diag", "F(u)", "F(w)", "F(u, 1)"),
    **_spread("diagflat", "F(u)", "F(a)"),
    **_spread("fill_diagonal", "F(w, s, inplace=False)", "F(w, u, inplace=False)"),
    **_spread("put", "F(u, np.array([0, 2]), s, inplace=False)"),
    **_spread("put_along_axis", "F(a, I2[:1, :1], s, 1, inplace=False)"),
    **_spread("place", "F(u, MASK, v, inplace=False)"),
    **_spread("take", "F(a, I2)", "F(a, I2, axis=1)", "F(u, np.array([0, -1]))"),
    **_spread("compress", "F(MASK, a, axis=1)"),
    **_spread("extract", "F(MASK, u)"),
    **_spread("vander", "F(v)", "F(v, 4, increasing=True)"),
    **_spread("linspace", "F(s, 2.0, 5)", "F(v, u[:3], 4, axis=1)"),
    **_spread("logspace", "F(s, 2.0, 5)"),
    **_spread("geomspace", "F(s, 2.0, 5)"),
    **_spread("full", "F((2, 3), s)", "F((2, 4), u)"),
    **_spread("full_like", "F(a, s)"),
    # polynomials
    **_spread("polyval", "F(v, u)", "F(v, s)"),
    **_spread("polyadd polysub polymul", "F(u, v)"),
    **_spread("polyder polyint", "F(u)", "F(u, 2)"),
    **_spread("polydiv", "F(u, v)"),
    **_spread("poly", "F(v)"),
    **_spread("polyfit", "F(np.linspace(0, 1, 4), u, 2)"),
    # functions of functions
    **_spread("apply_along_axis", "F(lambda x: x * x.sum(), 1, a)"),
    **_spread("apply_over_axes", "F(jnp.sum, c, (0, 2))"),
    **_spread("vectorize", "F(lambda x, y: x * jnp.sin(y))(a, u)",
              "F(lambda x, y: x @ y, signature='(n),(n)->()')(a, u)",
              "F(lambda x, y: x * y, excluded={1})(a, s)"),
    **_spread("frompyfunc", "F(lambda x, y: x * y + y, 2, 1)(a, u)"),
    **_spread("fromfunction", "F(lambda i: i * s, (3,))"),
}  # fmt: skip

#: Functions without derivatives: of integers and booleans, of structures, of files.
OTHERS = """
__array_namespace_info__
all allclose any arange argmax argmin argpartition argsort argwhere array_equal array_equiv
array_repr array_str bartlett bitwise_and bitwise_count bitwise_invert bitwise_left_shift
bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman broadcast_shapes can_cast
count_nonzero diag_indices diag_indices_from digitize einsum_path empty empty_like equal eye finfo
flatnonzero from_dlpack frombuffer fromfile fromiter fromstring gcd get_printoptions greater
greater_equal hamming hanning histogram_bin_edges histogramdd identity iinfo indices intersect1d
invert isclose iscomplex iscomplexobj isdtype isfinite isin isinf isnan isneginf isposinf isreal
isrealobj isscalar issubdtype iterable ix_ kaiser lcm left_shift less less_equal lexsort load
logical_and logical_not logical_or logical_xor mask_indices nanargmax nanargmin ndim nextafter
nonzero not_equal ones ones_like packbits printoptions promote_types ravel_multi_index result_type
right_shift roots save savez searchsorted set_printoptions setdiff1d setxor1d shape signbit size
sort_complex spacing trim_zeros tri tril_indices tril_indices_from triu_indices triu_indices_from
unique_all unique_counts unique_inverse unpackbits unravel_index zeros zeros_like
"""


def _function(text: str, module: Any) -> tuple[Callable[..., list[Any]], list[np.ndarray]]:
    """Return an expression as a function of the arrays in it, and those."""
    names = [name for name in VALUES if re.search(rf"\b{name}\b", text)]
    given = {"jnp": module.numpy, "np": np, "I2": I2, "MASK": MASK}
    fun = eval(f"lambda {', '.join(names)}: {text}", given)

    def f(*xs: Any) -> list[Any]:
        out = fun(*map(module.numpy.asarray, xs))
        return [y for y in _leaves(out) if differentiable(y.dtype)]

    return f, [VALUES[name] for name in names]


def _leaves(out: Any) -> list[Any]:
    return [x for part in out for x in _leaves(part)] if isinstance(out, tuple | list) else [out]


def _random(rng: np.random.Generator, like: Any) -> np.ndarray:
    t = rng.uniform(-1, 1, like.shape)
    return np.asarray(t + 1j * (t - 0.3) if np.dtype(like.dtype).kind == "c" else t)


def _pairing(xs: Any, ys: Any) -> float:
    return sum(
        float(np.sum(np.asarray(x) * np.asarray(y)).real) for x, y in zip(xs, ys, strict=True)
    )


def _modes(text: str) -> None:
    """Forward mode gives the slope, and reverse mode pairs with it."""
    f, xs = _function(text, fnarray)
    rng = np.random.default_rng(1)
    ts = [_random(rng, x) for x in xs]
    outs, tangents = fnarray.jvp(f, tuple(xs), tuple(ts))
    assert outs, f"{text}: no results"
    up, down = (f(*(x + h * t for x, t in zip(xs, ts, strict=True))) for h in (1e-6, -1e-6))
    for t, hi, lo in zip(tangents, up, down, strict=True):
        slope = (np.asarray(hi) - np.asarray(lo)) / 2e-6
        limit = 1e-6 * (1 + np.abs(slope).max(initial=0))
        np.testing.assert_allclose(np.asarray(t), slope, rtol=0, atol=limit, err_msg=text)
    cts = [_random(rng, y) for y in outs]
    back = fnarray.vjp(f, *xs)[1](cts)
    for x, g in zip(xs, back, strict=True):
        assert (g.shape, g.dtype) == (x.shape, x.dtype), text
    forward, reverse = _pairing(cts, tangents), _pairing(ts, back)
    assert abs(forward - reverse) <= 1e-10 * (1 + abs(forward)), f"{text}: {forward}, {reverse}"


def _maps(text: str) -> None:
    """A map over all arguments, or the first, is the stacked loop."""
    f, xs = _function(text, fnarray)
    rows = [xs, [0.9 * x for x in xs]]
    for axes in {(0,) * len(xs), (0, *(None,) * (len(xs) - 1))}:
        lanes = [
            [r if a == 0 else x for r, x, a in zip(row, xs, axes, strict=True)] for row in rows
        ]
        args = [np.stack(c) if a == 0 else c[0]
                for c, a in zip(zip(*lanes, strict=True), axes, strict=True)]  # fmt: skip
        got = fnarray.vmap(f, in_axes=axes)(*args)
        for g, *want in zip(got, *(f(*lane) for lane in lanes), strict=True):
            np.testing.assert_allclose(
                g, np.stack(list(map(np.asarray, want))), 1e-9, 1e-9, err_msg=text
            )


@pytest.mark.parametrize("name", sorted(TABLE))
def test_modes_and_maps(name: str) -> None:
    """Forward mode is the slope, reverse mode its transpose, a map the stacked loop."""
    with enable_x64(True), effects("off"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in TABLE[name]:
            _modes(text)
            _maps(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLE))
def test_gradients_as_jax(name: str) -> None:
    """Cotangents of every argument are JAX's."""
    rng = np.random.default_rng(2)
    with enable_x64(True), jax.enable_x64(True), effects("off"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in TABLE[name]:
            (ours, xs), (theirs, _) = _function(text, fnarray), _function(text, jax)
            cts = [_random(rng, y) for y in ours(*xs)]
            got = fnarray.vjp(ours, *xs)[1](cts)
            for g, w in zip(got, jax.vjp(theirs, *xs)[1](cts), strict=True):
                assert (g.shape, g.dtype) == (w.shape, w.dtype), text
                size = 1 + np.abs(np.asarray(w)).max(initial=0)
                np.testing.assert_allclose(g, w, rtol=1e-8, atol=1e-9 * size, err_msg=text)


def test_the_table_is_complete() -> None:
    """Every public function is in the table, or among those that have no derivatives."""
    public = {
        name
        for name in fnarray.numpy.__all__
        if callable(value := getattr(fnarray.numpy, name)) and not isinstance(value, type)
    }
    assert public - set(TABLE) - set(OTHERS.split()) == set()


@pytest.mark.parametrize("name", ["nanvar", "nanstd", "var", "std"])
def test_what_is_taken_out_has_no_slope(name: str) -> None:
    """NaN and infinity that a mask, or being NaN, takes out: the others' slopes are those alone."""
    f = getattr(fnarray.numpy, name)
    for hole in (np.nan,) if name.startswith("nan") else (np.nan, np.inf):
        x = np.float32([[1, hole, 2, 4], [3, 1, hole, 0]])
        here = {} if name.startswith("nan") else {"where": np.isfinite(x)}
        found = fnarray.grad(lambda x, here=here: fnarray.numpy.sum(f(x, axis=1, **here)))(x)
        alone = fnarray.grad(lambda x: fnarray.numpy.sum(f(x, axis=1)))(
            x[np.isfinite(x)].reshape(2, 3)
        )
        wanted = np.zeros_like(x)
        wanted[np.isfinite(x)] = np.ravel(alone)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)
