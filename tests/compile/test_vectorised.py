"""Emitted kernels run on the widest vector registers of the machine."""

from __future__ import annotations

import platform
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import nn
from fnarray.compile.cpu import build, jit
from fnarray.compile.cpu.namespace import python_function
from fnarray.compile.cpu.native import kernel as native
from fnarray.compile.cpu.native import machine
from fnarray.config import enable_x64

SHAPE = (256, 1000)
KERNELS = {
    "add": lambda x: x + x[0],
    "exp": fnp.exp,
    "log1p": fnp.log1p,
    "tanh": fnp.tanh,
    "selu": nn.selu,
    "gelu": nn.gelu,
    "softmax": nn.softmax,
    "sum": fnp.sum,
    "max": fnp.max,
    "row sums": lambda x: x.sum(1),
    "column sums": lambda x: x.sum(0),
    "norm": lambda x: fnp.sqrt((x * x).sum(1)),
    "standardise": lambda x: (x - x.mean(0)) / x.std(0),
}
#: Packed arithmetic, not mere moves, which zeroing and copying use as well.
_PACKED = r"\bv(?:add|sub|mul|div|sqrt|max|min|fn?m(?:add|sub)\d+)p[sd]\b[^\n]*%{}mm"


def arithmetic() -> str:
    """Pattern of arithmetic on whole vectors, in the text that `code_of` returns."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return r"= (?:fast )?f(?:add|mul|sub)[a-z ]* <\d+ x |@llvm\.(?:fma|maxnum)\.v\d"
    if llvm.get_host_cpu_features().get("avx2"):
        return _PACKED.format("[yz]")
    return r"\b(?:add|mul|sub|max|min)p[sd]\b[^\n]*%xmm"


def code_of(compiler, function, *args) -> dict[str, str]:
    """Machine code of the kernels of a program, by name; LLVM's where registers are not x86's."""
    executable = fa.jit(function).lower(*args).compile().runtime_executable()
    code = {}
    for kernel in executable.source.kernels:
        name, text = build.kernel_name(kernel.source), build.source(kernel.source)
        if compiler == "native":
            width = 512 if machine.wide_vectors() else None
            code[name] = machine.assembly(native.lower(name, kernel.source, width))
            continue
        library = jit.compile_kernel(
            python_function(name, text, f"<{name}>"), kernel.source.signature
        ).library
        x86 = platform.machine() in ("x86_64", "AMD64")
        code[name] = library.get_asm_str() if x86 else library.get_llvm_str()
    assert code
    return code


@pytest.mark.parametrize("compiler", ["native", "numba"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_work_on_vectors(name, dtype, compiler):
    """Every kernel of a program computes on vectors, and calls no scalar math function."""
    with enable_x64(dtype is np.float64):
        code = code_of(compiler, KERNELS[name], np.ones(SHAPE, dtype))
    for kernel, text in code.items():
        assert re.search(arithmetic(), text), f"{kernel} of {name} is scalar"
        assert not re.search(r"call\w*\s+\*?(?:exp|expm1|log|log1p|tanh|erf)f?\b", text)
