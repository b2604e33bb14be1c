"""NVIDIA GPUs as a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.forms import Reduce
from ...core.graph import ClosedGraph
from ..cpu.library import graphs_of, step_of
from ..cpu.namespace import CODES
from ..emit.source import KernelSource
from ..ir import Node
from ..schedule.nests import plain_order
from ..schedule.select import CONTROL
from ..target import Limits, LoopAxis, Target
from .build import key
from .device import DeviceArray, gpu
from .driver import emit
from .library import is_step
from .turns import Run, turned

#: An item is a kernel of its own, since no barrier spans a grid; lanes that end after different
#: numbers of turns have a thread each; a thread reads as many arrays as it likes; neighbours that
#: are folded are other threads; and the device keeps memory that is given back.
LIMITS = Limits(
    kernel=1,
    parallel=0,
    lanes=1,
    streams=1 << 10,
    abreast=0,
    workspace=0,
    shared=1 << 62,
    split=1 << 62,
)


def loop_order(node: Node, fold: Reduce | None) -> Sequence[LoopAxis]:
    """Let folds run inside: their accumulators are registers, and neighbours are other threads."""
    return plain_order(node, fold)


def _kernel(source: KernelSource) -> Callable[..., None]:
    return gpu().kernel(source)


def _launch(kernel: Callable[..., None], blocks: int, lanes: int, *args: Any) -> None:
    kernel(blocks, lanes, *(gpu().put(a) if isinstance(a, np.ndarray) else a for a in args))


def _step(node: Node, limits: Limits, compiled: Callable[[ClosedGraph], Run]) -> Run:
    """Return a step: control flow that the driver turns, or what the host computes.

    The text of the driver says so of each: operands of the second come here, results go back.
    """
    form: Any = node.form
    if isinstance(form, CONTROL):
        return turned(node, [compiled(g) for g in graphs_of(form)])
    step = step_of(node, limits, compiled)
    return lambda *arrays: [gpu().put(x) for x in step(*map(_on_host, arrays))]


def _on_host(x: Any) -> np.ndarray:
    return x.on_host() if isinstance(x, DeviceArray) else x


def _names(limits: Limits) -> dict[str, Any]:
    return {"empty": lambda shape, dtype: gpu().empty(shape, dtype), "launch": _launch, **CODES}


CUDA = Target(
    name="cuda",
    limits=LIMITS,
    loop_order=loop_order,
    is_step=is_step,
    emit=emit,
    build=_kernel,
    step=_step,
    key=key,
    names=_names,
)
