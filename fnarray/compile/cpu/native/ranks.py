"""Least and largest of floats, found among integers that are in the order of the numbers.

``llvm.maximum`` takes six instructions, nine cycles of which wait for the fold so far: a row of 24
took 460 cycles. Of integers it is one instruction and one cycle, and LLVM finds the vectors. So
what a loop folds by a maximum or minimum is kept as an integer, its *rank*: its bits, all others
of which are turned around where the sign is set. NaN is first made the largest or the least of all;
zeros keep their order.

So is what is folded from turn to turn and read in each, a running maximum: a turn waits for one
integer, and the numbers are made beside that (100,000 of them 404 us, and 144).
"""

from __future__ import annotations

import ast
from typing import Any, Final, cast

import numpy as np

from .reader import choice, folding
from .types import F32, F64, LLVM, Array, DType, Scalar

#: The function that is written, whose file imports this one where it is needed.
Writer = Expressions = Any

#: What folds ranks, and the bits of the NaN that outdoes all others.
_FOLDS: Final = {
    "maximum": ("smax", {F32: 0x7FC00000, F64: 0x7FF8 << 48}),
    "minimum": ("smin", {F32: -0x400000, F64: -(1 << 51)}),
}
_RANKS: Final = {F32: np.dtype(np.int32), F64: np.dtype(np.int64)}


def folded(to: Expressions, node: ast.Assign) -> bool:
    """Write a fold into a rank; return False if it is none."""
    name, word = folding(node, to.text.globals) or ("", "")
    if name not in to.ranks:
        return _ran(to, node)
    (target,), call = node.targets, cast(ast.Call, node.value)
    array = to.expression(target.value) if isinstance(target, ast.Subscript) else None
    dtype = cast(Array, array or to.slots[name][0]).dtype
    if dtype not in _RANKS:
        return False
    x = to.scalar(call.args[1])
    if x.dtype != dtype:
        return False
    new, kind = _rank_of(to, x, word), LLVM[_RANKS[dtype]]
    if isinstance(target, ast.Subscript):
        index = to.scalar(target.slice)
        address, access = to.address(cast(Array, array), index), to.access
    else:
        address, access = to.slots[name][1][0], ""
    old = to.new(f"load {kind}, ptr {address}{access}")
    to.lines.append(f"store {kind} {_either(to, old, new, word)}, ptr {address}{access}")
    return True


def _ran(to: Expressions, node: ast.Assign) -> bool:
    """Write what a variable that is a rank will be; return False if it is something else.

    The number is made of the rank, which is what the variable takes later (`held`): no turn waits
    for the number.
    """
    (target,) = node.targets
    word = to.ranks.get(target.id) if isinstance(target, ast.Name) else None
    if word is None or choice(node.value, to.text.globals) != word:
        return False
    args = cast(ast.Call, node.value).args
    own = next((x for x in args if isinstance(x, ast.Name) and to.ranks.get(x.id) == word), None)
    held = to.slots.get(own.id) if own is not None else None
    if held is None or held[0].dtype not in _RANKS:
        return False
    (other,) = (x for x in args if x is not own)
    dtype = held[0].dtype
    x = to.scalar(other)
    if x.dtype != dtype:
        return False
    old = to.new(f"load {LLVM[_RANKS[dtype]]}, ptr {held[1][0]}")
    rank = _either(to, old, _rank_of(to, x, word), word)
    number = _number_of(to, rank, dtype)
    to.known_ranks[number.ir] = rank
    to.env[cast(ast.Name, target).id] = number
    return True


def _either(to: Writer, old: str, new: Scalar, word: str) -> str:
    kind = LLVM[new.dtype]
    operands = [f"{kind} {old}", f"{kind} {new.ir}"]
    return to.external(f"llvm.{_FOLDS[word][0]}.{kind}", kind, operands)


def held(to: Writer, name: str, value: Scalar) -> Scalar:
    """Return what a variable or array holds of a number: its rank, if it has one."""
    return _rank_of(to, value, to.ranks[name]) if value.dtype in _RANKS else value


def found(to: Writer, dtype: DType, address: str) -> Scalar:
    """Read the number of a rank in an array."""
    if dtype not in _RANKS:
        return to.load(dtype, address)
    return _number_of(to, to.load(_RANKS[dtype], address).ir, dtype)


def recalled(to: Writer, dtype: DType, place: str) -> Scalar:
    """Read the number of a rank that is a variable."""
    if dtype not in _RANKS:
        return Scalar(dtype, to.new(f"load {LLVM[dtype]}, ptr {place}"))
    return _number_of(to, to.new(f"load {LLVM[_RANKS[dtype]]}, ptr {place}"), dtype)


def _rank_of(to: Writer, x: Scalar, word: str) -> Scalar:
    if (known := to.known_ranks.get(x.ir)) is not None:
        return Scalar(_RANKS[x.dtype], known)
    real, kind = LLVM[x.dtype], LLVM[_RANKS[x.dtype]]
    bits = to.new(f"bitcast {real} {x.ir} to {kind}")
    none = to.new(f"fcmp uno {real} {x.ir}, 0.0")
    nan = _FOLDS[word][1][x.dtype]
    own = to.new(f"select i1 {none}, {kind} {nan}, {kind} {bits}")
    return Scalar(_RANKS[x.dtype], _turned(to, own, kind))


def _number_of(to: Writer, rank: str, dtype: DType) -> Scalar:
    kind = LLVM[_RANKS[dtype]]
    return Scalar(dtype, to.new(f"bitcast {kind} {_turned(to, rank, kind)} to {LLVM[dtype]}"))


def _turned(to: Writer, bits: str, kind: str) -> str:
    """Turn all bits of negative numbers around but the sign; or back."""
    sign = to.new(f"ashr {kind} {bits}, {int(kind[1:]) - 1}")
    return to.new(f"xor {kind} {bits}, {to.new(f'lshr {kind} {sign}, 1')}")
