"""``jax.monitoring``: events that libraries record, told to who listens.

fnarray records none of its own here; `fnarray.profiler` says what a program does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_Listener = Callable[..., None]
_listeners: dict[str, list[_Listener]] = {}


def _recorder(kind: str) -> Callable[..., None]:
    def record(event: str, *values: Any, **metadata: str | int) -> None:
        for listener in _listeners.get(kind, ()):
            listener(event, *values, **metadata)

    record.__doc__ = f"Tell the listeners of each {kind} of this one."
    return record


def _register(kind: str) -> Callable[[_Listener], None]:
    def register(callback: _Listener) -> None:
        _listeners.setdefault(kind, []).append(callback)

    register.__doc__ = f"Call a function with each {kind} that is recorded."
    return register


def _unregister(kind: str) -> Callable[[_Listener], None]:
    def unregister(callback: _Listener) -> None:
        _listeners[kind].remove(callback)

    unregister.__doc__ = f"Stop calling a function with each {kind}."
    return unregister


def clear_event_listeners() -> None:
    """Stop calling all functions."""
    _listeners.clear()


record_event = _recorder("event")
record_event_duration_secs = _recorder("duration")
record_event_time_span = _recorder("time span")
record_scalar = _recorder("scalar")
register_event_listener = _register("event")
register_event_duration_secs_listener = _register("duration")
register_event_time_span_listener = _register("time span")
register_scalar_listener = _register("scalar")
unregister_event_listener = _unregister("event")
unregister_event_duration_listener = _unregister("duration")
unregister_event_time_span_listener = _unregister("time span")
unregister_scalar_listener = _unregister("scalar")
