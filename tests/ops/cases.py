"""Rows of the elementwise operations."""

from __future__ import annotations

from functools import partial

import numpy as np

from fnarray.core.trace import bind

from .opcase import OpCase

_BINARY = ((3, 4), (3, 4))
_UNIT = {"domain": (-0.99, 0.99)}
_POSITIVE = {"domain": (0.01, 5)}


def _unary(names: str, **row) -> list[OpCase]:
    return [OpCase(name, **row) for name in names.split()]


def _binary(names: str, **row) -> list[OpCase]:
    return [OpCase(name, **{"shapes": _BINARY, **row}) for name in names.split()]


def _primitive(name: str):
    """Return ``fn`` for an operation that has no public function in JAX."""

    def fn(lax):
        prim = getattr(lax, f"{name}_p")
        return getattr(prim, "bind", partial(bind, prim))

    return fn


_i8 = np.array([-128, -127, -1, 0, 1, 7, 127], np.int8)
_i32 = np.array([-(2**31), -7, -1, 0, 1, 5, 2**31 - 1], np.int32)
_u8 = np.array([0, 1, 2, 7, 128, 254, 255], np.uint8)
_f = np.array(
    [np.nan, np.inf, -np.inf, 0, -0.0, 0.5, -0.5, 300.7, -300.7, 2.0**31, 1e30], np.float32
)


