"""Blocks of arrays, how they are cut, and graphs that run on them.

Each value has a `Spec`: along which axes of the mesh each of its axes is cut. Operations pass specs
on by a rule of their kind (`rules`): elementwise ones keep them, reductions and products add up
over the mesh what they add up over a cut axis, loops keep their carry as it was. Where there is no
rule operands are gathered, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ..core.avals import NO_SUMS, ShapedArray, Sums
from ..core.axes import Axes, collective_axes
from ..core.forms import Inline, Map
from ..core.graph import ClosedGraph, Eqn, Graph, Literal, eval_graph, subgraphs
from ..core.primitive import Primitive
from ..core.surgery import erased
from ..core.trace import bind
from ..lax import dynamic_slice_in_dim
from ..ops.collective import axis_index_p
from ..ops.exchange import all_gather_p, all_to_all_p
from ..ops.kit.calls import add, mul, reshape
from ..ops.placing import constraint_p, reshard_p
from ..transforms.graphs import Derived, recorded

Spec = tuple[tuple[Hashable, ...], ...]


class Value(NamedTuple):
    """A device's block of a value, and how the value is cut."""

    x: Any
    spec: Spec


Rule = Callable[["Mapped", Primitive, list[Value], dict[str, Any]], list[Value] | None]
Flow = Callable[["Mapped", Primitive, Any, list[Value], dict[str, Any]], list[Value]]


