"""Matrix products: our own where `gemm` has one, else BLAS's, as Numba's ``np.dot`` chooses it.

BLAS reads columns where kernels have rows, so it is handed the operands in the other order.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np

from . import few, gemm
from .blas import DOT
from .types import C64, C128, F32, F64, LLVM, Array, DType, Fallback, Scalar, part
from .writer import memory

if TYPE_CHECKING:
    from .writer import Module, Writer

#: What BLAS and LAPACK put before the names of routines.
LETTERS: Final = {F32: "s", F64: "d", C64: "c", C128: "z"}
#: What a function returns a complex number as, by processor: in one register, or two.
_COMPLEX: Final = {
    ("x86_64", C64): "<2 x float>",
    ("x86_64", C128): "{ double, double }",
    ("aarch64", C64): "{ float, float }",
    ("aarch64", C128): "{ double, double }",
}

#: ``%low`` to ``%high`` are rows of the product, or columns where there are more of those.
_TEXT: Final = """\
define internal void @{name}(ptr %a.all, ptr %b.all, ptr %out.all, i64 %m.all, i64 %k, i64 %n.all,
    i64 %left, i64 %right, i64 %low, i64 %high) #0 {{
  %m.at = alloca i32
  %k.at = alloca i32
  %n.at = alloca i32
  %lda.at = alloca i32
  %ldb.at = alloca i32
  %ld.at = alloca i32
  %a.inc = alloca i32
  %rows = icmp sge i64 %m.all, %n.all
  %a.turned = icmp ne i64 %left, 0
  %b.turned = icmp ne i64 %right, 0
  %some = sub i64 %high, %low
  %m = select i1 %rows, i64 %some, i64 %m.all
  %n = select i1 %rows, i64 %n.all, i64 %some
  %lda = select i1 %a.turned, i64 %m.all, i64 %k
  %ldb = select i1 %b.turned, i64 %k, i64 %n.all
  %a.step = select i1 %a.turned, i64 1, i64 %k
  %b.step = select i1 %b.turned, i64 %k, i64 1
  %out.step = select i1 %rows, i64 %n.all, i64 1
  %a.skip = mul i64 %low, %a.step
  %b.skip = mul i64 %low, %b.step
  %a.first = select i1 %rows, i64 %a.skip, i64 0
  %b.first = select i1 %rows, i64 0, i64 %b.skip
  %out.first = mul i64 %low, %out.step
  %a = getelementptr {element}, ptr %a.all, i64 %a.first
  %b = getelementptr {element}, ptr %b.all, i64 %b.first
  %out = getelementptr {element}, ptr %out.all, i64 %out.first
  %a.letter = select i1 %a.turned, ptr @blas.t, ptr @blas.n
  %b.letter = select i1 %b.turned, ptr @blas.t, ptr @blas.n
  %a.other = select i1 %a.turned, ptr @blas.n, ptr @blas.t
  %m.short = trunc i64 %m to i32
  %k.short = trunc i64 %k to i32
  %n.short = trunc i64 %n to i32
  %lda.short = trunc i64 %lda to i32
  %ldb.short = trunc i64 %ldb to i32
  %ld.short = trunc i64 %n.all to i32
  %a.apart = select i1 %a.turned, i32 %lda.short, i32 1
  store i32 %m.short, ptr %m.at
  store i32 %k.short, ptr %k.at
  store i32 %n.short, ptr %n.at
  store i32 %lda.short, ptr %lda.at
  store i32 %ldb.short, ptr %ldb.at
  store i32 %ld.short, ptr %ld.at
  store i32 %a.apart, ptr %a.inc
  %row = icmp eq i64 %m, 1
  %column = icmp eq i64 %n.all, 1
  br i1 %column, label %vector, label %matrix
vector:
  br i1 %row, label %dot, label %left.one
matrix:
  br i1 %row, label %right.one, label %full
dot:
  %sum = call {result} @fnarray_{dot}(ptr %k.at, ptr %a, ptr %a.inc, ptr %b, ptr @blas.inc)
  store {result} %sum, ptr %out, align {alignment}
  ret void
left.one:
  %a.rows = select i1 %a.turned, ptr %m.at, ptr %k.at
  %a.columns = select i1 %a.turned, ptr %k.at, ptr %m.at
  call void @fnarray_{x}gemv(ptr %a.other, ptr %a.rows, ptr %a.columns, ptr @blas.one.{x}, ptr %a,
    ptr %lda.at, ptr %b, ptr @blas.inc, ptr @blas.zero.{x}, ptr %out, ptr @blas.inc)
  ret void
