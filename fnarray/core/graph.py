"""The graph: a program in single-assignment form over avals.

A `Graph` is what tracing makes and every transform maps to another. Values are frozen; a
transform builds a new graph. Names of fields are JAX's (``constvars invars eqns outvars``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from html import escape
from typing import Any, cast, final

import numpy as np

from .array import ArrayImpl
from .avals import ShapedArray
from .frozen import frozen
from .hooks import eqn_text, extension_name, graph_text
from .primitive import Primitive
from .source import UNKNOWN, Source, located


class Var:
    """One value of a graph, known by identity; it is written by exactly one place."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval.str_short()})"


@final
class Literal:
    """A scalar constant as an operand. ``val`` is a NumPy scalar of the aval's dtype."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val = np.asarray(val, aval.dtype)[()]
        self.aval = aval

    def array(self) -> ArrayImpl:
        """Return the constant as an array."""
        return ArrayImpl(np.asarray(self.val, self.aval.dtype), self.aval)

    def __repr__(self) -> str:
        return f"Literal({self.val}:{self.aval.str_short(True)})"


Atom = Var | Literal


@frozen(eq=False)
class Eqn:
    """One equation: ``outvars = primitive[params](invars)``, with the user's line."""

    primitive: Primitive
    invars: tuple[Atom, ...]
    outvars: tuple[Var, ...]
    params: dict[str, Any]
    source: Source = UNKNOWN

    __getattr__ = extension_name

    def __repr__(self) -> str:
        return eqn_text(self)

    def form(self) -> Any:
        """Return how the equation lowers (see ``core.forms``)."""
        make = self.primitive.rule("form")
        ins = tuple(a.aval for a in self.invars)
        return make(ins, tuple(v.aval for v in self.outvars), **self.params)


@frozen(eq=False, weak=True)
class Graph:
    """Inputs, equations in order, outputs.

    ``constvars`` are inputs whose values the graph's owner holds (see `ClosedGraph`).

    Attributes
    ----------
    told : tuple or None
        Of a graph that was asked for: the `Source` of its function, what the function calls the
        leaves of its arguments, and where each result is. A graph made of it has no such names.
    """

    constvars: tuple[Var, ...]
    invars: tuple[Var, ...]
    eqns: tuple[Eqn, ...]
    outvars: tuple[Atom, ...]
    debug_name: str = field(default="", compare=False)
    told: tuple[Source, tuple[str, ...], tuple[str, ...]] | None = field(
        default=None, compare=False, repr=False
    )

    __getattr__ = extension_name

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the inputs."""
        return tuple(v.aval for v in self.invars)

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the outputs."""
        return tuple(a.aval for a in self.outvars)

    @property
    def effects(self) -> frozenset[str]:
        """Effects of the equations, those of nested graphs included."""
        return frozenset(e for eqn in self.eqns for e in eqn_effects(eqn))

    def __str__(self) -> str:
        return graph_text(self)

    __repr__ = __str__

    def pretty_print(self, **options: Any) -> str:
        """Return the text, with what `graph_text` may show beside it.

        Parameters
        ----------
        source_info, name_stack : bool
            Whether to show where each equation is from, and the labels of `named_scope` around it.
        print_shapes : bool
        use_color, print_effects, custom_pp_eqn_rules : bool
            Accepted for compatibility: there is one text.
        """
        for name in ("use_color", "print_effects", "custom_pp_eqn_rules"):
            options.pop(name, None)
        return graph_text(self, **options)

    def _repr_html_(self) -> str:
        """What a notebook shows: the text, and, folded, the user's line behind each equation."""
        rows = "".join(
            f"<tr><td><code>{escape(eqn.primitive.name)}</code></td>"
            f"<td><code>{escape(eqn.source.text())}</code></td><td>{escape(str(eqn.source))}</td>"
            for eqn in self.eqns
        )
        fold = f"<details><summary>The lines behind the equations</summary><table>{rows}</table>"
        return f'<pre style="font-family:monospace">{escape(str(self))}</pre>{fold}</details>'


