"""The words of kernels on a GPU, as LLVM's instructions for one."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from fnarray_kernels import cumulative, grid
from fnarray_kernels import scalar as sc
from fnarray_kernels import vmath as vm
from fnarray_kernels._ir import LLVM
from fnarray_kernels.vmath.hyperbolic import tanh_near

from ..cpu.native.halves import narrowed, widened
from ..cpu.native.types import BOOL, I64, Array, Fallback, Known, Scalar, Value, part
from ..cpu.native.words import call, plain
from ..cpu.native.writer import Module, Writer, memory
from . import block

Rule = Callable[[Writer, list[Any]], Value]

#: Lanes that a block has at most, and what they show each other by.
LANES = 1024
SHOWN = "@shown"
#: Where a module notes how many lanes a block has, and what asks for that number where it has not.
WIDTH = "lanes of a block"
LANES_OF_BLOCK = "= call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()"


# --- who am I -----------------------------------------------------------------------------------


def _register(name: str) -> Rule:
    def rule(to: Writer, args: list[Any]) -> Value:
        x = to.external(f"llvm.nvvm.read.ptx.sreg.{name}.x", "i32", ())
        return Scalar(I64, to.new(f"zext i32 {x} to i64"))

    return rule


_block, _blocks = _register("ctaid"), _register("nctaid")
_lane, _lanes = _register("tid"), _register("ntid")


def _flat(block_of: Rule, lane_of: Rule | None) -> Rule:
    """Return the rule of a product of a number of blocks and one of lanes."""

    def rule(to: Writer, args: list[Any]) -> Value:
        blocks, lanes = block_of(to, []), _lanes(to, [])
        assert isinstance(blocks, Scalar)
        assert isinstance(lanes, Scalar)
        before = to.new(f"mul nuw nsw i64 {blocks.ir}, {lanes.ir}")
        if lane_of is None:
            return Scalar(I64, before)
        lane = lane_of(to, [])
        assert isinstance(lane, Scalar)
        return Scalar(I64, to.new(f"add nuw nsw i64 {before}, {lane.ir}"))

    return rule


# --- lanes of a block ---------------------------------------------------------------------------


def _sync(to: Writer, args: list[Any]) -> Value:
    to.external("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ("i32 0",))
    return Known(None)


def _text(function: Any) -> Rule:
    return lambda to, args: to.function(function, args)  # type: ignore[attr-defined]


def _words_of(to: Writer, x: Scalar) -> list[str]:
    """Return the bits of a number in 32-bit words."""
    if x.dtype.kind == "c":
        p = part(x.dtype)
        return [w for ir in x.ir for w in _words_of(to, Scalar(p, ir))]
    bits = _bits(to, x)
    width = 8 * x.dtype.itemsize
    if width == 32:
        return [bits]
    if width < 32:
        return [to.new(f"zext {'i1' if x.dtype == BOOL else f'i{width}'} {bits} to i32")]
    high = to.new(f"lshr i64 {bits}, 32")
    return [to.new(f"trunc i64 {w} to i32") for w in (bits, high)]


def _of_words(to: Writer, dtype: np.dtype, words: list[str]) -> Scalar:
    if dtype.kind == "c":
        p, half = part(dtype), len(words) // 2
        parts = (_of_words(to, p, w).ir for w in (words[:half], words[half:]))
        return Scalar(dtype, tuple(parts))
    width = 8 * dtype.itemsize
    if width < 32:
        kind = "i1" if dtype == BOOL else f"i{width}"
        return Scalar(dtype, to.new(f"trunc i32 {words[0]} to {kind}"))
    bits = words[0]
    if width == 64:
        low, high = (to.new(f"zext i32 {w} to i64") for w in words)
        bits = to.new(f"or i64 {low}, {to.new(f'shl i64 {high}, 32')}")
    if dtype.kind == "f":
        return Scalar(dtype, to.new(f"bitcast i{width} {bits} to {LLVM[dtype]}"))
    return Scalar(dtype, bits)


def _bits(to: Writer, x: Scalar) -> str:
    if x.dtype.kind != "f":
        return x.ir
    return to.new(f"bitcast {LLVM[x.dtype]} {x.ir} to i{8 * x.dtype.itemsize}")


def _from_warp(to: Writer, args: list[Any]) -> Value:
    x, distance = args
    by = to.new(f"trunc i64 {to.cast(distance, I64).ir} to i32")
    words = [
        to.external(
            "llvm.nvvm.shfl.sync.down.i32", "i32", ("i32 -1", f"i32 {w}", f"i32 {by}", "i32 31")
        )
        for w in _words_of(to, x)
    ]
    return _of_words(to, x.dtype, words)


def _address(to: Writer, dtype: np.dtype, place: Scalar) -> str:
    """Return the address in shared memory where a lane shows a number."""
    words = max(dtype.itemsize // 4, 1)
    _, most = to.module.functions.get(SHOWN, ("", 0))
    to.module.functions[SHOWN] = "", max(most, words)
    at = to.new(f"mul i64 {to.cast(place, I64).ir}, {words}")
    return to.new(f"getelementptr i32, ptr addrspace(3) {SHOWN}, i64 {at}")


def _show(to: Writer, args: list[Any]) -> Value:
    x, place = args
    address = _address(to, x.dtype, place)
    for k, word in enumerate(_words_of(to, x)):
        at = to.new(f"getelementptr i32, ptr addrspace(3) {address}, i64 {k}")
        to.lines.append(f"store i32 {word}, ptr addrspace(3) {at}")
    return Known(None)


def _shown(to: Writer, args: list[Any]) -> Value:
    like, place = args
    address = _address(to, like.dtype, place)
    words: list[str] = []
    for k in range(max(like.dtype.itemsize // 4, 1)):
        at = to.new(f"getelementptr i32, ptr addrspace(3) {address}, i64 {k}")
        words.append(to.new(f"load i32, ptr addrspace(3) {at}"))
    return _of_words(to, like.dtype, words)


def shared_memory(module: Module) -> list[str]:
    """Return the shared memory by which the lanes of a block show each other numbers.

    Sums of a block show one number for each warp; exchanges between lanes one for each lane.
    """
    if SHOWN not in module.functions:
        return []
    texts = {key[0] for key in module.functions if isinstance(key, tuple)}
    lanes = not texts.isdisjoint({block.TEXTS[grid.from_lane], block.TEXTS[grid.from_first]})
    size = module.functions[SHOWN][1] * (LANES if lanes else LANES // 32)
    return [f"{SHOWN} = internal addrspace(3) global [{size} x i32] undef"]


# --- memory -------------------------------------------------------------------------------------


def _part(to: Writer, args: list[Any]) -> Value:
    array, start, _ = args
    return Array(array.dtype, to.element(array, start))


def _array(to: Writer, args: list[Any]) -> Value:
    array, n = args
    return Array(array.dtype, array.ir, to.cast(n, I64).ir)


def _room(to: Writer, args: list[Any]) -> Value:
    """Return shared memory; a block that asks twice has two."""
    x, n = args
    size = n.value if isinstance(n, Known) else n.literal
    if type(size) is not int:
        raise Fallback("shared memory of a size that is no constant")
    name = f"@room{sum(t.startswith('@room') for t in to.module.texts)}"
    width, kind = (2, part(x.dtype)) if x.dtype.kind == "c" else (1, x.dtype)
    array = f"[{width * size} x {memory(kind)}]"
    to.module.texts.insert(0, f"{name} = internal addrspace(3) global {array} undef, align 16")
    return Array(x.dtype, to.new(f"addrspacecast ptr addrspace(3) {name} to ptr"))


def _share(to: Writer, args: list[Any]) -> Value:
    """Return a lane's turns; the block has as many lanes as the text says.

    A multiprocessor has half of its threads by default, so that it has others where some wait: 64
    registers each.
    """
    lanes, turns, *blocks = map(_known, args[1:])
    to.module.functions[WIDTH] = "", (lanes, *(blocks or [LANES // lanes]))
    return Known(turns)


def _known(x: Any) -> Any:
    return x.value if isinstance(x, Known) else x.literal


def _held(to: Writer, args: list[Any]) -> Value:
    x, turns = args[0], _known(args[3])  # the width, and what else `share` has, is told there
    size = turns * (2 if x.dtype.kind == "c" else 1)
    kind = part(x.dtype) if x.dtype.kind == "c" else x.dtype
    return Array(x.dtype, to.place(f"[{size} x {memory(kind)}]"))


def width(module: Module) -> tuple[int, int]:
    """Return a block's lanes, and blocks of a multiprocessor; zeros where the text does not say."""
    return module.functions.get(WIDTH, ("", (0, 0)))[1]


