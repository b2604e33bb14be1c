"""What is said of names of JAX that fnarray has not."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

PAGE = "docs/how-to/run-a-jax-library.md"


def _surfaces() -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules imported under names of JAX."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "jax" and not name.startswith("jax._") and module:
            yield name, module


def nearest(name: str) -> str | None:
    """Return the public name that is most like one that there is not, in full."""
    module, _, last = name.rpartition(".")
    offered: dict[str, str] = {}
    for surface, found in sorted(_surfaces(), key=lambda pair: pair[0] == module):
        offered |= {n: f"{surface}.{n}" for n in dir(found) if not n.startswith("_")}
    if last in offered:
        return offered[last]
    own = [n for n, full in offered.items() if full.rpartition(".")[0] == module]
    # Of other modules a name must be more like it: there are two thousand.
    close = difflib.get_close_matches(last, own, 1) or difflib.get_close_matches(
        last, offered, 1, 0.8
    )
    return offered[close[0]] if close else None


def _reason(name: str) -> str | None:
    """Return what a module says of a name that it left out."""
    module, _, last = name.rpartition(".")
    get = getattr(sys.modules.get(module), "__getattr__", None)
    return getattr(get, "reasons", {}).get(last)


def advice(name: str) -> str:
    """Say that a name is missing, why or what is like it, and where to read on."""
    if why := _reason(name):
        return f"fnarray, which stands in for jax, has no {name}: {why}. See {PAGE}."
    like = nearest(name)
    instead = f" The nearest name there is {like}." if like else ""
    return f"fnarray, which stands in for jax, has no {name}.{instead} See {PAGE}."


class NoSuchName(AttributeError):
    """A name that JAX may have and fnarray has not.

    Its text is made when it is read: libraries ask by the hundred whether a name is there.
    """

    def __str__(self) -> str:
        return advice(self.args[0])


class NoSuchModule(ModuleNotFoundError):
    """A module, or what else ``from jax import`` asks for, that fnarray has not."""

    def __str__(self) -> str:
        return advice(self.args[0])


def watch(name: str, module: ModuleType) -> None:
    """Let a module say what is missing under JAX's name for it."""
    get = getattr(module, "__getattr__", None)
    if getattr(get, "watches", False):
        return

    def getattr_of(attribute: str) -> Any:
        if get is not None:
            try:
                return get(attribute)
            except AttributeError:
                pass
        raise NoSuchName(f"{name}.{attribute}", name=attribute, obj=module)

    getattr_of.watches = True  # type: ignore[attr-defined]
    getattr_of.reasons = getattr(get, "reasons", {})  # type: ignore[attr-defined]
    module.__getattr__ = getattr_of  # type: ignore[method-assign]
