"""One scalar text, two readings.

A function under `scalar` is a few lines of Python over overloaded operators. Called from Python it
runs on NumPy scalars (or arrays). Called from compiled code it runs once, at compile time, on
`Value` objects that append LLVM instructions to the caller: nothing is left to call, type
inference sees a single node, and the loop vectoriser sees plain arithmetic. Both readings use the
same operations in the same order, so they agree bit for bit.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core.errors import TypingError
from numba.core.types import IntegerLiteral, unliteral
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, types
from numba.np.numpy_support import as_dtype, from_dtype

f32, f64, boolean = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)


def llvm_type(dtype: np.dtype) -> ir.Type:
    """Return the LLVM type that carries a scalar of `dtype`."""
    if dtype.kind == "f":
        return ir.FloatType() if dtype == f32 else ir.DoubleType()
    return ir.IntType(1 if dtype.kind == "b" else 8 * dtype.itemsize)


class Value:
    """An LLVM value that knows its NumPy dtype; operators append instructions of that width."""

    __slots__ = ("builder", "dtype", "ir")

    def __init__(self, builder, dtype, value):
        self.builder, self.dtype, self.ir = builder, np.dtype(dtype), value

    def lift(self, other):
        """Return `other` as a value of this dtype: itself, or a Python or NumPy constant."""
        if isinstance(other, Value):
            if other.dtype != self.dtype:
                raise TypeError(f"operands differ in dtype: {self.dtype} and {other.dtype}")
            return other
        number = np.asarray(other, self.dtype).item()
        return Value(self.builder, self.dtype, ir.Constant(llvm_type(self.dtype), number))

    def op(self, names, *others, flags=(), swap=False):
        """Append the instruction for this dtype's kind; `names` maps kinds to builder methods."""
        if self.dtype.kind not in names:
            raise TypeError(f"{next(iter(names.values()))} is undefined for {self.dtype}")
        args = [self.ir, *(self.lift(other).ir for other in others)]
        kwargs = {"flags": flags} if flags else {}
        emit = getattr(self.builder, names[self.dtype.kind])
        return Value(self.builder, self.dtype, emit(*(args[::-1] if swap else args), **kwargs))

    def compare(self, symbol, other):
        """Append a comparison; a NaN makes all but ``!=`` false."""
        other, builder = self.lift(other), self.builder
        if self.dtype.kind == "f":
            emit = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
        else:
            emit = builder.icmp_signed if self.dtype.kind == "i" else builder.icmp_unsigned
        return Value(builder, boolean, emit(symbol, self.ir, other.ir))

    def call(self, name, *others, result=None):
        """Append a call of the LLVM intrinsic `name` on this value and `others` of its dtype."""
        args = [self.ir, *(self.lift(other).ir for other in others)]
        return self.call_raw(name, args, result or self.dtype)

    def call_raw(self, name, args, result):
        """Append a call of the function `name`, declared from the types of its arguments."""
        kind = ir.FunctionType(llvm_type(np.dtype(result)), [a.type for a in args])
        functions = self.builder.module.globals
        fn = functions.get(name) or ir.Function(self.builder.module, kind, name)
        return Value(self.builder, result, self.builder.call(fn, args))

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
    "and": dict.fromkeys("iub", "and_"),
    "or": dict.fromkeys("iub", "or_"),
    "xor": dict.fromkeys("iub", "xor"),
    "lshift": dict.fromkeys("iu", "shl"),
    "rshift": {"i": "ashr", "u": "lshr"},
}.items():
    _forward, _backward = _binary(_names)
    setattr(Value, f"__{_name}__", _forward)
    setattr(Value, f"__r{_name}__", _backward)
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Value, f"__{_name}__", functools.partialmethod(Value.compare, _sign))
Value.__neg__ = lambda a: a.op({"f": "fneg", "i": "neg", "u": "neg"})
Value.__invert__ = lambda a: a.op(dict.fromkeys("iub", "not_"))


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
        false = ir.Constant(ir.IntType(1), 0)
        return x.call_raw(f"llvm.ctlz.{_suffix(x.dtype)}", [x.ir, false], x.dtype)
    return _count_zeros(x)


