"""What kernel text may call, and how each is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import shared
from .types import (
    BOOL,
    C64,
    C128,
    F32,
    F64,
    I64,
    LLVM,
    U64,
    Array,
    DType,
    Fallback,
    Known,
    Scalar,
    Value,
    part,
    promoted,
    registry,
)

if TYPE_CHECKING:
    from .writer import Writer

Rule = Callable[["Writer", list[Value]], Value]

#: What the kernels say of their functions: how each is compiled, and from what.
_told: dict[Any, tuple[str, Any]] = {}


def _hear(kind: str, function: Any, what: Any) -> None:
    _told[function] = kind, what


registry.listen(_hear)


def attribute(to: Writer, of: Value, name: str) -> Value:
    """Read an attribute of an array or a number."""
    if isinstance(of, Array):
        if name == "size":
            return Scalar(I64, _size(of))
        if name == "shape":
            return (Scalar(I64, _size(of)),)
        if name == "dtype":
            return Known(of.dtype)
    if isinstance(of, Scalar) and name in ("real", "imag"):
        if of.dtype.kind == "c":
            return Scalar(part(of.dtype), of.ir[name == "imag"])
        return of if name == "real" else to.number(of.dtype, 0)
    raise Fallback(f"attribute {name}")


def call(to: Writer, function: Any, args: list[Value]) -> Value:
    """Write a call."""
    rule = None
    if _hashable(function):
        rule = to.module.words.get(function) or _WORDS.get(function)
    if rule is not None:
        return rule(to, args)
    if _is_number_type(function):
        return to.cast(_numbers(to, args)[0], np.dtype(function))
    return plain(to, function, args)


def plain(to: Writer, function: Any, args: list[Value]) -> Value:
    """Write a call of a function of `fnarray_kernels` as such, where a target has its own rule."""
    told = _told.get(function)
    if told is None:
        raise Fallback(f"call of {getattr(function, '__name__', function)}")
    kind, what = told
    return _KINDS[kind](to, function, what, args)


def _is_number_type(function: Any) -> bool:
    return isinstance(function, type) and issubclass(function, np.generic)


def _hashable(function: Any) -> bool:
    return getattr(function, "__hash__", None) is not None


def _size(array: Array) -> str:
    if array.size is None:
        raise Fallback("the size of an array")
    return array.size


def _numbers(to: Writer, args: list[Value]) -> list[Scalar]:
    out = [to.constant(a.value) if isinstance(a, Known) else a for a in args]
    if not all(isinstance(x, Scalar) for x in out):
        raise Fallback("a call with no number")
    return out  # type: ignore[return-value]


# --- functions of the kernels -------------------------------------------------------------------


def _scalar(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    numbers = _numbers(to, args)
    firm = [x.dtype for x in numbers if not (type(x.literal) is int and x.dtype == I64)]
    dtype = firm[0] if firm else numbers[0].dtype
    if _works_abreast(to, dtype, numbers):
        function = getattr(function, "abreast", function)
    kinds = tuple(x.dtype if x.dtype == dtype else x.literal for x in numbers)
    return _paste(to, function, kinds, numbers)


def _works_abreast(to: Writer, dtype: DType, numbers: list[Scalar]) -> bool:
    """Whether numbers are divided by doubles, where that is a function's other text.

    By an integer that the text knows LLVM multiplies; in a recurrence the next turn may wait for
    the quotient.
    """
    known = dtype.kind in "iu" and numbers[-1].literal is not None
    small = dtype.kind in "iuf" and dtype.itemsize <= 4
    return small and not known and to.module.lanes > 0 and to.abreast


def _paste(to: Writer, function: Any, kinds: tuple[Any, ...], numbers: list[Scalar]) -> Scalar:
    try:
        template = function.traced(kinds)
    except TypeError as error:
        raise Fallback(str(error)) from error
    if function.__name__ in to.module.sharing and template.body.count("\n") >= shared.LINES:
        return Scalar(template.dtype, shared.call(to, function.__name__, kinds, template, numbers))
    to.module.declared.update(template.declared)
    to.module.tables.update(template.tables)
    prefix = to.fresh()[1:]
    body, result = template.pasted(prefix, [x.ir for x in numbers])
    if body:
        to.lines.append(body)
    return Scalar(template.dtype, result)


def _power(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    x, n = _numbers(to, args)
    if type(n.literal) is not int:
        raise Fallback("a power that is no constant")
    return _paste(to, function, (x.dtype, n.literal), [x, n])


def _mode(to: Writer, function: Any, template: Any, args: list[Value]) -> Value:
    to.module.declared.update(template.declared)
    prefix = to.fresh()[1:]
    body, result = template.pasted(prefix, [x.ir for x in _numbers(to, args)])
    # A place made anywhere but at the entry moves the stack while the function runs. LLVM then does
    # not align it, and vectors that it keeps there cross cache lines, by where the stack happens to
    # begin: a loop of eight sines took 17 % longer at some depths of the stack.
    for line in body.split("\n"):
        (to.allocas if " = alloca " in line else to.lines).append(line)
    return Scalar(I64, result) if result else Known(None)


def _index(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    (x,) = _numbers(to, args)
    return Scalar(U64, to.cast(x, I64).ir, x.literal)


def _text(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    return to.function(function, args)  # type: ignore[attr-defined]


def _in_double(to: Writer, function: Any, core: Any, args: list[Value]) -> Value:
    numbers = _numbers(to, args)
    result: Any = to.function(core, list(numbers))  # type: ignore[attr-defined]
    single = all(x.dtype == F32 for x in numbers)
    return to.cast(cast(Scalar, result), F32) if single else cast(Scalar, result)


def _make(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    re, im = _numbers(to, args)
    dtype = promoted(re.dtype, im.dtype) if re.dtype != im.dtype else re.dtype
    if dtype.kind != "f":
        dtype = F64
    parts = to.cast(re, dtype).ir, to.cast(im, dtype).ir
    return Scalar(C64 if dtype == F32 else C128, parts)


def _product(to: Writer, function: Any, texts: Any, args: list[Value]) -> Value:
    arrays = [a for a in args[:3] if isinstance(a, Array)]
    if len(arrays) < 3 or arrays[2].dtype.kind not in "fc":
        of_bools = len(arrays) == 3 and arrays[2].dtype == BOOL
        return to.function(texts[2 if of_bools else 1], args)  # type: ignore[attr-defined]
    from . import products  # which few kernels hold

    products.multiply(to, *arrays, sizes=[to.cast(n, I64) for n in _numbers(to, args[3:])])
    return Known(None)


def _few(to: Writer, function: Any, texts: Any, args: list[Value]) -> Value:
    """Write a product of small matrices, which is a call alone where there is one of our own."""
    from . import products  # which few kernels hold

    arrays = [cast(Array, a) for a in args[:3]]
    sizes = [to.cast(n, I64) for n in _numbers(to, args[3:])]
    if products.multiply_few(to, *arrays, sizes=sizes):
        return Known(None)
    return _product(to, function, texts, args)


def _pieces(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    """Write a product in pieces, which one of our own is best without."""
    from . import products  # which few kernels hold

    ours = isinstance(args[2], Array) and products.is_ours(args[2].dtype)
    return (_product if ours else _text)(to, function, None, args)


def _routine(to: Writer, function: Any, name: str, args: list[Value]) -> Value:
    """Write a call of a routine of LAPACK, which takes addresses; its letter is its dtype's."""
    from . import products  # which few kernels hold

    like, *arrays = (a for a in args if isinstance(a, Array))
    symbol = f"fnarray_{products.LETTERS[like.dtype]}{name}"
    to.module.declared[symbol] = "void", ("ptr",) * len(arrays)
    to.lines.append(f"call void @{symbol}({', '.join(f'ptr {a.ir}' for a in arrays)})")
    return Known(None)


