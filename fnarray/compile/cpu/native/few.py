"""Products of small matrices of real numbers, as LLVM text: a fifth of that of `gemm`, in whose
order terms are added, to the same bits.

What makes large products fast is left out: panels that fit a cache, matrices laid out anew. The
first product of a machine, of 20 x 30 by 30 x 20, took 98 ms of the processor, and takes 34.
"""

from __future__ import annotations

import itertools
from typing import Final

from . import gemm, panels
from .panels import KINDS, Kind, load, mask, store

#: What their names begin with, and what those of a second matrix whose columns lie together end
#: with.
NAME: Final = "fnarray_few_"
_TURNED: Final = "_turned"
#: Rows, terms and columns at most: so many terms are one chain of `gemm`.
MOST: Final = 64
#: What products take: the matrices; rows, terms and columns; whether the first one's columns lie
#: together.
PARAMETERS: Final = ("ptr",) * 3 + ("i64",) * 4
#: Rows of a tile, some of which may lie over the end: eight sums wait for each other no longer than
#: they take. Of four, 48 x 48 by 48 x 48 took 1.17 of the time of `gemm`, of eight .96. Two vectors
#: across take four of them where there are sixteen registers.
_ROWS, _SHORT = 8, 4


def symbol(letter: str, turned: bool) -> str | None:
    """Return what object code calls a product of BLAS's ``s`` or ``d``; None if BLAS is better."""
    return NAME + letter + turned * _TURNED if gemm.symbol(letter) else None


def text(name: str) -> str | None:
    """Return the text of a product, given its symbol; None if there is no such product."""
    letter, turned, _ = name.removeprefix(NAME).partition(_TURNED)
    if symbol(letter, bool(turned)) != name:
        return None
    kind = KINDS[letter]
    parts = [_strip(kind, wide) for wide in (1, 2)]
    across = 2 * kind.lanes
    given = {
        "name": name, "element": kind.name, "size": kind.size, "lanes": kind.lanes,
        "across": across, "laid": across * kind.size,
        "one": _name(1), "two": _name(2),
    }  # fmt: skip
    if turned:
        parts.append(panels.columns(kind))
    body = (_LAID if turned else _LYING).format(**given)
    room = f"  %from = alloca [{across * MOST} x {kind.name}], align 64" if turned else ""
    return "\n".join((*parts, _PRODUCT.format(body=body, room=room, **given), gemm.declared(kind)))


#: What says where some columns of the second matrix are: as they lie, or laid out.
_LYING: Final = """\
  %from = getelementptr {element}, ptr %b, i64 %j
  %under = mul i64 %n, {size}"""
_LAID: Final = """\
  %b.skip = mul i64 %j, %k
  %b.j = getelementptr {element}, ptr %b, i64 %b.skip
  %b.under = mul i64 %k, {size}
  call void @columns(ptr %b.j, i64 %b.under, ptr %from, i64 %k, i64 %some)
  %under = add i64 {laid}, 0"""
_PRODUCT: Final = """\
define void @{name}(ptr %a, ptr %b, ptr %out, i64 %m, i64 %k, i64 %n, i64 %left) #0 {{
entry:
{room}
  %turned = icmp ne i64 %left, 0
  %m.bytes = mul i64 %m, {size}
  %k.bytes = mul i64 %k, {size}
  %next = mul i64 %n, {size}
  %down = select i1 %turned, i64 {size}, i64 %k.bytes
  %along = select i1 %turned, i64 %m.bytes, i64 {size}
  br label %columns
columns:
  %j = phi i64 [ 0, %entry ], [ %j.next, %columns.next ]
  %left.over = sub i64 %n, %j
  %some = call i64 @llvm.smin.i64(i64 %left.over, i64 {across})
  %out.j = getelementptr {element}, ptr %out, i64 %j
{body}
  %narrow = icmp sle i64 %some, {lanes}
  br i1 %narrow, label %one, label %two
one:
  call void @strip.{one}(ptr %a, i64 %down, i64 %along, ptr %from, i64 %under, ptr %out.j,
    i64 %next, i64 %m, i64 %k, i64 %some)
  br label %columns.next
two:
  call void @strip.{two}(ptr %a, i64 %down, i64 %along, ptr %from, i64 %under, ptr %out.j,
    i64 %next, i64 %m, i64 %k, i64 %some)
  br label %columns.next
columns.next:
  %j.next = add i64 %j, {across}
  %j.more = icmp slt i64 %j.next, %n
  br i1 %j.more, label %columns, label %end
end:
  ret void
}}"""


def _rows(wide: int) -> int:
    return _ROWS if wide == 1 or panels.has_masks() else _SHORT


def _name(wide: int) -> str:
    return f"{_rows(wide)}.{wide}"


