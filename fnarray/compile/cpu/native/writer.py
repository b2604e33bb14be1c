"""LLVM text under construction: a module's parts, and the instructions of one function."""

from __future__ import annotations

import ast
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from .types import (
    BOOL,
    F64,
    I64,
    LLVM,
    U64,
    Array,
    DType,
    Fallback,
    Known,
    Scalar,
    Value,
    part,
    promoted,
    spelled,
    unified,
)

#: What LLVM is told of a loop, by the loop's order (`turns`; "loop": it stays one).
ORDERS = {
    "plain": ("vectorize.width", "one", "unroll.disable"),
    "sums": ("vectorize.width", "two", "unroll.disable"),
    "masked": ("vectorize.width", "one", "unroll.disable", "vectorize.predicate.enable"),
    "tail": ("one", "unroll.disable", "vectorize.predicate.enable"),
    "loop": ("unroll.disable",),
    "scalar": ("vectorize.never", "unroll.disable"),
    "single": ("one",),
    "free": (),
    "few": ("vectorize.never",),
    "row": ("vectorize.enable", "vectorize.width", "one", "unroll.disable"),
}


class Shared(NamedTuple):
    """A function that kernels call, compiled once for all of them.

    Attributes
    ----------
    text : str
    straight : bool
        Whether LLVM has nothing to improve before code is generated.
    calls : tuple of str
        Symbols of others that it calls.
    light : bool
        Whether LLVM has little to improve.
    """

    text: str
    straight: bool
    calls: tuple[str, ...] = ()
    light: bool = False


class Innermost(NamedTuple):
    """An innermost loop.

    Attributes
    ----------
    head, tail : int
        Its first line, and the one behind it.
    stop, end : str
        Where its turns end, and the label of what follows it.
    nested : bool
        Whether another loop surrounds it.
    fits : bool
        Whether it is one vector a turn, where all loops of its function are.
    parted : bool
        Whether it is in any case, and what remains is part of a vector.
    """

    head: int
    tail: int
    stop: str
    end: str
    nested: bool
    fits: bool
    parted: bool