def _pairs(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of elements, as two operands."""
    return np.repeat(x, x.size), np.tile(x, x.size)


ARITHMETIC = [
    *_binary("add sub mul", dtypes="iuf", special=True),
    *_binary("add sub mul", dtypes="c", ulp=2),
    *_binary("div", dtypes="iuf", special=True),
    *_binary("div", dtypes="c", ulp=4),
    *_binary("rem", dtypes="iuf", special=True),
    *_binary("max min", dtypes="biufc", special=True),
    *_binary("nextafter", dtypes="f", special=True),
    *_unary("neg sign", dtypes="iuf", special=True),
    *_unary("neg sign abs", dtypes="c", ulp=4),
    *_unary("abs", dtypes="if", special=True),
    *_unary("square", dtypes="iuf"),
    *_unary("square", dtypes="c", ulp=2),
    *(
        OpCase(f"{name}:edges", values=_pairs(x))
        for name in (
            "div",
            "rem",
            "mulhi",
            "mul",
            "shift_left",
            "shift_right_logical",
            "shift_right_arithmetic",
        )
        for x in (_i8, _i32, _u8)
    ),
    *_binary("add mul div rem mulhi shift_left", dtypes="I", domain=(-(2**62), 2**62)),
    *_unary("clz population_count sign", dtypes="I", domain=(-(2**62), 2**62)),
    OpCase("add:scalar", shapes=((3, 4), ())),
    OpCase("add:stretch", shapes=((3, 4), (1, 4))),
    OpCase("add:weak", values=(1.5, 2.5)),
    OpCase("mul:weak", values=(np.ones((2, 2), np.float32), 3.0)),
]
POWERS = [
    *_binary("pow", ulp=8, **_POSITIVE),
    *_binary("pow", dtypes="c", ulp=60),
    OpCase("pow:int", shapes=_BINARY, dtypes=("float32", "int32"), ulp=8),
    OpCase("pow:int8", shapes=_BINARY, dtypes=("float16", "int8"), ulp=2, domain=(-3, 3)),
    OpCase(
        "pow:special",
        values=_pairs(np.array([0, -0.0, 1, -1, 2, -2, np.inf, -np.inf, np.nan], np.float32)),
    ),
    *(OpCase(f"integer_pow:{y}", dtypes="iufc", params={"y": y}, ulp=4) for y in (0, 1, 2, 3, 7)),
    *(OpCase(f"integer_pow:{y}", dtypes="fc", params={"y": y}, ulp=8) for y in (-1, -2, -5)),
    OpCase("reciprocal", special=True, ulp=1),
    *_unary("sqrt", domain=(0, 10)),
    *_unary("rsqrt", ulp=2, **_POSITIVE),
    *_unary("cbrt", ulp=4, special=True),
    *_unary("sqrt rsqrt", dtypes="c", ulp=8),
]
TRANSCENDENTAL = [
    *_unary("exp exp2 expm1 sin cos tan tanh logistic sinh cosh asinh atan", ulp=8, special=True),
    *_unary("log log1p", ulp=8, **_POSITIVE),
    *_unary("asin acos atanh", ulp=16, **_UNIT),
    *_unary("acosh", ulp=16, domain=(1.1, 9)),
    *_unary(
        "exp exp2 expm1 log log1p sin cos tan tanh logistic sinh cosh asin acos atan asinh acosh "
        "atanh",
        dtypes="c",
        ulp=200,
    ),
    *_binary("atan2", ulp=8, special=True),
    *_binary("atan2", dtypes="c", ulp=200),
    OpCase(
        "exp:accuracy",
        fn=lambda lax: lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST),
        ulp=8,
    ),
]
ROUNDING = [
    *_unary("floor ceil is_finite", special=True),
    OpCase("round", special=True),
    OpCase(
        "round:even",
        fn=lambda lax: lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        special=True,
    ),
]
COMPLEX = [
    *_unary("real imag conj", dtypes="c"),
    OpCase("conj:real", fn=lambda lax: lax.conj, dtypes=("float32",)),
    OpCase("complex", shapes=_BINARY, dtypes=("float32", "float32"), special=True),
]
BITS = [
    *_binary("bitwise_and bitwise_or bitwise_xor", dtypes="biu", domain=(-128, 255)),
    *_unary("bitwise_not", dtypes="biu", domain=(-128, 255)),
    *_unary("population_count clz", dtypes="iu", domain=(-128, 255)),
    OpCase("clz:edges", values=(_i32,)),
    *_binary("mulhi", dtypes="iu", domain=(-(2**31), 2**31)),
    *_binary("shift_left shift_right_logical shift_right_arithmetic", dtypes="iu", domain=(0, 9)),
]
COMPARISONS = [
    *_binary("eq ne", dtypes="biufc", special=True),
    *_binary("lt le gt ge", dtypes="biuf", special=True),
    *(
        OpCase(f"{p}:total", fn=_primitive(p), values=_pairs(_f))
        for p in ("eq_to", "le_to", "lt_to")
    ),
]


CONVERSIONS = [
    *(
        OpCase(
            f"convert_element_type:{new}",
            dtypes="biufc",
            params={"new_dtype": new},
            domain=(0, 100),
        )
        for new in ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64")
    ),
    *(
        OpCase(f"convert_element_type:edges-{new}", values=(x,), params={"new_dtype": new})
        for new in ("bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "float32")
        for x in (_f, _i32, _i8, _u8)
    ),
    OpCase("convert_element_type:python", values=(1.0,), params={"new_dtype": float}),
    OpCase("convert_element_type:int", values=(2.7,), params={"new_dtype": int}),
    OpCase("bitcast_convert_type:same", params={"new_dtype": "int32"}, dtypes=("float32",)),
    OpCase("bitcast_convert_type:narrow", params={"new_dtype": "int8"}, dtypes=("float32",)),
    OpCase("bitcast_convert_type:wide", params={"new_dtype": "float32"}, dtypes=("uint8",)),
    OpCase("bitcast_convert_type:half", params={"new_dtype": "uint16"}, dtypes=("float16",)),
    OpCase("bitcast_convert_type:bf16", params={"new_dtype": "bfloat16"}, dtypes=("int16",)),
    *(
        OpCase(
            f"reduce_precision:{e},{m}",
            params={"exponent_bits": e, "mantissa_bits": m},
            special=True,
            domain=(-300, 300),
        )
        for e, m in ((8, 23), (5, 10), (5, 3), (4, 3), (8, 7), (11, 5), (2, 1), (3, 0))
    ),
]
CHOICES = [
    OpCase("select_n:bool", shapes=((3, 4),) * 3, dtypes=("bool", "float32", "float32")),
    OpCase("select_n:scalar", shapes=((), (3, 4), (3, 4)), dtypes=("bool", "int8", "int8")),
    OpCase("select_n:int", shapes=((3, 4),) * 4, dtypes=("int32", "float32", "float32", "float32")),
    OpCase("select_n:weak", values=(True, 1.0, 2.0)),
    OpCase("select_n:one", values=(True, 1.0)),
    OpCase("select", shapes=((3, 4),) * 3, dtypes=("bool", "complex64", "complex64")),
    OpCase("clamp", shapes=((), (3, 4), ()), dtypes="biufc", special=True, domain=(-1, 1)),
    OpCase("clamp:arrays", shapes=((3, 4),) * 3, dtypes="if"),
    OpCase("stop_gradient", dtypes="biufc"),
    OpCase("optimization_barrier", dtypes="f"),
    OpCase("copy", fn=_primitive("copy"), dtypes="f"),
]
FILL = [
    OpCase("full", values=((2, 3), 1)),
    OpCase("full:dtype", values=((2, 3), 1.7, "int32")),
    OpCase("full:int", values=(3, True)),
    OpCase("full:strong", values=((), 1, float)),
    OpCase("full_like", dtypes="biufc", params={"fill_value": 1}),
    OpCase("full_like:weak", values=(1.0, 2)),
    OpCase("full_like:shape", params={"fill_value": 1.5, "shape": (2,), "dtype": "int8"}),
    OpCase("empty", values=((2,), "int32")),
]

_x, _h, _b = np.ones((3, 4), np.float32), np.ones((3, 4), np.float16), np.ones((3, 4), bool)
_n, _z = np.ones((3, 4), np.int32), np.ones((3, 4), np.complex64)


def _bad(name: str, *values, raises=TypeError, match: str = "", **row) -> OpCase:
    return OpCase(name, values=values, raises=raises, match=match, **row)


ERRORS = [
    _bad("add", 1, 1.0, match="int32, float32"),
    _bad("add", _x, _n, match=r"fnarray\.numpy\.add"),
    _bad("add", _x, _h, match="float16"),
    _bad("add", [1], 1),
    _bad("add", None, 1),
    _bad("add", "a", 1),
    _bad("add", _x, _x[0], match="dimensions"),
    _bad("add", _x, _x[:2], match="broadcast"),
    _bad("add", 2**40, 1, raises=OverflowError),
    *(_bad(name, _b, _b) for name in ("add", "sub", "mul", "div", "rem", "shift_left", "pow")),
    *(
        _bad(name, _n)
        for name in ("sin", "sqrt", "exp", "floor", "is_finite", "reciprocal", "real")
    ),
    *(_bad(name, _z) for name in ("cbrt", "floor", "round", "is_finite", "population_count")),
    *(_bad(name, _z, _z) for name in ("rem", "lt", "ge", "nextafter")),
    *(_bad(name, _x, _x) for name in ("bitwise_and", "shift_left", "mulhi")),
    _bad("abs", _u8),
    _bad("pow", _n, _n, match="int32"),
    _bad("pow", _z, _x, match="power"),
    _bad("integer_pow", _n, -1, match="negative"),
    _bad("integer_pow", _x, 2.5),
    _bad("round", _x, 7, raises=ValueError),
    _bad("complex", _h, _h, match="float16"),
    _bad("conj", _n),
    _bad("select_n", _b, raises=ValueError),
    _bad("select_n", _b, _x, _n),
    _bad("select_n", _b, _x, _x, _x, match="2 cases"),
    _bad("select_n", _x, _x, _x, match="bool or an integer"),
    _bad("select_n", _b, _x, _x[0], match="shapes"),
    _bad("select_n", _b[0], _x, _x, match="scalar"),
    _bad("clamp", 0, _x, 1),
    _bad("clamp", _x[0], _x, 1.0, match="min"),
    _bad("convert_element_type", [1, 2], float),
    _bad("convert_element_type", _x, "foo"),
    _bad("convert_element_type", _x, object),
    _bad("convert_element_type", _x, None, raises=ValueError),
    _bad("bitcast_convert_type", _x, "complex64", jax_raises=ValueError),
    _bad("bitcast_convert_type", _z, "float32"),
    _bad("bitcast_convert_type", _u8, "int32", raises=ValueError, match="4 elements"),
    _bad("reduce_precision", _x, 0, 5, raises=ValueError),
    _bad("reduce_precision", _x, 5, -1, raises=ValueError),
    _bad("reduce_precision", _n, 5, 3),
    _bad("full", (2,), _x, match="scalar"),
    _bad("full", (-1,), 1),
    _bad("exp:accuracy", _x, fn=lambda lax: lambda x: lax.exp(x, accuracy=3), jax_raises=Exception),
]

CASES = [
    *ARITHMETIC,
    *POWERS,
    *TRANSCENDENTAL,
    *ROUNDING,
    *COMPLEX,
    *BITS,
    *COMPARISONS,
    *CONVERSIONS,
    *CHOICES,
    *FILL,
]
