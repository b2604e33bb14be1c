"""Products whose rows and terms are loops within loops: convolutions, where their images lie.

The tiles and panels are those of a product of matrices (`gemm`): a tile's rows are windows side by
side, each read where it begins, so that no window is copied. Of each entry the terms are added in
order, those of one turn of the outer loops at a time: no cut of the rows changes a bit.
"""

from __future__ import annotations

from typing import Final

from . import gemm

#: What the names of these products begin with.
NAME: Final = "fnarray_windows_"
#: What a product is told, words of 64 bits in this order; all but counts are addresses or bytes.
#: Three matrices; rows, terms and columns; between rows and between terms of the first, terms of
#: the second, rows of the third; then loops, each its turns and what one adds: two
#: over terms, to the first and second, and two over rows, to the first and third; whether sums are
#: added to what is there; and whether the words of a call to make next follow.
WORDS: Final = (
    "a.0", "b.0", "out.0", "m", "k", "n", "down", "along", "b.under", "next",
    "t", "t.a", "t.b", "s", "s.a", "s.b", "q", "q.a", "q.out", "r", "r.a", "r.out",
    "adds", "more",
)  # fmt: skip
_POINTERS: Final = 3

_NEST: Final = """\
define void @{name}(ptr %words.all) #0 {{
entry:
  %panel = alloca [{panel} x {element}], align 64
  br label %call
call:
  %words = phi ptr [ %words.all, %entry ], [ %words.next, %end ]
{loads}
  %fresh = icmp eq i64 %adds, 0
  %rows.some = mul i64 %q, %r
  %rows = mul i64 %rows.some, %m
  %tall = icmp sgt i64 %rows, {worth}
  %apart.bytes = mul i64 {apart}, {size}
  %apart = icmp sgt i64 %b.under, %apart.bytes
  %laid = and i1 %tall, %apart
  %down.tall = mul i64 %down, {tall}
  br label %t.head
t.head:
  %t.at = phi i64 [ 0, %call ], [ %t.next, %s.end ]
  %a.t = phi ptr [ %a.0, %call ], [ %a.t.next, %s.end ]
  %b.t = phi ptr [ %b.0, %call ], [ %b.t.next, %s.end ]
  %new.t = phi i1 [ %fresh, %call ], [ false, %s.end ]
  %t.more = icmp slt i64 %t.at, %t
  br i1 %t.more, label %s.head, label %end
s.head:
  %s.at = phi i64 [ 0, %t.head ], [ %s.next, %p.end ]
  %a.s = phi ptr [ %a.t, %t.head ], [ %a.s.next, %p.end ]
  %b.s = phi ptr [ %b.t, %t.head ], [ %b.s.next, %p.end ]
  %new.s = phi i1 [ %new.t, %t.head ], [ false, %p.end ]
  %s.more = icmp slt i64 %s.at, %s
  br i1 %s.more, label %p.head, label %s.end
p.head:
  %p = phi i64 [ 0, %s.head ], [ %p.next, %j.end ]
  %new = phi i1 [ %new.s, %s.head ], [ false, %j.end ]
  %p.more = icmp slt i64 %p, %k
  br i1 %p.more, label %p.some, label %p.end
p.some:
  %k.left = sub i64 %k, %p
  %k.some = call i64 @llvm.smin.i64(i64 %k.left, i64 {terms})
  %a.skip = mul i64 %p, %along
  %a.p = getelementptr i8, ptr %a.s, i64 %a.skip
  %b.skip = mul i64 %p, %b.under
  %b.p = getelementptr i8, ptr %b.s, i64 %b.skip
  br label %j.head
j.head:
  %j = phi i64 [ 0, %p.some ], [ %j.next, %q.end ]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %j.some, label %j.end
j.some:
  %n.left = sub i64 %n, %j
  %n.some = call i64 @llvm.smin.i64(i64 %n.left, i64 {across})
  %b.j = getelementptr {element}, ptr %b.p, i64 %j
  %out.j = getelementptr {element}, ptr %out.0, i64 %j
  %narrow = icmp sle i64 %n.some, {lanes}
  br i1 %laid, label %lay, label %ready
lay:
  call void @rows(ptr %b.j, i64 %b.under, ptr %panel, i64 %k.some, i64 %n.some)
  br label %ready
ready:
  %from = phi ptr [ %b.j, %j.some ], [ %panel, %lay ]
  %under = phi i64 [ %b.under, %j.some ], [ {under}, %lay ]
  br label %q.head
q.head:
  %q.at = phi i64 [ 0, %ready ], [ %q.next, %r.end ]
  %a.q = phi ptr [ %a.p, %ready ], [ %a.q.next, %r.end ]
  %out.q = phi ptr [ %out.j, %ready ], [ %out.q.next, %r.end ]
  %q.more = icmp slt i64 %q.at, %q
  br i1 %q.more, label %r.head, label %q.end
r.head:
  %r.at = phi i64 [ 0, %q.head ], [ %r.next, %r.last ]
  %a.r = phi ptr [ %a.q, %q.head ], [ %a.r.next, %r.last ]
  %out.r = phi ptr [ %out.q, %q.head ], [ %out.r.next, %r.last ]
  %r.more = icmp slt i64 %r.at, %r
  br i1 %r.more, label %r.some, label %r.end
r.some:
  br i1 %narrow, label %one, label %two
one:
  call void @strip.1(ptr %a.r, i64 %down, i64 %along, i64 %down.tall, ptr %from, i64 %under,
    ptr %out.r, i64 %next, i64 %m, i64 %k.some, i64 %n.some, i1 %new)
  br label %r.last
two:
{two}
r.last:
  %r.next = add i64 %r.at, 1
  %a.r.next = getelementptr i8, ptr %a.r, i64 %r.a
  %out.r.next = getelementptr i8, ptr %out.r, i64 %r.out
  br label %r.head
r.end:
  %q.next = add i64 %q.at, 1
  %a.q.next = getelementptr i8, ptr %a.q, i64 %q.a
  %out.q.next = getelementptr i8, ptr %out.q, i64 %q.out
  br label %q.head
q.end:
  %j.next = add i64 %j, {across}
  br label %j.head
j.end:
  %p.next = add i64 %p, {terms}
  br label %p.head
p.end:
  %s.next = add i64 %s.at, 1
  %a.s.next = getelementptr i8, ptr %a.s, i64 %s.a
  %b.s.next = getelementptr i8, ptr %b.s, i64 %s.b
  br label %s.head
s.end:
  %t.next = add i64 %t.at, 1
  %a.t.next = getelementptr i8, ptr %a.t, i64 %t.a
  %b.t.next = getelementptr i8, ptr %b.t, i64 %t.b
  br label %t.head
end:
  %words.next = getelementptr i64, ptr %words, i64 {words}
  %last = icmp eq i64 %more, 0
  br i1 %last, label %done, label %call
done:
  ret void
}}"""

