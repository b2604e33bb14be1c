"""``jit``: what is traced when, which arguments it takes, and what it says of those it cannot."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import inspect
import logging
import pickle
import weakref
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pytest

import fnarray
from fnarray import lax, random, tree
from fnarray.config import effects
from fnarray.core.array import asarray
from fnarray.errors import TracerBoolConversionError, UnexpectedTracerError

X = np.arange(4, dtype=np.float32)


def value(x) -> np.ndarray:
    return np.asarray(x)


@fnarray.assume_pure
class Counted:
    """A function that counts how often it is traced."""

    def __init__(self):
        self.count = 0

    def __call__(self, x, y=1.0):
        self.count += 1
        return tree.map(lambda leaf: lax.mul(leaf, leaf), x)


@fnarray.jit
def module_level(x):
    return lax.add(x, x)


# ---- tracing -------------------------------------------------------------------------------------

SIGNATURES = (
    ("values", (X, X + 1), 1),
    ("shapes", (X, X[:2]), 2),
    ("dtypes", (X, X.astype(np.int32)), 2),
    ("weak", (np.float32(1), 1.0), 2),
    ("numbers", (1, 2, 3), 1),
    ("kinds", (1, 1.0), 2),
    ("array-or-numpy", (X, asarray(X)), 1),
    ("structures", ([X], (X,), {"a": X}), 3),
    ("equal-structures", ({"a": X, "b": 1}, {"b": 1, "a": X}), 1),
    ("narrowed", (X.astype(np.float64), X), 1),
)


@pytest.mark.parametrize(("name", "args", "traces"), SIGNATURES, ids=[r[0] for r in SIGNATURES])
def test_traces_once_per_signature(name, args, traces):
    """A function is traced once per structure, shape, dtype and weak type, never per value."""
    fun = Counted()
    jitted = fnarray.jit(fun)
    for _ in range(3):
        for arg in args:
            got = jitted(arg)
            for x, y in zip(tree.leaves(got), tree.leaves(arg), strict=True):
                np.testing.assert_array_equal(value(x), np.square(y))
    assert fun.count == traces
    assert jitted._cache_size() >= traces


def test_the_cache_belongs_to_the_function():
    """``jit`` of a function made anew does not trace again, and forgets with the function."""
    fun = Counted()
    for _ in range(3):
        fnarray.jit(fun)(X)
    assert fun.count == 1
    fnarray.jit(fun).clear_cache()
    fnarray.jit(fun)(X)
    assert fun.count == 2
    jitted = fnarray.jit(fun)
    fnarray.clear_caches()
    jitted(X)
    assert fun.count == 3
    jitted(X)
    assert fun.count == 3
    del jitted
    gone = weakref.ref(fun)
    del fun
    gc.collect()
    assert gone() is None


def test_settings_are_part_of_the_signature():
    """A setting that changes what a trace computes makes a new trace; leaving it finds the old."""
    fun = Counted()
    jitted = fnarray.jit(fun)
    assert jitted(np.float64(2)).dtype == np.float32
    with fnarray.enable_x64(True):
        assert jitted(np.float64(2)).dtype == np.float64
    assert jitted(np.float64(2)).dtype == np.float32
    assert fun.count == 2


def test_a_rebound_closure_variable_is_seen_by_loops_and_inner_calls():
    """A captured array that is rebound between two uses of one body is not the old one."""

    def outer(x):
        captured = x

        def body(c, _):
            return lax.add(c, captured), None

        first, _ = lax.scan(body, 0.0, None, length=1)
        captured = lax.mul(x, 10.0)
        second, _ = lax.scan(body, 0.0, None, length=1)
        return first, second

    first, second = fnarray.jit(outer)(np.float32(2))
    assert (float(first), float(second)) == (2, 20)


def test_inner_calls_share_one_graph():
    """A jitted function called twice inside another is traced once, printed once, and named."""
    fun = Counted()
    inner = fnarray.jit(fun)
    text = str(fnarray.make_jaxpr(lambda x: (inner(x), inner(lax.sin(x))))(X))
    assert fun.count == 1
    assert text.count("mul") == 1


def test_inline(jax):
    """``inline=True`` leaves the equations themselves, as in JAX."""

    def outer(jit, lax):
        inner = jit(lambda x: lax.mul(x, 2.0), inline=True)
        return lambda x: inner(lax.sin(x))

    got = fnarray.make_jaxpr(outer(fnarray.jit, lax))(X)
    assert str(got) == str(jax.make_jaxpr(outer(jax.jit, jax.lax))(X))


def test_closures_over_outer_tracers(jax):
    """An inner jitted function may use the outer one's traced values; they become operands."""

    def outer(m):
        return lambda x: m.jit(lambda y: m.lax.add(m.lax.mul(x, y), y))(m.lax.sin(x))

    got, want = fnarray.jit(outer(fnarray))(X), jax.jit(outer(jax))(X)
    np.testing.assert_allclose(value(got), want, rtol=1e-6)


