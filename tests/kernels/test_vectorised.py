"""Loops over scalar functions keep vector registers, whatever the function."""

from __future__ import annotations

import re

import pytest

from fnarray.compile.cpu import jit
from fnarray_kernels import scalar as sc
from fnarray_kernels import special as sp
from fnarray_kernels import vmath as vm

from ..processors import X86, compiling_for

FLOATS = ("float32", "float64")
INTS = ("int8", "int32", "int64", "uint8", "uint32")
CODES = {"float32": "f32", "float64": "f64"}
CODES |= {f"{s}int{n}": f"{s[:1] or 'i'}{n}" for s in ("", "u") for n in (8, 16, 32, 64)}
CASES = [(getattr(vm, name), t, t) for name in vm.__all__ for t in FLOATS]
CASES += [(fn, t, t) for fn in (sp.lgamma, sp.digamma, sp.bessel_i0e) for t in FLOATS]
CASES += [
    (fn, t, t)
    for fn in (sc.add, sc.sub, sc.mul, sc.neg, sc.abs_, sc.maximum, sc.minimum, sc.sign)
    for t in ("int8", "int32", "float32")
]
CASES += [(fn, t, t) for fn in (sc.round_away, sc.nextafter, sc.rint) for t in FLOATS]
CASES += [(fn, t, t) for fn in (sc.shl, sc.shr_arith, sc.shr_logical) for t in ("int32", "uint32")]
CASES += [
    (sc.f16_load, "uint16", "float32"),
    (sc.f16_store, "float32", "uint16"),
    (sc.bf16_load, "uint16", "float32"),
    (sc.bf16_store, "float32", "uint16"),
    (sc.to_int32, "float32", "int32"),
    (sc.to_int8, "float32", "int8"),
    (sc.to_float32, "int32", "float32"),
    (sc.rem_abreast, "int32", "int32"),
    (sc.rem_abreast, "float32", "float32"),
    (sc.div_abreast, "uint32", "uint32"),
    (sc.popcount, "int32", "int32"),
    (sc.clz, "int32", "int32"),
]
TWO = {
    sc.rem_abreast,
    sc.div_abreast,
    vm.atan2,
    vm.hypot,
    vm.pow,
    sc.add,
    sc.sub,
    sc.mul,
    sc.maximum,
    sc.minimum,
    sc.nextafter,
}
TWO |= {sc.shl, sc.shr_arith, sc.shr_logical}


@pytest.mark.parametrize(
    ("fn", "source", "target"), CASES, ids=[f"{f.__name__}-{s}-{t}" for f, s, t in CASES]
)
def test_loop_is_vectorised(fn, source, target):
    """The optimised loop works on vectors and calls no scalar library function."""

    def one(x, out):
        for i in range(x.shape[0]):
            out[i] = fn(x[i])

    def two(x, y, out):
        for i in range(x.shape[0]):
            out[i] = fn(x[i], y[i])

    columns = [source] * (2 if fn in TWO else 1) + [target]
    with compiling_for("haswell"):
        library = jit.compile_kernel(
            two if fn in TWO else one, tuple(f"{CODES[c]}[1]" for c in columns)
        ).library
    code = library.get_llvm_str()
    assert re.search(r"store <\d+ x ", code)
    assert not re.search(r"call (float|double) @(?!llvm)", code)
    if X86:
        assert re.search("ymm", library.get_asm_str())
