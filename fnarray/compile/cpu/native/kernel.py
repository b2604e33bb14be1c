"""A kernel as an LLVM module: its text in one function, its arguments unpacked there or in another.

The machine calls ``name(frame)``: one 64-bit word for each argument, which holds the array itself
(NumPy's object, whose pointer and sizes are read here), an integer, or the bits of a float64.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from ....core.uncollected import uncollected
from ...cache.key import KernelSource
from ..namespace import namespace
from . import halves, load, machine, shared
from .call import DIMENSIONS, layout_is_known
from .codes import DATA
from .reader import Text, read_kernel
from .statements import Statements, settled
from .turns import is_long, waits
from .types import BOOL, F32, LLVM, Array, DType, Fallback, Scalar, Value, dtype_of
from .writer import Module

#: Arguments that a function has in registers. Where there are more, those that a loop does not use
#: stay in memory: unpacked in the same function, they were written there first (updates of slices
#: ran 5 % longer).
IN_REGISTERS: Final = 6

#: How the lines of a kernel begin that does nothing else than to call functions of its library.
_CALLS: Final = ("call void @", "ret void")


def compile_kernel(name: str, src: KernelSource) -> bytes:
    """Return the object code of a kernel.

    Raises
    ------
    Fallback
        The text holds something that is left to Numba, or the machine is none that is known.
    """
    if not layout_is_known():
        raise Fallback("the layout of arrays in this Python")
    with uncollected():
        module = written(name, src, _width(), machine.unmasked())
    # Loops of few turns are written out before they could be vectorised; what comes of them is
    # vectorised too (forward probabilities of 8 states: 160 to 57 us).
    own, scalar = module.text(), is_recurrence(src)
    code = b""

    def make() -> None:
        nonlocal code
        code = machine.compiled(own, scalar=scalar, straight=module.straight, light=module.light)

    calls = [
        partial(load.prepare, symbol, module.library)
        for symbol in module.library
        if _is_called(symbol, module, own)
    ]
    if calls:
        from ..together import share  # which few kernels need

        share(_do, [make, *calls])
    else:
        make()
    if missing := load.missing(code):  # or the cache would hold what cannot be loaded
        raise Fallback(f"the function {missing[0]}, which this process lacks")
    return code


def _is_called(symbol: str, module: Module, text: str) -> bool:
    """Whether a kernel calls a function of its library, beside declaring it."""
    # Loops that LLVM vectorises call functions of vectors in place of those of numbers; where they
    # are vectors of ours, under masks, nothing calls those of numbers.
    return not module.straight or text.count(f"@{symbol}(") > 1


def assembly_of(name: str, src: KernelSource) -> str:
    """Return the assembly of a kernel as it is compiled for this machine.

    Raises
    ------
    Fallback
        The kernel is Numba's to compile.
    """
    module = written(name, src, _width(), machine.unmasked())
    text = module.text()
    own = machine.assembly(text, module.straight, scalar=is_recurrence(src), light=module.light)
    called = (x for symbol, x in module.library.items() if _is_called(symbol, module, text))
    return "\n".join([own, *(machine.assembly(x.text, x.straight, light=x.light) for x in called)])


def _width() -> int | None:
    return 512 if machine.wide_vectors() else None


def _do(work: Callable[[], object]) -> None:
    work()


def lower(name: str, src: KernelSource, width: int | None) -> str:
    """Return the LLVM text of a kernel. Raises what `written` does."""
    return written(name, src, width).text()


def written(name: str, src: KernelSource, width: int | None, unmasked: str = "") -> Module:
    """Return a kernel as an LLVM module.

    Parameters
    ----------
    width : int, optional
        Bits of the vectors to use; LLVM's choice where there are none.
    unmasked : str, optional
        The processor's features for a kernel of choices that wait for each other.

    Raises
    ------
    Fallback
        The text holds something that is left to Numba.
    """
    text = read_kernel(src.text, namespace())
    kinds = [dtype_of(code) for code in src.signature]
    if len(kinds) != len(text.params):
        raise Fallback("a signature of another length")
    sequential = is_recurrence(src)
    lanes = _lanes(src, width)
    features = unmasked if waits(text.body, text.slots) else ""
    # Functions that kernels share take vectors in registers that one without AVX-512 has not.
    least = sys.maxsize if features else shared.MANY if sequential else shared.USES
    uses = Counter[str](_FUNCTION.findall(src.text))
    shares = frozenset(f for f, n in uses.items() if n >= least)
    long = not sequential and is_long(text.body)
    integers = any(code[0] in "iu" and "[" in code for code in src.signature)

    def begin() -> tuple[Statements, list[Value]]:
        module = Module(lanes, width, shares, integers, sequential=sequential, words=halves.rules())
        module.flushes = "flush_subnormal" in src.text
        module.features = features
        module.forks = not sequential and ("vm." in src.text or "fk." in src.text)
        module.long = long
        body = Statements(module, text)
        body.returns, body.single, body.own = [], True, True
        return body, [_value(p, *kind) for p, kind in zip(text.params, kinds, strict=True)]

    body = settled("variables", begin)
    body.straighten()
    if not body.module.texts and all(line.startswith(_CALLS) for line in body.lines):
        body.module.straight = True  # LLVM's passes took 2 to 4 ms to find nothing
    body.module.texts += _functions(name, text, kinds, body)
    shared.lent(body.module)
    return body.module


def is_recurrence(src: KernelSource) -> bool:
    """Whether a kernel is a sequential loop around short ones."""
    # One with a product in it has long loops beside that; nothing is read ahead across the call.
    # An LSTM's gradient took LLVM 689 ms without an order and 286 with, a call 88 and 77.
    return "flush_subnormal" in src.text and "fk.gemm." not in src.text


def _lanes(src: KernelSource, width: int | None) -> int:
    """Return how many numbers the long loops of a kernel work on at a time."""
    wide = any(c.rstrip("]").partition("[")[0] in _WIDE for c in src.signature if c != "i64")
    return (width or 256) // (64 if wide or _DOUBLE.search(src.text) else 32)


_FUNCTION = re.compile(r"\bvm\.(\w+)\(")
#: Numbers of 64 bits, where they are no indices.
_DOUBLE = re.compile(r"(?<!\bi)64\(|\bfk\.special\.")
_WIDE = frozenset(("f64", "i64", "u64", "c64", "c128"))


def _value(name: str, dtype: DType, rank: int | None) -> Value:
    if rank is not None:
        return Array(dtype, f"%{name}", f"%{name}.size")
    if dtype.kind == "c":
        raise Fallback("a complex number as an argument")
    return Scalar(dtype, f"%{name}")


def _functions(
    name: str, text: Text, kinds: list[tuple[DType, int | None]], body: Statements
) -> list[str]:
    """Return the function of the text, and the one that unpacks its arguments if it does not."""
    lines = "\n".join([*body.allocas, *body.lines])
    entry: list[str] = []
    params: list[str] = []
    operands: list[str] = []
    for k, (param, (dtype, rank)) in enumerate(zip(text.params, kinds, strict=True)):
        entry.append(f"%{param}.at = getelementptr i64, ptr %frame, i64 {k}")
        kind = "ptr" if rank is not None else "i64"
        entry.append(f"%{param}.word = load {kind}, ptr %{param}.at")
        if rank is None:
            entry += _number(param, dtype)
            params.append(f"{LLVM[dtype]} %{param}")
            operands.append(params[-1])
            continue
        entry += (
            f"%{param}.data = getelementptr i8, ptr %{param}.word, i64 {DATA}",
            f"%{param} = load ptr, ptr %{param}.data",
        )
        params.append(f"ptr noalias %{param}")
        operands.append(f"ptr %{param}")
        if f"%{param}.size" in lines:
            entry += _size(param, rank)
            params.append(f"i64 %{param}.size")
            operands.append(params[-1])
    if body.module.straight and len(params) <= IN_REGISTERS:
        # No pass asks which arrays meet in memory, and a function takes LLVM half a millisecond.
        return [
            f"define void @{name}(ptr %frame) #0 {{\nentry:\n" + "\n".join([*entry, lines]) + "\n}"
        ]
    return [
        f"define internal void @{name}.text({', '.join(params)}) #1 {{\nentry:\n{lines}\n}}",
        f"define void @{name}(ptr %frame) #0 {{\n"
        + "\n".join(entry)
        + f"\ncall void @{name}.text({', '.join(operands)})\nret void\n}}",
    ]


def _number(param: str, dtype: DType) -> list[str]:
    """Return what turns a word into a number."""
    word, kind = f"%{param}.word", LLVM[dtype]
    if dtype.kind == "f":
        wide = f"%{param}.wide" if dtype == F32 else f"%{param}"
        lines = [f"{wide} = bitcast i64 {word} to double"]
        return [*lines, f"%{param} = fptrunc double {wide} to float"] if dtype == F32 else lines
    if dtype == BOOL:
        return [f"%{param} = icmp ne i64 {word}, 0"]
    if dtype.itemsize == 8:
        return [f"%{param} = add i64 {word}, 0"]
    return [f"%{param} = trunc i64 {word} to {kind}"]


def _size(param: str, rank: int) -> list[str]:
    """Return what multiplies an array's dimensions."""
    lines = [
        f"%{param}.ds = getelementptr i8, ptr %{param}.word, i64 {DIMENSIONS}",
        f"%{param}.dims = load ptr, ptr %{param}.ds",
    ]
    total = "1"
    for k in range(rank):
        lines += (
            f"%{param}.d{k} = getelementptr i64, ptr %{param}.dims, i64 {k}",
            f"%{param}.n{k} = load i64, ptr %{param}.d{k}",
            f"%{param}.p{k} = mul nsw i64 {total}, %{param}.n{k}",
        )
        total = f"%{param}.p{k}"
    return [*lines, f"%{param}.size = add i64 {total}, 0"]
