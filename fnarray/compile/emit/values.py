"""Values of a kernel: constants, indices, loads, stores, and the elements that are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from math import frexp, prod
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.avals import ShapedArray
from ...core.forms import Bound, Iota, Map, Operand, Reindex
from ...core.frozen import frozen
from ...core.graph import Atom, ClosedGraph, Literal, Var
from ...core.symbolic import Scalar, bounds, clamp, leaves, scalar, text, variable
from ...errors import UnsupportedOnTarget
from ..ir import Block, Node, renamed
from ..schedule.access import Indices, broadcast_index, row_major
from ..schedule.nests import register_name
from ..schedule.plan import contracted_strides
from ..target import Limits
from .source import CORES
from .writer import Writer

#: Indices of the loops that are open.
Counters = tuple[Any, ...]

#: Codes of dtypes in kernels, where the target does not hold them otherwise.
CODES = {
    "bool": "b1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip

#: A quotient, and what it is with one number or two that stand for the inverse of its divisor.
_QUOTIENT = "sc.div({0}, {1})"
_PRODUCTS = ("({0} * {1})", "sc.by_inverse({0}, {1}, {2})")
#: A remainder, and what it is of a float by a power of two and its inverse.
_REMAINDER = "sc.rem({0}, {1})"
_SCALED = "sc.rem_by_power({0}, {1}, {2})"
#: Powers of two up to which those of float32 have an inverse that is a normal number.
_POWERS = 2.0**100


@cache
def name_of(dtype: np.dtype) -> str:
    """Return a dtype's name, which NumPy puts together anew each time: 5 us."""
    return dtype.name


@frozen
class Narrow:
    """How a target holds a dtype that registers hold as float32.

    Attributes
    ----------
    code : str
        Of elements in memory.
    load, store : str
        Templates of what turns an element into a register's value, and back.
    """

    code: str
    load: str
    store: str


@frozen
class Storage:
    """Where a value lies: a rank-1 array, an offset, a stride per axis (0 for a contracted one).

    ``depth`` is the scope from which on it may be read.
    """

    name: str
    strides: tuple[int, ...]
    base: Any = 0
    depth: int = 0

    def offset(self, idx: Indices) -> Any:
        """Return the position of an element."""
        total = self.base
        for i, stride in zip(idx, self.strides, strict=True):
            total = total + i * stride
        return total

    def shown(self, var: Var) -> Storage:
        """Return the same place for another value there, which may be of another shape."""
        if len(self.strides) == var.aval.ndim and 0 in self.strides:
            return self  # rows that are written over
        strides = row_major(var.aval.shape)
        return self if strides == self.strides else replace(self, strides=strides)

    def read_from(self, depth: int) -> Storage:
        """Return the same place, to be read from another scope on."""
        return replace(self, depth=depth)


