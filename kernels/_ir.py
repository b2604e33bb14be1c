"""One scalar text, two readings.

A function under `scalar` is a few lines of Python over overloaded operators. Called from Python it
runs on NumPy scalars (or arrays). For compiled code it runs once per combination of dtypes, on
`Value` objects that write LLVM instructions as text: a `Template`, which either compiler pastes
into its caller. Nothing is left to call, type inference sees a single node, and the loop vectoriser
sees plain arithmetic. Both readings use the same operations in the same order, so they agree bit
for bit; the two compilers paste the same text.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import struct
from typing import NamedTuple

import numpy as np

from fnarray_kernels.registry import tell

f32, f64, boolean = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)

#: LLVM's names of the types that carry scalars.
LLVM = {
    np.dtype(name): kind
    for kind, names in {
        "i1": "bool", "i8": "int8 uint8", "i16": "int16 uint16", "i32": "int32 uint32",
        "i64": "int64 uint64", "float": "float32", "double": "float64",
    }.items()
    for name in names.split()
}  # fmt: skip
_FLOAT = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_INTEGER = {"<": "{}lt", "<=": "{}le", ">": "{}gt", ">=": "{}ge", "==": "eq", "!=": "ne"}


def spelled(dtype, number):
    """Return a number as LLVM spells a constant of `dtype`."""
    if dtype.kind == "f":
        number = float(dtype.type(number))
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    number = np.asarray(number, dtype).item()
    return str(number).lower()


def comparison(symbol, dtype):
    """Return LLVM's instruction of a comparison; a NaN makes all but ``!=`` false."""
    if dtype.kind == "f":
        return f"fcmp {_FLOAT[symbol]}"
    return f"icmp {_INTEGER[symbol].format('s' if dtype.kind == 'i' else 'u')}"


class Template(NamedTuple):
    """A traced text: its instructions, and what they refer to outside.

    Attributes
    ----------
    body
        Instructions, one a line. They name their results ``%~0``, ``%~1``, ... and the arguments
        ``%~a``, ``%~b``, ...
    result
        The operand that holds the result: one of those names, or a constant.
    dtype
        Dtype of the result.
    declared
        Functions called, by name: the type of the result, and of the arguments.
    tables
        Constant arrays read, by name.
    """

    body: str
    result: str
    dtype: np.dtype
    declared: dict[str, tuple[str, tuple[str, ...]]]
    tables: dict[str, np.ndarray]

    def pasted(self, prefix, operands, result=None):
        """Return the instructions with results named after `prefix`, and the result's operand.

        Parameters
        ----------
        operands : sequence of str
            What stands for the arguments, in order.
        result : str, optional
            A name for the result, where an instruction makes it.
        """
        names = {f"%~{chr(97 + k)}": operand for k, operand in enumerate(operands)}
        if result is not None and self.result not in names:
            names[self.result] = result

        def place(match):
            name = match[0]
            return names.get(name) or f"%{prefix}${name[2:]}"

        placeholder = _placeholder()
        return placeholder.sub(place, self.body), placeholder.sub(place, self.result)


@functools.cache
def _placeholder():
    # When the first text is pasted: a process that compiles nothing needs no regular expression.
    return re.compile(r"%~\w+")


class _Writer:
    """Instructions as they are traced."""

    __slots__ = ("declared", "lines", "tables")

    def __init__(self):
        self.lines, self.declared, self.tables = [], {}, {}

    def add(self, instruction):
        """Append an instruction; return the name of its result."""
        name = f"%~{len(self.lines)}"
        self.lines.append(f"{name} = {instruction}")
        return name


class Value:
    """An LLVM operand that knows its NumPy dtype; operators write instructions of that width."""

    __slots__ = ("dtype", "ir", "writer")

    def __init__(self, writer, dtype, ir):
        self.writer, self.dtype, self.ir = writer, np.dtype(dtype), ir

    @property
    def typed(self):
        """The operand after its type, as calls and casts want it."""
        return f"{LLVM[self.dtype]} {self.ir}"

    def lift(self, other):
        """Return `other` as a value of this dtype: itself, or a Python or NumPy constant."""
        if isinstance(other, Value):
            if other.dtype != self.dtype:
                raise TypeError(f"operands differ in dtype: {self.dtype} and {other.dtype}")
            return other
        return Value(self.writer, self.dtype, spelled(self.dtype, other))

    def new(self, instruction, dtype=None):
        """Append an instruction; return its result, of this dtype unless said otherwise."""
        return Value(self.writer, dtype or self.dtype, self.writer.add(instruction))

    def op(self, names, *others, flags="", swap=False):
        """Append the instruction for this dtype's kind; `names` maps kinds to instructions."""
        if self.dtype.kind not in names:
            raise TypeError(f"{next(iter(names.values()))} is undefined for {self.dtype}")
        args = [self.ir, *(self.lift(other).ir for other in others)]
        operands = ", ".join(args[::-1] if swap else args)
        return self.new(f"{names[self.dtype.kind]}{flags} {LLVM[self.dtype]} {operands}")

    def compare(self, symbol, other):
        """Append a comparison; a NaN makes all but ``!=`` false."""
        other = self.lift(other)
        return self.new(f"{comparison(symbol, self.dtype)} {self.typed}, {other.ir}", boolean)

    def call(self, name, *others, result=None):
        """Append a call of the LLVM intrinsic `name` on this value and `others` of its dtype."""
        args = [self.typed, *(self.lift(other).typed for other in others)]
        return self.call_raw(name, args, result or self.dtype)

    def call_raw(self, name, args, result):
        """Append a call of the function `name`, declared from the types of its arguments."""
        result = np.dtype(result)
        kind = LLVM[result]
        self.writer.declared[name] = kind, tuple(a.partition(" ")[0] for a in args)
        return self.new(f"call {kind} @{name}({', '.join(args)})", result)

    def __bool__(self):
        raise TypeError("a compiled scalar has no truth value while it is built; use select")

    __hash__ = None


