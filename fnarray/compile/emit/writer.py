"""The one place that owns indentation, names and the order of emitted statements."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

#: Dtypes' names in kernels, which counters and constants would otherwise reach: ``i8``, ``c64``.
RESERVED = frozenset(
    ("b1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128")
)


@dataclass(eq=False, slots=True)
class Suite:
    """An indented suite: its header line, statements, and values known inside it.

    ``barrier`` marks a suite that may not run, or runs with changed storage (a branch, a loop
    over carries): values computed inside must not be moved out of it.
    """

    header: str
    depth: int
    barrier: bool = False
    lines: list[str | Suite] = field(default_factory=lambda: [])
    memo: dict[Any, str] = field(default_factory=dict[Any, str])


class Writer:
    """Builds nested source. Statements go to the innermost scope, or to an outer one by depth.

    A statement sent to an outer scope lands before the suite that is open there: that is how
    values that do not depend on a loop's counter leave the loop.
    """

    def __init__(self) -> None:
        self.scopes = [Suite("", 0, barrier=True)]
        self.depth_of: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    @property
    def scope(self) -> Suite:
        """The innermost open scope."""
        return self.scopes[-1]

    @property
    def floor(self) -> int:
        """Depth of the innermost barrier: nothing computed now may leave it."""
        return next(s.depth for s in reversed(self.scopes) if s.barrier)

    def fresh(self, prefix: str) -> str:
        """Return a new name."""
        n = self._counts.get(prefix, 0)
        while f"{prefix}{n}" in RESERVED:
            n += 1
        self._counts[prefix] = n + 1
        return f"{prefix}{n}"

    def line(self, text: str) -> None:
        """Add a statement to the innermost scope."""
        self.scope.lines.append(text)

    def note(self, comment: str) -> None:
        """Add a comment, unless the scope's last comment says the same."""
        for item in reversed(self.scope.lines):
            if isinstance(item, str) and item.startswith("#"):
                if item == comment:
                    return
                break
        self.line(comment)

    def declare(self, name: str) -> str:
        """Note that a name is defined in the innermost scope."""
        self.depth_of[name] = self.scope.depth
        return name

    def assign(self, text: str, depth: int | None = None, prefix: str = "t") -> str:
        """Bind an expression to a new name, in the scope at ``depth``; return the name."""
        depth = self.scope.depth if depth is None else max(depth, self.floor)
        name = self.fresh(prefix)
        self.scopes[depth].lines.append(f"{name} = {text}")
        self.depth_of[name] = depth
        return name

    def remember(self, key: Any, name: str, depth: int | None = None) -> None:
        """Note that ``name`` holds the value ``key`` from the scope at ``depth`` inwards."""
        depth = self.scope.depth if depth is None else max(depth, self.floor)
        self.scopes[depth].memo[key] = name

    def recall(self, key: Any) -> str | None:
        """Return the name that holds a value, if it is known here."""
        for scope in reversed(self.scopes):
            if key in scope.memo:
                return scope.memo[key]
        return None

    @contextmanager
    def block(self, header: str, *, barrier: bool = False) -> Generator[Suite, None, None]:
        """Open a suite; it joins its parent when closed."""
        scope = Suite(header, self.scope.depth + 1, barrier)
        self.scopes.append(scope)
        yield scope
        self.scopes.pop()
        self.scope.lines.append(scope)

    def render(self, indent: int = 1) -> str:
        """Return the source of the outermost scope's statements."""
        out: list[str] = []

        def walk(scope: Suite, level: int) -> None:
            pad = "    " * level
            if not any(isinstance(x, Suite) or not x.startswith("#") for x in scope.lines):
                out.append(pad + "pass")
            for item in scope.lines:
                if isinstance(item, Suite):
                    out.append(pad + item.header)
                    walk(item, level + 1)
                else:
                    out.append(pad + item)

        walk(self.scopes[0], indent)
        return "\n".join(out) + "\n"