# ---- arguments -----------------------------------------------------------------------------------


class Point(NamedTuple):
    x: object
    y: object


TREES = (
    {"a": X, "b": [X, (X, 1.0)], "c": None},
    [],
    Point(X, {"p": 2}),
    (None, [None, X]),
    [Point(1, Point(2, X))],
    {1: X, 2: {3: X}},
)


@pytest.mark.parametrize("arg", TREES, ids=range(len(TREES)))
def test_trees_in_and_out(arg, jax):
    """Containers arrive as they were, and leave so, on first, second and later calls."""
    jitted = fnarray.jit(lambda t: tree.map(lambda x: lax.mul(x, x), t))
    want = jax.tree.map(lambda x: np.asarray(x * x), arg)
    for _ in range(4):
        got = jitted(arg)
        assert tree.structure(got) == tree.structure(arg)
        for x, y in zip(tree.leaves(got), tree.leaves(want), strict=True):
            np.testing.assert_array_equal(value(x), y)


def test_dicts_come_back_in_the_order_of_their_keys(jax):
    """As in JAX, whatever was made of them, what a function takes of its arguments included."""

    class Scale(NamedTuple):
        by: dict

    def orders(m):
        array = m.numpy.ones(2)
        given = {"w": array, "b": {"z": array, "a": [array, None]}}
        seen = []

        def f(d):
            seen.append([list(d), list(d["b"])])
            return {"y": d["w"].sum(), "x": d["b"]["z"].sum()}

        with effects("off") if m is fnarray else contextlib.nullcontext():
            outs = [
                m.tree.map(lambda x: x, given), m.jit(f)(given), m.vmap(f)(given),
                m.grad(lambda d: f(d)["y"])(given), m.vjp(f, given)[1]({"y": 1.0, "x": 1.0})[0],
                m.jvp(f, (given,), (given,))[1], m.lax.scan(lambda c, x: (c, f(x)), 0, given)[1],
                m.tree.unflatten(m.tree.structure(given), [1, 2, 3]),
                m.tree.map(lambda x: x, Scale({"d": 1, "c": 2})).by,
                m.tree.map(lambda x: x, collections.defaultdict(list, {"d": 1, "c": 2})),
            ]  # fmt: skip
        return seen, [[list(d), list(d.get("b", ()))] for d in outs]

    assert orders(fnarray) == orders(jax)


def test_a_class_that_takes_arrays_alone():
    """A class whose constructor refuses what is no array is an argument of a compiled function."""

    @fnarray.tree_util.register_pytree_node_class
    class Scale:
        def __init__(self, factor):
            if not isinstance(factor, fnarray.Array):
                raise TypeError("an array, please")
            self.factor = factor

        def tree_flatten(self):
            return (self.factor,), None

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children)

    assert float(fnarray.jit(lambda s: s.factor * 2)(Scale(asarray(3.0)))) == 6
    with pytest.raises(TracerBoolConversionError, match="leaf 0"):
        fnarray.jit(lambda s: 1 if s.factor else 2)(Scale(asarray(3.0)))


