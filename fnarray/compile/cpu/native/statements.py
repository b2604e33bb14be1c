"""Statements of kernel text, and functions: a kernel's own and those that it calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from . import shared
from .expressions import Expressions, size_of
from .reader import Text, holds_loops, inside, read_function
from .turns import (
    SHORT,
    apart,
    at_once,
    is_heavy,
    is_seldom,
    is_vector,
    order_of,
    order_of_part,
    parted,
    parts,
    recurrent,
    row_width,
    rows_apart,
    swaps,
    tailed,
    uses,
)  # fmt: skip
from .types import (
    I64,
    LLVM,
    Array,
    DType,
    Fallback,
    Known,
    Scalar,
    Value,
    operands_of,
    part,
    result_type,
    shape_of,
    unified,
)  # fmt: skip
from .writer import Again, Innermost, Module

_Span = tuple[str, str, str | None]


class Statements(Expressions):
    """Writes statements."""

    def __init__(self, module: Module, text: Text):
        super().__init__(module, text)
        self.returns: Any = None
        self._left: set[str] = set()
        self._owned: list[str] = []
        self._depth = 0
        self._stay = 0
        self._innermost: list[Innermost | None] = []
        self._shared: tuple[Scalar, Scalar] | None = None

    def suite(self, statements: Sequence[ast.stmt]) -> bool:
        """Write statements; return whether control reaches their end."""
        return all(_STATEMENTS[type(s)](self, s) is not False for s in map(_known, statements))

    def inner(self, statements: Sequence[ast.stmt]) -> bool:
        """Write a suite that may run never or often."""
        self._depth += 1
        try:
            return self.suite(statements)
        finally:
            self._depth -= 1

    # -- assignments -------------------------------------------------------------------------

    def assign(self, node: ast.Assign) -> None:
        """Write an assignment, to each of its targets."""
        if self.folded(node):
            return
        value = self.expression(node.value)
        for target in node.targets:
            self.put(target, value)

    def put(self, target: ast.expr, value: Value) -> None:
        """Give a value to a target."""
        if isinstance(target, ast.Name):
            if target.id in self.text.slots:
                self.keep(target.id, value, anew=self._depth == 0)
                self.env.pop(target.id, None)
            else:
                self.env[target.id] = value
        elif isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise Fallback("unpacking of no tuple")
            for t, v in zip(target.elts, value, strict=True):
                self.put(t, v)
        elif isinstance(target, ast.Subscript):
            self._put_element(target, value)
        else:
            raise Fallback(f"assignment to {type(target).__name__}")

    def _put_element(self, target: ast.Subscript, value: Value) -> None:
        array = self.expression(target.value)
        if not isinstance(array, Array):
            raise Fallback("assignment into no array")
        if isinstance(target.slice, ast.Slice):
            if target.slice.lower or target.slice.upper or target.slice.step:
                raise Fallback("assignment to a part of an array")
            self._put_all(array, value)
            return
        if isinstance(value, Known):
            value = self.constant(value.value)
        if not isinstance(value, Scalar):
            raise Fallback("assignment of no number")
        value = self.held(ast.unparse(target.value), self.cast(value, array.dtype))
        self.store(value, self.address(array, self.scalar(target.slice)))

    def _put_all(self, array: Array, value: Value) -> None:
        """Fill an array with a number, or copy another into it."""
        if isinstance(value, Known):
            value = self.constant(value.value)
        head, body, end = self.label(), self.label(), self.label()
        counter = self.place("i64")
        self.lines.append(f"store i64 0, ptr {counter}")
        self.go(head)
        self.begin(head)
        i = Scalar(I64, self.new(f"load i64, ptr {counter}"))
        more = self.new(f"icmp slt i64 {i.ir}, {size_of(array)}")
        self.fork(more, body, end)
        self.begin(body)
        if isinstance(value, Array):
            x = self.load(value.dtype, self.element(value, i))
        elif isinstance(value, Scalar):
            x = value
        else:
            raise Fallback("assignment of a tuple")
        self.store(self.cast(x, array.dtype), self.element(array, i))
        following = self.new(f"add nuw nsw i64 {i.ir}, 1")
        self.lines.append(f"store i64 {following}, ptr {counter}")
        self.go(head)
        self.begin(end)

    def augment(self, node: ast.AugAssign) -> None:
        """Write an assignment that computes with the old value."""
        op = type(node.op)
        if isinstance(node.target, ast.Name):
            old = self.scalar(ast.Name(node.target.id, ast.Load()))
            self.put(node.target, self.operate(op, old, self.scalar(node.value)))
            return
        if not isinstance(node.target, ast.Subscript) or isinstance(node.target.slice, ast.Slice):
            raise Fallback("assignment with an operator")
        array = self.expression(node.target.value)
        if not isinstance(array, Array):
            raise Fallback("assignment into no array")
        address = self.address(array, self.scalar(node.target.slice))
        old = self.load(array.dtype, address)
        new = self.operate(op, old, self.scalar(node.value))
        self.store(self.cast(new, array.dtype), address)

    # -- control flow ------------------------------------------------------------------------

    def choose(self, node: ast.If) -> bool:
        """Write a branch."""
        test = self.truth(node.test)
        if test in ("true", "false"):
            return self.suite(node.body if test == "true" else node.orelse)
        yes, no, end = self.label(), self.label(), self.label()
        self.fork(test, yes, no)
        reached = False
        for label, suite in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            if self.inner(suite):
                self.go(end)
                reached = True
        if reached:
            self.begin(end)
        return reached

    def count(self, node: ast.For) -> None:
        """Write a loop over a range; over a tuple, its turns one by one."""
        if isinstance(node.iter, ast.Tuple):
            if any(isinstance(x, (ast.Break, ast.Continue)) for x in inside(node)):
                raise Fallback("a loop over a tuple that may end early")
            for item in node.iter.elts:
                self.put(node.target, self.expression(item))
                self.suite(node.body)
            return
        start, stop, step = self.range_of(node.iter)
        if not isinstance(node.target, ast.Name) or node.orelse:
            raise Fallback("a loop over more than a range")
        shared, self._shared = self._shared, None
        whole = start == "0" and step is None
        if shared is not None and whole:
            from .outlined import outlined  # which few kernels need

            if outlined(self, node, stop, *shared):
                return
        size = _size(start, stop) if step is None else None
        low, slots = int(start) if size else 0, self.text.slots
        several = parts(node, slots, self.module, size) if size and self.own else []
        if not several or (self.recurrent and not apart(node, slots, self.text.aliased)):
            self._loop(node, (start, stop, step), size)
            return
        for first, turns in several:
            span = (str(low + first), str(low + first + turns), None)
            self._loop(node, span, turns, width=turns)

    def _loop(self, node: ast.For, span: _Span, size: int | None, width: int = 0) -> None:
        """Write a loop, or that of a part whose vectors have up to so many numbers."""
        start, stop, step = span
        whole = start == "0" and step is None
        before, body, following, end = (self.label() for _ in range(4))
        if step is None:
            test = self.new(f"icmp slt i64 {start}, {stop}")
        else:
            start, stop, step, test = self.stepped(start, stop, step)
        entry = self.label()
        self.go(entry)
        self.begin(entry)
        self.fork(test, before, end)
        head, nests = len(self.lines), len(self._innermost)
        self.begin(before)
        if self.own and self.recurrent and size is None:
            self.view(node)
        self.go(body)
        self.begin(body)
        counter, after = self.fresh(), self.fresh()
        first = start if step is None else "0"
        self.lines.append(f"{counter} = phi i64 [ {first}, %{before} ], [ {after}, %{following} ]")
        at = counter
        if step is not None:
            at = self.new(f"add nsw i64 {self.new(f'mul nsw i64 {counter}, {step}')}, {start}")
        self.loops.append((following, end, node, size))
        self.positive.append(stop if whole else "")
        self._depth += 1
        self.put(node.target, Scalar(I64, at))
        before, order, few, group, plain = self._stay, "", 0, "", False
        if self.own and self.recurrent:
            order, few = self._recurrent(node, size, whole=whole, width=width)
        elif self.module.free:
            few = size if size and whole and not holds_loops(node) else 0
            order = "" if few else self.module.loop("scalar")  # `top_k`: 51 ms of LLVM, not 63
        elif self.own and swaps(node, self.text.slots, self.text.aliased):
            group = self._group()
        if self.suite(node.body):
            self.go(following)
        self.access, self.views, self.abreast = "", {}, not self.recurrent
        self._depth -= 1
        self.loops.pop()
        self.positive.pop()
        self.begin(following)
        self.lines.append(f"{after} = add nuw nsw i64 {counter}, 1")
        self.fork(self.new(f"icmp slt i64 {after}, {stop}"), body, end)
        if self.own and not self.recurrent:
            inside = self._stay > before
            order, plain = self._order(node, size, step, group, inside=inside, width=width)
        if self.own and len(self._innermost) == nests:
            rest = whole and not width and parted(node, self.text, self.module, size)
            nested = self._depth > 0
            loop = Innermost(
                head, len(self.lines), stop, end, nested, plain and whole, rest and nested
            )
            self._innermost.append(loop if loop.fits or loop.parted else None)
        if self.recurrent and not (order or few) and is_heavy(self.lines[head:]):
            order = self.module.loop("loop")
        self.lines[-1] += order
        self._join(head, few, end)
        self.begin(end)

    def _recurrent(
        self, node: ast.For, size: int | None, *, whole: bool, width: int
    ) -> tuple[str, int]:
        """Return what ends a recurrence's loop, from 0 if `whole`; its turns, if one vector."""
        if holds_loops(node):
            from .nests import nest_order  # which few kernels need

            return self.module.loop(nest_order(node, size, whole=whole)), 0
        slots = self.text.slots
        free = self.abreast = apart(node, slots, self.text.aliased)
        if whole and free and size is not None and at_once(node, size, self.module):
            return "", size
        long = size is not None and size > SHORT
        order = recurrent(node, slots, None if long else size) or ("loop" if long else None)
        order = order_of_part(node, width) if width else order
        if free and uses(node, self.module.sharing):
            order = "plain"
        elif free and long and tailed(node, size, self.module):
            order = "masked"
        if not (free or rows_apart(node, self.text)):
            return self.module.loop(order, width=width), 0
        return self.module.loop(order or "free", self._group(), width), 0

    def _group(self) -> str:
        """Put what is read and written from here on into a group, whose order does not matter."""
        # LLVM cannot know that what two variables stand for, in turn, are two arrays: it tests
        # whether they overlap before each loop, and has a second one for where they do; of more
        # than a few arrays it makes no vectors (an LSTM with what its gradient needs: 700 us, and
        # 105 so).
        group = self.module.say("distinct !{}", anew=True)
        self.access = f", !llvm.access.group {group}"
        return group

    def _join(self, head: int, few: int, end: str) -> None:
        """Write the loop whose lines begin at one as a vector of its few turns, if it can be."""
        if few:
            from .vectors import Unfit, once  # which few kernels need

            with suppress(Unfit):
                self.lines[head:] = once(self.module, self.lines[head:], few, end)

    def _order(
        self,
        node: ast.For,
        size: int | None,
        step: str | None,
        group: str,
        *,
        inside: bool,
        width: int,
    ) -> tuple[str, bool]:
        """Return what ends a loop (`inside`: around one that stays), and if it is one vector."""
        few = False
        if width:
            order = order_of_part(node, width)
        elif inside:  # written out around another loop, its vectors and its rest are, as often
            order = "loop"
        else:
            order = order_of(node, self.text.slots, self.module, size) if step is None else None
            few = step is None and is_vector(node, self.text.slots, self.module, size)
            if order is None and size is not None:
                around = (turns for *_, turns in self.loops)
                if size > SHORT or (not few and is_seldom(size, around, self.module)):
                    order = "loop"  # or LLVM writes out scalars: a maximum of 24 took 460 cycles
            if order in (None, "adds") and size is not None and self._depth:
                width = row_width(node, self.text.slots, self.module, size)
                order = "row" if width else order
        told = order is not None and order != "adds"
        self._stay += told or size is None or size >= self.module.lanes
        # What surrounds sums of rows needs LLVM's passes (logistic regression: 16 us, 19 without).
        alone = (not self._depth or self.module.long) and order in ("sums", "adds")
        given = order if told else None
        text = self.module.loop(given or "free", group, width) if given or group else ""
        return text, order == "plain" or alone or few

    def straighten(self) -> None:
        """Write innermost loops as vectors: all of them, or those that gain by it."""
        if any(self._innermost):
            from .strips import straightened  # which few kernels need

            straightened(self.module, self.lines, self._innermost, self.allocas)

    def repeat(self, node: ast.While) -> bool:
        """Write a loop with a test."""
        self._innermost.append(None)
        head, body, end = self.label(), self.label(), self.label()
        self.go(head)
        self.begin(head)
        test = self.truth(node.test)
        if test == "true":
            self.go(body)
        else:
            self.fork(test, body, end)
        self.begin(body)
        self.loops.append((head, end, node, None))
        if self.inner(node.body):
            self.go(head)
        self.loops.pop()
        if test == "true" and end not in self._left:
            return False
        self.begin(end)
        return True

    def leave(self, node: ast.Break) -> bool:
        """End the innermost loop."""
        self.go(self.loops[-1][1])
        self._left.add(self.loops[-1][1])
        return False

    def skip(self, node: ast.Continue) -> bool:
        """Begin the innermost loop's next turn."""
        self.go(self.loops[-1][0])
        return False

    def bare(self, node: ast.Expr) -> None:
        """Write a call whose result is not wanted; a docstring is nothing."""
        call = node.value
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "fk.threads.share":
            cores, most = (self.cast(self.scalar(x), I64) for x in call.args)
            self._shared = cores, most
        elif not isinstance(call, ast.Constant):
            self.expression(call)

    def knows(self, name: str) -> bool:
        """Whether a name stands for a value of the function, and not of the text's surroundings."""
        return name in self.env or name in self.slots

    # -- functions ---------------------------------------------------------------------------

    def allocate(self, count: Scalar, dtype: DType) -> Array:
        """Return a new array, which lives until the function returns."""
        if self._depth:
            raise Fallback("an array made in a loop")
        width = dtype.itemsize
        size = self.new(f"mul nsw i64 {count.ir}, {width}")
        pointer = self.external("malloc", "ptr", [f"i64 {size}"])
        self._owned.append(pointer)
        return Array(dtype, pointer, count.ir)

    def give(self, node: ast.Return) -> bool:
        """Return from the function."""
        value = None if node.value is None else self.expression(node.value)
        self.finish(value)
        return False

    def finish(self, value: Any) -> None:
        """Write the end of a function."""
        values = _parts(self, value)
        types = [x.dtype for x in values]
        self.single = not isinstance(value, tuple)
        if self.returns is None:
            self.returns = types
        elif self.returns != types:
            if len(types) != len(self.returns):
                raise Fallback("results of different kinds")
            both = [unified(a, b) for a, b in zip(types, self.returns, strict=True)]
            if both != self.returns:
                self.returns = both
                raise Again
            values = [self.cast(x, d) for x, d in zip(values, both, strict=True)]
        for pointer in self._owned:
            self.external("free", "void", [f"ptr {pointer}"])
        if not values:
            self.lines.append("ret void")
            return
        kind = result_type(self.returns)
        total = "poison"
        k = 0
        for x in values:
            for ir in x.ir if x.dtype.kind == "c" else (x.ir,):
                one = LLVM[part(x.dtype) if x.dtype.kind == "c" else x.dtype]
                total = self.new(f"insertvalue {kind} {total}, {one} {ir}, {k}")
                k += 1
        self.lines.append(f"ret {kind} {total}")

    def function(self, function: Callable[..., Any], args: list[Value]) -> Value:
        """Call a function of the kernels, which is written once for each kind of arguments."""
        args = [self.constant(a.value) if isinstance(a, Known) else a for a in args]
        alone = (self.own or self.module.free) and shared.is_alone(function, args, self._depth)
        key = function, alone and shared.compiled_for(function, args), tuple(map(shape_of, args))
        if key not in self.module.functions:
            write = partial(shared.alone, define) if alone else define
            self.module.functions[key] = write(self.module, function, args)
        name, (returns, single) = self.module.functions[key]
        operands = [x for a in args for x in operands_of(a)]
        kind = result_type(returns)
        text = f"call {kind} @{name}({', '.join(operands)})"
        if not returns:
            self.lines.append(text)
            return Known(None)
        total = self.new(text)
        values: list[Scalar] = []
        k = 0
        for dtype in returns:
            irs: list[str] = []
            for _ in range(2 if dtype.kind == "c" else 1):
                irs.append(self.new(f"extractvalue {kind} {total}, {k}"))
                k += 1
            values.append(Scalar(dtype, tuple(irs) if dtype.kind == "c" else irs[0]))
        return values[0] if single else tuple(values)


