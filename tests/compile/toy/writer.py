"""Statements in C's syntax, over the one writer's scopes."""

from __future__ import annotations

import re

from fnarray.compile.emit.writer import Suite, Writer

_LOOP = re.compile(r"for (\w+) in range\((\w+)\):")
_TEST = re.compile(r"if (.+):")


class CWriter(Writer):
    """Renders scopes as C: braces, semicolons, a type at the first assignment."""

    def render(self, indent: int = 1) -> str:
        """Return the source of the outermost scope's statements."""
        self._declared: set[str] = set()
        out: list[str] = []
        self._suite(self.scopes[0], indent, out)
        return "\n".join(out) + "\n"

    def _suite(self, scope: Suite, level: int, out: list[str]) -> None:
        pad = "    " * level
        for item in scope.lines:
            if isinstance(item, Suite):
                out.append(f"{pad}{self._header(item.header)} {{")
                self._suite(item, level + 1, out)
                out.append(f"{pad}}}")
            elif item.startswith("#"):
                out.append(f"{pad}//{item[1:]}")
            else:
                out.append(f"{pad}{self._statement(item)};")

    def _header(self, header: str) -> str:
        if loop := _LOOP.fullmatch(header):
            i, n = loop.groups()
            return f"for (long {i} = 0; {i} < {n}; {i}++)"
        test = _TEST.fullmatch(header)
        assert test is not None
        return f"if ({test[1].replace(' and ', ' && ')})"

    def _statement(self, text: str) -> str:
        name, _, _ = text.partition(" = ")
        if name.isidentifier() and name not in self._declared:
            self._declared.add(name)
            return f"auto {text}"
        return text