class Mapped:
    """The mesh of a program, and how blocks are made of others.

    Parameters
    ----------
    axes : tuple of (name, size)
    rules : dict
        How operations pass specs on, by name.
    flow : dict
        How control flow does, by form.
    """

    def __init__(self, axes: Axes, rules: Mapping[str, Rule], flow: Mapping[type, Flow]):
        self.axes = axes
        self.sizes = dict(axes)
        self._rules, self._flow = rules, flow

    def parts(self, names: Sequence[Hashable]) -> int:
        """Return how many blocks an axis cut along mesh axes has."""
        return prod(self.sizes[n] for n in names)

    def local(self, shape: Sequence[int], spec: Spec) -> tuple[int, ...]:
        """Return the shape of a block."""
        return tuple(n // self.parts(names) for n, names in zip(shape, spec, strict=True))

    def divides(self, shape: Sequence[int], spec: Spec) -> bool:
        """Whether an array can be cut so."""
        return all(n % self.parts(names) == 0 for n, names in zip(shape, spec, strict=True))

    def to(self, value: Value, spec: Spec) -> Any:
        """Return the block of a value that is cut otherwise."""
        x, now = value.x, list(value.spec)
        for d, names in enumerate(value.spec):
            if names and not spec[d] and names in spec and not now[e := spec.index(names)]:
                if x.shape[e] % self.parts(names):
                    continue
                x = bind(
                    all_to_all_p, x, split_axis=e, concat_axis=d, axis_name=names,
                    axis_index_groups=None, axis_size=self.parts(names), tiled=True,
                )  # fmt: skip
                now[d], now[e] = (), names
        for d, (have, want) in enumerate(zip(now, spec, strict=True)):
            if have and have != want:
                for name in reversed(have):
                    x = bind(
                        all_gather_p, x, all_gather_dimension=d, axis_name=(name,),
                        axis_index_groups=None, axis_size=self.sizes[name], tiled=True,
                    )  # fmt: skip
        for d, (have, want) in enumerate(zip(now, spec, strict=True)):
            if want and have != want:
                n = x.shape[d] // self.parts(want)
                x = dynamic_slice_in_dim(x, mul(self.index(want), n), n, d)
        return x

    def whole(self, value: Value) -> Any:
        """Return all of a value."""
        return self.to(value, ((),) * len(value.spec))

    def index(self, names: Sequence[Hashable]) -> Any:
        """Return the number of this device's block."""
        total: Any = None
        for name in names:
            own = bind(axis_index_p, axis_name=(name,))
            total = own if total is None else add(mul(total, self.sizes[name]), own)
        return total

    # ---- running a graph ----

    def run(self, graph: Graph, consts: Sequence[Any], values: Sequence[Value]) -> list[Value]:
        """Run a graph on blocks; its constants are whole on each device."""

        def step(prim: Primitive, *args: Any, **params: Any) -> Any:
            outs = self.apply(prim, [_value(a) for a in args], params)
            return outs if prim.multiple_results else outs[0]

        outs = eval_graph(graph, [_value(c) for c in consts], values, step)
        return [_value(o) for o in outs]

    def apply(self, prim: Primitive, values: list[Value], params: dict[str, Any]) -> list[Value]:
        """Do one operation on blocks."""
        cut = any(any(v.spec) for v in values)
        rule = self._rules.get(prim.name)
        if prim.name == "shard_map":
            return self._inside(values, params)
        if prim is constraint_p or prim is reshard_p:
            return [self._constrained(values[0], **params)]
        if cut or any(map(_spreads, subgraphs(params))):
            form = _form(prim, values, self, params)
            if isinstance(form, Inline):
                known = rule(self, prim, values, params) if cut and rule is not None else None
                return known or self.run(form.graph.jaxpr, form.graph.consts, values)
            if flow := self._flow.get(type(form)):
                return flow(self, prim, form, values, params)
            if isinstance(form, Map) and (found := self._elementwise(prim, values, params)):
                return found
            if cut and rule is not None and (found := rule(self, prim, values, params)):
                return found
        return whole_results(prim, [self.whole(v) for v in values], params)

    def along(
        self, shape: Sequence[int], have: Spec, want: Spec, axes: Collection[Hashable]
    ) -> Spec:
        """Return a spec that is as is wanted along some mesh axes, and as it was along others."""
        both = tuple(
            (*w, *(n for n in h if n not in axes)) for h, w in zip(have, want, strict=True)
        )
        return both if self.divides(shape, both) else want

    def _constrained(
        self,
        value: Value,
        sharding: Any,
        mesh: Axes | None = None,
        cuts: Spec = (),
        sums: Sums = NO_SUMS,
    ) -> Value:
        """Cut a value as the program says: by a sharding, or along axes of a mesh.

        Shardings on workers have no ``sums``: they are refused where they are made.
        """
        if sharding is None:  # of a type alone; without a mesh it says nothing
            spec = cuts if mesh else value.spec
            return Value(self.to(value, spec), spec)
        if dict(sharding.mesh.shape) != self.sizes:
            raise ValueError(
                f"with_sharding_constraint: {sharding.spec} is of the mesh "
                f"{dict(sharding.mesh.shape)}, and the program's arguments lie on {self.sizes}. "
                "Use one mesh for both, or device_put outside of jit."
            )
        names = sharding.spec.names()
        spec = (*names, *((),) * (len(value.spec) - len(names)))
        return Value(self.to(value, spec), spec)

    def shape(self, value: Value) -> tuple[int, ...]:
        """Return the shape of the whole."""
        return tuple(
            n * self.parts(names) for n, names in zip(value.x.shape, value.spec, strict=True)
        )

    def _elementwise(
        self, prim: Primitive, values: list[Value], params: dict[str, Any]
    ) -> list[Value] | None:
        shapes = [self.shape(v) for v in values]
        rank = max(map(len, shapes))
        full = tuple(max(s[d] for s in shapes if s) for d in range(rank))
        if any(s and len(s) != rank for s in shapes) or not {"shape", "sizes"}.isdisjoint(params):
            return None
        spec, used = [], set()
        # As the operands of the result's shape are cut; of what is left as those that are repeated.
        likely = sorted(zip(values, shapes, strict=True), key=lambda each: each[1] != full)
        for d in range(rank):
            names: tuple[Hashable, ...] = ()
            for v, s in likely:
                if s and s[d] == full[d] and v.spec[d] and used.isdisjoint(v.spec[d]):
                    names = v.spec[d]
                    break
            used.update(names)
            spec.append(names)
        blocks = [
            self.to(v, tuple(names if n > 1 else () for n, names in zip(s, spec, strict=True)))
            if s
            else v.x
            for v, s in zip(values, shapes, strict=True)
        ]
        out = bind(prim, *blocks, **params)
        outs = out if prim.multiple_results else [out]
        if any(o.shape != self.local(full, tuple(spec)) for o in outs):
            return None
        return [Value(o, tuple(spec)) for o in outs]

    def _inside(self, values: list[Value], params: dict[str, Any]) -> list[Value]:
        """Run what is written for each device as it is written."""
        closed, in_names, out_names = params["jaxpr"], params["in_names"], params["out_names"]
        closed = erased(closed)  # a word about whole arrays says nothing of blocks
        blocks = []
        for v, names in zip(values, in_names, strict=True):
            spec = (*((n,) for n in names), *((),) * (len(v.spec) - len(names)))
            x = self.to(v, spec)
            blocks.append(reshape(x, x.shape[len(names) :]))
        outs = eval_graph(closed.jaxpr, closed.consts, blocks, bind)
        varying = _varying(closed.jaxpr, in_names)
        results = []
        for x, names, axes in zip(outs, out_names, varying, strict=True):
            # Of what may differ along an axis that the result does not have the first counts.
            for name in sorted(axes.difference(names), key=str):
                if name in self.sizes:
                    x = bind(
                        all_gather_p, x, all_gather_dimension=0, axis_name=(name,),
                        axis_index_groups=None, axis_size=self.sizes[name], tiled=False,
                    )[0]  # fmt: skip
            spec = (*((n,) for n in names), *((),) * x.ndim)
            results.append(Value(reshape(x, (*(1 for _ in names), *x.shape)), spec))
        return results

    def graph(
        self,
        closed: ClosedGraph,
        specs: Sequence[Spec],
        avals: Sequence[ShapedArray],
        wanted: Sequence[Spec] | None = None,
    ) -> tuple[Derived, list[Spec]]:
        """Return the graph on blocks of a body, and how its results are cut."""
        found: list[Spec] = []

        def fun(*blocks: Any) -> list[Any]:
            values = [Value(x, s) for x, s in zip(blocks, specs, strict=True)]
            outs = self.run(closed.jaxpr, closed.consts, values)
            aims = [o.spec for o in outs] if wanted is None else list(wanted)
            found.extend(aims)
            return [self.to(o, s) for o, s in zip(outs, aims, strict=True)]

        local = [a.update(shape=self.local(a.shape, s)) for a, s in zip(avals, specs, strict=True)]
        return recorded(fun, local, closed.jaxpr.debug_name), found


def whole_results(prim: Primitive, xs: Sequence[Any], params: dict[str, Any]) -> list[Value]:
    """Do an operation on whole arrays."""
    out = bind(prim, *xs, **params)
    outs = out if prim.multiple_results else [out]
    return [Value(o, ((),) * o.ndim) for o in outs]


def _value(x: Any) -> Value:
    if type(x) is Value:
        return x
    x = x.array() if type(x) is Literal else x
    return Value(x, ((),) * x.ndim)


def _form(prim: Primitive, values: Sequence[Value], mapped: Mapped, params: dict[str, Any]) -> Any:
    ins = tuple(v.x.aval.update(shape=mapped.shape(v)) for v in values)
    outs = prim.aval(*ins, **params)
    outs = tuple(outs) if prim.multiple_results else (outs,)
    return prim.rule("form")(ins, outs, **params)


def _spreads(graph: Graph) -> bool:
    """Whether a graph has programs for each device in it, or says how arrays are cut."""
    return any(
        eqn.primitive.name in ("shard_map", "sharding_constraint", "reshard")
        or any(map(_spreads, subgraphs(eqn.params)))
        for eqn in graph.eqns
    )


def _varying(graph: Graph, in_names: Sequence[Sequence[Hashable]]) -> list[frozenset[Hashable]]:
    """Return along which axes each result of a device's program may differ between devices."""
    env: dict[Any, frozenset[Hashable]] = dict(
        zip(graph.invars, map(frozenset, in_names), strict=True)
    )
    for eqn in graph.eqns:
        axes = frozenset[Hashable]().union(
            *(env.get(a, frozenset()) for a in eqn.invars if not isinstance(a, Literal))
        )
        env.update(dict.fromkeys(eqn.outvars, (axes | _added(eqn)) - _removed(eqn)))
    return [
        frozenset() if isinstance(a, Literal) else env.get(a, frozenset()) for a in graph.outvars
    ]


def _added(eqn: Eqn) -> frozenset[Hashable]:
    if eqn.primitive is axis_index_p:
        return frozenset(eqn.params["axis_name"])
    return frozenset[Hashable]().union(*map(collective_axes, subgraphs(eqn.params)))


def _removed(eqn: Eqn) -> frozenset[Hashable]:
    alike = eqn.primitive.name in ("psum", "pmax", "pmin", "all_gather")
    if alike and eqn.params["axis_index_groups"] is None:
        return frozenset(eqn.params["axis_name"])
    return frozenset()
