"""Scalar types, dtype queries and constants.

``float32`` and its kin are constructors of rank-0 arrays and count as dtypes wherever one is asked
for.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from ..core import dtypes
from ..core.array import Array
from ..core.dtypes import finfo, iinfo, is_complex, isdtype, issubdtype, promote_types
from ..core.dtypes import result_type as _result_type
from ..ops.kit.moves import Overlay
from ._creation import asarray

__all__ = [
    "ComplexWarning",
    "array_repr",
    "array_str",
    "bfloat16",
    "bool",
    "bool_",
    "can_cast",
    "cdouble",
    "character",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "flexible",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "float_",
    "floating",
    "generic",
    "get_printoptions",
    "iinfo",
    "inexact",
    "inf",
    "int1",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "iscomplexobj",
    "isdtype",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "nan",
    "ndarray",
    "ndim",
    "newaxis",
    "number",
    "object_",
    "pi",
    "printoptions",
    "promote_types",
    "result_type",
    "set_printoptions",
    "shape",
    "signedinteger",
    "single",
    "size",
    "uint",
    "uint1",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]


class _ScalarType(type):
    """Type of the scalar types: classes that make arrays and stand for a dtype."""

    dtype: np.dtype

    def __call__(cls, x: Any = 0) -> Array:
        return asarray(x, dtype=cls.dtype)

    # Equal to NumPy's scalar type of the dtype, and of its hash, so that a dict finds either.
    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> Any:
        return cls is other or cls.dtype == other

    def __ne__(cls, other: object) -> Any:
        return not cls == other

    def __instancecheck__(cls, instance: object) -> Any:
        return False


def _scalar_type(dtype: dtypes.DType, name: str = "") -> _ScalarType:
    name = name or dtype.name
    doc = f"A rank-0 {dtype.name} array of a value; as an argument, the dtype {dtype.name}."
    members = {"dtype": dtype, "__doc__": doc, "__module__": "fnarray.numpy"}
    return _ScalarType(name, (), members)


bool_ = _scalar_type(dtypes.bool_, "bool")
int8 = _scalar_type(dtypes.int8)
int16 = _scalar_type(dtypes.int16)
int32 = _scalar_type(dtypes.int32)
int64 = _scalar_type(dtypes.int64)
uint8 = _scalar_type(dtypes.uint8)
uint16 = _scalar_type(dtypes.uint16)
uint32 = _scalar_type(dtypes.uint32)
uint64 = _scalar_type(dtypes.uint64)
float16 = _scalar_type(dtypes.float16)
bfloat16 = _scalar_type(dtypes.bfloat16)
float32 = _scalar_type(dtypes.float32)
float64 = _scalar_type(dtypes.float64)
complex64 = _scalar_type(dtypes.complex64)
complex128 = _scalar_type(dtypes.complex128)
# What machines store in 8 bits and fewer.
float4_e2m1fn = _scalar_type(dtypes.as_dtype(ml_dtypes.float4_e2m1fn))
float6_e2m3fn = _scalar_type(dtypes.as_dtype(ml_dtypes.float6_e2m3fn))
float6_e3m2fn = _scalar_type(dtypes.as_dtype(ml_dtypes.float6_e3m2fn))
float8_e3m4 = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e3m4))
float8_e4m3 = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e4m3))
float8_e4m3b11fnuz = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e4m3b11fnuz))
float8_e4m3fn = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e4m3fn))
float8_e4m3fnuz = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e4m3fnuz))
float8_e5m2 = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e5m2))
float8_e5m2fnuz = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e5m2fnuz))
float8_e8m0fnu = _scalar_type(dtypes.as_dtype(ml_dtypes.float8_e8m0fnu))
int1 = _scalar_type(dtypes.as_dtype(ml_dtypes.int1))
int2 = _scalar_type(dtypes.as_dtype(ml_dtypes.int2))
int4 = _scalar_type(dtypes.as_dtype(ml_dtypes.int4))
uint1 = _scalar_type(dtypes.as_dtype(ml_dtypes.uint1))
uint2 = _scalar_type(dtypes.as_dtype(ml_dtypes.uint2))
uint4 = _scalar_type(dtypes.as_dtype(ml_dtypes.uint4))

bool = bool_
int_, uint, float_, complex_ = int64, uint64, float64, complex128
single, double, csingle, cdouble = float32, float64, complex64, complex128

generic, number, inexact, flexible = np.generic, np.number, np.inexact, np.flexible
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
character, object_ = np.character, np.object_

#: NumPy's dtype: of an array's elements, made from a name or type. A TypeError where it means none.
dtype = np.dtype
ndarray = Array
ComplexWarning = np.exceptions.ComplexWarning

#: Circumference of a circle by its diameter.
pi = np.pi
#: Base of the natural logarithm.
e = np.e
#: Positive infinity.
inf = np.inf
#: Not a number.
nan = np.nan
#: Limit of the harmonic numbers less the logarithm.
euler_gamma = np.euler_gamma
#: An axis of size 1, in an index: None.
newaxis = None

get_printoptions, set_printoptions = np.get_printoptions, np.set_printoptions
printoptions = np.printoptions
array_repr, array_str = np.array_repr, np.array_str


def result_type(*args: Any) -> np.dtype:
    """Dtype that arrays, scalars and dtypes promote to together.

    Raises
    ------
    ValueError
        For no arguments, or dtypes that do not promote under ``numpy_dtype_promotion``.
    """
    return _result_type(*(x.dtype if isinstance(x, Overlay) else x for x in args))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> Any:
    """Whether a dtype converts to another under NumPy's casting rules.

    Parameters
    ----------
    from_ : dtype-like or array
    to : dtype-like
    casting : {"no", "equiv", "safe", "same_kind", "unsafe"}
    """
    source = from_.dtype if isinstance(from_, Array) else from_
    source, target = dtypes.as_dtype(source), dtypes.as_dtype(to)
    if dtypes.bfloat16 in (source, target):
        return _can_cast_bfloat16(source, target, casting)
    return np.can_cast(source, target, casting=casting)  # type: ignore[arg-type]


def _can_cast_bfloat16(source: Any, target: Any, casting: str) -> Any:
    if source == target or casting == "unsafe":
        return True
    if casting in ("no", "equiv"):
        return False
    if source == dtypes.bfloat16:
        wider = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
        return target in wider or (casting == "same_kind" and target == dtypes.float16)
    # It holds the integers of 8 bits.
    narrow = (dtypes.bool_, dtypes.int8, dtypes.uint8)
    return source in narrow or (casting == "same_kind" and not is_complex(source))


def iscomplexobj(x: Any) -> Any:
    """Whether a value has a complex dtype, whatever its elements."""
    if x is None:
        return False
    found = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
    return is_complex(found)


def isrealobj(x: Any) -> Any:
    """Whether a value has no complex dtype."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> Any:
    """Whether a value is a Python or NumPy scalar, or an array of rank 0."""
    if isinstance(element, Array):
        return element.shape == ()
    return np.isscalar(element) or (hasattr(element, "shape") and np.shape(element) == ())


def iterable(y: Any) -> Any:
    """Whether a value can be iterated over; arrays of rank 0 cannot."""
    return np.iterable(y) if not isinstance(y, Array) else y.ndim > 0


def ndim(a: Any) -> int:
    """Return the number of axes of an array, or of nested lists."""
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of an array, or of nested lists."""
    return a.shape if isinstance(a, Array) else np.shape(a)


def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, or those along an axis or several."""
    sizes = shape(a)
    if axis is None:
        return math.prod(sizes)
    axes = axis if isinstance(axis, tuple | list | range) else (axis,)
    return math.prod(sizes[i] for i in axes)
