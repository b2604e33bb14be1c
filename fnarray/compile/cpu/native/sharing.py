"""The pool's machine code, as LLVM text: how threads share the chunks of a loop.

A thread is asked for in half a microsecond while it is awake, which it stays for some fifty after
its last work; then it sleeps, and the system takes as long to wake it. Nobody waits for that: each
thread takes the chunks of its own share, then those of others that they have not begun, so that a
loop is done even where no other thread comes (decision 0030).
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from .call import BYTES, FILL, LINE, LINES, MOST, POOL

#: How often a thread that waits lets others run before it sleeps, and how many moments, of some 30
#: ns, it waits in between. One that did not let go, woken on the processor of the thread that woke
#: it since the others were busy, kept that from going on: 65 us in place of 15.
_PATIENCE, _MOMENTS = 8, 256
LAUNCH: Final = "fnarray_launch"
_SHARE: Final = "share"
WORKER: Final = "fnarray_worker"
PARTS: Final = "fnarray_pool_parts"
#: The line that holds the address of what shares out a loop, for kernels.
NOTED: Final = 6
#: By processor: the numbers of the system calls ``futex`` and ``sched_yield``, and what waits for a
#: moment.
_MACHINES: Final = {
    "x86_64": (202, 24, "llvm.x86.sse2.pause()"),
    "aarch64": (98, 124, "llvm.aarch64.hint(i32 1)"),
}


def is_known() -> bool:
    """Whether the system is one whose threads can wait for a word of memory."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


_FUTEX, _YIELD, _MOMENT = _MACHINES.get(platform.machine(), (0, 0, "nothing()"))

#: What a routine of BLAS or LAPACK takes at most.
POINTERS: Final = 15
_LOADS: Final = "\n".join(
    f"  %at{k} = getelementptr ptr, ptr %frame, i64 {k + 1}\n  %p{k} = load ptr, ptr %at{k}"
    for k in range(POINTERS)
)
_OPERANDS: Final = ", ".join(f"ptr %p{k}" for k in range(POINTERS))

