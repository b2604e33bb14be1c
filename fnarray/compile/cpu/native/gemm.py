"""Products of matrices of real numbers, as LLVM text: compiled once, for all kernels and steps.

The algorithm is that of Goto and van de Geijn (ACM TOMS 34, 2008) with less copied: a panel of some
columns of the second matrix is laid out so that it fits the nearest cache, and multiplied by the
rows of the first, where they lie, a tile of the result in registers at a time. Of each entry the
terms are added in order, `_CHAIN` at a time, and what these come to `TERMS` at a time: how the
result is cut into tiles, blocks, or parts for threads changes no bit of it.

It is for processors whose registers of 512 bits are worth using: libraries may have been told not
to (decision 0082 has the measurements); and for those whose registers have 256, where it is as fast
up to 256 x 256 (the same note). Elsewhere, and for complex numbers, products are BLAS's.
"""

from __future__ import annotations

import math
from typing import Final

from ..processor import processor
from . import panels
from .panels import ALL, KINDS, TERMS, Kind, has_masks, load, mask, store, tall

#: Rows of the tile for what remains, which may be fewer.
_REST: Final = 4
#: Rows of the first matrix that a panel meets, which stay in the second cache of 512 KB; and bytes
#: of them, where it has 1 MB or more, some of which others take: of 960 rows of float32 products
#: of 1,000 x 1,000 made 0.44 to 0.55 fused operations a cycle beside other processes, of 480 they
#: make 0.57; of float64 512 x 512 made 43 GF/s with 480 rows, and 50 with 240. Up to a fifth more
#: are one block, and blocks are even: each reads the second matrix, which takes as long for a few.
_ROWS, _BLOCK = 240, 480 << 10
#: Panels from which rows of the first matrix whose terms lie apart are laid out for all of them.
_REUSED: Final = 6
#: Terms that are added one after another: 300 by 300 products of positive numbers were off by 1.9
#: ULP in chains of 256, and are by 0.66 in as much time (up to 4 % more); in chains of 32 by 0.62.
_CHAIN: Final = 64
#: Rows whose pointers are made of one: the processor adds up to twice a register to an address.
_GROUP: Final = 3
#: Panels are laid out anew from so many rows on where others lie between their rows.
_WORTH: Final = 24


#: What products take: the first matrices; rows, terms and columns; how far apart, in entries, rows
#: of each matrix begin, or columns where these lie together; whether they do, in factors; how many
#: pairs there are, and how many bytes apart the matrices of each kind are.
PARAMETERS: Final = ("ptr",) * 3 + ("i64",) * 12


#: What their names begin with.
NAME: Final = "fnarray_product_"


def large() -> float:
    """Return the multiplications from which a product called alone is better left to BLAS.

    Where registers have 256 bits, 256 x 256 are as fast, and 512 x 512 take 1.0 to 1.5 times as
    long: BLAS lays out the first matrix, too.
    """
    return math.inf if has_masks() else 1 << 26


def symbol(letter: str) -> str | None:
    """Return what object code calls a product of BLAS's ``s`` or ``d``; None if BLAS is better."""
    able = has_masks() or {"+avx2", "+fma"} <= set(processor().features.split(","))
    return NAME + letter if letter in KINDS and able else None


def text(name: str) -> str | None:
    """Return the text of a product, given its symbol; None if there is no such product."""
    letter = name.removeprefix(NAME)
    if symbol(letter) != name:
        return None
    kind = KINDS[letter]
    return "\n".join(
        (
            parts(kind),
            panels.columns(kind),
            panels.keep(kind),
            _PRODUCT.format(name=name, **sizes(kind)),
        )
    )


def parts(kind: Kind, across: tuple[int, ...] = (1, 2)) -> str:
    """Return the text of ``strip.1`` and ``strip.2``, of ``rows``, and of what they call.

    Parameters
    ----------
    across : tuple of int
        Of how many vectors strips there are.
    """
    tiles = [_tile(kind, r, w) for r in (tall(), _REST) for w in across]
    tiles += [_tile(kind, tall(), w, whole=True) for w in across if _is_apart(w)]
    return "\n".join(
        (*tiles, *(_strip(kind, w) for w in across), panels.rows(kind), declared(kind))
    )


