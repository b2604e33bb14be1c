"""How factors of a product are laid out, as LLVM text, and what texts of products are made of.

A panel is some columns of the second matrix, term after term. Rows of the first are laid out where
their terms lie apart.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..processor import processor

#: Terms of a panel, whose sums go to the result.
TERMS: Final = 256
#: Bytes of the first matrix that are laid out where its columns lie together: no thread has to have
#: so large a stack.
_KEPT: Final = 240 << 10
#: Columns that are turned at once.
SQUARE: Final = 8
#: In place of a mask: all.
ALL: Final = ""


class Kind(NamedTuple):
    """A kind of number: its name in LLVM, its bytes, and how LLVM abbreviates it."""

    name: str
    size: int
    short: str

    @property
    def lanes(self) -> int:
        """How many fit a register."""
        return (64 if has_masks() else 32) // self.size

    @property
    def vector(self) -> str:
        """The type of a register of them."""
        return f"<{self.lanes} x {self.name}>"


def has_masks() -> bool:
    """Whether registers have 512 bits, and masks registers of their own."""
    return processor().wide


def tall() -> int:
    """Return the rows of a tile: with two vectors across, and what they are made of, they fit.

    Into 32 registers, or 16: of these a mask takes one, which whole tiles do without.
    """
    return 12 if has_masks() else 6


KINDS: Final = {"s": Kind("float", 4, "f32"), "d": Kind("double", 8, "f64")}


def mask(to: str, count: str, lanes: int) -> list[str]:
    """Return lines that make a mask of the first lanes, of an ``i64`` count of up to 2**31."""
    places = ", ".join(f"i32 {k}" for k in range(lanes))
    return [
        f"%{to}.short = trunc i64 {count} to i32",
        f"%{to}.one = insertelement <{lanes} x i32> poison, i32 %{to}.short, i64 0",
        (
            f"%{to}.all = shufflevector <{lanes} x i32> %{to}.one, <{lanes} x i32> poison, "
            f"<{lanes} x i32> zeroinitializer"
        ),
        f"%{to} = icmp sgt <{lanes} x i32> %{to}.all, <{places}>",
    ]


def load(to: str, at: str, inside: str, kind: Kind, lanes: int) -> str:
    """Return a line that reads a vector, zeros where a mask has none."""
    v = f"<{lanes} x {kind.name}>"
    if inside == ALL:
        return f"%{to} = load {v}, ptr {at}, align {kind.size}"
    return (
        f"%{to} = call {v} @llvm.masked.load.v{lanes}{kind.short}.p0(ptr align {kind.size} {at}, "
        f"<{lanes} x i1> {inside}, {v} zeroinitializer)"
    )


def store(x: str, at: str, inside: str, kind: Kind) -> str:
    """Return a line that writes a vector where a mask has it."""
    v = kind.vector
    if inside == ALL:
        return f"store {v} {x}, ptr {at}, align {kind.size}"
    return (
        f"call void @llvm.masked.store.v{kind.lanes}{kind.short}.p0({v} {x}, "
        f"ptr align {kind.size} {at}, <{kind.lanes} x i1> {inside})"
    )


def fetch(name: str, start: str, skip: int, *, write: bool = False) -> list[str]:
    """Return lines that ask for a line of memory: for the nearest cache to write, else the next."""
    how = "i32 1, i32 3, i32 1" if write else "i32 0, i32 2, i32 1"
    return [
        f"%{name} = getelementptr i8, ptr {start}, i64 {skip}",
        f"call void @llvm.prefetch.p0(ptr %{name}, {how})",
    ]


def rows(kind: Kind) -> str:
    """Return what lays out a panel of a matrix whose rows lie together, and asks for the next."""
    v, step = kind.vector, kind.lanes * kind.size
    lines = [
        (
            "define internal void @rows(ptr noalias %b, i64 %under, ptr noalias %panel, i64 %k, "
            "i64 %columns) #0 {"
        ),
        "entry:",
    ]
    for w in range(2):
        lines.append(f"%left.{w} = sub i64 %columns, {w * kind.lanes}")
        lines += mask(f"in.{w}", f"%left.{w}", kind.lanes)
    lines += (
        "br label %turn",
        "turn:",
        "%p = phi i64 [ 0, %entry ], [ %p.next, %turn ]",
        "%from = phi ptr [ %b, %entry ], [ %from.next, %turn ]",
        "%to = phi ptr [ %panel, %entry ], [ %to.next, %turn ]",
    )
    for w in range(2):
        lines += (
            f"%from.{w} = getelementptr i8, ptr %from, i64 {w * step}",
            f"%to.{w} = getelementptr i8, ptr %to, i64 {w * step}",
            load(f"x.{w}", f"%from.{w}", f"%in.{w}", kind, kind.lanes),
            f"store {v} %x.{w}, ptr %to.{w}, align {step}",
            *fetch(f"ahead.{w}", "%from", (2 + w) * step),
        )
    lines += (
        "%from.next = getelementptr i8, ptr %from, i64 %under",
        f"%to.next = getelementptr i8, ptr %to, i64 {2 * step}",
        "%p.next = add nuw i64 %p, 1",
        "%again = icmp ult i64 %p.next, %k",
        "br i1 %again, label %turn, label %end",
    )
    return "\n".join((*lines, "end:", "ret void", "}"))


def kept(kind: Kind) -> int:
    """Return how many rows are laid out together, tiles of them."""
    return _KEPT // (TERMS * kind.size) // tall() * tall()


def keep(kind: Kind) -> str:
    """Return what lays out rows whose columns lie together: those of a tile, term after term.

    Read where they lie, the terms of a tile are on as many lines, and half as many pages.
    """
    lanes, size = kind.lanes, kind.size
    across = range(-(-tall() // lanes))
    lines = [
        (
            "define internal void @keep(ptr noalias %a, i64 %along, ptr noalias %kept, i64 %m, "
            "i64 %k) #0 {"
        ),
        "entry:",
        "br label %some",
        "some:",
        "%i = phi i64 [ 0, %entry ], [ %i.next, %last ]",
        "%to.first = phi ptr [ %kept, %entry ], [ %to.next, %last ]",
        f"%a.some = getelementptr {kind.name}, ptr %a, i64 %i",
        "%left = sub i64 %m, %i",
        f"%here = call i64 @llvm.smin.i64(i64 %left, i64 {tall()})",
    ]
    for w in across:
        lines.append(f"%here.{w} = sub i64 %here, {w * lanes}")
        lines += mask(f"in.{w}", f"%here.{w}", lanes)
    lines += (
        "br label %turn",
        "turn:",
        "%p = phi i64 [ 0, %some ], [ %p.next, %turn ]",
        "%from = phi ptr [ %a.some, %some ], [ %from.next, %turn ]",
        "%to = phi ptr [ %to.first, %some ], [ %to.next, %turn ]",
    )
    for w in across:
        lines += (
            f"%from.{w} = getelementptr i8, ptr %from, i64 {w * lanes * size}",
            f"%to.{w} = getelementptr i8, ptr %to, i64 {w * lanes * size}",
            load(f"x.{w}", f"%from.{w}", f"%in.{w}", kind, lanes),
            store(f"%x.{w}", f"%to.{w}", f"%in.{w}", kind),
        )
    lines += (
        "%from.next = getelementptr i8, ptr %from, i64 %along",
        f"%to.next = getelementptr i8, ptr %to, i64 {tall() * size}",
        "%p.next = add nuw i64 %p, 1",
        "%again = icmp ult i64 %p.next, %k",
        "br i1 %again, label %turn, label %last",
        "last:",
        f"%i.next = add nuw i64 %i, {tall()}",
        "%more = icmp slt i64 %i.next, %m",
        "br i1 %more, label %some, label %end",
    )
    return "\n".join((*lines, "end:", "ret void", "}"))


def columns(kind: Kind) -> str:
    """Return what lays out a panel of a matrix whose columns lie together: squares are turned."""
    n, size, v = SQUARE, kind.size, f"<{SQUARE} x {kind.name}>"
    lines = [
        (
            "define internal void @columns(ptr noalias %b, i64 %across, ptr noalias %panel, "
            "i64 %k, i64 %columns) #0 {"
        ),
        "entry:",
        f"%group = mul i64 %across, {n}",
        "br label %some",
        "some:",
        "%j = phi i64 [ 0, %entry ], [ %j.next, %last ]",
        "%b.some = phi ptr [ %b, %entry ], [ %b.next, %last ]",
        f"%panel.some = getelementptr {kind.name}, ptr %panel, i64 %j",
        "%here = sub i64 %columns, %j",
        "br label %turn",
        "turn:",
        "%p = phi i64 [ 0, %some ], [ %p.next, %turn ]",
        "%left = sub i64 %k, %p",
        *mask("inside", "%left", n),
        f"%from.0 = getelementptr {kind.name}, ptr %b.some, i64 %p",
    ]
    for r in range(n):
        if r:
            lines.append(f"%from.{r} = getelementptr i8, ptr %from.{r - 1}, i64 %across")
        lines += (
            f"%is.{r} = icmp sgt i64 %here, {r}",
            f"%in.{r} = select i1 %is.{r}, <{n} x i1> %inside, <{n} x i1> zeroinitializer",
            load(f"x.{r}", f"%from.{r}", f"%in.{r}", kind, n),
        )
    lines += _turned(v, n)
    for r in range(n):
        lines += (
            f"%row.{r} = add i64 %p, {r}",
            f"%skip.{r} = mul i64 %row.{r}, {2 * kind.lanes * size}",
            f"%to.{r} = getelementptr i8, ptr %panel.some, i64 %skip.{r}",
            f"store {v} %t.{r}, ptr %to.{r}, align {n * size}",
        )
    lines += (
        f"%p.next = add nuw i64 %p, {n}",
        "%again = icmp ult i64 %p.next, %k",
        "br i1 %again, label %turn, label %last",
        "last:",
        f"%j.next = add nuw i64 %j, {n}",
        "%b.next = getelementptr i8, ptr %b.some, i64 %group",
        "%more = icmp slt i64 %j.next, %columns",
        "br i1 %more, label %some, label %end",
    )
    return "\n".join((*lines, "end:", "ret void", "}"))


def _turned(v: str, n: int) -> list[str]:
    """Return lines that make ``%t.0 ...``, the columns of the rows ``%x.0 ...`` of a square."""
    lines: list[str] = []
    names = [f"%x.{r}" for r in range(n)]
    half = n // 2
    while half:
        after = list(names)
        for r in (r for r in range(n) if not r & half):
            for to, lift in ((r, 0), (r + half, half)):
                # Lanes of the first row stay or come down by half; of the second they go up.
                lanes = [k + lift if not k & half else n + k - half + lift for k in range(n)]
                after[to] = f"%t.{to}" if half == 1 else f"%t.{half}.{to}"
                lines.append(
                    f"{after[to]} = shufflevector {v} {names[r]}, {v} {names[r + half]}, "
                    f"<{n} x i32> <{', '.join(f'i32 {k}' for k in lanes)}>"
                )
        names, half = after, half // 2
    return lines
