"""Library steps as kernels of the whole grid: launches that call `fnarray_kernels`' functions.

Sorting and running sums are several passes, whose arrays in between are the region's parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from math import prod
from typing import Any, Final

import numpy as np

from fnarray_kernels.spread import AXES, AXIS

from ...config import config
from ...core.forms import Library
from ...core.frozen import frozen
from ...core.graph import Var
from ..emit.bodies import note_of
from ..emit.source import KernelSource
from ..emit.values import CODES
from ..ir import Node
from ..neutral import NEUTRAL
from ..schedule.nests import register_name
from . import windows
from .grids import BLOCKS, GRID, LANES, WARP, Grid, grid_of
from .steps import ADDED
from .values import NARROW

#: Running sums over lines of at least so many elements are a warp's, a block's; and the elements
#: of a part that is a block's own.
SHORT, LONG, SHARE = 64, 1024, 4096
#: Elements of a convolution up to which each is a block's, where windows are large.
FEW_PLACES = 1 << 16
#: Order up to which a thread factors a matrix, and where there are as many as a GPU has threads.
MATRIX, MATRIX_MANY, MANY = 24, 64, 4096


@frozen
class Launch:
    """A kernel, its grid, and what it is called with, in order.

    Attributes
    ----------
    arrays : tuple of Var
        Values, read or made.
    parts : tuple of (str, int)
        Arrays that the kernels of the region share: code and length.
    scratch : tuple of (str, int)
        Working arrays of this kernel alone.
    scalars : tuple
    """

    source: KernelSource
    grid: Grid
    arrays: tuple[Var, ...]
    parts: tuple[tuple[str, int], ...]
    scratch: tuple[tuple[str, int], ...]
    scalars: tuple[Any, ...]


def _code(dtype: np.dtype) -> str:
    held = NARROW.get(dtype.name)
    return held.code if held else CODES[dtype.name]


def _family(dtype: np.dtype) -> str:
    """Return what the functions of halves end with."""
    return f"_{dtype.name}" if dtype.name in NARROW else ""


class Calls:
    """Collects the launches of a step.

    Parameters
    ----------
    node : Node
    wanted : set of Var
        Results that somebody reads.
    """

    def __init__(self, node: Node, wanted: Set[Var]):
        self.node = node
        self.wanted = wanted
        self._unread: dict[Var, str] = {}
        form: Library = node.form
        self.statics = form.statics
        self.parts: list[tuple[str, int]] = []
        self._calls: list[tuple[str, Grid, tuple[Any, ...]]] = []

    def part(self, dtype: np.dtype | str, length: int) -> str:
        """Return the name of an array that the step's kernels share."""
        code = dtype if isinstance(dtype, str) else CODES[register_name(dtype)]
        self.parts.append((code, length))
        return f"p{len(self.parts) - 1}"

    def call(self, function: str, grid: Grid, *args: Any) -> None:
        """Add a call of a function.

        Parameters
        ----------
        *args
            Values, names of parts, ints, bools, and numbers of NumPy's types.
        """
        self._calls.append((function, grid, tuple(map(self._place, args))))

    def _place(self, arg: Any) -> Any:
        """Return an argument; for a result that nobody reads, a part."""
        if not isinstance(arg, Var) or arg in self.wanted or arg not in self.node.outs:
            return arg
        if arg not in self._unread:
            self._unread[arg] = self.part(_code(arg.aval.dtype), arg.aval.size)
        return self._unread[arg]

    def launches(self) -> tuple[Launch, ...]:
        """Return what was collected."""
        return tuple(self._launch(*call) for call in self._calls)

    def _launch(self, function: str, grid: Grid, args: tuple[Any, ...]) -> Launch:
        arrays = list(dict.fromkeys(a for a in args if isinstance(a, Var)))
        params = [(f"x{k}", f"{_code(v.aval.dtype)}[1]") for k, v in enumerate(arrays)]
        params += [(f"p{k}", f"{code}[1]") for k, (code, _) in enumerate(self.parts)]
        spelled: list[str] = []
        scalars: list[Any] = []
        for arg in args:
            if isinstance(arg, Var):
                spelled.append(f"x{arrays.index(arg)}")
            elif isinstance(arg, str | bool):
                spelled.append(str(arg))
            elif isinstance(arg, np.generic):
                spelled.append(_literal(arg))
            else:
                spelled.append(f"n{len(scalars)}")
                params.append((spelled[-1], "i64"))
                scalars.append(arg)
        text = f"def kernel({', '.join(n for n, _ in params)}):\n"
        text += f"    {note_of(self.node)}\n    fk.{function}({', '.join(spelled)})\n"
        source = KernelSource(text, tuple(code for _, code in params))
        return Launch(source, grid, tuple(arrays), tuple(self.parts), (), tuple(scalars))


