"""Functions of elements: values, dtypes and weak types are those of ``jax.numpy``."""

from __future__ import annotations

import pickle

import jax
import jax.numpy
import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import tree
from fnarray.config import enable_x64, numpy_dtype_promotion, numpy_rank_promotion
from fnarray.core.trace import trace_graph

from .numpy_oracle import both_raise, compare, run

UNARY = """
absolute negative positive square sign reciprocal fabs sqrt exp exp2 expm1 log log1p log2 log10
cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc
rint isnan isinf isfinite isposinf isneginf signbit conj real imag angle i0 deg2rad rad2deg sinc
logical_not spacing modf frexp nan_to_num isreal iscomplex invert bitwise_count round
""".split()  # noqa: SIM905 - a table of words
BINARY = """
add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax
fmin equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
bitwise_and bitwise_or bitwise_xor left_shift right_shift arctan2 hypot logaddexp logaddexp2
copysign nextafter heaviside ldexp gcd lcm divmod isclose
""".split()  # noqa: SIM905 - a table of words
OPERANDS = ("f", "s", "i", "b", "c", "u8", "h", "w", "2", "2.5", "True")
PAIRS = (
    ("f", "g"), ("i", "j"), ("b", "b2"), ("c", "d"), ("i8", "u8"), ("f", "i"), ("i", "f"),
    ("f", "v"), ("v", "f"), ("f", "2"), ("2.5", "i"), ("i8", "2"), ("u8", "2"), ("h", "e16"),
    ("h", "2.5"), ("w", "i"), ("b", "i"), ("b", "2"), ("3", "2"), ("i", "w"), ("s", "f[0, 0]"),
)  # fmt: skip
KNOWN = (TypeError, ValueError)
# Exponents of which JAX's own error is larger than ours, or where the result is beyond precision.
LOOSE = {"tan": 3e-5, "logaddexp2": 2e-5, "spacing": 1e-5, "arccosh": 1e-5, "sinc": 1e-5}


def agree(text: str, rtol: float, values: str) -> None:
    """Compare, or where JAX refuses the operands expect an error of a like kind."""
    try:
        jax.eval_shape(lambda: run(text, jax.numpy))
    except KNOWN:
        with pytest.raises(KNOWN):
            run(text, jnp)
    else:
        compare(text, rtol=rtol, atol=1e-5, values=values)


#: Functions that mean something else in NumPy, for some of the operands or pairs below.
UNLIKE_NUMPY = {"reciprocal": "i", "sign": "s", "nan_to_num": "s"}
UNLIKE_NUMPY |= {"deg2rad": "c", "rad2deg": "c", "modf": "s", "power": "i", "arctan2": "c"}
UNLIKE_NUMPY |= {"isclose": "f", "logaddexp": "c", "logaddexp2": "c"}


def oracle_of(name: str, *operands: str) -> str:
    """NumPy's values count where both compute in like precision and mean the same."""
    alike = all(x in "fgsicdjv" or x == "f[0, 0]" for x in operands)
    return "numpy" if alike and UNLIKE_NUMPY.get(name) not in operands else "types only"


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_have_jax_types_and_numpy_values(name):
    """Every unary function has JAX's types, or refuses what JAX refuses, and NumPy's values."""
    for x in OPERANDS:
        agree(f"jnp.{name}({x})", LOOSE.get(name, 5e-6), oracle_of(name, x))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_have_jax_types_and_numpy_values(name):
    """Every binary function promotes as JAX does, and broadcasts and computes as NumPy does."""
    for x, y in PAIRS:
        # Weak by accident of the order of promotions inside.
        if name == "heaviside" and (x, y) in (("2.5", "i"), ("w", "i"), ("i", "w")):
            continue
        agree(f"jnp.{name}({x}, {y})", LOOSE.get(name, 5e-6), oracle_of(name, x, y))


