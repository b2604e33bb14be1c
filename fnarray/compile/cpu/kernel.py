"""One kernel: parameters, flattened views, and the body of a region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...core.graph import Var
from ..emit.bodies import Bodies
from ..emit.source import Kernel, KernelSource, Scratch
from ..emit.values import Storage, Values
from ..emit.writer import Writer
from ..schedule.access import row_major
from ..schedule.nests import Nest
from ..schedule.plan import Body, Plan, Region, Tree, statements_of
from ..target import Limits
from . import halves


@dataclass(slots=True)
class _Heads:
    """Parameters of a kernel, and the rank-1 views that it makes of arrays."""

    values: Values
    params: list[tuple[str, str]]
    views: list[str]

    def array(self, var: Var, prefix: str) -> Storage:
        """Add an array parameter; return where its elements lie."""
        writer = self.values.writer
        name = writer.fresh(prefix)
        rank = var.aval.ndim
        outer = name if rank == 1 else f"{name}_"
        self.params.append((outer, f"{self.values.code(var.aval.dtype)}[{rank}]"))
        if rank != 1:
            self.views.append(f"{name} = flat({outer})")
        writer.depth_of[name] = 0
        return Storage(name, row_major(var.aval.shape))


def emit_kernel(region: Region, plan: Plan) -> Kernel:
    """Emit the kernel of a region."""
    body = region.body
    assert body is not None
    writer = Writer()
    values = Values(writer, _limits(body, plan.limits), plan.sizes, halves.NARROW)
    bodies = Bodies(values)
    heads = _Heads(values, [], [])
    for var in region.inputs:
        values.storage[var] = heads.array(var, "x")
    new = [v for v in region.outputs if v not in region.aliases]
    bodies_targets = {v: heads.array(v, "out") for v in new}
    values.parts = region.span is not None
    if region.span is not None:
        (item,) = body.items
        if isinstance(item, Tree):
            bodies.loops.span = "start, stop"
        else:
            bodies.flow.chunked = statements_of(body.items)[0].node
    bodies.emit(body, bodies_targets)
    chunk = [("start", "i64"), ("stop", "i64")] if region.span is not None else []
    scratch = [(name, f"{code}[1]") for name, (code, _) in values.scratch.items()]
    scalars = [(name, code) for (code, _), name in values.scalars.items()]
    params = [*chunk, *heads.params, *scratch, *scalars]
    head = [f"def kernel({', '.join(n for n, _ in params)}):", *(f"    {v}" for v in heads.views)]
    tail: list[str] = []
    if bodies.flow.sequential:
        # A recurrence that decays must not crawl among subnormal numbers (decision 0010).
        head.append("    mode = fk.rounding.flush_subnormal()")
        tail.append("    fk.rounding.restore(mode)")
    text = "".join((*(f"{x}\n" for x in head), writer.render(), *(f"{x}\n" for x in tail)))
    return Kernel(
        KernelSource(text, tuple(code for _, code in params)),
        region.inputs,
        tuple(new),
        tuple(Scratch(code, length) for code, length in values.scratch.values()),
        tuple(value for _, value in values.scalars),
        tuple(_fold(var, body, values) for var in region.folds),
        values.product,
        (*[()] * len(head), *writer.origins(), *[()] * len(tail)),
    )


def _limits(body: Body, limits: Limits) -> Limits:
    """Return limits by which a long kernel over little has few sizes in its text."""
    sizes = (v.aval.size for s in statements_of(body.items) for v in s.node.outs)
    if len(body.items) > limits.loops and max(sizes, default=0) < limits.little:
        return replace(limits, spelled=min(limits.spelled, limits.brief))
    return limits


def _fold(var: Var, body: Body, values: Values) -> KernelSource:
    """Return the kernel that adds up two parts of a folded result."""
    nest = next(s for s in statements_of(body.items) if var in s.node.outs)
    assert isinstance(nest, Nest)
    assert nest.fold is not None
    combine: Any = nest.fold.combine
    new = combine[0].format(a0="t0", x0="t1")
    array = f"{values.code(var.aval.dtype)}[{var.aval.ndim}]"
    text = (
        "def kernel(total_, part_, n):\n"
        "    total = flat(total_)\n    part = flat(part_)\n"
        "    for i in range(n):\n        t0 = total[i]\n        t1 = part[i]\n"
        f"        total[i] = {new}\n"
    )
    return KernelSource(text, (array, array, "i64"))
