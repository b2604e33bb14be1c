"""Innermost loops whose turns are independent by syntax: how they are vectorised.

Left to itself LLVM writes the body of a loop up to six times: several vectors a turn, one, and what
remains; and it writes out short loops, and all that surrounds them. A loop that is vectorised by
order is written twice, at the same speed (chains of 1 to 64 operations on 1,000 to 1,000,000
elements), in half the time.

Where LLVM cannot obey an order, it says so to the user. So each element written lies at a place of
its own and is read nowhere else in the loop, and what is called is arithmetic.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from importlib import import_module
from typing import Any

from .elements import count_of, elements_of, is_element, step_of, whole_rows
from .reader import Text, holds_loops, inside, is_loop, nodes_of, place_of, statements
from .types import registry
from .writer import Module

#: A loop of more statements than this fills the registers as it is. One that adds up is given two
#: vectors a turn; LLVM takes four (a chain of 32 operations ran 16 % longer, and was compiled in
#: 60 % of the time).
LONG = 40

#: Loops of fewer turns are left to LLVM, which writes them out and may join turns of the loop
#: around them. On slices of (50, 50, r) a masked vector takes, at r - 1 = 3, 5, 6, 8 and 10 turns,
#: 0.46, 0.39, 0.32, 0.30 and 0.37 of the time where boxes are written, and 2.2, 1.2, 0.88, 0.34 and
#: 0.17 of it where LLVM joins turns (float32).
FEW = 5

#: Loops without others in them that make a kernel long. Where there are few LLVM's way runs as fast
#: or faster: it joins turns of the loop around one.
MANY = 12

#: Turns of a loop up to which LLVM had better write it out before it looks for vectors, up to which
#: their number may be in the text, and statements of a body that may be kept in registers where
#: it is written out, and of one that is written once for each part (a heat equation: 20).
SHORT, KNOWN, _BODY, _PART = 16, 64, 12, 24
#: Numbers behind whole vectors from which on these are a vector with some before them: heat in a
#: cube takes 1.06, 0.80 and 0.64 of the time so, of rows of 18, 19 and 23.
_REST = 3

#: Lines of LLVM's of a body that is not written out inside of a recurrence. Two keys split in each
#: turn of a scan are 130, twice, whose additions LLVM then orders in every way (*loop strength
#: reduction*): 5.5 s, and 0.6 as a loop.
HEAVY = 100

#: Elements of a row that LLVM shuffles vectors of rows from at most.
SHUFFLED = 8

#: Turns in all of a nest of loops that nothing is gained by writing out.
SELDOM = 256

#: Statements on vectors that take as long as to gather one, to spread it, or a quotient: turbulent
#: kinetic energy, rows of 11 of which every third number is read, took 5.0 ms, and takes 4.4.
_GATHER = 8

#: What is folded in any order.
_SUMS = ("radd", "rmul")
_FOLDS = (*_SUMS, "minimum", "maximum")
_BITS = ("and_", "or_", "xor")
_WORDS = frozenset(("u", "f32", "f64", "i64", "u64", "i32", "u32", "min", "max"))
#: What must not be computed of nothing: division of integers, and what loops or calls out.
_TRAPS = {True: re.compile("div|rem|mod"), False: re.compile("rem|mod")}


def order_of(loop: ast.For, slots: frozenset[str], module: Module, size: int | None) -> str | None:
    """Return how an innermost loop is to be vectorised; None where that is left to LLVM.

    Parameters
    ----------
    module : Module
        A use of a function that it calls counts as a long text.
    size : int or None
        How many turns there are, if the text says so.

    Returns
    -------
    str or None
        ``"plain"``: one vector a turn. ``"sums"``: two, as there is something to add up.
        ``"masked"``: no turns but of vectors, the last of them in part; where there are few,
        this is half the text. Elsewhere masks cost 20 to 100 %, sums of functions among it: a
        softmax of rows of 7 takes half as long with them, of rows of 1,000 a fifth longer.
        ``"adds"``: left to LLVM as well, unless it is written as vectors here.
    """
    turn = _turn_of(loop, slots, integers=module.integers)
    if not turn.independent or (turn.along and _copies(loop)):
        return None
    if size is not None and size % module.lanes:
        brief = size < SHORT and len(loop.body) <= _BODY
        if brief and turn.again and not turn.dear:
            return None  # in registers, of which LLVM knows when it has written the loop out
        fast = turn.dear or _GATHER * (turn.strided - turn.divided) <= len(loop.body)
        if module.masks and fast and (turn.dear or not turn.sums) and not turn.traps:
            return "masked" if size >= min(module.lanes // 2, FEW) else None
        if size < module.lanes:
            return None
    long = len(loop.body) > LONG or bool(turn.called & module.sharing)
    if turn.sums:
        return "sums" if long else "adds" if turn.along else None
    return "plain" if long or turn.along else None


def _copies(loop: ast.For) -> bool:
    """Whether LLVM makes a loop a call: it would leave the order with the loop around it."""
    plain = ast.Subscript, ast.Name, ast.Constant
    return all(isinstance(s, ast.Assign) and isinstance(s.value, plain) for s in loop.body)


def is_seldom(size: int, around: Iterable[int | None], module: Module) -> bool:
    """Whether a loop of a long kernel has few turns in all, those of the loops around it counted.

    Such a kernel is read as often as it runs: written out, its loops are code that is met once. The
    dynamics of a robot, 30 nests of up to 6 x 3 x 3 x 3 turns in each of 18 kernels, took LLVM half
    again as long, and each call as long as now.
    """
    turns = size
    for count in around:
        turns *= count or SELDOM + 1
    return module.long and turns <= SELDOM


def row_width(loop: ast.For, slots: frozenset[str], module: Module, size: int) -> int:
    """Return of what width the vectors are that fold a row of few elements; 0 leaves it to LLVM.

    Written out, it leaves a loop over rows, whose vectors LLVM shuffles from what lies side by side
    in rows of up to eight elements, and of more puts together number by number. Left a loop, LLVM
    makes it one vector under a mask, which takes four times as long as numbers one by one where
    half of it is moved by `vexpandpd` (variances of rows of 10, 12 and 14 on a Zen 4).
    """
    if not SHUFFLED < size <= SHORT:
        return 0
    turn = _Turn(loop, slots, integers=module.integers, folds=_FOLDS)
    if not (turn.sums and turn.independent) or turn.written or turn.dear or turn.traps:
        return 0
    places = [x.slice for x in elements_of(loop)]
    gathers = any(
        isinstance(x, ast.Name) and x.id in turn.assigned for p in places for x in inside(p)
    )
    if (
        gathers
        or turn.called & module.sharing
        or None in (step_of(p, turn.counter) for p in places)
    ):
        return 0
    return SHUFFLED if size % SHUFFLED <= 2 else SHUFFLED // 2


def is_vector(loop: ast.For, slots: frozenset[str], module: Module, size: int | None) -> bool:
    """Whether an innermost loop of a long kernel is one vector, of its few turns and no others.

    LLVM writes such a loop out, and takes turns of the one around it together. Eight layers of a
    flow, whose rows have 4 numbers, took it 250 ms.
    """
    if not module.long or size is None or not 0 < size <= module.lanes:
        return False
    return _turn_of(loop, slots, integers=module.integers).along


def parts(loop: ast.For, slots: frozenset[str], module: Module, size: int) -> list[tuple[int, int]]:
    """Return the loops that a loop of known turns is written in: the first turn, and how many.

    None where it stays one; else whole vectors, then one of the last turns, some of which it takes
    again: 60 are 48 and the last 16, 23 are 16 and the last 8. Where a turn reads what another one
    writes there are narrower ones instead, then up to three turns: 60 are 48, 8 and 4. Masks for
    the rest are as fast, until what is written is read soon: a heat equation in a cube of 20 took
    81 us with them, and takes 49. What is added up stays one loop, as each part would end by adding
    up a vector.
    """
    if not SHORT < size <= KNOWN or size % module.lanes == 0 or len(loop.body) > _PART:
        return []
    turn = _turn_of(loop, slots, integers=module.integers)
    if turn.sums or turn.traps or not turn.along or turn.called & module.sharing:
        return []
    rest = size % module.lanes
    found = [(0, size - rest)] if size > rest else []
    if rest >= _REST and not turn.again:
        width = next(w for w in (4, 8, module.lanes) if w >= rest)
        return [*found, (size - width, width)]
    for width in (8, 4):
        if rest >= width:
            found.append((size - rest, width))
            rest -= width
    return [*found, (size - rest, rest)] if rest else found


def is_long(body: Sequence[ast.stmt]) -> bool:
    """Whether a kernel has many loops one after another."""
    loops = list(filter(is_loop, statements(body)))
    return len(loops) - sum(map(holds_loops, loops)) > MANY


def is_heavy(lines: Sequence[str]) -> bool:
    """Whether the LLVM text of a loop is too long to be written out inside of a recurrence."""
    return len(lines) + sum(x.count("\n") for x in lines) > HEAVY


def chooses(loop: ast.For, slots: frozenset[str]) -> bool:
    """Whether an innermost loop carries over the least or greatest of some numbers.

    LLVM turns conditional moves into jumps where it writes such a loop out, and data decide which:
    a table of edit distances took 477 us as a loop, and 755 to 900 written out four times.
    """
    nodes = nodes_of(loop)
    if any(isinstance(x, ast.For | ast.While | ast.If) for x in nodes):
        return False
    carried = slots & {x.id for x in nodes if isinstance(x, ast.Name) and _is_stored(x)}
    called = {x.attr for x in nodes if isinstance(x, ast.Attribute)}
    return bool(carried) and not called.isdisjoint(("minimum", "maximum"))


def recurrent(loop: ast.For, slots: frozenset[str], size: int | None) -> str | None:
    """Return the order of an innermost loop of a recurrence; None leaves it to LLVM.

    Most have few turns, and nobody knows how many: LLVM's way of several widths is best. But where
    one array is read at several places it carries vectors over from turn to turn, four at a time,
    and has no narrower ones for the rest (a stencil on 998 points ran 23 % longer). Vectors that
    are put together, and taken apart, number by number take 30 % longer than none.
    """
    assert isinstance(loop.target, ast.Name)
    counter = loop.target.id
    if size is not None:
        return None
    if chooses(loop, slots):
        return "loop"
    elements = list(elements_of(loop))
    whole = whole_rows(loop)
    strided = [x for x in elements if step_of(x.slice, counter) is None and x not in whole]
    if 2 * len(strided) >= len(elements) and any(isinstance(x.ctx, ast.Store) for x in strided):
        return "scalar"
    return "single" if _rereads(loop) else None


def order_of_part(loop: ast.For, width: int) -> str:
    """Return how a part of a loop is to be vectorised.

    Where the last element of one may be the first of the next, LLVM carries it over, and could not
    obey an order.
    """
    if width < 4:
        return "few"
    return "loop" if _rereads(loop) else "plain"


def _rereads(loop: ast.For) -> bool:
    """Whether a loop has to do with several places of one array."""
    places: dict[str, set[str]] = {}
    for x in elements_of(loop):
        if isinstance(x.value, ast.Name):
            places.setdefault(x.value.id, set()).add(place_of(x))
    return any(len(x) > 1 for x in places.values())


def rereads(loop: ast.For, text: Text) -> list[tuple[str, str]]:
    """Return the places of arrays, after the first of each row, that a loop reads along rows.

    Its turns are `apart`, and what they write lies where no other one reads.
    """
    if holds_loops(loop) or not _rereads(loop) or not apart(loop, text.slots, text.aliased):
        return []
    written: set[str] = set()
    rows: dict[tuple[str, frozenset[str]], dict[str, None]] = {}
    for x in elements_of(loop):
        if not isinstance(x.value, ast.Name):
            continue
        if isinstance(x.ctx, ast.Store):
            written.add(x.value.id)
        else:
            rows.setdefault((x.value.id, _row(x.slice)), {})[place_of(x)] = None
    found = {key: list(places)[1:] for key, places in rows.items() if key[0] not in written}
    return [(name, place) for (name, _), places in found.items() for place in places]


def _row(place: ast.expr) -> frozenset[str]:
    """Return the terms of a place that are no constants."""
    if isinstance(place, ast.Call) and len(place.args) == 1:
        place = place.args[0]
    if isinstance(place, ast.BinOp) and isinstance(place.op, ast.Add):
        return _row(place.left) | _row(place.right)
    return frozenset() if isinstance(place, ast.Constant) else frozenset((ast.unparse(place),))


#: Statements of vectors that take no longer than one that waits for the one before, and those
#: that a function of `vmath` stands for.
_ABREAST, _DEAR = 8, 20


def waits(body: Sequence[ast.stmt], slots: frozenset[str]) -> bool:
    """Whether a text chooses numbers one after another, more than it works on vectors.

    Counted are the statements of innermost loops: of those that carry a number from turn to turn,
    or do things in some turns only, beside all others. The places of the largest numbers in rows
    of 1,000 took 14 ms and take 0.8.
    """
    chain = vectors = 0
    chosen = False
    for loop in filter(is_loop, statements(body)):
        if holds_loops(loop):
            continue
        nodes = nodes_of(loop)
        functions = count_of(nodes, "vm")
        again = slots | _assigned_again(loop.body)
        if isinstance(loop, ast.For) and not any(_waits(s, again, nodes) for s in loop.body):
            vectors += len(loop.body) + _DEAR * functions
            continue
        chain += len(loop.body)
        called = {x.attr for x in nodes if type(x) is ast.Attribute}
        chosen |= functions > 0 or any(type(x) is ast.IfExp for x in nodes)
        chosen |= not called.isdisjoint(("minimum", "maximum"))
    return chosen and _ABREAST * chain > vectors


def _assigned_again(body: Sequence[ast.stmt]) -> set[str]:
    """Return names that a turn assigns several times: each time waits for the one before."""
    targets = [x.targets[0] for x in body if isinstance(x, ast.Assign) and len(x.targets) == 1]
    names = [x.id for x in targets if isinstance(x, ast.Name)]
    return {name for name, times in Counter(names).items() if times > 1}


def _waits(statement: ast.stmt, slots: frozenset[str], nodes: list[ast.AST]) -> bool:
    """Whether a turn's statement depends on the turn before, other than by a fold."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return True
    (target,) = statement.targets
    if not isinstance(target, ast.Name) or target.id not in slots:
        return False
    alone = count_of(nodes, target.id) == 2
    return not (alone and _is_sum(statement.value, target.id, (*_FOLDS, *_BITS)))


