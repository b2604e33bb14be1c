"""One kernel: parameters, flattened views, and the body of some items of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.graph import ClosedGraph, Var
from ..schedule.fuse import Tree
from ..schedule.nests import Nest, Step, reduction_of
from ..schedule.plan import Item, Plan
from .body import HALF, SHORT, Storage, row_major
from .control import Control
from .source import KernelSource


@dataclass(frozen=True, slots=True)
class Scratch:
    """A working array that a kernel wants: NumPy dtype name and length."""

    code: str
    length: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel and how to call it: arrays in, arrays out, scratch, then scalars.

    ``extent`` is set for kernels that take ``(start, stop)`` first, to be run in chunks; ``folds``
    then names outputs that the chunks fold, each with the kernel that adds two parts up.
    """

    source: KernelSource
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    scratch: tuple[Scratch, ...]
    scalars: tuple[Any, ...]
    extent: int | None = None
    folds: tuple[tuple[Var, KernelSource], ...] = ()


def emit_kernel(
    plan: Plan,
    items: Sequence[Item],
    inputs: Sequence[Var],
    outputs: Sequence[Var],
    aliases: Mapping[Var, Var],
    sizes: frozenset[int],
    *,
    parallel: bool,
) -> Kernel:
    """Emit a kernel for consecutive items of a plan.

    Parameters
    ----------
    inputs : sequence of Var
        Values from outside that the items read.
    outputs : sequence of Var
        Values that outlive the kernel.
    aliases : mapping
        Outputs that are written over an input: result to operand.
    parallel : bool
        Whether the items are one tree whose outermost loop may run in chunks.
    """
    body = Control(sizes)
    heads: list[tuple[str, str]] = []
    views: list[str] = []

    def array(var: Var, prefix: str) -> Storage:
        name = body.fresh(prefix)
        code, rank = SHORT[var.aval.dtype.name], var.aval.ndim
        outer = name if rank == 1 else f"{name}_"
        heads.append((outer, f"{code}[{rank}]"))
        if rank != 1:
            views.append(f"{name} = flat({outer})")
        body.depth_of[name] = 0
        return Storage(name, row_major(var.aval.shape))

    for var in inputs:
        body.storage[var] = array(var, "x")
    targets = {}
    for var in outputs:
        targets[var] = body.storage[aliases[var]] if var in aliases else array(var, "out")
    part = Plan(plan.block, list(items), plan.inlined, plan.donated, plan.unrolled)
    body.assign_storage(part, targets, in_loop=False)
    extent = None
    if parallel:
        item = items[0]
        if isinstance(item, Tree):
            _, extent, _ = body._collapse(item)
            body.inlined.update(plan.inlined)
            body.emit_tree(item, (), span="start, stop")
        else:
            assert isinstance(item, Step)
            extent = item.node.form.length
            body.chunked = item.node
            body.emit_plan(part)
        heads[:0] = [("start", "i64"), ("stop", "i64")]
    else:
        body.emit_plan(part)
    for name, (code, _) in body.scratch.items():
        heads.append((name, f"{code}[1]"))
    for (code, _), name in body.scalars.items():
        heads.append((name, code))
    lines = [f"def kernel({', '.join(n for n, _ in heads)}):", *(f"    {v}" for v in views)]
    text = "\n".join(lines) + "\n" + body.render()
    if body.sequential:
        # A recurrence that decays must not crawl among subnormal numbers (decision 0010).
        at = len("\n".join(lines)) + 1
        text = f"{text[:at]}    mode = fk.rounding.flush_subnormal()\n{text[at:].rstrip()}\n"
        text += "    fk.rounding.restore(mode)\n"
    return Kernel(
        KernelSource(text, tuple(code for _, code in heads)),
        tuple(inputs),
        tuple(v for v in outputs if v not in aliases),
        tuple(Scratch(code, length) for code, length in body.scratch.values()),
        tuple(value for _, value in body.scalars),
        extent,
        _folds(items[0], outputs) if parallel else (),
    )


def is_foldable(nest: Nest) -> bool:
    """Whether chunks of a nest's outermost, folded, loop can be added up afterwards."""
    form = reduction_of(nest.node)
    if form is None or isinstance(form.combine, ClosedGraph) or len(form.combine) > 1:
        return False
    return form.dtypes is None and nest.node.out.aval.dtype.name not in HALF


def _folds(item: Item, outputs: Sequence[Var]) -> tuple[tuple[Var, KernelSource], ...]:
    members = item.members if isinstance(item, Tree) else []
    folds = []
    for nest in members:
        var = nest.node.out
        if nest.parallel_depth == 0 and var in outputs:
            form = reduction_of(nest.node)
            assert form is not None
            assert isinstance(form.combine, tuple)
            new = form.combine[0].format(a0="t0", x0="t1")
            code, rank = SHORT[var.aval.dtype.name], var.aval.ndim
            text = (
                "def kernel(total_, part_, n):\n"
                "    total = flat(total_)\n    part = flat(part_)\n"
                "    for i in range(n):\n        t0 = total[i]\n        t1 = part[i]\n"
                f"        total[i] = {new}\n"
            )
            array = f"{code}[{rank}]"
            folds.append((var, KernelSource(text, (array, array, "i64"))))
    return tuple(folds)
