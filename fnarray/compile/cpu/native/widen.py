"""Straight LLVM text of numbers, as text of vectors: every number in it becomes so many."""

from __future__ import annotations

import re
from typing import Final

#: What there is in a line: names of results and operands, functions, constants, types, words.
_TOKEN: Final = re.compile(r"[%@][\w.$~]+|-?\d[\w.+]*|\w+|[^\w%@]")
_TYPE: Final = re.compile(r"float|double|i\d+")
_CONSTANT: Final = re.compile(r"-?\d[\w.+]*|true|false")
#: Instructions whose operands are numbers, and whose results are.
_PLAIN: Final = frozenset(
    (
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "add", "sub", "mul", "and", "or", "xor", "shl"),
        *("ashr", "lshr", "icmp", "fcmp", "select", "bitcast", "fpext", "fptrunc", "sitofp"),
        *("uitofp", "sext", "zext", "trunc", "ret"),
    )
)
#: Functions of LLVM that take vectors, and that it has instructions for.
_INTRINSIC: Final = re.compile(
    r"@(llvm\.(?:sqrt|floor|ceil|trunc|fabs|roundeven|minimum|maximum|copysign|fma"
    r"|ctpop|[su]min|[su]max|fpto[su]i\.sat))((?:\.[fi]\d+)+)"
)

Declared = dict[str, tuple[str, tuple[str, ...]]]


def widened(text: str, lanes: int) -> tuple[str, Declared] | None:
    """Return text on vectors and the functions that it calls; None where it is not all numbers."""
    declared: Declared = {}
    lines: list[str] = []
    for line in text.splitlines():
        before, _, instruction = line.rpartition(" = ")
        word = instruction.partition(" ")[0]
        if word not in _PLAIN and word != "call":
            return None
        wide = _wide(instruction, lanes, declared)
        if wide is None:
            return None
        lines.append(f"{before} = {wide}" if before else wide)
    return "\n".join(lines), declared


def _wide(instruction: str, lanes: int, declared: Declared) -> str | None:
    out: list[str] = []
    kinds: list[str] = []
    name = ""
    for token in _TOKEN.findall(instruction):
        if _TYPE.fullmatch(token):
            kinds.append(f"<{lanes} x {token}>")
            out.append(kinds[-1])
        elif token.startswith("@"):
            known = _INTRINSIC.fullmatch(token)
            if known is None:
                return None
            name = known[1] + known[2].replace(".", f".v{lanes}")
            out.append(f"@{name}")
        elif _CONSTANT.fullmatch(token):
            out.append(f"splat ({kinds[-1].partition(' x ')[2][:-1]} {token})")
        else:
            out.append(token)
    if name:
        declared[name] = kinds[0], tuple(kinds[1:])
    return "".join(out)