def at_once(loop: ast.For, size: int, module: Module) -> bool:
    """Whether an innermost loop, whose turns are `apart`, is written as one vector of them all.

    LLVM writes short loops out, those around them as well, and puts vectors together of what it
    finds: 64 turns of ``S = .95 * S + k * v.T; q @ S`` of 16 took 45 us, and take 4.5 (of 10: 13.6
    and 3.8; of two vectors, 32: 33 and 10). Of functions of elements that lie apart it makes
    numbers.
    """
    turn = _turn_of(loop, frozenset(), integers=module.integers)
    few = FEW - 1 <= size <= module.lanes
    fits = few or size == 2 * module.lanes if turn.along else few and not size & (size - 1)
    return fits and (turn.along or turn.dear) and not turn.sums and not turn.traps


def tailed(loop: ast.For, size: int | None, module: Module) -> bool:
    """Whether what vectors leave of a loop, whose turns are `apart`, is a part of a vector.

    Its functions take longer than masks: 49 turns of forward probabilities on 8 x 21, 110 us with
    five numbers one by one, and 54.
    """
    if not module.masks or size is None or size % module.lanes == 0:
        return False
    turn = _turn_of(loop, frozenset(), integers=module.integers)
    return turn.dear and not turn.sums and not turn.traps


def parted(loop: ast.For, text: Text, module: Module, size: int | None) -> bool:
    """Whether what vectors leave of rows, in a loop inside of another, is a part of a vector.

    Number by number the rest of a row takes as long as many vectors, where there are functions or
    something to add up: softmax of rows of 79, 24 us and 14; distances between 64 points in 79
    dimensions, 46 us and 25. Rows of fewer numbers than a vector's LLVM writes out, those of a
    recurrence where it knows how many there are; others with sums take it longer (norms of rows of
    64: 3.7 us and 2.0, compiled in 55 ms and 12), unless there are functions: LLVM computes those
    of several rows at once (a logistic gradient of 500 x 20: 7 us, and 36 by rows of vectors).
    """
    if not module.masks or (size is not None and (module.sequential or size < module.lanes)):
        return False
    if not apart(loop, text.slots, text.aliased):
        return False
    turn = _turn_of(loop, text.slots, integers=module.integers)
    pays = turn.dear or (turn.sums and not module.sequential)
    if size is not None and any(type(x) is ast.Name and x.id == "vm" for x in inside(*text.body)):
        return False
    return pays and turn.along and not turn.traps


