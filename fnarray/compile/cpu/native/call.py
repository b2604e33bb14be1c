"""Calling machine code from Python: one trampoline for all kernels.

A kernel is a built-in function whose ``self`` is a few bytes: the address of the code, and a letter
for each parameter. The trampoline, LLVM text compiled once, fills a frame of 64-bit words from the
arguments, releases the GIL, and calls.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from . import elf
from .codes import DATA, dtype_of

#: Where NumPy's array object holds its dimensions.
DIMENSIONS: Final = DATA + 16
#: Where a bytes object holds its bytes.
BYTES: Final = bytes.__basicsize__ - 1
#: And a tuple its items.
_ITEMS: Final = tuple.__basicsize__
_FASTCALL: Final = 0x80

NAME: Final = "fnarray_call"
#: Where the threads of the pool meet (`sharing`): words on lines of their own, and a line for each.
POOL: Final = "fnarray_pool"
LINE, LINES, MOST = 128, 8, 256
STATE: Final = LINE * (LINES + MOST)
#: The function of Python's that watched loops call.
TOLD: Final = "fnarray_told"
#: Objects that the trampoline names. The names are ours: under Python's own (``PyExc_TypeError``)
#: Numba enters the objects where Python has pointers to them.
SYMBOLS: Final = {
    "fnarray_ndarray": id(np.ndarray),
    "fnarray_tuple": id(tuple),
    "fnarray_int": id(int),
    "fnarray_none": id(None),
    "fnarray_type_error": id(TypeError),
}


def named(symbol: str) -> int | None:
    """Return the address of what a name of ours stands for; None for other names."""
    if symbol in SYMBOLS or not symbol.startswith("fnarray_"):
        return SYMBOLS.get(symbol)
    if symbol == POOL:
        return meeting()
    if symbol == TOLD:
        from ....core.watch import tell  # which few kernels need

        return id(tell)
    from . import blas  # which few kernels need

    return blas.address(symbol)


def meeting() -> int:
    """Return where the threads of the pool meet: zeros at first."""
    with _lock:  # one place, whoever is first
        return _pages()


_lock = threading.Lock()


@functools.cache
def _pages() -> int:
    memory, base = elf.pages(STATE)
    elf.keep(memory)
    return base


#: What functions that take Python's objects apart refer to.
DECLARED: Final = r"""
@fnarray_int = external global i8
@fnarray_type_error = external global i8
@.message = internal constant [50 x i8] c"fnarray: a kernel got other arguments than it has\00"
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyNumber_Index(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""
#: Blocks of such a function, which go to ``put``, or to ``fail``: what becomes of ``%object``, of
#: type ``%type``, by the letter ``%kind`` of its argument; arrays go to ``array``.
NUMBERS: Final = f"""
  switch i8 %kind, label %array [
    i8 {ord("i")}, label %integer
    i8 {ord("f")}, label %float
    i8 {ord("b")}, label %truth
  ]
integer:
  %long = icmp eq ptr %type, @fnarray_int
  br i1 %long, label %direct, label %indirect
direct:
  %value = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
  br label %put
indirect:
  %index = call ptr @PyNumber_Index(ptr %object)
  %none = icmp eq ptr %index, null
  br i1 %none, label %fail, label %indexed
indexed:
  %other = call i64 @PyLong_AsUnsignedLongLongMask(ptr %index)
  call void @Py_DecRef(ptr %index)
  br label %put
float:
  %real = call double @PyFloat_AsDouble(ptr %object)
  %bits = bitcast double %real to i64
  %doubtful = fcmp oeq double %real, -1.0
  br i1 %doubtful, label %check, label %put
check:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %put, label %fail
truth:
  %bit = call i32 @PyObject_IsTrue(ptr %object)
  %flag = sext i32 %bit to i64
  %unsure = icmp slt i32 %bit, 0
  br i1 %unsure, label %fail, label %put
"""
#: The blocks that end it without a result.
REFUSAL: Final = """
refuse:
  call void @PyErr_SetString(ptr @fnarray_type_error, ptr @.message)
  br label %fail
fail:
  ret ptr null
"""

#: A function that fills a frame; where ``many`` is given, an array may be a tuple of arrays, the
#: address of whose items it notes there.
FILL: Final = f"""
{DECLARED}@fnarray_ndarray = external global i8
@fnarray_tuple = external global i8
@fnarray_none = external global i8
declare i32 @PyType_IsSubtype(ptr, ptr)
declare void @Py_IncRef(ptr)

define internal i1 @fill(ptr %frame, ptr %many, ptr %args, i64 %n, ptr %kinds) alwaysinline {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %good
body:
  %at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %at
  %kind.at = getelementptr i8, ptr %kinds, i64 %i
  %kind = load i8, ptr %kind.at
  %type.at = getelementptr i8, ptr %object, i64 {DATA - 8}
  %type = load ptr, ptr %type.at
{NUMBERS}array:
  %plain = icmp eq ptr %type, @fnarray_ndarray
  br i1 %plain, label %pointer, label %derived
derived:
  %group = icmp eq ptr %type, @fnarray_tuple
  br i1 %group, label %several, label %other.type
several:
  %alone = icmp eq ptr %many, null
  br i1 %alone, label %refuse, label %note
note:
  %items = getelementptr i8, ptr %object, i64 {_ITEMS}
  %many.at = getelementptr ptr, ptr %many, i64 %i
  store ptr %items, ptr %many.at
  br label %pointer
other.type:
  %below = call i32 @PyType_IsSubtype(ptr %type, ptr @fnarray_ndarray)
  %is = icmp ne i32 %below, 0
  br i1 %is, label %pointer, label %refuse
pointer:
  %address = ptrtoint ptr %object to i64
  br label %put
put:
  %word = phi i64 [ %address, %pointer ], [ %value, %direct ], [ %other, %indexed ],
    [ %bits, %float ], [ %bits, %check ], [ %flag, %truth ]
  %to = getelementptr i64, ptr %frame, i64 %i
  store i64 %word, ptr %to
  %next = add i64 %i, 1
  br label %head
good:
  ret i1 true
refuse:
  call void @PyErr_SetString(ptr @fnarray_type_error, ptr @.message)
  br label %fail
fail:
  ret i1 false
}}
"""

TRAMPOLINE: Final = f"""{FILL}
define ptr @{NAME}(ptr %self, ptr %args, i64 %n) {{
entry:
  %spec = getelementptr i8, ptr %self, i64 {BYTES}
  %code = load ptr, ptr %spec, align 1
  %kinds = getelementptr i8, ptr %spec, i64 8
  %length.at = getelementptr i8, ptr %self, i64 {BYTES - 16}
  %length = load i64, ptr %length.at
  %count = sub i64 %length, 8
  %right = icmp eq i64 %count, %n
  br i1 %right, label %start, label %refuse
start:
  %frame = alloca i64, i64 %n
  %filled = call i1 @fill(ptr %frame, ptr null, ptr %args, i64 %n, ptr %kinds)
  br i1 %filled, label %run, label %fail
run:
  %thread = call ptr @PyEval_SaveThread()
  call void %code(ptr %frame)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @Py_IncRef(ptr @fnarray_none)
  ret ptr @fnarray_none
{REFUSAL}}}
"""


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def layout_is_known() -> bool:
    """Whether arrays and bytes lie in memory as the trampoline takes them to."""
    array, data = np.zeros((3, 5)), b"12345678"

    def word(owner: Any, offset: int) -> int:
        return ctypes.c_int64.from_address(id(owner) + offset).value

    if ctypes.sizeof(ctypes.c_void_p) != 8 or word(array, DATA) != array.ctypes.data:
        return False
    if word(array, DATA - 8) != id(np.ndarray) or word(data, BYTES - 16) != len(data):
        return False
    if ctypes.string_at(id(data) + BYTES, 8) != data or word((array,), _ITEMS) != id(array):
        return False
    sizes = ctypes.c_int64 * 2
    return tuple(sizes.from_address(word(array, DIMENSIONS))) == (3, 5)


def function(
    name: str, trampoline: int, address: int, signature: tuple[str, ...]
) -> Callable[..., Any]:
    """Return machine code as a function of Python."""
    own = address.to_bytes(8, "little") + "".join(map(_letter, signature)).encode()
    return builtin(name, trampoline, own)


def builtin(name: str, address: int, own: Any = None) -> Callable[..., Any]:
    """Return machine code that Python can call, given an object of its own."""
    definition = _Definition(name.encode(), address, _FASTCALL, None)
    # For good: as the interpreter ends the collector looks at functions, some after modules have
    # been emptied, and reads this (2,500 terms written out ended in a segmentation fault).
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    return make(ctypes.addressof(definition), own, None)


def _letter(code: str) -> str:
    dtype, rank = dtype_of(code)
    if rank is not None:
        return "a"
    return dtype.kind if dtype.kind in "fb" else "i"