def _binary(names):
    return (lambda a, b: a.op(names, b)), (lambda a, b: a.op(names, b, swap=True))


for _name, _names in {
    "add": {"f": "fadd", "i": "add", "u": "add"},
    "sub": {"f": "fsub", "i": "sub", "u": "sub"},
    "mul": {"f": "fmul", "i": "mul", "u": "mul"},
    "truediv": {"f": "fdiv"},
    "and": dict.fromkeys("iub", "and"),
    "or": dict.fromkeys("iub", "or"),
    "xor": dict.fromkeys("iub", "xor"),
    "lshift": dict.fromkeys("iu", "shl"),
    "rshift": {"i": "ashr", "u": "lshr"},
}.items():
    _forward, _backward = _binary(_names)
    setattr(Value, f"__{_name}__", _forward)
    setattr(Value, f"__r{_name}__", _backward)
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Value, f"__{_name}__", functools.partialmethod(Value.compare, _sign))
Value.__neg__ = lambda a: a.op({"f": "fneg"}) if a.dtype.kind == "f" else 0 - a
Value.__invert__ = lambda a: a.new(f"xor {a.typed}, {'true' if a.dtype.kind == 'b' else -1}")


# --- words the texts are written in -------------------------------------------------------------


def _suffix(dtype):
    return f"{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"


def _like(*args):
    """Return the first `Value` among `args`, or None in the plain reading."""
    return next((a for a in args if isinstance(a, Value)), None)


def _unary(name, plain):
    def word(x):
        return x.call(f"llvm.{name}.{_suffix(x.dtype)}") if isinstance(x, Value) else plain(x)

    word.__name__, word.__doc__ = name, f"LLVM's ``{name}``, elementwise."
    return word


sqrt, floor, ceil = _unary("sqrt", np.sqrt), _unary("floor", np.floor), _unary("ceil", np.ceil)
trunc, fabs = _unary("trunc", np.trunc), _unary("fabs", np.abs)
rint = _unary("roundeven", np.rint)


def _count_zeros(x):
    bits = x.view(f"u{x.dtype.itemsize}")
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < 8 * x.dtype.itemsize:
            bits = bits | (bits >> shift)
    return (8 * x.dtype.itemsize - np.bitwise_count(bits)).astype(x.dtype)


def ctpop(x):
    """Count the set bits of an integer; the count has the dtype of `x`."""
    if isinstance(x, Value):
        return x.call(f"llvm.ctpop.{_suffix(x.dtype)}")
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def ctlz(x):
    """Count the leading zero bits of an integer; zero has as many as its width."""
    if isinstance(x, Value):
        return x.call_raw(f"llvm.ctlz.{_suffix(x.dtype)}", [x.typed, "i1 false"], x.dtype)
    return _count_zeros(x)


def lookup(table, index):
    """Return ``table[index]`` for a constant one-dimensional float table and an int64 in range."""
    if not isinstance(index, Value):
        return table[index]
    import hashlib  # with OpenSSL, 5 ms, for the few functions that look anything up

    name = f"fnarray.{hashlib.sha256(table.tobytes()).hexdigest()[:16]}"
    index.writer.tables[name] = table
    element = LLVM[table.dtype]
    at = f"getelementptr [{len(table)} x {element}], ptr @{name}, i64 0, {index.typed}"
    return index.new(f"load {element}, ptr {index.writer.add(at)}", table.dtype)


def const(x, like):
    """Return the number `x` as a constant of the dtype of `like`."""
    return like.lift(x) if isinstance(like, Value) else like.dtype.type(x)


