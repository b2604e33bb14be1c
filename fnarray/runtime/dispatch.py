"""From arrays to arrays: what a call of a compiled function costs beyond its kernels.

All that depends on the signature alone is done once, in `program`; a call looks its program up,
hands over buffers and wraps buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import config
from ..core.array import Array, ArrayImpl, asarray, aval_of, native
from ..core.avals import ShapedArray, ShapeDtypeStruct
from ..core.axes import collective_axes
from ..core.graph import ClosedGraph
from ..core.keep import remembered
from ..core.quiet import offence
from ..core.ref import Ref, check_distinct
from ..core.source import Source
from ..core.unpack import MOST_LEAVES, packer

if TYPE_CHECKING:
    from ..compile.pipeline import Executable
    from .meanwhile import Meanwhile

Buffers = Sequence[np.ndarray]
#: Calls after which code of its own that puts results together is worth its compilation, 0.5 ms.
_OFTEN = 20


@remembered(4096)
def executable(
    graph: ClosedGraph, given: tuple[tuple[int, int], ...] = (), *, shown: bool = False
) -> Executable:
    """Return the compiled form of a graph, which is known by identity.

    ``given`` are pairs (input, result): the result may lie in the memory of the input. What is
    ``shown`` names the lines of this graph, not those of an equal one.
    """
    # The compile wing takes 50 ms to import: a program that runs op by op never pays for it.
    from ..compile.pipeline import compile_graph

    for watch in watchers:
        watch(graph)
    return compile_graph(graph, given=given, shown=shown)


#: Called with every graph that is compiled: what builds them for other machines as well.
watchers: list[Callable[[ClosedGraph], None]] = []


def executable_on_gpu(graph: ClosedGraph, number: int = 0, *, shown: bool = False) -> Executable:
    """Return a graph as kernels for a GPU, and what launches them; ``shown`` as in `executable`."""
    from ..compile.cuda.target import cuda
    from ..compile.pipeline import compile_graph

    return compile_graph(graph, cuda(number), shown=shown)


def built_for(on_gpu: Executable, capability: str) -> tuple[Any, ...]:
    """Build the kernels of a program for a GPU's architecture; return them."""
    from ..compile.cuda.build import build

    return tuple(build(kernel.source, capability) for kernel in on_gpu.source.kernels)


def assembly_for(on_gpu: Executable, capability: str) -> list[str]:
    """Return the kernels of a program as PTX."""
    from ..compile.cuda.build import assembly

    return [assembly(kernel.source, capability) for kernel in on_gpu.source.kernels]


def file_for(on_gpu: Executable) -> str:
    """Return a program as a file that needs `numba-cuda` alone."""
    from ..compile.cuda.standalone import file_of

    return file_of(on_gpu.source)


def prepared(graph: ClosedGraph) -> Callable[..., tuple[np.ndarray, ...]]:
    """Compile a graph, unless it is; return what runs it."""
    return executable(graph).load()


def compiled_call(graph: ClosedGraph, args: Buffers) -> tuple[np.ndarray, ...]:
    """Run a graph on NumPy arrays: what control flow called eagerly does."""
    outs = executable(graph).run(*args)
    if config.debug_nans or config.debug_infs:
        check_finite(graph, args, outs)
    return outs


def buffer_of(x: Any, aval: ShapedArray) -> np.ndarray:
    """Return the buffer that stands for an argument; kernels only read it, so it may be shared."""
    kind = type(x)
    if kind is ArrayImpl:
        return x._data
    if kind is float or kind is int:
        return np.array(x, aval.dtype)
    if isinstance(x, np.ndarray):
        return native(x, aval.dtype)
    if kind is Ref:
        return x  # type: ignore[return-value] - its memory is taken where it is known who writes
    if isinstance(x, Array | ShapeDtypeStruct):
        return asarray(x)._data  # raises: a tracer that leaked has no buffer, nor a stand-in
    return np.asarray(x, aval.dtype)


