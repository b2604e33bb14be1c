"""Programs on workers: one message to each, whatever the program, and arrays that stay there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..api.export import without_rules
from ..control.spmd import shard_map_p
from ..control.tracing import Traced
from ..core.array import ArrayElsewhere, ArrayImpl, asarray
from ..core.avals import ShapedArray
from ..core.axes import Axes
from ..core.graph import ClosedGraph, Graph, Literal, eval_graph, subgraphs
from ..core.keep import remembered
from ..core.primitive import Primitive
from ..core.surgery import erased
from ..core.trace import bind, trace_graph
from ..ops.kit.calls import reshape
from ..ops.placing import constraint_p, reshard_p
from ..ops.slicing import slice_p
from ..runtime.device import Device
from ..runtime.dispatch import watchers
from ..runtime.mesh import Mesh
from ..runtime.spec import NamedSharding, PartitionSpec, Sharding
from ..transforms.graphs import recorded
from . import arrays
from .arrays import WorkerArray, put
from .devices import cluster_of
from .lineage import Handle, Node, Run
from .partition import partition
from .programs import dumped

#: Arrays of the client up to this many bytes go with the program; larger ones are put first.
_SMALL = 64 * 1024
_CONSTRAINTS = frozenset([constraint_p, reshard_p])
Spec = tuple[tuple[Any, ...], ...]


def _spec_of(sharding: NamedSharding, ndim: int) -> Spec:
    names = sharding.spec.names()
    return (*names, *((),) * (ndim - len(names)))


def _sharding(mesh: Mesh, spec: Spec) -> NamedSharding:
    entries: list[Any] = [(*s, None)[0] if len(s) < 2 else s for s in spec]
    while entries and entries[-1] is None and not mesh.explicit_axes:
        entries.pop()
    return NamedSharding(mesh, PartitionSpec(*entries))


# ---- running on blocks ---------------------------------------------------------------------------


@remembered(1024)
def _dumped(graph: ClosedGraph) -> tuple[str, bytes]:
    return dumped(without_rules(graph)[0])


def _started(
    graph: ClosedGraph,
    held: Sequence[Any],
    leaves: Sequence[Any],
    mesh: Mesh,
    in_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
    avals: Sequence[ShapedArray],
    name: str,
) -> list[WorkerArray]:
    """Start a program on blocks; return its results, of these avals as wholes."""
    devices = list(mesh.devices.flat)
    cluster = cluster_of(devices, name)
    axes: Axes = tuple(mesh.shape.items())
    ins: list[Any] = []
    alive = []  # until the program has been started
    for x, spec in zip(leaves, in_specs, strict=True):
        sharding = _sharding(mesh, spec)
        if isinstance(x, WorkerArray) or any(spec) or x.nbytes > _SMALL:
            x = put(x, sharding)
            alive.append(x)
            ins.append((x.handle.node, x.handle.k))
        else:
            ins.append(np.asarray(x))
    digest, data = _dumped(graph)
    blocks = [
        (tuple(n // prod(mesh.shape[a] for a in s) for n, s in zip(v.shape, spec, strict=True)),
         v.dtype.name)
        for v, spec in zip(avals, out_specs, strict=True)
    ]  # fmt: skip
    recipe = Run(digest, data, name, [*map(np.asarray, held), *ins], axes)
    node = Node(cluster, [d.id for d in devices], recipe, blocks)
    handles = [Handle(node, k) for k in range(node.count)]
    cluster.start(node)
    return [
        WorkerArray(h, v, _sharding(mesh, spec), range(len(devices)))
        for h, v, spec in zip(handles, avals, out_specs, strict=True)
    ]


# ---- what is written for each device -------------------------------------------------------------


def spmd(
    t: Traced,
    leaves: Sequence[Any],
    mesh: Mesh,
    ins: Sequence[tuple[PartitionSpec, int | None]],
    outs: Sequence[tuple[PartitionSpec, int | None]],
    name: str,
) -> Any:
    """Run a function that was traced on one device's part on all.

    Parameters
    ----------
    t : Traced
    leaves : sequence of arrays
    mesh : Mesh
    ins, outs : sequence of (PartitionSpec, axis or None)
        How each leaf and result is cut; the axis is of size 1 in blocks, and the function knows
        nothing of it.
    """
    operands = [*t.consts, *leaves]
    in_specs = [
        *(((),) * c.ndim for c in t.consts),
        *(
            _spec_of(NamedSharding(mesh, s), np.ndim(x))
            for x, (s, _) in zip(leaves, ins, strict=True)
        ),
    ]
    drops = (*(None for _ in t.consts), *(axis for _, axis in ins))
    adds = tuple(axis for _, axis in outs)
    closed = erased(t.closed)  # blocks are where they are, whatever their types say
    graph, held = _framed(closed, drops, adds)
    out_specs, avals = [], []
    for aval, (spec, axis) in zip(closed.out_avals, outs, strict=True):
        shape = list(aval.shape)
        if axis is not None:
            shape.insert(axis, 1)
        found = _spec_of(NamedSharding(mesh, spec), len(shape))
        out_specs.append(found)
        whole = [n * prod(mesh.shape[a] for a in s) for n, s in zip(shape, found, strict=True)]
        avals.append(aval.update(shape=tuple(whole)))
    done = _started(graph, held, operands, mesh, in_specs, out_specs, avals, name)
    return t.out_spec.unflatten(done)


@remembered(1024)
def _framed(
    closed: ClosedGraph, drops: tuple[int | None, ...], adds: tuple[int | None, ...]
) -> tuple[ClosedGraph, tuple[Any, ...]]:
    """Return a graph whose operands and results have axes of size 1 in addition."""
    if all(a is None for a in (*drops, *adds)):
        return closed, ()

    def wide(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
        return shape if axis is None else (*shape[:axis], 1, *shape[axis:])

    avals = [
        a.update(shape=wide(a.shape, axis)) for a, axis in zip(closed.in_avals, drops, strict=True)
    ]

    def fun(*xs: Any) -> list[Any]:
        inner = [reshape(x, a.shape) for x, a in zip(xs, closed.in_avals, strict=True)]
        outs = eval_graph(closed.jaxpr, closed.consts, inner, bind)
        return [reshape(o, wide(o.shape, axis)) for o, axis in zip(outs, adds, strict=True)]

    made = recorded(fun, avals, closed.jaxpr.debug_name)
    return made.graph, made.consts


def on_host(
    values: Sequence[np.ndarray],
    jaxpr: ClosedGraph,
    mesh: Mesh,
    in_names: Sequence[Sequence[Any]],
    out_names: Sequence[Sequence[Any]],
    name: str,
) -> list[np.ndarray]:
    """Run what is written for each device, called in the middle of a program of this process."""
    axes: Axes = tuple(mesh.shape.items())
    params = {
        "jaxpr": jaxpr, "mesh_axes": axes, "in_names": tuple(map(tuple, in_names)),
        "out_names": tuple(map(tuple, out_names)), "name": name, "mesh": mesh, "checked": False,
    }  # fmt: skip
    xs = [asarray(v) for v in values]
    graph = _one(shard_map_p, tuple(params.items()), tuple(x.aval for x in xs))
    specs = [
        (*((n,) for n in names), *((),) * (x.ndim - len(names)))
        for x, names in zip(xs, in_names, strict=True)
    ]
    placed = [put(x, _sharding(mesh, s)) for x, s in zip(xs, specs, strict=True)]
    return [np.asarray(x) for x in _partitioned(graph, placed, mesh, name)]


# ---- what is written for whole arrays ------------------------------------------------------------


def _partitioned(
    closed: ClosedGraph, leaves: Sequence[Any], mesh: Mesh, name: str
) -> list[WorkerArray]:
    """Run a program of whole arrays on blocks; results are cut as their types say, if they do."""
    wanted = tuple(a.cuts for a in closed.out_avals)
    closed = erased(closed, _CONSTRAINTS)
    axes: Axes = tuple(mesh.shape.items())
    placed, specs = [], []
    for x in leaves:
        spec: Spec = ((),) * x.ndim
        if isinstance(x, WorkerArray):
            x, spec = _on(x, mesh)
        placed.append(x)
        specs.append(spec)
    graph, held, out_specs = partition(
        closed, tuple(specs), axes, wanted, frozenset(mesh.explicit_axes)
    )
    return _started(graph, held, placed, mesh, specs, out_specs, closed.out_avals, name)


def _on(x: WorkerArray, mesh: Mesh) -> tuple[WorkerArray, Spec]:
    """Return an array cut along axes of a mesh, and how; as it is, if it can be said so."""
    where = x.placement
    if isinstance(where, NamedSharding):
        if where.mesh == mesh:
            return x, _spec_of(where, x.ndim)
        names = {
            n: m
            for (n, a), (m, b) in zip(where.mesh.shape.items(), mesh.shape.items(), strict=False)
            if a == b
        }
        spec = tuple(
            tuple(names.get(n) for n in ns) for ns in _spec_of(where, x.ndim)
        )  # the same cut under other names, where meshes are of one shape
        if where.mesh.devices.shape == mesh.devices.shape and all(None not in s for s in spec):
            return put(x, _sharding(mesh, spec)), spec
    spec = ((),) * x.ndim
    return put(x, _sharding(mesh, spec)), spec


def _mesh_of(graph: Graph | None, leaves: Sequence[Any], what: str) -> Mesh:
    """Return the mesh of a program: that of what is in it for each device, or of its arguments."""
    found = None if graph is None else mesh_in(graph)
    if found is not None:
        return found
    shardings: list[Sharding] = [x.placement for x in leaves if isinstance(x, WorkerArray)]
    named = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    if named:
        mesh = max(named, key=lambda m: m.size)
    else:
        (device,) = next(iter(shardings)).device_set
        mesh = Mesh([device], ("_device",))
    cluster_of([d for s in shardings for d in s.device_set], what)
    return mesh


def mesh_in(graph: Graph) -> Mesh | None:
    """Return the mesh of workers that a graph's programs for each device run on, if there are."""
    for eqn in graph.eqns:
        if (mesh := eqn.params.get("mesh")) is not None and eqn.primitive.name == "shard_map":
            return mesh
        for inner in subgraphs(eqn.params):
            if (mesh := mesh_in(inner)) is not None:
                return mesh
    return None