@pytest.mark.parametrize(
    "text",
    """
jnp.power(i, 3)
jnp.power(f, -2)
jnp.power(b, 2)
i ** abs(j)
f ** 2.0
2 ** abs(i)
f ** i
jnp.power(p, 0.5)
jnp.power(f, np.int32(2))
jnp.power(f, True)
jnp.power(w, 3)
i // jnp.zeros_like(i)
i % jnp.zeros_like(i)
f // 0.0
f % 0.0
s // 2.0
s % 3.0
s // s
i // -1
jnp.fmod(i, jnp.zeros_like(i))
jnp.floor_divide(-7, 2)
jnp.remainder(-7, 2)
u8 + 300
jnp.clip(f, 0, 1)
jnp.clip(i, 1.5, 2)
jnp.clip(f, max=0)
jnp.clip(f)
jnp.clip(f, v, 2 * v)
jnp.where(b, f, 0)
jnp.where(b, 1, 2)
jnp.where(b, 1, 2.0)
jnp.where(i, f, i)
jnp.where(True, f, 1)
jnp.where(b, f, v)
jnp.select([b, f > 0], [f, 2 * f], 7)
jnp.select(b, f)
jnp.select([i], [f])
jnp.piecewise(f, [f > 0], [lambda x: x, 1.0])
jnp.piecewise(i, [b], [1.5])
jnp.nan_to_num(s, nan=3, posinf=1.0)
jnp.nan_to_num(n)
jnp.round(f, 2)
jnp.round(f, -1)
jnp.round(c, 1)
jnp.round(jnp.asarray([0.5, 1.5, 2.5]))
jnp.angle(c, deg=True)
jnp.isclose(s, s, equal_nan=True)
jnp.isclose(i, i + 1e-9)
jnp.add.reduce(f)
jnp.add.reduce(i8)
jnp.add.reduce(f, axis=None)
jnp.add.accumulate(f)
jnp.add.outer(i8, i8)
jnp.multiply.reduce(i, axis=1)
jnp.add.at(i8, 0, 1, inplace=False)
jnp.add.reduceat(i8, jnp.asarray([0, 2]))
jnp.subtract.reduce(f)
jnp.maximum.reduce(f, axis=1)
jnp.maximum.reduce(f, axis=1, where=f > 0, initial=-5)
jnp.add.reduce(f, axis=None, where=f > 0, initial=3, keepdims=True)
jnp.multiply.reduce(i, axis=1, where=i[:, :1] > 0)
jnp.subtract.reduce(f, where=f > 0, initial=1)
jnp.logical_and.reduce(f, where=f > 0)
jnp.logical_and.reduce(f, axis=1, keepdims=True)
jnp.subtract.accumulate(f)
jnp.maximum.accumulate(i)
jnp.bitwise_and.reduce(i)
jnp.frompyfunc(lambda x, y: x + y, 2, 1)(f, v)
jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0).reduce(f)
jnp.ldexp(jnp.asarray([1.0, 0.75, 3.0]), jnp.asarray([-149, -140, 127]))
jnp.ldexp(jnp.asarray([1e-40, 1.0, 5.0]), jnp.asarray([100, 300, -300]))
jnp.frexp(jnp.asarray([3e-30, 8.0, -0.1]))
jnp.hypot(s, 2.0)
jnp.logaddexp(s, s)
jnp.heaviside(s, 0.5)
jnp.copysign(f, s[:3])
jnp.modf(s)
    """.strip().split("\n"),
)
def test_special_cases_agree_with_jax(text):
    """Special values and arguments give what JAX gives."""
    compare(text, rtol=5e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jnp.add([1], 2)", ("numpy.add", "list", "position 0")),
        ("jnp.add(f, None)", ("numpy.add", "NoneType", "position 1")),
        ("jnp.sin('a')", ("numpy.sin", "str")),
        ("jnp.add(f, jnp.ones(2))", ("add", "(2, 3)")),
        ("i ** -1", ("negative powers",)),
        ("jnp.subtract(b, b2)", ("sub", "bool")),
        ("jnp.floor(c)", ("floor", "complex")),
        ("jnp.clip(c, 0, 1)", ("clip", "complex")),
        ("jnp.where(b, f, None)", ("where",)),
        ("jnp.round(b)", ("round", "bool")),
        ("jnp.gcd(f, 2)", ("gcd", "float32")),
        ("jnp.select([], [])", ("select",)),
        ("jnp.maximum.reduce(f, where=f > 0)", ("maximum", "identity")),
        ("jnp.add.reduce(f, where=i)", ("where", "bool")),
        ("jnp.left_shift(f, 1)", ("shift_left", "float32")),
    ],
)
def test_errors_name_the_function_and_what_it_got(text, words):
    """Where JAX refuses an argument so do we, saying which function got what."""
    message = both_raise(text, KNOWN)
    for word in words:
        assert word in message


