"""Control flow over arrays too large for one thread: the driver turns, each turn is kernels.

Nothing is copied to the host but what a branch or a loop's test asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.forms import Branch, Scan, While
from ..cpu.library import graphs_of
from ..ir import Node
from ..turning import Rows, count, graphs_of_turns, rows_of
from .device import DeviceArray, Gpu

Run = Callable[..., Sequence[Any]]


def turned(node: Node, compiled: Callable[..., Run], where: Gpu) -> Run:
    """Return what runs a control step.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on arrays of the device.
    where : Gpu
    """
    form = node.form
    if isinstance(form, Scan):
        bodies = {n: compiled(graph) for n, graph in graphs_of_turns(node).items()}
        return lambda *args: _own(_scan(form, bodies, args, node, where), args, where)
    runs = [compiled(g) for g in graphs_of(form)]
    if isinstance(form, Branch):

        def chosen(which: Any, *rest: Any) -> Sequence[Any]:
            return _own(runs[min(max(int(_host(which)), 0), len(runs) - 1)](*rest), rest, where)

        return chosen
    assert isinstance(form, While)
    return lambda *args: _own(_while(form, runs[0], runs[1], args), args, where)


def _host(x: Any) -> np.ndarray:
    return x.on_host() if isinstance(x, DeviceArray) else np.asarray(x)


def _device(x: Any, where: Gpu) -> DeviceArray:
    return x if isinstance(x, DeviceArray) else where.put(np.asarray(x))


def _rows(x: DeviceArray, t: Rows) -> DeviceArray:
    """Return rows; a copy where they begin at no multiple of 16 bytes, as kernels expect."""
    row = x.rows(t)
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


def _scan(
    form: Scan, bodies: dict[int, Run], args: Sequence[Any], node: Node, where: Gpu
) -> Sequence[Any]:
    nk, nc = form.num_consts, form.num_carry
    consts, carry = args[:nk], args[nk : nk + nc]
    xs = [_device(x, where) for x in args[nk + nc :]]
    ys = [where.empty(v.aval.shape, v.aval.dtype) for v in node.outs[nc:]]
    for t in rows_of(form):
        outs = bodies[count(t)](*consts, *carry, *(_rows(x, t) for x in xs))
        carry = outs[:nc]
        for y, row in zip(ys, outs[nc:], strict=True):
            where.copy(y.rows(t), _device(row, where))
        if form.watch is not None:
            where.wait()  # what is told is what is done
    return (*carry, *ys)
