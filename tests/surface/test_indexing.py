"""Indexing and functional updates against JAX: random expressions, eager and traced."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnarray  # noqa: F401 - installs operators
from fnarray.core.array import asarray, aval_of
from fnarray.core.graph import Literal, eval_graph
from fnarray.core.trace import bind, trace_graph
from fnarray.errors import NonConcreteBooleanIndexError

UPDATES = ("set", "add", "subtract", "multiply", "min", "max")


def traced(fun, *args):
    """Return the value of a function by tracing it and running its graph."""
    graph = trace_graph(lambda *xs: (fun(*xs),), [aval_of(a) for a in args])

    def value(x):
        return x.val if type(x) is Literal else x

    outs = eval_graph(
        graph.jaxpr,
        graph.consts,
        [asarray(a) for a in args],
        lambda prim, *xs, **params: bind(prim, *map(value, xs), **params),
    )
    return value(outs[0])


def text(graph):
    return re.sub(r"\s+", " ", str(graph))


# --- random expressions -------------------------------------------------------------------------


def _static(n):
    bound = st.none() | st.integers(-n - 2, n + 2)
    step = st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])
    return st.integers(-n - 1, n + 1) | st.builds(slice, bound, bound, step)


@st.composite
def _arrays(draw, n, common):
    dtype = np.dtype(draw(st.sampled_from(["int32", "int8", "uint8"])))
    shape = tuple(1 if draw(st.booleans()) else k for k in common)
    low = 0 if dtype.kind == "u" else -n - 1
    count = int(np.prod(shape, dtype=int))
    values = draw(st.lists(st.integers(low, n + 1), min_size=count, max_size=count))
    return np.array(values, dtype).reshape(shape)


@st.composite
def cases(draw):
    """Draw an array and an index expression for it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    common = tuple(draw(st.lists(st.integers(1, 2), max_size=2)))
    index, axis, ellipsis = [], 0, False
    while axis < len(shape) and draw(st.integers(0, 9)):
        kind = draw(st.sampled_from(["static", "static", "array", "mask", "new", "ellipsis"]))
        if kind == "static":
            index.append(draw(_static(shape[axis])))
            axis += 1
        elif kind == "array":
            index.append(draw(_arrays(shape[axis], common)))
            axis += 1
        elif kind == "mask":
            rank = draw(st.integers(1, min(2, len(shape) - axis)))
            want = shape[axis : axis + rank]
            count = int(np.prod(want))
            bits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            index.append(np.array(bits, bool).reshape(want))
            axis += rank
        elif kind == "new":
            index.append(None)
        elif not ellipsis:
            index.append(...)
            ellipsis, axis = True, axis + draw(st.integers(0, len(shape) - axis))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3 - 4
    return x.astype(draw(st.sampled_from(["float32", "int32"]))), tuple(index)


def _split(index):
    """Return the integer arrays of an index, and a function that puts others in their place."""
    places = [k for k, i in enumerate(index) if isinstance(i, np.ndarray) and i.dtype != bool]

    def rebuild(arrays):
        out = list(index)
        for k, a in zip(places, arrays, strict=True):
            out[k] = a
        return tuple(out)

    return [index[k] for k in places], rebuild


def _outcome(fun):
    """Return a value, or that an error was raised; both libraries must agree on which."""
    try:
        out = np.asarray(fun())
    except (IndexError, TypeError, ValueError):
        return "refused"
    return out.dtype, out.shape, out.tolist()


@settings(max_examples=50, deadline=None, derandomize=True)
@given(case=cases(), mode=st.sampled_from([None, None, "fill", "clip"]), wrap=st.booleans())
def test_reads_match_jax(case, mode, wrap):
    """Any index expression reads what JAX reads, eagerly, with traced indices, and traced whole."""
    import jax.numpy as jnp

    x, index = case
    options = {} if mode is None else {"mode": mode, "wrap_negative_indices": wrap}
    arrays, rebuild = _split(index)

    def read(x, *arrays):
        at = rebuild(arrays)
        return x.at[at].get(**options) if options else x[at]

    want = _outcome(lambda: read(jnp.asarray(x), *arrays))
    assert _outcome(lambda: read(asarray(x), *arrays)) == want
    assert _outcome(lambda: traced(read, x, *arrays)) == want


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    case=cases(),
    name=st.sampled_from(UPDATES),
    mode=st.sampled_from([None, None, "drop", "clip"]),
    wrap=st.booleans(),
)
def test_updates_match_jax(case, name, mode, wrap):
    """Any index expression updates the places JAX updates, and leaves the array itself alone."""
    import jax.numpy as jnp

    x, index = case
    arrays, rebuild = _split(index)
    value = x.dtype.type(2)

    def update(x, *arrays):
        ref = x.at[rebuild(arrays)]
        return getattr(ref, name)(value, mode=mode, wrap_negative_indices=wrap)

    want = _outcome(lambda: update(jnp.asarray(x), *arrays))
    ours = asarray(x)
    assert _outcome(lambda: update(ours, *arrays)) == want
    assert _outcome(lambda: traced(update, x, *arrays)) == want
    np.testing.assert_array_equal(ours, x)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(case=cases(), at=st.integers(0, 3), flag=st.booleans())
