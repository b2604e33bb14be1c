"""NVIDIA GPUs as targets: one for each device, which differ in where they allocate and launch."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...config import config
from ...core.forms import HOST, Library, Reduce
from ...errors import JaxRuntimeError
from ..cpu.library import step_of
from ..cpu.namespace import CODES
from ..emit.source import KernelSource
from ..ir import Node
from ..schedule.nests import plain_order
from ..schedule.select import CONTROL
from ..target import Limits, LoopAxis, Target, one_by_one
from . import vendor
from .build import key
from .collectives import exchanged
from .device import DeviceArray, Gpu, gpu
from .driver import emit
from .graphs import Replayed
from .library import is_step, moved, why_step
from .recording import NotRecorded, recording
from .shards import sharded
from .turns import Run, turned

_log: Final = logging.getLogger("fnarray.compile")

#: An item is a kernel of its own, since no barrier spans a grid; lanes that end after different
#: numbers of turns have a thread each; a thread reads as many arrays as it likes; neighbours that
#: are folded are other threads; and the device keeps memory that is given back. A block for a row,
#: or for some columns, multiplies by a vector: a tile's lanes would have nothing to do. A choice
#: costs an instruction, and an array that is laid out goes through memory twice.
LIMITS = Limits(
    kernel=1,
    numbers=1,
    library=1 << 14,
    narrow=8,
    thin=0,
    parallel=0,
    lanes=1,
    streams=1 << 10,
    abreast=0,
    vectors=0,
    views=False,
    pieces=3,
    spelled=16,
    workspace=0,
    shared=1 << 62,
    strips=1 << 62,
    split=1 << 62,
)


def loop_order(node: Node, fold: Reduce | None) -> Sequence[LoopAxis]:
    """Let folds run inside: their accumulators are registers, and neighbours are other threads."""
    return plain_order(node, fold)


def _step(
    node: Node, limits: Limits, compiled: Callable[..., Run], where: Callable[[], Gpu]
) -> Run:
    """Return a step: control flow that the driver turns, a library's, or what the host computes.

    The text of the driver says so of each: operands of the last come here, results go back.
    """
    form: Any = node.form
    if isinstance(form, CONTROL):
        return turned(node, compiled, where())
    if isinstance(form, Library) and form.op.module == "shards":
        return sharded(node, lambda graph, k: compiled(graph, cuda(k)), where())
    if vendor.covers(node):
        return vendor.step_of(node, where())
    by_host = _through_host(node, step_of(node, limits, compiled), where())
    if node.eqn.primitive.collective is not None:
        return exchanged(node, lambda graph, k: compiled(graph, cuda(k)), by_host, where())
    # Else it is what the user asks of the host: a callback.
    if node.form.op is not HOST.op and not node.eqn.primitive.effects:
        _tell(node)
    return by_host


def _through_host(node: Node, step: Run, where: Gpu) -> Run:
    """Return a step of the host's, between copies of its operands and its results."""

    def call(*arrays: Any) -> list[Any]:
        if recording():
            raise NotRecorded
        return [where.put(x) for x in step(*map(_on_host, arrays))]

    return call


def _tell(node: Node) -> None:
    """Say, once for each program, that a step leaves the device.

    Raises
    ------
    JaxRuntimeError
        The setting ``transfer_guard`` refuses that.
    """
    name, source = node.eqn.primitive.name, node.eqn.source
    text = (
        f"{name} at {source} has no kernel on a GPU: in each call {moved(node):,} bytes are "
        "copied to the host and back."
    )
    guard = config.transfer_guard
    if guard in ("disallow", "disallow_explicit"):
        raise JaxRuntimeError(
            f"{text} The setting transfer_guard refuses that. Run this part on the cpu, or install "
            "CuPy, which has it, if that is missing."
        )
    if guard in ("log", "log_explicit"):
        _log.warning(text)
    elif guard != "allow":
        advice = "" if vendor.installed() else "CuPy has many of these (fnarray[cuda-libraries]). "
        warnings.warn(f"{text} {advice}fnarray.transfer_guard('allow') accepts it.", UserWarning, 2)


def _on_host(x: Any) -> np.ndarray:
    return x.on_host() if isinstance(x, DeviceArray) else x


def _names(limits: Limits, where: Callable[[], Gpu]) -> dict[str, Any]:
    there = where()

    def launch(kernel: Callable[..., None], blocks: int, lanes: int, *args: Any) -> None:
        kernel(blocks, lanes, *(there.put(a) if isinstance(a, np.ndarray) else a for a in args))

    return {"empty": there.empty, "launch": launch, **CODES}


@functools.cache
def cuda(number: int = 0) -> Target:
    """Return the target that a GPU is."""
    where = functools.partial(gpu, number)

    def build(source: KernelSource) -> Callable[..., None]:
        return where().kernel(source)

    return Target(
        name=f"cuda:{number}",
        limits=LIMITS,
        loop_order=loop_order,
        is_step=is_step,
        emit=emit,
        build=one_by_one(build),
        step=functools.partial(_step, where=where),
        key=key,
        names=functools.partial(_names, where=where),
        finish=functools.partial(Replayed, where=where),
        why_step=why_step,
    )


CUDA = cuda()
