"""Functions of numbers that a kernel uses often: written once, and called.

A loop that is vectorised calls the version for as many numbers as it works on at a time, which is
a loop over the same text: the same operations, hence the same bits, as where the text is pasted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .types import LLVM, Scalar, Template

if TYPE_CHECKING:
    from .writer import Module, Writer

#: From so many uses of one function in a kernel on it is called: three calls in place of three
#: texts ran 5 % longer (Black and Scholes' formula) to 20 % (sin, cos and log together).
USES = 3
#: And in a recurrence, whose loops may be shorter than one vector (30 numbers, each 16 tanh: 101 us
#: where pasted, 249 where called). A body of 250 tanh took LLVM 6.6 s, and takes 0.3.
MANY = 100
#: Shorter texts are pasted always.
LINES = 12


def call(
    to: Writer, name: str, kinds: tuple[Any, ...], template: Template, numbers: list[Scalar]
) -> str:
    """Write a call of a template's function; return its result."""
    key = name, kinds
    if key not in to.module.shared:
        to.module.shared[key] = _define(to.module, name, kinds, template)
    function, attributes = to.module.shared[key]
    args = ", ".join(f"{LLVM[x.dtype]} {x.ir}" for x in numbers)
    return to.new(f"call {LLVM[template.dtype]} @{function}({args}) #{attributes}")


def _define(
    module: Module, name: str, kinds: tuple[Any, ...], template: Template
) -> tuple[str, int]:
    """Write both versions of a function; return its name, and the attributes of its calls."""
    function = f"fn{len(module.shared)}_{name}"
    lanes, vector = module.lanes, f"{function}_{module.lanes}"
    kind, args = LLVM[template.dtype], [LLVM[k] for k in kinds]
    names = [f"%a{k}" for k in range(len(args))]
    body, result = template.pasted("t", names)
    params = ", ".join(f"{t} {n}" for t, n in zip(args, names, strict=True))
    module.texts.append(
        f"define internal {kind} @{function}({params}) #1 {{\n{body}\nret {kind} {result}\n}}"
    )
    wide = [f"<{lanes} x {t}>" for t in args]
    lines = [f"define internal <{lanes} x {kind}> @{vector}("]
    lines[0] += ", ".join(f"{t} %v{k}" for k, t in enumerate(wide)) + ") #1 {"
    lines.append(f"%to = alloca <{lanes} x {kind}>")
    for k, t in enumerate(wide):
        lines += (f"%from{k} = alloca {t}", f"store {t} %v{k}, ptr %from{k}")
    lines += ("br label %turn", "turn:", "%i = phi i64 [ 0, %0 ], [ %next, %turn ]")
    for k, t in enumerate(args):
        lines.append(f"%at{k} = getelementptr inbounds {t}, ptr %from{k}, i64 %i")
        lines.append(f"{names[k]} = load {t}, ptr %at{k}")
    lines += (
        body,
        f"%out = getelementptr inbounds {kind}, ptr %to, i64 %i",
        f"store {kind} {result}, ptr %out",
        "%next = add nuw nsw i64 %i, 1",
        f"%more = icmp slt i64 %next, {lanes}",
        f"br i1 %more, label %turn, label %end{module.loop('plain')}",
        "end:",
        f"%all = load <{lanes} x {kind}>, ptr %to",
        f"ret <{lanes} x {kind}> %all",
        "}",
    )
    module.texts.append("\n".join(lines))
    module.used.append(vector)
    letters = "v" * len(args)
    module.attributes.append(
        "nounwind willreturn memory(none) "
        f'"vector-function-abi-variant"="_ZGV_LLVM_N{lanes}{letters}_{function}({vector})"'
    )
    return function, len(module.attributes) + 1