def settled(name: str, begin: Callable[[], tuple[Statements, Sequence[Value]]]) -> Statements:
    """Return a function's body, written anew until the types of its variables are known.

    Parameters
    ----------
    name : str
    begin : callable
        Returns an empty body, and the values of the function's parameters.

    Raises
    ------
    Fallback
        The types do not settle, or the text holds something that is left to Numba.
    """
    kinds: dict[str, DType] = {}
    returns: Any = None
    for _ in range(8):
        body, values = begin()
        body.kinds = kinds
        body.returns = returns or body.returns
        try:
            bind(body, values)
            if body.suite(body.text.body):
                body.finish(None)
        except Again:
            kinds, returns = body.kinds, body.returns
            continue
        return body
    raise Fallback(f"types of {name}")


def define(module: Module, function: Callable[..., Any], args: list[Any]) -> tuple[str, Any]:
    """Write a function for arguments of some kinds; return its name and what it returns."""
    text = read_function(function)
    params: list[str] = []

    def begin() -> tuple[Statements, list[Any]]:
        body = Statements(module, text)
        params.clear()
        return body, [_param(body, a, params) for a in args]

    body = settled(text.name, begin)
    name = f"{text.name}.{len(module.functions)}.{len(module.texts)}"
    kind = result_type(body.returns)
    module.texts.append(
        f"define internal {kind} @{name}({', '.join(params)}) #0 {{\nentry:\n"
        + "\n".join([*body.allocas, *body.lines])
        + "\n}"
    )
    return name, (body.returns, body.single)