def select(c, a, b):
    """Return `a` where `c` holds, else `b`; both are computed."""
    if not isinstance(c, Value):
        return np.where(c, a, b)[()]
    like = _like(a, b)
    a, b = like.lift(a), like.lift(b)
    return a.new(f"select {c.typed}, {a.typed}, {b.typed}")


def _minmax(name, plain, join):
    def word(a, b):
        like = _like(a, b)
        if like is not None:
            kind = {"f": name, "i": f"s{name[:3]}", "u": f"u{name[:3]}"}[like.dtype.kind]
            return like.lift(a).call(f"llvm.{kind}.{_suffix(like.dtype)}", b)
        best = plain(a, b)
        if best.dtype.kind != "f":
            return best
        signs = join(np.signbit(a), np.signbit(b))
        size = np.abs(best)
        return np.where(best == 0, np.where(signs, -size, size), best)[()]

    word.__name__ = f"f{name[:3]}"
    word.__doc__ = f"IEEE 754-2019 ``{name}``: NaN wins, and -0 is less than +0."
    return word


fmin = _minmax("minimum", np.minimum, np.logical_or)
fmax = _minmax("maximum", np.maximum, np.logical_and)


def copysign(a, b):
    """Return the magnitude of `a` with the sign of `b`."""
    like = _like(a, b)
    if like is None:
        return np.copysign(a, b)
    return like.lift(a).call(f"llvm.copysign.{_suffix(like.dtype)}", b)


@functools.cache
def _libm_fma(dtype):
    """Return the C library's fused multiply-add as a ufunc (Python has one only from 3.13)."""
    lib = ctypes.CDLL(None if os.name == "posix" else "ucrtbase")
    fn, kind = (lib.fmaf, ctypes.c_float) if dtype == f32 else (lib.fma, ctypes.c_double)
    fn.argtypes, fn.restype = [kind] * 3, kind
    return np.frompyfunc(fn, 3, 1)


def fma(a, b, c):
    """Return ``a * b + c`` with one rounding."""
    like = _like(a, b, c)
    if like is not None:
        return like.lift(a).call(f"llvm.fma.{_suffix(like.dtype)}", b, c)
    dtype = np.result_type(a, b, c)
    return np.asarray(_libm_fma(dtype)(a, b, c), dtype)[()]


def trunc_div(a, b):
    """Return the quotient of integers, truncated; `b` must be neither 0 nor -1."""
    like = _like(a, b)
    if like is None:
        return (a - np.fmod(a, b)) // b
    return like.lift(a).op({"i": "sdiv", "u": "udiv"}, b)


def trunc_rem(a, b):
    """Return the remainder with the sign of `a`; an integer `b` must be neither 0 nor -1."""
    like = _like(a, b)
    if like is None:
        return np.fmod(a, b)
    return like.lift(a).op({"f": "frem", "i": "srem", "u": "urem"}, b)


def truncated(x, dtype):
    """Return a float as an integer that holds what is before its point."""
    if not isinstance(x, Value):
        return np.trunc(x).astype(dtype)
    sign = "s" if np.dtype(dtype).kind == "i" else "u"
    return x.new(f"fpto{sign}i {x.typed} to {LLVM[np.dtype(dtype)]}", np.dtype(dtype))


def bitcast(x, dtype):
    """Return the bits of `x` read as `dtype` of the same width."""
    dtype = np.dtype(dtype)
    if not isinstance(x, Value):
        return x.view(dtype)
    if dtype.kind != "f" and x.dtype.kind != "f":
        return Value(x.writer, dtype, x.ir)
    return x.new(f"bitcast {x.typed} to {LLVM[dtype]}", dtype)


