"""Least and largest of floats, found among integers that are in the order of the numbers.

``llvm.maximum`` takes six instructions, nine cycles of which wait for the fold so far: a row of 24
took 460 cycles. Of integers it is one instruction and one cycle, and LLVM finds the vectors. So
what a loop folds by a maximum or minimum is kept as an integer, its *rank*: its bits, all others
of which are turned around where the sign is set. NaN is first made the largest or the least of all;
zeros keep their order.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final, cast

import numpy as np

from .expressions import Expressions
from .reader import Text, folding
from .types import F32, F64, LLVM, Array, DType, Scalar, Value
from .writer import Module

#: What folds ranks, and the bits of the NaN that outdoes all others.
_FOLDS: Final = {
    "maximum": ("smax", {F32: 0x7FC00000, F64: 0x7FF8 << 48}),
    "minimum": ("smin", {F32: -0x400000, F64: -(1 << 51)}),
}
_RANKS: Final = {F32: np.dtype(np.int32), F64: np.dtype(np.int64)}


class Ranks(Expressions):
    """Writes what is folded by a maximum or minimum.

    Attributes
    ----------
    ranked : bool
        Whether such folds are kept as ranks.
    """

    ranked = True

    def __init__(self, module: Module, text: Text):
        super().__init__(module, text)
        self._words: Mapping[str, str] = text.ranks if self.ranked else {}

    def folded(self, node: ast.Assign) -> bool:
        """Write a fold into a rank; return False if it is none."""
        name, word = folding(node) or ("", "")
        if name not in self._words:
            return False
        (target,), call = node.targets, cast(ast.Call, node.value)
        array = self.expression(target.value) if isinstance(target, ast.Subscript) else None
        dtype = cast(Array, array or self.slots[name][0]).dtype
        if dtype not in _RANKS:
            return False
        x = self.scalar(call.args[1])
        if x.dtype != dtype:
            return False
        new, kind = self._rank_of(x, word), LLVM[_RANKS[dtype]]
        if isinstance(target, ast.Subscript):
            address, access = (
                self.address(cast(Array, array), self.scalar(target.slice)),
                self.access,
            )
        else:
            address, access = self.slots[name][1][0], ""
        old = self.new(f"load {kind}, ptr {address}{access}")
        function = f"llvm.{_FOLDS[word][0]}.{kind}"
        both = self.external(function, kind, [f"{kind} {old}", f"{kind} {new.ir}"])
        self.lines.append(f"store {kind} {both}, ptr {address}{access}")
        return True

    # -- what is kept ------------------------------------------------------------------------

    def held(self, name: str, value: Scalar) -> Scalar:
        """Return a number, or its rank, as a variable or array holds it."""
        word = self._words.get(name)
        return value if word is None or value.dtype not in _RANKS else self._rank_of(value, word)

    def recall(self, name: str) -> Value:
        """Read a variable that is kept in memory."""
        kept = self.slots[name][0]
        if name not in self._words or kept.dtype not in _RANKS:
            return super().recall(name)
        rank = LLVM[_RANKS[kept.dtype]]
        return self._number_of(self.new(f"load {rank}, ptr {self.slots[name][1][0]}"), kept.dtype)

    def found(self, name: str, dtype: DType, address: str) -> Scalar:
        """Read a number, or that of a rank, from an array."""
        if name not in self._words or dtype not in _RANKS:
            return super().found(name, dtype, address)
        return self._number_of(self.load(_RANKS[dtype], address).ir, dtype)

    # -- numbers and ranks -------------------------------------------------------------------

    def _rank_of(self, x: Scalar, word: str) -> Scalar:
        real, kind = LLVM[x.dtype], LLVM[_RANKS[x.dtype]]
        bits = self.new(f"bitcast {real} {x.ir} to {kind}")
        none = self.new(f"fcmp uno {real} {x.ir}, 0.0")
        nan = _FOLDS[word][1][x.dtype]
        own = self.new(f"select i1 {none}, {kind} {nan}, {kind} {bits}")
        return Scalar(_RANKS[x.dtype], self._turned(own, kind))

    def _number_of(self, rank: str, dtype: DType) -> Scalar:
        kind = LLVM[_RANKS[dtype]]
        return Scalar(
            dtype, self.new(f"bitcast {kind} {self._turned(rank, kind)} to {LLVM[dtype]}")
        )

    def _turned(self, bits: str, kind: str) -> str:
        """Turn all bits of negative numbers around but the sign; or back."""
        sign = self.new(f"ashr {kind} {bits}, {int(kind[1:]) - 1}")
        return self.new(f"xor {kind} {bits}, {self.new(f'lshr {kind} {sign}, 1')}")