def _quad(dtype: np.dtype) -> tuple[str, int]:
    """Return the type of four neighbouring elements, and how they are aligned."""
    if dtype.kind == "c":
        return f"<8 x {LLVM[part(dtype)]}>", min(4 * dtype.itemsize, 16)
    return f"<4 x {memory(dtype)}>", min(4 * dtype.itemsize, 16)


def _four(to: Writer, args: list[Any]) -> Value:
    kind, _ = _quad(args[0].dtype)
    return Array(args[0].dtype, to.place(kind))


def _load4(to: Writer, args: list[Any]) -> Value:
    array, i = args
    kind, aligned = _quad(array.dtype)
    values = to.new(f"load {kind}, ptr {to.element(array, i)}, align {aligned}")
    room = to.place(kind)
    to.lines.append(f"store {kind} {values}, ptr {room}")
    return Array(array.dtype, room)


def _store4(to: Writer, args: list[Any]) -> Value:
    array, i, room = args
    kind, aligned = _quad(array.dtype)
    values = to.new(f"load {kind}, ptr {room.ir}")
    to.lines.append(f"store {kind} {values}, ptr {to.element(array, i)}, align {aligned}")
    return Known(None)


_ORDER = 'syncscope("device") monotonic'


def _atomic_add(to: Writer, args: list[Any]) -> Value:
    array, i, x = args
    x = to.cast(x, array.dtype)
    name = "fadd" if x.dtype.kind == "f" else "add"
    address = to.element(array, i)
    to.new(f"atomicrmw {name} ptr {address}, {LLVM[x.dtype]} {x.ir} {_ORDER}")
    return Known(None)


