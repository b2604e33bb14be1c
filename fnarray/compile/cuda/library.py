"""What of a program is no kernel of a GPU's: steps that the driver takes."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from ...core.forms import Contract, Library, Scan
from ...core.graph import Eqn
from ..cpu.library import graphs_of
from ..ir import Node
from ..schedule.select import CONTROL, is_library
from ..target import Limits
from . import factors, vendor
from .calls import runs_here
from .lanes import lane_shape

#: Loops and branches whose values are all up to this many elements run inside a kernel, on one
#: thread; what holds larger ones is stepped through by the driver, each operation by all threads.
ALONE: Final = 1 << 12

#: Families of `fnarray_kernels` that take working arrays from the heap, which kernels have none of.
_AWAY: Final = frozenset({"sort", "linalg", "lapack", "exponential", "fft"})


def is_step(node: Node, limits: Limits) -> bool:
    """Whether the driver takes a node: a library, or control flow over large arrays."""
    form = node.form
    if isinstance(form, Library):
        here = runs_here(node) or factors.runs_here(node)
        return not here or vendor.is_better(node)
    if isinstance(form, CONTROL):
        large = _largest(form) > ALONE and lane_shape(node) is None
        return large or not _is_native(form, limits)
    return is_library(node, limits) and vendor.covers(node)


def who(node: Node) -> str:
    """Return who takes a step, as the driver's text says it."""
    if isinstance(node.form, CONTROL):
        return "turned by the driver"
    if node.eqn.primitive.collective is not None:
        return "shards meet: from device to device"
    if vendor.covers(node):
        return f"library: {vendor.name_of(node)}"
    return "host: operands are copied there, results back"


def moved(node: Node) -> int:
    """Return the bytes of a step's operands and results."""
    return sum(a.aval.size * a.aval.dtype.itemsize for a in (*node.ins, *node.outs))


def why_step(node: Node) -> str:
    """Say, for a report, who computes a step, and what of it leaves the device."""
    taken = who(node)
    if isinstance(node.form, CONTROL):
        return ""
    if not taken.startswith("host"):
        return f"no kernel does it as well ({taken})"
    return (
        f"it has no kernel on a GPU: the host computes it, and in each call {moved(node):,} bytes "
        "are copied there and back"
    )


def _is_native(form: Any, limits: Limits) -> bool:
    """Whether a form, with every step of the graphs it holds, can run inside a kernel."""
    if isinstance(form, Library):
        return form.kernel and form.op.module not in _AWAY
    if isinstance(form, Scan) and form.watch is not None:
        return False  # the host looks at the clock, between parts that are kernels
    eqns = [eqn for g in graphs_of(form) for eqn in g.jaxpr.eqns]
    return all(_is_small(e, limits) and _is_native(e.form(), limits) for e in eqns)


def _is_small(eqn: Eqn, limits: Limits) -> bool:
    """Whether an equation is no product of matrices that is a library's."""
    form = eqn.form()
    if not isinstance(form, Contract):
        return True
    lhs = eqn.invars[0].aval.shape
    terms = prod(lhs[a] for a in form.lhs_contract)
    return eqn.outvars[0].aval.size * terms <= limits.library


def _largest(form: Any) -> int:
    """Return the elements of the largest value that a thread would work on alone."""
    sizes = [0]
    for graph in graphs_of(form):
        for eqn in graph.jaxpr.eqns:
            sizes += [prod(v.aval.shape) for v in eqn.outvars]
            sizes.append(_largest(eqn.form()))
    if not isinstance(form, Scan):
        sizes += [prod(a.shape) for g in graphs_of(form) for a in g.jaxpr.in_avals]
    return max(sizes)
