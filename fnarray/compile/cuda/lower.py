"""Kernel text for a GPU: through the native compiler's reader to LLVM, and by LLVM to PTX.

The text is the one that the processor reads in tests; its scalar words are the same instructions
as the processor's, so that the elementary functions keep their bits.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np

from fnarray_kernels import grid
from fnarray_kernels import vmath as vm
from fnarray_kernels._ir import LLVM

from ...errors import UnsupportedOnTarget
from ..cpu.namespace import namespace
from ..cpu.native import machine
from ..cpu.native.reader import Text, read_kernel
from ..cpu.native.statements import Statements, settled
from ..cpu.native.types import Array, Fallback, Known, Scalar, Value, dtype_of
from ..cpu.native.writer import Module
from ..emit.source import KernelSource
from .words import FAST, LANES_OF_BLOCK, WORDS, shared_memory, width

#: The oldest version of PTX that knows a capability: the older, the more drivers load it.
_VERSIONS: Final = {
    "sm_70": 60, "sm_75": 63, "sm_80": 70, "sm_86": 71, "sm_87": 74, "sm_89": 78, "sm_90": 78,
    "sm_100": 86, "sm_103": 88, "sm_120": 87, "sm_121": 88,
}  # fmt: skip
#: Bytes of arguments that a kernel may have, and the version of PTX from which on it may have more.
_ARGUMENTS, _MANY_ARGUMENTS = 4352, 81
#: Additions and products that a multiplier may take together, rounding once.
_FUSED: Final = re.compile(r"= (fadd|fsub|fmul)((?: reassoc| nsz)*) ")
#: LLVM's functions of which a GPU has no instruction: `vmath` has them.
_OURS: Final = frozenset({"pow", "exp", "log", "sin", "cos"})
_PLAIN: Final = frozenset({"add", "sub", "mul", "radd", "rmul"})


class GridStatements(Statements):
    """Statements of a kernel; what the user computes may be contracted, what words do may not.

    Texts of `vmath` rely on every rounding, and keep the processor's bits.
    """

    fused = False
    ranked = False  # a GPU has an instruction for a maximum

    def operate(self, op: type[ast.operator], a: Scalar, b: Scalar) -> Scalar:
        """Write an operation."""
        start = len(self.lines)
        result = super().operate(op, a, b)
        self._fuse(start)
        return result

    def call(self, node: ast.Call) -> Value:
        """Write a call; those of plain arithmetic are the user's own."""
        result = super().call(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _PLAIN:
            self._fuse(len(self.lines) - 1)  # what it was called with may be a function's
        return result

    def count(self, node: ast.For) -> None:
        """Write a loop; turns of a number that is known one by one, so that registers are named."""
        known = 4 if _is_short(node) else self._turns(node.iter)
        if known is None:
            super().count(node)
            return
        for k in range(known):
            self.put(node.target, Known(k))
            self.inner(node.body)

    def _turns(self, node: ast.expr) -> int | None:
        """Return how many turns a lane's share of a row has, where a loop is over that."""
        inner = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if not isinstance(inner, ast.Call):
            return None
        turns = self.expression(inner)
        return turns.value if isinstance(turns, Known) and type(turns.value) is int else None

    def _fuse(self, start: int) -> None:
        if self.fused:
            for k in range(start, len(self.lines)):
                self.lines[k] = _FUSED.sub(r"= \1\2 contract ", self.lines[k])


def _is_short(node: ast.For) -> bool:
    """Whether a loop is over four elements, and holds no other, nor a call of a long function.

    Those that are called four times are no longer part of their caller. Their elements lie on the
    stack for it: 64 to 192 bytes, two accesses for an element of 145 instructions and more.
    """
    match node.iter:
        case ast.Call(args=[ast.Constant(value=4)]):
            inside = [n for statement in node.body for n in ast.walk(statement)]
        case _:
            return False
    names = [n.func for n in inside if isinstance(n, ast.Call)]
    called = [f.value for f in names if isinstance(f, ast.Attribute)]
    short = all(isinstance(f, ast.Name) and f.id in ("sc", "vm") for f in called)
    return short and not any(isinstance(n, ast.For | ast.While) for n in inside)


def lower(
    name: str, source: KernelSource, *, fma: bool = True, words: Mapping[Any, Any] | None = None
) -> str:
    """Return the LLVM text of a kernel.

    Parameters
    ----------
    name : str
    source : KernelSource
    fma : bool
        Whether products and sums are contracted, and functions are the hardware's.
    words : mapping, optional
        Rules in place of a GPU's own.

    Raises
    ------
    UnsupportedOnTarget
        The text holds something that kernels on a GPU have not.
    """
    try:
        return _lowered(name, source, fma, words or ({**WORDS, **FAST} if fma else WORDS))
    except Fallback as reason:
        raise UnsupportedOnTarget(
            f"kernel {name}: no kernel on a GPU has {reason}. Run this part on the cpu.\n"
            f"{source.text}"
        ) from reason


def _lowered(name: str, source: KernelSource, fma: bool, words: Mapping[Any, Any]) -> str:
    names = {**namespace(), **grid.WORDS}
    text = read_kernel(source.text, names)
    kinds = [dtype_of(code) for code in source.signature]

    def begin() -> tuple[GridStatements, list[Value]]:
        body = GridStatements(Module(words=words), text)
        body.fused, body.returns, body.single = fma, [], True
        return body, [_value(p, *kind) for p, kind in zip(text.params, kinds, strict=True)]

    body = settled("variables", begin)
    module = body.module
    module.texts.append(_entry(name, text, kinds, body))
    _define(module)
    foreign = [x for x in module.declared if not x.startswith("llvm.")]
    if foreign:
        raise Fallback(f"the C library's {', '.join(foreign)}")
    module.texts[:0] = shared_memory(module)
    # Barriers must not be moved into branches that only some lanes take.
    spelled = module.text().replace("{ nounwind", "{ convergent nounwind")
    if lanes := width(module)[0]:
        spelled = spelled.replace(LANES_OF_BLOCK, f"= add i32 0, {lanes}")
    return f'target triple = "nvptx64-nvidia-cuda"\n{spelled}'


def _define(module: Module) -> None:
    """Define what LLVM leaves to a library of mathematics, which a GPU has none of."""
    for name in [x for x in module.declared if x.split(".")[1:2] and x.split(".")[1] in _OURS]:
        _, function, width = name.split(".")
        kind, args = module.declared.pop(name)
        dtype = np.dtype(np.float32 if width == "f32" else np.float64)
        template = getattr(vm, function).traced((dtype,) * len(args))
        module.declared.update(template.declared)
        module.tables.update(template.tables)
        names = [f"%a{k}" for k in range(len(args))]
        lines, result = template.pasted("t", names)
        params = ", ".join(f"{kind} {a}" for a in names)
        ours = f"{function}.{width}"
        module.texts = [t.replace(f"@{name}(", f"@{ours}(") for t in module.texts]
        module.texts.append(
            f"define internal {kind} @{ours}({params}) #0 {{\n{lines}\nret {kind} {result}\n}}"
        )


def _value(name: str, dtype: np.dtype, rank: int | None) -> Value:
    return Scalar(dtype, f"%{name}") if rank is None else Array(dtype, f"%{name}")


def _entry(name: str, text: Text, kinds: Any, body: Statements) -> str:
    params = [
        f"ptr noalias align 16 %{p}" if rank is not None else f"{LLVM[dtype]} %{p}"
        for p, (dtype, rank) in zip(text.params, kinds, strict=True)
    ]
    lines = "\n".join([*body.allocas, *body.lines])
    lanes, blocks = width(body.module)
    bound = f' "nvvm.reqntid"="{lanes}" "nvvm.minctasm"="{blocks}"' if lanes else ""
    head = f"define ptx_kernel void @{name}({', '.join(params)}) #0{bound}"
    return f"{head} {{\nentry:\n{lines}\n}}"


@functools.cache
def _machine(capability: str, version: int) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=capability, features=f"+ptx{version}", opt=3)


def check_capability(capability: str) -> str:
    """Return a compute capability's name, if it is known.

    Raises
    ------
    ValueError
        It is not.
    """
    if capability not in _VERSIONS:
        raise ValueError(
            f"a GPU's architecture is one of {', '.join(_VERSIONS)}; got {capability!r}."
        )
    return capability


def ptx(text: str, capability: str) -> str:
    """Return LLVM text as PTX.

    Raises
    ------
    UnsupportedOnTarget
        LLVM refuses the text, by a mistake of ours.
    """
    version = _VERSIONS[check_capability(capability)]
    if 8 * text.split("define ptx_kernel")[-1].split(") #0", 1)[0].count("%") > _ARGUMENTS:
        version = max(version, _MANY_ARGUMENTS)
    with machine.lock:
        target = _machine(capability, version)
        try:
            module = llvm.parse_assembly(text)
        except RuntimeError as error:
            raise UnsupportedOnTarget(f"text that LLVM refuses: {error}\n{text}") from error
        module.data_layout = str(target.target_data)
        builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(3))
        builder.getModulePassManager().run(module, builder)
        return target.emit_assembly(module)