class Values:
    """Spells the values of one kernel.

    Parameters
    ----------
    writer : Writer
    limits : Limits
    sizes : frozenset of int
        Sizes of arrays in the program: literals that equal one of them are taken for sizes, and
        become arguments.
    narrow : mapping, optional
        Dtypes that the target computes in float32, by name.

    Attributes
    ----------
    outer : mapping
        Nodes of the outermost body that are written where they are read.
    inlined : dict
        Nodes that are written where they are read.
    storage : dict
        Where values lie that are in memory.
    scalars : dict
        Scalar parameters: (code, value) to name.
    scratch : dict
        Working arrays: name to (code, length).
    counted : set
        Counters that run from 0, known not to be negative.
    product : int
        Multiplications of the largest product that is left to BLAS.
    looping : int
        How many loops over carried values are open.
    parts : bool
        Whether the kernel runs in parts as a whole, so that no loop of it need be shared.
    """

    def __init__(
        self,
        writer: Writer,
        limits: Limits,
        sizes: frozenset[int] = frozenset(),
        narrow: Mapping[str, Narrow] = MappingProxyType({}),
    ):
        self.writer = writer
        self.limits = limits
        self.sizes = sizes
        self.narrow = narrow
        self.outer: Mapping[Var, Node] = {}
        self.inlined: dict[Var, Node] = {}
        self.storage: dict[Var, Storage] = {}
        self.scalars: dict[tuple[str, Any], str] = {}
        self.scratch: dict[str, tuple[str, int]] = {}
        self.counted: set[str] = set()
        self.product = 0
        self.looping = 0
        self.parts = False

    def code(self, dtype: np.dtype) -> str:
        """Return the code of an array's elements.

        Raises
        ------
        UnsupportedOnTarget
            The target's kernels have no such elements.
        """
        held = self.narrow.get(name_of(dtype))
        if held is None and name_of(dtype) not in CODES:
            raise UnsupportedOnTarget(
                f"arrays of {dtype.name}: kernels of this target hold no such elements. Convert "
                "them to float32, or compile for the cpu."
            )
        return held.code if held else CODES[name_of(dtype)]

    # -- constants ---------------------------------------------------------------------------

    def number(self, n: int) -> str:
        """Spell an integer of index arithmetic."""
        if abs(n) <= self.limits.spelled:
            return str(n)
        if n < 0:
            return f"-{self.argument('i64', -n, 'n')}"
        return self.argument("i64", n, "n")

    def argument(self, code: str, value: Any, prefix: str) -> str:
        """Return the scalar parameter that brings a value in."""
        key = (code, value)
        if key not in self.scalars:
            self.scalars[key] = self.writer.fresh(prefix)
            self.writer.depth_of[self.scalars[key]] = 0
        return self.scalars[key]

    def share(self, work: int) -> bool:
        """Let threads share the next loop of this scope, if it is worth it; return whether."""
        # What runs once is worth less: a function of its own takes LLVM some 10 ms.
        limits = self.limits
        least = limits.shared if self.looping else max(limits.shared, limits.parallel)
        shares = work >= least and not self.parts
        if shares:
            cores = self.argument("i64", CORES, "cores")
            parts = self.argument("i64", 2 * work // limits.shared, "parts")
            self.writer.line(f"fk.threads.share({cores}, {parts})")
        return shares

    def literal(self, value: Any, dtype: np.dtype) -> str:
        """Return a name or literal for a constant in the register type of ``dtype``."""
        code = "f32" if name_of(dtype) in self.narrow else CODES[name_of(dtype)]
        if code == "b1":
            return str(bool(value))
        if code in ("c64", "c128"):
            return self._constant(f"{code}(complex({_real(value.real)}, {_real(value.imag)}))")
        plain = float(value) if dtype.kind in "fV" else int(value)
        if self.is_size(plain):
            return self.argument(code, plain, "v")
        if code == "f64":
            return _real(plain)
        return self._constant(f"{code}({_real(plain) if code == 'f32' else plain})")

    def is_size(self, number: float) -> bool:
        """Whether a number is taken for the size of an array."""
        return abs(number) > self.limits.spelled and number in self.sizes

    def _constant(self, spelled: str) -> str:
        known = self.writer.scopes[0].memo.get(spelled)
        if known is None:
            known = self.writer.fresh("c")
            self.writer.scopes[0].lines.insert(0, f"{known} = {spelled}")
            self.writer.scopes[0].memo[spelled] = known
            self.writer.depth_of[known] = 0
        return known

    # -- indices -----------------------------------------------------------------------------

    def depth_of_index(self, ix: Any) -> int:
        """Return the depth of the innermost scope an index depends on."""
        return max((self.writer.depth_of[a.name] for a in leaves(ix)), default=0)

    def index(self, ix: Any) -> str:
        """Return an index as source, as an element position: unsigned unless plainly not < 0."""
        spelled = text(ix, self.number)
        if isinstance(ix, int) or spelled in self.counted:
            return spelled
        return f"u({spelled})"

    def spelled(self, ix: Any) -> str:
        """Return an index as a number."""
        return text(ix, self.number)

    def integer(self, atom: Atom, idx: Indices) -> Any:
        """Return the integer that a value holds, as an index."""
        if isinstance(atom, Literal):
            return int(atom.val)
        name = self.value(atom, idx)
        key = ("index", name)
        known = self.writer.recall(key)
        if known is None:
            depth = self.writer.depth_of[name]
            known = self.writer.assign(f"i64({name})", depth, "j")
            self.writer.remember(key, known, depth)
        kind, bits = atom.aval.dtype.kind, 8 * atom.aval.dtype.itemsize
        if kind == "b":
            return scalar(known, 0, 1)
        if kind == "u" and bits < 64:
            return scalar(known, 0, (1 << bits) - 1)
        return scalar(known) if bits == 64 else scalar(known, -(1 << bits - 1), (1 << bits - 1) - 1)

    def reader(self, node: Node) -> Callable[[int, Indices], Any]:
        """Return the ``read`` of a node's index functions."""
        return lambda k, idx: self.integer(node.ins[k], idx)

    def test(self, conditions: Iterable[Bound], *, once: bool = False) -> str | None:
        """Return the test that indices are within bounds; None when they always are.

        Parameters
        ----------
        once : bool
            Whether both bounds are one comparison, of numbers without a sign.
        """
        tests: list[str] = []
        for low, ix, high in conditions:
            least, most = bounds(ix)
            spelled = text(ix, self.number)
            if once and least < low == 0 and most >= high:
                tests.append(f"u({spelled}) < u({self.number(high)})")
                continue
            if least < low:
                tests.append(f"{spelled} >= {self.number(low)}")
            if most >= high:
                tests.append(f"{spelled} < {self.number(high)}")
        return " and ".join(tests) or None

    # -- values ------------------------------------------------------------------------------

    def value(self, atom: Atom, idx: Indices) -> str:
        """Return a name or literal for an element of a value."""
        if isinstance(atom, Literal):
            return self.literal(atom.val, atom.aval.dtype)
        known = self.writer.recall((atom, idx))
        if known is not None:
            return known
        store = self.storage.get(atom)
        if store is not None:
            return self._load(atom, idx, store)
        return self.compute(self.inlined.get(atom) or self.outer[atom], idx)

    def _load(self, var: Var, idx: Indices, store: Storage) -> str:
        if not var.aval.size:  # inside a loop that never runs, out of which a load may move
            return self.literal(0, var.aval.dtype)
        offset = store.offset(idx)
        depth = max(store.depth, self.depth_of_index(offset), self.writer.floor)
        name = self.writer.assign(self.fetch(store.name, offset, var.aval.dtype), depth)
        self.writer.remember((var, idx), name, depth)
        return name

    def fetch(self, array: str, offset: Any, dtype: np.dtype) -> str:
        """Return the expression of an element in its register type."""
        element = f"{array}[{self.index(offset)}]"
        held = self.narrow.get(name_of(dtype))
        return held.load.format(element) if held else element

    def put(self, array: str, offset: Any, name: str, dtype: np.dtype) -> None:
        """Store a register's value."""
        held = self.narrow.get(name_of(dtype))
        element = held.store.format(name) if held else name
        self.writer.line(f"{array}[{self.index(offset)}] = {element}")

    def round(self, expression: str, dtype: np.dtype) -> str:
        """Return an expression rounded to its dtype, as each operation's result is."""
        held = self.narrow.get(name_of(dtype))
        return held.load.format(held.store.format(expression)) if held else expression

    def compute(self, node: Node, idx: Indices) -> str:
        """Compute an element of an elementwise or reindexing node."""
        # As `Writer.spelling` says it, at a third of the cost: this is done for each element.
        outer, self.writer.origin = self.writer.origin, (node,)
        name = self._compute(node, idx)
        self.writer.origin = outer
        return name

    def _compute(self, node: Node, idx: Indices) -> str:
        form, out = node.form, node.out
        if isinstance(form, Map):
            atoms, template = node.ins, form.template
            if template == _QUOTIENT and (inverse := self._inverse(node)):
                atoms, template = (atoms[0], *inverse), _PRODUCTS[len(inverse) - 1]
            elif template == _REMAINDER and (power := self._power(node)):
                atoms, template = (atoms[0], *power[0]), power[1]
            operands = [self.value(a, broadcast_index(a.aval.shape, idx)) for a in atoms]
            depth = max((self.writer.depth_of.get(o, 0) for o in operands), default=0)
            spelled = self.round(template.format(*operands), out.aval.dtype)
            name = self.writer.assign(spelled, depth)
        elif isinstance(form, Iota):
            ix = idx[form.dimension]
            dtype = out.aval.dtype
            cast = CODES[name_of(dtype)] if dtype.kind == "c" else f"sc.to_{register_name(dtype)}"
            depth = self.depth_of_index(ix)
            name = self.writer.assign(self.round(f"{cast}({text(ix, self.number)})", dtype), depth)
        else:
            name = self._reindexed(node, form, idx)
            depth = self.writer.depth_of.get(name, 0)
        self.writer.remember((out, idx), name, depth)
        return name

    def _inverse(self, node: Node) -> tuple[Literal, ...]:
        """Return what stands for the inverse of what a node divides by, where that is known.

        Sizes are arguments: means of more elements are the same text.
        """
        divisor, aval = self._divisor(node), ShapedArray((), node.out.aval.dtype)
        if divisor is None or name_of(aval.dtype) not in ("float32", "float64"):
            return ()
        if self.is_size(number := float(divisor.val)):
            return ()
        from ..inverses import inverse_of  # which few programs need

        return tuple(Literal(np.asarray(x), aval) for x in inverse_of(number, aval.dtype))

    def _power(self, node: Node) -> tuple[tuple[Literal, ...], str] | None:
        """Return what a remainder by a power of two is made of, and its template.

        It is spelled though it be a size: one of integers is a few bits then, where 100,000 by an
        argument took 30 us, and of floats all is exact.
        """
        divisor, aval = self._divisor(node), ShapedArray((), node.out.aval.dtype)
        if divisor is None:
            return None
        number = float(divisor.val)
        if not 1 <= number <= _POWERS or frexp(number)[0] != 0.5:
            return None
        name = name_of(aval.dtype)
        if aval.dtype.kind in "iu":
            known = self._constant(f"{CODES[name]}({int(divisor.val)})")
            return (), f"sc.rem({{0}}, {known})"
        if name not in ("float32", "float64"):
            return None
        pair = 1 / number, number
        return tuple(Literal(np.asarray(x, aval.dtype), aval) for x in pair), _SCALED

    def _divisor(self, node: Node) -> Literal | None:
        """Return what a node divides by, one number, where that is known."""
        divisor = node.ins[1]
        maker = None if isinstance(divisor, Literal) else self.inlined.get(divisor)
        if maker is not None and isinstance(maker.form, Reindex) and maker.form.valid is None:
            divisor = maker.ins[0]
        return divisor if isinstance(divisor, Literal) else None

    def _reindexed(self, node: Node, form: Reindex, idx: Indices) -> str:
        read = self.reader(node)
        source = form.index(idx, read)
        conditions = form.valid(idx, read) if form.valid is not None else ()
        test = self.test(conditions)
        operand, out = node.ins[0], node.out.aval
        if test is None:
            return self.value(operand, source)
        if isinstance(form.fill, Operand):
            fill = self.value(node.ins[form.fill.number], idx)
        else:
            fill = self.literal(form.fill, out.dtype)
        if any(bounds(ix)[1] < low or bounds(ix)[0] >= high for low, ix, high in conditions):
            return fill  # of an array in registers there is no element
        if operand.aval.size and any(isinstance(a, Scalar) for ix in source for a in leaves(ix)):
            return self._looked_up(operand, source, test, fill)
        name = self.writer.declare(self.writer.fresh("t"))
        self.writer.line(f"{name} = {fill}")
        with self.writer.block(f"if {test}:", barrier=True):
            self.writer.line(f"{name} = {self.value(operand, source)}")
        return name

    def _looked_up(self, operand: Atom, source: Indices, test: str, fill: str) -> str:
        """Return what is looked up, or what stands for it where there is nothing.

        Some element is read in either case: loops without branches are vectors (49 turns of a
        step of forward probabilities, on 8 x 21: 218 us with branches, 54 without).
        """
        near = [clamp(ix, 0, n - 1) for ix, n in zip(source, operand.aval.shape, strict=True)]
        found = self.value(operand, tuple(near))
        depth = max(self.writer.depth_of.get(found, 0), *map(self.depth_of_index, source))
        return self.writer.assign(f"({found} if {test} else {fill})", depth)

    def scalar_block(self, block: Block, args: Sequence[str]) -> list[str]:
        """Compute a block of rank-0 maps on registers; return the names of its results."""
        block = renamed(block)
        for var, name in zip(block.inputs, args, strict=True):
            # A name of its own: the accumulator's is about to change.
            self.writer.remember((var, ()), self.writer.assign(name, None, "x"))
        self.inlined.update((n.out, n) for n in block.nodes)
        return [self.value(a, ()) for a in block.outputs]

    def updated(self, node: Node, combine: str | ClosedGraph, old: str, new: str) -> str:
        """Combine an element and what updates it."""
        if not isinstance(combine, str):
            return self.scalar_block(node.bodies[0], [old, new])[0]
        spelled = self.round(combine.format(old, new), node.out.aval.dtype)
        return self.writer.assign(spelled, None, "new")

    # -- storage -----------------------------------------------------------------------------

    def new_scratch(self, var: Var, contracted: tuple[bool, ...] | None = None) -> Storage:
        """Return working storage for a value, without the axes marked as contracted."""
        shape = var.aval.shape
        contracted = contracted or (False,) * len(shape)
        strides = contracted_strides(shape, contracted)
        length = prod(1 if c else n for n, c in zip(shape, contracted, strict=True))
        name = self.writer.fresh("w")
        self.scratch[name] = (self.code(var.aval.dtype), length)
        self.writer.depth_of[name] = 0
        return Storage(name, strides, 0, self.writer.scope.depth)

    def stored(self, atom: Atom) -> Storage | None:
        """Return where a value lies, if it lies in memory."""
        return None if isinstance(atom, Literal) else self.storage.get(atom)

    def deliver(self, var: Var, idx: Indices, name: str) -> None:
        """Store an element of a result, if the result lies in memory."""
        store = self.storage.get(var)
        if store is not None:
            self.put(store.name, store.offset(idx), name, var.aval.dtype)

    def loops(self, stack: ExitStack, extents: tuple[int, ...]) -> tuple[Any, ...]:
        """Open a loop per axis; return the counters."""
        return tuple(0 if n == 1 else self.loop(stack, n) for n in extents)

    def loop(self, stack: ExitStack, extent: int) -> Any:
        """Open a loop; return its counter."""
        name = self.writer.fresh("i")
        self.counted.add(name)
        header = f"for {name} in range({self.number(extent)}):"
        stack.enter_context(self.writer.block(header))
        self.writer.declare(name)
        return variable(name, extent)


def _real(x: Any) -> str:
    x = float(x)
    if x != x:
        return "nan"
    if x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "-inf"
    return repr(x)
