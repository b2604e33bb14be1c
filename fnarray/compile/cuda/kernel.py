"""The kernels of a region: one, or several where all of each must be done before the next."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.forms import Contract, Library, Scan
from ...core.graph import Var
from ..emit.bodies import Bodies, note_of
from ..emit.source import KernelSource
from ..emit.values import Storage
from ..emit.writer import Writer
from ..schedule.access import row_major
from ..schedule.nests import Step
from ..schedule.plan import Body, Plan, Region, Same, Tree
from ..schedule.select import CONTROL
from . import factors
from .calls import Launch, called, launches_of
from .grids import BLOCKS, GRID, LANES, ONE, Grid, grid_of
from .lanes import LaneFlow, lane_shape
from .loops import GridLoops
from .product import Product
from .running import Running
from .steps import GridSteps, fills, in_order, one_by_one
from .values import NARROW, GridValues
from .windows import Windows

#: Blocks of a grid whose threads each go through all updates: one for each of 132 multiprocessors.
OWNERS = 132


def emit_launches(region: Region, plan: Plan) -> tuple[Launch, ...]:
    """Emit the kernels of a region, in the order in which they run."""
    step = None if region.body is None else _step(region.body)
    if step is not None and isinstance(step.node.form, Library):
        if factors.runs_here(step.node):
            return factors.launches_of(step.node, set(region.outputs))
        if called(step.node):
            return launches_of(step.node, set(region.outputs))
    launches: list[Launch] = []
    again = True
    while again:
        launch, again = _emit(region, plan, len(launches))
        launches.append(launch)
    return tuple(launches)


def _emit(region: Region, plan: Plan, stage: int) -> tuple[Launch, bool]:
    body = region.body
    assert body is not None
    writer = Writer()
    values = GridValues(writer, plan.limits, plan.sizes, NARROW)
    new = [v for v in region.outputs if v not in region.aliases]
    arrays = (*region.inputs, *new)
    places: dict[Var, Storage] = {}
    for var in arrays:
        name = writer.declare(writer.fresh("x" if var in region.inputs else "out"))
        places[var] = Storage(name, row_major(var.aval.shape))
    values.storage.update((v, places[v]) for v in region.inputs)
    grid, parts, again = _written(body, values, stage, {v: places[v] for v in new})
    scratch = values.scratch
    heads: list[str] = []
    kept: list[tuple[str, str, int]] = []
    for name, (code, length) in scratch.items():
        owner = values.owners.get(name)
        count = {None: 1, "block": grid.blocks, "thread": grid.blocks * grid.lanes}[owner]
        outer = f"{name}_" if owner else name
        if owner:
            n = values.number(length)
            heads.append(f"{name} = part({outer}, {owner}() * {n}, {n})")
        kept.append((outer, code, length * count))
    params = [(s.name, f"{values.code(v.aval.dtype)}[1]") for v, s in places.items()]
    params += [(name, f"{code}[1]") for name, (code, _) in parts.items()]
    params += [(name, f"{code}[1]") for name, code, _ in kept]
    params += [(name, code) for (code, _), name in values.scalars.items()]
    text = f"def kernel({', '.join(n for n, _ in params)}):\n"
    text += "".join(f"    {line}\n" for line in heads) + writer.render()
    launch = Launch(
        KernelSource(text, tuple(code for _, code in params)),
        grid,
        arrays,
        tuple(parts.values()),
        tuple((code, length) for _, code, length in kept),
        tuple(value for _, value in values.scalars),
    )
    return launch, again


def _written(
    body: Body, values: GridValues, stage: int, targets: Mapping[Var, Storage]
) -> tuple[Grid, dict[str, tuple[str, int]], bool]:
    """Write a region's item; return its grid, its arrays of parts, and whether more must follow."""
    step = _step(body)
    if step is not None and (written := _whole(step, body, values, targets, stage)):
        grid, parts = written
        return grid, parts, grid.again
    bodies, again = _bodies(body, values, stage)
    bodies.emit(body, targets)
    loops = bodies.loops
    assert isinstance(loops, GridLoops)
    grid = _grid(body, values, loops)
    return grid, loops.parts, again or grid.again


def _whole(
    step: Step, body: Body, values: GridValues, targets: Mapping[Var, Storage], stage: int
) -> tuple[Grid, dict[str, tuple[str, int]]] | None:
    """Write a step that is a kernel of its own kind, and its arrays of parts; None for others."""
    form, shape = step.node.form, lane_shape(step.node)
    if shape is None and not isinstance(form, Library | Contract):
        return None
    values.storage.update(targets)
    for var, place in body.places.items():
        if isinstance(place, Same):
            values.storage[var] = values.storage[place.var]
    values.writer.note(note_of(step.node))
    if shape is not None:
        return LaneFlow(values, step.node).write(shape), {}
    if isinstance(form, Contract) or form.op.module == "conv":
        tiles = (Product if isinstance(form, Contract) else Windows)(values, step.node, stage)
        return tiles.write(), tiles.sums
    return Running(values, step.node).write(), {}


def _bodies(body: Body, values: GridValues, stage: int) -> tuple[Bodies, bool]:
    """Return what spells a region's body, and whether the item itself needs another kernel."""
    step = _step(body)
    control = step is not None and isinstance(step.node.form, CONTROL)
    bodies = Bodies(values)
    bodies.loops = GridLoops(values, stage, spread=isinstance(body.items[0], Tree))
    bodies.steps = GridSteps(values, stage, top=step is not None and not control)
    bodies.flow.steps = bodies.steps
    if step is None:
        return bodies, False
    node = step.node
    if control:
        form = node.form
        if isinstance(form, Scan) and not form.num_carry:
            bodies.flow.chunked = node
            bodies.flow.span = f"thread(), {values.number(form.length)}, threads()"
        return bodies, False
    again = not stage and fills(node, filled=any(v in body.filled for v in node.outs))
    values.spread = again or not one_by_one(node)
    return bodies, again


def _step(body: Body) -> Step | None:
    """Return the step that a region is, unless it is loops or written out."""
    (item,) = body.items
    return item if isinstance(item, Step) and item not in body.unrolled else None


def _grid(body: Body, values: GridValues, loops: GridLoops) -> Grid:
    step = _step(body)
    if step is None:
        return loops.grid
    form = step.node.form
    if isinstance(form, Scan) and not form.num_carry:
        values.owners.update(dict.fromkeys(values.scratch, "thread"))
        return grid_of(form.length, LANES, BLOCKS)
    if values.spread:
        return grid_of(values.total, LANES, BLOCKS if values.per_block else GRID)
    return grid_of(step.node.out.aval.size, LANES, OWNERS) if in_order(step.node) else ONE
