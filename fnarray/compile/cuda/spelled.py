"""Scalar texts as functions for Numba: each instruction of a template is a line of Python.

What a template of `fnarray_kernels` is for the two compilers, this is for who has `numba-cuda`
alone. Integers are signed, as LLVM's have no sign; what takes them without one says so.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from fnarray_kernels._ir import Template

from ...errors import UnsupportedOnTarget
from .prelude import CODE

_CODES: Final = {
    "float": "f32", "double": "f64", "i1": "b1", "i8": "i8", "i16": "i16", "i32": "i32",
    "i64": "i64",
}  # fmt: skip
_OPERATORS: Final = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "ashr": ">>",
}  # fmt: skip
_UNSIGNED: Final = {"lshr": ">>", "udiv": "//", "urem": "%"}
_ORDERS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
#: LLVM's functions that have a helper, or a function of Python's, by name.
_CALLS: Final = {
    "sqrt": "root", "floor": "down", "ceil": "up", "trunc": "whole", "roundeven": "nearest",
    "fabs": "abs", "minimum": "least", "maximum": "greatest", "copysign": "math.copysign",
    "fma": "cuda.fma", "smin": "min", "smax": "max",
    "exp": "math.exp", "log": "math.log", "sin": "math.sin", "cos": "math.cos", "pow": "math.pow",
}  # fmt: skip
_NAME: Final = re.compile(r"%~(\w+)")


def function_of(name: str, template: Template, kinds: Sequence[np.dtype | int]) -> tuple[str, ...]:
    """Return a template as lines of a function, of the arguments that are no literals.

    Raises
    ------
    UnsupportedOnTarget
        It holds an instruction that Numba has no word for.
    """
    speller = _Speller()
    given = {chr(97 + k): kind for k, kind in enumerate(kinds) if isinstance(kind, np.dtype)}
    signed = [f"{p} = i{8 * d.itemsize}({p})" for p, d in given.items() if d.kind == "u"]
    lines = [speller.line(x) for x in template.body.splitlines()]
    result = speller.operand(template.result, CODE[template.dtype])
    if template.dtype.kind != "b" and not result.startswith(CODE[template.dtype]):
        result = f"{CODE[template.dtype]}({result})"
    body = [*signed, *filter(None, lines), f"return {result}"]
    return (f"def {name}({', '.join(given)}):", *(f"    {x}" for x in body))


class _Speller:
    """Spells the instructions of one template."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}  # of tables, by what points there

    def line(self, text: str) -> str:
        """Return an instruction as an assignment; nothing for one that others take in."""
        target, _, instruction = text.partition(" = ")
        value = self._value(instruction, target)
        return f"t{target[2:]} = {value}" if value else ""

    def operand(self, text: str, code: str) -> str:
        """Return an operand of a type."""
        if found := _NAME.fullmatch(text):
            name = found[1]
            return name if name.isalpha() else f"t{name}"
        if text in ("true", "false"):
            return text.capitalize()
        if text.startswith("0x"):
            number = struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
            return f"{code}({number!r})"
        return f"{code}({text})"

    def _value(self, text: str, target: str) -> str:
        name, *words = text.replace(" reassoc nsz", "").split(" ")
        rest = " ".join(w for w in words if w not in ("nsw", "nuw", "exact"))
        match name:
            case "call":
                return self._call(rest)
            case "getelementptr":
                _, table, _, index = rest.split(", ")
                at = self.operand(index.removeprefix("i64 "), "i64")
                self._places[target] = f"{_table(table.removeprefix('ptr @'))}[{at}]"
                return ""
            case "load":
                return self._places[rest.split("ptr ")[1]]
            case "select":
                parts = [x.partition(" ") for x in rest.split(", ")]
                test, yes, no = (self.operand(v, _CODES[k]) for k, _, v in parts)
                return f"{yes} if {test} else {no}"
            case "icmp" | "fcmp":
                return self._compared(name, rest)
            case "fneg":
                return f"-{self._operands(rest)[1][0]}"
        if " to " in rest:
            return self._converted(name, rest)
        return self._operation(name, rest)

    def _operands(self, text: str) -> tuple[str, list[str]]:
        """Return the code of ``type a, b, ...``, and the operands."""
        kind, _, operands = text.partition(" ")
        return _CODES[kind], [self.operand(x, _CODES[kind]) for x in operands.split(", ")]

    def _operation(self, name: str, text: str) -> str:
        code, (a, b) = self._operands(text)
        if code == "b1":
            return f"{a} {'!=' if name == 'xor' else _OPERATORS[name]} {b}"
        if name in _OPERATORS:
            return f"{code}({a} {_OPERATORS[name]} {b})"
        if name in _UNSIGNED:
            return f"{code}({_bare(code, a)} {_UNSIGNED[name]} {_bare(code, b)})"
        named = {"sdiv": "quotient", "srem": "rest_of", "frem": "rest_of_floats"}.get(name)
        if named is None:
            raise UnsupportedOnTarget(f"Numba has no word for LLVM's {name}")
        return f"{code}({named}({a}, {b}))"

    def _compared(self, name: str, text: str) -> str:
        how, _, rest = text.partition(" ")
        code, (a, b) = self._operands(rest)
        sign = _ORDERS[how[-2:]]
        if name == "icmp" and how[0] == "u":
            a, b = _bare(code, a), _bare(code, b)
        return f"{a} {sign} {b}"

    def _converted(self, name: str, text: str) -> str:
        source, _, kind = text.rpartition(" to ")
        new, (old, (x,)) = _CODES[kind], self._operands(source)
        if name == "bitcast":
            return f"{new}_of_{old}({x})"
        if new == "b1":
            return f"({x} & 1) != 0"
        if name in ("uitofp", "zext") and old != "b1":
            return f"{new}({_bare(old, x)})"
        if name == "fptoui":
            return f"{new}(u{new[1:]}({x}))"
        if name == "sext" and old == "b1":
            return f"-{new}({x})"
        return f"{new}({x})"

    def _call(self, text: str) -> str:
        found = re.fullmatch(r"(\w+) @llvm\.([\w.]+)\((.*)\)", text)
        if found is None:
            raise UnsupportedOnTarget(f"Numba has no word for {text}")
        code, full = _CODES[found[1]], found[2]
        name = full.split(".")[0]
        parts = [x.partition(" ") for x in found[3].split(", ")]
        args = [self.operand(v, _CODES[k]) for k, _, v in parts]
        if name in ("fptosi", "fptoui"):
            return self._clipped(code, args[0], name == "fptosi")
        if name in ("umin", "umax"):
            return f"{code}({name[1:]}({', '.join(_bare(code, a) for a in args)}))"
        if name == "ctpop":
            return f"{code}(cuda.popc({_bare(code, args[0])}))"
        if name == "ctlz":
            return f"{code}(zeros_before({_bare(code, args[0])}) - {64 - int(code[1:])})"
        if name not in _CALLS:
            raise UnsupportedOnTarget(f"Numba has no word for LLVM's {name}")
        return f"{code}({_CALLS[name]}({', '.join(args)}))"

    def _clipped(self, code: str, x: str, signed: bool) -> str:
        bits = int(code[1:])
        if signed:
            return f"{code}(clipped({x}, {-(2.0 ** (bits - 1))}, {2.0 ** (bits - 1) - 1}))"
        if bits == 64:
            raise UnsupportedOnTarget("Numba has no word for floats as unsigned of 64 bits")
        return f"{code}(clipped({x}, 0.0, {2.0**bits - 1}))"


def _bare(code: str, x: str) -> str:
    """Return an integer as one without a sign."""
    return f"u{code[1:]}({x})"


def _table(name: str) -> str:
    return f"table_{name.rpartition('.')[2]}"


def tables_of(template: Template) -> dict[str, np.ndarray]:
    """Return the tables that a template reads, by the names that its lines have for them."""
    return {_table(name): table for name, table in template.tables.items()}
