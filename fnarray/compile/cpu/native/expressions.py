"""Expressions of kernel text as LLVM instructions, with Numba's meaning."""

from __future__ import annotations

import ast
import builtins
import importlib
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import numpy as np

from . import library
from .reader import Text, holds_rows, is_pure, place_of
from .turns import rereads
from .types import (
    BOOL,
    F64,
    I64,
    LLVM,
    U32,
    U64,
    Array,
    DType,
    Fallback,
    Known,
    Scalar,
    Value,
    comparison,
    part,
    promoted,
    unified,
)
from .words import attribute, call
from .writer import Module, Writer, memory

_FLOATS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INTEGERS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class Expressions(Writer):
    """Writes expressions.

    Attributes
    ----------
    env : dict
        Values of the names that need no place in memory.
    ranked : bool
        Whether what is folded by a maximum or minimum is kept as ranks.
    views : dict
        Arrays as the innermost loop reads them at some places.
    """

    ranked = True

    def __init__(self, module: Module, text: Text):
        super().__init__(module)
        self.ranks = text.ranks if self.ranked else {}
        self.text = text
        self.env: dict[str, Value] = {}
        self.own = False
        #: Whether loops are those of a recurrence: of few turns.
        self.recurrent = module.sequential
        self.views: dict[tuple[str, str], Array] = {}
        #: The loops around: where the next turn begins, the end, the loop itself, its turns.
        self.loops: list[tuple[str, str, ast.For | ast.While, int | None]] = []

    def view(self, loop: ast.For) -> None:
        """Have a loop read further places of a row by pointers of which LLVM knows nothing.

        It hands on what one turn has read to the next, and puts each vector together of two, in
        three instructions more than to read it again (400 turns of a stencil on 30,000 points: 3.9
        ms and 3.2). Places of other rows take no part in that, and a pointer each costs: a heat
        equation in a cube ran 1.1 times as long with seven.
        """
        for name, place in rereads(loop, self.text):
            of = self.name(ast.Name(name))
            if isinstance(of, Array):
                hidden = self.new(f'call ptr asm "", "=r,0"(ptr {of.ir})')
                self.views[name, place] = replace(of, ir=hidden)

    def folded(self, node: ast.Assign) -> bool:
        """Write a fold into a rank; return False if it is none."""
        if not self.ranks:
            return False
        from . import ranks  # which few kernels need

        return ranks.folded(self, node)

    def expression(self, node: ast.expr) -> Value:
        """Write an expression; return its value."""
        rule = _RULES.get(type(node))
        if rule is None:
            raise Fallback(f"syntax {type(node).__name__}")
        return rule(self, node)

    def scalar(self, node: ast.expr) -> Scalar:
        """Write an expression that is a number."""
        value = self.expression(node)
        if isinstance(value, Known):
            value = self.constant(value.value)
        if not isinstance(value, Scalar):
            raise Fallback(f"{type(value).__name__} as a number")
        return value

    def truth(self, node: ast.expr) -> str:
        """Write a test; return its bit."""
        return self.cast(self.scalar(node), BOOL).ir

    # -- names and constants -----------------------------------------------------------------

    def name(self, node: ast.Name) -> Value:
        """Read a name: a local, a global, or one of Python's own."""
        value = self.env.get(node.id)
        if value is not None:
            return value
        if node.id in self.slots:
            return self.recall(node.id)
        if node.id in self.text.globals:
            return Known(self.text.globals[node.id])
        if hasattr(builtins, node.id):
            return Known(getattr(builtins, node.id))
        raise Fallback(f"name {node.id}")

    def literal(self, node: ast.Constant) -> Value:
        """Return a constant of the text."""
        return self.constant(node.value)

    def member(self, node: ast.Attribute) -> Value:
        """Read an attribute of a module, an array or a number."""
        of = self.expression(node.value)
        if not isinstance(of, Known):
            return attribute(self, of, node.attr)
        if isinstance(of.value, ModuleType) and not hasattr(of.value, node.attr):
            return Known(importlib.import_module(f"{of.value.__name__}.{node.attr}"))
        if not hasattr(of.value, node.attr):
            raise Fallback(f"attribute {node.attr}")
        return Known(getattr(of.value, node.attr))

    def call(self, node: ast.Call) -> Value:
        """Call a function that compilation knows."""
        if node.keywords:
            raise Fallback("a call with keywords")
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("reshape", "view", "type"):
            owner = self.expression(node.func.value)
            if not isinstance(owner, Known):
                raise Fallback(f"method {node.func.attr}")
        function = self.expression(node.func)
        if not isinstance(function, Known):
            raise Fallback("a call of a value")
        args: list[Value] = []
        for a in node.args:
            if isinstance(a, ast.Starred):
                many = self.expression(a.value)
                if not isinstance(many, tuple):
                    raise Fallback("unpacking of no tuple")
                args.extend(many)
            else:
                args.append(self.expression(a))
        value = call(self, function.value, args)
        if len(args) == 1 and isinstance(args[0], Scalar) and args[0].dtype == U64:
            return self._word(value)
        return value

    def tuple(self, node: ast.Tuple) -> Value:
        """Return the values of a tuple."""
        return tuple(self.expression(x) for x in node.elts)

    # -- elements ----------------------------------------------------------------------------

    def subscript(self, node: ast.Subscript) -> Value:
        """Read an element or a part of an array, or an item of a tuple."""
        of = self.expression(node.value)
        if isinstance(of, Known) and isinstance(of.value, (tuple, np.ndarray)):
            items: tuple[Any, ...] = cast(Any, of).value
            of = tuple(self.constant(x) for x in items)
        if isinstance(node.slice, ast.Slice):
            return self._part(of, node.slice)
        index = self.scalar(node.slice)
        if isinstance(of, tuple):
            return self._item(of, index)
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if self.views and name:
            of = self.views.get((name, place_of(node)), of)
        address = self.address(of, index)
        assert isinstance(of, Array)
        found = self.found(name, of.dtype, address)
        return self._word(found) if index.literal is not None else found

    def _word(self, value: Value) -> Value:
        """Return a value; if it is a word of bits between loops, LLVM forgets where it came from.

        It is that of a key, made by a hundred sums. LLVM follows those into the loops that use the
        key, as if they made addresses (a first `randint`: 560 ms, and 70 so). Loops of numbers
        alone keep it: hidden words are no vectors (a walk of uniform numbers: 5 % longer).
        """
        if not isinstance(value, Scalar) or value.dtype != U32 or value.literal is not None:
            return value
        if not self.own or (self.loops and not holds_rows(self.loops[-1][2])):
            return value
        return replace(value, ir=self.new(f'call i32 asm "", "=r,0"(i32 {value.ir})'))

    def address(self, array: Value, index: Scalar) -> str:
        """Return the address of an element."""
        if not isinstance(array, Array):
            raise Fallback(f"an index of {type(array).__name__}")
        if index.dtype.kind not in "iu" or (index.literal is not None and index.literal < 0):
            raise Fallback("an index that is no position")
        return self.element(array, index)

    def _part(self, of: Value, node: ast.Slice) -> Value:
        if node.step is not None:
            raise Fallback("a slice with a step")
        low = self.scalar(node.lower) if node.lower else self.constant(0)
        if isinstance(of, tuple):
            high = self.scalar(node.upper).literal if node.upper else None
            return of[low.literal : high]
        if node.upper:
            high = self.cast(self.scalar(node.upper), I64).ir
        else:
            high = size_of(of)
        start = self.cast(low, I64).ir
        size = self.new(f"sub i64 {high}, {start}")
        if not isinstance(of, Array):
            raise Fallback("a slice of no array")
        return Array(of.dtype, self.element(of, low), size)

    def _item(self, items: tuple[Any, ...], index: Scalar) -> Value:
        if index.literal is not None:
            return items[index.literal]
        if not all(isinstance(x, Scalar) and x.dtype == items[0].dtype for x in items):
            raise Fallback("an item of a mixed tuple")
        dtype = items[0].dtype
        table = Array(dtype, self.place(f"[{len(items)} x {memory(dtype)}]"))
        before, self.access = self.access, ""  # all turns meet here
        for k, x in enumerate(items):
            self.store(x, self.element(table, self.constant(k)))
        found = self.load(dtype, self.element(table, index))
        self.access = before
        return found

    # -- operators ---------------------------------------------------------------------------

    def binary(self, node: ast.BinOp) -> Value:
        """Write an operation on two numbers."""
        return self.operate(type(node.op), self.scalar(node.left), self.scalar(node.right))

    def operate(self, op: type[ast.operator], a: Scalar, b: Scalar) -> Scalar:
        """Write an operation, in the type that Numba chooses."""
        if op in _BITS and a.dtype.kind == b.dtype.kind == "b":
            return Scalar(BOOL, self.new(f"{_BITS[op]} i1 {a.ir}, {b.ir}"))
        dtype = promoted(a.dtype, b.dtype)
        if op is ast.Div and dtype.kind in "iu":
            dtype = F64
        if op is ast.Pow:
            return self._power(a, b, dtype)
        a, b = self.cast(a, dtype), self.cast(b, dtype)
        if dtype.kind == "c":
            return self._complex_operate(op, a, b)
        if dtype.kind == "f":
            if op in _FLOATS:
                return Scalar(dtype, self.new(f"{_FLOATS[op]} {LLVM[dtype]} {a.ir}, {b.ir}"))
            if op is ast.Mod:
                return self._float_remainder(a, b)
            raise Fallback(f"{op.__name__} of floats")
        if dtype != I64:
            return self._integers(op, a, b)
        known = self.computed.get((op, a.ir, b.ir))
        if known is None:
            known = self._integers(op, a, b).ir
            self.computed[op, a.ir, b.ir] = known
        return Scalar(dtype, known)

    def _integers(self, op: type[ast.operator], a: Scalar, b: Scalar) -> Scalar:
        """Write an operation on two integers of one type."""
        dtype, kind = a.dtype, LLVM[a.dtype]
        if op in _INTEGERS:
            wrap = " nsw" if dtype.kind == "i" else ""
            return Scalar(dtype, self.new(f"{_INTEGERS[op]}{wrap} {kind} {a.ir}, {b.ir}"))
        if op in _BITS:
            return Scalar(dtype, self.new(f"{_BITS[op]} {kind} {a.ir}, {b.ir}"))
        if op in (ast.LShift, ast.RShift):
            name = "shl" if op is ast.LShift else "ashr" if dtype.kind == "i" else "lshr"
            return Scalar(dtype, self.new(f"{name} {kind} {a.ir}, {b.ir}"))
        if op in (ast.FloorDiv, ast.Mod):
            return self._divide(op, a, b)
        raise Fallback(f"{op.__name__} of integers")

    def _divide(self, op: type[ast.operator], a: Scalar, b: Scalar) -> Scalar:
        """Floor division and its remainder; where a processor would trap they are zero."""
        kind, by = LLVM[a.dtype], b.ir
        positive = b.ir in self.positive
        trap = None if positive or b.literal not in (None, 0, -1) else self._trap(a, b)
        if trap is not None:
            by = self.new(f"select i1 {trap}, {kind} 1, {kind} {b.ir}")
        if a.dtype.kind == "u":
            name = "udiv" if op is ast.FloorDiv else "urem"
            result = self.new(f"{name} {kind} {a.ir}, {by}")
        else:
            rest = self.new(f"srem {kind} {a.ir}, {by}")
            fix = self._is_off(kind, rest, by, positive=positive)
            if op is ast.FloorDiv:
                quotient = self.new(f"sdiv {kind} {a.ir}, {by}")
                lower = self.new(f"sext i1 {fix} to {kind}")
                result = self.new(f"add nsw {kind} {quotient}, {lower}")
            else:
                more = self.new(f"select i1 {fix}, {kind} {by}, {kind} 0")
                result = self.new(f"add nsw {kind} {rest}, {more}")
        if trap is not None:
            result = self.new(f"select i1 {trap}, {kind} 0, {kind} {result}")
        return Scalar(a.dtype, result)

    def _is_off(self, kind: str, rest: str, by: str, *, positive: bool) -> str:
        """Return whether a remainder has the other sign than what it was divided by."""
        if positive:
            return self.new(f"icmp slt {kind} {rest}, 0")
        negative = self.new(f"icmp slt {kind} {self.new(f'xor {kind} {rest}, {by}')}, 0")
        return self.new(f"and i1 {negative}, {self.new(f'icmp ne {kind} {rest}, 0')}")

    def _trap(self, a: Scalar, b: Scalar) -> str:
        """Return whether integers cannot be divided: by zero, or the least one by -1."""
        kind = LLVM[a.dtype]
        zero = self.new(f"icmp eq {kind} {b.ir}, 0")
        if a.dtype.kind == "u":
            return zero
        least = self.new(f"icmp eq {kind} {a.ir}, {np.iinfo(a.dtype).min}")
        minus = self.new(f"icmp eq {kind} {b.ir}, -1")
        return self.new(f"or i1 {zero}, {self.new(f'and i1 {least}, {minus}')}")

    def _float_remainder(self, a: Scalar, b: Scalar) -> Scalar:
        """Remainder with the sign of the divisor, as Python's."""
        kind = LLVM[a.dtype]
        zero = self.number(a.dtype, 0.0).ir
        rest = self.new(f"frem {kind} {a.ir}, {b.ir}")
        some = self.new(f"fcmp une {kind} {rest}, {zero}")
        below = self.new(f"fcmp olt {kind} {b.ir}, {zero}")
        negative = self.new(f"fcmp olt {kind} {rest}, {zero}")
        differ = self.new(f"xor i1 {below}, {negative}")
        moved = self.new(f"fadd {kind} {rest}, {b.ir}")
        turned = self.new(f"select i1 {differ}, {kind} {moved}, {kind} {rest}")
        minus = self.number(a.dtype, -0.0).ir
        nothing = self.new(f"select i1 {below}, {kind} {minus}, {kind} {zero}")
        return Scalar(a.dtype, self.new(f"select i1 {some}, {kind} {turned}, {kind} {nothing}"))

    def _power(self, a: Scalar, b: Scalar, dtype: DType) -> Scalar:
        if dtype.kind != "f" or a.dtype.kind != "f" or b.dtype.kind != "f":
            raise Fallback("power of integers")
        a, b, kind = self.cast(a, dtype), self.cast(b, dtype), LLVM[dtype]
        name = f"llvm.pow.f{8 * dtype.itemsize}"
        return Scalar(dtype, self.call_raw(name, kind, (a, b)))

    def _complex_operate(self, op: type[ast.operator], a: Scalar, b: Scalar) -> Scalar:
        p = LLVM[part(a.dtype)]

        def of(name: str, x: str, y: str) -> str:
            return self.new(f"{name} {p} {x}, {y}")

        if op in (ast.Add, ast.Sub):
            name = _FLOATS[op]
            return Scalar(a.dtype, tuple(of(name, *x) for x in zip(a.ir, b.ir, strict=True)))
        if op is ast.Mult:
            (ar, ai), (br, bi) = a.ir, b.ir
            ac, bd, ad, bc = (of("fmul", *x) for x in ((ar, br), (ai, bi), (ar, bi), (ai, br)))
            return Scalar(a.dtype, (of("fsub", ac, bd), of("fadd", ad, bc)))
        if op is ast.Div:
            value = call(self, library.quotient, [a, b])
            assert isinstance(value, Scalar)
            return value
        raise Fallback(f"{op.__name__} of complex numbers")

    def unary(self, node: ast.UnaryOp) -> Value:
        """Write an operation on one number."""
        if isinstance(node.op, ast.Not):
            return Scalar(BOOL, self.new(f"xor i1 {self.truth(node.operand)}, true"))
        x = self.scalar(node.operand)
        if not isinstance(node.op, ast.USub):
            raise Fallback(f"operator {type(node.op).__name__}")
        if x.literal is not None and x.dtype in (I64, F64):
            return self.number(x.dtype, -x.literal)
        return self.negative(x)

    def compare(self, node: ast.Compare) -> Value:
        """Write comparisons; a chain holds where each of them does."""
        operands = [self.scalar(x) for x in (node.left, *node.comparators)]
        tests = [
            self._compared(_SIGNS[type(op)], a, b)
            for op, a, b in zip(node.ops, operands, operands[1:], strict=False)
        ]
        total = tests[0]
        for test in tests[1:]:
            total = self.new(f"and i1 {total}, {test}")
        return Scalar(BOOL, total)

    def _compared(self, sign: str, a: Scalar, b: Scalar) -> str:
        kinds = {a.dtype.kind, b.dtype.kind}
        if a.dtype == b.dtype:  # Numba widens them first, to the same end in twice the registers
            dtype = a.dtype
        elif kinds == {"i", "u"}:
            if any(x.dtype == U64 for x in (a, b)) and not any(
                (x.literal or -1) >= 0 for x in (a, b)
            ):
                raise Fallback("comparison of signed and unsigned")
            dtype = U64 if any(x.dtype == U64 for x in (a, b)) else I64
        else:
            dtype = promoted(a.dtype, b.dtype)
        a, b = self.cast(a, dtype), self.cast(b, dtype)
        if dtype.kind != "c":
            return self.new(f"{comparison(sign, dtype)} {LLVM[dtype]} {a.ir}, {b.ir}")
        p = part(dtype)
        same = [
            self.new(f"{comparison(sign, p)} {LLVM[p]} {x}, {y}")
            for x, y in zip(a.ir, b.ir, strict=True)
        ]
        if sign not in ("==", "!="):
            raise Fallback("order of complex numbers")
        return self.new(f"{'and' if sign == '==' else 'or'} i1 {same[0]}, {same[1]}")

    def boolean(self, node: ast.BoolOp) -> Value:
        """Write ``and`` and ``or``; what must not run unless it decides runs in a branch."""
        both = isinstance(node.op, ast.And)
        value = self.truth(node.values[0])
        for operand in node.values[1:]:
            if is_pure(operand):
                name = "and" if both else "or"
                value = self.new(f"{name} i1 {value}, {self.truth(operand)}")
                continue
            known = Scalar(BOOL, "false" if both else "true")
            with self.apart() as lines:
                other = Scalar(BOOL, self.truth(operand))
            plain: tuple[list[str], Scalar] = [], known
            ways = ((lines, other), plain) if both else (plain, (lines, other))
            value = self.join(value, *ways).ir
        return Scalar(BOOL, value)

    def join(
        self, test: str, yes: tuple[list[str], Scalar], no: tuple[list[str], Scalar]
    ) -> Scalar:
        """Write two ways to a number, and a place where they meet."""
        dtype = yes[1].dtype
        kinds = [part(dtype)] * 2 if dtype.kind == "c" else [dtype]
        places = [self.place(LLVM[k]) for k in kinds]
        labels = self.label(), self.label()
        end = self.label()
        self.fork(test, *labels)
        for label, (lines, x) in zip(labels, (yes, no), strict=True):
            self.begin(label)
            self.lines.extend(lines)
            for at, k, ir in zip(
                places, kinds, x.ir if dtype.kind == "c" else (x.ir,), strict=True
            ):
                self.lines.append(f"store {LLVM[k]} {ir}, ptr {at}")
            self.go(end)
        self.begin(end)
        parts = [self.new(f"load {LLVM[k]}, ptr {at}") for at, k in zip(places, kinds, strict=True)]
        return Scalar(dtype, tuple(parts) if dtype.kind == "c" else parts[0])

    def conditional(self, node: ast.IfExp) -> Value:
        """Write a choice: of values where both may be computed, else of ways."""
        test = self.truth(node.test)
        if test in ("true", "false"):
            return self.expression(node.body if test == "true" else node.orelse)
        with self.apart() as one:
            a = self.expression(node.body)
        with self.apart() as two:
            b = self.expression(node.orelse)
        if isinstance(a, tuple) and isinstance(b, tuple):
            self.lines += one + two
            return tuple(
                self._select(test, self._number(x), self._number(y))
                for x, y in zip(a, b, strict=True)
            )
        a, b = self._number(a), self._number(b)
        dtype = unified(a.dtype, b.dtype)
        with self.apart() as end:
            a = self.cast(a, dtype)
        one += end
        with self.apart() as end:
            b = self.cast(b, dtype)
        two += end
        # What a branch decides LLVM knows about the values in it: where x is not above 0, the upper
        # bound in exp(x) is not tested (selu: 425 to 369 us). In sequential loops a choice is best,
        # and where there are no functions: LLVM moves into a branch what is read for it alone, and
        # makes no vectors of elements that lie apart then (an ocean model's fluxes of energy, of
        # 128 x 128 x 16: 2.1 and 1.6 ms, and 1.4 and 0.9).
        if not self.module.forks and is_pure(node.body) and is_pure(node.orelse):
            self.lines += one + two
            return self._select(test, a, b)
        return self.join(test, (one, a), (two, b))

    def _number(self, value: Value) -> Scalar:
        if isinstance(value, Known):
            return self.constant(value.value)
        if not isinstance(value, Scalar):
            raise Fallback("a choice of arrays")
        return value

    def _select(self, test: str, a: Scalar, b: Scalar) -> Scalar:
        dtype = unified(a.dtype, b.dtype)
        a, b = self.cast(a, dtype), self.cast(b, dtype)
        if dtype.kind == "c":
            p = LLVM[part(dtype)]
            pairs = zip(a.ir, b.ir, strict=True)
            return Scalar(
                dtype, tuple(self.new(f"select i1 {test}, {p} {x}, {p} {y}") for x, y in pairs)
            )
        kind = LLVM[dtype]
        return Scalar(dtype, self.new(f"select i1 {test}, {kind} {a.ir}, {kind} {b.ir}"))

    # -- ranges ------------------------------------------------------------------------------

    def range_of(self, node: ast.expr) -> builtins.tuple[str, str, str | None]:
        """Return where a range begins and ends, and its step if it is not one."""
        if not isinstance(node, ast.Call) or node.keywords:
            raise Fallback("a loop over no range")
        function = self.expression(node.func)
        if not isinstance(function, Known) or function.value is not range:
            raise Fallback("a loop over no range")
        args = [self.scalar(a) for a in node.args]
        if any(a.dtype.kind != "i" for a in args):
            raise Fallback("a range of no integers")
        ends = [self.cast(a, I64).ir for a in args]
        if len(ends) == 1:
            return "0", ends[0], None
        return ends[0], ends[1], ends[2] if len(ends) == 3 and ends[2] != "1" else None

    def stepped(self, start: str, stop: str, step: str) -> builtins.tuple[str, str, str, str]:
        """Return what counts the turns of a range with a step: their number is the new end."""
        up = self.new(f"icmp sgt i64 {step}, 0")
        forward, backward = (
            self.new(f"sub nsw i64 {b}, {a}") for a, b in ((start, stop), (stop, start))
        )
        size = self.new(f"select i1 {up}, i64 {step}, i64 {self.new(f'sub nsw i64 0, {step}')}")
        span = self.new(f"select i1 {up}, i64 {forward}, i64 {backward}")
        padded = self.new(f"add nsw i64 {span}, {self.new(f'sub nsw i64 {size}, 1')}")
        zero = self.new(f"icmp eq i64 {size}, 0")
        by = self.new(f"select i1 {zero}, i64 1, i64 {size}")
        turns = self.new(f"sdiv i64 {padded}, {by}")
        return start, turns, step, self.new(f"icmp sgt i64 {turns}, 0")


def size_of(array: Value) -> str:
    """Return how many elements an array has."""
    if not isinstance(array, Array) or array.size is None:
        raise Fallback("the size of an array")
    return array.size


def _called(body: Expressions, node: ast.Call) -> Value:
    """Write a call; a GPU's writer has its own way."""
    return body.call(node)


_RULES: dict[type[ast.expr], Any] = {
    ast.Name: Expressions.name,
    ast.Constant: Expressions.literal,
    ast.Attribute: Expressions.member,
    ast.Call: _called,
    ast.Tuple: Expressions.tuple,
    ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.compare,
    ast.BoolOp: Expressions.boolean,
    ast.IfExp: Expressions.conditional,
}