def _literal(x: np.generic) -> str:
    code = CODES[x.dtype.name]
    if x.dtype.kind == "c":
        return f"{code}(complex({x.real!r}, {x.imag!r}))".replace(f"np.{x.real.dtype}", "")
    value = x.item()
    return str(value) if code == "b1" else f"{code}({value!r})"


def launches_of(node: Node, wanted: Set[Var]) -> tuple[Launch, ...]:
    """Return the kernels of a library step that has some for a grid."""
    calls, form = Calls(node, wanted), node.form
    _STEPS[form.op.module](calls, form.op.function)
    return calls.launches()


def runs_here(node: Node) -> bool:
    """Whether a library step is kernels of a grid, worth running."""
    form: Library = node.form
    if form.op.module not in _STEPS or not form.statics:
        return False
    if not all(isinstance(a, Var) and a.aval.size for a in (*node.ins, *node.outs)):
        return False
    choice = {"linalg": _small, "window": _has_axes}.get(form.op.module)
    return choice is None or choice(node)


def called(node: Node) -> bool:
    """Whether a library step that runs here is calls, rather than a kernel that is spelled out."""
    module = node.form.op.module
    if module == "conv":
        return not windows.is_product(node)
    return module != "cumulative" or _is_cut(node)


# --- sorting ------------------------------------------------------------------------------------


