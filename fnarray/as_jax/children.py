"""Processes that a program starts by ``multiprocessing``: jax is fnarray in them, too.

One that is forked has what its parent has. One that is spawned begins anew, and would import the
real jax with the program's main module, before anything of the program could say otherwise.
"""

from __future__ import annotations

from importlib import import_module
from multiprocessing import forkserver, spawn
from typing import Any

__all__ = ["prepare"]

_STAND_IN = __name__.rpartition(".")[0]


class _StandIn:
    """Unpickled, the module that stands in for jax: imported where it is read."""

    def __reduce__(self) -> Any:
        return import_module, (_STAND_IN,)


def prepare() -> None:
    """Let what a new process is told first begin with standing in for jax."""
    told = spawn.get_preparation_data
    if getattr(told, "stands_in", False):
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        # Read whole before any of it is acted on, and in order: keys that are not known are left.
        return {_STAND_IN: _StandIn(), **told(name)}

    get_preparation_data.stands_in = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data
    # A server of forks imports the main module, if that is to be preloaded, ahead of all others:
    # each fork imports it itself, then.
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    preloaded = [m for m in server._preload_modules if m not in ("__main__", _STAND_IN)]
    forkserver.set_forkserver_preload([_STAND_IN, *preloaded])
