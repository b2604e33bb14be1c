"""Looking on as a program runs: values printed, or handed to a Python function.

Both act in the order of the program, once per execution; no derivative sees them.
"""

from __future__ import annotations

import bdb
import copy
import logging
import pdb
import string
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import asarray
from ..core.forms import HOST
from ..core.primitive import Primitive
from ..core.source import user_source
from ..core.trace import no_trace, state
from ..ops.kit.registry import register
from .host import (
    NOT_LINEAR,
    ByIdentity,
    FlatCallback,
    act,
    act_by_row,
    arguments,
    check_callable,
    split_arguments,
)

__all__ = []

log = logging.getLogger("fnarray.debug")


def _declare_debug(name: str, evaluate: Callable[..., Any]) -> Primitive:
    """Declare an operation that looks on: no results, tangents ignored, once per row."""
    prim = Primitive(
        name,
        quiet=False,
        aval=lambda *avals, **params: (),
        eval=evaluate,
        form=lambda ins, outs, **params: HOST,
        jvp=lambda primals, tangents, **params: (act(prim, primals, **params), []),
        transpose=NOT_LINEAR,
        batch=lambda size, args, batched, **params: act_by_row(prim, args, batched, params),
        effects=("debug",),
        multiple_results=True,
    )
    return register(prim)


# ---- debug_callback ------------------------------------------------------------------------------


def _call_back(*xs: np.ndarray, callback: FlatCallback, **params: Any) -> tuple[()]:
    callback(*xs)
    return ()


debug_callback_p = _declare_debug("debug_callback", _call_back)


def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call a Python function, from a compiled program too, each time this point is reached.

    ``debug.callback(ordered=True)(f, *args, **kwargs)`` keeps options apart from ``f``'s own
    arguments.

    Parameters
    ----------
    callback : callable
        Its result is ignored. Under ``vmap`` it is called once per row, in a derivative with the
        primal values.
    *args, **kwargs : pytrees
        Arrays arrive as arrays, other leaves as they are.
    ordered : bool
        Accepted for compatibility: callbacks always act in the order of the program.
    partitioned : bool
        Accepted for compatibility: there is one device.

    Raises
    ------
    TypeError
        ``callback`` is not callable.
    JaxRuntimeError
        As a program runs: the callback raised the error's ``__cause__``.
    """
    options = {"effect": "OrderedDebug" if ordered else "Debug", "partitioned": partitioned}
    if callback is None:
        _check_alone("debug.callback", args, kwargs)
        return partial(_record_callback, options)
    _record_callback(options, callback, *args, **kwargs)
    return None


def _record_callback(options: dict, callback: Callable, /, *args: Any, **kwargs: Any) -> None:
    check_callable("debug.callback", callback)
    leaves, in_tree, statics = split_arguments(args, kwargs)
    call_back(FlatCallback(callback, in_tree, statics), leaves, **options)


def call_back(flat: FlatCallback, leaves: Sequence[Any], **options: Any) -> None:
    """Call a function now, or whenever the program in the making runs."""
    if state.trace is None:  # nothing stands between: its errors are the caller's, as in JAX
        flat.call(*(asarray(x)._data for x in leaves))
    else:
        act(debug_callback_p, leaves, callback=flat, **options)


def _check_alone(where: str, args: tuple, kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise TypeError(
            f"{where}: got the arguments {args} and {kwargs} and nothing to call them with. Pass "
            f"it first, or in two steps: {where}(ordered=True)(...)."
        )


# ---- breakpoint ----------------------------------------------------------------------------------


def debug_breakpoint(
    *,
    ordered: bool = False,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Open the Python debugger each time this point is reached, from a compiled program too.

    It shows the line and the local variables of the function that calls this one, with the values
    they have at run time. ``c`` goes on, ``q`` ends the program with ``bdb.BdbQuit``.

    Parameters
    ----------
    ordered, backend, filter_frames, num_frames, token, **kwargs
        Accepted for compatibility.
    """
    frame = sys._getframe(1)
    file, line, names = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
    # A call at the user's line of the user's file: what the debugger shows as its place.
    code = compile("\n" * (line - 1) + "_stop()", file, "exec")

    def stop(**values: Any) -> None:
        debugger = pdb.Pdb()
        debugger.reset()
        exec(code, {**names, "_stop": lambda: debugger.interaction(sys._getframe(1), None)}, values)
        if debugger.quitting:
            raise bdb.BdbQuit

    options = {"effect": "OrderedDebug" if ordered else "Debug", "partitioned": False}
    _record_callback(options, stop, **frame.f_locals)


