"""Which values must lie in memory, and which of them share storage."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...core.forms import Branch, Contract, Library, Overlay, Pieces, Scan, Update
from ...core.graph import Atom, Var
from ...core.symbolic import Scalar, leaves
from ..target import Target
from .nests import Nest, Selection, Statement, Step
from .plan import Place, home_of
from .select import Note


@dataclass(slots=True, eq=False)
class Places:
    """What is placed so far in one kernel."""

    target: Target
    note: Note
    of: dict[Var, Place] = field(default_factory=dict[Var, Place])

    def holds(self, atom: Atom) -> bool:
        """Whether a value lies in memory."""
        return isinstance(atom, Var) and atom in self.of

    def share(self, a: Atom, b: Var) -> bool:
        """Whether two values lie in the same storage."""
        if not (isinstance(a, Var) and a in self.of and b in self.of):
            return False
        return home_of(self.of, a) is home_of(self.of, b)


def reads_memory(selection: Selection, var: Var, places: Places) -> bool:
    """Whether a body reads an input at places known only at run time."""
    readers = [s for s in selection.statements if var in s.reads]
    return any(requires_memory(var, s, selection, places) for s in readers)


def requires_memory(var: Var, s: Statement, selection: Selection, places: Places) -> bool:
    """Whether a statement reads a value at places known only at run time."""
    unrolled = s in selection.unrolled
    if isinstance(s, Nest):
        if not unrolled and isinstance(s.node.form, Overlay) and var is s.node.ins[0]:
            return True
        indices = [ix for idx in s.reads[var] for ix in idx]
        if not unrolled and not all(isinstance(ix, int) for ix in indices):
            return True
        return any(isinstance(a, Scalar) for ix in indices for a in leaves(ix))
    form = s.node.form
    if isinstance(form, Library | Contract):
        return True
    if not var.aval.shape:
        return False
    if isinstance(form, Update | Pieces):
        alone = var.aval.size == 1 and not (isinstance(form, Update) and var is s.node.ins[0])
        return not unrolled and not alone
    return _control_requires_memory(var, s, places)


def _control_requires_memory(var: Var, s: Step, places: Places) -> bool:
    """Whether any body of a control step reads ``var`` at run-time places."""
    if var.aval.size > places.target.limits.registers:
        return True
    entries = [_entries(s, k) for k, a in enumerate(s.node.ins) if a is var]
    if None in entries or not entries:  # or a row that is computed in each turn is made of it
        return True
    return any(
        reads_memory(s.bodies[b], s.bodies[b].block.inputs[k], places)
        for found in entries
        for b, k in found or ()
    )


def _entries(s: Step, k: int) -> list[tuple[int, int]] | None:
    """Return as which inputs of which bodies an operand enters; None for stacked rows."""
    form = s.node.form
    if isinstance(form, Branch):
        return [(b, k - 1) for b in range(len(s.bodies))]
    if isinstance(form, Scan):
        consts, carries = form.num_consts, form.num_carry
        if k < consts:
            return [(0, k)]
        inputs = len(s.bodies[0].block.inputs)
        return [(0, inputs - carries + k - consts)] if k < consts + carries else None
    nc, nb = form.cond_nconsts, form.body_nconsts
    found = [] if nc <= k < nc + nb else [(0, k if k < nc else k - nb)]
    return [*found, (1, k - nc)] if k >= nc else found