@dataclass(slots=True)
class Module:
    """What the functions of a module share.

    Attributes
    ----------
    lanes : int
        How many numbers its long loops work on at a time.
    width : int, optional
        Bits of the vectors to use, where another number than LLVM's choice.
    sharing : frozenset of str
        Functions of `vmath` that are called.
    integers : bool
        Whether there are arrays of integers, whose division must not be tried on nothing.
    sequential : bool
        Whether it is a recurrence: loops over few elements, often.
    forks : bool
        Whether a choice between two numbers is two ways to one.
    long : bool
        Whether it has so many loops that what counts is how little text LLVM sees.
    flushes : bool
        Whether it takes subnormal numbers as zero.
    features : str
        The processor's, where not all of them are to be used.
    metadata : list of str
        What is said of its loops.
    library : dict
        Functions that it calls and other modules call as well, by symbol, with those they call.
    vectors : dict
        Functions of vectors, by that of numbers.
    straight : bool
        Whether its loops are written as vectors, and LLVM has nothing to improve.
    light : bool
        Whether those loops are inside of others, which LLVM may improve.
    free : bool
        Whether it is of a function whose innermost loops are a vector each, see `Outside`.
    words : mapping
        Rules of the machine's own for calls: function to rule, before all others.
    """

    lanes: int = 0
    width: int | None = None
    sharing: frozenset[str] = frozenset()
    integers: bool = False
    declared: dict[str, tuple[str, tuple[str, ...]]] = field(
        default_factory=dict[str, tuple[str, tuple[str, ...]]]
    )
    tables: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, np.ndarray[Any, Any]])
    functions: dict[Any, tuple[str, Any]] = field(default_factory=dict[Any, tuple[str, Any]])
    texts: list[str] = field(default_factory=list[str])
    shared: dict[Any, tuple[str, int]] = field(default_factory=dict[Any, tuple[str, int]])
    used: list[str] = field(default_factory=list[str])
    attributes: list[str] = field(default_factory=list[str])
    sequential: bool = False
    forks: bool = True
    long: bool = False
    flushes: bool = False
    features: str = ""
    metadata: list[str] = field(default_factory=list[str])
    words: Mapping[Any, Any] = field(default_factory=dict[Any, Any])
    library: dict[str, Shared] = field(default_factory=dict[str, Shared])
    vectors: dict[str, str] = field(default_factory=dict[str, str])
    straight: bool = False
    light: bool = False
    free: bool = False

    @property
    def masks(self) -> bool:
        """Whether loads and stores of a part of a vector cost nothing, as AVX-512's do."""
        return self.width == 512

    def loop(self, order: str | None, group: str = "", width: int = 0) -> str:
        """Return what marks the end of a loop that is given an order, as in `turns`, if it is."""
        if not order:
            return ""
        lanes = min(width or self.lanes, self.lanes)
        hints = {
            "vectorize.width": f'"llvm.loop.vectorize.width", i32 {lanes}',
            "vectorize.enable": '"llvm.loop.vectorize.enable", i1 true',
            "vectorize.never": '"llvm.loop.vectorize.width", i32 1',
            "one": '"llvm.loop.interleave.count", i32 1',
            "two": '"llvm.loop.interleave.count", i32 2',
            "unroll.disable": '"llvm.loop.unroll.disable"',
            "vectorize.predicate.enable": '"llvm.loop.vectorize.predicate.enable", i1 true',
        }
        told = [self.say(f"!{{!{hints[name]}}}") for name in ORDERS[order]]
        if group:
            told.append(self.say(f'!{{!"llvm.loop.parallel_accesses", {group}}}'))
        own = f"!{len(self.metadata)}"  # which makes it another than that of any other loop
        return ", !llvm.loop " + self.say(f"distinct !{{{', '.join([own, *told])}}}", anew=True)

    def say(self, node: str, *, anew: bool = False) -> str:
        """Return the number of some metadata."""
        if anew or node not in self.metadata:
            self.metadata.append(node)
            return f"!{len(self.metadata) - 1}"
        return f"!{self.metadata.index(node)}"

    def text(self) -> str:
        """Return the module, its functions marked with the width to vectorise to."""
        out = [
            f"@{name} = internal unnamed_addr constant [{len(t)} x {LLVM[t.dtype]}] ["
            + ", ".join(f"{LLVM[t.dtype]} {spelled(t.dtype, x)}" for x in t.tolist())
            + "]"
            for name, t in self.tables.items()
        ]
        out += [
            f"declare {result} @{name}({', '.join(args)})"
            for name, (result, args) in self.declared.items()
        ]
        wide = f' "prefer-vector-width"="{self.width}"' if self.width else ""
        wide += f' "target-features"="{self.features}"' if self.features else ""
        if self.used:
            names = ", ".join(f"ptr @{name}" for name in self.used)
            out.append(
                f"@llvm.compiler.used = appending global [{len(self.used)} x ptr] [{names}], "
                'section "llvm.metadata"'
            )
        attributes = [
            f"attributes #0 = {{ nounwind alignstack=64{wide} }}",
            f"attributes #1 = {{ nounwind noinline alignstack=64{wide} }}",
            *(f"attributes #{k} = {{ {a} }}" for k, a in enumerate(self.attributes, 2)),
        ]
        told = [f"!{k} = {node}" for k, node in enumerate(self.metadata)]
        return "\n".join([*out, *self.texts, *attributes, *told]) + "\n"


class Again(Exception):
    """A variable holds another type than was thought: the function is written anew."""