def caller(graph: ClosedGraph, consts: Sequence[Any], out_spec: Any) -> Callable[..., Any]:
    """Return ``call(*leaves) -> result`` for one signature of a function."""
    name = graph.jaxpr.debug_name

    def call(*leaves: Any) -> Any:
        operands = [_leaf(x) for x in (*consts, *leaves)]
        mesh = _mesh_of(graph.jaxpr, operands, name)
        for watch in watchers:
            watch(graph)
        return out_spec.unflatten(_partitioned(graph, operands, mesh, name))

    return call


def _leaf(x: Any) -> Any:
    if isinstance(x, WorkerArray):
        return x
    x = x.on_host() if isinstance(x, ArrayElsewhere) else asarray(x)
    return x if x.aval.place is None else ArrayImpl(x._data, x.aval.update(place=None))


@remembered(4096)
def _one(prim: Primitive, params: tuple[tuple[str, Any], ...], avals: Any) -> ClosedGraph:
    def one(*xs: Any) -> list[Any]:
        out = bind(prim, *xs, **dict(params))
        return list(out) if prim.multiple_results else [out]

    return trace_graph(one, list(avals), prim.name)


def _sliced(x: WorkerArray, start_indices: Any, limit_indices: Any, strides: Any) -> WorkerArray:
    """Return a slice, moved and not computed: cut as the array is where it is as large as blocks.

    A program for it would be another one for each place.
    """
    strides = strides or (1,) * x.ndim
    bounds = list(zip(start_indices, limit_indices, strides, strict=True))
    where = x.placement
    if not isinstance(where, NamedSharding):
        return arrays.sliced(x, bounds, where)
    spec = []
    for bound, n, names in zip(bounds, x.shape, _spec_of(where, x.ndim), strict=True):
        parts, size = prod(where.mesh.shape[a] for a in names), len(range(*bound))
        spec.append(names if size % parts == 0 and size * parts >= n else ())
    return arrays.sliced(x, bounds, _sharding(where.mesh, tuple(spec)))