def convert(x, dtype):
    """Return `x` as `dtype`: integers wrap, floats saturate to integers, NaN becomes 0."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return x != 0
    return _convert_ir(x, dtype) if isinstance(x, Value) else _convert_plain(x, dtype)


def _convert_ir(x, dtype):
    source, wider = x.dtype.kind, dtype.itemsize > x.dtype.itemsize
    if source == "f" and dtype.kind in "iu":
        if dtype.itemsize <= 4:
            return _saturated(x, dtype)
        sign = "s" if dtype.kind == "i" else "u"
        return x.call(f"llvm.fpto{sign}i.sat.{_suffix(dtype)}.{_suffix(x.dtype)}", result=dtype)
    if source == "f":
        name = "fpext" if wider else "fptrunc"
    elif dtype.kind == "f":
        name = "sitofp" if source == "i" else "uitofp"
    elif source == "b" or wider:
        name = "sext" if source == "i" else "zext"
    elif dtype.itemsize == x.dtype.itemsize:
        return Value(x.writer, dtype, x.ir)
    else:
        name = "trunc"
    return x.new(f"{name} {x.typed} to {LLVM[dtype]}", dtype)


def _saturated(x, dtype):
    """Return a float as an integer of up to 32 bits, the nearest there is; NaN becomes 0.

    LLVM's word for it takes numbers out of vectors of 256 bits one by one: of a million numbers
    that become int32 1,683 us in place of 250.
    """
    info = np.iinfo(dtype)
    if dtype.itemsize < 4:
        near = select(x > float(info.min), x, float(info.min))  # of NaN as well
        near = select(near < float(info.max), near, float(info.max))
        whole = convert(truncated(near, np.int32), dtype)
        return whole if dtype.kind == "u" else select(x == x, whole, 0)
    low, end = float(info.min), float(info.max + 1)
    whole = truncated(select((x >= low) & (x < end), x, 0.0), dtype)
    # All bits are spelled so: in CUDA's text, integers without a sign are held as those with one.
    top = info.max if dtype.kind == "i" else ~whole.lift(0)
    return select(x >= end, top, select(x < low, info.min, whole))


def _convert_plain(x, dtype):
    if x.dtype.kind != "f" or dtype.kind == "f":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    # 2**bits and -2**bits are exact in either float format, unlike the largest integer.
    low, high = x <= float(info.min), x >= float(info.max + 1)
    inside = np.where(low | high | np.isnan(x), 0, x).astype(dtype)
    return np.where(high, info.max, np.where(low, info.min, inside)).astype(dtype)[()]


def relaxed(kind, a, b):
    """Return the sum (``"fadd"``) or product (``"fmul"``) of floats, free to be re-associated."""
    like = _like(a, b)
    if like is None:
        return a + b if kind == "fadd" else a * b
    return like.lift(a).op({"f": kind}, b, flags=" reassoc nsz")


# --- the decorator ------------------------------------------------------------------------------


def plain(x):
    """Return `x` as something with a dtype: a NumPy scalar or array."""
    return x if hasattr(x, "dtype") else np.asarray(x)[()]


def _plain(args):
    """Return NumPy values for `args`; Python integers adopt the dtype of the first that has one."""
    firm = [plain(a) for a in args if type(a) is not int] or [np.int64(args[0])]
    return [firm[0].dtype.type(a) if type(a) is int else plain(a) for a in args]


def scalar(text=None, *, kinds="f", only=None, result=None):
    """Make `text` callable from Python (on NumPy values) and, inlined, from compiled code.

    Parameters
    ----------
    text : function of scalars, all of one dtype; integer literals adopt it.
    kinds : NumPy dtype kinds accepted (float16 never is: halves are carried as bits).
    only : the one dtype accepted, instead of `kinds`.
    result : dtype of the result; that of the arguments when omitted.
    """
    if text is None:
        return functools.partial(scalar, kinds=kinds, only=only, result=result)
    rule = _Rule(text.__name__, kinds, only and np.dtype(only), result and np.dtype(result))

    @functools.wraps(text)
    def face(*args):
        if _like(*args) is not None:
            return text(*args)
        with np.errstate(all="ignore"):
            args = _plain(args)
            rule.check({a.dtype for a in args})
            return text(*args)

    face.rule, face.traced = rule, functools.cache(functools.partial(_traced, text, rule))
    tell("scalar", face)
    return face


def _traced(text, rule, args):
    """Return the template of `text` for arguments, each a dtype or a literal that adopts it."""
    firm = {a for a in args if isinstance(a, np.dtype)} or {np.dtype(np.int64)}
    rule.check(firm)
    (dtype,) = firm
    out = text(*arguments(args, dtype))
    if out.dtype != (rule.result or dtype):
        raise TypeError(f"{rule.name}: must return {rule.result or dtype}, built {out.dtype}")
    return template(out)


def arguments(args, dtype):
    """Return a value for each dtype of `args` and a constant of `dtype` for each literal."""
    writer = _Writer()
    for k, a in enumerate(args):
        name = f"%~{chr(97 + k)}" if isinstance(a, np.dtype) else spelled(dtype, a)
        yield Value(writer, dtype, name)


def template(out):
    """Return what was written up to the value `out`."""
    writer = out.writer
    return Template("\n".join(writer.lines), out.ir, out.dtype, writer.declared, writer.tables)


class _Rule(NamedTuple):
    """Which dtypes a scalar function takes and gives."""

    name: str
    kinds: str
    only: np.dtype | None
    result: np.dtype | None

    def check(self, dtypes):
        """Raise a TypeError unless `dtypes` is one accepted dtype."""
        got, *others = dtypes
        if others:
            names = sorted(map(str, dtypes))
            raise TypeError(f"{self.name}: arguments must share one dtype, got {names}")
        if got != self.only if self.only else got.kind not in self.kinds or got.char == "e":
            accepted = self.only or f"kinds {self.kinds!r} of up to 64 bits"
            raise TypeError(f"{self.name}: no rule for {got}; it takes {accepted}")
