"""Names that are imported when they are first used (PEP 562): what surfaces are made of."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import resolve_name
from typing import Any, Final

from .keep import forget_all
from .uncollected import importing

#: When this process came to load the package: what changed since may not be what it runs.
BEGUN: Final = time.time_ns()
#: What imports run in: set by `core.trace`, since a first use may fall inside of a trace, of which
#: the arrays that a module makes are no part.
outside: list[Callable[[], AbstractContextManager[Any]]] = [nullcontext]
#: The modules that names of surfaces come from, by surface.
_homes: dict[str, dict[str, str]] = {}
#: Surfaces whose dictionaries somebody has.
_handed_out: set[str] = set()
#: What surfaces say their names are, where they stand in for others: `array_api_compat`, and so
#: SciPy, knows whose functions it was given by the name ``jax.numpy``.
shown: dict[str, str] = {}
_names: Callable[[types.ModuleType], dict[str, Any]] = vars(types.ModuleType)["__dict__"].__get__


class Surface(types.ModuleType):
    """A package whose public functions are what programs are written in.

    To guard each of them would cost a program of twenty operations 0.2 us a call. They are as they
    were until somebody rebinds one, as ``mock.patch`` does: then all is traced again. Who asks for
    its dictionary may bind names there, and nobody is told: from then on each is guarded.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All its names, which may be bound anew from here on.

        SymPy's ``lambdify`` writes ``cos`` as ``math.cos`` where a module's dictionary has none.
        Completers, which look for one name and bind none, find those that have been used.
        """
        space = _names(self)
        package: str = space["__name__"]
        asks: str = sys._getframe(1).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
        if package not in _handed_out and asks.partition(".")[0] not in ("inspect", "jedi"):
            _handed_out.add(package)
            for name in _homes.get(package, ()):
                getattr(self, name)
            forget_all()
        return space

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What it is called, or stands in for."""
        name: str = _names(self)["__name__"]
        return shown.get(name, name)

    def __dir__(self) -> list[str]:
        return _names(self)["__dir__"]()

    def __setattr__(self, name: str, value: Any) -> None:
        before = _names(self).get(name, value)
        super().__setattr__(name, value)
        if before is not value:
            forget_all()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        forget_all()

    def __reduce__(self) -> tuple[Any, ...]:
        """By name, as cloudpickle does with modules, but not with their subclasses."""
        return import_module, (_names(self)["__name__"],)


def load(module: str, package: str | None = None) -> Any:
    """Import a module by name, outside of any trace in progress."""
    known = sys.modules.get(resolve_name(module, package) if package else module)
    if known is not None and not getattr(known.__spec__, "_initializing", False):
        return known
    with outside[-1](), importing():
        return import_module(module, package)


def surface(
    package: str,
    homes: Mapping[str, str],
    modules: str = "",
    missing: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping
        Public names, in words, by the module they come from, as the package would import it.
    modules : str
        Public submodules.
    missing : mapping, optional
        Names of JAX's that are not there, in words, by the reason, which is the error's text.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}
    home |= dict.fromkeys(modules.split(), "")
    reasons = {name: why for why, names in (missing or {}).items() for name in names.split()}
    sys.modules[package].__class__ = Surface
    space, _homes[package] = _names(sys.modules[package]), home

    def get(name: str) -> Any:
        if name not in home:
            why = f": {reasons[name]}." if name in reasons else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{why}")
        if is_listed(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            raise AttributeError(f"{package}.{name} has not been used: its kind is not known yet")
        if not home[name]:
            return load(f".{name}", package)
        found = space[name] = getattr(load(home[name], package), name)  # asked for once
        return found

    get.reasons = reasons  # type: ignore[attr-defined]  # for who says it in other words

    def listed() -> list[str]:
        # Parts of the package that something has imported are no names of it.
        own = {k for k, v in space.items() if not isinstance(v, types.ModuleType)}
        return sorted({*own.difference(("annotations",)), *home})

    return get, listed, sorted(home)


def is_listed(frame: types.FrameType) -> bool:
    """Say whether a completer asks for a name to show what kind of thing it is, in this frame.

    IPython's, which is jedi, and Python's own ask so for each name they list, and would import all
    that there is: 0.4 and 0.8 s for ``fnarray.``, where the list takes 0.03.
    """
    asks = frame.f_globals.get("__name__")
    if asks == "rlcompleter":
        return True
    if asks != "jedi.inference.compiled.access":
        return False
    above: types.FrameType | None = frame
    for _ in range(12):  # else jedi looks into what stands before a dot, which it may
        if above is None or above.f_code.co_name == "api_type":
            return above is not None
        above = above.f_back
    return False


def absent(module: str, missing: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module that says why names are not there.

    Parameters
    ----------
    module : str
        Its ``__name__``.
    missing : mapping
        Names, in words, by the reason, which is the error's text.
    """
    reasons = {name: why for why, names in missing.items() for name in names.split()}

    def get(name: str) -> Any:
        why = f": {reasons[name]}." if name in reasons else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{why}")

    get.reasons = reasons  # type: ignore[attr-defined]  # for who says it in other words
    return get


def is_handed_out(module: types.ModuleType) -> bool:
    """Say whether somebody has a surface's dictionary, and so may bind its names unseen."""
    return _names(module)["__name__"] in _handed_out


def is_own(package: str, name: str, value: Any) -> bool:
    """Say whether a surface's name stands for what its table says, not for what was put there."""
    module = _homes.get(package, {}).get(name)
    if module is None:
        return False
    if not module:
        return value is sys.modules.get(f"{package}.{name}")
    home = sys.modules.get(resolve_name(module, package))
    return home is not None and getattr(home, name, None) is value
