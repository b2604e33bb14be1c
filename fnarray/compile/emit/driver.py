"""The driver: a plain-Python function that allocates, and calls kernels and steps in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.graph import Literal, Var
from ..ir import Node
from ..schedule.plan import Plan, Region, Turns
from .source import CORES, Kernel, Scratch, Source
from .values import CODES
from .workspace import Life, Workspace, lives_of

_DTYPES = {code: np.dtype(name) for name, code in CODES.items()}
#: By how much smaller an array is worth a line of the caches that a loop's turns hand on.
_TURNED = 64


def emit(kernel: Callable[[Region, Plan], Kernel], plan: Plan) -> Source:
    """Write a plan as text, each region that is no step as one kernel."""
    return Driver(plan, kernel).write()


class Driver:
    """Writes the driver of a plan.

    Parameters
    ----------
    plan : Plan
    kernel : callable
        ``kernel(region, plan)``: what a region becomes, by the target.
    """

    def __init__(self, plan: Plan, kernel: Callable[[Region, Plan], Any]):
        self.plan = plan
        self.kernel = kernel
        self.names: dict[Var, str] = {}
        self.lines: list[str] = []
        self.emitted: Iterator[Kernel] = iter(())
        self.kernels: list[Kernel] = []
        self.steps: list[Node] = []
        self.constants: list[Any] = []
        self.allocated = 0
        self.quarter = 2  # of a page, that the next array begins with: the workspace has the others
        self.lives = lives_of(plan) if plan.limits.workspace else {}
        self.workspace = Workspace()
        self.kept: dict[str, None] = {}
        self.borrowed = set(plan.block.inputs)
        self.unread = _unread(plan)

    def write(self) -> Source:
        """Return the program."""
        inputs = self.plan.block.inputs
        self.names.update((var, f"a{k}") for k, var in enumerate(inputs))
        params = ", ".join(self.names[v] for v in inputs)
        self.emitted = iter(self._emitted())
        for number, region in enumerate(self.plan.regions):
            if region.view:
                self._view(region)
            elif region.step is not None:
                self._step(region.step)
            else:
                self._kernel(number, region)
            released = [self.names[v] for v in region.released]
            self.lines.extend(f"{name} = None" for name in released if name not in self.kept)
        returned = [self._output(a) for a in self.plan.block.outputs]
        tail = "," if len(returned) == 1 else ""
        body = [*self._taken(), *self.lines, *self._given_back()]
        body.append(f"return ({', '.join(returned)}{tail})")
        allocated = self.allocated + sum(self.workspace.slots)
        text = f"def main({params}):\n" + "".join(f"    {x}\n" for x in body)
        return Source(
            text, tuple(self.kernels), tuple(self.steps), tuple(self.constants), allocated
        )

    def _emitted(self) -> list[Kernel]:
        """Return the kernels, in order."""
        regions = (r for r in self.plan.regions if not r.view and r.step is None)
        kernels = [self.kernel(region, self.plan) for region in regions]
        if len(kernels) < 3:
            return kernels
        from .alike import alike  # which most programs have no need of

        return alike(kernels)

    def _constant(self, value: Any) -> str:
        """Return the name of a value the driver's namespace holds."""
        self.constants.append(value)
        return f"k{len(self.constants) - 1}"

    def _name(self, atom: Any) -> str:
        if isinstance(atom, Literal):
            return self._constant(np.asarray(atom.val, atom.aval.dtype))
        return self.names[atom]

    def _fresh(self, var: Var) -> str:
        self.names[var] = f"t{len(self.names)}"
        return self.names[var]

    def _allocate(self, var: Var, *, turned: bool) -> None:
        name, dtype = self._fresh(var), var.aval.dtype
        life = self.lives.get(var)
        if life is None:
            size = var.aval.size * dtype.itemsize
            self.allocated += size
            least = self.plan.limits.lines // (_TURNED if turned else 1)
            args = f"{var.aval.shape}, {self._constant(dtype)}"
            made = f"empty({args})"
            if size >= least > 0:
                made = f"aligned({args}, {size}, {self.quarter})"
                self.quarter = (self.quarter + 1) % 4
            self.lines.append(f"{name} = {made}")
        else:
            self._keep(name, life, var.aval.shape, dtype)

    def _keep(self, name: str, life: Life, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.workspace.place(life, shape, dtype)
        self.kept[name] = None

    def _make_room(self, region: Region) -> None:
        """Name the outputs of a region, and allocate those that lie in no input."""
        flows = region.body.flows.values() if region.body is not None else ()
        turned = {c.result for f in flows if isinstance(f, Turns) for c in f.carries}
        for var in region.outputs:
            if var in region.aliases:
                self.names[var] = self.names[region.aliases[var]]
            elif var in self.unread:
                self.names[var] = self.names[self.unread[var]]
            else:
                self._allocate(var, turned=var in turned)

    def _scalar(self, value: Any) -> str:
        if value is CORES:
            return CORES
        plain = type(value) is int and abs(value) < 1 << 62
        return repr(value) if plain else self._constant(value)

    def _scratch(self, number: int, scratch: Scratch) -> str:
        """Return the name of a working array of one kernel."""
        if not self.plan.limits.workspace:
            return f"empty({scratch.length}, {scratch.code})"
        name = f"w{len(self.kept)}"
        self._keep(name, Life(number, number), (scratch.length,), _DTYPES[scratch.code])
        return name

    def _taken(self) -> list[str]:
        """Return what gets the arrays that are kept between calls."""
        if not self.kept:
            return []
        spec = self._constant((tuple(self.workspace.slots), tuple(self.workspace.views)))
        return [f"work = taken(spare, {spec})", f"{', '.join(self.kept)}, = work"]

    def _given_back(self) -> list[str]:
        small = sum(self.workspace.slots) <= self.plan.limits.workspace
        return ["spare.append(work)"] if self.kept and small else []

    def _step(self, node: Node) -> None:
        args = ", ".join(self._name(a) for a in node.ins)
        results = "".join(f"{self._fresh(v)}, " for v in node.outs)
        self.lines.append(f"# {node.eqn.primitive.name} (host)")
        self.lines.append(f"{results}{'= ' if results else ''}h{len(self.steps)}({args})")
        self.steps.append(node)

    def _view(self, region: Region) -> None:
        (source,), (var,) = region.inputs, region.outputs
        name = self.names[source]
        if source in self.borrowed:
            self.borrowed.add(var)
            made = self._fresh(var)
        else:  # nobody reads it in its old shape
            made = self.names[var] = name
        self.lines.append(f"{made} = {name}.reshape({var.aval.shape})")

    def _kernel(self, number: int, region: Region) -> None:
        kernel = next(self.emitted)
        self._make_room(region)
        called = (*kernel.inputs, *kernel.outputs)
        arrays = [self.names[v] for v in called]
        scalars = [self._scalar(v) for v in kernel.scalars]
        j = len(self.kernels)
        alone = "with one_thread: " if self._alone(kernel, region) else ""
        if region.span is None:
            scratch = [self._scratch(number, s) for s in kernel.scratch]
            self.lines.append(f"{alone}kernel{j}({', '.join([*arrays, *scratch, *scalars])})")
        else:
            scratch = "".join(f"({s.length}, {s.code}), " for s in kernel.scratch)
            group = f"({', '.join(arrays)},), ({scratch}), ({''.join(s + ', ' for s in scalars)})"
            folds = "".join(
                f"({called.index(v)}, fold{j}_{k}), " for k, v in enumerate(region.folds)
            )
            tail = f", ({folds})" if folds else ""
            self.lines.append(f"{alone}launch(kernel{j}, {region.span}, {group}{tail})")
        self.kernels.append(kernel)

    def _alone(self, kernel: Kernel, region: Region) -> bool:
        """Whether BLAS is held to the threads that call it while a kernel runs."""
        limits = self.plan.limits
        several = limits.serial < kernel.product  # of its own accord it would take some
        return several and (region.span is not None or kernel.product <= limits.alone)

    def _output(self, atom: Any) -> str:
        if isinstance(atom, Literal):
            return self._name(atom)
        name = self.names[atom]
        # An input may be the caller's own NumPy array, which may change later.
        block = self.plan.block
        return f"{name}.copy()" if atom in block.inputs and atom not in block.owned else name


def _unread(plan: Plan) -> dict[Var, Var]:
    """Return the inputs of the program's own that nobody reads, by the results that may lie there.

    A result that is asked for twice is one array, which lies in one place.
    """
    read = {v for region in plan.regions for v in region.inputs}.union(plan.block.outputs)
    found: dict[Var, Var] = {}
    for var, out in plan.block.owned.items():
        like = (out.aval.shape, out.aval.dtype) == (var.aval.shape, var.aval.dtype)
        if var not in read and isinstance(out, Var) and like:
            found[out] = var
    return found
