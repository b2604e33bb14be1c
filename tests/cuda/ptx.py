"""PTX, run by NumPy: all lanes of a grid at once, as a GPU runs what `lower` made.

Nothing before this step is left out: what is run is the text that a driver is given. Lanes that
part meet again where their ways do; barriers and exchanges between lanes wait for all they name.
Beside results, it watches what a GPU would punish: addresses out of bounds or off their alignment,
memory that two lanes touch without a barrier in between, a read by way of the cache for constants
of what the kernel itself writes, a barrier that some lanes of a block never reach.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fnarray.compile.cpu.halves import words
from fnarray.compile.cpu.namespace import CODES
from fnarray.compile.cuda import build
from fnarray.compile.cuda.processor import ONE_THREAD
from fnarray.compile.emit.source import KernelSource
from fnarray.compile.target import one_by_one

from .ptx_memory import Fault, Memory
from .ptx_operations import COMPARISONS, OPERATIONS, dtype_of

#: Where memory begins that all threads share; and threads that run at once.
GLOBAL, TOGETHER = 1 << 40, 1 << 15
WARP = 32
_MANY = 1 << 30

_STATEMENT = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.:]*)\s*(.*)")
_DECLARED = re.compile(
    r"\.(shared|local|global) \.align \d+ \.b(\d+)\s+([\w$]+)\[(\d+)\](?: = (.*))?"
)
_ADDRESS = re.compile(r"\[([\w$%]+)(?:\+(-?\d+))?\]")


class Kernel:
    """A kernel of PTX.

    Parameters
    ----------
    text : str
    signature : tuple of str
        Codes of the arguments.
    """

    def __init__(self, text: str, signature: tuple[str, ...]):
        self.signature = signature
        self.labels: dict[str, int] = {}
        self.code: list[tuple[str, str, str, list[str]]] = []
        self.shared, self.local, self.tables = {}, {}, {}
        self.sizes = {"shared": 0, "local": 0, "global": 0}
        self.filled: list[tuple[int, bytes]] = []
        body = False
        for line in map(str.strip, text.splitlines()):
            if found := _DECLARED.match(line):
                self._declare(*found.groups())
            elif line.startswith("{") and not body:
                body = True
            elif line.startswith("$") and line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif body and (found := _STATEMENT.match(line.removesuffix(";"))):
                no, guard, name, rest = found.groups()
                operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)
                self.code.append((no or "", guard or "", name, operands))

    def _declare(self, space: str, width: str, name: str, count: str, values: str | None) -> None:
        size = int(count) * int(width) // 8
        at = -(-self.sizes[space] // 64) * 64
        {"shared": self.shared, "local": self.local, "global": self.tables}[space][name] = at
        self.sizes[space] = at + size
        if values is not None:
            numbers = [int(x, 0) for x in re.findall(r"-?\w+", values)]
            whole = b"".join(
                (x % (1 << int(width))).to_bytes(int(width) // 8, "little") for x in numbers
            )
            self.filled.append((at, whole))

    def run(self, blocks: int, lanes: int, *args: Any) -> None:
        """Run it on a grid.

        Raises
        ------
        Fault
            A GPU would not have run it, or not always in the same way.
        """
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        starts, places, size = [], {}, self.sizes["global"]
        for a in sorted(arrays, key=lambda a: a.ctypes.data):
            begin, end = a.ctypes.data, a.ctypes.data + a.nbytes
            if starts and begin < starts[-1][1]:
                first, _, at = starts[-1]
                starts[-1] = first, max(end, starts[-1][1]), at
                size = max(size, at + end - first)
            else:
                at = -(-size // 256) * 256 + 256
                starts.append((begin, end, at))
                size = at + a.nbytes
            places[id(a)] = at + begin - starts[-1][0]
        memory = Memory(size + 256)
        for at, whole in self.filled:
            memory.bytes[at : at + len(whole)] = np.frombuffer(whole, np.uint8)
            memory.open[at : at + len(whole)] = True
        for a in arrays:
            at = places[id(a)]
            memory.bytes[at : at + a.nbytes] = a.reshape(-1).view(np.uint8)
            memory.open[at : at + a.nbytes] = True
        given = [
            GLOBAL + places[id(a)] if isinstance(a, np.ndarray) else _bits(a, code)
            for a, code in zip(args, self.signature, strict=True)
        ]
        chunk = max(TOGETHER // lanes, 1)
        for first in range(0, blocks, chunk):
            _Grid(self, memory, first, min(chunk, blocks - first), blocks, lanes, given).run()
        for a in arrays:
            at = places[id(a)]
            a.reshape(-1).view(np.uint8)[...] = memory.bytes[at : at + a.nbytes]


def _bits(value: Any, code: str) -> int:
    if code == "f32":
        return struct.unpack("I", struct.pack("f", value))[0]
    if code == "f64":
        return struct.unpack("Q", struct.pack("d", value))[0]
    return int(value)


class _Grid:
    """Blocks that run at once."""

    def __init__(
        self,
        kernel: Kernel,
        memory: Memory,
        first: int,
        here: int,
        blocks: int,
        lanes: int,
        given: list[int],
    ):
        self.kernel, self.memory, self.given = kernel, memory, given
        self.lanes, self.count = lanes, here * lanes
        self.threads = np.arange(self.count)
        self.block = self.threads // lanes
        self.number = self.threads + first * lanes + 1  # of all threads of the grid, from 1
        self.special = {
            "%tid.x": self.threads % lanes,
            "%ntid.x": np.full(self.count, lanes),
            "%ctaid.x": self.block + first,
            "%nctaid.x": np.full(self.count, blocks),
        }
        self.shared = Memory(here * (kernel.sizes["shared"] + 64))
        self.local = Memory(self.count * (kernel.sizes["local"] + 64))
        self.shared.open[:] = self.local.open[:] = True
        self.pitch = {k: -(-(kernel.sizes[k] + 1) // 64) * 64 for k in ("shared", "local")}
        self.epoch = np.zeros(here, np.int64)
        self.registers: dict[str, np.ndarray] = {}
        self.pc = np.zeros(self.count, np.int64)
        self.state = np.zeros(self.count, np.int8)  # 1 waits for a block, 2 for a warp, 3 is done
        self.steps = [self._step(*code) for code in kernel.code]
        self.heads = set(kernel.labels.values())

    # -- running -----------------------------------------------------------------------------

    def run(self) -> None:
        """Run until all threads are done."""
        with np.errstate(all="ignore"):
            while (self.state != 3).any():
                going = np.flatnonzero(self.state == 0)
                if len(going):
                    pcs = self.pc[going]
                    pc = int(pcs.min())
                    self._straight(pc, going[pcs == pc])
                else:
                    self._release()

    def _straight(self, pc: int, here: np.ndarray) -> None:
        while True:
            _, guard, name, _ = self.kernel.code[pc]
            step = self.steps[pc]
            if name.startswith("bra"):
                taken = self._guarded(pc, here)
                self.pc[here] = pc + 1
                self.pc[taken] = step
                return
            if name == "ret":
                taken = self._guarded(pc, here)
                self.pc[here] = pc + 1
                self.state[taken] = 3
                return
            if name.startswith(("bar.", "shfl")):
                if guard:
                    raise Fault(f"{name} for some lanes alone")
                self.pc[here] = pc
                self.state[here] = 1 if name.startswith("bar.") else 2
                return
            step(self._guarded(pc, here) if guard else here)
            pc += 1
            if pc in self.heads:
                self.pc[here] = pc
                return

    def _guarded(self, pc: int, here: np.ndarray) -> np.ndarray:
        no, guard, _, _ = self.kernel.code[pc]
        if not guard:
            return here
        test = self.registers[guard][here]
        return here[~test if no else test]

    def _release(self) -> None:
        """Let those go on of whom all have come."""
        went = False
        for which, size in ((2, WARP), (1, self.lanes)):
            waiting = np.flatnonzero(self.state == which)
            groups = (
                waiting // size
                if which == 1
                else self.block[waiting] * 64 + (waiting % self.lanes // WARP)
            )
            for group in np.unique(groups):
                mine = waiting[groups == group]
                pc = int(self.pc[mine[0]])
                if len(mine) < size or (self.pc[mine] != pc).any():
                    continue
                if which == 2:
                    self.steps[pc](mine)
                else:
                    self.epoch[self.block[mine[0]]] += 1
                self.pc[mine] = pc + 1
                self.state[mine] = 0
                went = True
        if not went:
            at = {self.kernel.code[int(p)][2] for p in self.pc[self.state != 3]}
            raise Fault(f"lanes wait for others that never come: {at}")

    # -- operands ----------------------------------------------------------------------------

    def _register(self, name: str) -> np.ndarray:
        if name not in self.registers:
            kind = re.sub(r"\d", "", name)
            dtype = {"%p": bool, "%rs": "u2", "%r": "u4"}.get(kind, "u8")
            self.registers[name] = np.zeros(self.count, dtype)
        return self.registers[name]

    def _source(self, text: str, dtype: np.dtype) -> Callable[[np.ndarray], Any]:
        """Return what reads an operand, as numbers of a type."""
        if text in self.special:
            numbers = self.special[text].astype(dtype)
            return lambda m: numbers[m]
        if text.startswith("%"):
            register = self._register(text)
            if register.dtype.itemsize == dtype.itemsize:
                seen = register.view(dtype)
                return lambda m: seen[m]
            plain = np.dtype(f"u{dtype.itemsize}")
            return lambda m: register[m].astype(plain).view(dtype)
        if re.match(r"0[fd][0-9A-F]{8}", text):
            number = np.frombuffer(bytes.fromhex(text[2:])[::-1], dtype)[0]
        else:
            bits = self._number(text) % (1 << 8 * dtype.itemsize)
            number = np.array(bits, f"u{dtype.itemsize}").astype(dtype)[()]
            if dtype.kind != "b":
                number = np.array(bits, f"u{dtype.itemsize}").view(dtype)[()]
        return lambda m: np.full(len(m), number, dtype)

    def _number(self, text: str) -> int:
        kernel = self.kernel
        for names, base in ((kernel.shared, 0), (kernel.local, 0), (kernel.tables, GLOBAL)):
            if text in names:
                return base + names[text]
        return int(text.removesuffix("U"), 0)

    def _target(self, name: str, signed: bool = False) -> Callable[[np.ndarray, Any], None]:
        """Return what writes a register; narrower numbers are extended."""
        if name == "_":
            return lambda m, x: None
        register = self._register(name)

        def put(m: np.ndarray, x: Any) -> None:
            if x.dtype == bool and register.dtype == bool:
                register[m] = x
            elif x.dtype.kind in "fV":
                register[m] = x.view(f"u{x.dtype.itemsize}")
            else:
                register[m] = x.astype(f"i{register.itemsize}" if signed else register.dtype).view(
                    register.dtype
                )

        return put

    # -- instructions ------------------------------------------------------------------------

    def _step(self, no: str, guard: str, name: str, operands: list[str]) -> Any:
        if guard:
            self._register(guard)
        base, _, rest = name.partition(".")
        parts = rest.split(".") if rest else []
        if base == "bra":
            return self.kernel.labels[operands[0]]
        if base in ("ret", "bar"):
            return None
        if base in ("ld", "st"):
            return self._access(base, parts, operands)
        if base in ("atom", "red"):
            return self._atomic(parts, operands)
        if base == "shfl":
            return self._exchange(operands)
        if base == "cvta":
            parts = ["u64"]
            base = "mov"
        if base == "mov" and "{" in "".join(operands):
            return self._packed(dtype_of(parts[-1]), operands)
        if base == "cvt":
            return self._convert(parts, operands)
        if base == "setp" or base == "testp":
            return self._test(base, parts, operands)
        kind = dtype_of(parts[-1])
        if base == "selp":
            a, b = (self._source(x, kind) for x in operands[1:3])
            p, to = self._source(operands[3], np.dtype(bool)), self._target(operands[0])
            return lambda m: to(m, np.where(p(m), a(m), b(m)))
        compute = OPERATIONS.get(base)
        if compute is None:
            raise NotImplementedError(name)
        wide = base in ("mul", "mad") and "wide" in parts
        kinds = [kind] * (len(operands) - 1)
        if base in ("shl", "shr"):
            kinds[1] = np.dtype("u4")
        if base in ("bfe", "shf"):
            kinds[-1] = np.dtype("u4")
        if base == "bfe":
            kinds[1] = np.dtype("u4")
        sources = [self._source(x, k) for x, k in zip(operands[1:], kinds, strict=True)]
        to, how = self._target(operands[0]), tuple(parts)
        if wide:
            double = np.dtype(f"{kind.kind}{2 * kind.itemsize}")
            return lambda m: to(m, operator.mul(*(s(m).astype(double) for s in sources)))
        return lambda m: to(m, compute(how, *(s(m) for s in sources)))

    def _packed(self, kind: np.dtype, operands: list[str]) -> Any:
        many = [x.strip() for x in operands[0].strip("{}").split(",")]
        if len(many) > 1:
            part = np.dtype(f"u{kind.itemsize // len(many)}")
            whole = self._source(operands[1], kind)
            puts = [self._target(x) for x in many]

            def take(m: np.ndarray) -> None:
                pieces = np.ascontiguousarray(whole(m)).view(part).reshape(-1, len(many))
                for k, put in enumerate(puts):
                    put(m, pieces[:, k].copy())

            return take
        parts = [x.strip() for x in operands[1].strip("{}").split(",")]
        part = np.dtype(f"u{kind.itemsize // len(parts)}")
        sources, to = [self._source(x, part) for x in parts], self._target(operands[0])

        def join(m: np.ndarray) -> None:
            pieces = np.ascontiguousarray(np.stack([s(m) for s in sources], 1))
            to(m, pieces.view(kind).reshape(-1))

        return join

    def _convert(self, parts: list[str], operands: list[str]) -> Any:
        if parts[-2].endswith("x2"):
            return self._pair(dtype_of(parts[-2][:-2]), dtype_of(parts[-1]), operands)
        to_kind, from_kind = dtype_of(parts[-2]), dtype_of(parts[-1])
        source = self._source(operands[1], from_kind)
        to = self._target(operands[0], to_kind.kind == "i")
        whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}.get(parts[0])

        def convert(m: np.ndarray) -> None:
            x = source(m)
            if whole is not None:
                x = whole(x)
            if x.dtype.kind == "f" and to_kind.kind in "iu":
                limits = np.iinfo(to_kind)
                wide = x.astype(np.longdouble)
                x = np.clip(np.where(np.isnan(wide), 0, wide), limits.min, limits.max)
            to(m, x.astype(to_kind))

        return convert

    def _pair(self, to_kind: np.dtype, from_kind: np.dtype, operands: list[str]) -> Any:
        """Two numbers in one register, the second in its lower half."""
        parts = [self._source(x, from_kind) for x in operands[:0:-1]]
        to = self._target(operands[0])
        both = lambda m: np.stack([x(m).astype(to_kind) for x in parts], 1)  # noqa: E731
        return lambda m: to(m, both(m).view(np.uint32).reshape(-1))

    def _test(self, base: str, parts: list[str], operands: list[str]) -> Any:
        how, kind = parts[0], dtype_of(parts[-1])
        to = self._target(operands[0])
        if base == "testp":
            x = self._source(operands[1], kind)
            test = {"infinite": np.isinf, "finite": np.isfinite, "notanumber": np.isnan}[how]
            return lambda m: to(m, test(x(m)))
        if len(parts) > 2:
            raise NotImplementedError(".".join(parts))
        a, b = (self._source(x, kind) for x in operands[1:3])
        compare, unordered = COMPARISONS[how]

        def test_both(m: np.ndarray) -> None:
            x, y = a(m), b(m)
            found = compare(x, y)
            if kind.kind == "f":
                strange = np.isnan(x) | np.isnan(y)
                found = found | strange if unordered else found & ~strange
            to(m, found)

        return test_both

    def _exchange(self, operands: list[str]) -> Any:
        to, x, by = operands[0], operands[1], int(operands[2])
        put, value = self._target(to), self._source(x, np.dtype("u4"))

        def exchange(m: np.ndarray) -> None:  # the lanes of a warp
            place = np.arange(WARP)
            there = np.where(place + by < WARP, place + by, place)
            put(m, value(m)[there])

        return exchange

    # -- memory ------------------------------------------------------------------------------

    def _place(self, text: str, space: str) -> tuple[Memory, Callable[[np.ndarray], np.ndarray]]:
        found = _ADDRESS.fullmatch(text)
        assert found is not None, text
        base, more = self._source(found[1], np.dtype("u8")), int(found[2] or 0)
        if space == "global":
            return self.memory, lambda m: base(m).astype(np.int64) + more - GLOBAL
        memory = self.shared if space == "shared" else self.local
        whose = self.block if space == "shared" else self.threads
        pitch, size = self.pitch[space], self.kernel.sizes[space]

        def place(m: np.ndarray) -> np.ndarray:
            at = base(m).astype(np.int64) + more
            if ((at < 0) | (at >= size)).any():
                raise Fault(f"out of the {space} memory: {at}")
            return at + whose[m] * pitch

        return memory, place

    def _access(self, base: str, parts: list[str], operands: list[str]) -> Any:
        space, kind = parts[0], dtype_of(parts[-1])
        if space == "param":
            value = self.given[int(operands[1].rstrip("]").rpartition("_")[2])]
            to = self._target(operands[0])
            held = np.array(value % (1 << 8 * kind.itemsize), f"u{kind.itemsize}")
            return lambda m: to(m, np.full(len(m), held))
        if space not in ("global", "shared", "local"):
            raise NotImplementedError(f"{base}.{'.'.join(parts)}")
        address, data = operands if base == "st" else operands[::-1]
        names = [x.strip() for x in data.strip("{}").split(",")]
        memory, place = self._place(address, space)
        width, plain = kind.itemsize, np.dtype(f"u{kind.itemsize}")
        constant = "nc" in parts

        def places(m: np.ndarray) -> np.ndarray:
            at = place(m)
            last = at + width * len(names) - 1
            if ((at < 0) | (last >= len(memory.open))).any():
                raise Fault(f"{base}.{'.'.join(parts)} out of bounds at {at}")
            # LLVM reads four where three are used: memory is given in lines of 256 bytes.
            open_ = memory.open[at] & (memory.open[last] | (base == "ld"))
            if not open_.all():
                raise Fault(f"{base}.{'.'.join(parts)} out of bounds at {at}")
            if (at % (width * len(names))).any():
                raise Fault(f"{base}.{'.'.join(parts)} off its alignment at {at}")
            return at

        if base == "ld":
            puts = [self._target(x, kind.kind == "i") for x in names]

            def load(m: np.ndarray) -> None:
                at = places(m)
                for k, put in enumerate(puts):
                    here = at + k * width
                    if space != "local":
                        self._reads(memory, m, here, constant)
                    put(m, memory.view(width)[here // width].view(kind))

            return load
        sources = [self._source(x, plain) for x in names]

        def store(m: np.ndarray) -> None:
            at = places(m)
            for k, source in enumerate(sources):
                here, x = at + k * width, source(m)
                if space != "local":
                    self._writes(memory, m, here)
                memory.view(width)[here // width] = x
                if (memory.view(width)[here // width] != x).any():
                    raise Fault("threads write different numbers to one place at once")

        return store

    def _since(self, m: np.ndarray, other: np.ndarray, when: np.ndarray) -> np.ndarray:
        """Whether what other threads did is behind a barrier, or was the thread itself."""
        mine = self.number[m]
        same = (np.abs(other) - 1) // self.lanes == (mine - 1) // self.lanes
        return (
            (other == 0)
            | (other == mine)
            | (same & (np.abs(other) < _MANY) & (when < self.epoch[self.block[m]]))
        )

    def _reads(self, memory: Memory, m: np.ndarray, at: np.ndarray, constant: bool) -> None:
        if not self._since(m, memory.writer[at], memory.written[at]).all():
            raise Fault(f"a thread reads what another writes, with no barrier between: {at}")
        if constant:
            memory.constant[at] = True
            if memory.writer[at].any():
                raise Fault("a read as a constant of what the kernel writes")
        mine, epoch = self.number[m], self.epoch[self.block[m]]
        before, when = memory.reader[at], memory.read[at]
        same = (np.abs(before) - 1) // self.lanes == (mine - 1) // self.lanes
        alone = (before == 0) | (before == mine) | (same & (when < epoch))
        memory.reader[at] = np.where(alone, mine, np.where(same & (before < _MANY), -mine, _MANY))
        memory.read[at] = epoch
        last = memory.reader[at]  # of those that read a place in this very step
        ours = (np.abs(last) - 1) // self.lanes == (mine - 1) // self.lanes
        several = alone & (last != mine)
        memory.reader[at[several]] = np.where(ours, -mine, _MANY)[several]

    def _writes(self, memory: Memory, m: np.ndarray, at: np.ndarray) -> None:
        behind = self._since(m, memory.writer[at], memory.written[at])
        behind &= self._since(m, memory.reader[at], memory.read[at])
        if not behind.all():
            raise Fault(f"a thread writes what another touches, with no barrier between: {at}")
        if memory.constant[at].any():
            raise Fault("a kernel writes what it reads as a constant")
        memory.writer[at], memory.written[at] = self.number[m], self.epoch[self.block[m]]

    def _adds(self, memory: Memory, m: np.ndarray, at: np.ndarray) -> None:
        """Note atomics of a block's lanes: negative, as whoever reads alone must wait for all."""
        behind = self._since(m, memory.writer[at], memory.written[at]) | (memory.writer[at] < 0)
        if not (behind & self._since(m, memory.reader[at], memory.read[at])).all():
            raise Fault(f"a thread adds to what another writes, with no barrier between: {at}")
        memory.writer[at], memory.written[at] = -self.number[m], self.epoch[self.block[m]]

    def _atomic(self, parts: list[str], operands: list[str]) -> Any:
        kind = dtype_of(parts[-1])
        result = len(operands) > 2 or "cas" in parts
        to = self._target(operands[0]) if result else None
        rest = operands[1:] if result else operands
        memory, place = self._place(rest[0], "shared" if "shared" in parts else "global")
        values = [self._source(x, kind) for x in rest[1:]]

        def atomic(m: np.ndarray) -> None:
            at, given = place(m), [v(m) for v in values]
            if (at % kind.itemsize).any() or not memory.open[at].all():
                raise Fault(f"atom.{'.'.join(parts)} at {at}")
            if memory is self.shared:
                self._adds(memory, m, at)
            seen = memory.view(kind.itemsize).view(kind)
            old = np.empty(len(m), kind)
            for k, where in enumerate(at // kind.itemsize):
                old[k] = seen[where]
                if "add" in parts:
                    seen[where] += given[0][k]
                elif "cas" in parts:
                    if seen[where] == given[0][k]:
                        seen[where] = given[1][k]
                else:
                    raise NotImplementedError(parts)
            if to is not None:
                to(m, old)

        return atomic


def kernel_of(source: KernelSource, capability: str = "sm_90") -> Callable[..., None]:
    """Return ``run(blocks, lanes, *args)`` of a kernel."""
    return Kernel(build.assembly(source, capability), source.signature).run


def _launch(kernel: Callable[..., None], blocks: int, lanes: int, *args: Any) -> None:
    kernel(blocks, lanes, *(words(a) if isinstance(a, np.ndarray) else a for a in args))


def _empty(shape: Any, dtype: Any) -> np.ndarray:
    """Return room that holds nonsense."""
    out = np.empty(shape, dtype)
    out.reshape(-1).view(np.uint8)[...] = 0xA5
    return out


PTX = replace(
    ONE_THREAD,
    name="cuda, as PTX",
    build=one_by_one(kernel_of),
    names=lambda limits: {"empty": _empty, "launch": _launch, **CODES},
)
