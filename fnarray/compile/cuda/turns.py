"""Control flow over arrays too large for one thread: the driver turns, each turn is kernels.

Nothing is copied to the host but what a branch or a loop's test asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.forms import Branch, Scan, While
from ..ir import Node
from .device import DeviceArray, Gpu

Run = Callable[..., Sequence[Any]]


def turned(node: Node, runs: Sequence[Run], where: Gpu) -> Run:
    """Return what runs a control step.

    Parameters
    ----------
    runs : sequence of callables
        What runs the graphs that it holds, on arrays of the device.
    where : Gpu
    """
    form = node.form
    if isinstance(form, Branch):

        def chosen(which: Any, *rest: Any) -> Sequence[Any]:
            return _own(runs[min(max(int(_host(which)), 0), len(runs) - 1)](*rest), rest, where)

        return chosen
    if isinstance(form, While):
        return lambda *args: _own(_while(form, runs[0], runs[1], args), args, where)
    assert isinstance(form, Scan)
    return lambda *args: _own(_scan(form, runs[0], args, node, where), args, where)


def _host(x: Any) -> np.ndarray:
    return x.on_host() if isinstance(x, DeviceArray) else np.asarray(x)


def _device(x: Any, where: Gpu) -> DeviceArray:
    return x if isinstance(x, DeviceArray) else where.put(np.asarray(x))


def _row(x: DeviceArray, t: int) -> DeviceArray:
    """Return row ``t``; a copy where it begins at no multiple of 16 bytes, as kernels expect."""
    row = x.row(t)
    return row.copy() if row.pointer % 16 else row


def _own(outs: Sequence[Any], operands: Sequence[Any], where: Gpu) -> Sequence[Any]:
    """Return results that share no array, since a later kernel may write over one of them."""
    seen = set(map(id, operands))
    own: list[Any] = []
    for x in (_device(x, where) for x in outs):
        own.append(x.copy() if id(x) in seen else x)
        seen.add(id(x))
    return own


def _while(form: While, cond: Run, body: Run, args: Sequence[Any]) -> Sequence[Any]:
    nc, nb = form.cond_nconsts, form.body_nconsts
    carry: Sequence[Any] = args[nc + nb :]
    while _host(cond(*args[:nc], *carry)[0]):
        carry = body(*args[nc : nc + nb], *carry)
    return carry


def _scan(form: Scan, body: Run, args: Sequence[Any], node: Node, where: Gpu) -> Sequence[Any]:
    nk, nc = form.num_consts, form.num_carry
    consts, carry = args[:nk], args[nk : nk + nc]
    xs = [_device(x, where) for x in args[nk + nc :]]
    ys = [where.empty(v.aval.shape, v.aval.dtype) for v in node.outs[nc:]]
    steps = range(form.length)
    for t in reversed(steps) if form.reverse else steps:
        outs = body(*consts, *carry, *(_row(x, t) for x in xs))
        carry = outs[:nc]
        for y, row in zip(ys, outs[nc:], strict=True):
            where.copy(y.row(t), _device(row, where))
    return (*carry, *ys)