# ---- debug_print ---------------------------------------------------------------------------------


def _print(
    *xs: np.ndarray,
    fmt: str,
    has_placeholders: bool,
    in_tree: tree.PyTreeDef,
    static_args: tuple[tuple[int, ByIdentity], ...],
    np_printoptions: tuple[tuple[str, Any], ...],
    logging_record: ByIdentity | None,
    **params: Any,
) -> tuple[()]:
    args, kwargs = arguments(in_tree, static_args, xs)
    with no_trace():
        if has_placeholders:
            with np.printoptions(**dict(np_printoptions)):
                text = fmt.format(*args, **kwargs)
        else:
            text = " ".join((fmt, *map(str, args)))
        if logging_record is None:
            sys.stdout.write(text + "\n")
        else:
            record = copy.copy(logging_record.value)
            record.msg = text
            log.handle(record)
    return ()


debug_print_p = _declare_debug("debug_print", _print)


class _Checker(string.Formatter):
    """Formats nothing: finds out whether a format and its arguments fit."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return super().convert_field("", conversion)

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        if unused := [arg for i, arg in enumerate(args) if i not in used_args]:
            raise ValueError(
                f"debug.print: unused positional arguments {unused}. Write a {{}} for each."
            )
        if unused := [name for name in kwargs if name not in used_args]:
            raise ValueError(
                f"debug.print: unused keyword arguments {unused}. Write a {{name}} for each, in a "
                "plain string: an f-string is formatted while tracing."
            )


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print values, from a compiled program too, each time this point is reached.

    ``debug.print("x {} y {y}", x, y=y)``; ``debug.print(ordered=True)(fmt, ...)`` keeps options
    apart from the values.

    Parameters
    ----------
    fmt : str
        As for `str.format`. Format specifications such as ``{:.3f}`` take arrays of rank 0. One
        without fields is printed as it is.
    *args, **kwargs : pytrees
        Values. Under ``vmap`` one line is printed per row, in a derivative the primal values.
    ordered : bool
        Accepted for compatibility: lines always come in the order of the program.
    partitioned : bool
        Accepted for compatibility: there is one device.
    skip_format_check : bool
        Whether to leave it to the running program to find that arguments do not fit.

    Raises
    ------
    TypeError
        ``fmt`` is no string.
    ValueError
        An argument has no field.
    IndexError, KeyError
        A field has no argument.
    """
    options = {
        "ordered": ordered,
        "partitioned": partitioned,
        "logging_record": ByIdentity(_record()) if _use_logging else None,
    }
    if fmt is None:
        _check_alone("debug.print", args, kwargs)
        return partial(_record_print, options, skip_format_check)
    _record_print(options, skip_format_check, fmt, *args, **kwargs)
    return None


#: As `print`, to the logger ``fnarray.debug``.
debug_log = partial(debug_print, _use_logging=True)


def _record_print(
    options: dict[str, Any], unchecked: bool, fmt: str, /, *args: Any, **kwargs: Any
) -> None:
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print: the format must be a string, got {fmt!r} of type {type(fmt)}. To print "
            'a value alone: debug.print("{}", x).'
        )
    if not unchecked:
        _Checker().vformat(fmt, args, kwargs)
    leaves, in_tree, statics = split_arguments(args, kwargs)
    act(
        debug_print_p,
        leaves,
        fmt=fmt,
        has_placeholders=any(name is not None for _, name, *_ in string.Formatter().parse(fmt)),
        in_tree=in_tree,
        static_args=statics,
        np_printoptions=tuple(np.get_printoptions().items()),
        **options,
    )


def _record() -> logging.LogRecord:
    """Return a log record that points to the user's line."""
    source = user_source()
    return log.makeRecord(
        log.name, logging.INFO, source.file, source.line, "", (), None, source.function
    )