_TWO: Final = """\
  call void @strip.2(ptr %a.r, i64 %down, i64 %along, i64 %down.tall, ptr %from, i64 %under,
    ptr %out.r, i64 %next, i64 %m, i64 %k.some, i64 %n.some, i1 %new)
  br label %r.last"""
#: What names of products end with whose columns are one vector at most.
_NARROW: Final = "1"


def symbol(letter: str, *, narrow: bool = False) -> str | None:
    """Return what object code calls a product of ``s`` or ``d``; None where there is none.

    Parameters
    ----------
    narrow : bool
        Whether columns are one vector at most, which is half of the text.
    """
    return NAME + letter + narrow * _NARROW if gemm.symbol(letter) else None


def is_narrow(letter: str, columns: int) -> bool:
    """Whether columns are one vector at most."""
    return columns <= gemm.KINDS[letter].lanes


def text(name: str) -> str:
    """Return the LLVM text of a product, given its symbol."""
    narrow = name.endswith(_NARROW)
    kind = gemm.KINDS[name.removeprefix(NAME).removesuffix(_NARROW)]
    loads: list[str] = []
    for at, word in enumerate(WORDS):
        loads.append(f"  %{word}.word = getelementptr i64, ptr %words, i64 {at}")
        loads.append(f"  %{word} = load {'ptr' if at < _POINTERS else 'i64'}, ptr %{word}.word")
    two = "  unreachable" if narrow else _TWO
    given = {"name": name, "loads": "\n".join(loads), "words": len(WORDS), "two": two}
    nest = _NEST.format(**given, **gemm.sizes(kind))
    return "\n".join((gemm.parts(kind, (1,) if narrow else (1, 2)), nest))
