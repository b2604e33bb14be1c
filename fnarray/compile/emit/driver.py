"""The driver: a plain-Python function that allocates, and calls kernels and library steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.forms import Call, Contract, Scan
from ...core.graph import ClosedGraph, Graph, Literal, Var, subgraphs
from ...core.quiet import quietly
from ..blas import matmul
from ..schedule.fuse import Tree
from ..schedule.nests import Nest, Step
from ..schedule.plan import Item, Plan
from ..schedule.roots import is_library, iterations
from ..simplify import Node
from .blocks import CONTROL
from .hostloop import Run, form_is_native, host_control
from .kernel import Kernel, emit_kernel, is_foldable

#: Below this many element operations a kernel runs on the calling thread: a launch on the pool
#: costs about 20 us, which is the time of some 50,000 vectorised operations.
PARALLEL_WORK = 1 << 17


@dataclass(frozen=True, slots=True)
class Program:
    """A driver's source, the kernels, host functions and constants it names."""

    text: str
    kernels: tuple[Kernel, ...]
    hosts: tuple[Run, ...]
    constants: tuple[Any, ...]
    temp_bytes: int


@dataclass(slots=True)
class _Segment:
    items: list[Item] = field(default_factory=list)
    host: bool = False
    parallel: bool = False


def is_host(item: Item) -> bool:
    """Whether an item is a step the driver takes itself."""
    if not isinstance(item, Step):
        return False
    form = item.node.form
    if isinstance(form, Call):
        return form.host is not None or form.function is None
    if isinstance(form, CONTROL):
        return not form_is_native(form)
    return isinstance(form, Contract) and is_library(item.node, False)


def work(item: Item) -> int:
    """Estimate an item's element operations."""
    members = item.members if isinstance(item, Tree) else [item]
    return sum(iterations(m.node) * 4 for m in members)


def is_parallel(item: Item) -> bool:
    """Whether an item's outermost loop is worth running in chunks."""
    if isinstance(item, Step):
        form = item.node.form
        return isinstance(form, Scan) and form.num_carry == 0 and row_work(form) >= PARALLEL_WORK
    if not isinstance(item, Tree) or work(item) < PARALLEL_WORK:
        return False
    return all(m.parallel_depth > 0 or is_foldable(m) for m in item.members)


#: Turns that a ``while`` is taken to have.
_TURNS = 16


def row_work(form: Scan) -> int:
    """Estimate the element operations of a loop over independent rows."""

    def of(graph: Graph) -> int:
        total = 0
        for eqn in graph.eqns:
            total += max((v.aval.size for v in eqn.outvars), default=1)
            turns = eqn.params.get("length", _TURNS if "cond_jaxpr" in eqn.params else 1)
            total += turns * sum(map(of, subgraphs(eqn.params)))
        return total

    return form.length * of(form.body.jaxpr)


#: A kernel is closed once it holds this many operations: LLVM's time grows faster than its
#: function does (300 operations and their gradient in one kernel took 15 s to compile).
LONG = 100


def length(item: Item, plan: Plan) -> int:
    """Count the operations of an item, those written into its loops included."""
    stack = [m.node for m in _nodes([item])]
    seen = set(stack)
    while stack:
        for atom in stack.pop().ins:
            node = plan.inlined.get(atom) if isinstance(atom, Var) else None
            if node is not None and node not in seen:
                seen.add(node)
                stack.append(node)
    return len(seen)


def segments_of(plan: Plan) -> list[_Segment]:
    """Split a plan into kernels and host steps."""
    segments: list[_Segment] = []
    open_length = 0
    for item in plan.items:
        if is_host(item):
            segments.append(_Segment([item], host=True))
        elif is_parallel(item):
            segments.append(_Segment([item], parallel=True))
        elif segments and not (segments[-1].host or segments[-1].parallel) and open_length < LONG:
            segments[-1].items.append(item)
            open_length += length(item, plan)
        else:
            segments.append(_Segment([item]))
            open_length = length(item, plan)
    return segments


def _nodes(items: list[Item]) -> list[Nest | Step]:
    out: list[Nest | Step] = []
    for item in items:
        out.extend(item.members if isinstance(item, Tree) else [item])
    return out


