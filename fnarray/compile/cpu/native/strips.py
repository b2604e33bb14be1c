"""Loops of vectors: their turns, what remains, and what they add up.

Where a part of a vector costs nothing (AVX-512), a long body is written once: every turn is one
vector, of as many numbers as are left. A short one is written twice, as turns of whole vectors and
one of what remains; several vectors make a turn where their sums would wait for each other. Inside
of loops long ones are written twice as well: horizontal diffusion, 13 reads a number, took 1.57 of
the time under a mask. Rows of arrays that the loop does not read end with a vector of their last
numbers, some of which are computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final

from .vectors import STARTS, SUFFIXES, Fold, Unfit, Vectors
from .widen import BYTES, words_of
from .writer import Innermost, Module

#: Instructions from which on a body is written once, as every turn's with a mask.
LONG: Final = 40
#: Instructions from which on this is so without AVX-512 too: a mask costs little beside them, and
#: code generation takes 144 ms in place of 246 (zeta; digamma, of 200, ran a fifth longer).
VAST: Final = 400
#: Vectors that a turn with sums takes at most, and of how many instructions in all.
ABREAST: Final = 4
#: Instructions up to which the first vector of a row, and the last, are text of their own: a bound
#: that every turn asks for costs 4 % of Floyd and Warshall's ten, lines filled as a whole gain 8 %.
BRIEF: Final = 24


def straightened(
    module: Module, lines: list[str], innermost: Sequence[Innermost | None], allocas: Sequence[str]
) -> None:
    """Write innermost loops of a function as vectors: all, or those that gain by it alone.

    Parameters
    ----------
    innermost : sequence
        All of them; None for one that is no vector.
    """
    loops = [loop for loop in innermost if loop]
    places = [x.partition(" = ")[0] for x in allocas]

    def written(loop: Innermost) -> list[str] | None:
        with suppress(Unfit):
            return looped(module, lines, loop, places)
        return None

    every = len(loops) == len(innermost) and not module.texts
    several = every or any(x.parted for x in loops)
    texts = [written(x) if every or x.parted else None for x in loops] if several else []
    every = every and None not in texts
    module.straight = every and all(x.fits for x in loops)
    module.light = every and not module.straight and not module.sequential
    for loop, text in zip(reversed(loops), reversed(texts), strict=False):
        if text is not None and (every or loop.parted):
            lines[loop.head : loop.tail] = text


def looped(
    module: Module, lines: Sequence[str], loop: Innermost, places: Sequence[str]
) -> list[str]:
    """Return a loop from 0 as loops of vectors.

    Parameters
    ----------
    lines : sequence of str
        The function's.
    places : sequence of str
        Where the function keeps variables.

    Raises
    ------
    Unfit
    """
    # To make a mask for what remains of each row took 7 % longer than numbers one by one do (twenty
    # updates of rows of 56), and a third of it where functions are called.
    masks = module.masks and (loop.parted or not loop.nested)
    return _Loop(module, lines[loop.head : loop.tail], loop, places, masks=masks).lines


class _Loop:
    """A loop, rewritten."""

    def __init__(
        self,
        module: Module,
        lines: Sequence[str],
        loop: Innermost,
        places: Sequence[str],
        *,
        masks: bool,
    ):
        before, _, first, phi, *body, _, _, _, _, _ = self.old = lines
        # Groups of reads and writes that do not meet tell LLVM's vectoriser what is known here.
        self.body = _chosen([line.partition(", !llvm.access.group")[0] for line in body])
        self.module, self.stop, self.end, self.places = module, loop.stop, loop.end, places
        stop = loop.stop
        self.counter, self.label, self.came = phi.partition(" = ")[0], first[:-1], before[:-1]
        self.lanes = module.lanes
        self.before: dict[str, None] = {}
        self.size = sum(text.count("\n") + 1 for text in self.body)
        self.masks = masks or (self.size > VAST and not loop.nested)
        self.count = self._count()
        known = int(stop) if stop.isdigit() else None
        whole = known is not None and known % self.lanes == 0
        if known is not None and 0 < known < self.lanes:
            self.lanes = known
            start, body = [before], self._one()
        elif self.masks and not loop.nested and not whole and self.size > LONG:
            start, body = [before], self._part(self.came, "0", {}, joins=False)
        elif loop.nested and not self.masks and self.count == 1 and _repeats(self.body):
            start, body = [before], self._overlapping()
        else:
            start = [before, f"{self.counter}.end = and i64 {stop}, -{self._step()}"]
            body = self._vectors_and_rest()
        self.lines = [*start, *self.before, *body]

    def _step(self) -> int:
        return self.lanes * self.count

    def _count(self) -> int:
        """Return how many vectors a turn takes: a power of two, for a mask to end the turns."""
        written = {x.rpartition(" ptr ")[2] for x in self.body if x.startswith("store ")}
        if written.isdisjoint(self.places):
            return 1
        if self.size * ABREAST <= LONG:
            return ABREAST
        # Rows of a recurrence are short (50 turns of sums of 100 sines: 484 us, 562 by two).
        return 1 if self.module.sequential else 2

    def _vectors(self, mark: str, mask: str = "") -> Vectors:
        """Return the body as vectors."""
        module = self.module
        found = Vectors(
            self.body, self.counter, self.lanes,
            module.vectors if self.lanes == module.lanes else {},
            places=self.places, mark=mark, mask=mask,
        )  # fmt: skip
        module.declared.update(found.declared)
        self.before.update(found.before)
        return found

    # -- turns ---------------------------------------------------------------------------------

    def _one(self) -> list[str]:
        """Return a turn of as many numbers as there are."""
        found = self._vectors(".v")
        begun = self._begun(found.folds)
        wide = {p: self._wide(fold) for p, fold in found.folds.items()}
        return [
            f"{self.counter}.v = add i64 0, 0",
            *(
                f"{f.old} = bitcast {wide[p]} {begun[p]} to {wide[p]}"
                for p, f in found.folds.items()
            ),
            *found.lines,
            *self._folded(found.folds, {p: fold.new for p, fold in found.folds.items()}),
            f"br label %{self.end}",
        ]

    def _part(self, came: str, start: str, sums: Mapping[str, str], *, joins: bool) -> list[str]:
        """Return turns of as many numbers as are left, to the end of the loop.

        Parameters
        ----------
        came, start : str
            The block before, and where the turns begin.
        sums : mapping
            What was folded before; nothing where that has to begin.
        joins : bool
            Whether there may be no such turn; the block before then goes to ``done`` at once.
        """
        turn, done = f"{self.label}.part", self._done()
        marks = [".m", ".n"][: 1 if joins else self.count]
        at, step = f"{self.counter}.m", self.lanes * len(marks)
        found = [self._vectors(mark, f"{self.counter}{mark}.mask") for mark in marks]
        begun = self._begun(found[0].folds)
        phis: list[str] = []
        body: list[str] = []
        for k, part in enumerate(found):
            if k:
                body.append(f"{self.counter}{marks[k]} = add nuw nsw i64 {at}, {k * self.lanes}")
            body += self._mask(f"{self.counter}{marks[k]}")
            for p, f in part.folds.items():
                phis.append(
                    self._phi(f.old, f, came, begun[p] if k else sums.get(p, begun[p]), turn)
                )
        joined, ends = self._joined(found)
        told = self.module.loop("loop")
        merged: list[str] = []
        if joins:
            for place, fold in found[0].folds.items():
                name = f"{place}.{self.label}.all"
                merged.append(self._phi(name, fold, came, sums[place], turn, ends[place]))
                ends[place] = name
        return [
            *([] if joins else [f"br label %{turn}"]),
            f"{turn}:",
            f"{at} = phi i64 [ {start}, %{came} ], [ {at}.next, %{turn} ]",
            *phis,
            *body,
            *_abreast(found),
            f"{at}.next = add nuw nsw i64 {at}, {step}",
            f"{at}.more = icmp slt i64 {at}.next, {self.stop}",
            f"br i1 {at}.more, label %{turn}, label %{done}{told}",
            f"{done}:",
            *merged,
            *joined,
            *self._folded(found[0].folds, ends),
            f"br label %{self.end}",
        ]

    def _joined(self, found: Sequence[Vectors]) -> tuple[list[str], dict[str, str]]:
        """Return what folds the vectors of a turn into one, and the names of those, by place."""
        lines: list[str] = []
        ends: dict[str, str] = {}
        for place, fold in found[0].folds.items():
            total = fold.new
            for k, part in enumerate(found[1:], 1):
                two = f"{_folding(fold)} {self._wide(fold)} {total}, {part.folds[place].new}"
                total = f"{fold.new}.j{k}"
                lines.append(f"{total} = {two}")
            ends[place] = total
        return lines, ends

    def _mask(self, at: str) -> list[str]:
        """Return what makes the mask of a vector: as many lanes as numbers are left."""
        for name in ("smin", "smax"):
            self.module.declared[f"llvm.{name}.i64"] = "i64", ("i64", "i64")
        n = self.lanes
        return [
            f"{at}.left = sub nsw i64 {self.stop}, {at}",
            f"{at}.most = call i64 @llvm.smin.i64(i64 {at}.left, i64 {n})",
            f"{at}.few = call i64 @llvm.smax.i64(i64 {at}.most, i64 0)",
            f"{at}.short = trunc i64 {at}.few to i32",
            f"{at}.ones = shl nsw i32 -1, {at}.short",
            f"{at}.bits = xor i32 {at}.ones, -1",
            f"{at}.lanes = trunc i32 {at}.bits to i{n}",
            f"{at}.mask = bitcast i{n} {at}.lanes to <{n} x i1>",
        ]

    def _vectors_and_rest(self) -> list[str]:
        """Return turns of whole vectors, and what remains: part of one, or number by number."""
        found = [self._vectors(".v" if k == 0 else f".v{k}") for k in range(self.count)]
        folds = found[0].folds
        label, counter = self.label, self.counter
        test, turn, join, rest = (f"{label}.{x}" for x in ("test", "vectors", "join", "rest"))
        begun = self._begun(folds)
        phis: list[str] = []
        body: list[str] = []
        for k, part in enumerate(found):
            if k:
                body.append(f"{counter}.v{k} = add nuw nsw i64 {counter}.v, {k * self.lanes}")
            phis += (self._phi(f.old, f, test, begun[p], turn) for p, f in part.folds.items())
        joined, ends = self._joined(found)
        sums = {place: f"{place}.{label}.whole" for place in folds}
        told = self.module.loop("loop")
        merged = [self._phi(sums[p], f, test, begun[p], join, ends[p]) for p, f in folds.items()]
        return [
            f"br label %{test}",
            f"{test}:",
            f"{counter}.some = icmp sgt i64 {counter}.end, 0",
            f"br i1 {counter}.some, label %{turn}, label %{rest}",
            f"{turn}:",
            f"{counter}.v = phi i64 [ 0, %{test} ], [ {counter}.next, %{turn} ]",
            *phis,
            *body,
            *_abreast(found),
            f"{counter}.next = add nuw nsw i64 {counter}.v, {self._step()}",
            f"{counter}.more = icmp slt i64 {counter}.next, {counter}.end",
            f"br i1 {counter}.more, label %{turn}, label %{join}{told}",
            f"{join}:",
            *joined,
            f"br label %{rest}",
            f"{rest}:",
            *merged,
            *self._rest(rest, folds, sums),
        ]

    def _overlapping(self) -> list[str]:
        """Return turns of whole vectors, the last of which ends where the loop does.

        It computes again what is in the one before, too. A loop shorter than a vector goes number
        by number, as rests did: rows of 200 were 12 vectors and 8 numbers, which took as long.
        """
        counter, label, n = self.counter, self.label, self.lanes
        test, turn = f"{label}.test", f"{label}.vectors"
        brief = self.size <= BRIEF
        turns = self._edged(turn) if brief else self._clamped(test, turn)
        return [
            f"{counter}.last = sub nsw i64 {self.stop}, {n}",
            f"br label %{test}",
            f"{test}:",
            f"{counter}.some = icmp sge i64 {counter}.last, 0",
            f"br i1 {counter}.some, label %{turns[0][:-1]}, label %{label}",
            *turns,
            self.old[2],
            self.old[3].replace(f"[ 0, %{self.came}", f"[ 0, %{test}"),
            *self.body,
            *self.old[-5:],
        ]

    def _clamped(self, test: str, turn: str) -> list[str]:
        """Return turns that know where the last vector begins."""
        counter = self.counter
        self.module.declared["llvm.smin.i64"] = "i64", ("i64", "i64")
        return [
            f"{turn}:",
            f"{counter}.at = phi i64 [ 0, %{test} ], [ {counter}.next, %{turn} ]",
            f"{counter}.v = call i64 @llvm.smin.i64(i64 {counter}.at, i64 {counter}.last)",
            *self._vectors(".v").lines,
            f"{counter}.next = add nuw nsw i64 {counter}.at, {self.lanes}",
            f"{counter}.more = icmp slt i64 {counter}.next, {self.stop}",
            f"br i1 {counter}.more, label %{turn}, label %{self.end}{self.module.loop('loop')}",
        ]

    def _edged(self, turn: str) -> list[str]:
        """Return a first vector, those that fill lines of the caches where they lie, and a last."""
        counter, n = self.counter, self.lanes
        head, tail = f"{self.label}.head", f"{self.label}.tail"
        first = self._vectors(".h").lines
        return [
            f"{head}:",
            f"{counter}.h = add i64 0, 0",
            *first,
            *self._off(first),
            f"{counter}.first = sub nuw nsw i64 {n}, {counter}.off",
            f"{counter}.some.whole = icmp slt i64 {counter}.first, {counter}.last",
            f"br i1 {counter}.some.whole, label %{turn}, label %{tail}",
            f"{turn}:",
            f"{counter}.v = phi i64 [ {counter}.first, %{head} ], [ {counter}.next, %{turn} ]",
            *self._vectors(".v").lines,
            f"{counter}.next = add nuw nsw i64 {counter}.v, {n}",
            f"{counter}.more = icmp slt i64 {counter}.next, {counter}.last",
            f"br i1 {counter}.more, label %{turn}, label %{tail}{self.module.loop('loop')}",
            f"{tail}:",
            f"{counter}.t = add i64 {counter}.last, 0",
            *self._vectors(".t").lines,
            f"br label %{self.end}",
        ]

    def _off(self, lines: Sequence[str]) -> list[str]:
        """Return what finds how many elements lie between a line's beginning and the vector's."""
        counter = self.counter
        _, _, _, kind, _, *rest = next(filter(_is_store, map(words_of, lines)))
        place = rest[rest.index("ptr") + 1]
        return [
            f"{counter}.place = ptrtoint ptr {place} to i64",
            f"{counter}.elements = lshr i64 {counter}.place, {BYTES[kind[:-1]].bit_length() - 1}",
            f"{counter}.off = and i64 {counter}.elements, {self.lanes - 1}",
        ]

    def _rest(self, rest: str, folds: Mapping[str, Fold], sums: Mapping[str, str]) -> list[str]:
        """Return what follows whole vectors."""
        counter = self.counter
        left = f"{counter}.left = icmp slt i64 {counter}.end, {self.stop}"
        if self.masks:
            fork = f"br i1 {counter}.left, label %{self.label}.part, label %{self._done()}"
            return [left, fork, *self._part(rest, f"{counter}.end", sums, joins=True)]
        return [
            *self._folded(folds, sums),
            left,
            f"br i1 {counter}.left, label %{self.label}, label %{self.end}",
            self.old[2],
            self.old[3].replace(f"[ 0, %{self.came}", f"[ {counter}.end, %{rest}"),
            *self.body,
            *self.old[-5:],
        ]

    def _done(self) -> str:
        return f"{self.label}.done"

    # -- what is folded --------------------------------------------------------------------------

    def _wide(self, fold: Fold) -> str:
        return f"<{self.lanes} x {fold.kind}>"

    def _phi(self, name: str, fold: Fold, came: str, begun: str, turn: str, new: str = "") -> str:
        """Return what is folded so far: at first, and after a turn."""
        return (
            f"{name} = phi {self._wide(fold)} [ {begun}, %{came} ], [ {new or fold.new}, %{turn} ]"
        )

    def _begun(self, folds: Mapping[str, Fold]) -> dict[str, str]:
        """Return the vectors that folding begins with, by place."""
        return {p: f"splat ({f.kind} {STARTS[f.word]})" for p, f in folds.items()}

    def _folded(self, folds: Mapping[str, Fold], sums: Mapping[str, str]) -> Iterable[str]:
        """Yield what folds vectors into the places of the function."""
        for place, fold in folds.items():
            kind, wide, first = fold.kind, self._wide(fold), f"{place}.{self.label}"
            name = f"llvm.vector.reduce.{fold.word}.v{self.lanes}{SUFFIXES[kind]}"
            start = f"{kind} {STARTS[fold.word]}, " if fold.word[0] == "f" else ""
            self.module.declared[name] = kind, ((kind, wide) if start else (wide,))
            flags = _folding(fold).removeprefix(fold.word)
            yield f"{first}.sum = call{flags} {kind} @{name}({start}{wide} {sums[place]})"
            yield f"{first}.old = load {kind}, ptr {place}"
            yield f"{first}.new = {_folding(fold)} {kind} {first}.old, {first}.sum"
            yield f"store {kind} {first}.new, ptr {place}"


def _is_store(words: Sequence[str]) -> bool:
    return words[0] == "store"


def _repeats(body: Sequence[str]) -> bool:
    """Whether turns may be taken again: nothing is read of the arrays that are written."""
    arrays: dict[str, str] = {}
    places: dict[str, set[str]] = {"load": set(), "store": set()}
    for line in chain.from_iterable(text.splitlines() for text in body):
        name, _, instruction = line.rpartition(" = ")
        words = words_of(instruction)
        if "ptr" in words:
            place = words[words.index("ptr") + 1]
            array = arrays.get(place, place)
            if words[0] == "getelementptr":
                arrays[name] = array
            else:
                places.setdefault(words[0], set()).add(array)
    return places["load"].isdisjoint(places["store"])


def _chosen(body: Sequence[str]) -> Sequence[str]:
    """Return a body whose forks between two numbers that are there are choices.

    Left alone are bodies that hold the text of a function: what LLVM knows behind a fork saves it a
    test (selu: 425 us without, 369 with).
    """
    if not any(line.startswith("br ") for line in body) or any("@llvm.fma." in x for x in body):
        return body
    lines: list[str] = []
    at = 0
    while at < len(body):
        choice = _choice(body[at : at + 9]) if body[at].startswith("br ") else None
        lines.append(choice or body[at])
        at += 9 if choice else 1
    return lines


def _choice(lines: Sequence[str]) -> str | None:
    """Return what nine lines that `Expressions.join` writes choose, as one; None for others."""
    match [words_of(line) for line in lines]:
        case [
            ["br", "i1", test, ",", "label", yes, ",", "label", no],
            [first],
            ["store", kind, a, ",", "ptr", place],
            ["br", "label", end],
            [second],
            ["store", _, b, ",", "ptr", other],
            ["br", "label", also],
            [last],
            [name, "=", "load", _, ",", "ptr", at],
        ] if place == other == at and (f"%{first}", f"%{second}", end, f"%{last}", also) == (
            f"{yes}:", f"{no}:", also, f"{end}:", end,
        ):  # fmt: skip
            return f"{name} = select i1 {test}, {kind} {a}, {kind} {b}"
        case _:
            return None


def _abreast(found: Sequence[Vectors]) -> Iterable[str]:
    """Yield the lines of vectors that do not wait for each other, in turn.

    A processor that is busy with one does not see as far as the other: 100 tanh one after another
    took 36 us, and in turn with those of another vector 25.
    """
    return chain.from_iterable(zip(*(part.lines for part in found), strict=True))


def _folding(fold: Fold) -> str:
    """Return the instruction that folds two vectors or numbers, in any order."""
    return f"{fold.word} reassoc nsz" if fold.word[0] == "f" else fold.word
