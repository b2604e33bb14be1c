"""Evaluation with NumPy's floating-point warnings off, at a tenth of ``errstate``'s cost.

NumPy keeps the warning state in a context variable. Entering ``numpy.errstate`` around each
operation costs about 3 us; running the operation in a context made once, in which the state is
already set, costs 0.3 us. What results are is asked by settings instead.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..config import config
from .dtypes import is_inexact


def quiet_context() -> contextvars.Context:
    """Return a context in which the warnings are off."""
    with np.errstate(all="ignore"):
        return contextvars.copy_context()


#: Contexts that nobody is in: one is entered once at a time.
free_contexts: list[contextvars.Context] = []


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with NumPy's floating-point warnings off."""
    try:
        context = free_contexts.pop()
    except IndexError:
        context = quiet_context()
    try:
        return context.run(function, *args, **kwargs)
    finally:
        free_contexts.append(context)


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
