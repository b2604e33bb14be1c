"""Bodies: the storage of their results named, then their items in order."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.graph import Var
from ..ir import Node
from ..schedule.nests import Nest
from ..schedule.plan import Body, Given, Item, Same, Tree, statements_of
from ..schedule.select import CONTROL
from .flow import Flow
from .loops import Loops
from .steps import Steps
from .values import Storage, Values


class Bodies:
    """Spells the bodies of one kernel."""

    def __init__(self, values: Values):
        self.values = values
        self.loops = Loops(values)
        self.steps = Steps(values)
        self.flow = Flow(self.steps, self.emit)

    def emit(self, body: Body, targets: Mapping[Var, Storage]) -> None:
        """Emit a body in the current scope, the results named in ``targets`` there."""
        storage = self.values.storage
        storage.update(targets)
        for var, place in body.places.items():
            if isinstance(place, Same):
                storage[var] = storage[place.var].shown(var)
            elif not isinstance(place, Given):
                storage[var] = self.values.new_scratch(var, place.contracted)
        if self.values.outer:
            self.values.inlined.update(body.inlined)
        else:  # the whole program's, which its kernels would each copy
            self.values.outer = body.inlined
        for item in body.items:
            self._item(item, body)

    def _item(self, item: Item, body: Body) -> None:
        nodes = [s.node for s in statements_of((item,))]
        with self.values.writer.spelling(*nodes):
            if nodes[0].eqn.source.line:
                self.values.writer.note(note_of(nodes[0]))
            self._spell(item, nodes[0], body)

    def _spell(self, item: Item, node: Node, body: Body) -> None:
        if isinstance(item, Tree):
            self.values.share(body.shared.get(item, 0))
            self.loops.tree(item, body)
        elif isinstance(item, Nest):
            if item in body.unrolled:
                self.loops.unrolled(item)
            else:
                self.loops.nest(item, ())
        elif isinstance(node.form, CONTROL):
            self.flow.step(item, body)
        else:
            self.steps.step(item, body)


def note_of(node: Node) -> str:
    """Return the comment that shows the user's line."""
    source = node.eqn.source
    where = source.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"# {where}:{source.line}: {source.text()}".rstrip(": ")
