"""Kernels that differ in what element they read, or in a constant, as one text with arguments.

A loop of Python's over steps or layers reads ``u[0]``, ``u[1]``, ... and has a number for each:
with these in the text each turn's kernel was one of its own. Ten steps of a particle filter were
nine kernels for LLVM, 200 ms each, and are one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ..text import KernelSource
from .source import Kernel

#: Kernels of one form, from so many on, of at least so many letters: each argument costs a call
#: some 20 ns. More of them than that are not worth it.
_KERNELS: Final = 3
_LETTERS: Final = 300
_MOST: Final = 24
#: A place in an array that is only read, or what is added to an index there; and a constant.
_NUMBER: Final = re.compile(
    r"\bx\d+\[(\d+)\]|\bx\d+\[u\([^\[\]()]* \+ (\d+)\)\]|^    c\d+ = f32\(([^()]+)\)$", re.M
)
_PLACE, _ADDED, _CONSTANT = 1, 2, 3
_OURS: Final = re.compile(r"\bo\d")
_WRITTEN: Final = re.compile(r"^ *(x\d+)\[", re.M)


def alike(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return kernels in which those of one form are one text, and what differs are arguments."""
    forms: defaultdict[Any, list[int]] = defaultdict(list)
    numbers = [_numbers(k.source.text) for k in kernels]
    for k, kernel in enumerate(kernels):
        text = kernel.source.text
        if numbers[k] and len(text) >= _LETTERS and not _OURS.search(text):
            forms[_form(kernel, numbers[k])].append(k)
    made = list(kernels)
    for members in forms.values():
        values = [[m[m.lastindex or 0] for m in numbers[k]] for k in members]
        several = len({tuple(v) for v in values}) >= _KERNELS
        # What is the same at two places of each kernel is one argument.
        columns = list(zip(*values, strict=True))
        differing = dict.fromkeys(c for c in columns if len({*c}) > 1)
        if several and len(differing) <= _MOST:
            for j, k in enumerate(members):
                made[k] = _given(kernels[k], numbers[k], columns, j, differing)
    return made


def _numbers(text: str) -> list[re.Match[str]]:
    """Return the numbers of a text that might be arguments."""
    # Where an array is written as well, what is read may be what was written.
    written = {*_WRITTEN.findall(text)}
    return [m for m in _NUMBER.finditer(text) if m[0].partition("[")[0] not in written]


def _form(kernel: Kernel, numbers: list[re.Match[str]]) -> tuple[Any, ...]:
    """Return what kernels have in common that differ in numbers alone."""
    pieces: list[str] = []
    at, text = 0, kernel.source.text
    for m in numbers:
        pieces.append(text[at : m.start(m.lastindex or 0)])
        at = m.end(m.lastindex or 0)
    code = "".join([*(f"{x}\0" for x in pieces), text[at:]])
    # Comments name the user's lines, of which two turns may have different ones.
    lines = (line for line in code.splitlines() if not line.lstrip().startswith("#"))
    return "\n".join(lines), kernel.source.signature, kernel.folds


def _given(
    kernel: Kernel,
    numbers: list[re.Match[str]],
    columns: list[tuple[str, ...]],
    member: int,
    differing: dict[tuple[str, ...], None],
) -> Kernel:
    """Return a kernel with the numbers that differ as its last arguments."""
    source, at = kernel.source, 0
    pieces: list[str] = []
    arguments: dict[tuple[tuple[str, ...], bool], str] = {}
    for m, column in zip(numbers, columns, strict=True):
        if column not in differing:
            continue
        kind = m.lastindex or 0
        name = arguments.setdefault((column, kind == _CONSTANT), f"o{len(arguments)}")
        pieces += source.text[at : m.start(kind)], f"u({name})" if kind == _PLACE else name
        at = m.end(kind)
    text = "".join([*pieces, source.text[at:]])
    text = text.replace("):", f", {', '.join(arguments.values())}):", 1)
    constants = [constant for _, constant in arguments]
    given = (float(c[member]) if constant else int(c[member]) for c, constant in arguments)
    codes = ("f32" if constant else "i64" for constant in constants)
    return replace(
        kernel,
        source=KernelSource(text, (*source.signature, *codes)),
        scalars=(*kernel.scalars, *given),
    )