#: A ticket is a thread's share of the loop that runs: in its low half how many chunks nobody has
#: taken, in its high half the number of the loop, by which a late thread finds that it is late.
#: What describes the loop does not change as long as a chunk is not done.
TEXT: Final = f"""{FILL}
@{POOL} = external global i8
declare i64 @syscall(i64, ...)
declare void @{_MOMENT.replace(" 1)", ")")}

define internal ptr @word(i64 %line) alwaysinline {{
  %offset = mul i64 %line, {LINE}
  %at = getelementptr i8, ptr @{POOL}, i64 %offset
  ret ptr %at
}}

define internal void @sleep(ptr %word, i32 %value) {{
  call i64 (i64, ...) @syscall(i64 {_FUTEX}, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}}

define internal void @wake(ptr %word, i32 %count) {{
  call i64 (i64, ...) @syscall(i64 {_FUTEX}, ptr %word, i32 129, i32 %count)
  ret void
}}

; Wait until a word is another than it was, awake at first.
define internal i32 @changed(ptr %word, i32 %before, ptr %sleepers) noinline {{
entry:
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ %n.next, %again ]
  %now = load atomic i32, ptr %word acquire, align 4
  %is = icmp ne i32 %now, %before
  br i1 %is, label %done, label %more
more:
  %n.next = add i64 %n, 1
  call void @{_MOMENT}
  %part = and i64 %n, {_MOMENTS - 1}
  %full = icmp eq i64 %part, {_MOMENTS - 1}
  br i1 %full, label %yield, label %again
yield:
  %tired = icmp ugt i64 %n, {_PATIENCE * _MOMENTS}
  br i1 %tired, label %rest, label %let
let:
  call i64 (i64, ...) @syscall(i64 {_YIELD})
  br label %again
again:
  br label %spin
rest:
  %one = atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @sleep(ptr %word, i32 %before)
  %less = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  %then = load atomic i32, ptr %word acquire, align 4
  %woken = icmp ne i32 %then, %before
  br i1 %woken, label %late, label %rest
late:
  br label %done
done:
  %value = phi i32 [ %now, %spin ], [ %then, %late ]
  ret i32 %value
}}

; Take chunks until there are none: first of the own share, then of the others'.
define internal void @take(i64 %own) noinline {{
entry:
  %remaining = call ptr @word(i64 2)
  %waiting = call ptr @word(i64 3)
  %job = call ptr @word(i64 5)
  %context.at = getelementptr i8, ptr %job, i64 8
  %extent.at = getelementptr i8, ptr %job, i64 16
  %step.at = getelementptr i8, ptr %job, i64 24
  %share.at = getelementptr i8, ptr %job, i64 32
  %chunks.at = getelementptr i8, ptr %job, i64 40
  %threads.at = getelementptr i8, ptr %job, i64 48
  br label %round
round:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %threads = load atomic i64, ptr %threads.at monotonic, align 8
  %all = icmp uge i64 %k, %threads
  %strange = icmp uge i64 %own, %threads
  %over = or i1 %all, %strange
  br i1 %over, label %done, label %victim
victim:
  %sum = add i64 %own, %k
  %number = urem i64 %sum, %threads
  %line = add i64 %number, {LINES}
  %ticket = call ptr @word(i64 %line)
  br label %look
look:
  %held = load atomic i64, ptr %ticket acquire, align 8
  %left = and i64 %held, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %next, label %mine
mine:
  %current = load atomic i64, ptr %threads.at monotonic, align 8
  %other = icmp uge i64 %own, %current
  br i1 %other, label %done, label %claim
claim:
  %less = sub i64 %held, 1
  %pair = cmpxchg ptr %ticket, i64 %held, i64 %less acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %run, label %look
run:
  %function = load ptr, ptr %job
  %context = load ptr, ptr %context.at
  %extent = load i64, ptr %extent.at
  %step = load i64, ptr %step.at
  %share = load i64, ptr %share.at
  %chunks = load i64, ptr %chunks.at
  %place = add i64 %number, 1
  %end = mul i64 %place, %share
  %last = call i64 @llvm.umin.i64(i64 %end, i64 %chunks)
  %chunk = sub i64 %last, %left
  %start = mul i64 %chunk, %step
  %full = add i64 %start, %step
  %stop = call i64 @llvm.umin.i64(i64 %full, i64 %extent)
  call void %function(ptr %context, i64 %start, i64 %stop, i64 %chunk)
  %before = atomicrmw sub ptr %remaining, i32 1 seq_cst
  %ends = icmp eq i32 %before, 1
  br i1 %ends, label %tell, label %look
tell:
  %asleep = load atomic i32, ptr %waiting seq_cst, align 4
  %none.asleep = icmp eq i32 %asleep, 0
  br i1 %none.asleep, label %look, label %rouse
rouse:
  call void @wake(ptr %remaining, i32 1)
  br label %look
next:
  %k.next = add i64 %k, 1
  br label %round
done:
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)

define ptr @{WORKER}(ptr %number) {{
entry:
  %own = ptrtoint ptr %number to i64
  %turn = call ptr @word(i64 0)
  %sleepers = call ptr @word(i64 1)
  %first = load atomic i32, ptr %turn acquire, align 4
  br label %work
work:
  %seen = phi i32 [ %first, %entry ], [ %new, %work ]
  call void @take(i64 %own)
  %new = call i32 @changed(ptr %turn, i32 %seen, ptr %sleepers)
  br label %work
}}

; Run ``function(context, start, stop, chunk)`` on chunks of a range, with up to so many threads.
define internal void @{_SHARE}(ptr %function, ptr %context, i64 %extent, i64 %step, i64 %most) {{
entry:
  %padded = add i64 %extent, %step
  %short = sub i64 %padded, 1
  %chunks = udiv i64 %short, %step
  %some = call i64 @llvm.umin.i64(i64 %most, i64 %chunks)
  %threads = call i64 @llvm.umin.i64(i64 %some, i64 {MOST})
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %ask, label %alone
ask:
  %busy = call ptr @word(i64 4)
  %taken = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue {{ i32, i1 }} %taken, 1
  br i1 %free, label %publish, label %alone
alone:
  %i = phi i64 [ 0, %entry ], [ 0, %ask ], [ %i.next, %chunk ]
  %more = icmp ult i64 %i, %chunks
  br i1 %more, label %chunk, label %end
chunk:
  %start = mul i64 %i, %step
  %full = add i64 %start, %step
  %stop = call i64 @llvm.umin.i64(i64 %full, i64 %extent)
  call void %function(ptr %context, i64 %start, i64 %stop, i64 %i)
  %i.next = add i64 %i, 1
  br label %alone
publish:
  %turn = call ptr @word(i64 0)
  %sleepers = call ptr @word(i64 1)
  %remaining = call ptr @word(i64 2)
  %waiting = call ptr @word(i64 3)
  %job = call ptr @word(i64 5)
  %rounded = add i64 %chunks, %threads
  %rounded.less = sub i64 %rounded, 1
  %share = udiv i64 %rounded.less, %threads
  store ptr %function, ptr %job
  %context.at = getelementptr i8, ptr %job, i64 8
  store ptr %context, ptr %context.at
  %extent.at = getelementptr i8, ptr %job, i64 16
  store i64 %extent, ptr %extent.at
  %step.at = getelementptr i8, ptr %job, i64 24
  store i64 %step, ptr %step.at
  %share.at = getelementptr i8, ptr %job, i64 32
  store i64 %share, ptr %share.at
  %chunks.at = getelementptr i8, ptr %job, i64 40
  store i64 %chunks, ptr %chunks.at
  %threads.at = getelementptr i8, ptr %job, i64 48
  store atomic i64 %threads, ptr %threads.at monotonic, align 8
  %count = trunc i64 %chunks to i32
  store atomic i32 %count, ptr %remaining monotonic, align 4
  %previous = load atomic i32, ptr %turn monotonic, align 4
  %this = add i32 %previous, 1
  %wide = zext i32 %this to i64
  %high = shl i64 %wide, 32
  br label %deal
deal:
  %t = phi i64 [ 0, %publish ], [ %t.next, %deal ]
  %t.next = add i64 %t, 1
  %low = mul i64 %t, %share
  %from = call i64 @llvm.umin.i64(i64 %low, i64 %chunks)
  %top = mul i64 %t.next, %share
  %to = call i64 @llvm.umin.i64(i64 %top, i64 %chunks)
  %size = sub i64 %to, %from
  %value = or i64 %high, %size
  %line = add i64 %t, {LINES}
  %ticket = call ptr @word(i64 %line)
  store atomic i64 %value, ptr %ticket release, align 8
  %another = icmp ult i64 %t.next, %threads
  br i1 %another, label %deal, label %call
call:
  store atomic i32 %this, ptr %turn seq_cst, align 4
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %awake = icmp eq i32 %asleep, 0
  br i1 %awake, label %join, label %rouse
rouse:
  call void @wake(ptr %turn, i32 %asleep)
  br label %join
join:
  call void @take(i64 0)
  br label %left
left:
  %seen = load atomic i32, ptr %remaining acquire, align 4
  %done = icmp eq i32 %seen, 0
  br i1 %done, label %leave, label %wait
wait:
  %now = call i32 @changed(ptr %remaining, i32 %seen, ptr %waiting)
  br label %left
leave:
  store atomic i32 0, ptr %busy release, align 4
  br label %end
end:
  ret void
}}

; A kernel's chunk: its frame, the range at its head, and the arrays that are the chunk's own.
define internal void @part(ptr %call, i64 %start, i64 %stop, i64 %chunk) {{
entry:
  %code = load ptr, ptr %call
  %n.at = getelementptr i64, ptr %call, i64 1
  %n = load i64, ptr %n.at
  %frame.at = getelementptr i64, ptr %call, i64 2
  %frame = load ptr, ptr %frame.at
  %many.at = getelementptr i64, ptr %call, i64 3
  %many = load ptr, ptr %many.at
  %size = add i64 %n, 2
  %mine = alloca i64, i64 %size
  store i64 %start, ptr %mine
  %second = getelementptr i64, ptr %mine, i64 1
  store i64 %stop, ptr %second
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %run
body:
  %items.at = getelementptr ptr, ptr %many, i64 %i
  %items = load ptr, ptr %items.at
  %same = icmp eq ptr %items, null
  br i1 %same, label %shared, label %own
shared:
  %word.at = getelementptr i64, ptr %frame, i64 %i
  %word = load i64, ptr %word.at
  br label %put
own:
  %item.at = getelementptr i64, ptr %items, i64 %chunk
  %item = load i64, ptr %item.at
  br label %put
put:
  %value = phi i64 [ %word, %shared ], [ %item, %own ]
  %place = add i64 %i, 2
  %to = getelementptr i64, ptr %mine, i64 %place
  store i64 %value, ptr %to
  %next = add i64 %i, 1
  br label %head
run:
  call void %code(ptr %mine)
  ret void
}}

; The addresses of what is called from outside; that of `share` is noted where the threads meet.
define ptr @{PARTS}(i64 %which) {{
  %noted = call ptr @word(i64 {NOTED})
  store ptr @{_SHARE}, ptr %noted
  switch i64 %which, label %worker [
    i64 1, label %launch
    i64 2, label %share
    i64 3, label %calls
  ]
worker:
  ret ptr @{WORKER}
launch:
  ret ptr @{LAUNCH}
share:
  ret ptr @{_SHARE}
calls:
  ret ptr @calls
}}

; Calls of one routine each, with as many pointers as BLAS takes at most; it ignores what is over.
define internal void @calls(ptr %frames, i64 %start, i64 %stop, i64 %chunk) {{
entry:
  br label %head
head:
  %i = phi i64 [ %start, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %stop
  br i1 %more, label %body, label %end
body:
  %frame = getelementptr [{POINTERS + 1} x ptr], ptr %frames, i64 %i
  %routine = load ptr, ptr %frame
{_LOADS}
  call void %routine({_OPERANDS})
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}

; Python: launch(spec of a kernel, threads, step, extent, *arguments from the third on).
define ptr @{LAUNCH}(ptr %self, ptr %args, i64 %n) {{
entry:
  %spec.object = load ptr, ptr %args
  %spec = getelementptr i8, ptr %spec.object, i64 {BYTES}
  %code = load ptr, ptr %spec, align 1
  %kinds = getelementptr i8, ptr %spec, i64 10
  %length.at = getelementptr i8, ptr %spec.object, i64 {BYTES - 16}
  %length = load i64, ptr %length.at
  %count = sub i64 %length, 10
  %given = sub i64 %n, 4
  %right = icmp eq i64 %count, %given
  br i1 %right, label %start, label %refuse
start:
  %threads.at = getelementptr ptr, ptr %args, i64 1
  %threads.object = load ptr, ptr %threads.at
  %threads = call i64 @PyLong_AsUnsignedLongLongMask(ptr %threads.object)
  %step.at = getelementptr ptr, ptr %args, i64 2
  %step.object = load ptr, ptr %step.at
  %step = call i64 @PyLong_AsUnsignedLongLongMask(ptr %step.object)
  %extent.at = getelementptr ptr, ptr %args, i64 3
  %extent.object = load ptr, ptr %extent.at
  %extent = call i64 @PyLong_AsUnsignedLongLongMask(ptr %extent.object)
  %rest = getelementptr ptr, ptr %args, i64 4
  %frame = alloca i64, i64 %given
  %many = alloca ptr, i64 %given
  %bytes = mul i64 %given, 8
  call void @llvm.memset.p0.i64(ptr %many, i8 0, i64 %bytes, i1 false)
  %filled = call i1 @fill(ptr %frame, ptr %many, ptr %rest, i64 %given, ptr %kinds)
  br i1 %filled, label %run, label %fail
run:
  %call = alloca [4 x i64]
  store ptr %code, ptr %call
  %given.at = getelementptr i64, ptr %call, i64 1
  store i64 %given, ptr %given.at
  %frame.at = getelementptr i64, ptr %call, i64 2
  store ptr %frame, ptr %frame.at
  %many.at = getelementptr i64, ptr %call, i64 3
  store ptr %many, ptr %many.at
  %thread = call ptr @PyEval_SaveThread()
  call void @{_SHARE}(ptr @part, ptr %call, i64 %extent, i64 %step, i64 %threads)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @Py_IncRef(ptr @fnarray_none)
  ret ptr @fnarray_none
refuse:
  call void @PyErr_SetString(ptr @fnarray_type_error, ptr @.message)
  br label %fail
fail:
  ret ptr null
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
