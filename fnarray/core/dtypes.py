"""Element types, their default widths, and the lattice that joins them.

Two dtypes promote to their least upper bound in the diagram below, read left to right.  A star
marks a weak type, that of a Python scalar: it gives way to any strong type of its own kind::

                    u1────┬──u2────┬──u4────┬──u8─┐         bf────┐
                   ╱      │        │        │      ╲       ╱      │
    b1 ── i* ─────┤       │        │        │       ├── f* ── f2 ─┴─ f4 ───── f8
                   ╲      ╲        ╲        ╲      ╱       ╲          ╲         ╲
                    i1 ─── i2 ───── i4 ───── i8 ──┘         c* ─────── c4 ────── c8

(Sizes here are in bytes, of a complex number's parts for ``c``: ``u8`` is uint64, ``bf`` bfloat16,
``c4`` complex64.)  So
``int8 + uint8`` is int16, ``int32 + float*`` is ``float*``, ``float16 + bfloat16`` is float32, and
an integer of any width never widens a float.  The lattice is that of JAX
(https://docs.jax.dev/en/latest/type_promotion.html).  The strict setting keeps only the edges
between weak types and from a weak type to strong ones of its kind.

Without ``enable_x64`` each result is then narrowed to 32 bits (complex64 for complex numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, Final, cast

import ml_dtypes
import numpy as np

from ..config import config
from ..errors import TypePromotionError
from .small import KINDS, SMALL, SMALL_FLOATS, SMALL_SIGNED, SMALL_UNSIGNED, bits_of

__all__ = [
    "ExtendedDType",
    "as_dtype",
    "bfloat16",
    "bool_",
    "canonicalize_dtype",
    "complex64",
    "complex128",
    "dtype_and_weak",
    "extended",
    "finfo",
    "float0",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_bool",
    "is_complex",
    "is_float",
    "is_half",
    "is_inexact",
    "is_integer",
    "is_unsigned",
    "isdtype",
    "issubdtype",
    "itemsize_bits",
    "lattice_result_type",
    "prng_key",
    "promote_types",
    "python_scalar_dtypes",
    "result_type",
    "scalar_type_of",
    "short_name",
    "to_complex",
    "to_inexact",
    "to_real",
    "to_single",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool_: Final = np.dtype(np.bool_)
int8: Final = np.dtype(np.int8)
int16: Final = np.dtype(np.int16)
int32: Final = np.dtype(np.int32)
int64: Final = np.dtype(np.int64)
uint8: Final = np.dtype(np.uint8)
uint16: Final = np.dtype(np.uint16)
uint32: Final = np.dtype(np.uint32)
uint64: Final = np.dtype(np.uint64)
float16: Final = np.dtype(np.float16)
bfloat16: Final = np.dtype(ml_dtypes.bfloat16)  #: A float32 with 8 bits of precision.
float32: Final = np.dtype(np.float32)
float64: Final = np.dtype(np.float64)
complex64: Final = np.dtype(np.complex64)
complex128: Final = np.dtype(np.complex128)
float0: Final = np.dtype([("float0", np.void, 0)])  #: Of an integer's tangents: nothing.

SIGNED: Final = (int8, int16, int32, int64)
UNSIGNED: Final = (uint8, uint16, uint32, uint64)
HALVES: Final = (float16, bfloat16)
FLOATS: Final = (*HALVES, float32, float64)
COMPLEXES: Final = (complex64, complex128)
ALL: Final = (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEXES)


class extended(np.generic):  # noqa: N801 - a scalar type, named as in jax.dtypes
    """Abstract scalar type of the dtypes whose elements are not numbers."""


class prng_key(extended):  # noqa: N801 - a scalar type, named as in jax.dtypes
    """Abstract scalar type of random keys."""


class ExtendedDType:
    """Base of the dtypes NumPy has no name for.

    Attributes
    ----------
    type : type
        Scalar type, a subclass of `extended`.
    name : str
        Long and short name at once, as in ``key<fry>``.
    blank : callable that gives an element of zeros
    """

    type: type[extended]
    name: str
    blank: Callable[[], Any]


DType = np.dtype | ExtendedDType

_SHORT: Final[dict[DType, str]] = {
    bool_: "bool",
    bfloat16: "bf16",
    float0: "float0",
    **{d: f"i{8 * d.itemsize}" for d in SIGNED},
    **{d: f"u{8 * d.itemsize}" for d in UNSIGNED},
    **{d: f"f{8 * d.itemsize}" for d in (float16, float32, float64)},
    **{d: f"c{8 * d.itemsize}" for d in COMPLEXES},
    **{d: d.name.replace("float", "f").replace("uint", "u").replace("int", "i") for d in SMALL},
}
_WEAK: Final = {int: int64, float: float64, complex: complex128}
_NARROWER: Final = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}


def _spellings(dtypes: Iterable[np.dtype]) -> dict[Hashable, np.dtype]:
    """Map each dtype, its scalar type, its name and its Python type to the dtype."""
    python = {bool_: bool, **{d: t for t, d in _WEAK.items()}}
    return {spelling: d for d in dtypes for spelling in (d, d.type, d.name, python.get(d, d))}


_WIDE: Final[dict[Any, np.dtype]] = _spellings((*ALL, *SMALL)) | {None: float64, float0: float0}
_NARROW: Final[dict[Any, np.dtype]] = {s: _NARROWER.get(d, d) for s, d in _WIDE.items()}


def as_dtype(spec: Any) -> DType:
    """Return the dtype that `spec` names, at its full width.

    Parameters
    ----------
    spec
        A dtype, scalar type, Python scalar type, name, or an object with a ``dtype``.

    Raises
    ------
    TypeError
        `spec` names no dtype.
    """
    if isinstance(spec, DType):
        return cast("DType", spec)
    if isinstance(held := getattr(spec, "dtype", None), DType):
        return cast("DType", held)
    try:
        return np.dtype(spec)
    except TypeError:
        raise TypeError(
            f"{spec!r} is not a dtype. Use a name such as 'float32', a NumPy dtype, "
            f"or one of bool, int, float, complex."
        ) from None


def canonicalize_dtype(spec: Any, allow_extended_dtype: bool = False) -> Any:
    """Return the dtype `spec` stands for here: native byte order, 32-bit unless `enable_x64`.

    Raises
    ------
    TypeError
        Arrays cannot hold the dtype: objects, strings, dates, records, long doubles; or an
        extended dtype without `allow_extended_dtype`.
    """
    table = _WIDE if config.enable_x64 else _NARROW
    try:
        return table[spec]
    except (KeyError, TypeError):  # another spelling, or an unhashable one
        dtype = as_dtype(spec)
    if isinstance(dtype, ExtendedDType):
        if allow_extended_dtype:
            return dtype
    elif found := table.get(dtype.newbyteorder("=")):
        return found
    raise TypeError(
        f"dtype {dtype.name!r} (from {spec!r}) is not supported: arrays hold "
        f"{', '.join(d.name for d in ALL)}. Convert with numpy's astype first."
    )


@cache
def short_name(dtype: DType) -> str:
    """``f32``, ``i8``, ``bool``, ``bf16``: the name printed graphs use."""
    return _SHORT.get(dtype) or dtype.name


# ---- families ----------------------------------------------------------------------------------

_BOOLS: Final = frozenset(_spellings([bool_]))
_UNSIGNED: Final = frozenset(_spellings(UNSIGNED + SMALL_UNSIGNED))
_INTEGERS: Final = frozenset(_spellings(SIGNED + UNSIGNED + SMALL_SIGNED + SMALL_UNSIGNED))
_HALVES: Final = frozenset(_spellings(HALVES))
_FLOATS: Final = frozenset(_spellings(FLOATS + SMALL_FLOATS))
_COMPLEXES: Final = frozenset(_spellings(COMPLEXES))
_INEXACT: Final = _FLOATS | _COMPLEXES


def is_bool(dtype: Any) -> bool:
    """Whether a dtype is bool."""
    return dtype in _BOOLS


def is_integer(dtype: Any) -> bool:
    """Whether a dtype is a signed or unsigned integer."""
    return dtype in _INTEGERS


def is_unsigned(dtype: Any) -> bool:
    """Whether a dtype is an unsigned integer."""
    return dtype in _UNSIGNED


def is_float(dtype: Any) -> bool:
    """Whether a dtype is a real floating type, bfloat16 included."""
    return dtype in _FLOATS


def is_half(dtype: Any) -> bool:
    """Whether a dtype is half precision: float16 or bfloat16."""
    return dtype in _HALVES


def is_complex(dtype: Any) -> bool:
    """Whether a dtype is complex."""
    return dtype in _COMPLEXES


def is_inexact(dtype: Any) -> bool:
    """Whether a dtype is floating or complex."""
    return dtype in _INEXACT


def _scalar_class(spec: Any) -> type:
    if isinstance(spec, type) and issubclass(spec, np.generic):
        return cast("type[Any]", spec)
    return as_dtype(spec).type


@lru_cache(maxsize=1024)
def issubdtype(a: Any, b: Any) -> bool:
    """Whether `a` lies at or below `b` in NumPy's type hierarchy.

    bfloat16 counts as ``numpy.floating``; key dtypes lie below `prng_key` and `extended`.
    """
    low, high = _scalar_class(a), _scalar_class(b)
    # ml_dtypes derives its scalars from numpy.generic only.
    if low in KINDS:
        return high is low or issubclass(KINDS[low], high)
    return issubclass(low, high)


_KINDS: Final = {
    "bool": _BOOLS,
    "signed integer": _INTEGERS - _UNSIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _INTEGERS,
    "real floating": _FLOATS,
    "complex floating": _COMPLEXES,
    "numeric": _INTEGERS | _INEXACT,
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of a kind, as the array API standard defines kinds.

    Parameters
    ----------
    dtype
        A dtype in any spelling.
    kind
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``, a dtype, or a tuple of these.

    Raises
    ------
    ValueError
        `kind` is a string that names neither a kind nor a dtype.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in cast("tuple[Any, ...]", kind))
    if isinstance(kind, str) and kind not in _WIDE:
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind must be one of {', '.join(_KINDS)}, got {kind!r}.")
        return as_dtype(dtype) in _KINDS[kind]
    # "bool" is a kind and a dtype; both readings agree.
    return as_dtype(dtype) == as_dtype(kind)


def finfo(dtype: Any) -> Any:
    """Machine limits of a floating or complex dtype, bfloat16 included."""
    return cast("Any", ml_dtypes.finfo(as_dtype(dtype)))


def iinfo(dtype: Any) -> Any:
    """Machine limits of an integer dtype."""
    return ml_dtypes.iinfo(as_dtype(dtype))


def itemsize_bits(dtype: Any) -> int:
    """Bits one element takes in memory (8 for bool).

    Raises
    ------
    ValueError
        The dtype has no elements in memory: `float0`, key dtypes.
    """
    found = as_dtype(dtype)
    if found == float0 or isinstance(found, ExtendedDType):
        raise ValueError(f"itemsize_bits: {short_name(found)} has no fixed size in memory.")
    return bits_of(found)


# ---- neighbours of a dtype ---------------------------------------------------------------------

_REAL: Final = {complex64: float32, complex128: float64}


def to_real(dtype: np.dtype) -> np.dtype:
    """Dtype of the parts of a complex number; other dtypes are returned as they are."""
    return _REAL.get(dtype, dtype)


def to_single(dtype: np.dtype) -> np.dtype:
    """Dtype in which sums and products of steps are made: float32 for halves, else itself."""
    return float32 if dtype in _HALVES else dtype


def to_inexact(dtype: np.dtype) -> np.dtype:
    """Dtype in which a function such as ``sin`` works: itself, or a float for bool and integers."""
    if dtype in _INEXACT:
        return dtype
    return canonicalize_dtype(float64 if dtype in (int64, uint64) else float32)


def to_complex(dtype: np.dtype) -> np.dtype:
    """Complex dtype that holds `dtype`: complex128 for 64-bit types, else complex64."""
    return complex128 if to_inexact(dtype) in (float64, complex128) else complex64


# ---- Python scalars and operands ---------------------------------------------------------------

python_scalar_dtypes: Final = {bool: bool_, **_WEAK}
_INT_RANGE: Final = {d: (np.iinfo(d).min, np.iinfo(d).max) for d in (int32, int64)}


def scalar_type_of(x: Any) -> type:
    """Python type (bool, int, float or complex) of the elements of a value.

    Raises
    ------
    TypeError
        `x` has no numeric dtype.
    """
    return _python_type(dtype_and_weak(x)[0])


def _python_type(dtype: DType) -> type:
    for members, python in (
        (_BOOLS, bool),
        (_INTEGERS, int),
        (_FLOATS, float),
        (_COMPLEXES, complex),
    ):
        if dtype in members:
            return python
    raise TypeError(f"dtype {short_name(dtype)!r} has no Python scalar type.")


def dtype_and_weak(x: Any) -> tuple[Any, bool]:
    """Return the canonical dtype of a value, and whether it is weak.

    Parameters
    ----------
    x
        Anything with an ``aval``; a NumPy array or scalar; a Python bool, int, float or complex
        (weak, but for bool); or any object with a ``dtype``.

    Raises
    ------
    OverflowError
        A Python int does not fit the default integer.
    TypeError
        `x` is no array and no scalar, or has a dtype that arrays cannot hold.
    """
    kind: type | None = cast("type[Any]", type(x))
    if kind not in python_scalar_dtypes:
        if (aval := getattr(x, "aval", None)) is not None:
            if hasattr(cast("type[Any]", type(aval)), "inner_aval"):  # its own look imports more
                raise TypeError(f"expected an array or a number, got a {aval}: read it, ref[...].")
            return aval.dtype, aval.weak_type
        if isinstance(dtype := getattr(x, "dtype", None), DType):
            if kind is not np.ndarray and hasattr(x, "_mask"):
                raise ValueError(
                    "expected an array or a number, got a masked array, whose mask would be lost. "
                    "Use x.filled(value), and fnarray.numpy.where with x.mask."
                )
            return canonicalize_dtype(dtype, True), getattr(x, "weak_type", False)
        # Subclasses, such as members of an IntEnum.
        kind = next((t for t in _WEAK if isinstance(x, t)), None)
        if kind is None:
            raise TypeError(
                f"expected an array or a number, got {x!r} of type {type(x).__name__}. "
                f"Convert it with fnarray.numpy.asarray."
            )
    dtype = canonicalize_dtype(kind)
    if kind is int:
        low, high = _INT_RANGE[dtype]
        if not low <= cast("int", x) <= high:
            raise OverflowError(
                f"Python int {x} does not fit {dtype}. Use a NumPy scalar of a wider dtype"
                + (", or enable_x64." if dtype == int32 else ", such as numpy.uint64.")
            )
    return dtype, kind is not bool


# ---- promotion ---------------------------------------------------------------------------------

_Node = Any  # a dtype, or int, float, complex for the weak types

_STANDARD: Final[dict[_Node, tuple[_Node, ...]]] = {
    bool_: (int,),
    int: (uint8, int8, *SMALL_SIGNED, *SMALL_UNSIGNED),
    uint8: (uint16, int16),
    uint16: (uint32, int32),
    uint32: (uint64, int64),
    uint64: (float,),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: (float,),
    float: (bfloat16, float16, complex, *SMALL_FLOATS),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    complex: (complex64,),
    complex64: (complex128,),
    complex128: (),
    **dict.fromkeys(SMALL, ()),  # to nothing: what is meant is to be said
}
_STRICT: Final[dict[_Node, tuple[_Node, ...]]] = {
    **dict.fromkeys((*ALL, *SMALL), ()),
    int: (float, *SIGNED, *UNSIGNED, *SMALL_SIGNED, *SMALL_UNSIGNED),
    float: (complex, *FLOATS, *SMALL_FLOATS),
    complex: COMPLEXES,
}


def _upper_bounds(edges: dict[_Node, tuple[_Node, ...]]) -> dict[_Node, frozenset[_Node]]:
    """Nodes reachable from each node, itself included."""

    def reach(node: _Node) -> frozenset[_Node]:
        return frozenset({node}).union(*map(reach, edges[node]))

    return {node: reach(node) for node in edges}


_UPPER: Final = {"standard": _upper_bounds(_STANDARD), "strict": _upper_bounds(_STRICT)}


def _node_name(node: _Node) -> str:
    return f"{node.__name__}*" if node in _WEAK else short_name(node)


@cache
def _join(nodes: frozenset[_Node], mode: str) -> _Node:
    """Least upper bound of some nodes; ``TypePromotionError`` if they have none."""
    if len(nodes) == 1:
        return next(iter(nodes))
    upper = _UPPER[mode]
    if nodes <= upper.keys():
        common = frozenset[_Node].intersection(*(upper[n] for n in nodes))
        for node in common:
            if common <= upper[node]:
                return node
    names = " and ".join(sorted(map(_node_name, nodes)))
    advice = (
        "Convert one with astype, or set numpy_dtype_promotion to 'standard'."
        if mode == "strict"
        else "Convert one with astype."
    )
    raise TypePromotionError(
        f"no implicit promotion joins {names} (numpy_dtype_promotion is {mode!r}). {advice}"
    )


def lattice_result_type(operands: Sequence[tuple[Any, bool]]) -> tuple[Any, bool]:
    """Join operands given as ``(dtype, weak)`` pairs; the result is such a pair, canonical.

    Raises
    ------
    ValueError
        There are no operands.
    TypePromotionError
        They have no common type under ``numpy_dtype_promotion``.
    """
    return _lattice_result_type(tuple(operands), config.trace_token)


@lru_cache(maxsize=4096)
def _lattice_result_type(operands: tuple[tuple[Any, bool], ...], token: int) -> tuple[Any, bool]:
    """`lattice_result_type`, remembered for each state of the settings (`token`)."""
    if not operands:
        raise ValueError("result_type: at least one array or dtype is needed, got none.")
    mode = config.numpy_dtype_promotion
    dtypes = frozenset(dtype for dtype, _ in operands)
    all_weak = all(weak for _, weak in operands)
    # Weak types among themselves keep their widths; strict mode knows them by kind alone.
    if len(operands) == 1 or (mode == "standard" and (all_weak or len(dtypes) == 1)):
        node = _join(dtypes, mode)
    else:
        node = _join(frozenset(_weak_node(*operand) for operand in operands), mode)
        all_weak = False
    dtype = canonicalize_dtype(node, allow_extended_dtype=True)
    return dtype, (all_weak or node in _WEAK) and dtype != bool_


def _weak_node(dtype: Any, weak: bool) -> _Node:
    return _python_type(dtype) if weak and dtype != bool_ else dtype


def _operand(x: Any) -> tuple[Any, bool]:
    """Read an argument of `result_type`: a value, or a dtype in any spelling."""
    if isinstance(x, (str, type, np.dtype, ExtendedDType)) or x is None:
        return canonicalize_dtype(x, allow_extended_dtype=True), isinstance(x, type) and x in _WEAK
    return dtype_and_weak(x)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Dtype that arrays, scalars and dtypes promote to together.

    A weak result has the default dtype of its kind, whatever the width of the weak arguments.

    Parameters
    ----------
    *args
        Values, or dtypes; the Python types int, float and complex stand for weak scalars.
    return_weak_type_flag
        Return ``(dtype, weak)`` instead of the dtype.

    Raises
    ------
    ValueError
        There are no arguments.
    TypePromotionError
        They have no common type under ``numpy_dtype_promotion``.
    """
    dtype, weak = lattice_result_type([_operand(x) for x in args])
    if weak:
        dtype = canonicalize_dtype(uint64 if is_unsigned(dtype) else _python_type(dtype))
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> Any:
    """Least upper bound of two dtypes; 64 bits wide only if enabled or if an argument is.

    Parameters
    ----------
    a, b
        Dtypes in any spelling; int, float and complex stand for weak scalars.

    Raises
    ------
    TypePromotionError
        They have no common type under ``numpy_dtype_promotion``.
    """
    nodes = frozenset(x if isinstance(x, type) and x in _WEAK else as_dtype(x) for x in (a, b))
    node = _join(nodes, config.numpy_dtype_promotion)
    if node in _WEAK:
        return _WEAK[node]
    wide = config.enable_x64 or not nodes.isdisjoint(_NARROWER)
    return node if wide else _NARROWER.get(node, node)
