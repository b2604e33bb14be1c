"""Programs that an earlier process traced: found by what the function is, before it is traced.

A record is kept for a function that the purity checker accepts and that can be told by content to
the end (`content`); its key is that content, the signature, the settings that tracing reads, and
what the cache adds: versions, processor, the package's own sources. Everything else is traced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import optree

from ..compile.cache import programs
from ..compile.cache.key import version
from ..compile.cpu.key import makers
from ..compile.cpu.program import Program, program_of, run_of
from ..config import SETTINGS, config
from ..control.signature import Signature
from ..control.tracing import Traced
from ..core.array import ArrayImpl
from ..core.avals import ShapedArray
from ..core.ref import AbstractRef
from ..purity.guards import Guards
from ..runtime.dispatch import executable, returning, watchers
from ..threads.cores import available_cores
from .content import Content, Unproven

#: Settings under which all is traced: they check, or tell, what happens while it is.
_WATCHING: Final = (
    "disable_jit", "check_determinism", "check_tracer_leaks", "debug_nans", "debug_infs",
    "enable_checks", "verify", "log_compiles", "explain_cache_misses",
)  # fmt: skip
_TRACED: Final = tuple(name for name, row in SETTINGS.items() if row.affects_tracing)
_MOST_BYTES: Final = 1 << 20


class _Record(NamedTuple):
    """What is kept: the program, what it captured, and what it returns.

    ``versions`` are those of packages that took part and are not in every key.
    """

    program: Program
    consts: tuple[Any, ...]
    out_avals: tuple[ShapedArray, ...]
    out_spec: Any
    versions: tuple[tuple[str, str], ...]


class Recorder:
    """Looks a function's program up, and keeps what is made where there is none."""

    __slots__ = ("_content", "_key")

    def __init__(self, fun: Callable[..., Any], signature: Signature) -> None:
        self._content = Content()
        self._key: str | None = None
        if (
            config.effects != "error"
            or config.recheck != "off"
            or watchers  # who are told of programs as they are compiled
            or any(getattr(config, name) for name in _WATCHING)
        ):
            return
        try:
            self._key = _key(self._content, fun, signature)
        except (Unproven, RecursionError):
            return

    def found(self) -> tuple[Callable[..., Any], Guards] | None:
        """Return what calls the recorded program, and guards of what it depends on."""
        if self._key is None:
            return None
        record = programs.get(self._key)
        if type(record) is not _Record or any(version(n) != v for n, v in record.versions):
            return None
        try:
            run = run_of(record.program)
        except LookupError:
            return None
        run = partial(run, *record.consts) if record.consts else run
        return returning(run, record.out_avals, record.out_spec), self._content.guards

    def keep(self, t: Traced) -> None:
        """Record the program of a trace, if another process may use it."""
        from ..purity.resolver import trusts

        if self._key is None or t.verdict is None or t.verdict.findings or trusts():
            return
        compiled = executable(t.closed)
        program = program_of(compiled.source, compiled.labels)
        captured = [c._data for c in t.consts if type(c) is ArrayImpl]
        if program is None or len(captured) < len(t.consts) or not self._content.guards.holds():
            return
        if sum(x.nbytes for x in captured) > _MOST_BYTES or not _is_plain(t.out_spec):
            return
        versions = tuple((n, version(n)) for n in ("opt_einsum", "scipy") if n in sys.modules)
        record = _Record(program, tuple(captured), t.out_avals, t.out_spec, versions)
        programs.put(self._key, record, makers())


def _key(content: Content, fun: Callable[..., Any], signature: Signature) -> str:
    spec, avals, statics = signature
    if not _is_plain(spec):
        raise Unproven("an argument of a class")
    if AbstractRef in map(type, avals):
        raise Unproven("a Ref, which the program writes to")
    content.add(
        (
            sys.version,
            optree.__version__,
            available_cores(),  # what `devices()` is made of
            tuple((name, repr(getattr(config, name))) for name in _TRACED),
            repr(np.get_printoptions()),  # what texts of arrays are made with
            repr(spec),
            tuple((a.shape, a.dtype, a.weak_type) for a in avals),
            tuple((where, kind.__name__, value) for where, kind, value in statics),
            fun,
        )
    )
    return content.digest()


def _is_plain(spec: Any) -> bool:
    """Say whether a structure is of tuples, lists, and dicts by text or numbers alone."""
    kind = spec.type
    if kind is dict and not all(type(key) in (str, int) for key in spec.entries()):
        return False
    known = kind in (None, tuple, list, dict, type(None))
    return known and all(map(_is_plain, spec.children()))
