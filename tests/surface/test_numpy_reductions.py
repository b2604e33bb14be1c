"""Reductions, running folds and quantiles agree with ``jax.numpy`` and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.core.trace import trace_graph
from fnarray.errors import TracerIntegerConversionError

from .numpy_oracle import both_raise, compare

FUNCTIONS = """
sum prod max min all any mean var std median ptp argmax argmin nansum nanprod nanmax nanmin
nanmean nanvar nanstd nanmedian nanargmax nanargmin cumsum cumprod nancumsum nancumprod
count_nonzero average
""".split()  # noqa: SIM905 - a table of words
ARGUMENTS = ("", "axis=0", "axis=-1, keepdims=True", "axis=(0, 1)", "axis=()")
ONE_AXIS = {"argmax", "argmin", "nanargmax", "nanargmin", "cumsum", "cumprod", "nancumsum"}
ONE_AXIS |= {"nancumprod"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes_and_dtypes(name):
    """Every reduction has JAX's types and NumPy's values for each kind of array and axis."""
    for operand in ("f", "i", "b", "c", "i8", "h", "n", "w", "3"):
        if (operand == "c" and ("med" in name or "arg" in name)) or (
            operand == "b" and name == "ptp"
        ):
            continue
        for argument in ARGUMENTS:
            scalar = operand in ("w", "3", "i8", "h")
            if scalar and argument not in ("", "axis=()"):
                continue
            if name in ONE_AXIS and ("(" in argument or ("keep" in argument and "cum" in name)):
                continue
            if argument == "axis=()" and ("med" in name or "average" in name or operand == "c"):
                continue
            if name in ("count_nonzero", "average") and operand in ("w", "3", "n"):
                continue
            like_numpy = operand in ("f", "i", "c", "n") and argument != "axis=()"
            if operand == "n" and "arg" in name:
                like_numpy = False
            text = f"jnp.{name}({operand}{', ' if argument else ''}{argument})"
            compare(text, rtol=1e-5, values="numpy" if like_numpy else "types only")


@pytest.mark.parametrize(
    "text",
    """
jnp.sum(f, where=b)
jnp.sum(f, initial=3)
jnp.sum(f, axis=1, where=b, initial=1.0, keepdims=True)
jnp.sum(i8, promote_integers=False)
jnp.sum(i8, dtype='int8')
jnp.sum(f, dtype=int)
jnp.prod(i8)
jnp.max(empty, axis=1)
jnp.max(empty, axis=0, initial=1)
jnp.max(i8, initial=3.5)
jnp.min(f, where=b, initial=0)
jnp.all(empty)
jnp.any(f, axis=0, where=b)
jnp.mean(i8, dtype='float16')
jnp.mean(f, axis=0, where=b)
jnp.mean(empty)
jnp.var(f, ddof=1.5)
jnp.var(f, correction=1)
jnp.var(f, axis=1, where=b, ddof=1)
jnp.var(f, ddof=6)
jnp.var(i, dtype='float16')
jnp.var(f, mean=1.0)
jnp.std(f, axis=0, mean=jnp.mean(f, axis=0, keepdims=True))
jnp.average(f, weights=p)
jnp.average(f, axis=1, weights=v)
jnp.average(f, axis=1, weights=v, returned=True, keepdims=True)
jnp.average(f, returned=True)
jnp.average(i)
jnp.argmax(f, keepdims=True)
jnp.argmax(b)
jnp.nanargmin(jnp.asarray([jnp.nan]))
jnp.nanmax(jnp.asarray([jnp.nan]))
jnp.nanvar(n, axis=1, ddof=1)
jnp.nanvar(n, axis=0, ddof=1)
jnp.cumsum(b)
jnp.cumsum(f, dtype=int)
jnp.cumsum(3)
jnp.cumsum(w)
jnp.cumulative_sum(i8)
jnp.cumulative_prod(f, axis=1, include_initial=True)
jnp.cumulative_sum(f, axis=1, include_initial=True)
jnp.sum(f, axis=[0, 1])
jnp.max(f, axis=range(-2, 0), keepdims=True)
jnp.quantile(f, 0.3, axis=0, weights=abs(i), method="inverted_cdf")
jnp.nanquantile(h, 0.3, weights=jnp.asarray(abs(h), "f"), method="inverted_cdf")
jnp.quantile(f, 0.3, axis=1, weights=f, method="inverted_cdf")
jnp.max(s)
jnp.min(s)
jnp.quantile(f, 0.3)
jnp.quantile(i, jnp.asarray([0.1, 0.5]), axis=1)
jnp.quantile(h, 0.5)
jnp.quantile(f, jnp.asarray([0.2, 0.5]), axis=(0, 1), keepdims=True)
jnp.quantile(n, 0.5, axis=0)
jnp.nanquantile(n, jnp.asarray([0.0, 0.3, 1.0]), axis=1)
jnp.nanpercentile(n, 50.0, keepdims=True)
jnp.nanquantile(n, 0.5, axis=0)
jnp.percentile(f, 30.0, axis=0)
jnp.quantile(b, 0.5)
jnp.median(f, axis=(0, 1), keepdims=True)
jnp.quantile(f, 1.5)
    """.strip().split("\n"),
)
def test_arguments_agree_with_jax(text):
    """Every argument means what it means in JAX."""
    compare(text, rtol=1e-5, values="jax")


@pytest.mark.parametrize(
    "method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]
)
def test_quantile_methods_agree_with_numpy(method):
    """Between neighbours each method reads as NumPy's does."""
    x = np.random.default_rng(1).normal(size=(4, 9)).astype(np.float32)
    for q in (0.0, 0.13, 0.6, 0.77, 1.0):
        ours = jnp.quantile(x, q, axis=1, method=method)
        np.testing.assert_allclose(ours, np.quantile(x, q, axis=1, method=method), rtol=1e-5)


