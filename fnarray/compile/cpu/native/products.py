"""Matrix products by BLAS: the routine and the arguments that Numba's ``np.dot`` chooses.

BLAS reads columns where kernels have rows, so it is handed the operands in the other order.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np

from .blas import DOT
from .types import C64, C128, F32, F64, LLVM, Array, DType, Fallback, Scalar, part

if TYPE_CHECKING:
    from .writer import Module, Writer

_LETTER: Final = {F32: "s", F64: "d", C64: "c", C128: "z"}
#: What a function returns a complex number as, by processor: in one register, or two.
_COMPLEX: Final = {
    ("x86_64", C64): "<2 x float>",
    ("x86_64", C128): "{ double, double }",
    ("aarch64", C64): "{ float, float }",
    ("aarch64", C128): "{ double, double }",
}

_TEXT: Final = """\
define internal void @{name}(ptr %a, ptr %b, ptr %out, i64 %m, i64 %k, i64 %n, i64 %ld) #0 {{
  %m.at = alloca i32
  %k.at = alloca i32
  %n.at = alloca i32
  %ld.at = alloca i32
  %m.short = trunc i64 %m to i32
  %k.short = trunc i64 %k to i32
  %n.short = trunc i64 %n to i32
  %ld.short = trunc i64 %ld to i32
  store i32 %m.short, ptr %m.at
  store i32 %k.short, ptr %k.at
  store i32 %n.short, ptr %n.at
  store i32 %ld.short, ptr %ld.at
  %row = icmp eq i64 %m, 1
  %column = icmp eq i64 %ld, 1
  br i1 %column, label %vector, label %matrix
vector:
  br i1 %row, label %dot, label %left
matrix:
  br i1 %row, label %right, label %full
dot:
  %sum = call {result} @fnarray_{dot}(ptr %k.at, ptr %a, ptr @blas.inc, ptr %b, ptr @blas.inc)
  store {result} %sum, ptr %out, align {alignment}
  ret void
left:
  call void @fnarray_{x}gemv(ptr @blas.t, ptr %k.at, ptr %m.at, ptr @blas.one.{x}, ptr %a,
    ptr %k.at, ptr %b, ptr @blas.inc, ptr @blas.zero.{x}, ptr %out, ptr @blas.inc)
  ret void
right:
  call void @fnarray_{x}gemv(ptr @blas.n, ptr %n.at, ptr %k.at, ptr @blas.one.{x}, ptr %b,
    ptr %ld.at, ptr %a, ptr @blas.inc, ptr @blas.zero.{x}, ptr %out, ptr @blas.inc)
  ret void
full:
  call void @fnarray_{x}gemm(ptr @blas.n, ptr @blas.n, ptr %n.at, ptr %m.at, ptr %k.at,
    ptr @blas.one.{x}, ptr %b, ptr %ld.at, ptr %a, ptr %k.at, ptr @blas.zero.{x}, ptr %out,
    ptr %ld.at)
  ret void
}}"""


def multiply(to: Writer, a: Array, b: Array, out: Array, sizes: list[Scalar]) -> None:
    """Write a product of matrices (m, k) and (k, n) of floats or complex numbers, none empty.

    A fourth size is that of the rows that the second one and the result are columns of.
    """
    name = f"product.{_LETTER[out.dtype]}"
    if name not in to.module.functions:
        to.module.functions[name] = name, None
        _define(to.module, name, out.dtype)
    sizes = sizes if len(sizes) == 4 else [*sizes, sizes[2]]
    args = [*(f"ptr {x.ir}" for x in (a, b, out)), *(f"i64 {n.ir}" for n in sizes)]
    to.lines.append(f"call void @{name}({', '.join(args)})")


def _define(module: Module, name: str, dtype: DType) -> None:
    x, scalar = _LETTER[dtype], LLVM.get(dtype) or _COMPLEX.get((os.uname().machine, dtype))
    if scalar is None:
        raise Fallback("a function that returns a complex number, on this processor")
    real = part(dtype) if dtype.kind == "c" else dtype
    dot = DOT[x]
    module.declared |= {
        f"fnarray_{dot}": (scalar, ("ptr",) * 5),
        f"fnarray_{x}gemv": ("void", ("ptr",) * 11),
        f"fnarray_{x}gemm": ("void", ("ptr",) * 13),
    }
    module.tables |= {
        "blas.inc": np.ones(1, np.int32),
        "blas.n": np.array([ord("n")], np.uint8),
        "blas.t": np.array([ord("t")], np.uint8),
        f"blas.one.{x}": np.array([1, 0], real),
        f"blas.zero.{x}": np.zeros(2, real),
    }
    module.texts.append(
        _TEXT.format(name=name, x=x, dot=dot, result=scalar, alignment=real.itemsize)
    )
