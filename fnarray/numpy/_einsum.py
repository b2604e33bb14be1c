"""Einstein summation: pairs of operands contracted in the order that ``opt_einsum`` finds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import as_dtype, bool_, canonicalize_dtype, dtype_and_weak, lattice_result_type
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..ops.kit.calls import convert
from ._products import contract, diagonal
from ._promote import no_out, operands, promote_dtypes
from ._shape import moveaxis

__all__ = ["einsum", "einsum_path"]

Path = tuple[tuple[int, ...], ...]


@replayed
def einsum(
    subscripts: Any,
    /,
    *operands_: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products of operands whose axes are named by letters.

    Parameters
    ----------
    subscripts : str
        ``"ij,jk->ik"``. A letter that the result lacks is summed over; one repeated within an
        operand takes its diagonal; ``...`` stands for axes that broadcast. Without ``->`` the
        result has the letters that occur once, in alphabetical order.
        Or operands and lists of ints in turn: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.
    *operands_ : array_like
    optimize : str, bool or path
        How ``opt_einsum`` chooses the order of contractions; False goes from left to right.
    precision, preferred_element_type : optional
        As for ``lax.dot_general``.

    Raises
    ------
    ValueError
        For malformed subscripts, or ones that do not fit the operands.
    TypeError
        For operands that are not arrays, or sizes of a letter that differ.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            einsum,
            subscripts,
            *operands_,
            out=out,
            optimize=optimize,
            precision=precision,
            preferred_element_type=preferred_element_type,
            _dot_general=_dot_general,
        )
    no_out("einsum", out)
    spec, arrays = _parse(subscripts, operands_)
    arrays = operands("einsum", *arrays)
    shapes = tuple(np.shape(x) for x in arrays)
    order = optimize if isinstance(optimize, str | bool) else tuple(map(tuple, optimize))
    ins, result, path = _plan(spec, shapes, order)
    dtype, weak = lattice_result_type([dtype_and_weak(x) for x in arrays])
    if preferred_element_type is not None:
        dtype, weak = canonicalize_dtype(as_dtype(preferred_element_type)), False
    terms = list(zip(promote_dtypes(*arrays), ins, strict=True))
    for step in path:
        picked = [terms[k] for k in sorted(step)]
        terms = [t for k, t in enumerate(terms) if k not in step]
        terms.append(_merge(picked, terms, result, precision, dtype))
    value, labels = terms[0]
    return convert(lax.transpose(value, [labels.index(x) for x in result]), dtype, weak)


def einsum_path(subscripts: Any, /, *operands_: Any, optimize: Any = "auto") -> tuple[Any, Any]:
    """Return the order of contractions that `einsum` would use, and a printable account of it."""
    import opt_einsum

    spec, arrays = _parse(subscripts, operands_)
    shapes = [np.shape(x) for x in arrays]
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else _left_to_right(len(shapes))
    return opt_einsum.contract_path(spec, *shapes, shapes=True, optimize=optimize)


# --- reading subscripts -------------------------------------------------------------------------


def _parse(subscripts: Any, rest: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return subscripts as a string, and the operands."""
    if isinstance(subscripts, str):
        return subscripts, rest
    items = (subscripts, *rest)
    arrays, lists = items[0 : len(items) - 1 : 2], items[1::2]
    names = sorted({x for part in (*lists, items[-1]) if isinstance(part, Sequence)
                    for x in part if x is not Ellipsis})  # fmt: skip
    import opt_einsum

    letter = {x: opt_einsum.get_symbol(k) for k, x in enumerate(names)} | {Ellipsis: "..."}

    def spell(part: Any) -> str:
        if not isinstance(part, Sequence) or isinstance(part, str):
            raise ValueError(
                "numpy.einsum: subscripts must be a string, or operands and lists of ints in turn; "
                f"got {part!r} in place of a list."
            )
        return "".join(letter[x] for x in part)

    spec = ",".join(map(spell, lists))
    return (f"{spec}->{spell(items[-1])}" if len(items) % 2 else spec), arrays


