"""The one place that owns indentation, names and the order of emitted statements."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ...errors import ProgramSizeError

#: Python's parser takes 100 levels of indentation; a function's body and loops over an array's axes
#: are some of them.
DEEPEST: Final = 90
#: Dtypes' names in kernels, which counters and constants would otherwise reach: ``i8``, ``c64``.
RESERVED = frozenset(
    ("b1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128")
)


class Line(str):
    """A line of text that knows what it is for."""

    __slots__ = ("origin",)
    origin: tuple[Any, ...]


@dataclass(eq=False, slots=True)
class Suite:
    """An indented suite: its header line, statements, and values known inside it.

    ``floor`` is the depth of the innermost suite around it, itself included, that may not run, or
    runs with changed storage (a branch, a loop over carries): values computed inside must not be
    moved out of that. ``comment`` is the last one.
    """

    header: str
    depth: int
    floor: int = 0
    lines: list[str | Suite] = field(default_factory=lambda: [])
    memo: dict[Any, str] = field(default_factory=dict[Any, str])
    comment: str = ""


class Writer:
    """Builds nested source. Statements go to the innermost scope, or to an outer one by depth.

    A statement sent to an outer scope lands before the suite that is open there: that is how
    values that do not depend on a loop's counter leave the loop.

    Attributes
    ----------
    origin : tuple
        What is being spelled; each line remembers it.
    """

    def __init__(self) -> None:
        self.scopes = [Suite("", 0)]
        self.depth_of: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self.origin: tuple[Any, ...] = ()

    @property
    def scope(self) -> Suite:
        """The innermost open scope."""
        return self.scopes[-1]

    @property
    def floor(self) -> int:
        """Depth of the innermost barrier: nothing computed now may leave it."""
        return self.scopes[-1].floor

    def fresh(self, prefix: str) -> str:
        """Return a new name."""
        n = self._counts.get(prefix, 0)
        while (name := f"{prefix}{n}") in RESERVED:
            n += 1
        self._counts[prefix] = n + 1
        return name

    def line(self, text: str) -> None:
        """Add a statement to the innermost scope."""
        self.scope.lines.append(self._marked(text))

    def _marked(self, text: str) -> Line:
        line = Line(text)
        line.origin = self.origin
        return line

    @contextmanager
    def spelling(self, *origin: Any) -> Generator[None, None, None]:
        """Say what the lines of the block are for."""
        outer, self.origin = self.origin, origin
        yield
        self.origin = outer

    def note(self, comment: str) -> None:
        """Add a comment, unless the scope's last comment says the same."""
        if self.scope.comment != comment:
            self.scope.comment = comment
            self.line(comment)

    def declare(self, name: str) -> str:
        """Note that a name is defined in the innermost scope."""
        self.depth_of[name] = self.scope.depth
        return name

    def assign(self, text: str, depth: int | None = None, prefix: str = "t") -> str:
        """Bind an expression to a new name, in the scope at ``depth``; return the name."""
        depth = self.scope.depth if depth is None else max(depth, self.floor)
        name = self.fresh(prefix)
        self.scopes[depth].lines.append(self._marked(f"{name} = {text}"))
        self.depth_of[name] = depth
        return name

    def remember(self, key: Any, name: str, depth: int | None = None) -> None:
        """Note that ``name`` holds the value ``key`` from the scope at ``depth`` inwards."""
        depth = self.scope.depth if depth is None else max(depth, self.floor)
        self.scopes[depth].memo[key] = name

    def recall(self, key: Any) -> str | None:
        """Return the name that holds a value, if it is known here."""
        for scope in reversed(self.scopes):
            if (known := scope.memo.get(key)) is not None:
                return known
        return None

    @contextmanager
    def block(self, header: str, *, barrier: bool = False) -> Generator[Suite, None, None]:
        """Open a suite; it joins its parent when closed.

        Raises
        ------
        ProgramSizeError
            Suites are nested deeper than they can be written.
        """
        depth = self.scope.depth + 1
        if depth > DEEPEST and barrier:
            at = next((s.comment for s in reversed(self.scopes) if s.comment), "").lstrip("# ")
            raise ProgramSizeError(
                f"compile: branches and loops are nested {depth} deep at {at}: a kernel has room "
                f"for {DEEPEST}. Write levels that repeat as one lax.while_loop or lax.fori_loop, "
                "or branches of branches as one lax.switch on a number."
            )
        scope = Suite(self._marked(header), depth, depth if barrier else self.floor)
        self.scopes.append(scope)
        yield scope
        self.scopes.pop()
        self.scope.lines.append(scope)

    def render(self, indent: int = 1) -> str:
        """Return the source of the outermost scope's statements."""
        rows = _rows(self.scopes[0], indent, [])
        return "".join(f"{'    ' * level}{line}\n" for level, line in rows)

    def origins(self) -> tuple[tuple[Any, ...], ...]:
        """Return what each line of the source is for."""
        rows = _rows(self.scopes[0], 0, [])
        return tuple(line.origin if isinstance(line, Line) else () for _, line in rows)


def _rows(scope: Suite, level: int, rows: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Append the lines of a suite to rows, each with its level of indentation; return them."""
    if not any(isinstance(x, Suite) or not x.startswith("#") for x in scope.lines):
        rows.append((level, "pass"))
    for item in scope.lines:
        if isinstance(item, Suite):
            rows.append((level, item.header))
            _rows(item, level + 1, rows)
        else:
            rows.append((level, item))
    return rows