def declared(kind: Kind) -> str:
    """Return what says which functions a text of products calls."""
    v, size, x = kind.vector, f"v{kind.lanes}{kind.short}.p0", f"v{kind.lanes}{kind.short}"
    half, pair = f"<{panels.SQUARE} x {kind.name}>", f"[{2 * kind.lanes} x {kind.name}]"
    loads = {f"declare {v} @llvm.masked.load.{size}(ptr, <{kind.lanes} x i1>, {v})"}
    square = f"v{panels.SQUARE}{kind.short}.p0"
    loads.add(f"declare {half} @llvm.masked.load.{square}(ptr, <{panels.SQUARE} x i1>, {half})")
    return "\n".join(
        (
            *sorted(loads),
            f"declare void @llvm.masked.store.{size}({v}, ptr, <{kind.lanes} x i1>)",
            f"declare {v} @llvm.fma.{x}({v}, {v}, {v})",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)",
            f"@zeros = internal constant {pair} zeroinitializer, align 64",
            'attributes #0 = { nounwind "prefer-vector-width"="512" }',
        )
    )


def _tile(kind: Kind, rows: int, wide: int, *, whole: bool = False) -> str:
    """Return what fills some rows, and up to `wide` vectors across, or adds to them.

    Of the small one rows may lie over the end: they are computed as the first is, and not written.
    A whole one has all of its columns.
    """
    name = f"tile.{rows}.{wide}{'.whole' if whole else ''}"
    some = rows == _REST
    lines = [
        (
            f"define internal void @{name}(ptr noalias %a, i64 %down, i64 %along, "
            "ptr noalias %b, i64 %under, ptr noalias %out, i64 %next, i64 %m, i64 %k, "
            "i64 %columns, i1 %fresh) #0 {"
        ),
        "entry:",
        f"%sums = alloca [{rows * wide} x {kind.vector}], align {kind.lanes * kind.size}",
    ]
    for w in range(wide):
        if not whole:
            lines.append(f"%left.{w} = sub i64 %columns, {w * kind.lanes}")
            lines += mask(f"in.{w}", f"%left.{w}", kind.lanes)
    masks = [ALL if whole else f"%in.{w}" for w in range(wide)]
    for r in range(1, rows):
        steps = r if some else r % _GROUP or _GROUP
        lines.append(f"%down.{r} = mul i64 %down, {steps}")
        if some:
            lines.append(f"%is.{r} = icmp ugt i64 %m, {r}")
            lines.append(f"%skip.{r} = select i1 %is.{r}, i64 %down.{r}, i64 0")
    skip = [f"%skip.{r}" if some else f"%down.{r}" for r in range(rows)]
    for r in range(_GROUP, rows, _GROUP):
        before = "%a" if some or r == _GROUP else f"%a.{r - _GROUP}"
        # LLVM is not told how these pointers were made, or it makes all twelve of one, each by an
        # addition that waits for the one before: as long as the tile's multiplications take.
        lines.append(f"%plain.{r} = getelementptr i8, ptr {before}, i64 {skip[r]}")
        lines.append(f'%a.{r} = call ptr asm "", "=r,0"(ptr %plain.{r})')
    if whole:
        lines += _fetch(kind, rows, wide)
    lines += ("br label %begin", "begin:")
    turn, between = _turn(kind, rows, masks, skip), _between(kind, rows, wide)
    return "\n".join((*lines, *turn, *between, *_put(kind, rows, masks), "}"))


def _fetch(kind: Kind, rows: int, wide: int) -> list[str]:
    """Return what asks for the result that a tile adds to, before it computes.

    Its rows lie apart, which no processor foresees: 1,024 x 1,024 by as many took 1.04 times as
    long on a Zen 5, of float64 1.08.
    """
    lines = ["br i1 %fresh, label %begin, label %fetch", "fetch:"]
    for r in range(rows):
        row = f"%fetch.{r}"
        before, step = (f"%fetch.{r - 1}", "%next") if r else ("%out", "0")
        lines.append(f"{row} = getelementptr i8, ptr {before}, i64 {step}")
        for w in range(wide):
            lines += panels.fetch(f"fetch.{r}.{w}", row, w * kind.lanes * kind.size, write=True)
    return lines