right.one:
  %b.rows = select i1 %b.turned, ptr %k.at, ptr %n.at
  %b.columns = select i1 %b.turned, ptr %n.at, ptr %k.at
  call void @fnarray_{x}gemv(ptr %b.letter, ptr %b.rows, ptr %b.columns, ptr @blas.one.{x}, ptr %b,
    ptr %ldb.at, ptr %a, ptr %a.inc, ptr @blas.zero.{x}, ptr %out, ptr @blas.inc)
  ret void
full:
  call void @{full}
  ret void
}}"""
#: What multiplies matrices that are no vectors.
_BLAS: Final = """\
fnarray_{x}gemm(ptr %b.letter, ptr %a.letter, ptr %n.at, ptr %m.at, ptr %k.at, ptr @blas.one.{x},
    ptr %b, ptr %ldb.at, ptr %a, ptr %lda.at, ptr @blas.zero.{x}, ptr %out, ptr %ld.at)"""
_OURS: Final = """\
{ours}(ptr %a, ptr %b, ptr %out, i64 %m, i64 %k, i64 %n, i64 %lda, i64 %ldb, i64 %n.all, i64 %left,
    i64 %right, i64 1, i64 0, i64 0, i64 0)"""


def is_ours(dtype: DType) -> bool:
    """Whether products of a dtype are our own."""
    return dtype in LETTERS and gemm.symbol(LETTERS[dtype]) is not None


def multiply(to: Writer, a: Array, b: Array, out: Array, sizes: list[Scalar]) -> None:
    """Write a product of matrices (m, k) and (k, n) of floats or complex numbers, none empty.

    After the sizes come whether the columns of each lie together in memory, and, unless all of the
    product is wanted, which of its rows are, or columns where there are more of those.
    """
    name = f"product.{LETTERS[out.dtype]}"
    if name not in to.module.functions:
        to.module.functions[name] = name, None
        _define(to.module, name, out.dtype)
    words = [f"i64 {n.ir}" for n in sizes]
    if len(words) == 5:
        m, n = sizes[0].ir, sizes[2].ir
        words += ["i64 0", f"i64 {to.new(f'call i64 @llvm.smax.i64(i64 {m}, i64 {n})')}"]
    arrays = [f"ptr {x.ir}" for x in (a, b, out)]
    to.lines.append(f"call void @{name}({', '.join([*arrays, *words])})")


def multiply_few(to: Writer, a: Array, b: Array, out: Array, sizes: list[Scalar]) -> bool:
    """Write a product of small matrices, as `multiply` does; return whether there is one."""
    *some, left, right = sizes
    symbol = few.symbol(LETTERS[out.dtype], right.ir != "0")
    if symbol is None:
        return False
    to.module.declared[symbol] = "void", few.PARAMETERS
    words = [*(f"ptr {x.ir}" for x in (a, b, out)), *(f"i64 {n.ir}" for n in (*some, left))]
    to.lines.append(f"call void @{symbol}({', '.join(words)})")
    return True


def _define(module: Module, name: str, dtype: DType) -> None:
    x, scalar = LETTERS[dtype], LLVM.get(dtype) or _COMPLEX.get((os.uname().machine, dtype))
    if scalar is None:
        raise Fallback("a function that returns a complex number, on this processor")
    real = part(dtype) if dtype.kind == "c" else dtype
    dot, ours = DOT[x], gemm.symbol(x)
    gemm_takes = gemm.PARAMETERS if ours else ("ptr",) * 13
    module.declared |= {
        f"fnarray_{dot}": (scalar, ("ptr",) * 5),
        f"fnarray_{x}gemv": ("void", ("ptr",) * 11),
        ours or f"fnarray_{x}gemm": ("void", gemm_takes),
        "llvm.smax.i64": ("i64", ("i64",) * 2),
    }
    module.tables |= {
        "blas.inc": np.ones(1, np.int32),
        "blas.n": np.array([ord("n")], np.uint8),
        "blas.t": np.array([ord("t")], np.uint8),
        f"blas.one.{x}": np.array([1, 0], real),
        f"blas.zero.{x}": np.zeros(2, real),
    }
    module.texts.append(
        _TEXT.format(
            name=name,
            full=_OURS.format(ours=ours) if ours else _BLAS.format(x=x),
            x=x,
            dot=dot,
            result=scalar,
            element=memory(dtype),
            alignment=real.itemsize,
        )
    )