def test_weighted_quantile_agrees_with_numpy():
    """Weights say how often each element counts."""
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(3, 7)), rng.integers(0, 4, size=(3, 7)) + 0.0
    for q in (0.0, 0.4, 1.0):
        ours = jnp.quantile(x, q, axis=1, weights=w, method="inverted_cdf")
        theirs = np.quantile(x, q, axis=1, weights=w, method="inverted_cdf")
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jnp.sum(None)", ("numpy.sum", "NoneType")),
        ("jnp.sum([1, 2])", ("numpy.sum", "list")),
        ("jnp.sum(f, axis=2)", ("sum", "axis 2", "dimension 2")),
        ("jnp.sum(f, axis=(0, 0))", ("duplicate", "axis")),
        ("jnp.sum(f, axis=1.0)", ()),
        ("jnp.sum(f, where=f)", ("numpy.sum", "where", "float32")),
        ("jnp.max(empty)", ("numpy.max", "(0, 3)")),
        ("jnp.max(f, where=b)", ("numpy.max", "initial")),
        ("jnp.argmax(empty)", ("numpy.argmax",)),
        ("jnp.argmax(c)", ("argmax",)),
        ("jnp.var(f, ddof=1, correction=1)", ("ddof", "correction")),
        ("jnp.var(c, dtype=float)", ("complex",)),
        ("jnp.average(f, weights=v)", ("numpy.average", "axis")),
        ("jnp.average(f, axis=0, weights=v)", ("numpy.average", "(3,)")),
        ("jnp.cumsum(f, axis=5)", ("cumsum", "axis 5")),
        ("jnp.cumulative_sum(f)", ("cumulative_sum", "axis")),
        ("jnp.cumulative_sum(3)", ("cumulative_sum",)),
        ("jnp.quantile(c, 0.5)", ("numpy.quantile", "complex")),
        ("jnp.quantile(f, 0.5, method='foo')", ("method", "foo")),
        ("jnp.quantile(f, [0.1])", ("numpy.quantile", "list")),
        ("jnp.ptp(b)", ("bool",)),
    ],
)
def test_errors(text, words):
    """What JAX refuses is refused, naming the function and what it got."""
    message = both_raise(text, (TypeError, ValueError, IndexError))
    for word in words:
        assert word in message


def test_a_traced_axis_is_told_as_such():
    """An axis that is not known when the function is traced is no matter of iteration."""
    with pytest.raises(TracerIntegerConversionError, match="the argument a of"):
        fnarray.jit(lambda x, a: jnp.sum(x, axis=a))(np.ones(3), 0)


def test_halves_are_added_up_in_single():
    """A mean of many halves is right although their sum is beyond the dtype."""
    x = jnp.full(70_000, 2, dtype=jnp.float16)
    assert float(jnp.mean(x)) == 2.0


def test_reductions_trace():
    """Under a trace reductions record primitives."""
    aval = jnp.ones((2, 3)).aval
    graph = trace_graph(lambda x: [x.sum(), jnp.var(x, axis=0), jnp.median(x)], [aval])
    assert str(graph.jaxpr.eqns[0].primitive) == "reduce_sum"


