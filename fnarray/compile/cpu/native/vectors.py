"""The body of an innermost loop along memory, as text of vectors.

LLVM's vectoriser, and all that has to run before and after it, take half the time of a kernel of
ten operations. Where every innermost loop of a kernel is written as vectors here, nothing is left
to improve but what code generation does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .widen import BYTES, PLAIN, Declared, of_vectors, words_of
from .writer import Module


def looped(module: Module, lines: Sequence[str], stop: str, end: str) -> list[str]:
    """Return the lines of a loop from 0 as a loop of vectors and one of the rest.

    Parameters
    ----------
    end : str
        The label of what follows the loop.

    Raises
    ------
    Unfit
    """
    before, _, first, phi, *body, _, _, _, _, _ = lines
    counter, label = phi.partition(" = ")[0], first[:-1]
    found = Vectors(body, counter, module.lanes, module.vectors)
    module.declared.update(found.declared)
    test, turn, rest = (f"{label}.{part}" for part in ("test", "vectors", "rest"))
    return [
        before,
        f"{counter}.end = and i64 {stop}, -{module.lanes}",
        *found.before,
        f"br label %{test}",
        f"{test}:",
        f"{counter}.some = icmp sgt i64 {counter}.end, 0",
        f"br i1 {counter}.some, label %{turn}, label %{rest}",
        f"{turn}:",
        f"{counter}.v = phi i64 [ 0, %{test} ], [ {counter}.next, %{turn} ]",
        *found.lines,
        f"{counter}.next = add nuw nsw i64 {counter}.v, {module.lanes}",
        f"{counter}.more = icmp slt i64 {counter}.next, {counter}.end",
        f"br i1 {counter}.more, label %{turn}, label %{rest}",
        f"{rest}:",
        f"{counter}.left = icmp slt i64 {counter}.end, {stop}",
        f"br i1 {counter}.left, label %{label}, label %{end}",
        first,
        phi.replace("[ 0, %" + before[:-1], f"[ {counter}.end, %{rest}"),
        *lines[4:],
    ]


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


class Vectors:
    """A body as vectors.

    Integers of 64 bits that do not come from memory are indices, never vectors.

    Parameters
    ----------
    gathers : bool
        Whether elements that lie apart are read one by one, in a loop that begins at 0.

    Attributes
    ----------
    before : list of str
        What goes before the loop: vectors of numbers that do not change in it.
    lines : list of str
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
    ):
        self.before: list[str] = []
        self.lines: list[str] = []
        self.declared: Declared = {}
        self._lanes, self._calls = lanes, calls
        self._gathers = gathers
        #: Names of the body: an "index" grows by one each turn, an "address" by an element, and
        #: what is the "same" stays. Where elements are read one by one, a "step" grows otherwise,
        #: and "places" are addresses of such elements.
        self._kinds = {counter: "index"}
        self._counter = counter
        #: How indices and addresses are computed: what begins the instruction, and its operands.
        self._steps: dict[str, tuple[str, str, str]] = {}
        for text in body:
            for line in text.splitlines():
                self._write(*line.rpartition(" = ")[::2])

    def _write(self, name: str, instruction: str) -> None:
        match words_of(instruction):
            case ["store", kind, value, ",", "ptr", place]:
                held = f"{self._wide(kind)} {self._operand(value, kind)}"
                self._line("", f"store {held}, {self._address(kind, place)}")
            case ["getelementptr", "inbounds", kind, ",", "ptr", array, ",", "i64", index]:
                self._place(name, kind, array, index)
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
            case words if self._gathers and name and self._is_same(words):
                self._line(name, " ".join(map(self._one, words)), "same")
            case words:
                wide = of_vectors(words, self._lanes, self.declared, self._operand)
                if not name or wide is None:
                    raise Unfit
                self._line(name, wide, "vector")

    def _place(self, name: str, kind: str, array: str, index: str) -> None:
        """Write the address of an element."""
        grows = self._kinds.get(index, "same")
        if self._gathers and self._kinds.get(array, "same") == "same" and grows != "vector":
            array = self._one(array)
            if grows == "step":
                self._kinds[name] = "places"
                self._steps[name] = f"getelementptr inbounds {kind}, ptr {array}, i64", "", index
                return
        elif array in self._kinds or grows != "index":
            raise Unfit
        text = f"getelementptr inbounds {kind}, ptr {array}, i64 {self._one(index)}"
        self._line(name, text, "address" if grows == "index" else "same")

    def _load(self, name: str, kind: str, place: str) -> None:
        """Write what reads an element, or one element for all."""
        known = self._kinds.get(place, "same")
        if not self._gathers or known == "address":
            text = f"load {self._wide(kind)}, {self._address(kind, place)}"
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
        return f"{name}.v" if name in self._kinds else name

    def _is_same(self, words: Sequence[str]) -> bool:
        """Whether an instruction computes the same in all turns."""
        same = all(self._kinds.get(x, "same") == "same" for x in words if x[0] == "%")
        return same and words[0] in PLAIN and words[0] != "call"

    def _line(self, name: str, text: str, kind: str = "") -> None:
        if name:
            self._kinds[name] = kind
        self.lines.append(f"{name}.v = {text}" if name else text)

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
        return f"ptr {name}.v, align {BYTES[kind]}"

    def _operand(self, name: str, kind: str) -> str:
        """Return the vector that an operand is: a constant, of the body, or the same in all."""
        if not name.startswith("%"):
            return f"splat ({kind} {name})"
        known = self._kinds.get(name)
        if known not in ("vector", "same", None):
            raise Unfit
        if known == "vector":
            return f"{name}.v"
        wide, to = self._wide(kind), self.before if known is None else self.lines
        one = f"{name}.one = insertelement {wide} poison, {kind} {self._one(name)}, i64 0"
        if one not in to:
            first = f"<{self._lanes} x i32> zeroinitializer"
            to += one, f"{name}.all = shufflevector {wide} {name}.one, {wide} poison, {first}"
        return f"{name}.all"
