"""Emitted kernels compute on whole vector registers, of a processor that each test names."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import nn
from fnarray.compile.cpu import build, jit
from fnarray.compile.cpu.namespace import python_function
from fnarray.compile.cpu.native import kernel as native
from fnarray.config import enable_x64

from ..processors import X86, assembly_for, compiling_for

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
#: Packed arithmetic on whole registers, not mere moves, which zeroing and copying use as well; of
#: integers where these have the numbers' order, as maxima are folded.
_RANKS = r"pmaxsd|pminsd|pcmpgtq"
_FLOATS = r"add|sub|mul|div|sqrt|max|min"
ARITHMETIC = {
    "haswell": rf"\bv(?:(?:{_FLOATS}|fn?m(?:add|sub)\d+)p[sd]|{_RANKS})\b[^\n]*%ymm",
    "nehalem": rf"\b(?:(?:{_FLOATS})p[sd]|{_RANKS})\b[^\n]*%xmm",
}
if not X86:  # registers have other names: LLVM's own text
    _LLVM = r"= (?:fast )?f(?:add|mul|sub)[a-z ]* <\d+ x |@llvm\.(?:fma|maxnum)\.v\d"
    ARITHMETIC = {None: _LLVM}


def code_of(compiler, processor, function, *args) -> dict[str, str]:
    """Machine code of the kernels of a program, by name; LLVM's where registers are not x86's."""
    executable = fa.jit(function).lower(*args).compile().runtime_executable()
    code = {}
    for kernel in executable.source.kernels:
        name, text = build.kernel_name(kernel.source), build.source(kernel.source)
        if compiler == "native":
            code[name] = assembly_for(processor, native.lower(name, kernel.source, None))
            continue
        with compiling_for(processor):
            library = jit.compile_kernel(
                python_function(name, text, f"<{name}>"), kernel.source.signature
            ).library
        code[name] = library.get_asm_str() if X86 else library.get_llvm_str()
    assert code
    return code


#: Without fused multiply-add, which Nehalem lacks, `vmath` calls the C library's for each number.
FUSED = {"exp", "log1p", "tanh", "selu", "gelu", "softmax"}
RUNS = [(k, p) for p in ARITHMETIC for k in KERNELS if p != "nehalem" or k not in FUSED]


@pytest.mark.parametrize("compiler", ["native", "numba"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("name", "processor"), RUNS)
def test_kernels_work_on_vectors(name, dtype, processor, compiler):
    """Every kernel of a program computes on vectors, and calls no scalar math function."""
    with enable_x64(dtype is np.float64):
        code = code_of(compiler, processor, KERNELS[name], np.ones(SHAPE, dtype))
    for kernel, text in code.items():
        assert re.search(ARITHMETIC[processor], text), f"{kernel} of {name} is scalar"
        assert not re.search(r"call\w*\s+\*?(?:exp|expm1|log|log1p|tanh|erf)f?\b", text)