class Writer:
    """The instructions of one function."""

    def __init__(self, module: Module):
        self.module = module
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.slots: dict[str, tuple[Any, Any]] = {}
        self.kinds: dict[str, DType] = {}
        #: Variables and arrays that hold ranks of numbers (`ranks`), and what folds each.
        self.ranks: Mapping[str, str] = {}
        #: The ranks that numbers were made of.
        self.known_ranks: dict[str, str] = {}
        #: What marks reads and writes of arrays in a loop whose turns do not meet in memory.
        self.access = ""
        #: Whether what is written may be one number of a vector's, and waits for no turn before.
        self.abreast = not module.sequential
        #: Integers that the block has computed, by operation and operands: the remainder that finds
        #: a row round the edge of a grid is 14 instructions, which each read of it would repeat.
        self.computed: dict[tuple[type[ast.operator], str, str], str] = {}
        #: Where loops from 0 end that surround what is written: more than 0.
        self.positive: list[str] = []
        self._count = 0

    # -- instructions ------------------------------------------------------------------------

    def fresh(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"%.{self._count}"

    def new(self, instruction: str) -> str:
        """Append an instruction; return the name of its result."""
        self._count += 1
        name = f"%.{self._count}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def label(self) -> str:
        """Return a new label."""
        self._count += 1
        return f"L{self._count}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.computed = {}

    def go(self, label: str) -> None:
        """End a block with a jump."""
        self.lines.append(f"br label %{label}")

    def fork(self, test: str, yes: str, no: str) -> None:
        """End a block with a choice."""
        self.lines.append(f"br i1 {test}, label %{yes}, label %{no}")

    def place(self, kind: str) -> str:
        """Return a place on the stack, made at the function's entry."""
        name = self.fresh()
        self.allocas.append(f"{name} = alloca {kind}")
        return name

    def external(self, name: str, result: str, args: Sequence[str]) -> str:
        """Call a declared function on operands after their types."""
        self.module.declared[name] = result, tuple(a.partition(" ")[0] for a in args)
        text = f"call {result} @{name}({', '.join(args)})"
        if result == "void":
            self.lines.append(text)
            return ""
        return self.new(text)

    # -- numbers -----------------------------------------------------------------------------

    def number(self, dtype: DType, value: Any) -> Scalar:
        """Return a constant."""
        if dtype.kind == "c":
            p = part(dtype)
            return Scalar(dtype, (spelled(p, value.real), spelled(p, value.imag)), value)
        return Scalar(dtype, spelled(dtype, value), value)

    def constant(self, value: Any) -> Scalar:
        """Return a Python or NumPy number as a constant of its type."""
        if isinstance(value, np.generic):
            number = cast(np.generic[Any], value)
            return self.number(number.dtype, number.item())
        if isinstance(value, bool):
            return self.number(BOOL, value)
        if isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 64:
                raise Fallback("an integer of more than 64 bits")
            return self.number(I64 if value < 1 << 63 else U64, value)
        if isinstance(value, float):
            return self.number(F64, value)
        raise Fallback(f"a constant of type {type(value).__name__}")

    def cast(self, x: Scalar, dtype: DType) -> Scalar:
        """Return a number as another type: integers wrap, floats are truncated."""
        if x.dtype == dtype:
            return x
        if dtype.kind == "c":
            return self._complex(x, dtype)
        if x.dtype.kind == "c":
            raise Fallback(f"{x.dtype} as {dtype}")
        if x.literal is not None and (x.dtype.kind in "iub" or dtype.kind == "f"):
            with np.errstate(all="ignore"):
                value = np.asarray(x.literal, x.dtype).astype(dtype).item()
            return self.number(dtype, value)
        if dtype.kind == "b":
            test = "fcmp une" if x.dtype.kind == "f" else "icmp ne"
            zero = spelled(x.dtype, 0)
            return Scalar(dtype, self.new(f"{test} {LLVM[x.dtype]} {x.ir}, {zero}"))
        name = _conversion(x.dtype, dtype)
        if name is None:
            return Scalar(dtype, x.ir)
        return Scalar(dtype, self.new(f"{name} {LLVM[x.dtype]} {x.ir} to {LLVM[dtype]}"))

    def _complex(self, x: Scalar, dtype: DType) -> Scalar:
        to = part(dtype)
        if x.dtype.kind != "c":
            return Scalar(dtype, (self.cast(x, to).ir, spelled(to, 0)))
        parts = (Scalar(part(x.dtype), ir) for ir in x.ir)
        return Scalar(dtype, tuple(self.cast(p, to).ir for p in parts))

    # -- memory ------------------------------------------------------------------------------

    def element(self, array: Array, index: Scalar) -> str:
        """Return the address of an element."""
        at = self.cast(index, I64).ir
        return self.new(f"getelementptr inbounds {memory(array.dtype)}, ptr {array.ir}, i64 {at}")

    def load(self, dtype: DType, address: str) -> Scalar:
        """Read a number from an array."""
        if dtype.kind == "c":
            p = LLVM[part(dtype)]
            high = self.new(f"getelementptr inbounds {p}, ptr {address}, i64 1")
            parts = (self.new(f"load {p}, ptr {a}{self.access}") for a in (address, high))
            return Scalar(dtype, tuple(parts))
        x = self.new(f"load {memory(dtype)}, ptr {address}{self.access}")
        return Scalar(dtype, self.new(f"trunc i8 {x} to i1") if dtype == BOOL else x)

    def store(self, x: Scalar, address: str) -> None:
        """Write a number into an array."""
        if x.dtype.kind == "c":
            p = LLVM[part(x.dtype)]
            high = self.new(f"getelementptr inbounds {p}, ptr {address}, i64 1")
            for ir, at in zip(x.ir, (address, high), strict=True):
                self.lines.append(f"store {p} {ir}, ptr {at}{self.access}")
            return
        ir = self.new(f"zext i1 {x.ir} to i8") if x.dtype == BOOL else x.ir
        self.lines.append(f"store {memory(x.dtype)} {ir}, ptr {address}{self.access}")

    # -- variables in memory -----------------------------------------------------------------

    def keep(self, name: str, value: Value, *, anew: bool) -> None:
        """Store a variable; ``anew`` where no other value of it can be met later."""
        if isinstance(value, Known):
            value = self.constant(value.value)
        if isinstance(value, tuple):
            raise Fallback("a tuple that changes")
        known = self.slots.get(name)
        if known is None or (anew and _kind(known[0]) != _kind(value)):
            known = self.slots[name] = self._slot(name, value)
        held, places = known
        if isinstance(value, Array):
            if not isinstance(held, Array) or held.dtype != value.dtype:
                raise Fallback(f"a variable of different arrays: {name}")
            self.lines.append(f"store ptr {value.ir}, ptr {places[0]}")
            if value.size is not None:
                self.lines.append(f"store i64 {value.size}, ptr {places[1]}")
            return
        if isinstance(held, Array):
            raise Fallback(f"a variable of an array and a number: {name}")
        if value.dtype != held.dtype:
            together = unified(value.dtype, held.dtype)
            if together != held.dtype:
                self.kinds[name] = together
                raise Again
            value = self.cast(value, together)
        value = self.held(name, value)
        parts = value.ir if value.dtype.kind == "c" else (value.ir,)
        kind = LLVM[part(value.dtype) if value.dtype.kind == "c" else value.dtype]
        for ir, at in zip(parts, places, strict=True):
            self.lines.append(f"store {kind} {ir}, ptr {at}")

    def held(self, name: str, value: Scalar) -> Scalar:
        """Return what is stored of a number, in a variable or an array: itself, or its rank."""
        if name not in self.ranks:
            return value
        from . import ranks  # which few kernels need

        return ranks.held(self, name, value)

    def found(self, name: str, dtype: DType, address: str) -> Scalar:
        """Read a number that is `held` in an array."""
        if name not in self.ranks:
            return self.load(dtype, address)
        from . import ranks

        return ranks.found(self, dtype, address)

    def _slot(self, name: str, value: Any) -> tuple[Any, Any]:
        if isinstance(value, Array):
            return Array(value.dtype, "", value.size), (self.place("ptr"), self.place("i64"))
        dtype = value.dtype
        if name in self.kinds:
            dtype = unified(dtype, self.kinds[name])
        if dtype.kind == "c":
            p = LLVM[part(dtype)]
            return Scalar(dtype, ""), (self.place(p), self.place(p))
        return Scalar(dtype, ""), (self.place(LLVM[dtype]),)

    def recall(self, name: str) -> Value:
        """Read a variable that is kept in memory."""
        held, places = self.slots[name]
        if isinstance(held, Array):
            size = None if held.size is None else self.new(f"load i64, ptr {places[1]}")
            return Array(held.dtype, self.new(f"load ptr, ptr {places[0]}"), size)
        if held.dtype.kind == "c":
            p = LLVM[part(held.dtype)]
            return Scalar(held.dtype, tuple(self.new(f"load {p}, ptr {a}") for a in places))
        if name in self.ranks:
            from . import ranks

            return ranks.recalled(self, held.dtype, places[0])
        return Scalar(held.dtype, self.new(f"load {LLVM[held.dtype]}, ptr {places[0]}"))

    @contextmanager
    def apart(self) -> Generator[list[str], None, None]:
        """Collect the instructions of the block instead of appending them."""
        before, computed = self.lines, self.computed
        self.lines, self.computed = [], dict(computed)
        try:
            yield self.lines
        finally:
            self.lines, self.computed = before, computed

    def call_raw(self, name: str, result: str, args: tuple[Scalar, ...]) -> str:
        """Call a function of numbers that is not ours."""
        return self.external(name, result, [f"{LLVM[a.dtype]} {a.ir}" for a in args])

    def negative(self, x: Scalar) -> Scalar:
        """Negate a number."""
        if x.dtype.kind == "c":
            p = part(x.dtype)
            return Scalar(x.dtype, tuple(self.negative(Scalar(p, ir)).ir for ir in x.ir))
        if x.dtype.kind == "f":
            return Scalar(x.dtype, self.new(f"fneg {LLVM[x.dtype]} {x.ir}"))
        dtype = promoted(x.dtype, x.dtype)
        return Scalar(dtype, self.new(f"sub {LLVM[dtype]} 0, {self.cast(x, dtype).ir}"))


def memory(dtype: DType) -> str:
    """Return the LLVM type of an element in memory."""
    if dtype.kind == "c":
        p = LLVM[part(dtype)]
        return f"{{ {p}, {p} }}"
    return "i8" if dtype == BOOL else LLVM[dtype]


def _kind(value: Any) -> Any:
    return (type(value), value.dtype)


def _conversion(a: DType, b: DType) -> str | None:
    """Return the instruction that converts real numbers; None where the bits stay."""
    if a.kind == "f":
        if b.kind == "f":
            return "fpext" if b.itemsize > a.itemsize else "fptrunc"
        return "fptosi" if b.kind == "i" else "fptoui"
    if b.kind == "f":
        return "sitofp" if a.kind == "i" else "uitofp"
    if a.kind == "b" or b.itemsize > a.itemsize:
        return "sext" if a.kind == "i" else "zext"
    return None if a.itemsize == b.itemsize else "trunc"
