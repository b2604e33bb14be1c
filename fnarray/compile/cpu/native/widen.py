"""Straight LLVM text of numbers, as text of vectors: every number in it becomes so many.

No regular expressions: to compile them takes longer than to read a kernel of ten operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Types of numbers, and how many bytes each takes in memory.
BYTES: Final = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8}
#: Instructions whose operands are numbers, and whose results are.
PLAIN: Final = frozenset(
    (
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "add", "sub", "mul", "and", "or", "xor", "shl"),
        *("ashr", "lshr", "icmp", "fcmp", "select", "bitcast", "fpext", "fptrunc", "sitofp"),
        *("uitofp", "fptosi", "fptoui", "sext", "zext", "trunc", "ret", "call"),
    )
)
#: Functions of LLVM that take vectors, and that it has instructions for.
_INTRINSICS: Final = frozenset(
    (
        *("sqrt", "floor", "ceil", "trunc", "fabs", "roundeven", "minimum", "maximum", "copysign"),
        *("fma", "ctpop", "smin", "smax", "umin", "umax", "fptosi.sat", "fptoui.sat"),
    )
)

Declared = dict[str, tuple[str, tuple[str, ...]]]


def widened(text: str, lanes: int) -> tuple[str, Declared] | None:
    """Return text on vectors and the functions that it calls; None where it is not all numbers."""
    declared: Declared = {}
    lines: list[str] = []
    for line in text.splitlines():
        before, _, instruction = line.rpartition(" = ")
        wide = of_vectors(words_of(instruction), lanes, declared)
        if wide is None:
            return None
        lines.append(f"{before} = {wide}" if before else wide)
    return "\n".join(lines), declared


def words_of(instruction: str) -> list[str]:
    """Return the names, types, constants and signs of an instruction."""
    for sign in ",()":
        instruction = instruction.replace(sign, f" {sign} ")
    return instruction.split()


def of_vectors(
    words: list[str],
    lanes: int,
    declared: Declared,
    operand: Callable[[str, str], str] = lambda name, kind: name,
) -> str | None:
    """Return an instruction on vectors; None where there is none.

    Parameters
    ----------
    declared : dict
        Is told of the functions that it calls.
    operand : callable
        Gives what stands for the name of a number of a type.
    """
    if words[0] not in PLAIN:
        return None
    out: list[str] = []
    kinds: list[str] = []
    name = ""
    for word in words:
        if word in BYTES:
            kinds.append(word)
            out.append(f"<{lanes} x {word}>")
        elif word[0] == "@":
            name = _function(word[1:], lanes)
            if not name:
                return None
            out.append(f"@{name}")
        elif word[0] == "%":
            out.append(operand(word, kinds[-1]))
        elif word[0] in "-0123456789" or word in ("true", "false"):
            out.append(f"splat ({kinds[-1]} {word})")
        else:
            out.append(word)
    if name:
        wide = [f"<{lanes} x {kind}>" for kind in kinds]
        declared[name] = wide[0], tuple(wide[1:])
    return " ".join(out)


def _function(name: str, lanes: int) -> str:
    """Return the name of a function of LLVM for vectors; nothing where there is none."""
    head, *parts = name.split(".")
    kinds = [part for part in parts if part[1:].isdigit()]
    if head != "llvm" or ".".join(parts[: len(parts) - len(kinds)]) not in _INTRINSICS:
        return ""
    return ".".join((head, *parts[: len(parts) - len(kinds)], *(f"v{lanes}{k}" for k in kinds)))
