"""From a lowered function to what its report says."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from types import ModuleType
from typing import Any

from ..api.placed_jit import given_up_for
from ..compile.cpu import build
from ..compile.cpu.launch import threads
from ..compile.ir import Block, Node
from ..compile.report import bytes_of, label, nodes_of, region_cost
from ..compile.schedule.plan import Region
from ..compile.schedule.work import is_counted
from ..core import tree
from ..core.forms import Library, Overlay, Update
from ..core.graph import ClosedGraph, Graph, Var, subgraphs
from ..core.ref import AbstractRef
from ..core.source import Source
from ..runtime.dispatch import buffer_of
from ..runtime.dispatch import executable as executable_of
from . import measure
from .excerpts import excerpts_of
from .model import Buffer, Facts, Kernel, Machine, Operation, Place, Text

#: Seconds within which assembly is looked at: LLVM makes it anew.
PATIENCE = 10.0


def facts_of(
    lowered: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spans: Iterable[tuple[str, float]]
) -> Facts:
    """Return what is known of a lowered function, run on arguments if there are any.

    Parameters
    ----------
    spans : iterable of (str, float)
        What was measured while it was traced.
    """
    traced, executable = lowered._traced, lowered._executable
    plan = executable.plan
    inner: dict[str, Any] = {}
    if not _on_gpu(executable):
        executable.load()
        inner = _running(executable)
    listing = Listing(plan.block)
    seconds, times, why = None, {}, _why_not_run(lowered, args, kwargs)
    machine = None
    if not why:
        arrays = [*traced.consts, *tree.leaves((args, kwargs))]
        data = [buffer_of(x, v.aval) for x, v in zip(arrays, plan.block.inputs, strict=True)]
        seconds, times = measure.run_times(executable, data, inner)
    reasons = _reasons(executable, listing)
    kernels = _kernels(executable, listing, times, getattr(lowered, "kernels", ()))
    if not why:
        machine, kernels = _under_roofline(kernels)
    copies = tuple((n, why) for n, why in reasons if "copies" in why or "a carry twice" in why)
    captured = [f"captured {k}" for k in range(len(traced.consts))]
    arguments = (*captured, *traced.signature.paths(lowered._fun))
    donated = [len(traced.consts) + k for k in lowered.donate_argnums]
    buffers, peak = _buffers(plan.regions, executable, listing, arguments, donated)
    results = [listing.written.get(a, -1) for a in plan.block.outputs if isinstance(a, Var)]
    source = traced.source
    return Facts(
        name=lowered.fun_name,
        signature=", ".join(a.str_short(True) for a in lowered._avals),
        arguments=tuple(
            f"{n}: {v.aval.str_short(True)}"
            for n, v in zip(arguments, plan.block.inputs, strict=True)
        ),
        equations=_equations(traced.closed.jaxpr),
        operations=tuple(listing.operations),
        results=tuple(results),
        kernels=kernels,
        driver=_driver(executable.driver_text, kernels),
        buffers=buffers,
        excerpts=excerpts_of([place_of(source), *(o.place for o in listing.operations)]),
        guards=tuple(_guard(*entry) for entry in traced.guards.entries()),
        captured=tuple(c.aval.str_short(True) for c in traced.consts),
        copies=copies,
        in_place=tuple(sorted(listing.updates - {n for n, _ in copies})),
        stages=(*spans, *_stages(executable, inner)),
        seconds=seconds,
        not_run=why,
        peak=peak,
        machine=machine,
    )


def place_of(source: Source) -> Place:
    """Return a source as a place."""
    if not source.line:
        return Place()
    return Place(source.file, source.line, source.function, source.scope)


def _why_not_run(lowered: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    leaves = tree.leaves((args, kwargs))
    if _on_gpu(lowered._executable):
        return "its kernels are for a GPU"
    if len(leaves) != len(lowered._avals):
        return "no arguments were given"
    if any(type(a) is AbstractRef for a in lowered._avals):
        return "it takes Refs, which a run would change"
    if lowered._traced.closed.effects:
        return "it has effects, which a run would repeat"
    if not all(hasattr(x, "__array__") or isinstance(x, (int, float, complex)) for x in leaves):
        return "its arguments are stand-ins"
    return ""


def _on_gpu(executable: Any) -> bool:
    return executable.target.name.startswith("cuda")


def _equations(graph: Graph) -> int:
    return sum(1 + sum(map(_equations, subgraphs(e.params))) for e in graph.eqns)


def _guard(kind: str, holder: Any, name: str, value: Any) -> tuple[str, str, str]:
    """Return what is guarded, where, and what it is bound to, in words."""
    owner = getattr(holder, "__name__", None) or type(holder).__name__
    if isinstance(holder, dict):
        owner = str(holder.get("__name__", "a dictionary"))
    shown = getattr(value, "__qualname__", None) or type(value).__name__
    if isinstance(value, ModuleType):
        shown = f"module {value.__name__}"
    if isinstance(value, (int, float, complex, str, bool, type(None), tuple)):
        shown = repr(value)
    return kind, f"{name} of {owner}", shown if len(shown) <= 60 else f"{shown[:57]}..."


# ---- operations ----------------------------------------------------------------------------------


class Listing:
    """The operations of a block and of those that it holds, numbered in order.

    Attributes
    ----------
    operations : list of Operation
    written : dict
        By which operation a value is written.
    updates : set of int
        The operations that write a part of an array: in place, unless they copy it first.
    programs : dict
        By number, what operations run that hold a program of its own, and on how many devices.
    """

    def __init__(self, block: Block):
        self.operations: list[Operation] = []
        self.written: dict[Var, int] = {}
        self.updates: set[int] = set()
        self.programs: dict[int, tuple[Any, int]] = {}
        self._numbers: dict[Any, int] = {}
        self._inputs = {v: -1 - k for k, v in enumerate(block.inputs)}
        self._add(block, -1, {})

    def number(self, node: Node) -> int:
        """Return the number of a node, -1 for one that the scheduler added."""
        return self._numbers.get(_key(node), -1)

    def numbers(self, nodes: Iterable[Node]) -> tuple[int, ...]:
        """Return the numbers of nodes, in order, each once."""
        return tuple(sorted({self.number(n) for n in nodes} - {-1}))

    def _add(self, block: Block, parent: int, known: dict[Var, int]) -> None:
        known = {**self._inputs, **known} if parent < 0 else known
        for node in block.nodes:
            number = len(self.operations)
            self._numbers[_key(node)] = number
            if isinstance(node.form, Update | Overlay):
                self.updates.add(number)
            reads = [known[a] for a in node.ins if isinstance(a, Var) and a in known]
            shown = ", ".join(v.aval.str_short(True) for v in node.outs[:3])
            self.operations.append(
                Operation(
                    number,
                    node.eqn.primitive.name,
                    shown,
                    place_of(node.eqn.source),
                    tuple(dict.fromkeys(reads)),
                    parent=parent,
                )
            )
            for body in node.bodies:
                self._add(body, number, {})
            if (held := _program_in(node)) is not None:
                program = executable_of(held, shown=True)
                devices = prod(size for _, size in node.eqn.params["mesh_axes"])
                self.programs[number] = program, devices
                self._add(program.plan.block, number, {})
            inside = tuple(range(number + 1, len(self.operations)))
            if inside:
                op = self.operations[number]
                self.operations[number] = Operation(
                    number, op.name, op.result, op.place, op.reads, inside, parent
                )
            known.update((v, number) for v in node.outs)
            self.written.update((v, number) for v in node.outs)


def _key(node: Node) -> Any:
    """Return what a node keeps when the scheduler gives it other operands."""
    return node.outs[0] if node.outs else node.eqn.source


def _program_in(node: Node) -> ClosedGraph | None:
    """Return the program that a step of the driver runs on several devices, if it does."""
    is_step = isinstance(node.form, Library) and "mesh_axes" in node.eqn.params
    held = node.eqn.params.values() if is_step else ()
    return next((graph for graph in held if isinstance(graph, ClosedGraph)), None)


# ---- kernels -------------------------------------------------------------------------------------


def _reasons(executable: Any, listing: Listing) -> list[tuple[int, str]]:
    told = [(r.node, f"{r.choice}, since {r.why}") for r in executable.plan.reasons]
    return [(listing.number(node), text) for node, text in told]


def _kernels(
    executable: Any, listing: Listing, times: dict[str, float], binaries: Sequence[Any]
) -> tuple[Kernel, ...]:
    out: list[Kernel] = []
    reasons = _reasons(executable, listing)
    gpu = _on_gpu(executable)
    kernels = iter(zip(executable.source.kernels, executable.kernels, strict=True))
    begin, j, h = time.perf_counter(), 0, 0
    for region in executable.plan.regions:
        flops, additions, moved = region_cost(region)
        inside = set(listing.numbers(nodes_of(region)))
        inside |= {n for k in inside for n in listing.operations[k].body}
        text, how, bits, count = Text(), build.Making("", 0.0), None, 1
        if region.body is None:
            name = summary = region.step.eqn.primitive.name
            called, h = ("view", h) if region.view else (f"h{h}", h + 1)
            count = 1 if region.view or gpu else threads()
        else:
            called, j = f"kernel{j}", j + 1
            source, info = next(kernels)
            name, summary = info.name, label(region.body)
            lines = info.text.rstrip("\n").split("\n")
            numbers = [listing.numbers(nodes) for nodes in source.origins]
            text = Text(tuple(lines), tuple(numbers[: len(lines)]))
            inside.update(n for nodes in numbers for n in nodes)
            if gpu:
                count = 0
                how = build.Making(_binary(binaries[j - 1]) if binaries else "for a GPU", 0.0)
            else:
                how = build.made.get(name, how)
                if time.perf_counter() - begin < PATIENCE:
                    bits = measure.vector_bits(name, source.source)
                count = threads() if region.span is not None else 1
        out.append(
            Kernel(
                called,
                name,
                summary,
                region.body is None,
                count,
                flops,
                additions,
                moved,
                tuple(sorted(inside)),
                text,
                bits,
                times.get(called),
                made=how.how or ("" if region.body is None else "memory"),
                made_seconds=how.seconds if how.how and not gpu else None,
                reasons=tuple((n, r) for n, r in reasons if n in inside),
                is_counted=all(map(is_counted, nodes_of(region))),
            )
        )
        if region.step is not None:
            out += _shards_of(out.pop(), listing, listing.number(region.step), times)
    return tuple(out)


def _running(executable: Any) -> dict[str, Any]:
    """Return the programs that steps of one run on several devices, loaded, by their labels."""
    out: dict[str, Any] = {}
    steps = (r.step for r in executable.plan.regions if r.body is None and not r.view)
    for h, step in enumerate(steps):
        if (held := _program_in(step)) is not None:
            program = executable_of(held)  # what runs: what is shown has lines of its own
            program.load()
            inner = _running(program)
            out |= {f"h{h}": program, **{f"h{h}.{label}": x for label, x in inner.items()}}
    return out


def _stages(executable: Any, inner: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Return what each stage took, of a program and of those that its steps run."""
    yield from executable.seconds.items()
    for at, program in inner.items():
        yield from ((f"{at} {stage}", took) for stage, took in program.seconds.items())


