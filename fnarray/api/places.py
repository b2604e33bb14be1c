"""Where results are, from where operands are.

Operations compute as ever; the word about a result follows from those about the operands, by the
rules of ``ops.cutting``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..core import tree
from ..core.array import ArrayElsewhere, ArrayImpl, asarray
from ..core.avals import NO_SUMS, Cuts, ShapedArray
from ..core.forms import Branch, Inline, Scan, While
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var, subgraphs
from ..core.memo import recall, remember
from ..core.primitive import Primitive
from ..core.quiet import quietly
from ..core.source import is_told, user_source
from ..core.surgery import says_places
from ..core.trace import state, wrap
from ..ops.cutting import RULES, Case, cut_results, result_types
from ..ops.placing import constraint_p, inspect_p, reshard_p
from ..runtime.mesh import AxisType, Mesh, current_mesh, mesh_for
from ..runtime.placed import PlacedArray, placement_of
from ..runtime.spec import NamedSharding, PartitionSpec, Sharding

__all__ = ["check_together", "evaluate", "of_results", "of_type", "placing"]


def check_together(what: str, placements: Sequence[Sharding | None], avals: Sequence[Any]) -> None:
    """Raise unless all operands that are said to be somewhere are on the same devices."""
    first: tuple[int, Any] | None = None
    for k, where in enumerate(placements):
        if where is None:
            continue
        here = where._assignment()
        if first is None:
            first = k, here
        elif first[1] != here:
            (i, there), ids = first, [d.id for d in here]
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got argument {i} of {what} "
                f"with shape {avals[i].str_short()} and with device ids {[d.id for d in there]} on "
                f"platform CPU and argument {k} with shape {avals[k].str_short()} and with device "
                f"ids {ids} on platform CPU, at {user_source()}. Bring them together with "
                "fnarray.device_put."
            )


def _mesh_among(placements: Sequence[Sharding | None]) -> Mesh | None:
    found = [s.mesh for s in placements if isinstance(s, NamedSharding)]
    return found[0] if found else None


def cuts_of(sharding: Any, rank: int) -> Cuts:
    """Return the axes of the mesh that each axis of an array is cut along, whatever their type."""
    names = sharding.spec.names() if isinstance(sharding, NamedSharding) else ()
    return (*names, *((),) * (rank - len(names)))


def _sharding(mesh: Mesh, aval: ShapedArray, cuts: Cuts) -> NamedSharding:
    """Return a result's sharding: what its type says, and the cuts along other axes."""
    explicit = set(mesh.explicit_axes)
    spec = [
        (*typed, *(n for n in names if n not in explicit and n not in typed))
        for typed, names in zip(aval.cuts, cuts, strict=True)
    ]
    unreduced, reduced = aval.sums if aval.place is not None and aval.place.mesh else NO_SUMS
    if not explicit:  # as a compiler says it, which cannot tell the rank
        while spec and not spec[-1]:
            spec.pop()
    cut = (names or None for names in spec)
    return NamedSharding(mesh, PartitionSpec(*cut, unreduced=unreduced, reduced=reduced))


def _known_one(sharding: NamedSharding, rank: int, given: Sequence[Sharding | None]) -> Sharding:
    """Return an operand's sharding that says the same, if there is one: it is kept as it was."""
    if not sharding.mesh.explicit_axes:
        for other in given:
            if not isinstance(other, NamedSharding) or other.mesh != sharding.mesh:
                continue
            if len(other.spec) <= rank and other.is_equivalent_to(sharding, rank):
                return other
    return sharding