def _strip(kind: Kind, wide: int) -> str:
    """Return what multiplies all rows and up to `wide` vectors of columns, some rows at a time."""
    lanes, rows = kind.lanes, _rows(wide)
    lines = [
        (
            f"define internal void @strip.{_name(wide)}(ptr noalias %a, i64 %down, i64 %along, "
            "ptr noalias %b, i64 %under, ptr noalias %out, i64 %next, i64 %m, i64 %k, "
            "i64 %columns) #0 {"
        ),
        "entry:",
    ]
    for w in range(wide):
        lines.append(f"%left.{w} = sub i64 %columns, {w * lanes}")
        lines += mask(f"in.{w}", f"%left.{w}", lanes)
    lines += (f"%down.{r} = mul i64 %down, {r}" for r in range(1, rows + 1))
    lines += (
        "br label %tile",
        "tile:",
        "%left = phi i64 [ %m, %entry ], [ %left.next, %put ]",
        "%from.tile = phi ptr [ %a, %entry ], [ %from.below, %put ]",
        "%to.0 = phi ptr [ %out, %entry ], [ %to.below, %put ]",
    )
    for r in range(1, rows):  # what lies over the end is computed as the first row is
        lines.append(f"%is.{r} = icmp sgt i64 %left, {r}")
        lines.append(f"%skip.{r} = select i1 %is.{r}, i64 %down.{r}, i64 0")
    lines += (*_turn(kind, rows, wide), *_put(kind, rows, wide))
    lines += (
        f"%left.next = sub i64 %left, {rows}",
        f"%from.below = getelementptr i8, ptr %from.tile, i64 %down.{rows}",
        f"%to.below = getelementptr i8, ptr %to.{rows - 1}, i64 %next",
        "%more.rows = icmp sgt i64 %left.next, 0",
        "br i1 %more.rows, label %tile, label %end",
        "end:",
        "ret void",
        "}",
    )
    return "\n".join(lines)


def _turn(kind: Kind, rows: int, wide: int) -> list[str]:
    """Return the loop of a tile over its terms, each a column times a row."""
    v, lanes, step = kind.vector, kind.lanes, kind.lanes * kind.size
    lines = [
        "br label %turn",
        "turn:",
        "%p = phi i64 [ 0, %tile ], [ %p.next, %turn ]",
        "%row = phi ptr [ %b, %tile ], [ %row.next, %turn ]",
        "%from = phi ptr [ %from.tile, %tile ], [ %from.next, %turn ]",
    ]
    lines += (
        f"%sum.{r}.{w} = phi {v} [ zeroinitializer, %tile ], [ %more.{r}.{w}, %turn ]"
        for r in range(rows)
        for w in range(wide)
    )
    for w in range(wide):
        lines.append(f"%row.{w} = getelementptr i8, ptr %row, i64 {w * step}")
        lines.append(load(f"b.{w}", f"%row.{w}", f"%in.{w}", kind, lanes))
    for r in range(rows):
        lines += (
            f"%at.{r} = getelementptr i8, ptr %from, i64 {f'%skip.{r}' if r else 0}",
            f"%x.{r} = load {kind.name}, ptr %at.{r}, align {kind.size}",
            f"%one.{r} = insertelement {v} poison, {kind.name} %x.{r}, i64 0",
            f"%a.all.{r} = shufflevector {v} %one.{r}, {v} poison, <{lanes} x i32> zeroinitializer",
        )
        lines += (
            f"%more.{r}.{w} = call {v} @llvm.fma.v{lanes}{kind.short}({v} %a.all.{r}, {v} %b.{w}, "
            f"{v} %sum.{r}.{w})"
            for w in range(wide)
        )
    lines += (
        "%row.next = getelementptr i8, ptr %row, i64 %under",
        "%from.next = getelementptr i8, ptr %from, i64 %along",
        "%p.next = add nuw nsw i64 %p, 1",
        "%again = icmp ult i64 %p.next, %k",
        "br i1 %again, label %turn, label %put",
        "put:",
    )
    return lines


def _put(kind: Kind, rows: int, wide: int) -> list[str]:
    """Return the end of a tile, which writes what lies in the result."""
    v, masks, step = kind.vector, f"<{kind.lanes} x i1>", kind.lanes * kind.size
    lines: list[str] = []
    for r, w in itertools.product(range(rows), range(wide)):
        here, inside = f"{r}.{w}", f"%in.{w}"
        if r and not w:
            lines.append(f"%to.{r} = getelementptr i8, ptr %to.{r - 1}, i64 %next")
        if r:
            inside = f"%in.{here}"
            lines.append(f"{inside} = select i1 %is.{r}, {masks} %in.{w}, {masks} zeroinitializer")
        lines += (
            f"%z.{here} = fadd {v} %more.{here}, zeroinitializer",  # as what is added to nothing
            f"%to.{here} = getelementptr i8, ptr %to.{r}, i64 {w * step}",
            store(f"%z.{here}", f"%to.{here}", inside, kind),
        )
    return lines