def _turn(kind: Kind, rows: int, masks: list[str], skip: list[str]) -> list[str]:
    """Return the loop of a tile over its terms, each a column times a row."""
    v, lanes, step = kind.vector, kind.lanes, kind.lanes * kind.size
    heads = range(0, rows, _GROUP)
    lines = [
        "br label %block",
        "block:",
        "%k.left = phi i64 [ %k, %begin ], [ %k.rest, %spill ]",
        "%first = phi i1 [ true, %begin ], [ false, %spill ]",
        "%row.block = phi ptr [ %b, %begin ], [ %row.next, %spill ]",
    ]
    for r in heads:
        first = f"%a.{r}" if r else "%a"
        lines.append(f"%block.{r} = phi ptr [ {first}, %begin ], [ %from.next.{r}, %spill ]")
    lines += (
        f"%k.some = call i64 @llvm.smin.i64(i64 %k.left, i64 {_CHAIN})",
        "br label %turn",
        "turn:",
        "%p = phi i64 [ 0, %block ], [ %p.next, %turn ]",
        "%row = phi ptr [ %row.block, %block ], [ %row.next, %turn ]",
    )
    for r in heads:
        lines.append(f"%from.{r} = phi ptr [ %block.{r}, %block ], [ %from.next.{r}, %turn ]")
    for r in range(rows):
        lines += (
            f"%sum.{r}.{w} = phi {v} [ zeroinitializer, %block ], [ %more.{r}.{w}, %turn ]"
            for w in range(len(masks))
        )
    for w in range(len(masks)):
        lines.append(f"%row.{w} = getelementptr i8, ptr %row, i64 {w * step}")
        lines.append(load(f"b.{w}", f"%row.{w}", masks[w], kind, lanes))
    for r in range(rows):
        at = f"%from.{r // _GROUP * _GROUP}"
        if r % _GROUP:
            lines.append(f"%at.{r} = getelementptr i8, ptr {at}, i64 {skip[r]}")
            at = f"%at.{r}"
        lines += (
            f"%x.{r} = load {kind.name}, ptr {at}, align {kind.size}",
            f"%one.{r} = insertelement {v} poison, {kind.name} %x.{r}, i64 0",
            f"%a.all.{r} = shufflevector {v} %one.{r}, {v} poison, <{lanes} x i32> zeroinitializer",
        )
        lines += (
            f"%more.{r}.{w} = call {v} @llvm.fma.v{lanes}{kind.short}({v} %a.all.{r}, {v} %b.{w}, "
            f"{v} %sum.{r}.{w})"
            for w in range(len(masks))
        )
    lines += (f"%from.next.{r} = getelementptr i8, ptr %from.{r}, i64 %along" for r in heads)
    lines += (
        "%row.next = getelementptr i8, ptr %row, i64 %under",
        "%p.next = add nuw i64 %p, 1",
        "%again = icmp ult i64 %p.next, %k.some",
        "br i1 %again, label %turn, label %end",
    )
    return lines


def _places(rows: int, across: int) -> list[str]:
    return [f"{r}.{w}" for r in range(rows) for w in range(across)]


def _between(kind: Kind, rows: int, across: int) -> list[str]:
    """Return what is between the chains of a tile: sums of those before wait in memory."""
    v, step = kind.vector, kind.lanes * kind.size
    lines = [
        "end:",
        "%k.rest = sub i64 %k.left, %k.some",
        "%unfinished = icmp sgt i64 %k.rest, 0",
        "br i1 %unfinished, label %spill, label %last",
        "last:",
        "br i1 %first, label %put, label %gather",
        "spill:",
    ]
    for k, here in enumerate(_places(rows, across)):
        lines += (
            f"%sums.{here} = getelementptr i8, ptr %sums, i64 {k * step}",
            f"%kept.{here} = select i1 %first, ptr @zeros, ptr %sums.{here}",
            f"%so.far.{here} = load {v}, ptr %kept.{here}, align {step}",
            f"%further.{here} = fadd {v} %so.far.{here}, %more.{here}",
            f"store {v} %further.{here}, ptr %sums.{here}, align {step}",
        )
    lines += ("br label %block", "gather:")
    for k, here in enumerate(_places(rows, across)):
        lines += (
            f"%wait.{here} = getelementptr i8, ptr %sums, i64 {k * step}",
            f"%before.{here} = load {v}, ptr %wait.{here}, align {step}",
            f"%all.{here} = fadd {v} %before.{here}, %more.{here}",
        )
    return [*lines, "br label %put"]


