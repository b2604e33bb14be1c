"""Evaluation with NumPy's floating-point warnings off, at a tenth of ``errstate``'s cost.

NumPy keeps the warning state in a context variable. Entering ``numpy.errstate`` around each
operation costs about 3 us; running the operation in a context made once, in which the state is
already set, costs 0.3 us. What results are is asked by settings instead.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..config import config
from .dtypes import is_inexact


def _quiet_context() -> contextvars.Context:
    with np.errstate(all="ignore"):
        return contextvars.copy_context()


class _Contexts(threading.local):
    """One context per thread: a context can be entered by one thread, once, at a time."""

    def __init__(self) -> None:
        self.free: contextvars.Context | None = _quiet_context()


_contexts = _Contexts()


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with NumPy's floating-point warnings off."""
    context = _contexts.free
    if context is None:  # inside another call: the warnings are off already
        return function(*args, **kwargs)
    _contexts.free = None
    try:
        return context.run(function, *args, **kwargs)
    finally:
        _contexts.free = context


def offence(x: np.ndarray, operands: Sequence[np.ndarray] = ()) -> str:
    """What is wrong with a result under the current settings: ``"nan"``, ``"inf"`` or nothing.

    An infinity that an operand has is no offence: maxima begin with one, and masks fill with it.
    """
    if not is_inexact(x.dtype):
        return ""
    if config.debug_nans and np.isnan(x).any():
        return "nan"
    made = config.debug_infs and np.isinf(x).any()
    given = made and any(is_inexact(y.dtype) and np.isinf(y).any() for y in operands)
    return "inf" if made and not given else ""