def caller(
    graph: ClosedGraph,
    consts: Iterable[Any],
    out_spec: Any,
    *,
    wait: bool = True,
    refs: tuple[int, ...] | None = None,
) -> Callable[..., Any]:
    """Return ``call(*buffers) -> result`` for one signature of a function.

    Parameters
    ----------
    graph : ClosedGraph
        Closed over nothing; its first inputs are ``consts``.
    consts : iterable of ArrayImpl
    out_spec : optree.PyTreeSpec
        Structure of the result.
    wait : bool
        Whether the first call waits for the compiler; else it is evaluated, if it may be.
    refs : tuple of int, optional
        Where some inputs are Refs: those that are written, whose values are the last results.
    """
    if refs is not None:
        return _caller_with_refs(graph, tuple(consts), out_spec, refs)
    exe = executable(graph) if wait else _meanwhile(graph)
    held = tuple(buffer_of(asarray(c), aval_of(c)) for c in consts)
    avals = graph.out_avals
    # `exe.run` is read at each call: the first run replaces it.
    if config.debug_nans or config.debug_infs:

        def run(*data: np.ndarray) -> tuple[np.ndarray, ...]:
            outs = exe.run(*held, *data)
            check_finite(graph, (*held, *data), outs)
            return outs

    elif held or not wait:

        def run(*data: np.ndarray) -> tuple[np.ndarray, ...]:
            return exe.run(*held, *data)

    else:
        run = executable(graph).load()
    return returning(run, avals, out_spec)


def _caller_with_refs(
    graph: ClosedGraph, consts: tuple[Any, ...], out_spec: Any, written: tuple[int, ...]
) -> Callable[..., Any]:
    """Return a call that computes in the memory of the Refs that it writes."""
    n = len(graph.out_avals) - len(written)
    exe = executable(graph, tuple((k, n + j) for j, k in enumerate(written)))
    avals = graph.out_avals[:n]

    def call(*data: Any) -> Any:
        operands = [*consts, *data]
        check_distinct(graph.jaxpr.debug_name, "jit", operands, len(consts))
        # A Ref that is only read first: what is taken for writing may be a copy of its own.
        buffers = [
            (x.taken() if k in written else x.buffer()) if type(x) is Ref else buffer_of(x, a)
            for k, (x, a) in enumerate(zip(operands, graph.in_avals, strict=True))
        ]
        outs = exe.run(*buffers)
        if config.debug_nans or config.debug_infs:
            check_finite(graph, buffers, outs)
        results = outs[:n]
        for k, left in zip(written, outs[n:], strict=True):
            operands[k].give(left, shared=any(np.may_share_memory(left, x) for x in results))
        return out_spec.unflatten(map(ArrayImpl, results, avals))

    return call


def _meanwhile(graph: ClosedGraph) -> Executable | Meanwhile:
    """Return what evaluates a graph while it is compiled; its compiled form where it must wait."""
    from .meanwhile import Meanwhile, can_evaluate  # asked for by a setting

    if not can_evaluate(graph.jaxpr):
        return executable(graph)
    return Meanwhile(graph, lambda: executable(graph).load())


def returning(
    run: Callable[..., Sequence[np.ndarray]], avals: Sequence[ShapedArray], out_spec: Any
) -> Callable[..., Any]:
    """Return a call whose results are arrays, in their structure."""
    if out_spec.is_leaf() and len(avals) == 1:
        (aval,) = avals

        def call(*data: np.ndarray) -> Any:
            (out,) = run(*data)
            return ArrayImpl(out, aval)

        return call
    unflatten = out_spec.unflatten
    if len(avals) > MOST_LEAVES:
        return lambda *data: unflatten(map(ArrayImpl, run(*data), avals))
    pack: Callable[[Sequence[np.ndarray]], Any] | None = None
    left = _OFTEN

    def call_many(*data: np.ndarray) -> Any:
        nonlocal pack, left
        if pack is not None:
            return pack(run(*data))
        left -= 1
        if not left:
            pack = packer(out_spec, avals)
        return unflatten(map(ArrayImpl, run(*data), avals))

    return call_many


# ---- checks of results ---------------------------------------------------------------------------


def check_finite(graph: ClosedGraph, args: Buffers, outs: Buffers) -> None:
    """Raise `FloatingPointError` naming the first operation that made a NaN or an infinity."""
    if not any(map(offence, outs)):
        return
    source, prim, what = _first_offender(graph, args) or (None, None, "nan")
    where = f"in {prim} at {source}" if prim else "in the compiled form, not op by op"
    raise FloatingPointError(f"invalid value ({what}) encountered {where}")


def _first_offender(graph: ClosedGraph, args: Buffers) -> tuple[Source, Any, str] | None:
    """Evaluate op by op; return where and how the first bad value arose, None if not known."""
    if "io" in graph.effects:  # must not happen twice
        return None
    if collective_axes(graph.jaxpr):  # the other shards would not come again
        return None
    from .stepwise import stepwise

    with np.errstate(all="ignore"):
        for eqn, outs in stepwise(graph, args):
            for out in outs:
                if what := offence(out):
                    return eqn.source, eqn.primitive, what
    return None
