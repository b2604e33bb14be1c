"""How far a watched loop is: its machine code looks at the clock now and then, and calls when due.

Nothing is called before a loop has run for a while, and the clock is read after 1, 2, 4, ... parts:
six times 25 ns for twenty. What a tick knows of the loop are a few integers that the loop carries.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from fnarray_kernels._ir import Template
from fnarray_kernels.registry import compiled, tell

#: What the integers are: the turns done at which to look at the clock again, when the loop began
#: and when it was last shown, whose loop it is, how many turns it has, and ms between two showings.
LOOK, BEGUN, SHOWN, BAR, TOTAL, EVERY = range(6)
#: Milliseconds count to here and begin anew.
_MASK = 0x7FFFFFFF


def clock():
    """Return milliseconds of a clock that is never set."""
    return int(1e3 * time.monotonic()) & _MASK


def told(bar, done, passed):
    """Tell whoever shows a loop how far it is; return whether an exception has to be raised."""
    return 0


@compiled
def tick(done, state, out):
    """Tell of a loop that so many turns are done if it is time to; return whether it is to end."""
    for k in range(6):
        out[k] = state[k]
    turns = int(done[0])
    total = int(state[TOTAL])
    shown = state[SHOWN] != state[BEGUN]
    if turns >= state[LOOK] or (shown and turns >= total):
        now = clock()
        if turns == 0:
            out[BEGUN] = now
            out[SHOWN] = now
        every = int(state[EVERY])
        passed = (now - int(out[BEGUN])) & _MASK
        due = (now - int(out[SHOWN])) & _MASK >= every
        ahead = min(max(turns * every // (2 * passed + 1), 1), max(turns, 1))
        out[LOOK] = min(turns + ahead, _MASK)
        if turns > 0 and (due or turns >= total):
            out[SHOWN] = now
            return told(int(state[BAR]), turns, passed) != 0
    return False


_DECLARED = {
    "clock_gettime": ("i32", ("i32", "ptr")),
    "fnarray_told": ("void", ()),  # an object of Python's
    "PyGILState_Ensure": ("i32", ()),
    "PyGILState_Release": ("void", ("i32",)),
    "PyLong_FromLongLong": ("ptr", ("i64",)),
    "PyObject_Vectorcall": ("ptr", ("ptr", "ptr", "i64", "ptr")),
    "PyErr_Occurred": ("ptr", ()),
    "PyErr_Clear": ("void", ()),
    "PyThread_get_thread_ident": ("i64", ()),
    "PyThreadState_SetAsyncExc": ("i32", ("i64", "ptr")),
    "Py_IncRef": ("void", ("ptr",)),
    "Py_DecRef": ("void", ("ptr",)),
}


def _text(result, lines):
    declared = {name: types for name, types in _DECLARED.items() if any(name in x for x in lines)}
    return Template("\n".join(lines), result, np.dtype(np.int64), declared, {})


CLOCK = (
    "%~slot = alloca [2 x i64]",
    f"%~0 = call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %~slot)",
    "%~1 = load i64, ptr %~slot",
    "%~at = getelementptr i64, ptr %~slot, i64 1",
    "%~2 = load i64, ptr %~at",
    "%~3 = mul i64 %~1, 1000",
    "%~4 = udiv i64 %~2, 1000000",
    "%~5 = add i64 %~3, %~4",
    f"%~6 = and i64 %~5, {_MASK}",
)
# An exception, an interrupt as a rule, is raised again once the program is back in Python.
TOLD = (
    "%~slot = alloca [3 x ptr]",
    "%~gil = call i32 @PyGILState_Ensure()",
    *(
        line
        for k in range(3)
        for line in (
            f"%~{k} = call ptr @PyLong_FromLongLong(i64 %~{'abc'[k]})",
            f"%~at{k} = getelementptr ptr, ptr %~slot, i64 {k}",
            f"store ptr %~{k}, ptr %~at{k}",
        )
    ),
    "%~3 = call ptr @PyObject_Vectorcall(ptr @fnarray_told, ptr %~slot, i64 3, ptr null)",
    "%~error = call ptr @PyErr_Occurred()",
    "call void @Py_IncRef(ptr %~error)",
    "call void @PyErr_Clear()",
    "%~4 = call i64 @PyThread_get_thread_ident()",
    "%~5 = call i32 @PyThreadState_SetAsyncExc(i64 %~4, ptr %~error)",
    *(f"call void @Py_DecRef(ptr %~{name})" for name in ("0", "1", "2", "3", "error")),
    "call void @PyGILState_Release(i32 %~gil)",
    "%~6 = ptrtoint ptr %~error to i64",
)
if sys.platform in ("linux", "darwin"):
    tell("mode", clock, _text("%~6", CLOCK))
    tell("mode", told, _text("%~6", TOLD))
