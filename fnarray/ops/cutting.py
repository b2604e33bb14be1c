"""How results are cut along the axes of a mesh, from how operands are: types of arrays on meshes.

One rule for each shape of operation, by name. They stand here and not with the operations since a
program without a mesh never needs them, nor reads this file. An operation without a rule is
elementwise, or its operands are cut along leading axes alone; else it is an error.

Where a program does not say how a result is to be cut, `ShardingTypeError` says so. Programs that
were accepted before are not judged again, as when they are differentiated: there, and along axes of
type Auto, what is ambiguous is not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

from ..core.avals import Cuts, ShapedArray, place
from ..core.axes import checked_axes
from ..core.graph import Atom, Eqn, Literal, Var, subgraphs
from ..core.primitive import Primitive
from ..core.source import is_told, user_source
from ..core.trace import state
from ..errors import ShardingTypeError
from .placing import cast, kind_along, pcast_p, placed_as, pvary_p, varied
from .sums import EXCHANGES, check_exchange, summed_results

__all__ = [
    "Case",
    "cast",
    "cut_eqn",
    "cut_results",
    "kind_along",
    "placed_as",
    "result_types",
    "varied",
]

Names = tuple[Hashable, ...]


class Case:
    """An operation on arrays that are cut.

    Attributes
    ----------
    name : str
    cuts : list of Cuts
        Of the operands.
    ins, outs : sequences of ShapedArray
        Avals of operands and results.
    params : dict
    sizes : dict
        Of the mesh's axes, by name.
    strict : bool
        Whether what is ambiguous is an error.
    """

    __slots__ = ("cuts", "ins", "name", "outs", "params", "sizes", "strict")

    def __init__(
        self,
        name: str,
        cuts: list[Cuts],
        ins: Sequence[ShapedArray],
        outs: Sequence[ShapedArray],
        params: dict[str, Any],
        sizes: dict[Hashable, int],
        strict: bool,
    ):
        self.name, self.cuts, self.ins, self.outs = name, cuts, ins, outs
        self.params, self.sizes, self.strict = params, sizes, strict

    def parts(self, names: Names) -> int:
        """Return into how many parts an axis is cut along some axes of the mesh."""
        return prod(self.sizes[n] for n in names)

    def clash(self, why: str, advice: str = "") -> None:
        """Raise, unless what is ambiguous may be left uncut."""
        if not self.strict:
            return
        mesh = place(tuple(self.sizes.items()), ((("?",),)))
        assert mesh is not None
        shown = ", ".join(
            a.update(place=place(mesh.mesh, c)).str_short(True)
            for a, c in zip(self.ins, self.cuts, strict=True)
        )
        raise ShardingTypeError(
            f"lax.{self.name}: {why}, at {user_source()}. Operands are {shown}. "
            + (advice or "Bring them together with fnarray.reshard, or say out_sharding.")
        )

    def legal(self, cuts: Sequence[Names]) -> Cuts:
        """Return the cuts of a result, in which no axis of the mesh may be named twice."""
        seen: set[Hashable] = set()
        out: list[Names] = []
        for names in cuts:
            if seen & set(names):
                self.clash(f"the result would be cut twice along {sorted(map(str, names))}")
                names = ()
            seen |= set(names)
            out.append(names)
        return tuple(out)

    def fitting(self, names: Names, n: int, what: str) -> Names:
        """Return the cut of an axis whose size has become ``n``, if it divides."""
        if n % self.parts(names):
            self.clash(
                f"{what}: an axis of size {n} is no multiple of the {self.parts(names)} devices "
                f"along {', '.join(map(str, names))}"
            )
            return ()
        return names


Rule = Callable[[Case], Sequence[Cuts]]
RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def declare(f: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, f))
        return f

    return declare


# ---- elementwise ---------------------------------------------------------------------------------


def _joined(c: Case) -> Sequence[Cuts]:
    """Cut as the operands are; those that are stretched have no say."""
    shape = c.outs[0].shape
    out: list[Names] = []
    for k in range(len(shape)):
        found = list(
            dict.fromkeys(
                cuts[k]
                for a, cuts in zip(c.ins, c.cuts, strict=True)
                if a.shape and a.shape[k] == shape[k] and cuts[k]
            )
        )
        if len(found) > 1:
            c.clash(f"incompatible shardings along axis {k}")
        out.append(found[0] if found else ())
    return [c.legal(out)] * len(c.outs)


def _leading(c: Case) -> Sequence[Cuts]:
    """Cut as operands are along leading axes, which all have: batches of matrices, of rows."""
    rank = min([a.ndim for a in (*c.ins, *c.outs) if a.ndim], default=0)
    out: list[Names] = []
    for k in range(rank):
        same = {a.shape[k] for a in (*c.ins, *c.outs) if a.ndim}
        found = list(
            dict.fromkeys(cuts[k] for a, cuts in zip(c.ins, c.cuts, strict=True) if a.ndim)
        )
        if len(same) > 1 or len(found) > 1:
            break
        out.append(found[0])
    if any(any(cuts[len(out) :]) for cuts in c.cuts):
        c.clash(
            "it has no rule for operands that are cut so",
            "Use fnarray.reshard, or call it in fnarray.sharding.auto_axes.",
        )
    cuts = c.legal(out)
    return [(*cuts[: a.ndim], *((),) * (a.ndim - len(cuts))) for a in c.outs]


def _as_operand(c: Case) -> Sequence[Cuts]:
    return [c.cuts[0]] * len(c.outs)


# ---- shapes --------------------------------------------------------------------------------------


@_rule("broadcast_in_dim")
def _broadcast(c: Case) -> Sequence[Cuts]:
    out: list[Names] = [()] * c.outs[0].ndim
    for names, n, k in zip(
        c.cuts[0], c.ins[0].shape, c.params["broadcast_dimensions"], strict=True
    ):
        if n == c.outs[0].shape[k]:
            out[k] = names
    return [tuple(out)]


@_rule("transpose")
def _transpose(c: Case) -> Sequence[Cuts]:
    return [tuple(c.cuts[0][k] for k in c.params["permutation"])]


@_rule("squeeze")
def _squeeze(c: Case) -> Sequence[Cuts]:
    gone = c.params["dimensions"]
    return [tuple(names for k, names in enumerate(c.cuts[0]) if k not in gone)]


def _factors(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Part the axes of two shapes into groups of equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right, p, q = [i], [j], a[i] if i < len(a) else 1, b[j] if j < len(b) else 1
        i, j = i + 1, j + 1
        while p != q:
            if p < q:
                p *= a[i]
                left.append(i)
                i += 1
            else:
                q *= b[j]
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups


@_rule("reshape")
def _reshape(c: Case) -> Sequence[Cuts]:
    (cuts,), (x,), (out,) = c.cuts, c.ins, c.outs
    result: list[Names] = [()] * out.ndim
    ins = [k for k, n in enumerate(x.shape) if n != 1]
    outs = [k for k, n in enumerate(out.shape) if n != 1]
    if 0 in x.shape or c.params.get("dimensions") is not None:
        if any(cuts):
            c.clash("this reshape is not supported", "Use fnarray.reshard before it.")
        return [tuple(result)]
    for left, right in _factors([x.shape[k] for k in ins], [out.shape[k] for k in outs]):
        froms, tos = [ins[k] for k in left], [outs[k] for k in right]
        names = [cuts[k] for k in froms]
        if not any(names):
            continue
        whole = [n for part in names for n in part]
        first = len([k for k in range(len(names)) if all(names[: k + 1])])
        # Cut are the first axes alone: the parts are what they were, or fewer.
        if any(names[first:]) or (not c.strict and first > 1):
            if c.strict:
                c.clash(
                    f"this reshape, to {out.shape}, is not supported",
                    "Say out_sharding, or use fnarray.reshard before it.",
                )
            whole = list(names[0])
        if out.shape[tos[0]] % c.parts(tuple(whole)) == 0:
            result[tos[0]] = tuple(whole)
        elif c.strict:
            c.clash(
                f"this reshape, to {out.shape}, is not supported",
                "Say out_sharding, or use fnarray.reshard before it.",
            )
    return [c.legal(result)]


@_rule("rev", "copy")
def _same(c: Case) -> Sequence[Cuts]:
    return [c.cuts[k] for k in range(len(c.outs))]


@_rule("slice", "pad", "dynamic_slice", "tile", "reduce_precision")
def _resized(c: Case) -> Sequence[Cuts]:
    """Axes stay, and some change their size."""
    x, out = c.ins[0], c.outs[0]
    return [
        tuple(
            names if n == m else c.fitting(names, m, "slicing or padding an axis that is cut")
            for names, n, m in zip(c.cuts[0], x.shape, out.shape, strict=True)
        )
    ]


@_rule("dynamic_update_slice")
def _update(c: Case) -> Sequence[Cuts]:
    x, update = c.ins[:2]
    for k, names in enumerate(c.cuts[1]):
        if names != c.cuts[0][k] and (names or x.shape[k] == update.shape[k]):
            c.clash("operand and update must be cut alike")
    return [c.cuts[0]]


@_rule("concatenate")
def _concatenate(c: Case) -> Sequence[Cuts]:
    if len(set(c.cuts)) > 1:
        c.clash("all operands should be cut alike")
        return _most_common(c)
    return [c.cuts[0]]


def _most_common(c: Case) -> Sequence[Cuts]:
    return [next(cuts for cuts in c.cuts if any(cuts))] * len(c.outs)


@_rule("stack")
def _stack(c: Case) -> Sequence[Cuts]:
    if len(set(c.cuts)) > 1:
        c.clash("all operands should be cut alike")
    cuts, axis = _most_common(c)[0], c.params["axis"]
    return [(*cuts[:axis], (), *cuts[axis:])]


@_rule("unstack")
def _unstack(c: Case) -> Sequence[Cuts]:
    axis = c.params["axis"]
    return [(*c.cuts[0][:axis], *c.cuts[0][axis + 1 :])] * len(c.outs)


@_rule("split")
def _split(c: Case) -> Sequence[Cuts]:
    axis = c.params["axis"]
    return [
        tuple(
            c.fitting(names, out.shape[k], "splitting an axis that is cut") if k == axis else names
            for k, names in enumerate(c.cuts[0])
        )
        for out in c.outs
    ]


# ---- folds ---------------------------------------------------------------------------------------


@_rule(
    "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
    "reduce_xor", "argmax", "argmin", "reduce",
)  # fmt: skip
def _reduce(c: Case) -> Sequence[Cuts]:
    gone = c.params["axes"] if "axes" in c.params else c.params["dimensions"]
    left = tuple(names for k, names in enumerate(c.cuts[0]) if k not in gone)
    return [left] * len(c.outs)


@_rule(
    "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "linear_recurrence", "sort", "top_k",
    "approx_top_k",
)  # fmt: skip
def _along(c: Case) -> Sequence[Cuts]:
    """Along one axis each element needs others: it may not be cut."""
    axis = c.params.get("axis", c.params.get("dimension"))
    axis = axis if axis is None or axis >= 0 else axis + c.ins[0].ndim
    if axis is None:
        axis = c.ins[0].ndim - 1
    if c.cuts[0][axis]:
        c.clash(f"axis {axis} must not be cut: it runs along it", "Use fnarray.reshard before it.")
    if c.outs[0].shape != c.ins[0].shape:
        cut = tuple(() if k == axis else names for k, names in enumerate(c.cuts[0]))
        return [cut] * len(c.outs)
    return _joined(c)


@_rule("reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _windows(c: Case) -> Sequence[Cuts]:
    sides = c.params["window_dimensions"]
    out: list[Names] = []
    for k, (names, side) in enumerate(zip(c.cuts[0], sides, strict=True)):
        if names and (side != 1 or c.outs[0].shape[k] != c.ins[0].shape[k]):
            c.clash(f"axis {k} is cut, and windows run along it", "Use fnarray.reshard before it.")
            names = ()
        out.append(names)
    return [tuple(out)] * len(c.outs)


# ---- products ------------------------------------------------------------------------------------


@_rule("dot_general")
def _dot_general(c: Case) -> Sequence[Cuts]:
    (lc, rc), (lb, rb) = c.params["dimension_numbers"]
    left, right = c.cuts
    for i, j in zip(lc, rc, strict=True):
        if left[i] and right[j] and left[i] != right[j]:
            c.clash(
                f"contracted axes must be cut alike, got {_shown(left[i])} and {_shown(right[j])}"
            )
        elif left[i] and right[j]:
            c.clash(
                "contracting dimensions are sharded and it is ambiguous how the output should be "
                f"sharded: both are cut along {_shown(left[i])}",
                "Say so with out_sharding.",
            )
    batch: list[Names] = []
    for i, j in zip(lb, rb, strict=True):
        if left[i] and right[j] and left[i] != right[j]:
            c.clash(f"axes of the batch must be cut alike, got {left[i]} and {right[j]}")
        batch.append(left[i] or right[j])
    rows = [names for k, names in enumerate(left) if k not in lc and k not in lb]
    columns = [names for k, names in enumerate(right) if k not in rc and k not in rb]
    return [c.legal([*batch, *rows, *columns])]


def _shown(names: Names) -> str:
    return ", ".join(map(repr, names))


@_rule("conv_general_dilated")
def _conv(c: Case) -> Sequence[Cuts]:
    lhs, rhs, out = c.params["dimension_numbers"][:3]
    result: list[Names] = [()] * c.outs[0].ndim
    result[out[0]], result[out[1]] = c.cuts[0][lhs[0]], c.cuts[1][rhs[0]]
    used = {(0, lhs[0]), (1, rhs[0])}
    for which, cuts in enumerate(c.cuts):
        for k, names in enumerate(cuts):
            if names and (which, k) not in used:
                c.clash(
                    "only the batch and the output's features may be cut",
                    "Use fnarray.reshard before it, or fnarray.sharding.auto_axes.",
                )
    return [c.legal(result)]


# ---- elements by number --------------------------------------------------------------------------


@_rule("gather")
def _gather(c: Case) -> Sequence[Cuts]:
    numbers, sizes = c.params["dimension_numbers"], c.params["slice_sizes"]
    out: list[Names] = [()] * c.outs[0].ndim
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    inner = [k for k in range(c.ins[0].ndim) if k not in gone]
    bad = any(
        names for k, names in enumerate(c.cuts[0]) if k in gone or sizes[k] != c.ins[0].shape[k]
    )
    for k, at in zip(inner, numbers.offset_dims, strict=True):
        out[at] = c.cuts[0][k] if sizes[k] == c.ins[0].shape[k] else ()
    if bad or any(c.cuts[1]):
        c.clash(
            "out sharding could not be resolved unambiguously",
            "Use `.at[...].get(out_sharding=)` to say it, or fnarray.reshard before it.",
        )
        outer = (k for k in range(len(out)) if k not in numbers.offset_dims)
        for at, names in zip(outer, c.cuts[1][:-1], strict=False):
            out[at] = names
    return [c.legal(out)]


@_rule("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(c: Case) -> Sequence[Cuts]:
    numbers, updates = c.params["dimension_numbers"], c.ins[2]
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inner = [k for k in range(c.ins[0].ndim) if k not in gone]
    bad = any(c.cuts[0][k] for k in gone)
    for k, at in zip(inner, numbers.update_window_dims, strict=True):
        whole = updates.shape[at] == c.ins[0].shape[k]
        bad |= bool(c.cuts[0][k]) and not whole
        bad |= bool(c.cuts[2][at]) and c.cuts[2][at] != c.cuts[0][k]
    if bad or any(c.cuts[1]):
        c.clash(
            "out sharding could not be resolved unambiguously",
            "Use `.at[...].set/add/mul/...(out_sharding=)` to say it, or fnarray.reshard.",
        )
    return [c.cuts[0]]


# ---- equations -----------------------------------------------------------------------------------


def cut_results(c: Case) -> Sequence[Cuts]:
    """Return how an operation's results are cut."""
    rule = RULES.get(c.name)
    if rule is not None:
        return rule(c)
    ranks = {a.ndim for a in c.ins if a.shape}
    shapes = {a.shape for a in c.outs}
    if len(ranks) == 1 and len(shapes) == 1 and {a.ndim for a in c.outs} == ranks:
        (shape,) = shapes
        sides = zip(*(a.shape for a in c.ins if a.shape), strict=True)
        if all(set(ns) <= {1, n} for n, ns in zip(shape, sides, strict=True)):
            return _joined(c)
    return _leading(c)