def bind(body: Statements, values: Sequence[Value]) -> None:
    """Give a function's parameters their values."""
    text = body.text
    count = len(text.params)
    if len(values) < count or (len(values) > count and text.rest is None):
        raise Fallback(f"arguments of {text.name}")
    named = list(zip(text.params, values, strict=False))
    if text.rest is not None:
        named.append((text.rest, tuple(values[count:])))
    for name, value in named:
        if name in text.slots:
            body.keep(name, value, anew=True)
        else:
            body.env[name] = value


def _param(body: Statements, like: Any, params: list[str]) -> Value:
    def new(kind: str) -> str:
        name = body.fresh()
        params.append(f"{kind} {name}")
        return name

    if isinstance(like, tuple):
        return tuple(_param(body, x, params) for x in cast(tuple[Any, ...], like))
    if isinstance(like, Array):
        return Array(like.dtype, new("ptr"), new("i64") if like.size is not None else None)
    if like.dtype.kind == "c":
        p = LLVM[part(like.dtype)]
        return Scalar(like.dtype, (new(p), new(p)))
    return Scalar(like.dtype, new(LLVM[like.dtype]))


def _parts(body: Statements, value: Any) -> list[Scalar]:
    if value is None or (isinstance(value, Known) and value.value is None):
        return []
    items = cast(tuple[Any, ...], value) if isinstance(value, tuple) else (value,)
    out: list[Any] = [body.constant(x.value) if isinstance(x, Known) else x for x in items]
    if not all(isinstance(x, Scalar) for x in out):
        raise Fallback("a function that returns an array")
    return out


def _size(start: str, stop: str) -> int | None:
    return int(stop) - int(start) if stop.isdigit() and start.isdigit() else None


def _known(statement: ast.stmt) -> ast.stmt:
    if type(statement) not in _STATEMENTS:
        raise Fallback(f"syntax {type(statement).__name__}")
    return statement


def _nothing(body: Statements, node: ast.Pass) -> None:
    """Write nothing."""


def _counted(body: Statements, node: ast.For) -> None:
    """Write a loop; a GPU's writer has its own way."""
    body.count(node)


_STATEMENTS: dict[type[ast.stmt], Any] = {
    ast.Assign: Statements.assign,
    ast.AugAssign: Statements.augment,
    ast.If: Statements.choose,
    ast.For: _counted,
    ast.While: Statements.repeat,
    ast.Break: Statements.leave,
    ast.Continue: Statements.skip,
    ast.Return: Statements.give,
    ast.Expr: Statements.bare,
    ast.Pass: _nothing,
}