def _view(to: Writer, function: Any, _: Any, args: list[Value]) -> Value:
    return args[0]


_KINDS: dict[str, Any] = {
    "scalar": _scalar,
    "power": _power,
    "index": _index,
    "view": _view,
    "text": _text,
    "in double": _in_double,
    "complex": _make,
    "product": _product,
    "block": _product,
    "few": _few,
    "pieces": _pieces,
    "routine": _routine,
    "mode": _mode,
}


# --- Python's and NumPy's -----------------------------------------------------------------------


def _intrinsic(name: str) -> Rule:
    """Return the rule of a function that LLVM has for floats."""

    def rule(to: Writer, args: list[Value]) -> Value:
        (x,) = _floats(to, args)
        full = f"llvm.{name}.f{8 * x.dtype.itemsize}"
        return Scalar(x.dtype, to.call_raw(full, LLVM[x.dtype], (x,)))

    return rule


def _library(name: str) -> Rule:
    """Return the rule of a function of the C library, which has an ``f`` for single precision."""

    def rule(to: Writer, args: list[Value]) -> Value:
        numbers = _floats(to, args)
        dtype = numbers[0].dtype
        full = name + "f" if dtype == F32 else name
        return Scalar(dtype, to.call_raw(full, LLVM[dtype], tuple(numbers)))

    return rule


def _floats(to: Writer, args: list[Value]) -> list[Scalar]:
    """Return numbers of one float type: integers are taken in double precision."""
    numbers = _numbers(to, args)
    if any(x.dtype.kind == "c" for x in numbers):
        raise Fallback("a function of complex numbers")
    dtype = F32 if all(x.dtype == F32 for x in numbers) else F64
    return [to.cast(x, dtype) for x in numbers]