def uses(loop: ast.For, functions: frozenset[str]) -> bool:
    """Whether a loop uses one of some functions of `vmath`."""
    return any(isinstance(x, ast.Attribute) and x.attr in functions for x in nodes_of(loop))


def apart(loop: ast.For, slots: frozenset[str], aliased: frozenset[str]) -> bool:
    """Whether no turn of an innermost loop reads or writes what another one writes.

    Parameters
    ----------
    aliased : frozenset of str
        Names of arrays that a variable may stand for, besides the names of variables.
    """
    turn = _turn_of(loop, slots, integers=False)
    if not turn.independent:
        return False
    elements = list(elements_of(loop))
    arrays = {x.value.id for x in elements if isinstance(x.value, ast.Name)}
    if arrays & slots and arrays & aliased:
        return False
    return all(
        step_of(x.slice, turn.counter) == 1 for x in elements if isinstance(x.ctx, ast.Store)
    )


def rows_apart(loop: ast.For, text: Text) -> bool:
    """Whether a loop is `apart` that writes rows of few columns, which it does not read."""
    whole = whole_rows(loop)
    if not any(isinstance(x.ctx, ast.Store) for x in whole):
        return False
    arrays = {x.value.id for x in elements_of(loop) if isinstance(x.value, ast.Name)}
    if arrays & text.slots and arrays & text.aliased:
        return False
    if not _Turn(loop, text.slots, integers=False, whole=whole).independent:
        return False
    assert isinstance(loop.target, ast.Name)
    others = (x for x in elements_of(loop) if isinstance(x.ctx, ast.Store) and x not in whole)
    return all(step_of(x.slice, loop.target.id) == 1 for x in others)