def _cut_results(
    prim: Primitive,
    params: dict[str, Any],
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    cuts: Sequence[Cuts],
    sizes: dict[Hashable, int],
) -> Sequence[Cuts]:
    """Return how results are cut along axes of any type."""
    if prim is reshard_p:
        where = params["sharding"]
        return [params["cuts"] if where is None else cuts_of(where, outs[0].ndim)]
    if prim is constraint_p:
        return [cuts_of(params["sharding"], outs[0].ndim)]
    if prim is inspect_p:
        mesh = mesh_for(tuple(sizes.items()))
        params["callback"](_sharding(mesh, ins[0], cuts[0]))
        return []
    if prim.typed:
        return list(cuts)
    if prim.name not in RULES:
        variables = [Var(a) for a in ins]
        form = Eqn(prim, tuple(variables), tuple(map(Var, outs)), params).form()
        found = _through(form, cuts, sizes)
        if found is not None:
            return found
        if prim.name == "shard_map":
            return [((),) * a.ndim for a in outs]
    plain = [a.update(place=None) for a in ins]
    return cut_results(Case(prim.name, list(cuts), plain, outs, params, sizes, False))


def _through(form: Any, cuts: Sequence[Cuts], sizes: dict[Hashable, int]) -> list[Cuts] | None:
    """Return how results of a graph that an equation holds are cut; None where it holds none."""
    match form:
        case Inline():
            return _graph_cuts(form.graph, cuts, sizes)
        case Branch():
            return _graph_cuts(form.branches[0], cuts[1:], sizes)
        case While():
            return _graph_cuts(form.body, cuts[form.cond_nconsts :], sizes)
        case Scan():
            whole = form.num_consts + form.num_carry
            rows = [names[1:] for names in cuts[whole:]]
            found = _graph_cuts(form.body, [*cuts[:whole], *rows], sizes)
            n = form.num_carry
            return [*found[:n], *(((), *names) for names in found[n:])]
    return None


def _graph_cuts(
    closed: ClosedGraph, cuts: Sequence[Cuts], sizes: dict[Hashable, int]
) -> list[Cuts]:
    graph = closed.jaxpr
    known: dict[Var, Cuts] = {
        v: cuts_of(placement_of(c), v.aval.ndim)
        for v, c in zip(graph.constvars, closed.consts, strict=True)
    }
    known.update(zip(graph.invars, cuts, strict=True))

    def read(atom: Atom) -> Cuts:
        return () if isinstance(atom, Literal) else known[atom]

    for eqn in graph.eqns:
        ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        given = [read(a) for a in eqn.invars]
        if any(map(any, given)) or says_places(Graph((), (), (eqn,), ())):
            found = _cut_results(eqn.primitive, eqn.params, ins, outs, given, sizes)
        else:
            found = [((),) * a.ndim for a in outs]
        known.update(zip(eqn.outvars, found, strict=True))
    return [read(a) for a in graph.outvars]


def of_results(closed: ClosedGraph, given: Sequence[Sharding | None]) -> list[Sharding | None]:
    """Return where a program's results are; None of those that may be anywhere.

    Parameters
    ----------
    closed : ClosedGraph
    given : sequence
        Where its inputs are.
    """
    mesh = _mesh_among(given) or current_mesh() or _mesh_said(closed)
    avals = closed.out_avals
    if mesh is None or mesh.platform:  # what is said to workers is no matter of arrays here
        one = next((s for s in given if s is not None), None)
        return [one] * len(avals)
    ins = [cuts_of(s, a.ndim) for s, a in zip(given, closed.in_avals, strict=True)]
    found = _graph_cuts(closed, ins, dict(mesh.shape))
    return [
        _known_one(_sharding(_mesh_of(a, mesh), a, cuts), a.ndim, given)
        for a, cuts in zip(avals, found, strict=True)
    ]


def _mesh_of(aval: ShapedArray, mesh: Mesh) -> Mesh:
    """Return the mesh of a type: the program's devices in order, where it names other axes."""
    axes = aval.place.mesh if aval.place is not None else ()
    if not axes or axes == mesh.shape_tuple:
        return mesh
    names, sizes = zip(*axes, strict=True)
    kinds = (AxisType.Explicit,) * len(axes)
    return Mesh(mesh.devices.reshape(sizes), names, axis_types=kinds)


