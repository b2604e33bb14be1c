"""The processor as a target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...core.forms import Contract, Reduce
from ..emit.driver import emit
from ..ir import Node
from ..schedule.nests import folds_in_memory, plain_order
from ..target import LoopAxis, Target
from . import build
from .kernel import emit_kernel
from .key import key
from .library import is_step, step_of
from .names import LIMITS, names


def loop_order(node: Node, fold: Reduce | None) -> Sequence[LoopAxis]:
    """Let the innermost loop run along memory, which is what vector units read fastest."""
    plain = plain_order(node, fold)
    shape = node.out.aval.shape
    if fold is None or not folds_in_memory(node, fold) or not shape or shape[-1] < 2:
        return plain
    last = len(shape) - 1
    if fold.axes is not None:
        rank = len(shape) + len(fold.extents)
        if rank - 1 in fold.axes:
            return plain
        # Folding a short leading axis element by element in memory costs less than striding.
        kept, folded = iter(range(len(shape))), iter(range(len(fold.extents)))
        return [("r", next(folded)) if a in fold.axes else ("o", next(kept)) for a in range(rank)]
    if isinstance(node.form, Contract):
        inner = node.ins[1].aval.ndim - 1
        if inner not in (*node.form.rhs_contract, *node.form.rhs_batch):
            return [*plain[:last], *plain[last + 1 :], plain[last]]
    return plain


def _sums(dtype: np.dtype) -> bool:
    from .sums import is_summed  # which few programs need

    return is_summed(dtype)


CPU = Target(
    name="cpu",
    limits=LIMITS,
    loop_order=loop_order,
    is_step=is_step,
    emit=partial(emit, emit_kernel),
    build=build.load_all,
    step=step_of,
    key=key,
    names=names,
    sums=_sums,
)