def _shards_of(
    step: Kernel, listing: Listing, number: int, times: dict[str, float]
) -> list[Kernel]:
    """Return a step and the kernels of the program that it runs once on each device, if it does."""
    if number not in listing.programs:
        return [step]
    program, devices = listing.programs[number]
    program.load()
    at = f"{step.label}."
    times = {k.removeprefix(at): took for k, took in times.items() if k.startswith(at)}
    return [
        replace(step, times=0),
        *(
            replace(
                kernel,
                label=at + kernel.label,
                summary=f"{kernel.summary}, each of {devices} shards",
                threads=1,
                times=devices * kernel.times,
            )
            for kernel in _kernels(program, listing, times, ())
        ),
    ]


def _binary(found: Any) -> str:
    """Return what a kernel for a GPU was compiled to."""
    cost = found.cost
    taken = f", {cost.registers} registers, {cost.spills} bytes spilled" if cost else ""
    return f"{found.kind} for {found.capability}{taken}"


def _driver(text: str, kernels: Sequence[Kernel]) -> Text:
    """Return the driver, each call of a kernel or step for the operations of that."""
    lines = text.rstrip().split("\n")
    known = {k.label: k.operations for k in kernels}
    called = (re.search(r"\b((?:kernel|h)\d+)\b", line) for line in lines)
    return Text(tuple(lines), tuple(known.get(c[1], ()) if c else () for c in called))