def test_a_python_int_out_of_range_is_an_overflow():
    """An int that the default integer cannot hold is refused, not wrapped."""
    x = jnp.ones(3)
    for _ in range(2):
        with pytest.raises(OverflowError):
            x + 2**40


def test_what_jax_lacks_agrees_with_numpy():
    """Rounding integers to tens, and subnormal numbers, which XLA takes for zero."""
    i = np.array([14, 15, 25, -15, -16], np.int32)
    np.testing.assert_array_equal(jnp.round(i, -1), np.round(i, -1))
    x = np.array([1e-40, -3e-45], np.float32)
    for ours, theirs in zip(jnp.frexp(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_plans_see_the_settings():
    """What is remembered of eager calls holds for the settings they ran under only."""
    f, i, v = jnp.ones((2, 3)), jnp.arange(3), jnp.ones(3)
    jnp.add(f, v)
    jnp.add(v, i)
    in_jax_words = (
        r"numpy\.add: .*Operands could not be broadcast together for add on shapes \(2, 3\) \(3,\) "
        r"and with the config option numpy_rank_promotion='raise'.*Insert axes"
    )
    with numpy_rank_promotion("raise"), pytest.raises(ValueError, match=in_jax_words):
        jnp.add(f, v)
    with numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion"):
        jnp.add(v, i)
    assert jnp.add(v, i).dtype == np.float32


def test_functions_trace():
    """Under a trace, functions record primitives and compute nothing."""
    aval = jnp.ones((2, 3)).aval
    graph = trace_graph(lambda x: [jnp.sin(x) + 1, jnp.clip(x // 2, 0, 1)], [aval])
    assert [str(e.primitive) for e in graph.jaxpr.eqns][:2] == ["sin", "add"]


def test_x64_keeps_width(x64):
    """With 64-bit types on, functions keep them."""
    assert jnp.sin(np.float64(1)).dtype == np.float64
    assert (jnp.arange(3) / 2).dtype == np.float64
    assert jnp.add(np.int64(2**40), 1).dtype == np.int64


def test_functions_are_pickled_by_name():
    """Functions of elements and of trees are themselves again."""
    for fun in (*(getattr(jnp, name) for name in (*UNARY, *BINARY)), tree.map, tree.leaves):
        assert pickle.loads(pickle.dumps(fun)) is fun


@pytest.mark.parametrize("jitted", [False, True])
def test_logarithms_to_base_10_have_the_nearest_scale(jitted):
    """One over the logarithm of 10, as it is rounded, is off by an ULP: so were all results."""
    x = np.random.default_rng(0).uniform(0.01, 1000, 2000)
    want = np.log10(x.astype(np.longdouble))
    with enable_x64(True):
        got = np.asarray((fnarray.jit(jnp.log10) if jitted else jnp.log10)(x))
    off = (got - want) / np.spacing(np.abs(want.astype(np.float64)))
    assert np.sqrt(np.mean(off**2)) < 0.8


@pytest.mark.parametrize("run", [lambda f: f, fnarray.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_divisors_of_the_least_integer_are_positive(dtype, run):
    """Its magnitude is itself, and no divisor but that is negative."""
    least = np.iinfo(dtype).min
    x, y = (v.ravel() for v in np.meshgrid(*[np.array([least, least + 1, 6, 1, 0, -4], dtype)] * 2))
    np.testing.assert_array_equal(run(fnarray.numpy.gcd)(x, y), np.gcd(x, y))