def test_scalar_masks_match_numpy(case, at, flag):
    """A scalar mask adds an axis of one element or none, where NumPy puts it."""
    x, index = case
    index = (*index[:at], flag, *index[at:])
    try:
        want = x[index]
    except IndexError:
        return
    np.testing.assert_array_equal(asarray(x)[index], want)
    np.testing.assert_array_equal(traced(lambda x: x[index], x), want)


# --- values and dtypes --------------------------------------------------------------------------

_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_V = np.arange(5, dtype=np.int32)
_ROWS = np.array([0, 2, 0], np.int32)

#: Expressions over ``x`` (float32[3,4]), ``v`` (int32[5]), ``r`` (int32[3]).
SAME = """
v[10] | v[-10] | v[r] | x[3] | x[0, 10] | x[0, [1, 2]] | x[[True, False, True],] | x[True] | x[False]
v[[],] | v[10:] | v[:10] | v[::-2] | v.at[10].get(mode="fill") | v.at[10].get(mode="fill", fill_value=-1)
v.at[-1].get(wrap_negative_indices=False) | v.at[10].set(1) | v.at[10].set(1, mode="clip")
v.at[0].set(True) | x.at[0].set(1) | x.at[0].set([1, 2, 3, 4]) | v.at[0].divide(2) | x.at[0].divide(2)
x.at[r].divide(2.0) | x.at[r].multiply(3) | x.at[r].add(x[:, :1] * 0 + 1) | v.at[r].apply(lambda e: e + 1)
v.at[1].power(2) | x.at[1].power(2) | v.at[v > 2].set(0) | x.at[:, 1].set(9) | x.at[1, r].min(0)
x.at[::-1].set(x) | x.at[None, 0].set(1) | x.at[True].set(1) | (v > 2).at[0].set(True)
v.at[0].set(2.0) | v.at[1].multiply(2.5) | v.at[0].add(1.5) | x.at[r].mul(2) | x.at[1].set(x[0], mode="fill")
x[()] | x[...] | x[None, ..., None] | x[r][:, None] | x[r, r] | x[r, None, r] | x[:, None, r] | x[v[:3] > 0]
x.at[0].set([x[1, 0], 2, v[0], 4.0]) | x.at[0, :2].multiply((x[1, 1], 3)) | v.at[:2].max([v[4], 2]) | x.at[:2].set([x[1], x[0]])
x.at[0, :2].divide([x[1, 1], 2]) | x.at[r, :2].add([[x[0, 1], 1]]) | v.at[:2].set([x[0, 1], True]) | x.at[r].set([[v[1]]]) | v.at[:0].set([])
x[:0].at[r].set(1) | x[:0].at[r].add(x[r])
x[x > 5] | x.at[x > 5].set(0) | x.at[2:, 1:3].subtract(1) | v.at[:].get(mode="fill")
"""  # noqa: E501 - a table
EXPRESSIONS = [e.strip() for line in SAME.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_matches_jax(expression, jax):
    """Value, dtype, shape and warnings are JAX's; and tracing gives the same."""
    jnp = jax.numpy
    results, warned = [], []
    for module in (jnp, None):
        names = {
            n: jnp.asarray(a) if module else asarray(a)
            for n, a in (("x", _X), ("v", _V), ("r", _ROWS))
        }
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results.append(eval(expression, names))
        warned.append([w.category for w in caught])
    want, got = results
    assert warned[0] == warned[1]
    assert (got.dtype, got.shape, got.weak_type) == (want.dtype, want.shape, want.weak_type)
    np.testing.assert_array_equal(got, want)
    if ">" not in expression:  # masks must be concrete
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = traced(
                lambda x, v, r: eval(expression, {"x": x, "v": v, "r": r}), _X, _V, _ROWS
            )
        assert (again.dtype, again.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(again, want)


REFUSED = [
    ("v[1.]", TypeError, "float64"),
    ("v['a']", TypeError, "string"),
    ("v[[0, 1]]", TypeError, "array\\(seq\\)"),
    ("v[[[0, 1]]]", TypeError, "tuple\\(seq\\)"),
    ("x[np.array([1.5])]", TypeError, "integer or boolean"),
    ("x[object()]", IndexError, "only integers"),
    ("x[0, 0, 0]", IndexError, "Too many indices"),
    ("x[..., ...]", IndexError, "single ellipsis"),
    ("x[np.array([True, False])]", IndexError, "boolean index"),
    ("x[:0][0]", IndexError, "size 0"),
    ("v[::0]", ValueError, "zero"),
    ("v.at[0].get(mode='wrap')", ValueError, "wrap"),
    ("v.at[9].get(mode='fill', fill_value=np.ones(2))", ValueError, "scalar"),
    ("v.at[0].set(2**40)", OverflowError, "int32"),
    ("v.at[0].set('abc')", TypeError, "."),
    ("v.at[0].set(None)", ValueError, "None"),
    ("x.at[0].set([[1, 2, 3, 4]])", ValueError, "broadcast"),
    ("x.at[0].set([1, 2])", ValueError, "broadcast|Incompatible"),
    ("v.at[[0, 1]].set(1)", TypeError, "array\\(seq\\)"),
    ("(v > 2).at[0].add(True)", TypeError, "bool"),
]


@pytest.mark.parametrize(("expression", "error", "match"), REFUSED)
def test_refused_as_in_jax(expression, error, match, jax):
    """What JAX refuses is refused with the same kind of error, which says why."""
    jnp = jax.numpy
    with pytest.raises(error):
        eval(expression, {"x": jnp.asarray(_X), "v": jnp.asarray(_V), "np": np})
    with pytest.raises(error, match=match):
        eval(expression, {"x": asarray(_X), "v": asarray(_V), "np": np})


def test_traced_masks_and_bounds_are_refused():
    """A mask's result has no static shape, nor has a slice with traced bounds."""
    with pytest.raises(NonConcreteBooleanIndexError, match="where"):
        traced(lambda x: x[x > 0], _X)
    with pytest.raises(IndexError, match="dynamic_slice"):
        traced(lambda v: v[v[0] :], _V)


def test_assignment_is_refused():
    """Item assignment fails and shows the functional form."""
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set"):
        asarray(_X)[0] = 1


# --- lowering -----------------------------------------------------------------------------------

_SLICES = [
    lambda x, i, r: x[0],
    lambda x, i, r: x[1:3],
    lambda x, i, r: x[::2, 1],
    lambda x, i, r: x[::-1],
    lambda x, i, r: x[None, ..., 0],
    lambda x, i, r: x[i],
    lambda x, i, r: x[i, 1:3],
    lambda x, i, r: x[1, i],
    lambda x, i, r: x[i, None],
    lambda x, i, r: x[r],
    lambda x, i, r: x[:, r],
    lambda x, i, r: x[r, r],
    lambda x, i, r: x[i, ::2],
    lambda x, i, r: x.at[i].set(1.0),
    lambda x, i, r: x.at[0].set(1.0),
    lambda x, i, r: x.at[1:3].add(1.0),
    lambda x, i, r: x.at[r].multiply(2.0),
    lambda x, i, r: x.at[r].get(mode="fill", fill_value=3),
]


@pytest.mark.parametrize("fun", _SLICES, ids=range(len(_SLICES)))
def test_lowered_as_in_jax(fun, jax):
    """Indexing prints as the equations JAX prints: slices where indices are static."""
    args = (_X, np.int32(1), _ROWS)
    ours = trace_graph(lambda *xs: (fun(*xs),), [aval_of(a) for a in args]).jaxpr
    assert text(ours) == text(jax.make_jaxpr(fun)(*args))


def test_small_reads_do_not_keep_large_buffers():
    """One element of a large array does not hold the array's memory."""
    x = asarray(np.zeros(1 << 16, np.float32))
    assert np.asarray(x[5]).base is None or np.asarray(x[5]).base.nbytes < 1024