def swaps(loop: ast.For, slots: frozenset[str], aliased: frozenset[str]) -> bool:
    """Whether a loop with no other in it is `apart`, of arrays that variables stand for in turn."""
    if not slots or holds_loops(loop):
        return False
    arrays = (x.value.id for x in elements_of(loop) if isinstance(x.value, ast.Name))
    return not slots.isdisjoint(arrays) and apart(loop, slots, aliased)


def _turn_of(loop: ast.For, slots: frozenset[str], *, integers: bool) -> _Turn:
    """Return what one turn of a loop does, which up to five ask for."""
    held: dict[str, Any] = loop.__dict__
    found = held.setdefault("turns_", {})
    if (key := (slots, integers)) not in found:
        found[key] = _Turn(loop, slots, integers=integers)
    return found[key]


class _Turn:
    """What one turn of a loop does.

    Attributes
    ----------
    independent : bool
        Whether turns may be taken in any order, or together.
    strided, divided : int
        Places that lie apart from those of the turn before, and quotients.
    along : bool
        Whether no places lie apart.
    dear : bool
        Whether a function is called that takes as long as many loads and stores one by one.
    sums : bool
        Whether the turns add something up, in any order.
    again : bool
        Whether an element is read that is written: what a mask writes is not passed on to a read
        soon after, and the loop around may take that turn by turn.
    traps : bool
        Whether something must not be computed for turns that are not there.
    called : set of str
    """

    def __init__(
        self,
        loop: ast.For,
        slots: frozenset[str],
        *,
        integers: bool,
        folds: tuple[str, ...] = _SUMS,
        whole: Set[ast.AST] = frozenset(),
    ):
        assert isinstance(loop.target, ast.Name)
        self.counter, self.folds = loop.target.id, folds
        self.integers, self.whole = integers, whole
        self.dear = self.sums = self.traps = False
        self.divided = 0
        self.called: set[str] = set()
        self.assigned: set[str] = set()
        self.written: dict[str, str] = {}
        nodes = nodes_of(loop)
        stored = {place_of(x) + x.value.id for x in nodes if is_element(x, ast.Store)}
        self.again = any(
            place_of(x) + x.value.id in stored for x in nodes if is_element(x, ast.Load)
        )
        self.independent = all(self._statement(s, slots, nodes) for s in loop.body)
        self.independent = self.independent and all(map(self._expression, nodes))
        places = [x.slice for x in nodes if isinstance(x, ast.Subscript)]
        self.strided = len(places) - sum(map(self._along, places))
        self.along = self.independent and not self.strided

    def _statement(self, statement: ast.stmt, slots: frozenset[str], nodes: list[ast.AST]) -> bool:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        (target,) = statement.targets
        if isinstance(target, ast.Name):
            self.assigned.add(target.id)
            if target.id not in slots:
                return True
            self.sums = True
            whole = _is_sum(statement.value, target.id, self.folds)
            return whole and count_of(nodes, target.id) == 2
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return False
        if target in self.whole:
            self.written[target.value.id] = ""  # no other place of that array is read
            return True
        if not count_of(inside(target.slice), self.counter) or target.value.id in self.written:
            return False
        self.written[target.value.id] = place_of(target)
        return True

    def _expression(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
            self.traps = True
        if isinstance(node, ast.Subscript):
            if not isinstance(node.value, ast.Name):
                return False
            if node in self.whole and isinstance(node.ctx, ast.Store):
                return True
            return self.written.get(node.value.id, place := place_of(node)) == place
        return True

    def _call(self, call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Name):
            return function.id in _WORDS
        if not isinstance(function, ast.Attribute):
            return False
        if not isinstance(function.value, ast.Name):
            is_template = _is_template(function)
            self.dear |= is_template
            return is_template or _is_straight(function)
        self.called.add(function.attr)
        self.divided += function.attr == "div"
        self.traps |= bool(_TRAPS[self.integers].search(function.attr))
        self.dear |= function.value.id == "vm"
        return function.value.id in ("sc", "vm")

    def _along(self, place: ast.expr) -> bool:
        """Whether an index grows by one each turn, or never."""
        if isinstance(place, ast.Call) and len(place.args) == 1:
            place = place.args[0]
        names = {x.id for x in inside(place) if isinstance(x, ast.Name)}
        if names & self.assigned:
            return False
        if self.counter not in names:
            return True
        terms, found = [place], 0
        while terms:
            term = terms.pop()
            if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Add):
                terms += (term.left, term.right)
            elif isinstance(term, ast.Name) and term.id == self.counter:
                found += 1
            elif count_of(inside(term), self.counter):
                return False
        return found == 1


def _is_sum(value: ast.expr, name: str, folds: tuple[str, ...] = _SUMS) -> bool:
    """Whether a value adds to, or multiplies, a variable in whatever order."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in folds
        and isinstance(value.args[0], ast.Name)
        and value.args[0].id == name
    )


def _is_template(function: ast.Attribute) -> bool:
    """Whether a function of another module is traced into straight text: a special one.

    LLVM's own way of vectors wrote zeta four times: 500 ms of a first call, where it takes 150.
    """
    module = ast.unparse(function.value)
    if not module.startswith("fk."):
        return False
    held = import_module(f"fnarray_kernels.{module.removeprefix('fk.')}")
    return hasattr(getattr(held, function.attr, None), "traced")


def _is_straight(function: ast.Attribute) -> bool:
    """Whether a function of another module has neither loops nor branches: some complex ones."""
    if ast.unparse(function.value) != "fk.complexmath":
        return False
    import_module("fnarray_kernels.complexmath")  # which says so of its functions once it is there
    return function.attr in registry.straights or function.attr == "make"


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