@pytest.mark.parametrize(("name", "half"), [("nanquantile", 0.5), ("nanpercentile", 50)])
def test_weights_of_nan_do_not_count(name, half):
    """Quantiles that leave NaN out leave their weights out; rows of NaN alone give NaN."""
    a = np.array([[1, np.nan, 3, 2, 5], [np.nan, 4, np.nan, 1, 2], [np.nan] * 5], np.float32)
    w = np.array([[1, 9, 3, 1, 1], [7, 1, 1, 4, 2], [1] * 5], np.float32)
    options = {"axis": 1, "method": "inverted_cdf"}
    got = getattr(jnp, name)(jnp.asarray(a), half, weights=jnp.asarray(w), **options)
    rows = [(r[r == r], s[r == r]) for r, s in zip(a[:2], w[:2], strict=True)]
    numpys = getattr(np, name.removeprefix("nan"))
    wanted = [numpys(r, half, weights=s, method="inverted_cdf") for r, s in rows]
    np.testing.assert_array_equal(got, [*wanted, np.nan])


@pytest.mark.parametrize("shape", [(65_536,), (200_003,), (70_001, 3), (3, 70_001), (257, 11, 31)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_long_sums_are_rounded_about_once(shape, axis):
    """However many there are, a sum of positive numbers is off by few units of its last place."""
    x = np.random.default_rng(0).random(shape, np.float32)
    want = x.astype(np.float64).sum(axis)
    np.testing.assert_allclose(jnp.sum(jnp.asarray(x), axis), want, rtol=4e-7)


@pytest.mark.parametrize("shape", [(100, 300, 7), (40, 300, 50), (10, 300, 10), (300, 40, 3)])
@pytest.mark.parametrize("body", [jnp.square, jnp.exp])
def test_sums_over_axes_apart_are_as_accurate_as_others(shape, body):
    """Rows with an axis between them have sums of their own: errors do not grow with all terms."""
    x = np.random.default_rng(0).random(shape, np.float32)
    want = getattr(np, body.__name__)(x.astype(np.float64)).sum((0, 2))
    unit = np.spacing(np.float32(want.max()))
    for total in (lambda x: jnp.sum(body(x), (0, 2)), fnarray.jit(lambda x: body(x).sum((0, 2)))):
        off = (np.asarray(total(x), np.float64) - want) / unit
        assert np.sqrt(np.mean(off**2)) < 0.8


@pytest.mark.parametrize(("shape", "axis"), [((5000,), None), ((400, 10), 0), ((10, 400), 1)])
def test_compiled_complex_sums_are_as_accurate_as_others(shape, axis):
    """In blocks, too: one after another 4,000 complex numbers are off by 12 units or more."""
    rng = np.random.default_rng(0)
    x = (rng.random(shape) + 1j * rng.random(shape)).astype(np.complex64)
    got = np.asarray(fnarray.jit(lambda x: jnp.sum(x, axis))(x))
    want = x.astype(np.complex128).sum(axis)
    off = np.abs(got - want) / np.spacing(np.float32(np.abs(want).max()))
    assert np.sqrt(np.mean(off**2)) < 1.2
    spoilt = x.copy()
    spoilt.flat[0], spoilt.flat[-1] = np.inf, complex(0, np.nan)
    with np.errstate(invalid="ignore"):
        want = spoilt.sum(axis)
    got = fnarray.jit(lambda x: jnp.sum(x, axis))(spoilt)
    np.testing.assert_array_equal(np.isnan(np.real(got)), np.isnan(want.real))
    np.testing.assert_array_equal(np.isinf(np.real(got)), np.isinf(want.real))
    np.testing.assert_array_equal(np.isnan(np.imag(got)), np.isnan(want.imag))


def test_sums_of_a_million_are_off_by_half_a_unit():
    """What threads have added up is added in pairs: 0.71 units in the mean in a row, 0.4 so."""
    draws = [np.random.default_rng(k).random(1_000_000, np.float32) for k in range(30)]
    exact = [x.astype(np.float64).sum() for x in draws]
    total = fnarray.jit(jnp.sum)
    off = [
        (float(total(x)) - y) / np.spacing(np.float32(y)) for x, y in zip(draws, exact, strict=True)
    ]
    assert np.sqrt(np.mean(np.square(off))) < 0.65  # narrower vectors make fewer sums


@pytest.mark.parametrize(
    "name",
    [
        "nanargmax",
        "nanargmin",
        "nanmax",
        "nanmean",
        "nanmin",
        "nanprod",
        "nanstd",
        "nansum",
        "nanvar",
    ],
)
def test_out_is_refused_by_its_functions_name(name):
    """The error of ``out=`` names the function that was called, not one beneath it."""
    with pytest.raises(NotImplementedError, match=rf"jnp\.{name} is .*: out must be None"):
        getattr(jnp, name)(np.ones(3), out=np.ones(()))


NAMED = "sum max min mean var std ptp nansum nanmean nanvar count_nonzero average".split()  # noqa: SIM905
NAMED_AXES = {"i": 0, ("i", 0): (0, 1), ("i", "j", -1): (0, 1, 2), ("j", 0): (1, 2)}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("jitted", [False, True])
def test_names_of_mapped_axes_are_axes(name, jitted):
    """A reduction over a mapped axis, alone or with an array's own, has all examples' value."""
    x = np.random.default_rng(3).normal(size=(3, 4, 5)).astype(np.float32)
    for axis, plain in NAMED_AXES.items():
        inner = fnarray.vmap(lambda r, a=axis: getattr(jnp, name)(r, axis=a), axis_name="j")
        if "j" not in (axis if isinstance(axis, tuple) else (axis,)):
            inner = fnarray.vmap(lambda r, a=axis: getattr(jnp, name)(r, axis=a))
            plain = plain if plain == 0 else (0, 2)
        mapped = fnarray.vmap(inner, axis_name="i")
        got = (fnarray.jit(mapped) if jitted else mapped)(x)
        kept = getattr(np, name)(x, axis=plain, keepdims=True) if name != "average" else None
        kept = np.mean(x, axis=plain, keepdims=True) if kept is None else kept
        own = tuple(a for a in (axis if isinstance(axis, tuple) else ()) if isinstance(a, int))
        wanted = np.broadcast_to(kept, x.shape)[..., 0] if own else np.broadcast_to(kept, x.shape)
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6)


def test_named_reductions_with_masks_and_derivatives():
    """Masks, starts and derivatives reach through a mapped axis; averages count its examples."""
    x = np.random.default_rng(4).normal(size=(3, 4)).astype(np.float32)

    def over(f):
        return fnarray.vmap(f, axis_name="i")

    mean = over(lambda r: jnp.mean(r, axis="i", where=jnp.abs(r) > 0.1))(x)
    taken = np.abs(x) > 0.1
    wanted = np.where(taken, x, 0).sum(0) / taken.sum(0)
    np.testing.assert_allclose(mean, np.broadcast_to(wanted, x.shape), rtol=1e-6)
    start = over(lambda r: jnp.sum(r, axis=("i", 0), initial=10.0))(x)
    np.testing.assert_allclose(start, [10 + x.sum()] * 3, rtol=1e-6)
    _, count = over(lambda r: jnp.average(r, axis=("i", 0), returned=True))(x)
    np.testing.assert_array_equal(count, [12.0] * 3)
    grown = np.exp(x) / np.exp(x).sum(0)
    softmax = over(lambda r: fnarray.nn.softmax(r, axis="i"))
    np.testing.assert_allclose(softmax(x), grown, rtol=1e-6)
    slope = fnarray.grad(lambda x: jnp.sum(jnp.square(softmax(x))))(x)
    by_rows = fnarray.grad(lambda x: jnp.sum(jnp.square(fnarray.nn.softmax(x, axis=0))))(x)
    np.testing.assert_allclose(slope, by_rows, rtol=1e-5, atol=1e-7)
    total = over(lambda r: fnarray.scipy.special.logsumexp(r, axis=("i", 0)))(x)
    np.testing.assert_allclose(total, [np.log(np.exp(x).sum())] * 3, rtol=1e-6)


def test_what_names_may_not():
    """Unbound and repeated names, floats, and reductions without a collective say so."""
    x = jnp.ones((2, 3))
    with pytest.raises(NameError, match="unbound axis name: k"):
        jnp.sum(x, axis="k")
    with pytest.raises(ValueError, match="duplicate value"):
        fnarray.vmap(lambda r: jnp.sum(r, axis=("i", "i")), axis_name="i")(x)
    with pytest.raises(NotImplementedError, match="Named reductions not implemented"):
        fnarray.vmap(lambda r: jnp.prod(r, axis="i"), axis_name="i")(x)
    for bad in (1.0, (None,)):
        with pytest.raises(TypeError):
            jnp.sum(x, axis=bad)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("shape", [(4, 1), (1, 4, 1), (0, 1), (1,)])
def test_folds_of_one_number_each_are_those_numbers(name, dtype, shape):
    """Negative zeros and NaN among them, donated and in lanes; a gradient by columns has many."""
    values = [-2, 1, 0, 3] if dtype == "int8" else [-0.0, 1.5, np.nan, np.inf]
    x = np.array(values, dtype)[: np.prod(shape)].reshape(shape)
    axes = tuple(a for a, n in enumerate(shape) if n == 1)
    fold = lambda x: getattr(jnp, name)(x, axes)  # noqa: E731
    lanes = lambda x: fnarray.vmap(fold, -1, -1)(x[..., None])  # noqa: E731
    for f in (fold, lanes):
        for donated in ((), (0,)):
            got = np.asarray(fnarray.jit(f, donate_argnums=donated)(jnp.asarray(x))).reshape(-1)
            np.testing.assert_array_equal(got, x.reshape(-1))
            np.testing.assert_array_equal(np.signbit(got), np.signbit(x.reshape(-1)))