def _sort(calls: Calls, function: str) -> None:
    outer, n, inner, last = calls.statics
    node, lines = calls.node, outer * inner
    total, whole = lines * n, grid_of(lines * n, LANES, GRID)
    place = "i32" if n < 1 << 31 else "i64"
    perms = [calls.part(place, total) for _ in range(2)]
    keys: dict[np.dtype, list[str]] = {}
    top = function in ("top_k", "top_few")
    for again, key in enumerate(reversed(node.ins[: 1 if top else last])):
        dtype = np.dtype(register_name(key.aval.dtype))
        both = keys.setdefault(dtype, [])
        both += [calls.part(dtype, total) for _ in range(2 - len(both))]
        order = "_above" if top else "_complex" if dtype.kind == "c" else ""
        begin = f"passes.begin{_family(key.aval.dtype)}"
        calls.call(begin, whole, key, both[0], perms[0], lines, n, inner, again)
        runs = grid_of(-(-total // 8), LANES, GRID)
        calls.call(f"passes.runs{order}", runs, both[0], perms[0], lines, n)
        here, width = both, 8
        while width < n:
            args = (here[0], perms[0], here[1], perms[1])
            calls.call(f"passes.merge{order}", whole, *args, lines, n, width)
            here, perms, width = here[::-1], perms[::-1], 2 * width
    kept = last if top else n
    moved = grid_of(lines * kept, LANES, GRID)
    sizes = (lines, n, inner, kept)
    for x, out in zip(node.ins, node.outs, strict=False):
        if out in calls.wanted:
            calls.call("passes.take", moved, x, out, perms[0], *sizes)
    if top:
        calls.call("passes.places", moved, perms[0], node.outs[1], *sizes)


# --- running sums -------------------------------------------------------------------------------

#: The words by which running folds combine; the sum of no exponentials is the least of maxima.
_WORDS: Final = {
    "cumsum": "sc.radd",
    "cumprod": "sc.rmul",
    "cummax": "sc.maximum",
    "cummin": "sc.minimum",
    "cumlogsumexp": "sc.maximum",
}
_LINEAR: Final = "linear_recurrence"


def _is_cut(node: Node) -> bool:
    """Whether blocks share the lines of a running sum, or parts of them, rather than threads."""
    outer, n, inner = node.form.statics[:3]
    if inner == 1:  # threads would each read memory of their own
        return n >= SHORT
    return n >= LONG and outer * inner < MANY


def _cumulative(calls: Calls, function: str) -> None:
    outer, n, inner, reverse = calls.statics
    function = "cumsum" if function.startswith("cumsum_") else function
    lines = outer * inner
    per = max(min(-(-n // SHARE), BLOCKS // lines), 1)
    grid = Grid(min(lines * per, BLOCKS), WARP if n < LONG else LANES)
    (out,) = calls.node.outs
    dtype = np.dtype(register_name(out.aval.dtype))
    sizes = (lines, n, inner, reverse, per)
    ins: Sequence[Any] = calls.node.ins
    if function == _LINEAR:
        parts = calls.part(dtype, lines * per), calls.part(dtype, lines * per)
        calls.call("passes.fold_linear", grid, *ins, *parts, *sizes)
        calls.call("passes.scan_linear", grid, *ins, *parts, out, *sizes)
        return
    kind = "_complex" if dtype.kind == "c" else _family(out.aval.dtype)
    neutral = dtype.type(NEUTRAL[_WORDS[function]](dtype))
    parts = calls.part(dtype, lines * per)
    calls.call(f"passes.fold_{function}{kind}", grid, *ins, parts, *sizes, neutral)
    calls.call(f"passes.scan_{function}{kind}", grid, *ins, parts, out, *sizes, neutral)


# --- others -------------------------------------------------------------------------------------


def _spelled(calls: Calls) -> list[Any]:
    """Return sizes that are in the text.

    Loops over small windows are written out then, and divisions are products.
    """
    return [x if isinstance(x, bool) else np.int64(x) for x in calls.statics]


def _convolution(calls: Calls, function: str) -> None:
    (out,) = calls.node.outs
    held = out.aval.dtype
    zero = np.dtype(register_name(held)).type(0)
    name, grid = "direct", grid_of(out.aval.size, LANES, GRID)
    if out.aval.size < FEW_PLACES and prod(calls.statics[23:26]) >= LANES:
        name, grid = "summed", Grid(out.aval.size, LANES)
    calls.call(f"spread.{name}{_family(held)}", grid, zero, *calls.node.ins, out, *_spelled(calls))


def _window(calls: Calls, function: str) -> None:
    (first, x), (out,) = calls.node.ins, calls.node.outs
    places = out.aval.size
    if function == "select_and_scatter_add":
        if config.gpu_deterministic_ops or out.aval.dtype.name not in ADDED:
            function = "select_and_scatter_in_order"
        else:
            zero = out.aval.dtype.type(0)
            calls.call("spread.fill", grid_of(places, LANES, GRID), out, zero, places)
            places = first.aval.size
    grid = grid_of(places, LANES, GRID)
    axes = [np.int64(n) for axis in _axes(calls.node) for n in axis]
    calls.call(f"spread.{function}", grid, first, x, out, places, calls.statics[0], *axes)


def _axes(node: Node) -> list[tuple[int, ...]]:
    """Return what is said of each axis; neighbours whose windows have one element are one axis."""
    _, rank, *sizes = node.form.statics
    found: list[tuple[int, ...]] = []
    for n, *others in zip(*(sizes[k : k + rank] for k in range(0, len(sizes), rank)), strict=True):
        axis = (n, *others)
        if found and all(x == (x[0], x[0], *AXIS[2:]) for x in (found[-1], axis)):
            n *= found.pop()[0]
            axis = (n, n, *AXIS[2:])
        found.append(axis)
    return [AXIS] * (AXES - len(found)) + found


def _has_axes(node: Node) -> bool:
    """Whether windows have no more axes than are written out."""
    return len(_axes(node)) <= AXES


#: Functions of `spread` by those of `linalg`, and what working memory they want of a matrix.
_MATRICES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cholesky": ("factor_cholesky", ()),
    "cholesky_complex": ("factor_cholesky", ()),
    "triangular_solve": ("solve_triangular", ()),
    "lu": ("factor_lu", ()),
    "permutation": ("permutations", ()),
    "linear_solve": ("solve", ("matrix", "pivots")),
    "linear_solve_complex": ("solve", ("matrix", "pivots")),
    "factored_solve": ("solve_factored", ("sides",)),
    "tridiagonal_solve": ("solve_tridiagonal", ("row", "row", "row")),
    "determinant": ("determinants", ("matrix", "pivots")),
    "determinant_complex": ("determinants", ("matrix", "pivots")),
    "log_determinant": ("log_determinants", ("matrix", "pivots")),
    "log_determinant_complex": ("log_determinants", ("matrix", "pivots")),
}
#: A thread goes along a diagonal of so many elements at most, unless there are `MANY`.
DIAGONAL: Final = 1 << 12


def _matrices(calls: Calls, function: str) -> None:
    name, works = _MATRICES[function]
    batch, n, *more = calls.statics
    dtype = calls.node.ins[0].aval.dtype
    room = {"matrix": n * n, "pivots": n, "row": n, "sides": n * more[0] if more else 0}
    work = [calls.part("i64" if w == "pivots" else dtype, batch * room[w]) for w in works]
    grid = grid_of(batch, 32, GRID)  # few threads, spread over the multiprocessors
    calls.call(f"spread.{name}", grid, *calls.node.ins, *calls.node.outs, *work, *calls.statics)


def _small(node: Node) -> bool:
    """Whether a thread is enough for a matrix, and few enough of them wait for it."""
    form: Library = node.form
    if form.op.function not in _MATRICES:
        return False
    if form.op.function == "tridiagonal_solve" and form.statics[1] > DIAGONAL:
        return form.statics[0] >= MANY
    return form.size <= (MATRIX_MANY if form.statics[0] >= MANY else MATRIX)


_STEPS: Final[dict[str, Callable[[Calls, str], None]]] = {
    "sort": _sort,
    "cumulative": _cumulative,
    "conv": _convolution,
    "window": _window,
    "linalg": _matrices,
}
