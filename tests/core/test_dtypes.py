"""Dtypes, promotion and weak types, compared with JAX and ml_dtypes."""

from __future__ import annotations

import enum
import itertools
from contextlib import ExitStack
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax._src import dtypes as oracle
from jax._src.lax.lax import _convert_element_type

from fnarray.config import enable_x64, numpy_dtype_promotion
from fnarray.core import dtypes as D  # noqa: N812
from fnarray.errors import TypePromotionError

STRONG = D.ALL
WEAK = (int, float, complex)
ANY = (*STRONG, *WEAK)
MODES = list(itertools.product((False, True), ("standard", "strict")))


def outcome(thunk):
    """Value of a call, or the word for a refused promotion."""
    try:
        return thunk()
    except (TypePromotionError, jax.dtypes.TypePromotionError):
        return "refused"


def settings(x64, mode):
    """Enter the same settings here and in the oracle."""
    stack = ExitStack()
    for scope in (
        enable_x64(x64),
        numpy_dtype_promotion(mode),
        jax.enable_x64(x64),
        jax.numpy_dtype_promotion(mode),
    ):
        stack.enter_context(scope)
    return stack


@pytest.mark.parametrize(("x64", "mode"), MODES)
def test_result_type_of_every_pair_is_jax_s(x64, mode):
    """All pairs of strong and weak types give JAX's dtype and weak flag, or are refused by both."""
    with settings(x64, mode):
        for a, b in itertools.product(ANY, ANY):
            ours = outcome(lambda a=a, b=b: D.result_type(a, b, return_weak_type_flag=True))
            theirs = outcome(lambda a=a, b=b: oracle.result_type(a, b, return_weak_type_flag=True))
            assert ours == theirs, (a, b)


@pytest.mark.parametrize(("x64", "mode"), MODES)
def test_weak_arrays_join_as_in_jax(x64, mode):
    """Weak arrays of any width, which results of weak operations are, promote as in JAX."""
    with settings(x64, mode):
        operands = {
            (d, weak): _convert_element_type(np.int8(0), d, weak_type=weak)
            for d, weak in itertools.product(STRONG, (False, True))
            if D.canonicalize_dtype(d) == d and (d != D.bool_ or not weak)
        }
        for (a, x), (b, y) in itertools.product(operands.items(), repeat=2):
            # Operations keep the width of weak operands ...
            ours = outcome(lambda a=a, b=b: D.lattice_result_type((a, b)))
            assert ours == outcome(lambda x=x, y=y: oracle.lattice_result_type(x, y)), (a, b)
            # ... while result_type gives weak results the default width.
            ours = outcome(lambda a=a, b=b: D.result_type(Weak(*a), Weak(*b)))
            assert ours == outcome(lambda x=x, y=y: oracle.result_type(x, y)), (a, b)


def test_three_operands_join_at_once():
    """The join of three operands is JAX's, whatever their order."""
    for triple in itertools.product((D.int8, D.uint8, D.bfloat16, D.float16, int, float), repeat=3):
        assert D.result_type(*triple) == jnp.result_type(*triple)


@pytest.mark.parametrize("x64", [False, True])
def test_promote_types_is_jax_s(x64):
    """`promote_types` gives JAX's join, whose own narrowing spares 64-bit operands."""
    with settings(x64, "standard"):
        for a, b in itertools.product(ANY, ANY):
            assert D.promote_types(a, b) == jnp.promote_types(a, b), (a, b)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("spec", [*ANY, bool, None, "float64", "f8", "bfloat16", ">i8", np.int64])
def test_canonical_dtype(spec, x64):
    """Every spelling of a dtype gives JAX's canonical one; foreign byte order becomes native."""
    with settings(x64, "standard"):
        native = np.dtype(spec).newbyteorder("=") if isinstance(spec, str) else spec
        assert D.canonicalize_dtype(spec) == oracle.canonicalize_dtype(native)
        assert D.canonicalize_dtype(D.canonicalize_dtype(spec)) is D.canonicalize_dtype(spec)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (object, "object"),
        ("S3", "bytes24"),
        ("M8[s]", "datetime64"),
        ([("a", int)], "void64"),
        (np.longdouble, "float128"),
        ("nonsense", "nonsense"),
    ],
)
def test_unsupported_dtypes_are_named(spec, word):
    """A dtype arrays cannot hold is a `TypeError` that names it."""
    with pytest.raises(TypeError, match=word):
        D.canonicalize_dtype(spec)


class Weak(SimpleNamespace):
    """A value known by dtype and weak type."""

    def __init__(self, dtype, weak_type):
        super().__init__(dtype=dtype, weak_type=weak_type)


class Colour(enum.IntEnum):
    """A subclass of int."""

    RED = 1