def _under_roofline(kernels: Sequence[Kernel]) -> tuple[Machine, tuple[Kernel, ...]]:
    """Return what the machine reaches, and kernels with the least time that it allows each."""

    def bounded(machine: Machine) -> tuple[Machine, tuple[Kernel, ...]]:
        return machine, tuple(replace(k, bound=_bound(k, machine)) for k in kernels)

    machine, known = bounded(measure.machine())
    if any(k.seconds and k.bound and k.seconds < 0.8 * k.bound for k in known):
        return bounded(measure.machine(beaten=True))
    return machine, known


def _bound(kernel: Kernel, machine: Machine) -> float | None:
    if not kernel.is_counted:
        return None
    which = int(kernel.threads > 1)
    rate = machine.product if kernel.is_step else machine.flops[which]
    reach = machine.cache if kernel.moved <= measure.CACHED else machine.bandwidth
    return max(kernel.moved / reach[which], kernel.additions / rate)


# ---- buffers -------------------------------------------------------------------------------------


def _buffers(
    regions: Sequence[Region],
    executable: Any,
    listing: Listing,
    arguments: Sequence[str],
    donated: Sequence[int],
) -> tuple[tuple[Buffer, ...], int]:
    """Return the arrays of a program with their lives, and the most bytes alive at a time."""
    block = executable.plan.block
    last = max(len(regions) - 1, 0)
    outputs = {a for a in block.outputs if isinstance(a, Var)}
    found: dict[Var, list[Any]] = {
        v: [name, v, 0, last, "argument", ""]
        for name, v in zip(arguments, block.inputs, strict=True)
    }
    for var, note in _donated([block.inputs[k] for k in donated], block):
        found[var][5] = note
    home: dict[Var, Var] = {v: v for v in block.inputs}
    extra: list[Buffer] = []
    kernels = iter(executable.source.kernels)
    for k, region in enumerate(regions):
        for var in region.outputs:
            donor = region.aliases.get(var)
            if donor is None:
                home[var] = var
                kind = "result" if var in outputs else "temporary"
                end = last if var in outputs else k
                found[var] = [f"t{listing.written.get(var, k)}", var, k, end, kind, ""]
            else:
                home[var] = home[donor]
                row = found[home[var]]
                row[3], row[5] = k, row[5] if region.view else "written over in place"
                if var in outputs:
                    row[3], row[4] = last, "result"
        for var in (*region.inputs, *region.outputs):
            row = found[home[var]] if var in home else None
            if row is not None:
                row[3] = max(row[3], k)
        if region.body is not None:
            for n, scratch in enumerate(next(kernels).scratch):
                size = scratch.length * _WIDTHS.get(scratch.code, 4)
                what = f"{scratch.code}[{scratch.length}]"
                extra.append(Buffer(f"w{n} of {k}", what, size, k, k, "workspace"))
    rows = [
        Buffer(
            name,
            v.aval.str_short(True),
            bytes_of([v]),
            first,
            end,
            kind,
            note,
            listing.written.get(v, -1),
        )
        for name, v, first, end, kind, note in found.values()
    ]
    rows += extra
    alive = [sum(b.size for b in rows if b.first <= k <= b.last) for k in range(last + 1)]
    return tuple(rows), max(alive, default=0)


def _donated(given: Sequence[Var], block: Block) -> Iterator[tuple[Var, str]]:
    """Tell of each donated argument what becomes of it: a call deletes it, or cannot."""
    found = given_up_for([v.aval for v in given], [a.aval for a in block.outputs])
    for k, var in enumerate(given):
        yes, no = "donated: deleted after the call", "donated, and stays: like no result"
        yield var, yes if k in found else no


_WIDTHS = {
    "b1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8,
    "u64": 8, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
