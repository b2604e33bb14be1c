"""What a rule is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..findings import Finding, Place

#: What the digits of a code begin with, and the group they stand for.
GROUPS = {
    "0": "tool",
    "1": "writes",
    "2": "reads",
    "30": "nondeterminism",
    "31": "io",
    "4": "iterators",
    "5": "dynamic",
    "6": "tracing",
}
RULES: dict[str, type[LintRule]] = {}


class LintRule:
    """An effect that the checker refuses: one class, one code, one page of the reference.

    ``watches`` are the functions and objects that break it, by dotted name, or the beginning of one
    up to a dot; ``spares`` those under such a name that do no harm. To call one is the effect, or,
    ``on_sight``, to name it. ``message`` and ``repair`` are formatted with ``name``, the offender
    as the user spells it, and ``what``, the operation; ``bad`` and ``good`` are whole programs, the
    first fires and the second is silent. ``repairs`` are those of names that need another one.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    message: ClassVar[str]
    repair: ClassVar[str]
    why: ClassVar[str]
    bad: ClassVar[str]
    good: ClassVar[str]
    group: ClassVar[str]
    watches: ClassVar[str] = ""
    spares: ClassVar[str] = ""
    on_sight: ClassVar[bool] = False
    repairs: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        if cls.code in RULES:
            raise TypeError(f"{cls.__name__} and {RULES[cls.code].__name__} share {cls.code}")
        digits = cls.code.removeprefix("FNA")
        cls.group = next(group for start, group in GROUPS.items() if digits.startswith(start))
        RULES[cls.code] = cls

    @classmethod
    def at(
        cls,
        place: Place,
        *,
        name: str = "",
        what: str = "",
        source: str = "",
        path: tuple[str, ...] = (),
    ) -> Finding:
        """Return the finding of this rule at `place`."""
        words = {"name": name, "what": what or name}
        return Finding(
            cls.code,
            cls.name,
            cls.message.format_map(words),
            (cls.repairs.get(name) or cls.repairs.get(what) or cls.repair).format_map(words),
            place.file,
            place.line,
            place.column,
            place.end_line,
            place.end_column,
            source,
            path,
        )