@lru_cache(maxsize=1024)
def _plan(
    spec: str, shapes: tuple[tuple[int, ...], ...], optimize: Any
) -> tuple[tuple[str, ...], str, Path]:
    """Return the letters of operands and result, ellipses spelled out, and a path."""
    import opt_einsum
    from opt_einsum.parser import parse_einsum_input

    if not shapes:
        raise ValueError("numpy.einsum: at least one operand is needed.")
    ins, out, _ = parse_einsum_input((spec, *shapes), shapes=True)
    letters = tuple(ins.split(","))
    ranks = tuple(map(len, letters))
    if ranks != tuple(map(len, shapes)):
        raise ValueError(
            f"numpy.einsum: subscripts {spec!r} name {ranks} axes, operands have shapes {shapes}."
        )
    _check_sizes(spec, letters, shapes)
    if len(shapes) < 3 or optimize is False:
        return letters, out, _left_to_right(len(shapes))
    if optimize is True:
        optimize = "optimal"
    if isinstance(optimize, tuple):
        optimize = list(optimize)
    path, _ = opt_einsum.contract_path(f"{ins}->{out}", *shapes, shapes=True, optimize=optimize)
    return letters, out, tuple(map(tuple, path))


def _left_to_right(count: int) -> Path:
    """Contract the first two, then each further operand with what the others gave."""
    if count == 1:
        return ((0,),)
    return ((0, 1), *((0, k) for k in range(count - 2, 0, -1)))


def _check_sizes(spec: str, letters: tuple[str, ...], shapes: Any) -> None:
    sizes: dict[str, int] = {}
    for ls, shape in zip(letters, shapes, strict=True):
        for x, n in zip(ls, shape, strict=True):
            m = sizes.setdefault(x, n)
            if m == 1:
                sizes[x] = n
            elif n not in (1, m):
                raise ValueError(
                    f"numpy.einsum: sizes of {x!r} in {spec!r} differ: {m} and {n}; operands have "
                    f"shapes {list(shapes)}."
                )


# --- contracting --------------------------------------------------------------------------------

Term = tuple[Array, str]


def _merge(
    picked: Sequence[Term], others: Sequence[Term], result: str, precision: Any, dtype: Any
) -> Term:
    """Contract some operands to the letters that the result or another operand needs."""
    elsewhere = set(result).union(*(labels for _, labels in others))
    term, *rest = (_diagonals(t) for t in picked)
    while rest:
        right = rest.pop(0)
        needed = elsewhere.union(*(labels for _, labels in rest))
        term, right = _squeeze_ones(term, right, needed)
        term = _sum_out(term, needed | set(right[1]))
        right = _sum_out(right, needed | set(term[1]))
        final = not rest and not others
        union = list(dict.fromkeys(term[1] + right[1]))
        kept = list(result) if final else [x for x in union if x in needed]
        value = contract("einsum", *term, *right, kept, precision, dtype)
        term = value, "".join(kept)
    return _sum_out(term, elsewhere)


def _diagonals(term: Term) -> Term:
    """Take the diagonal for letters that occur twice."""
    x, labels = term
    while len(set(labels)) < len(labels):
        letter = next(k for k in labels if labels.count(k) > 1)
        i = labels.index(letter)
        j = labels.index(letter, i + 1)
        if x.shape[i] != x.shape[j]:
            raise ValueError(
                f"numpy.einsum: axes that share letter {letter!r} must have one size, got shape "
                f"{x.shape}."
            )
        x = moveaxis(diagonal(x, 0, i, j), -1, i)
        labels = labels[:j] + labels[j + 1 :]
    return x, labels


def _squeeze_ones(a: Term, b: Term, needed: set[str]) -> tuple[Term, Term]:
    """Drop axes of size 1 of letters to be summed that the other operand has longer."""
    sizes = [dict(zip(labels, x.shape, strict=True)) for x, labels in (a, b)]

    def drop(term: Term, mine: dict[str, int], other: dict[str, int]) -> Term:
        x, labels = term
        ones = [k for k in labels if k not in needed and mine[k] == 1 < other.get(k, 1)]
        kept = "".join(k for k in labels if k not in ones)
        return lax.squeeze(x, [labels.index(k) for k in ones]), kept

    return drop(a, sizes[0], sizes[1]), drop(b, sizes[1], sizes[0])


def _sum_out(term: Term, needed: set[str]) -> Term:
    """Sum over letters that nothing needs; bools by "or", which is their sum."""
    x, labels = term
    axes = [k for k, label in enumerate(labels) if label not in needed]
    if not axes:
        return term
    add = lax.reduce_or if x.dtype == bool_ else lax.reduce_sum
    return add(x, axes), "".join(k for k in labels if k in needed)