def _swap(to: Writer, args: list[Any]) -> Value:
    array, i, old, new = args
    width = 8 * array.dtype.itemsize
    if array.dtype.kind == "c" or width < 32:
        raise Fallback(f"an exchange of {array.dtype}")
    was, will = (_bits(to, to.cast(x, array.dtype)) for x in (old, new))
    kind, order = f"i{width}", f"{_ORDER} monotonic"
    both = to.new(f"cmpxchg ptr {to.element(array, i)}, {kind} {was}, {kind} {will} {order}")
    seen = to.new(f"extractvalue {{ {kind}, i1 }} {both}, 0")
    if array.dtype.kind == "f":
        seen = to.new(f"bitcast {kind} {seen} to {LLVM[array.dtype]}")
    return Scalar(array.dtype, seen)


def _same(to: Writer, args: list[Any]) -> Value:
    a, b = (_bits(to, x) for x in args)
    return Scalar(BOOL, to.new(f"icmp eq i{8 * args[0].dtype.itemsize} {a}, {b}"))


# --- halves ---------------------------------------------------------------------------------------


#: What a GPU has instructions for, as processors of the last years have: NaN may be another NaN.
HALVES: dict[Any, Rule] = {
    sc.f16_load: widened, sc.f16_store: narrowed("half"), sc.bf16_store: narrowed("bfloat"),
}  # fmt: skip


# --- functions with instructions of their own -----------------------------------------------------

_F32 = np.dtype(np.float32)


def _quotient(to: Writer, args: list[Any]) -> Value:
    """Divide: of float32 within 2 ULP, without the branch that the last bit takes."""
    a, b = (to.constant(x.value) if isinstance(x, Known) else x for x in args)
    if not (isinstance(a, Scalar) and isinstance(b, Scalar) and a.dtype == b.dtype == _F32):
        return plain(to, sc.div, args)
    return Scalar(_F32, to.call_raw("llvm.nvvm.div.full", "float", (a, b)))


