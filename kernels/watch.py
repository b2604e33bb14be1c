"""How far a watched loop is: its machine code looks at the clock now and then, and calls when due.

Nothing is called before a loop has run for a while. The clock is one that is read in 5 ns, and is
some milliseconds behind.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from fnarray_kernels._ir import Template
from fnarray_kernels.registry import compiled, tell


def clock():
    """Return milliseconds of a clock that is never set."""
    return int(1e3 * time.monotonic())


def told(bar, done, passed):
    """Tell whoever shows a loop how far it is; return whether an exception has to be raised."""
    return 0


@compiled
def ahead(done, passed, every):
    """Return at how many turns to look again: twice while it is due once, or 16 times as many.

    A clock that is 10 ms behind is asked again before 160 have passed.
    """
    return done + min(max(done * every // (2 * max(passed, 1)), 1), 15 * done)


@compiled
def shown(bar, done, passed):
    """Tell whoever shows a loop how far it is; return whether it is to go on."""
    return told(bar, done, passed) == 0


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


# Linux's CLOCK_MONOTONIC_COARSE; the exact one takes 25 ns.
_CLOCK = 6 if sys.platform == "linux" else getattr(time, "CLOCK_MONOTONIC", 0)
CLOCK = (
    "%~slot = alloca [2 x i64]",
    f"%~0 = call i32 @clock_gettime(i32 {_CLOCK}, ptr %~slot)",
    "%~1 = load i64, ptr %~slot",
    "%~at = getelementptr i64, ptr %~slot, i64 1",
    "%~2 = load i64, ptr %~at",
    "%~3 = mul i64 %~1, 1000",
    "%~4 = udiv i64 %~2, 1000000",
    "%~5 = add i64 %~3, %~4",
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
    tell("mode", clock, _text("%~5", CLOCK))
    tell("mode", told, _text("%~6", TOLD))
