"""Along which axes results are partial sums, from operands that are: part of types on meshes.

A value may be known as a partial sum on each device along an axis (``unreduced``), to be added up
when it is asked for; or as whole, and its cotangents as such sums (``reduced``). What is linear in
a value maps partial sums to partial sums; for other operations they are an error. As devices share
the host's memory, a value that is no block of a `shard_map` is always whole: types alone say it.

The rules hold between partial sums and what they meet, as those of ``ops.cutting`` between cuts.
Programs that were accepted before are not judged again: with respect to cotangents they are linear.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..core.avals import NO_SUMS, Names, ShapedArray, Sums
from ..core.source import user_source
from ..errors import ShardingTypeError

__all__ = ["EXCHANGES", "check_exchange", "summed_results"]

#: Exchanges between the devices of an axis: operands must vary along it, or be partial sums.
EXCHANGES = frozenset(
    ("psum", "pmax", "pmin", "all_gather", "all_to_all", "ppermute", "reduce_scatter")
)
#: Sums of operands, and choices of them: all must be partial sums alike.
_ADDING = frozenset(("add", "sub", "add_any", "concatenate", "stack", "select_n"))
#: Linear in each of two operands.
_PRODUCTS = frozenset(("mul",))
#: Linear in their first operand, whatever the others are.
_LINEAR = frozenset(
    (
        "neg", "copy", "copy_p", "convert_element_type", "reduce_precision", "real", "imag", "conj",
        "broadcast_in_dim", "transpose", "squeeze", "reshape", "rev", "slice", "split", "unstack",
        "pad", "tile", "dynamic_slice", "reduce_sum", "cumsum", "gather", "psum",
    )
)  # fmt: skip
#: Sums of products over axes that may be cut: whether operands are reduced is not asked.
_CONTRACTIONS = frozenset(("dot_general", "conv_general_dilated"))
#: Both their operands must be alike.
_UPDATES = frozenset(("dynamic_update_slice", "scatter", "scatter-add"))


def check_exchange(name: str, avals: Sequence[ShapedArray], axes: Sequence[Any]) -> None:
    """Raise `ValueError` for an exchange along axes of which an operand is not of each device."""
    for aval in avals:
        unreduced, reduced = aval.sums
        if name == "psum":
            unreduced = frozenset[Hashable]()
        if found := (unreduced | reduced) & set(axes):
            raise ValueError(
                f"lax.{name} cannot accept args which are unreduced or reduced along its axes, got "
                f"{aval.str_short(True)} and axes {sorted(map(str, found))}, at {user_source()}. "
                "Sum partial sums with lax.psum; make what is reduced vary with lax.pcast(x, "
                "axis_name, to='varying')."
            )


def summed_results(
    name: str, avals: Sequence[ShapedArray], params: dict[str, Any], strict: bool
) -> Sums:
    """Return the axes along which an operation's results are partial sums, and were."""
    if all(a.sums == NO_SUMS for a in avals):
        return NO_SUMS
    unreduced, reduced = [a.sums[0] for a in avals], [a.sums[1] for a in avals]
    whole: Names = frozenset().union(*reduced)
    if not any(unreduced):
        if name in _CONTRACTIONS:
            return NO_SUMS
        if strict:
            _check_reduced(name, avals, whole)
        return frozenset(), whole
    found: Names = frozenset().union(*unreduced)
    if strict:
        _check_linear(name, avals, unreduced, found)
    if name == "psum":
        found -= set(params["axis_name"])
    return found, whole - found


def _shown(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(a.str_short(True) for a in avals)


def _check_reduced(name: str, avals: Sequence[ShapedArray], whole: Names) -> None:
    """Raise unless arrays are reduced along the same axes, or at least neither cut nor varying."""
    for a in avals:
        if a.sums[1] == whole or not a.shape or (name in _UPDATES and a is not avals[0]):
            continue
        cut = {n for names in a.cuts for n in names} | a.vma
        if a.sums[1]:
            why = "All inputs should be reduced across the same mesh axes"
        elif cut & whole:
            why = (
                "Inputs cannot be sharded/varying on the same axes that another input is reduced on"
            )
        else:
            why = "Inputs cannot be replicated on the same axes that another input is reduced on"
        raise ShardingTypeError(
            f"lax.{name}: {why}, at {user_source()}. Operands are {_shown(avals)}. Bring them "
            "together with fnarray.reshard."
        )


def _check_linear(
    name: str, avals: Sequence[ShapedArray], unreduced: Sequence[Names], found: Names
) -> None:
    """Raise unless an operation maps partial sums to partial sums of its result."""
    where = f", at {user_source()}. Operands are {_shown(avals)}. "
    advice = "Sum first: fnarray.reshard(x, P()), or lax.psum in a shard_map."
    if name in _ADDING or name in _UPDATES:
        arrays = unreduced[1:] if name == "select_n" else unreduced
        if name in _UPDATES:
            arrays = [unreduced[0], unreduced[1 if name == "dynamic_update_slice" else 2]]
        if len(set(arrays)) > 1 or not arrays[0]:
            raise ShardingTypeError(
                f"lax.{name}: operands must be unreduced along the same mesh axes: one is so "
                f"while another is not, which would need communication{where}{advice}"
            )
    elif name in _PRODUCTS:
        if len([u for u in unreduced if u]) > 1:
            raise ShardingTypeError(
                f"lax.{name}: it is not linear in operands that are unreduced{where}{advice}"
            )
        for a in avals:
            if not a.sums[0] and a.sums[1] != found:
                raise ShardingTypeError(
                    f"lax.{name}: the other operand should be reduced along the axes that one is "
                    f"unreduced on{where}Say that it is: fnarray.reshard(x, P(reduced=...)), or "
                    "lax.pcast(x, axis_name, to='reduced') in a shard_map."
                )
    elif name in _CONTRACTIONS:
        raise ShardingTypeError(f"lax.{name}: its operands cannot be unreduced{where}{advice}")
    elif name not in _LINEAR or any(unreduced[1:]):
        raise NotImplementedError(
            f"unreduced rule for {name} is not implemented: it is not linear in partial sums"
            f"{where}{advice}"
        )
