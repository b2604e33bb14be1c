"""The text of a graph: the notation of JAX's jaxprs, character for character.

A graph becomes a document, and a layout fits the document to a width (Lindig, *Strictly Pretty*,
2000). A document is a string or a tuple of documents, plain or marked: `Break` ends a line or is
its own text, `Group` decides that for the breaks in it, `Indent` indents, `Note` is a margin note.

The laws of the notation:

- Names are given in the order of binding: results of an equation before the graphs it holds.
- A named call shares names with its caller: its inputs are the operands, its outputs the results.
- A result of the outermost graph that nothing reads is ``_``.
- A graph held twice, or longer than `SPELT_OUT` equations, is bound by ``let`` ahead of the rest.
- Params are sorted, but a call's ``name`` comes first; a primitive's ``print_params`` says which.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np

from .graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var, subgraphs
from .source import UNKNOWN

#: Held graphs of up to this many equations are printed where they are held.
SPELT_OUT = 10

Doc: TypeAlias = "str | tuple[Doc, ...]"


class Break(str):
    """The end of a line, or this text where the group around it fits the line."""


class Note(str):
    """A remark in the margin of the line it falls on; it takes no room."""


class Group(tuple["Doc", ...]):
    """Documents laid out flat if together they fit what is left of the line."""


class Indent(tuple["Doc", ...]):
    """Documents whose lines begin two columns further to the right."""


def join(between: Doc, docs: Iterable[Doc]) -> Doc:
    """Return ``docs`` in sequence with ``between`` in each gap."""
    return tuple(part for doc in docs for part in (between, doc))[1:]


def bracketed(left: str, docs: Iterable[Doc], right: str) -> Doc:
    """Return ``docs`` in brackets: all on the line, or each on a line of its own."""
    return Group((Indent((left, Break(""), join(Break(" "), docs))), Break(""), right))


def layout(doc: Doc, width: int) -> str:
    """Return a document as text, its groups flat where they fit ``width`` bytes, as in JAX."""
    lines: list[str] = [""]
    notes: dict[int, list[str]] = {}
    agenda: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while agenda:
        indent, flat, doc = agenda.pop()
        match doc:
            case Note():
                notes.setdefault(len(lines) - 1, []).append(doc)
            case Break() if not flat:
                lines.append(" " * indent)
            case str():
                lines[-1] += doc
            case _:
                indent += 2 * isinstance(doc, Indent)
                if isinstance(doc, Group) and not flat:
                    flat = _fits(doc, width - len(lines[-1].encode()))
                agenda.extend((indent, flat, part) for part in reversed(doc))
    return "\n".join(_with_notes(lines, notes) if notes else lines)


def _fits(doc: Doc, room: int) -> bool:
    """Tell whether a document, laid out flat, needs no more than ``room`` bytes of UTF-8."""
    agenda = [doc]
    while agenda and room >= 0:
        part = agenda.pop()
        if isinstance(part, tuple):
            agenda.extend(part)
        elif not isinstance(part, Note):
            room -= len(part.encode())
    return room >= 0


def _with_notes(lines: list[str], notes: dict[int, list[str]]) -> Iterator[str]:
    """Yield the lines with their notes, which all begin in one column."""
    edge = max(map(len, lines))
    for i, line in enumerate(lines):
        for nth, text in enumerate(notes.get(i, [""])):
            yield f"{'' if nth else line:{edge}} # {text}" if text else line


def graph_text(
    graph: Graph,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    name_stack: bool = False,
    width: int = 80,
) -> str:
    """Return the text of a graph, as JAX would print the same program.

    ``{ lambda constants ; inputs. let equations in (outputs) }``, on one line if it fits.

    Parameters
    ----------
    graph : Graph
    source_info : bool
        Whether to show, beside each equation, the line of the user's code it comes from.
    print_shapes : bool
        Whether to show dtypes and shapes where variables are bound.
    name_stack : bool
        Whether to show, beside each equation, the labels around it within its graph, in brackets.
    width : int
        Columns a line should keep to; long items and their operands may exceed them.
    """
    shared = _shared_graphs(graph)
    printer = _Printer(shared, source_info, print_shapes, name_stack)
    read = {a for atoms in (graph.outvars, *(e.invars for e in graph.eqns)) for a in atoms}
    printer.names |= {v: "_" for e in graph.eqns for v in e.outvars if v not in read}
    lets = [("let ", n, " = ", printer.spell(g), " in", Break(" ")) for g, n in shared.items()]
    return layout((*lets, printer.spell(graph)), width)


def eqn_text(eqn: Eqn, width: int = 80) -> str:
    """Return the text of an equation by itself, as JAX would print it: results are named first."""
    return layout(_Printer({}, False, True).eqn(eqn), width).rstrip()


def hiding(*always: str, **trivial: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a ``print_params`` rule that leaves some params out of the text.

    ``always`` are never shown, as the types of the results tell them; ``trivial`` are not shown at
    the value given: ``hiding("shape", broadcast_dimensions=())``.
    """
    return lambda params: {
        p: v for p, v in params.items() if p not in always and (p, v) not in trivial.items()
    }