# Libraries keep what they derive of a graph for as long as the graph is.
@frozen(eq=False, weak=True)
class ClosedGraph:
    """A graph and the values of its ``constvars``: what `make_jaxpr` returns."""

    jaxpr: Graph
    consts: tuple[Any, ...] = ()

    __getattr__ = extension_name

    @property
    def graph(self) -> Graph:
        """The graph itself (JAX's name for it is ``jaxpr``)."""
        return self.jaxpr

    @property
    def eqns(self) -> tuple[Eqn, ...]:
        """Equations of the graph."""
        return self.jaxpr.eqns

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the inputs, constants excluded."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the outputs."""
        return self.jaxpr.out_avals

    @property
    def effects(self) -> frozenset[str]:
        """Effects of the equations."""
        return self.jaxpr.effects

    def __str__(self) -> str:
        return str(self.jaxpr)

    def pretty_print(self, **options: Any) -> str:
        """Return the text of the graph: see `Graph.pretty_print`."""
        return self.jaxpr.pretty_print(**options)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.jaxpr._repr_html_()  # pyright: ignore[reportPrivateUsage] - the protocol's name


def subgraphs(params: dict[str, Any]) -> Iterator[Graph]:
    """Yield the graphs held in an equation's params, in order of the params' names."""
    for name in sorted(params):
        held = params[name]
        for item in cast("tuple[Any, ...]", held) if isinstance(held, tuple) else (held,):
            if isinstance(item, ClosedGraph):
                yield item.jaxpr
            elif isinstance(item, Graph):
                yield item


def eqn_effects(eqn: Eqn) -> Sequence[str]:
    """Return the effects of an equation and of the graphs it holds."""
    effects = eqn.primitive.effects
    if not eqn.params:  # most of a long program
        return effects
    return *effects, *(x for graph in subgraphs(eqn.params) for x in graph.effects)


def eval_graph(
    graph: Graph, consts: Sequence[Any], args: Sequence[Any], bind: Callable[..., Any]
) -> list[Any]:
    """Run a graph by binding each equation in order.

    Parameters
    ----------
    graph : Graph
    consts, args : sequences
        Values of ``constvars`` and ``invars``.
    bind : callable
        ``bind(primitive, *operands, **params)`` giving a value, or a list of them for primitives
        of several results: eager evaluation, recording into another trace, a transform.

    Returns
    -------
    list
        Values of ``outvars``.
    """
    env: dict[Var, Any] = dict(zip(graph.constvars, consts, strict=True))
    env.update(zip(graph.invars, args, strict=True))

    def read(atom: Atom) -> Any:
        return atom if isinstance(atom, Literal) else env[atom]

    for eqn in graph.eqns:
        with located(eqn.source if eqn.source is not UNKNOWN else None):
            outs = bind(eqn.primitive, *map(read, eqn.invars), **eqn.params)
        if not eqn.primitive.multiple_results:
            outs = (outs,)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [a.array() if isinstance(a, Literal) else env[a] for a in graph.outvars]


def structure(graph: Graph) -> tuple[Any, ...]:
    """Return a hashable value that is equal for graphs that do the same.

    Vars are numbered in order of appearance; literals count by their bytes. Sources and names are
    left out. Raises `TypeError` where a param has no hash.
    """
    number: dict[Var, int] = {}

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            return atom.val.tobytes(), atom.aval
        return number[atom]

    def write(var: Var) -> ShapedArray:
        number[var] = len(number)
        return var.aval

    def param(value: Any) -> Any:
        if isinstance(value, ClosedGraph):
            return structure(value.jaxpr), tuple(map(id, value.consts))
        if isinstance(value, Graph):
            return structure(value)
        if isinstance(value, tuple):
            return tuple(map(param, cast("tuple[Any, ...]", value)))
        return value

    heads = tuple(map(write, (*graph.constvars, *graph.invars)))
    body: list[tuple[Any, ...]] = []
    for eqn in graph.eqns:
        ins = tuple(map(read, eqn.invars))
        params = tuple((k, param(v)) for k, v in eqn.params.items())
        body.append((eqn.primitive, ins, params, tuple(map(write, eqn.outvars))))
    return heads, tuple(body), tuple(map(read, graph.outvars))
