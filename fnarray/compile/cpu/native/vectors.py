"""The body of an innermost loop along memory, as text of vectors.

LLVM's vectoriser, and all that has to run before and after it, take half the time of a kernel of
ten operations. Where every innermost loop of a kernel is written as vectors here, nothing is left
to improve but what code generation does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .widen import BYTES, Declared, of_vectors, words_of
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


class Unfit(Exception):
    """The body does what is not written as vectors."""


class Vectors:
    """A body as vectors.

    Integers of 64 bits that do not come from memory are indices, never vectors.

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

    def __init__(self, body: Iterable[str], counter: str, lanes: int, calls: Mapping[str, str]):
        self.before: list[str] = []
        self.lines: list[str] = []
        self.declared: Declared = {}
        self._lanes, self._calls = lanes, calls
        #: Names of the body: an "index" grows by one each turn, an "address" by an element, and
        #: what is the "same" stays.
        self._kinds = {counter: "index"}
        for text in body:
            for line in text.splitlines():
                self._write(*line.rpartition(" = ")[::2])

    def _write(self, name: str, instruction: str) -> None:
        match words_of(instruction):
            case ["store", kind, value, ",", "ptr", place]:
                held = f"{self._wide(kind)} {self._operand(value, kind)}"
                self._line("", f"store {held}, {self._address(kind, place)}")
            case ["getelementptr", "inbounds", kind, ",", "ptr", array, ",", "i64", index]:
                if array in self._kinds or self._kinds.get(index) != "index":
                    raise Unfit
                text = f"getelementptr inbounds {kind}, ptr {array}, i64 {index}.v"
                self._line(name, text, "address")
            case ["load", kind, ",", "ptr", place]:
                text = f"load {self._wide(kind)}, {self._address(kind, place)}"
                self._line(name, text, "vector")
            case ["add" | "sub" | "mul" as word, *flags, "i64", a, ",", b] if not self._vectors(
                a, b
            ):
                self._index(name, word, " ".join((word, *flags)), a, b)
            case ["call", kind, function, "(", *args, ")", _] if function[1:] in self._calls:
                self._call(name, kind, self._calls[function[1:]], args)
            case ["call", kind, function, "(", *args, ")"] if function[1:] in self._calls:
                self._call(name, kind, self._calls[function[1:]], args)
            case words:
                wide = of_vectors(words, self._lanes, self.declared, self._operand)
                if not name or wide is None:
                    raise Unfit
                self._line(name, wide, "vector")

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
        if grows > (word != "mul") or (word == "sub" and kinds[1] == "index"):
            raise Unfit
        a, b = (f"{x}.v" if x in self._kinds else x for x in (a, b))
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
        if known not in ("vector", None):
            raise Unfit
        wide = self._wide(kind)
        one = f"{name}.one = insertelement {wide} poison, {kind} {name}, i64 0"
        if known is None and one not in self.before:
            first = f"<{self._lanes} x i32> zeroinitializer"
            every = f"{name}.v = shufflevector {wide} {name}.one, {wide} poison, {first}"
            self.before += one, every
        return f"{name}.v"
