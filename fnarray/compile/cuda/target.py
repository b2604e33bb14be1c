"""NVIDIA GPUs as a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.forms import Reduce
from ..ir import Node
from ..schedule.nests import plain_order
from ..target import Limits, LoopAxis

#: An item is a kernel of its own, since no barrier spans a grid; lanes that end after different
#: numbers of turns have a thread each; and a thread reads as many arrays as it likes.
LIMITS = Limits(kernel=1, parallel=0, lanes=1, streams=1 << 10)


def loop_order(node: Node, fold: Reduce | None) -> Sequence[LoopAxis]:
    """Let folds run inside: their accumulators are registers, and neighbours are other threads."""
    return plain_order(node, fold)


def no_region(*_: Any) -> Any:
    """Refuse to emit a region as one kernel: the driver writes its kernels and launches."""
    raise NotImplementedError("compile.cuda: a region is written by the driver, as its launches.")