def host_function(node: Node, compiled: Callable[[ClosedGraph], Run]) -> Run:
    """Return what the driver calls for a host step; results are contiguous and as declared."""
    if isinstance(node.form, CONTROL):
        return host_control(node, compiled)
    form, prim, params = node.form, node.eqn.primitive, node.eqn.params
    own = form.host if isinstance(form, Call) else None
    if isinstance(form, Contract) and form.host is not None:
        contract, dtype = form.host, node.out.aval.dtype

        def product(lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, ...]:
            return (np.asarray(quietly(contract, lhs, rhs, matmul), dtype, order="C"),)

        return product
    dtypes = [v.aval.dtype for v in node.outs]

    def step(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        if own is not None:
            outs = quietly(own, *arrays)
        elif prim.quiet:
            outs = quietly(prim.eval, *arrays, **params)
        else:
            outs = prim.eval(*arrays, **params)
        if own is None and not prim.multiple_results:
            outs = (outs,)
        return tuple(np.asarray(o, d, order="C") for o, d in zip(outs, dtypes, strict=True))

    return step


class DriverWriter:
    """Writes the driver of a plan."""

    def __init__(self, plan: Plan, sizes: frozenset[int], compiled: Callable[[ClosedGraph], Run]):
        self.plan = plan
        self.sizes = sizes
        self.compiled = compiled
        self.names: dict[Var, str] = {}
        self.lines: list[str] = []
        self.kernels: list[Kernel] = []
        self.hosts: list[Run] = []
        self.constants: list[Any] = []
        self.temp_bytes = 0

    def write(self) -> Program:
        """Return the program."""
        plan = self.plan
        params = []
        for k, var in enumerate(plan.block.inputs):
            self.names[var] = f"a{k}"
            params.append(f"a{k}")
        segments = segments_of(plan)
        outputs = {a for a in plan.block.outputs if isinstance(a, Var)}
        for k, segment in enumerate(segments):
            later = {v for s in segments[k + 1 :] for m in _nodes(s.items) for v in m.reads}
            if segment.host:
                self._host(_nodes(segment.items)[0].node)
            else:
                self._kernel(segment, later | outputs)
            self._release(segment, later | outputs)
        returned = [self._output(a) for a in plan.block.outputs]
        tail = "," if len(returned) == 1 else ""
        body = [*self.lines, f"return ({', '.join(returned)}{tail})"]
        text = f"def main({', '.join(params)}):\n" + "".join(f"    {x}\n" for x in body)
        return Program(
            text, tuple(self.kernels), tuple(self.hosts), tuple(self.constants), self.temp_bytes
        )

    def constant(self, value: Any) -> str:
        """Return the name of a value the driver's namespace holds."""
        self.constants.append(value)
        return f"k{len(self.constants) - 1}"

    def _name(self, atom: Any) -> str:
        if isinstance(atom, Literal):
            value = np.asarray(atom.val, atom.aval.dtype)
            return self.constant(value)
        return self.names[atom]

    def _allocate(self, var: Var) -> None:
        name = f"t{len(self.names)}"
        self.names[var] = name
        dtype = var.aval.dtype
        self.temp_bytes += var.aval.size * dtype.itemsize
        spelled = self.constant(dtype)
        self.lines.append(f"{name} = empty({var.aval.shape}, {spelled})")

    def _host(self, node: Node) -> None:
        for atom in node.ins:
            if isinstance(atom, Var) and atom not in self.names:
                raise AssertionError(f"host step {node.eqn.primitive} reads a value not stored")
        args = ", ".join(self._name(a) for a in node.ins)
        outs = []
        for var in node.outs:
            self.names[var] = f"t{len(self.names)}"
            outs.append(self.names[var])
        self.lines.append(f"# {node.eqn.primitive.name} (host)")
        results = "".join(f"{name}, " for name in outs)
        self.lines.append(f"{results}{'= ' if outs else ''}h{len(self.hosts)}({args})")
        self.hosts.append(host_function(node, self.compiled))

    def _kernel(self, segment: _Segment, needed: set[Var]) -> None:
        nodes = _nodes(segment.items)
        made = [v for m in nodes for v in m.node.outs]
        inside = set(made)
        reads = dict.fromkeys(v for m in nodes for v in m.reads if v not in inside)
        outputs = [v for v in made if v in needed]
        aliases = {}
        for var in outputs:
            donor = self.plan.donated.get(var)
            if donor in reads and donor not in self.plan.block.inputs:
                aliases[var] = donor
        kernel = emit_kernel(
            self.plan, segment.items, list(reads), outputs, aliases, self.sizes,
            parallel=segment.parallel,
        )  # fmt: skip
        for var in outputs:
            if var in aliases:
                self.names[var] = self.names[aliases[var]]
            else:
                self._allocate(var)
        arrays = [self.names[v] for v in (*kernel.inputs, *kernel.outputs)]
        scalars = [
            repr(v) if type(v) is int and abs(v) < 1 << 62 else self.constant(v)
            for v in kernel.scalars
        ]
        j = len(self.kernels)
        if kernel.extent is None:
            scratch = [f"empty({s.length}, {s.code})" for s in kernel.scratch]
            self.lines.append(f"kernel{j}({', '.join([*arrays, *scratch, *scalars])})")
        else:
            scratch = "".join(f"({s.length}, {s.code}), " for s in kernel.scratch)
            group = f"({', '.join(arrays)},), ({scratch}), ({''.join(s + ', ' for s in scalars)})"
            at = {v: k for k, v in enumerate((*kernel.inputs, *kernel.outputs))}
            folds = "".join(f"({at[v]}, fold{j}_{k}), " for k, (v, _) in enumerate(kernel.folds))
            tail = f", ({folds})" if folds else ""
            self.lines.append(f"launch(kernel{j}, {kernel.extent}, {group}{tail})")
        self.kernels.append(kernel)

    def _release(self, segment: _Segment, needed: set[Var]) -> None:
        """Drop temporaries that nobody reads any more."""
        held = {self.names[v] for v in needed if v in self.names}
        mine = dict.fromkeys(v for m in _nodes(segment.items) for v in m.reads)
        for var in mine:
            name = self.names.get(var)
            if name is not None and name.startswith("t") and name not in held:
                self.lines.append(f"{name} = None")

    def _output(self, atom: Any) -> str:
        if isinstance(atom, Literal):
            return self._name(atom)
        name = self.names[atom]
        # An input may be the caller's own NumPy array, which may change later.
        return f"{name}.copy()" if atom in self.plan.block.inputs else name


def emit_driver(
    plan: Plan, sizes: frozenset[int], compiled: Callable[[ClosedGraph], Run]
) -> Program:
    """Return the program of a top-level plan.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on NumPy arrays, for control flow the driver steps through.
    """
    return DriverWriter(plan, sizes, compiled).write()