def _tanh(to: Writer, args: list[Any]) -> Value:
    """Hyperbolic tangent, of float32 within 2.5 ULP: by the exponential of the hardware.

    Beyond 1 it is ``1 - 2 / (2 ** y + 1)``, where ``y`` is ``2 x log2(e)``: of the relative error
    of the power, 2**-22, and that of its argument's rounding, a fifth at most remains.
    """
    x = to.constant(args[0].value) if isinstance(args[0], Known) else args[0]
    if x.dtype != _F32:
        return plain(to, vm.tanh, [x])
    near = call(to, tanh_near, [x])
    assert isinstance(near, Scalar)
    size = Scalar(_F32, to.call_raw("llvm.fabs.f32", "float", (x,)))
    doubled = Scalar(_F32, to.new(f"fmul float {size.ir}, {_hex(2 / math.log(2))}"))
    power = to.call_raw("llvm.nvvm.ex2.approx.ftz.f", "float", (doubled,))
    under = Scalar(_F32, to.new(f"fadd float {power}, 1.0"))
    inverse = to.call_raw("llvm.nvvm.rcp.approx.ftz.f", "float", (under,))
    far = Scalar(_F32, to.new(f"fadd contract float 1.0, {_times_minus_two(to, inverse)}"))
    below = to.new(f"fcmp olt float {size.ir}, 1.0")
    found = Scalar(_F32, to.new(f"select i1 {below}, float {near.ir}, float {far.ir}"))
    return Scalar(_F32, to.call_raw("llvm.copysign.f32", "float", (found, x)))


def _times_minus_two(to: Writer, x: str) -> str:
    return to.new(f"fmul contract float {x}, -2.0")


def _hex(x: float) -> str:
    """Spell a number of float32 as LLVM's text has it."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', float(np.float32(x))))[0]:016X}"


#: What takes the place of exact words where products and sums are contracted (``cuda_fma``).
FAST: dict[Any, Rule] = {sc.div: _quotient, vm.tanh: _tanh}


# --- functions that are the C library's on the processor ----------------------------------------


def _ours(function: Any) -> Rule:
    """Return the rule of a function of floats that is `vmath`'s here."""

    def rule(to: Writer, args: list[Any]) -> Value:
        numbers = [to.constant(a.value) if isinstance(a, Known) else a for a in args]
        single = all(x.dtype == np.float32 for x in numbers)
        dtype = np.dtype(np.float32 if single else np.float64)
        given: list[Value] = [to.cast(x, dtype) for x in numbers]
        return call(to, function, given)

    return rule


def _magnitude(to: Writer, args: list[Any]) -> Value:
    (x,) = args
    if isinstance(x, Scalar) and x.dtype.kind == "c":
        parts: list[Value] = [Scalar(part(x.dtype), ir) for ir in x.ir]
        return call(to, vm.hypot, parts)
    x = to.constant(x.value) if isinstance(x, Known) else x
    if x.dtype.kind != "f":
        raise Fallback(f"abs of {x.dtype}")
    return Scalar(x.dtype, to.call_raw(f"llvm.fabs.f{8 * x.dtype.itemsize}", LLVM[x.dtype], (x,)))


WORDS: dict[Any, Rule] = {
    grid.block: _block, grid.blocks: _blocks, grid.lane: _lane, grid.lanes: _lanes,
    grid.thread: _flat(_block, _lane), grid.threads: _flat(_blocks, None),
    grid.sync: _sync, grid.part: _part, grid.array: _array, grid.room: _room, grid.four: _four,
    grid.share: _share, grid.held: _held,
    grid.load4: _load4, grid.store4: _store4, grid.atomic_add: _atomic_add,
    grid.swap: _swap, grid.same: _same,
    block.from_warp: _from_warp, block.show: _show, block.shown: _shown,
    **{word: _text(function) for word, function in block.TEXTS.items()},
    cumulative.cumsum_rows_float32: _text(cumulative.cumsum_float32),
    cumulative.cumsum_rows_complex64: _text(cumulative.cumsum_complex64),
    cumulative.cumsum_rows_double: _text(cumulative.cumsum_double),
    math.exp: _ours(vm.exp), math.log: _ours(vm.log), math.log1p: _ours(vm.log1p),
    math.expm1: _ours(vm.expm1), math.erf: _ours(vm.erf), math.erfc: _ours(vm.erfc),
    np.exp: _ours(vm.exp), np.log: _ours(vm.log), np.log1p: _ours(vm.log1p),
    np.expm1: _ours(vm.expm1), np.sin: _ours(vm.sin), np.cos: _ours(vm.cos),
    np.arctan2: _ours(vm.atan2), np.hypot: _ours(vm.hypot),
    math.lgamma: _text(block.lgamma), abs: _magnitude, np.abs: _magnitude, **HALVES,
}  # fmt: skip