VALUES = [
    (True, (D.bool_, False)),
    (3, (D.int32, True)),
    (Colour.RED, (D.int32, True)),
    (2.0, (D.float32, True)),
    (1j, (D.complex64, True)),
    (np.float64(2), (D.float32, False)),
    (np.bool_(1), (D.bool_, False)),
    (np.int8(2), (D.int8, False)),
    (np.zeros(3), (D.float32, False)),
    (ml_dtypes.bfloat16(1), (D.bfloat16, False)),
    (SimpleNamespace(aval=SimpleNamespace(dtype=D.int8, weak_type=True)), (D.int8, True)),
    (SimpleNamespace(dtype=D.float64), (D.float32, False)),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_dtype_and_weak(value, expected):
    """Python numbers but bool are weak; NumPy's are strong; avals speak for themselves."""
    assert D.dtype_and_weak(value) == expected


@pytest.mark.parametrize("value", [[1], "x", None, {}, np.array("a"), np.array([None])])
def test_values_without_a_numeric_dtype(value):
    """What is neither array nor number is a `TypeError`."""
    with pytest.raises(TypeError):
        D.dtype_and_weak(value)


def test_python_ints_must_fit():
    """An int the default integer cannot hold overflows; its bounds themselves do not."""
    assert D.dtype_and_weak(-(2**31)) == (D.int32, True)
    with pytest.raises(OverflowError, match="int32"):
        D.dtype_and_weak(2**31)
    with enable_x64(True):
        assert D.dtype_and_weak(2**63 - 1) == (D.int64, True)
        with pytest.raises(OverflowError, match="int64"):
            D.dtype_and_weak(2**63)


def test_strict_promotion_says_what_to_do():
    """A refused promotion names both dtypes and both ways out."""
    with (
        numpy_dtype_promotion("strict"),
        pytest.raises(TypePromotionError, match=r"f32 and i32.*astype.*'standard'"),
    ):
        D.result_type(D.int32, D.float32)


def test_result_type_needs_an_operand():
    """No operands, no dtype."""
    with pytest.raises(ValueError, match="at least one"):
        D.result_type()


def test_issubdtype_is_jax_s():
    """Every dtype against every class of the hierarchy, bfloat16 as a floating type."""
    classes = (
        np.generic,
        np.number,
        np.inexact,
        np.floating,
        np.complexfloating,
        np.integer,
        np.signedinteger,
        np.unsignedinteger,
        np.bool_,
        jnp.bfloat16.dtype,
        "int32",
        float,
    )
    for low in (*ANY, "bfloat16", np.floating):
        for high in classes:
            assert D.issubdtype(low, high) == jnp.issubdtype(low, high), (low, high)
    assert D.issubdtype(D.prng_key, D.extended)


def test_isdtype_is_jax_s():
    """Array API kinds, alone and in tuples."""
    for d, kind in itertools.product(ANY, (*D._KINDS, D.float32, ("bool", "integral"))):
        assert D.isdtype(d, kind) == jnp.isdtype(d, kind), (d, kind)
    with pytest.raises(ValueError, match="kind must be one of"):
        D.isdtype(D.int8, "whole")


@pytest.mark.parametrize("dtype", STRONG, ids=str)
def test_families_and_neighbours(dtype):
    """Predicates, part and companion dtypes, limits and short names agree with the oracle."""
    assert D.is_bool(dtype) == (dtype == np.bool_)
    assert D.is_integer(dtype) == jnp.issubdtype(dtype, np.integer)
    assert D.is_unsigned(dtype) == jnp.issubdtype(dtype, np.unsignedinteger)
    assert D.is_float(dtype) == jnp.issubdtype(dtype, np.floating)
    assert D.is_half(dtype) == (D.is_float(dtype) and np.dtype(dtype).itemsize == 2)
    assert D.to_single(np.dtype(dtype)) == (np.float32 if D.is_half(dtype) else dtype)
    assert D.is_complex(dtype) == jnp.issubdtype(dtype, np.complexfloating)
    assert D.is_inexact(dtype) == jnp.issubdtype(dtype, np.inexact)
    assert D.short_name(dtype) == oracle.short_dtype_name(dtype)
    assert D.itemsize_bits(dtype) == jax.dtypes.itemsize_bits(dtype)
    with settings(True, "standard"):
        value = np.zeros((), dtype)
        assert D.scalar_type_of(value) is jax.dtypes.scalar_type_of(value)
        assert D.to_inexact(dtype) == oracle.to_inexact_dtype(dtype)
        assert D.to_complex(dtype) == oracle.to_complex_dtype(dtype)
        assert D.to_real(D.to_complex(dtype)) in (np.float32, np.float64)
    if D.is_inexact(dtype):
        assert float(D.finfo(dtype).eps) == float(jnp.finfo(dtype).eps)
    elif D.is_integer(dtype):
        assert D.iinfo(dtype).max == jnp.iinfo(dtype).max


def test_extended_dtypes_pass_only_where_allowed():
    """A key dtype is refused by default, kept on request, and joins with itself alone."""

    class Key(D.ExtendedDType):
        type, name = D.prng_key, "key<fry>"

    key = Key()
    with pytest.raises(TypeError, match="key<fry>"):
        D.canonicalize_dtype(key)
    assert D.canonicalize_dtype(key, allow_extended_dtype=True) is key
    assert D.short_name(key) == "key<fry>"
    assert D.issubdtype(key, D.prng_key)
    assert not D.issubdtype(key, np.number)
    assert not D.is_inexact(key)
    assert D.lattice_result_type([(key, False), (key, False)]) == (key, False)
    with pytest.raises(TypePromotionError, match="f32 and key<fry>"):
        D.lattice_result_type([(key, False), (D.float32, False)])
    with pytest.raises(ValueError, match="key<fry>"):
        D.itemsize_bits(key)


def test_float0_is_a_dtype_without_memory():
    """float0 is canonical, has a name, and no size."""
    assert D.canonicalize_dtype(D.float0) == jax.dtypes.float0
    assert D.short_name(D.float0) == "float0"
    with pytest.raises(ValueError, match="float0"):
        D.itemsize_bits(D.float0)