def _whole(name: str) -> Rule:
    """Return the rule of a rounding that gives an integer, as those of `math` do."""
    rounded = _intrinsic(name)
    return lambda to, args: to.cast(rounded(to, args), I64)  # type: ignore[arg-type]


def _copysign(to: Writer, args: list[Value]) -> Value:
    numbers = _floats(to, args)
    dtype = numbers[0].dtype
    name = f"llvm.copysign.f{8 * dtype.itemsize}"
    return Scalar(dtype, to.call_raw(name, LLVM[dtype], tuple(numbers)))


def _extreme(sign: str) -> Rule:
    """Return the rule of Python's ``min`` or ``max``: a later one counts if it compares."""

    def rule(to: Writer, args: list[Value]) -> Value:
        best, *others = _numbers(to, args)
        for x in others:
            dtype = best.dtype if best.dtype == x.dtype else promoted(best.dtype, x.dtype)
            best, x = to.cast(best, dtype), to.cast(x, dtype)
            kind = LLVM[dtype]
            name = f"fcmp o{sign}" if dtype.kind == "f" else f"icmp {dtype.kind}{sign}"
            name = name.replace("icmp i", "icmp s")
            test = to.new(f"{name} {kind} {x.ir}, {best.ir}")
            best = Scalar(dtype, to.new(f"select i1 {test}, {kind} {x.ir}, {kind} {best.ir}"))
        return best

    return rule


def _absolute(to: Writer, args: list[Value]) -> Value:
    (x,) = _numbers(to, args)
    if x.dtype.kind == "c":
        parts = [Scalar(part(x.dtype), ir) for ir in x.ir]
        return _library("hypot")(to, list(parts))
    if x.dtype.kind != "f":
        raise Fallback(f"abs of {x.dtype}")
    return _intrinsic("fabs")(to, [x])


def _conjugate(to: Writer, args: list[Value]) -> Value:
    (x,) = _numbers(to, args)
    if x.dtype.kind != "c":
        return x
    imaginary = to.negative(Scalar(part(x.dtype), x.ir[1]))
    return Scalar(x.dtype, (x.ir[0], imaginary.ir))


def _is_nan(to: Writer, args: list[Value]) -> Value:
    (x,) = _floats(to, args)
    return Scalar(BOOL, to.new(f"fcmp uno {LLVM[x.dtype]} {x.ir}, {x.ir}"))


def _length(to: Writer, args: list[Value]) -> Value:
    (x,) = args
    if isinstance(x, tuple):
        return to.constant(len(x))
    if not isinstance(x, Array):
        raise Fallback("len of a number")
    return Scalar(I64, _size(x))


def _type(to: Writer, args: list[Value]) -> Value:
    (x,) = args
    if not isinstance(x, Scalar):
        raise Fallback("type of no number")
    return Known(x.dtype.type)


def _cast_to(dtype: DType) -> Rule:
    return lambda to, args: to.cast(_numbers(to, args)[0], dtype)


def _empty(to: Writer, args: list[Value]) -> Value:
    n, kind = args
    if not isinstance(kind, Known):
        raise Fallback("an array of an unknown dtype")
    (count,) = _numbers(to, [n])
    return to.allocate(to.cast(count, I64), np.dtype(kind.value))  # type: ignore[attr-defined]


_WORDS: dict[Any, Rule] = {
    min: _extreme("lt"),
    max: _extreme("gt"),
    abs: _absolute,
    len: _length,
    type: _type,
    float: _cast_to(F64),
    int: _cast_to(I64),
    bool: _cast_to(BOOL),
    complex: lambda to, args: _make(to, complex, None, args),
    math.exp: _intrinsic("exp"),
    math.log: _intrinsic("log"),
    math.sqrt: _intrinsic("sqrt"),
    math.log1p: _library("log1p"),
    math.expm1: _library("expm1"),
    math.erfc: _library("erfc"),
    math.erf: _library("erf"),
    math.lgamma: _library("lgamma"),
    math.floor: _whole("floor"),
    math.ceil: _whole("ceil"),
    math.copysign: _copysign,
    math.isnan: _is_nan,
    np.log: _intrinsic("log"),
    np.exp: _intrinsic("exp"),
    np.sin: _intrinsic("sin"),
    np.cos: _intrinsic("cos"),
    np.expm1: _library("expm1"),
    np.log1p: _library("log1p"),
    np.arctan2: _library("atan2"),
    np.hypot: _library("hypot"),
    np.abs: _absolute,
    np.copysign: _copysign,
    np.sqrt: _intrinsic("sqrt"),
    np.floor: _intrinsic("floor"),
    np.isnan: _is_nan,
    np.conj: _conjugate,
    np.empty: _empty,
}
