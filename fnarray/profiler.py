"""Profiles: where the time of a program goes, as a trace for Perfetto or a table.

While a profile is taken, what calls are made of is exchanged: the method that calls a jitted
function, and the names by which drivers call kernels, steps and threads. While none is taken
nothing of this is there to cost anything.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .api.arrays import live_arrays
from .api.jit import PjitFunction
from .api.stages import Compiled
from .api.tracing import named_scope
from .core import hooks
from .core.source import scoped
from .report.files import written
from .report.memory import profile
from .runtime.device import devices

__all__ = [
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "named_scope",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "summary",
    "trace",
]
__dir__ = __all__.copy

#: Names in a driver of what it calls: kernels, what adds up their parts, steps.
_CALLED = re.compile(r"(kernel|fold|h)\d+(_\d+)?|launch")
#: What is shown in which colour: names of kinds as the trace has them.
_KIND = {"kernel": "kernel", "fold": "kernel", "h": "library", "launch": "threads"}


@dataclass(slots=True)
class _Event:
    """A span on a thread, in seconds of `perf_counter`."""

    kind: str
    name: str
    begin: float
    end: float
    thread: int
    args: dict[str, Any] = field(default_factory=dict[str, Any])


class _Recorder:
    """Takes a profile from its making until `close`."""

    def __init__(self) -> None:
        self.events: list[_Event] = []  # appended to by all threads, which Python makes safe
        self.threads: dict[int, str] = {}
        self._own: list[tuple[Any, str, Any]] = []
        self._namespaces: list[tuple[Any, dict[str, Any]]] = []
        self.began = time.perf_counter()
        for kind in (PjitFunction, Compiled):
            self._exchange(kind, "__call__", self._call(kind.__call__))
        self._exchange(Compiled, "call", Compiled.__call__)
        hooks.listeners.append(self._told)
        hooks.binders.append(self._bound)
        for main in list(hooks.drivers):
            self._bound(main)

    def close(self) -> None:
        """Take no more: what was exchanged is put back."""
        hooks.binders.remove(self._bound)
        hooks.listeners.remove(self._told)
        for owner, name, before in reversed(self._own):
            setattr(owner, name, before)
        for namespace, before in self._namespaces:
            namespace.update(before)

    def add(self, kind: str, name: str, begin: float, end: float, **args: Any) -> None:
        """Record a span of this thread."""
        thread = threading.get_native_id()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        self.events.append(_Event(kind, name, begin, end, thread, args))

    def _told(self, kind: str, name: str, begin: float, end: float) -> None:
        self.add(kind, name, begin, end)

    def _exchange(self, owner: Any, name: str, value: Any) -> None:
        self._own.append((owner, name, vars(owner)[name]))
        setattr(owner, name, value)

    def _call(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(plain)
        def __call__(this: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            begin = time.perf_counter()
            try:
                return plain(this, *args, **kwargs)
            finally:
                name = getattr(this, "__qualname__", None) or getattr(this, "fun_name", "call")
                self.add("call", name, begin, time.perf_counter())

        return __call__

    def _bound(self, main: Any) -> None:
        """Exchange what a driver calls."""
        namespace = main.__globals__
        labels = hooks.drivers[main]()
        before: dict[str, Any] = {}
        for name, called in namespace.items():
            if not _CALLED.fullmatch(name) or not callable(called):
                continue
            before[name] = called
        for name, called in before.items():
            kind = _KIND[name.rstrip("0123456789_")]
            namespace[name] = partial(self._run, kind, labels.get(name, name), called)
        self._namespaces.append((namespace, before))

    def _run(self, kind: str, label: str, called: Callable[..., Any], /, *args: Any) -> Any:
        begin = time.perf_counter()
        try:
            return called(*args)
        finally:
            self.add(kind, label, begin, time.perf_counter())


_recorder: _Recorder | None = None
_directory: Path | None = None
#: A profile that has ended and could not be written, and where to.
_unwritten: tuple[Path, _Recorder] | None = None
_lock = threading.Lock()


# ---- for programs that ask for a server ----------------------------------------------------------

_server: _Server | None = None


@dataclass(frozen=True, slots=True)
class _Server:
    """What stands for a server: the port that was asked for."""

    port: int


def start_server(port: int) -> _Server:
    """Warn that no server is started, and return what stands for one.

    A profile is a file here, which `trace` writes: nothing is there that a browser could ask.

    Parameters
    ----------
    port : int

    Raises
    ------
    ValueError
        One was asked for, and not stopped.
    """
    global _server
    if _server is not None:
        raise ValueError(
            "profiler.start_server: Only one profiler server can be active at a time. Call "
            "stop_server first."
        )
    warnings.warn(
        f"profiler.start_server: nothing listens at port {port}: take a profile with "
        "profiler.trace(directory), whose file Perfetto opens.",
        stacklevel=2,
    )
    _server = _Server(index(port))
    return _server


def stop_server() -> None:
    """Forget what `start_server` returned.

    Raises
    ------
    ValueError
        None was asked for.
    """
    global _server
    if _server is None:
        raise ValueError("profiler.stop_server: No active profiler server. Call start_server.")
    _server = None


# ---- taking a profile ----------------------------------------------------------------------------


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
) -> None:
    """Begin a profile: calls, traces, compilation, kernels on each thread, steps, transfers.

    Parameters
    ----------
    log_dir : path
        Where `stop_trace` writes it; made if it is not there.
    create_perfetto_link, create_perfetto_trace : bool
        Accepted for compatibility: the trace is one that Perfetto reads, and stays here.

    Raises
    ------
    RuntimeError
        A profile is being taken.
    OSError
        The directory cannot be made.
    """
    global _recorder, _directory, _unwritten
    with _lock:
        if _directory is not None:
            raise RuntimeError(
                "profiler.start_trace: a profile is being taken already. Call stop_trace first; "
                "only one can be taken at a time."
            )
        folder = Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        _directory, _unwritten = folder, None
        if _recorder is None:
            _recorder = _Recorder()
        else:  # for the summary at exit: this one begins here
            _recorder.began = time.perf_counter()


def stop_trace(log_dir: str | os.PathLike[str] | None = None) -> Path:
    """End a profile and write it; return the file, for ``ui.perfetto.dev`` or ``chrome://tracing``.

    Parameters
    ----------
    log_dir : path, optional
        Where to write it, if not where `start_trace` says.

    Raises
    ------
    RuntimeError
        No profile is being taken.
    OSError
        The file cannot be written. The profile has ended, nothing is left half-written, and what it
        found is kept until the next one begins: ``stop_trace`` again writes it.
    """
    global _recorder, _directory, _unwritten
    with _lock:
        if _directory is not None and _recorder is not None:
            _unwritten, _directory = (_directory, _recorder), None
            if not _summarised:
                _recorder.close()
                _recorder = None
        if _unwritten is None:
            raise RuntimeError("profiler.stop_trace: no profile was started. Call start_trace.")
        folder, recorder = _unwritten
    if log_dir is not None:
        folder = Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{stamp}-{os.getpid()}-{time.perf_counter_ns() % 10**6:06}.trace.json"
    text = json.dumps(_document(recorder))
    path = written(folder / name, text, "profiler: the trace, kept for another stop_trace,")
    _unwritten = None
    return path


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
) -> Iterator[None]:
    """Profile a block; see `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace)
    try:
        yield
    finally:
        stop_trace()


def _document(recorder: _Recorder) -> dict[str, Any]:
    """Return a profile in the trace event format of Chrome, which Perfetto reads."""
    pid = os.getpid()
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "fnarray"}}
    ]
    for thread, name in recorder.threads.items():
        about = {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread}
        events.append({**about, "args": {"name": name}})
    since = recorder.began
    for e in sorted(recorder.events, key=lambda e: (e.begin, -e.end)):
        if e.begin < since:
            continue
        events.append(
            {
                "ph": "X",
                "name": e.name,
                "cat": e.kind,
                "ts": round(1e6 * (e.begin - since), 3),
                "dur": round(1e6 * (e.end - e.begin), 3),
                "pid": pid,
                "tid": e.thread,
                "args": {k: v if isinstance(v, (int, float, str)) else str(v)
                         for k, v in e.args.items()},
            }
        )  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"argv": sys.argv[:1]}}


# ---- labels --------------------------------------------------------------------------------------


class TraceAnnotation(ContextDecorator):
    """Label a block in profiles, as a context manager or decorator.

    What is traced inside is labelled as by `named_scope`.

    Parameters
    ----------
    name : str
    **args
        Shown with the label.

    Raises
    ------
    TypeError
        ``name`` is no string.
    """

    def __init__(self, name: str, **args: Any):
        if not isinstance(name, str):
            raise TypeError(
                f"profiler: a label must be a string, got {name!r} of type {type(name)}."
            )
        self._name = name
        self._args = args
        self._open: list[tuple[scoped, float]] = []

    def _recreate_cm(self) -> Self:
        return type(self)(self._name, **self._args)

    def __enter__(self) -> Self:
        scope = scoped(self._name)
        scope.__enter__()
        self._open.append((scope, time.perf_counter()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope, begin = self._open.pop()
        scope.__exit__()
        recorder = _recorder
        if recorder is not None:
            recorder.add("annotation", self._name, begin, time.perf_counter(), **self._args)


class StepTraceAnnotation(TraceAnnotation):
    """Label one step of a loop, such as of training, by ``step_num``."""


def annotate_function(
    func: Callable[..., Any] | None = None, name: str | None = None, **args: Any
) -> Callable[..., Any]:
    """Label each call of a function in profiles: ``@annotate_function`` or with a ``name``."""
    if func is None:
        return partial(annotate_function, name=name, **args)
    label = name or getattr(func, "__qualname__", type(func).__name__)

    @wraps(func)
    def annotated(*operands: Any, **named: Any) -> Any:
        with TraceAnnotation(label, **args):
            return func(*operands, **named)

    return annotated


# ---- the table -----------------------------------------------------------------------------------

_summarised = False


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return a profile of the memory that arrays hold, as Google's ``pprof`` reads it.

    Parameters
    ----------
    backend : str, optional
        Of arrays on the devices of a platform alone, ``"cpu"`` or ``"gpu"``.

    Returns
    -------
    bytes
        Compressed by gzip. Arrays of one type on one device are a sample: their number and bytes.

    Raises
    ------
    RuntimeError
        For a platform that there is not.
    """
    if backend is not None:
        devices(backend)  # raises for one that there is not
    gc.collect()  # what nobody holds but a cycle is not in use
    held = [
        (x.aval.str_short(), ", ".join(sorted(map(str, x.devices()))), x.nbytes)
        for x in live_arrays(backend)
    ]
    return profile(held)


def save_device_memory_profile(
    filename: str | os.PathLike[str], backend: str | None = None
) -> None:
    """Write a profile of the memory that arrays hold to a file: see `device_memory_profile`.

    Parameters
    ----------
    filename : path
        Written over, if it is there.
    backend : str, optional
        As of `device_memory_profile`.

    Returns
    -------
    None

    Raises
    ------
    OSError
        The file cannot be written.
    RuntimeError
        For a platform that there is not.
    """
    written(Path(filename), device_memory_profile(backend), "profiler: the memory profile")


def _profile_set(value: str) -> None:
    """Follow ``config.profile``: ``"summary"`` takes a profile until the process ends."""
    global _recorder, _summarised
    with _lock:
        if value == "summary" and not _summarised:
            _summarised = True
            if _recorder is None:
                _recorder = _Recorder()
            atexit.register(_print_summary)
        elif value == "off" and _summarised:
            _summarised = False
            atexit.unregister(_print_summary)
            if _directory is None and _recorder is not None:
                _recorder.close()
                _recorder = None


def _print_summary() -> None:
    from rich.console import Console

    Console(stderr=True).print(_table())


def summary() -> str:
    """Return the table of the profile that is being taken, as text.

    Raises
    ------
    RuntimeError
        None is being taken: set ``config.update("profile", "summary")``, or call `start_trace`.
    """
    from .report.text import plain

    return plain(_table())


def _table() -> Any:
    from rich.table import Table

    recorder = _recorder
    if recorder is None:
        raise RuntimeError(
            "profiler.summary: no profile is being taken. Call start_trace, or "
            "fnarray.config.update('profile', 'summary'), before what is to be profiled."
        )
    rows: dict[tuple[str, str], list[float]] = {}
    for e in list(recorder.events):
        rows.setdefault((e.kind, e.name), []).append(e.end - e.begin)
    whole = time.perf_counter() - recorder.began
    table = Table(title="fnarray profile", box=None, pad_edge=False)
    for head in ("kind", "name"):
        table.add_column(head, overflow="fold")
    for head in ("count", "total ms", "mean us", "share"):
        table.add_column(head, justify="right")
    for (kind, name), took in sorted(rows.items(), key=lambda row: -sum(row[1])):
        total = sum(took)
        cells = f"{len(took)}", f"{1e3 * total:.2f}", f"{1e6 * total / len(took):.1f}"
        table.add_row(kind, name, *cells, f"{100 * total / whole:.1f} %")
    return table
