"""The driver of a program on a GPU: allocations, launches with their grids, steps."""

from __future__ import annotations

from collections.abc import Sequence

from ..emit.driver import Driver
from ..emit.source import Kernel, Source
from ..ir import Node
from ..schedule.plan import Plan, Region
from .calls import Launch
from .kernel import emit_launches
from .library import who


def emit(plan: Plan) -> Source:
    """Write a plan as text."""
    return _Driver(plan, emit_launches).write()


class _Driver(Driver):
    def _step(self, node: Node) -> None:
        super()._step(node)
        self.lines[-2] = f"# {node.eqn.primitive.name} ({who(node)})"

    def _emitted(self) -> list[Kernel]:
        """Return nothing: what a region is launched as is emitted with its launches."""
        return []

    def _kernel(self, number: int, region: Region) -> None:
        launches: Sequence[Launch] = self.kernel(region, self.plan)
        self._make_room(region)
        parts = launches[0].parts
        names = [f"p{len(self.kernels)}_{k}" for k in range(len(parts))]
        for name, (code, length) in zip(names, parts, strict=True):
            self.lines.append(f"{name} = empty({length}, {code})")
        for launch in launches:
            self._launch(launch, names)
        self.lines.extend(f"{name} = None" for name in names)

    def _launch(self, launch: Launch, parts: list[str]) -> None:
        arrays = [self.names[v] for v in launch.arrays]
        scratch = [f"empty({length}, {code})" for code, length in launch.scratch]
        scalars = [self._scalar(v) for v in launch.scalars]
        args = ", ".join((*arrays, *parts, *scratch, *scalars))
        grid = launch.grid
        self.lines.append(f"launch(kernel{len(self.kernels)}, {grid.blocks}, {grid.lanes}, {args})")
        self.kernels.append(Kernel(launch.source, launch.arrays, (), (), launch.scalars))