def _put(kind: Kind, rows: int, masks: list[str]) -> list[str]:
    """Return the end of a tile: what was there is added, and the sum is written.

    All is read first: a row's masked lanes lie over the next one, which would wait to be written.
    """
    v, mask, step = kind.vector, f"<{kind.lanes} x i1>", kind.lanes * kind.size
    lines = ["put:"]
    lines += (
        f"%total.{here} = phi {v} [ %more.{here}, %last ], [ %all.{here}, %gather ]"
        for here in _places(rows, len(masks))
    )
    lines += [
        # What is new is added to zeros. A mask of nothing would read the result all the same, and
        # wait for what was just written beside it: 1,000 rows of ten took 2.4 times as long.
        "%old.0 = select i1 %fresh, ptr @zeros, ptr %out",
        "%old.step = select i1 %fresh, i64 0, i64 %next",
        "%to.0 = getelementptr i8, ptr %out, i64 0",
    ]
    puts: list[str] = []
    for r in range(rows):
        if r:
            lines.append(f"%old.{r} = getelementptr i8, ptr %old.{r - 1}, i64 %old.step")
            puts.append(f"%to.{r} = getelementptr i8, ptr %to.{r - 1}, i64 %next")
        for w in range(len(masks)):
            here, inside = f"{r}.{w}", masks[w]
            if rows == _REST and r:
                inside = f"%in.{here}"
                lines.append(
                    f"{inside} = select i1 %is.{r}, {mask} %in.{w}, {mask} zeroinitializer"
                )
            lines += (
                f"%old.{here} = getelementptr i8, ptr %old.{r}, i64 {w * step}",
                load(f"y.{here}", f"%old.{here}", inside, kind, kind.lanes),
                f"%z.{here} = fadd {v} %y.{here}, %total.{here}",
            )
            puts += (
                f"%to.{here} = getelementptr i8, ptr %to.{r}, i64 {w * step}",
                store(f"%z.{here}", f"%to.{here}", inside, kind),
            )
    return [
        *lines,
        *puts,
        "ret void",
    ]


#: Rows of the first matrix times a panel, tiles of all its columns one under another.
_STRIP: Final = """\
define internal void @strip.{wide}(ptr %a, i64 %down, i64 %along, i64 %tile, ptr %b, i64 %under,
    ptr %out, i64 %next, i64 %m, i64 %k, i64 %columns, i1 %fresh) #0 {{
entry:
  %next.tall = mul i64 %next, {tall}
  %down.rest = mul i64 %down, {rest}
  %next.rest = mul i64 %next, {rest}
  %whole = icmp sge i64 %columns, {all}
  br label %head
head:
  %left = phi i64 [ %m, %entry ], [ %left.less, %next.tile ]
  %a.at = phi ptr [ %a, %entry ], [ %a.tall, %next.tile ]
  %out.at = phi ptr [ %out, %entry ], [ %out.tall, %next.tile ]
  %fits = icmp sge i64 %left, {tall}
  br i1 %fits, label %full, label %more
full:
  br i1 %whole, label %bare, label %masked
bare:
  call void @tile.{tall}.{wide}{bare}(ptr %a.at, i64 %down, i64 %along, ptr %b, i64 %under,
    ptr %out.at, i64 %next, i64 %left, i64 %k, i64 %columns, i1 %fresh)
  br label %next.tile
masked:
  call void @tile.{tall}.{wide}(ptr %a.at, i64 %down, i64 %along, ptr %b, i64 %under, ptr %out.at,
    i64 %next, i64 %left, i64 %k, i64 %columns, i1 %fresh)
  br label %next.tile
next.tile:
  %left.less = sub i64 %left, {tall}
  %a.tall = getelementptr i8, ptr %a.at, i64 %tile
  %out.tall = getelementptr i8, ptr %out.at, i64 %next.tall
  br label %head
more:
  %some = phi i64 [ %left, %head ], [ %some.less, %part ]
  %a.on = phi ptr [ %a.at, %head ], [ %a.rest, %part ]
  %out.on = phi ptr [ %out.at, %head ], [ %out.rest, %part ]
  %any = icmp sgt i64 %some, 0
  br i1 %any, label %part, label %end
part:
  call void @tile.{rest}.{wide}(ptr %a.on, i64 %down, i64 %along, ptr %b, i64 %under, ptr %out.on,
    i64 %next, i64 %some, i64 %k, i64 %columns, i1 %fresh)
  %some.less = sub i64 %some, {rest}
  %a.rest = getelementptr i8, ptr %a.on, i64 %down.rest
  %out.rest = getelementptr i8, ptr %out.on, i64 %next.rest
  br label %more
end:
  ret void
}}"""