class Platform:
    """What brings arrays and programs to workers: see `runtime.device.Platform`."""

    def __init__(self, devices: Callable[[], list[Device]]):
        self.devices = devices

    put = staticmethod(put)
    from_callback = staticmethod(arrays.from_callback)
    spmd = staticmethod(spmd)
    on_host = staticmethod(on_host)
    caller = staticmethod(caller)

    def evaluate(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run one operation on workers."""
        leaves = [_leaf(x.array() if type(x) is Literal else x) for x in args]
        if prim is slice_p and isinstance(leaves[0], WorkerArray) and not any(leaves[0].aval.cuts):
            return _sliced(leaves[0], **params)
        graph = _one(prim, tuple(params.items()), tuple(x.aval for x in leaves))
        mesh = _mesh_of(graph.jaxpr, leaves, f"lax.{prim}")
        outs = _partitioned(graph, leaves, mesh, str(prim))
        return list(outs) if prim.multiple_results else outs[0]

    def program(self, graph: ClosedGraph, args: Sequence[Any]) -> list[WorkerArray]:
        """Run the operations of a function on workers as one program."""
        leaves = [_leaf(x) for x in args]
        name = graph.jaxpr.debug_name
        return _partitioned(graph, leaves, _mesh_of(graph.jaxpr, leaves, name), name)