def _mesh_said(closed: ClosedGraph) -> Mesh | None:
    """Return the mesh that a program itself speaks of."""
    for eqn in closed.eqns:
        where = eqn.params.get("sharding")
        if isinstance(where, NamedSharding):
            return where.mesh
        for graph in subgraphs(eqn.params):
            if (mesh := _mesh_said(ClosedGraph(graph))) is not None:
                return mesh
    for aval in (*closed.in_avals, *(v.aval for e in closed.eqns for v in e.outvars)):
        if aval.place is not None and aval.place.mesh:
            return mesh_for(aval.place.mesh)
    return None


def placing(
    run: Callable[..., Any], closed: ClosedGraph, given: Sequence[Sharding | None], leaves: int
) -> Callable[..., Any]:
    """Return a program whose results are said to be where they are.

    Parameters
    ----------
    run : callable
        From buffers to a tree of arrays.
    closed : ClosedGraph
        Its graph.
    given : sequence
        Where its inputs are.
    leaves : int
        How many of its results the tree has.
    """
    where = of_results(closed, given)[:leaves]
    if all(s is None for s in where):
        return run

    def call(*data: Any) -> Any:
        outs, spec = tree.flatten_spec(run(*data))
        return spec.unflatten(
            [
                x if s is None or type(x) is not ArrayImpl else PlacedArray(x._data, x.aval, s)
                for x, s in zip(outs, where, strict=True)
            ]
        )

    return call


# ---- operations ----------------------------------------------------------------------------------


def evaluate(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply an operation to arrays of which some are said to be somewhere."""
    for x in args:
        if isinstance(x, ArrayElsewhere):
            return x.elsewhere().run(prim, args, params)
    arrays = [x.array() if type(x) is Literal else asarray(x) for x in args]
    avals = [x.aval for x in arrays]
    given = [placement_of(x) for x in arrays]
    key = evaluate, prim, tuple(params.items()), *avals, *given, state.accepted, is_told()
    try:
        known = recall(key)
    except TypeError:  # params without a hash
        key = known = None
    if known is None:
        known = _settled(prim, params, avals, given)
        if key is not None:
            remember(key, known)
    outs, where = known
    data = [x._data for x in arrays]
    found = quietly(prim.eval, *data, **params) if prim.quiet else prim.eval(*data, **params)
    done = [
        wrap(x, a.update(place=None), prim, data)
        if s is None
        else PlacedArray(wrap(x, a.update(place=None), prim, data)._data, a, s)
        for x, a, s in zip(found if prim.multiple_results else (found,), outs, where, strict=True)
    ]
    return done if prim.multiple_results else done[0]


def _settled(
    prim: Primitive,
    params: dict[str, Any],
    avals: Sequence[ShapedArray],
    given: Sequence[Sharding | None],
) -> tuple[tuple[ShapedArray, ...], list[Sharding | None]]:
    check_together(prim.name, given, avals)
    outs = result_types(prim, avals, params)
    many = outs if isinstance(outs, tuple) else (outs,)
    mesh = _mesh_among(given)
    if mesh is None:
        one = next((s for s in given if s is not None), None)
        return many, [one] * len(many)
    cuts = [cuts_of(s, a.ndim) for s, a in zip(given, avals, strict=True)]
    found = _cut_results(prim, params, avals, many, cuts, dict(mesh.shape))
    return many, [
        _known_one(_sharding(mesh, a, c), a.ndim, given) for a, c in zip(many, found, strict=True)
    ]


def of_type(x: ArrayImpl) -> ArrayImpl:
    """Return an array of a type that is cut, on the devices of its mesh."""
    where = x.aval.place
    if where is None or not where.mesh:
        return x
    return PlacedArray(x._data, x.aval, _sharding(mesh_for(where.mesh), x.aval, x.aval.cuts))