class _Printer:
    """Documents of graphs and their parts, and the names of variables given so far."""

    def __init__(
        self,
        shared: dict[Graph, str],
        source_info: bool,
        print_shapes: bool,
        name_stack: bool = False,
    ):
        self.shared = shared
        self.name_stack = name_stack
        self.source_info = source_info
        self.print_shapes = print_shapes
        self.names: dict[Var, str] = {}
        self.fresh = (n for n in map(_letters, count()) if n not in shared.values())

    def spell(self, graph: Graph) -> Doc:
        """Return a graph spelt out. The order of the parts is the order of naming."""
        head = "{ lambda ", self.binders(graph.constvars), "; ", self.binders(graph.invars)
        eqns = join(Break("; "), map(self.eqn, graph.eqns))
        outvars = self.row(map(self.name, graph.outvars), ",")
        close = ",)" if len(graph.outvars) == 1 else ")"
        body = ". let", Indent((Break(" "), eqns)), Break(" "), "in (", outvars, close
        return Group((Indent((head, body)), " }"))

    def eqn(self, eqn: Eqn) -> Doc:
        """Return ``results = primitive[params] operands``."""
        params = _shown(eqn)
        if {"name", "jaxpr"} <= params.keys():
            self.share_names(params["jaxpr"], eqn)
        note: Doc = Note(eqn.source) if self.source_info and eqn.source is not UNKNOWN else ()
        if self.name_stack:
            note = note, Note(f"[{eqn.source.scope}]")
        results = (self.binders(eqn.outvars), " = ", note) if eqn.outvars else ()
        first = "name" if any(map(_graphs_in, params.values())) else None
        order = sorted(params, key=lambda p: (p != first, p))
        items = [(p, "=", self.param(params[p])) for p in order]
        call = eqn.primitive.print_name, bracketed("[", items, "]") if items else (), " "
        return results, call, self.row(map(self.name, eqn.invars))

    def param(self, value: Any) -> Doc:
        """Return a param's value: graphs spelt out or by name, all else as ``str``."""
        graphs = _graphs_in(value)
        if isinstance(value, frozenset):
            members = sorted(cast("frozenset[Any]", value))
            return f"frozenset({{{', '.join(map(repr, members))}}})"
        if graphs is None:
            # Addresses would make equal programs print differently.
            return re.sub(r"(?<= at 0x)[0-9a-fA-F]+", lambda m: "X" * len(m[0]), str(value))
        docs = [self.shared.get(g) or self.spell(g) for g in graphs]
        return bracketed("(", docs, ")") if type(value) is tuple else docs[0]

    def binders(self, variables: Iterable[Var]) -> Doc:
        if not self.print_shapes:
            return self.row(map(self.name, variables))
        return self.row(f"{self.name(v)}:{v.aval.str_short(True)}" for v in variables)

    def row(self, items: Iterable[str], comma: str = "") -> Doc:
        # Each gap is a group of its own, so a row too long for its line is filled, not stacked.
        return Indent([Group(join((comma, Group([Break(" ")])), items))])

    def name(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            # A weak one is a number of the user's, who wrote few digits; others are what they are.
            few = atom.aval.weak_type and atom.aval.dtype == np.float32
            value = str(atom.val) if few else np.asarray(atom.val).item()
            return f"{value}:{atom.aval.str_short(True)}"
        if atom not in self.names:
            self.names[atom] = next(self.fresh)
        return self.names[atom]

    def share_names(self, callee: Graph | ClosedGraph, call: Eqn) -> None:
        """Name a callee's variables like the caller's, each of which lends its name once."""
        graph = callee.jaxpr if isinstance(callee, ClosedGraph) else callee
        if graph in self.shared:
            return
        for inner, outer in (graph.invars, call.invars), (graph.outvars, call.outvars):
            lent: set[Atom] = set()
            # Not strict: an ill-formed graph must print too, in the message that says so.
            for mine, theirs in zip(inner, outer, strict=False):
                if isinstance(mine, Literal) or isinstance(theirs, Literal):
                    continue
                if mine in self.names or theirs in lent:
                    continue
                lent.add(theirs)
                self.names[mine] = self.name(theirs)


def _shown(eqn: Eqn) -> dict[str, Any]:
    """Return the params to print."""
    show = eqn.primitive.print_params
    return show(eqn.params) if show else eqn.params


def _letters(n: int) -> str:
    """Return ``n`` in base 26, whose digits are ``a`` to ``z``."""
    return (_letters(n // 26) if n >= 26 else "") + chr(ord("a") + n % 26)


def _graphs_in(value: Any) -> tuple[Graph, ...] | None:
    """Return the graphs that a param's value consists of, or None if it is anything else."""
    items = cast("tuple[Any, ...]", value) if type(value) is tuple else (value,)
    if not all(isinstance(item, Graph | ClosedGraph) for item in items):
        return None
    return tuple(g.jaxpr if isinstance(g, ClosedGraph) else g for g in items)


def _shared_graphs(root: Graph) -> dict[Graph, str]:
    """Return the graphs to print by name, and the names, in order of first appearance."""
    visits: Counter[Graph] = Counter()
    names: dict[Graph, str] = {}
    queue = deque([root])
    while queue:
        graph = queue.popleft()
        visits[graph] += 1
        if visits[graph] > 2:  # two visits prove it shared, and all it holds
            continue
        for eqn in graph.eqns:
            # One param at a time: in the order of binding, not that of the names.
            params = _shown(eqn)
            for held in (g for item in params.items() for g in subgraphs(dict([item]))):
                queue.append(held)
                if "name" in params:
                    names.setdefault(held, params["name"].strip("<>"))
    shared: dict[Graph, str] = {}
    taken: Counter[str] = Counter()
    for graph, times in visits.items():
        if times > 1 or (len(graph.eqns) > SPELT_OUT and graph is not root):
            name = names.get(graph, "jaxpr")
            shared[graph] = f"{name}{taken[name] or ''}"
            taken.update({name, shared[graph]})
    return shared