def test_structures_in_turn():
    """Calls that alternate between structures that look alike never mix them up."""
    jitted = fnarray.jit(lambda t: t)
    a = asarray(X)
    args = [[a, a], (a, a), [a, [a]], {"x": a, "y": a}, {"x": a, "z": a}, [a, None], Point(a, a)]
    for arg in args * 4:
        assert tree.structure(jitted(arg)) == tree.structure(arg)
        assert type(jitted(arg)) is type(arg)


def test_keywords_and_defaults(jax):
    """Keyword arguments, defaults and ``*args`` reach the function as in Python."""

    def fun(a, b=2.0, *rest, c=1.0, **more):
        return {"a": a, "b": b, "rest": rest, "c": c, "more": more}

    ours, theirs = fnarray.jit(fun), jax.jit(fun)
    calls = [((1.0,), {}), ((1.0, 3), {"c": 2}), ((1, 2, 3, 4), {"z": 5, "y": X}), ((), {"a": 1})]
    for args, kwargs in calls * 2:
        got, want = ours(*args, **kwargs), theirs(*args, **kwargs)
        for x, y in zip(tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(value(x), y)
            assert (x.dtype, x.weak_type) == (y.dtype, y.weak_type)


def test_keys_come_after_arrays():
    """A random key is an argument like others wherever it stands, at every call."""

    @fnarray.jit
    def noisy(x, key):
        return lax.add(x, random.normal(key, x.shape))

    x = asarray(X)
    for seed in (0, 1, 0):
        key = random.key(seed)
        np.testing.assert_allclose(noisy(x, key), value(random.normal(key, x.shape)) + X)


def test_options_that_equal_false_are_given_on():
    """``@jit(static_argnums=0)`` says so: 0 is no absence, and is in what a pickle makes anew."""

    @fnarray.jit(static_argnums=0)
    def chosen(which, x):
        return x if which == "first" else -x

    np.testing.assert_array_equal(value(chosen("second", X)), -X)
    again = cloudpickle.loads(cloudpickle.dumps(chosen))
    np.testing.assert_array_equal(value(again("first", X)), X)


def test_every_kind_of_callable():
    """Functions, lambdas, partials, objects and methods can be jitted; names show in graphs."""

    @dataclasses.dataclass(frozen=True)
    class Model:
        w: Any

        @functools.partial(fnarray.jit, static_argnums=0)
        def method(self, x):
            return lax.mul(x, self.w)

        @staticmethod
        @fnarray.jit
        def static(x):
            return lax.neg(x)

        def __call__(self, x):
            return lax.add(x, self.w)

    model = Model(3.0)
    np.testing.assert_array_equal(value(model.method(X)), X * 3)
    np.testing.assert_array_equal(value(Model.static(X)), -X)
    np.testing.assert_array_equal(value(fnarray.jit(model)(X)), X + 3)
    np.testing.assert_array_equal(value(fnarray.jit(model.__call__)(X)), X + 3)
    doubled = functools.partial(lambda k, x: lax.mul(x, k), 2.0)
    np.testing.assert_array_equal(value(fnarray.jit(doubled)(X)), X * 2)
    np.testing.assert_array_equal(value(fnarray.jit()(lax.neg)(X)), -X)


def test_results_are_fresh():
    """A result never shares memory with an argument, returned unchanged or not."""
    x = X.copy()
    jitted = fnarray.jit(lambda x: (x, x))
    for _ in range(3):
        a, _ = jitted(x)
        x[0] += 1
        assert value(a)[0] == x[0] - 1
        assert not np.shares_memory(value(a), x)


def test_non_ascii_names():
    """Functions and arguments may have any name Python allows."""

    def größe(λ):
        ψ = lax.neg(λ)
        return lax.mul(ψ, ψ)

    np.testing.assert_array_equal(value(fnarray.jit(größe)(X)), X * X)


# ---- static arguments ----------------------------------------------------------------------------

STATIC = (
    ("number", {"static_argnums": 1}, lambda f: (f(X, 3), f(X, 3), f(X, 4)), 2),
    ("numbers", {"static_argnums": (1,)}, lambda f: (f(X, 3), f(X, n=3)), 2),
    ("negative", {"static_argnums": -1}, lambda f: (f(X, 3), f(X, 4)), 2),
    ("name", {"static_argnames": "n"}, lambda f: (f(X, n=3), f(X, n=3)), 1),
    ("name-by-position", {"static_argnames": ["n"]}, lambda f: (f(X, 3), f(X, 3)), 1),
    ("types-apart", {"static_argnums": 1}, lambda f: (f(X, 1), f(X, True), f(X, 1.0)), 3),
    ("default", {"static_argnums": 1}, lambda f: (f(X), f(X)), 1),
)


@pytest.mark.parametrize(("name", "options", "use", "traces"), STATIC, ids=[r[0] for r in STATIC])
def test_static_arguments(name, options, use, traces):
    """A static argument arrives as its Python value; each value and type is traced apart."""
    seen = []

    def fun(x, n=2):
        seen.append(n)
        assert type(n) in (int, bool, float)
        return lax.mul(x, float(n))

    for _ in range(2):
        use(fnarray.jit(fun, effects="off", **options))
    assert len(seen) == traces


def fun_of_two(x, y):
    return x


BAD_OPTIONS = (
    ({"static_argnums": 2}, ValueError, "2 positional"),
    ({"static_argnums": -3}, ValueError, "2 positional"),
    ({"donate_argnums": 5}, ValueError, "donate_argnums"),
    ({"static_argnames": "z"}, ValueError, "'z'"),
    ({"static_argnums": "a"}, TypeError, "integer"),
    ({"static_argnames": 3}, TypeError, "iterable"),
    ({"static_argnames": [3]}, TypeError, "static_argnames"),
    ({"static_argnums": 0, "donate_argnums": 0}, ValueError, "both"),
)


@pytest.mark.parametrize(
    ("options", "error", "says"), BAD_OPTIONS, ids=[str(r[0]) for r in BAD_OPTIONS]
)
def test_wrong_options(options, error, says, jax):
    """Arguments that do not exist, or are static and donated, are rejected where jit is called."""
    with pytest.raises(error, match=says):
        fnarray.jit(fun_of_two, **options)
    with pytest.raises(error):
        jax.jit(fun_of_two, **options)


def test_unhashable_static_arguments():
    """A static list is an error that names the argument and offers a tuple."""
    with pytest.raises(ValueError, match=r"(?s)'y' of fun_of_two.*not hashable.*tuple"):
        fnarray.jit(fun_of_two, static_argnums=1)(X, [1])


# ---- errors --------------------------------------------------------------------------------------

REJECTED = (
    ("str", lambda f: f("abc"), TypeError, r"Argument 'abc' of type <class 'str'>.*argument x of"),
    ("path", lambda f: f({"w": [1, "b"]}), TypeError, r"x\['w'\]\[1\]"),
    ("object", lambda f: f(x=object()), TypeError, "argument x"),
    ("int", lambda f: f(2**40), OverflowError, "argument x.*does not fit int32"),
    ("arity", lambda f: f(X, X), TypeError, "positional argument"),
    ("keyword", lambda f: f(X, z=X), TypeError, "keyword argument"),
)


@pytest.mark.parametrize(("name", "use", "error", "says"), REJECTED, ids=[r[0] for r in REJECTED])
def test_wrong_arguments(name, use, error, says, jax):
    """What is no array is rejected by name and path, with the function's file and line."""

    def fun(x):
        return x

    with pytest.raises(error, match=f"(?s){says}"):
        use(fnarray.jit(fun))
    with pytest.raises(error):
        use(jax.jit(fun))


def test_wrong_results():
    """A result that is no array is an error that names its place."""
    with pytest.raises(TypeError, match=r"(?s)returned 'no' of type.*result\['a'\]\[1\]"):
        fnarray.jit(lambda x: {"a": (x, "no")})(X)


@pytest.mark.parametrize("fun", [3, "f", X])
def test_only_callables(fun):
    """``jit`` of a value that is no function is a TypeError."""
    with pytest.raises(TypeError, match="callable"):
        fnarray.jit(fun)


def test_branching_on_a_traced_argument_names_it():
    """The error of ``if x:`` says which argument of which function the value is."""

    def fun(params):
        return 1 if params["w"] else 2

    with pytest.raises(TracerBoolConversionError, match=r"the argument params\['w'\] of fun \("):
        fnarray.jit(fun)({"w": X[0]})


def test_leaked_tracers_are_reported():
    """A tracer kept by a side effect cannot be passed on, traced or not."""
    kept = []
    fnarray.jit(lambda x: kept.append(x) or x, effects="off")(X)
    for use in (lambda x: x, lambda t: t[0]):
        with pytest.raises(UnexpectedTracerError):
            fnarray.jit(use)(kept[0])


def test_errors_leave_no_trace_behind():
    """After a failed trace the next call is eager, or traced, as if nothing had been."""

    @fnarray.jit
    def fails(x):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fails(X)
    np.testing.assert_array_equal(value(lax.add(X, X)), X + X)


# ---- the rest ------------------------------------------------------------------------------------


def test_disable_jit_calls_the_function_itself():
    """Under disable_jit values are at hand, and the compiled form is back afterwards."""
    seen = []

    @fnarray.jit(effects="off")
    def fun(x):
        seen.append(type(x).__name__)
        return lax.mul(x, x)

    fun(asarray(X))
    with fnarray.disable_jit():
        fun(asarray(X))
    fun(asarray(X))
    assert seen == ["JitTracer", "ArrayImpl"]


def test_log_compiles(caplog):
    """With log_compiles every trace is a warning with the function's name and its time."""

    def watched(x):
        return x

    with caplog.at_level(logging.WARNING), fnarray.log_compiles():
        fnarray.jit(watched)(X)
    assert "Finished tracing + transforming watched in" in caplog.text


@pytest.mark.parametrize("name", ["debug_nans", "debug_infs"])
def test_debug_settings_name_the_operation(name):
    """A NaN or infinity in a compiled result is an error that names the operation and line."""

    @fnarray.jit
    def fun(x):
        return {"y": lax.add(lax.log(lax.sub(x, 1.0)), 1.0)}

    fun(np.float32(0.5))
    bad = np.float32(0.5 if name == "debug_nans" else 1)
    with (
        getattr(fnarray, name)(True),
        pytest.raises(FloatingPointError, match=r"log at .*test_jit"),
    ):
        fun(bad)


@pytest.mark.parametrize("module", [pickle, cloudpickle])
def test_pickling(module):
    """A jitted function is pickled by its name, a local one by value where the pickler can."""
    again = module.loads(module.dumps(module_level))
    assert again is module_level
    if module is cloudpickle:
        local = fnarray.jit(lambda x, n: lax.mul(x, float(n)), static_argnums=1)
        local(X, 2)
        np.testing.assert_array_equal(
            value(cloudpickle.loads(cloudpickle.dumps(local))(X, 3)), X * 3
        )


def test_looks_like_the_function():
    """Name, docstring, signature and ``__wrapped__`` are the function's."""

    def fun(x):
        """Say what it does."""

    jitted = fnarray.jit(fun)
    assert (jitted.__name__, jitted.__doc__) == ("fun", "Say what it does.")
    assert jitted.__wrapped__ is fun
    assert repr(jitted).startswith("<PjitFunction of <function")
    assert type(jitted).__name__ == "PjitFunction"  # by which libraries tell it
    for follow in (True, False):
        assert str(inspect.signature(jitted, follow_wrapped=follow)) == "(x)"


def test_bits_in_pieces_are_no_view_of_the_argument() -> None:
    """An update of the pieces, in place, had changed the caller's array."""
    x = fnarray.numpy.arange(8, dtype=fnarray.numpy.float32)
    pieces = fnarray.jit(lambda x: lax.bitcast_convert_type(x, fnarray.numpy.uint8).at[0].set(255))(
        x
    )
    assert (np.asarray(pieces)[0] == 255).all()
    np.testing.assert_array_equal(x, np.arange(8, dtype=np.float32))
