"""The body of an innermost loop along memory, as text of vectors.

LLVM's vectoriser, and all that has to run before and after it, take half the time of a kernel of
ten operations. Where every innermost loop of a kernel is written as vectors here, nothing is left
to improve but what code generation does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from .widen import BYTES, PLAIN, Declared, of_vectors, words_of
from .writer import Module


def once(module: Module, lines: Sequence[str], size: int, end: str) -> list[str]:
    """Return the lines of a loop of few turns, which are known, as one vector of them all.

    Raises
    ------
    Unfit
    """
    before, _, _, phi, *body, _, _, _, _, _ = lines
    counter = phi.partition(" = ")[0]
    calls = module.vectors if size == module.lanes else {}
    found = Vectors(body, counter, size, calls, gathers=True)
    module.declared.update(found.declared)
    first = f"{counter}.v = add i64 0, 0"
    return [before, first, *found.before, *found.lines, f"br label %{end}"]


class Unfit(Exception):
    """The body does what is not written as vectors."""


#: What sums and products begin with.
STARTS: Final = {"fadd": "0.0", "fmul": "1.0", "add": "0", "mul": "1"}
#: What the names of LLVM's functions end with, by type.
SUFFIXES: Final = {
    "float": "f32",
    "double": "f64",
    **{f"i{n}": f"i{n}" for n in (1, 8, 16, 32, 64)},
}


#: What indices, and tests of them, are made of beside sums and products: a row round the edge of a
#: grid. It is computed before the loop; what divides is tested for zero in the text.
_OF_INDICES: Final = frozenset(("and", "icmp", "or", "sdiv", "select", "sext", "srem", "xor"))
_INDICES: Final = frozenset(("i1", "i64"))


class Fold(NamedTuple):
    """A number that a loop adds up, or the like, in any order.

    Attributes
    ----------
    kind : str
        Its type.
    word : str
        The instruction that folds two of them.
    old, new : str
        The vectors of a turn's beginning and end.
    """

    kind: str
    word: str
    old: str
    new: str


class Vectors:
    """A body as vectors.

    Integers of 64 bits that do not come from memory are indices, never vectors.

    Parameters
    ----------
    gathers : bool
        Whether elements that lie apart are read one by one, in a loop that begins at 0.
    places : collection of str
        Where the function keeps variables: the body folds numbers into them.
    mark : str
        What the names of a turn's vectors end with.
    mask : str
        Which lanes of memory are read and written, where not all are.

    Attributes
    ----------
    before : dict of str
        What goes before the loop: vectors of numbers, and addresses, that do not change in it.
    lines : list of str
    folds : dict
        By place.
    declared : dict
        Functions that are called.

    Raises
    ------
    Unfit
    """

    def __init__(
        self,
        body: Iterable[str],
        counter: str,
        lanes: int,
        calls: Mapping[str, str],
        *,
        gathers: bool = False,
        places: Collection[str] = (),
        mark: str = ".v",
        mask: str = "",
    ):
        self.before: dict[str, None] = {}
        self.lines: list[str] = []
        self.declared: Declared = {}
        self.folds: dict[str, Fold] = {}
        self._lanes, self._calls = lanes, calls
        self._gathers = gathers
        self._places, self._mark, self._mask = places, mark, mask
        #: Names of the body: an "index" grows by one each turn, an "address" by an element, and
        #: what is the "same" stays. Where elements are read one by one, a "step" grows otherwise,
        #: and "places" are addresses of such elements.
        self._kinds = {counter: "index"}
        self._counter = counter
        #: What marks names of this loop for what other loops may name as well.
        self._own = f".{counter[1:]}"
        #: What is added to the counter, by index; each begins with its sign.
        self._offsets: dict[str, tuple[str, ...]] = {counter: ()}
        #: How indices and addresses are computed: what begins the instruction, and its operands.
        self._steps: dict[str, tuple[str, str, str]] = {}
        #: What was read of a place, by place, and the words that made a vector.
        self._held: dict[str, str] = {}
        #: Where real parts are, by where the imaginary ones are; and what is written there.
        self._pairs: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._words: dict[str, list[str]] = {}
        lines = [line for text in body for line in text.splitlines()]
        #: Where turns write; variables among them are folded, and others are the same in all.
        self._written = {x.rpartition(" ptr ")[2] for x in lines if x.startswith("store ")}
        for line in lines:
            self._write(*line.rpartition(" = ")[::2])

    def _write(self, name: str, instruction: str) -> None:
        words = words_of(instruction)
        match words:
            case ["store", kind, value, ",", "ptr", place]:
                if place in self._places:
                    self._fold(kind, value, place)
                else:
                    self._store(kind, self._operand(value, kind), place)
            case ["getelementptr", "inbounds", kind, ",", "ptr", array, ",", "i64", index]:
                self._place(name, kind, array, index)
            case ["getelementptr", _, "{", kind, ",", _, "}", ",", _, array, ",", "i64", index]:
                self._pair(name, kind, array, index)
            case ["load", kind, ",", "ptr", place]:
                self._load(name, kind, place)
            case ["add" | "sub" | "mul" as word, *flags, "i64", a, ",", b] if not self._vectors(
                a, b
            ):
                self._index(name, word, " ".join((word, *flags)), a, b)
            case ["call", kind, function, "(", *args, ")", _] if function[1:] in self._calls:
                self._call(name, kind, self._calls[function[1:]], args)
            case ["call", kind, function, "(", *args, ")"] if function[1:] in self._calls:
                self._call(name, kind, self._calls[function[1:]], args)
            case [word, *_] if name and word in _OF_INDICES and self._is_of_indices(words):
                self._line(name, " ".join(map(self._one, words)), "same")
            case _ if self._gathers and name and self._is_same(words):
                self._line(name, " ".join(map(self._one, words)), "same")
            case _:
                wide = of_vectors(words, self._lanes, self.declared, self._operand)
                if not name or wide is None:
                    raise Unfit
                self._words[name] = words
                self._line(name, wide, "vector")

    def _fold(self, kind: str, value: str, place: str) -> None:
        """Note what is kept in a variable: what it held, folded with something else."""
        word, *operands = self._words.get(value, [""])
        old = self._held.get(place, "")
        if not old or operands.count(old) != 1 or word not in STARTS or place in self.folds:
            raise Unfit
        held, new, wide = f"{old}{self._mark}", f"{value}{self._mark}", self._wide(kind)
        if self._mask:  # what is not there is not added
            mask = f"<{self._lanes} x i1> {self._mask}"
            self.lines.append(f"{new}.in = select {mask}, {wide} {new}, {wide} {held}")
            new += ".in"
        self.folds[place] = Fold(kind, word, held, new)

    def _store(self, kind: str, value: str, place: str) -> None:
        held = f"{self._wide(kind)} {value}"
        if self._kinds.get(place) in ("pair", "half"):
            self._store_part(kind, value, place)
            return
        if self._kinds.get(place) == "places":
            for k in range(self._lanes):
                one = f"{self._turn(place, k)}.one{self._mark}"
                self.lines += (
                    f"{one} = extractelement {held}, i64 {k}",
                    f"store {kind} {one}, ptr {self._turn(place, k)}, align {BYTES[kind]}",
                )
            return
        address = self._address(kind, place)
        if self._mask:
            self.lines.append(self._masked("store", "void", kind, [held, address]))
        else:
            self.lines.append(f"store {held}, {address}, align {BYTES[kind]}")

    def _masked(self, word: str, result: str, kind: str, args: list[str], rest: str = "") -> str:
        """Return a call that reads or writes a part of a vector."""
        name = f"llvm.masked.{word}.v{self._lanes}{SUFFIXES[kind]}.p0"
        given = [*args, f"i32 {BYTES[kind]}", f"<{self._lanes} x i1> {self._mask}"]
        given += [rest] if rest else []
        wide, mask = self._wide(kind), f"<{self._lanes} x i1>"
        kinds = ("ptr", "i32", mask, wide) if rest else (wide, "ptr", "i32", mask)
        self.declared[name] = result, kinds
        return f"call {result} @{name}({', '.join(given)})"

    def _pair(self, name: str, kind: str, array: str, index: str) -> None:
        """Write the address of a complex number, which is that of its real part."""
        grows = self._kinds.get(index, "same")
        if not self._gathers or self._kinds.get(array, "same") != "same":
            raise Unfit
        begin = f"getelementptr inbounds {{ {kind}, {kind} }}, ptr {self._one(array)}, i64"
        if grows in ("step", "vector"):
            self._kinds[name] = "places"
            self._steps[name] = begin, "", index
        else:
            known = "pair" if grows == "index" else "same"
            self._line(name, f"{begin} {self._one(index)}", known)

    def _half(self, name: str, kind: str, pair: str) -> None:
        """Write the address of an imaginary part."""
        if self._kinds[pair] == "pair":
            self._kinds[name], self._pairs[name] = "half", pair
        else:
            self._kinds[name] = "places"
            self._steps[name] = f"getelementptr inbounds {kind}, ptr", pair, "i64 1"

    def _load_part(self, name: str, kind: str, place: str) -> None:
        """Write what takes the parts of complex numbers apart: those of one kind are a vector."""
        pair = self._pairs.get(place, place)
        both, wide = f"{pair}{self._mark}.both", f"<{2 * self._lanes} x {kind}>"
        load = f"{both} = load {wide}, ptr {self._one(pair)}, align {BYTES[kind]}"
        if load not in self.lines:
            self.lines.append(load)
        lanes = ", ".join(f"i32 {2 * k + (pair != place)}" for k in range(self._lanes))
        mask = f"<{self._lanes} x i32> <{lanes}>"
        self._line(name, f"shufflevector {wide} {both}, {wide} poison, {mask}", "vector")

    def _store_part(self, kind: str, value: str, place: str) -> None:
        """Write complex numbers, once both of their parts are known."""
        if place not in self._pairs:
            self._real[place] = value
            return
        pair, n = self._pairs[place], self._lanes
        both, wide = f"{pair}{self._mark}.whole", self._wide(kind)
        lanes = ", ".join(f"i32 {k // 2 + n * (k % 2)}" for k in range(2 * n))
        self.lines += (
            (
                f"{both} = shufflevector {wide} {self._real.pop(pair)}, {wide} {value}, "
                f"<{2 * n} x i32> <{lanes}>"
            ),
            f"store <{2 * n} x {kind}> {both}, ptr {self._one(pair)}, align {BYTES[kind]}",
        )

    def _place(self, name: str, kind: str, array: str, index: str) -> None:
        """Write the address of an element."""
        grows = self._kinds.get(index, "same")
        if self._kinds.get(array) in ("pair", "places") and index == "1":
            self._half(name, kind, array)
            return
        if self._gathers and self._kinds.get(array, "same") == "same":
            array = self._one(array)
            if grows in ("step", "vector"):
                self._kinds[name] = "places"
                self._steps[name] = f"getelementptr inbounds {kind}, ptr {array}, i64", "", index
                return
            text = f"getelementptr inbounds {kind}, ptr {array}, i64 {self._one(index)}"
            self._line(name, text, "address" if grows == "index" else "same")
            return
        if array in self._kinds or grows != "index":
            raise Unfit
        self._beside(name, kind, array, self._offsets[index])

    def _beside(self, name: str, kind: str, array: str, offsets: Sequence[str]) -> None:
        """Write the address of an element that lies beside the one of the turn before.

        What does not change in the loop is added before it.
        """
        begin, shift = f"getelementptr {kind}, ptr", 0
        for offset in offsets:
            sign, operand = offset[0], offset[1:]
            if operand.lstrip("-").isdigit():
                shift += int(operand) if sign == "+" else -int(operand)
                continue
            if sign == "-":
                minus = f"{operand}{self._own}.minus"
                self.before[f"{minus} = sub i64 0, {operand}"] = None
                operand = minus
            base = f"{array.removesuffix(self._own)}.{kind}.{operand[1:]}{self._own}"
            self.before[f"{base} = {begin} {array}, i64 {operand}"] = None
            array = base
        at = f"{name}{self._mark}"
        text = f"{begin} {array}, i64 {self._counter}{self._mark}"
        if shift:
            self.lines.append(f"{at}.at = {text}")
            text = f"{begin} {at}.at, i64 {shift}"
        self._line(name, text, "address")

    def _load(self, name: str, kind: str, place: str) -> None:
        """Write what reads an element, or one element for all."""
        if place in self._places:
            if place in self._held:
                raise Unfit
            if place in self._written:
                self._held[place], self._kinds[name] = name, "vector"
            else:
                self._line(name, f"load {kind}, ptr {place}", "same")
            return
        known = self._kinds.get(place, "same")
        if known in ("pair", "half"):
            self._load_part(name, kind, place)
        elif not self._gathers or known == "address":
            address, wide = self._address(kind, place), self._wide(kind)
            if self._mask:
                text = self._masked("load", wide, kind, [address], f"{wide} zeroinitializer")
            else:
                text = f"load {wide}, {address}, align {BYTES[kind]}"
            self._line(name, text, "vector")
        elif known == "same":
            self._line(name, f"load {kind}, ptr {self._one(place)}", "same")
        else:
            wide, so_far = self._wide(kind), "poison"
            for k in range(self._lanes):
                one, more = f"{name}.{k}", f"{name}.v{k}" if k + 1 < self._lanes else f"{name}.v"
                self.lines += (
                    f"{one} = load {kind}, ptr {self._turn(place, k)}",
                    f"{more} = insertelement {wide} {so_far}, {kind} {one}, i64 {k}",
                )
                so_far = more
            self._kinds[name] = "vector"

    def _turn(self, name: str, k: int) -> str:
        """Return an index, or an address, as it is in one turn."""
        if name == self._counter:
            return str(k)
        if self._kinds.get(name) == "vector":
            one = f"{name}.at{k}"
            line = f"{one} = extractelement {self._wide('i64')} {self._one(name)}, i64 {k}"
            if line not in self.lines:
                self.lines.append(line)
            return one
        if name not in self._steps:
            return self._one(name)
        begin, a, b = self._steps[name]
        operands = ", ".join(self._turn(x, k) for x in (a, b) if x)
        line = f"{name}.{k} = {begin} {operands}"
        if line not in self.lines:
            self.lines.append(line)
        return f"{name}.{k}"

    def _one(self, name: str) -> str:
        """Return the name of what is one number, or address, for all turns."""
        kind = self._kinds.get(name)
        if kind is None:
            return name
        return f"{name}.same" if kind == "same" and not self._gathers else f"{name}{self._mark}"

    def _is_same(self, words: Sequence[str]) -> bool:
        """Whether an instruction computes the same in all turns."""
        same = all(self._kinds.get(x, "same") == "same" for x in words if x[0] == "%")
        return same and words[0] in PLAIN and words[0] != "call"

    def _is_of_indices(self, words: Sequence[str]) -> bool:
        """Whether an instruction computes a part of an index, or a test of one, for all turns."""
        kinds = {x for x in words if x in BYTES}
        names = (x for x in words if x[0] == "%")
        return kinds <= _INDICES and all(self._kinds.get(x, "same") == "same" for x in names)

    def _line(self, name: str, text: str, kind: str = "") -> None:
        if name:
            self._kinds[name] = kind
        line = f"{self._one(name)} = {text}" if name else text
        if kind == "same" and not self._gathers:
            self.before[line] = None
        else:
            self.lines.append(line)

    def _wide(self, kind: str) -> str:
        return f"<{self._lanes} x {kind}>"

    def _vectors(self, *names: str) -> bool:
        return "vector" in map(self._kinds.get, names)

    def _index(self, name: str, word: str, begin: str, a: str, b: str) -> None:
        """Write a part of an index: beside another one, or what does not change in the loop."""
        kinds = [self._kinds.get(x, "same") for x in (a, b)]
        grows = kinds.count("index")
        self._steps[name] = f"{begin} i64", a, b
        if "step" in kinds or grows > (word != "mul") or (word == "sub" and kinds[1] == "index"):
            if not self._gathers:
                raise Unfit
            self._kinds[name] = "step"
            return
        if grows and not self._gathers:
            index, other = (a, b) if kinds[0] == "index" else (b, a)
            sign = "-" if word == "sub" else "+"
            self._offsets[name] = *self._offsets[index], f"{sign}{self._one(other)}"
            self._kinds[name] = "index"
            return
        a, b = map(self._one, (a, b))
        self._line(name, f"{begin} i64 {a}, {b}", "index" if grows else "same")

    def _call(self, name: str, kind: str, function: str, args: Sequence[str]) -> None:
        """Call the version for vectors; the words of the arguments are type, operand, comma."""
        given = (
            f"{self._wide(k)} {self._operand(x, k)}"
            for k, x in zip(args[::3], args[1::3], strict=True)
        )
        self._line(name, f"call {self._wide(kind)} @{function}({', '.join(given)})", "vector")

    def _address(self, kind: str, name: str) -> str:
        if self._kinds.get(name) != "address":
            raise Unfit
        return f"ptr {self._one(name)}"

    def _operand(self, name: str, kind: str) -> str:
        """Return the vector that an operand is: a constant, of the body, or the same in all."""
        if not name.startswith("%"):
            return f"splat ({kind} {name})"
        known = self._kinds.get(name)
        if known == "vector":
            return f"{name}{self._mark}"
        if known not in ("same", None):
            raise Unfit
        wide, one = self._wide(kind), self._one(name)
        all_ = f"{one}.all{self._own}"
        zero = f"<{self._lanes} x i32> zeroinitializer"
        spread = (
            f"{all_}.one = insertelement {wide} poison, {kind} {one}, i64 0",
            f"{all_} = shufflevector {wide} {all_}.one, {wide} poison, {zero}",
        )
        if known is None or not self._gathers:
            self.before.update(dict.fromkeys(spread))
        elif spread[0] not in self.lines:
            self.lines += spread
        return all_