#: Of the exchanges, those whose results are the same for all.
_AGREEING = frozenset(("psum", "pmax", "pmin"))


def _mesh_of(name: str, avals: Sequence[ShapedArray]) -> tuple[tuple[Hashable, int], ...]:
    meshes = list(dict.fromkeys(a.place.mesh for a in avals if a.place and a.place.mesh))
    if len(meshes) > 1:
        raise ValueError(
            f"lax.{name}: Mesh for all inputs should be equal, at {user_source()}. Got one of axes "
            f"{dict(meshes[0])} and another of axes {dict(meshes[1])}. Use fnarray.reshard."
        )
    return meshes[0] if meshes else ()


def _knows_types(prim: Primitive, params: dict[str, Any]) -> bool:
    """Whether an operation's own rule says where its results are, as that of one with graphs."""
    return prim.typed or (prim.name not in RULES and next(subgraphs(params), None) is not None)


def result_types(
    prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> ShapedArray | tuple[ShapedArray, ...]:
    """Return the avals of an operation's results, of operands of which some are on a mesh."""
    if _knows_types(prim, params):
        return prim.aval(*avals, **params)
    plain = [a if getattr(a, "place", None) is None else a.update(place=None) for a in avals]
    outs = prim.aval(*plain, **params)
    many = outs if prim.multiple_results else (outs,)
    varying = frozenset[Hashable]().union(*(a.place.varying for a in avals if a.place))
    if prim.name in _AGREEING and params.get("axis_index_groups") is None:
        varying -= set(params["axis_name"])
    mesh = _mesh_of(prim.name, avals)
    strict = not (state.accepted or is_told())
    sums = summed_results(prim.name, avals, params, strict)
    if mesh:
        cuts = [a.cuts for a in avals]
        case = Case(prim.name, cuts, plain, many, params, dict(mesh), strict)
        found = cut_results(case)
    else:
        found = [((),) * a.ndim for a in many]
    typed = tuple(
        a.update(place=place(mesh, cut, varying, sums)) for a, cut in zip(many, found, strict=True)
    )
    return typed if prim.multiple_results else typed[0]


def cut_eqn(
    trace: Any, prim: Primitive, atoms: Sequence[Atom], params: dict[str, Any]
) -> tuple[tuple[Atom, ...], Any]:
    """Return the operands of an equation, made to vary alike, and the avals of its results."""
    if not _knows_types(prim, params):
        varying = frozenset[Hashable]().union(
            *(a.aval.place.varying for a in atoms if a.aval.place)
        )
        if prim.name in EXCHANGES:
            along = params["axis_name"]
            check_exchange(prim.name, [a.aval for a in atoms], along)
            partial = frozenset[Hashable]().union(*(a.aval.sums[0] for a in atoms))
            varying |= checked_axes() & set(along) - partial
        if varying:
            atoms = [_varied(trace, a, varying) for a in atoms]
    return tuple(atoms), result_types(prim, [a.aval for a in atoms], params)


def _varied(trace: Any, atom: Atom, varying: frozenset[Hashable]) -> Atom:
    """Return an operand that varies as others do, but for partial sums: those do not meet them."""
    kinds = {a: kind_along(atom.aval, a) for a in varying}
    if type(atom) is Literal:
        return atom
    for kind in ("invarying", "reduced"):
        axes = tuple(sorted((a for a in varying if kinds[a] == kind), key=str))
        if axes:
            prim, params = pvary_p, {"axes": axes}
            if kind == "reduced":
                prim, params = pcast_p, {"axes": axes, "to": "varying"}
            var = Var(prim.aval(atom.aval, **params))
            trace.eqns.append(Eqn(prim, (atom,), (var,), params, user_source()))
            atom = var
    return atom