def lookup(table, index):
    """Return ``table[index]`` for a constant one-dimensional float table and an int64 in range."""
    if not isinstance(index, Value):
        return table[index]
    builder, element = index.builder, llvm_type(table.dtype)
    kind = ir.ArrayType(element, len(table))
    name = f"fnarray.{hashlib.sha256(table.tobytes()).hexdigest()[:16]}"
    data = builder.module.globals.get(name)
    if data is None:
        data = ir.GlobalVariable(builder.module, kind, name)
        data.global_constant, data.linkage = True, "internal"
        data.initializer = ir.Constant(kind, [ir.Constant(element, v) for v in table.tolist()])
    zero = ir.Constant(index.ir.type, 0)
    return Value(builder, table.dtype, builder.load(builder.gep(data, [zero, index.ir])))


def const(x, like):
    """Return the number `x` as a constant of the dtype of `like`."""
    return like.lift(x) if isinstance(like, Value) else like.dtype.type(x)


def select(c, a, b):
    """Return `a` where `c` holds, else `b`; both are computed."""
    if not isinstance(c, Value):
        return np.where(c, a, b)[()]
    like = _like(a, b)
    a, b = like.lift(a), like.lift(b)
    return Value(c.builder, like.dtype, c.builder.select(c.ir, a.ir, b.ir))


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


def bitcast(x, dtype):
    """Return the bits of `x` read as `dtype` of the same width."""
    dtype = np.dtype(dtype)
    if not isinstance(x, Value):
        return x.view(dtype)
    if dtype.kind != "f" and x.dtype.kind != "f":
        return Value(x.builder, dtype, x.ir)
    return Value(x.builder, dtype, x.builder.bitcast(x.ir, llvm_type(dtype)))


def convert(x, dtype):
    """Return `x` as `dtype`: integers wrap, floats saturate to integers, NaN becomes 0."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return x != 0
    return _convert_ir(x, dtype) if isinstance(x, Value) else _convert_plain(x, dtype)


def _convert_ir(x, dtype):
    builder, target = x.builder, llvm_type(dtype)
    source, wider = x.dtype.kind, dtype.itemsize > x.dtype.itemsize
    if source == "f" and dtype.kind in "iu":
        sign = "s" if dtype.kind == "i" else "u"
        return x.call(f"llvm.fpto{sign}i.sat.{_suffix(dtype)}.{_suffix(x.dtype)}", result=dtype)
    if source == "f":
        emit = builder.fpext if wider else builder.fptrunc
    elif dtype.kind == "f":
        emit = builder.sitofp if source == "i" else builder.uitofp
    elif source == "b" or wider:
        emit = builder.sext if source == "i" else builder.zext
    else:
        emit = builder.trunc
    return Value(builder, dtype, emit(x.ir, target))


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
    return like.lift(a).op({"f": kind}, b, flags=("reassoc", "nsz"))


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

    class Template(AbstractTemplate):
        key, prefer_literal = face, True

        def generic(self, args, kws):
            return signature(from_dtype(rule.result or rule.common(args)), *args)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, types.VarArg(types.Any))
    def lower(context, builder, sig, args):
        dtype = rule.common(sig.args)
        out = text(*(_adopt(builder, dtype, t, a) for t, a in zip(sig.args, args, strict=True)))
        if out.dtype != (rule.result or dtype):
            raise TypeError(f"{rule.name}: must return {rule.result or dtype}, built {out.dtype}")
        return out.ir

    return face


def _adopt(builder, dtype, kind, value):
    """Return `value` of Numba type `kind`, or the literal it stands for, as `dtype`."""
    if as_dtype(unliteral(kind)) == dtype:
        return Value(builder, dtype, value)
    return Value(builder, dtype, None).lift(kind.literal_value)


class _Rule(NamedTuple):
    """Which dtypes a scalar function takes and gives."""

    name: str
    kinds: str
    only: np.dtype | None
    result: np.dtype | None

    def common(self, args):
        """Return the one dtype shared by the Numba types `args`, integer literals aside."""
        firm = [a for a in args if not isinstance(a, IntegerLiteral)] or args[:1]
        try:
            dtypes = {as_dtype(unliteral(a)) for a in firm}
            self.check(dtypes)
        except (NotImplementedError, TypeError) as error:
            raise TypingError(f"fnarray_kernels: {error}; called with {args}") from None
        return dtypes.pop()

    def check(self, dtypes):
        """Raise a TypeError unless `dtypes` is one accepted dtype."""
        got, *others = dtypes
        if others:
            names = sorted(map(str, dtypes))
            raise TypeError(f"{self.name}: arguments must share one dtype, got {names}")
        if got != self.only if self.only else got.kind not in self.kinds or got.char == "e":
            accepted = self.only or f"kinds {self.kinds!r} of up to 64 bits"
            raise TypeError(f"{self.name}: no rule for {got}; it takes {accepted}")
