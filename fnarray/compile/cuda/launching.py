"""A kernel's launch as a function of Python: machine code that lays arguments out and calls.

It takes a fifth of the host's time that `struct` and `ctypes` take: 0.6 us in place of 3.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import struct
import threading
from collections.abc import Callable
from ctypes import c_size_t, c_void_p
from typing import Any, Final

from ..cpu.native import call, load
from ..cpu.native.types import Fallback

_log: Final = logging.getLogger("fnarray.compile")
#: Arguments of launches are packed in one buffer, as the driver lays them out.
BUFFER, SIZE = 1, 2
#: Scalars of kernels by code, as `struct` packs them.
PACKED: Final = {
    "b1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f32": "f", "f64": "d",
}  # fmt: skip

#: Takes blocks, lanes and arguments; returns the driver's number of an error, or 0.
Launch = Callable[..., int]

_NAME: Final = "fnarray_launch"
#: What a launch knows, in words: the driver's function, the kernel, the stream, the type of arrays,
#: where they hold their address, and lanes at most. Two bytes for each argument follow.
_KNOWN: Final = 8 * 6
_TEXT: Final = f"""
{call.DECLARED}declare ptr @PyLong_FromLong(i64)

define ptr @{_NAME}(ptr %self, ptr %args, i64 %n) {{
entry:
  %spec = getelementptr i8, ptr %self, i64 {call.BYTES}
  %length.at = getelementptr i8, ptr %self, i64 {call.BYTES - 16}
  %length = load i64, ptr %length.at
  %told = sub i64 %length, {_KNOWN}
  %count = sub i64 %n, 2
  %twice = shl i64 %count, 1
  %right = icmp eq i64 %told, %twice
  br i1 %right, label %start, label %refuse
start:
  %driver = load ptr, ptr %spec, align 1
  %kernel.at = getelementptr i8, ptr %spec, i64 8
  %kernel = load ptr, ptr %kernel.at, align 1
  %stream.at = getelementptr i8, ptr %spec, i64 16
  %stream = load ptr, ptr %stream.at, align 1
  %arrays.at = getelementptr i8, ptr %spec, i64 24
  %arrays = load ptr, ptr %arrays.at, align 1
  %slot.at = getelementptr i8, ptr %spec, i64 32
  %slot = load i64, ptr %slot.at, align 1
  %most.at = getelementptr i8, ptr %spec, i64 40
  %most = load i64, ptr %most.at, align 1
  %kinds = getelementptr i8, ptr %spec, i64 {_KNOWN}
  %blocks.o = load ptr, ptr %args
  %blocks = call i64 @PyLong_AsUnsignedLongLongMask(ptr %blocks.o)
  %lanes.at = getelementptr ptr, ptr %args, i64 1
  %lanes.o = load ptr, ptr %lanes.at
  %lanes.w = call i64 @PyLong_AsUnsignedLongLongMask(ptr %lanes.o)
  %many = icmp ult i64 %lanes.w, %most
  %lanes = select i1 %many, i64 %lanes.w, i64 %most
  %given = getelementptr ptr, ptr %args, i64 2
  %room = shl i64 %n, 3
  %buffer = alloca i8, i64 %room, align 16
  %size = alloca i64
  %extra = alloca [5 x i64]
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %next, %put ]
  %used = phi i64 [ 0, %start ], [ %end, %put ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %launch
body:
  %object.at = getelementptr ptr, ptr %given, i64 %i
  %object = load ptr, ptr %object.at
  %k = shl i64 %i, 1
  %kind.at = getelementptr i8, ptr %kinds, i64 %k
  %kind = load i8, ptr %kind.at
  %width.at = getelementptr i8, ptr %kind.at, i64 1
  %width.b = load i8, ptr %width.at
  %width = zext i8 %width.b to i64
  %type.at = getelementptr i8, ptr %object, i64 {call.DATA - 8}
  %type = load ptr, ptr %type.at
{call.NUMBERS}array:
  %is = icmp eq ptr %type, %arrays
  br i1 %is, label %address, label %refuse
address:
  %held.at = getelementptr i8, ptr %object, i64 %slot
  %held = load ptr, ptr %held.at
  %pointer = call i64 @PyLong_AsUnsignedLongLongMask(ptr %held)
  br label %put
put:
  %whole = phi i64 [ %pointer, %address ], [ %value, %direct ], [ %other, %indexed ],
    [ %bits, %float ], [ %bits, %check ], [ %flag, %truth ]
  %is.real = icmp eq i8 %kind, {ord("f")}
  %is.few = icmp eq i64 %width, 4
  %is.single = and i1 %is.real, %is.few
  %double = bitcast i64 %whole to double
  %single = fptrunc double %double to float
  %few = bitcast float %single to i32
  %low = zext i32 %few to i64
  %word = select i1 %is.single, i64 %low, i64 %whole
  %below = sub i64 %width, 1
  %above = add i64 %used, %below
  %mask = sub i64 0, %width
  %begin = and i64 %above, %mask
  %to = getelementptr i8, ptr %buffer, i64 %begin
  store i64 %word, ptr %to, align 1
  %end = add i64 %begin, %width
  %next = add i64 %i, 1
  br label %head
launch:
  store i64 %used, ptr %size
  %buffer.w = ptrtoint ptr %buffer to i64
  %size.w = ptrtoint ptr %size to i64
  %e1 = getelementptr i64, ptr %extra, i64 1
  %e2 = getelementptr i64, ptr %extra, i64 2
  %e3 = getelementptr i64, ptr %extra, i64 3
  %e4 = getelementptr i64, ptr %extra, i64 4
  store i64 {BUFFER}, ptr %extra
  store i64 %buffer.w, ptr %e1
  store i64 {SIZE}, ptr %e2
  store i64 %size.w, ptr %e3
  store i64 0, ptr %e4
  %gx = trunc i64 %blocks to i32
  %bx = trunc i64 %lanes to i32
  %thread = call ptr @PyEval_SaveThread()
  %code = call i32 %driver(ptr %kernel, i32 %gx, i32 1, i32 1, i32 %bx, i32 1, i32 1, i32 0,
    ptr %stream, ptr null, ptr %extra)
  call void @PyEval_RestoreThread(ptr %thread)
  %code.w = zext i32 %code to i64
  %result = call ptr @PyLong_FromLong(i64 %code.w)
  ret ptr %result
{call.REFUSAL}}}
"""


def packer_of(signature: tuple[str, ...]) -> struct.Struct:
    """Return what packs arguments as the driver lays them out."""
    return struct.Struct("@" + "".join(PACKED.get(code, "P") for code in signature))


def launcher(
    driver: Any, function: int, stream: int, most: int, signature: tuple[str, ...], arrays: type
) -> Launch:
    """Return ``launch(blocks, lanes, *args) -> code`` of a kernel.

    Parameters
    ----------
    driver : ctypes function
        ``cuLaunchKernel``.
    function, stream : int
        Handles.
    most : int
        Lanes that a block may have.
    signature : tuple of str
    arrays : type
        Of arguments that are arrays: their attribute ``pointer`` is passed.
    """
    if (address := _compiled()) and (slot := slot_of(arrays, "pointer")):
        called = ctypes.cast(driver, c_void_p).value or 0
        known = struct.pack("6q", called, function, stream, id(arrays), slot, most)
        return call.builtin("launch", address, known + b"".join(map(_kind, signature)))
    return _plain(driver, function, stream, most, signature)


@functools.cache
def _compiled() -> int:
    """Return the address of what launches; 0 where machine code of ours cannot be loaded."""
    if not call.layout_is_known():
        return 0
    try:
        return load.made(_NAME, _TEXT)
    except (Fallback, LookupError) as error:
        _log.info("launches are packed by Python: %s", error)
        return 0


@functools.cache
def slot_of(kind: type, name: str) -> int:
    """Return where objects of a type hold an attribute of ``__slots__``; 0 if that is not seen."""
    probe, mark = object.__new__(kind), object()
    setattr(probe, name, mark)
    words = (c_size_t * (kind.__basicsize__ // 8)).from_address(id(probe))
    found = [8 * k for k, word in enumerate(words) if word == id(mark)]
    setattr(probe, name, 0)
    return found[0] if len(found) == 1 else 0


def _kind(code: str) -> bytes:
    letter = PACKED.get(code, "P")
    kind = {"P": "a", "?": "b", "f": "f", "d": "f"}.get(letter, "i")
    return bytes((ord(kind), struct.calcsize(letter)))


def _plain(
    driver: Any, function: int, stream: int, most: int, signature: tuple[str, ...]
) -> Launch:
    packer, lock = packer_of(signature), threading.Lock()
    places = [k for k, code in enumerate(signature) if code not in PACKED]
    packed, size = ctypes.create_string_buffer(packer.size), c_size_t(packer.size)
    extra = (c_void_p * 5)(BUFFER, ctypes.addressof(packed), SIZE, ctypes.addressof(size), None)

    def launch(blocks: int, lanes: int, *args: Any) -> int:
        given = list(args)
        for k in places:
            given[k] = given[k].pointer
        with lock:  # the driver copies the buffer before it returns
            packer.pack_into(packed, 0, *given)
            return driver(function, blocks, 1, 1, min(lanes, most), 1, 1, 0, stream, None, extra)

    launch.keeps = size  # type: ignore[attr-defined] - its address is in `extra`
    return launch