def _strip(kind: Kind, wide: int) -> str:
    bare = ".whole" if _is_apart(wide) else ""
    return _STRIP.format(wide=wide, tall=tall(), rest=_REST, bare=bare, all=wide * kind.lanes)


def _is_apart(wide: int) -> bool:
    """Whether whole tiles, with all of their columns, are code of their own that has no masks.

    A load under a mask of 512 bits takes a turn of the units that multiply, too: one in 13 of two
    vectors across, whose tiles most terms are in; 1.79 fused operations a cycle became 1.86.
    """
    return wide > 1 or not has_masks()


_PRODUCT: Final = """\
define void @{name}(ptr %a.0, ptr %b.0, ptr %out.0, i64 %m, i64 %k, i64 %n, i64 %lda, i64 %ldb,
    i64 %ldc, i64 %left, i64 %right, i64 %count, i64 %a.step, i64 %b.step, i64 %out.step) #0 {{
entry:
  %panel = alloca [{panel} x {element}], align 64
  %a.turned = icmp ne i64 %left, 0
  %b.turned = icmp ne i64 %right, 0
  %lda.bytes = mul i64 %lda, {size}
  %ldb.bytes = mul i64 %ldb, {size}
  %next = mul i64 %ldc, {size}
  %down = select i1 %a.turned, i64 {size}, i64 %lda.bytes
  %along = select i1 %a.turned, i64 %lda.bytes, i64 {size}
  %b.down = select i1 %b.turned, i64 {size}, i64 %ldb.bytes
  %b.along = select i1 %b.turned, i64 %ldb.bytes, i64 {size}
  %tall = icmp sgt i64 %m, {worth}
  %apart = icmp sgt i64 %ldb, {apart}
  %better = and i1 %tall, %apart
  %laid = or i1 %better, %b.turned
  %keep.long = icmp sgt i64 %n, {reused}
  %keep.well = and i1 %a.turned, %keep.long
  %down.tall = mul i64 %down, {tall}
  br i1 %keep.well, label %room, label %begin
room:
  %room.new = call ptr @malloc(i64 {kept_bytes})
  br label %begin
begin:
  %room.all = phi ptr [ null, %entry ], [ %room.new, %room ]
  %keep = icmp ne ptr %room.all, null
  %room.last = getelementptr i8, ptr %room.all, i64 63
  %kept = call ptr @llvm.ptrmask.p0.i64(ptr %room.last, i64 -64)
  %m.but = sub i64 %m, {few}
  %m.over = sdiv i64 %m.but, {rows}
  %m.blocks = add i64 %m.over, 1
  %m.tall = mul i64 %m.blocks, {tall}
  %m.up = add i64 %m, %m.tall
  %m.last = sub i64 %m.up, 1
  %m.tiles = sdiv i64 %m.last, %m.tall
  %m.even = mul i64 %m.tiles, {tall}
  %m.most = select i1 %keep, i64 {kept}, i64 %m.even
  br label %pairs
pairs:
  %pair = phi i64 [ 0, %begin ], [ %pair.next, %pairs.next ]
  %a = phi ptr [ %a.0, %begin ], [ %a.next, %pairs.next ]
  %b = phi ptr [ %b.0, %begin ], [ %b.next, %pairs.next ]
  %out = phi ptr [ %out.0, %begin ], [ %out.next, %pairs.next ]
  %pair.more = icmp slt i64 %pair, %count
  br i1 %pair.more, label %rows, label %end
rows:
  %i = phi i64 [ 0, %pairs ], [ %i.next, %rows.next ]
  %i.more = icmp slt i64 %i, %m
  br i1 %i.more, label %rows.some, label %pairs.next
rows.some:
  %m.left = sub i64 %m, %i
  %m.some = call i64 @llvm.smin.i64(i64 %m.left, i64 %m.most)
  %a.skip = mul i64 %i, %down
  %a.i = getelementptr i8, ptr %a, i64 %a.skip
  %out.skip = mul i64 %i, %next
  %out.i = getelementptr i8, ptr %out, i64 %out.skip
  br label %terms
terms:
  %p = phi i64 [ 0, %rows.some ], [ %p.next, %terms.next ]
  %p.more = icmp slt i64 %p, %k
  br i1 %p.more, label %terms.some, label %rows.next
terms.some:
  %k.left = sub i64 %k, %p
  %k.some = call i64 @llvm.smin.i64(i64 %k.left, i64 {terms})
  %fresh = icmp eq i64 %p, 0
  %a.more = mul i64 %p, %along
  %a.p = getelementptr i8, ptr %a.i, i64 %a.more
  %b.skip = mul i64 %p, %b.down
  %b.p = getelementptr i8, ptr %b, i64 %b.skip
  br i1 %keep, label %keep.rows, label %ready
keep.rows:
  call void @keep(ptr %a.p, i64 %along, ptr %kept, i64 %m.some, i64 %k.some)
  %kept.tile = mul i64 %k.some, {tile}
  br label %ready
ready:
  %a.use = phi ptr [ %a.p, %terms.some ], [ %kept, %keep.rows ]
  %along.use = phi i64 [ %along, %terms.some ], [ {tile}, %keep.rows ]
  %tile = phi i64 [ %down.tall, %terms.some ], [ %kept.tile, %keep.rows ]
  br label %columns
columns:
  %j = phi i64 [ 0, %ready ], [ %j.next, %columns.next ]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %columns.some, label %terms.next
columns.some:
  %n.left = sub i64 %n, %j
  %n.some = call i64 @llvm.smin.i64(i64 %n.left, i64 {across})
  %b.more = mul i64 %j, %b.along
  %b.j = getelementptr i8, ptr %b.p, i64 %b.more
  %out.j = getelementptr {element}, ptr %out.i, i64 %j
  br i1 %laid, label %lay, label %strip
lay:
  br i1 %b.turned, label %lay.columns, label %lay.rows
lay.rows:
  call void @rows(ptr %b.j, i64 %ldb.bytes, ptr %panel, i64 %k.some, i64 %n.some)
  br label %strip
lay.columns:
  call void @columns(ptr %b.j, i64 %ldb.bytes, ptr %panel, i64 %k.some, i64 %n.some)
  br label %strip
strip:
  %from = phi ptr [ %b.j, %columns.some ], [ %panel, %lay.rows ], [ %panel, %lay.columns ]
  %under = phi i64 [ %ldb.bytes, %columns.some ], [ {under}, %lay.rows ], [ {under}, %lay.columns ]
  %narrow = icmp sle i64 %n.some, {lanes}
  br i1 %narrow, label %strip.one, label %strip.two
strip.one:
  call void @strip.1(ptr %a.use, i64 %down, i64 %along.use, i64 %tile, ptr %from, i64 %under,
    ptr %out.j, i64 %next, i64 %m.some, i64 %k.some, i64 %n.some, i1 %fresh)
  br label %columns.next
strip.two:
  call void @strip.2(ptr %a.use, i64 %down, i64 %along.use, i64 %tile, ptr %from, i64 %under,
    ptr %out.j, i64 %next, i64 %m.some, i64 %k.some, i64 %n.some, i1 %fresh)
  br label %columns.next
columns.next:
  %j.next = add i64 %j, {across}
  br label %columns
terms.next:
  %p.next = add i64 %p, {terms}
  br label %terms
rows.next:
  %i.next = add i64 %i, %m.most
  br label %rows
pairs.next:
  %pair.next = add i64 %pair, 1
  %a.next = getelementptr i8, ptr %a, i64 %a.step
  %b.next = getelementptr i8, ptr %b, i64 %b.step
  %out.next = getelementptr i8, ptr %out, i64 %out.step
  br label %pairs
end:
  call void @free(ptr %room.all)
  ret void
}}
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)"""


def sizes(kind: Kind) -> dict[str, object]:
    """Return what texts of products are filled with: sizes in entries, of panels and in bytes."""
    across = 2 * kind.lanes
    rows = _BLOCK // (TERMS * kind.size) if has_masks() else _ROWS
    return {
        "element": kind.name,
        "size": kind.size,
        "lanes": kind.lanes,
        "across": across,
        "under": across * kind.size,
        "panel": across * TERMS,
        "apart": 2 * across,
        "terms": TERMS,
        "rows": rows,
        "few": rows // 5,
        "worth": _WORTH,
        "tall": tall(),
        "tile": tall() * kind.size,
        "kept": panels.kept(kind),
        "kept_bytes": panels.kept(kind) * TERMS * kind.size + 64,
        "reused": _REUSED * across,
    }
