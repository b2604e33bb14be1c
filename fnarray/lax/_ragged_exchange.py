"""An exchange in which every example sends as many rows to each as it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.dtypes import is_integer
from ..ops.collective import axis_index, axis_size
from ..ops.exchange import all_gather
from ..ops.kit.calls import broadcast_in_dim, select
from ..ops.kit.canonical import as_array

__all__ = ["ragged_all_to_all"]


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array:
    """Send rows of each example to each, as many as it says, to where it says.

    Parameters
    ----------
    operand : array
        Whose rows are sent.
    output : array
        Where rows arrive; others stay what they are.
    input_offsets, send_sizes, output_offsets : integer arrays (n,)
        For each example where its rows begin in this one's ``operand``, how many they are, and
        where in the receiver's ``output`` the first is put. A multiple of the number of examples
        gives each as many runs of rows.
    recv_sizes : integer array (n,)
        How many rows come from each; what senders say decides.
    axis_name : name
        Of the mapped axis.
    axis_index_groups : sequence of sequences of int, optional
        Examples that exchange rows with each other, all of them by default.

    Raises
    ------
    ValueError
        Offsets and sizes are no integers, of several axes, or not as many; rows of ``operand`` and
        ``output`` differ.
    """
    operand, output = as_array(operand), as_array(output)
    given = {
        "input_offsets": as_array(input_offsets),
        "send_sizes": as_array(send_sizes),
        "output_offsets": as_array(output_offsets),
        "recv_sizes": as_array(recv_sizes),
    }
    groups = axis_index_groups
    count = axis_size(axis_name) if groups is None else len(groups[0])
    _check(operand, output, given, count)
    me = axis_index(axis_name)
    if groups is not None:
        place = {i: k for group in groups for k, i in enumerate(group)}
        me = as_array(np.array([place[i] for i in sorted(place)], np.int32))[me]
    rows = all_gather(operand, axis_name, axis_index_groups=groups)
    starts, sizes, ends = (
        all_gather(given[name], axis_name, axis_index_groups=groups)
        for name in ("input_offsets", "send_sizes", "output_offsets")
    )
    runs = given["send_sizes"].shape[0] // count
    at = as_array(np.arange(output.shape[0], dtype=np.int32))
    for sender in range(count):
        for run in range(runs):
            k = me * runs + run
            nth = at - ends[sender, k]
            here = (nth >= 0) & (nth < sizes[sender, k])
            come = rows[sender].at[starts[sender, k] + nth].get(mode="clip")
            here = broadcast_in_dim(here, output.shape, (0,))
            output = select(here, come, output)
    return output


def _check(operand: Array, output: Array, given: dict[str, Array], count: int) -> None:
    for name, x in given.items():
        if not is_integer(x.dtype):
            raise ValueError(f"ragged_all_to_all {name} must be integer type, got {x.dtype}.")
        if x.ndim != 1 or x.shape[0] < 1:
            raise ValueError(
                f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got "
                f"shape {x.shape}"
            )
        if x.shape[0] % count or x.shape != given["send_sizes"].shape:
            raise ValueError(
                f"ragged_all_to_all {name} must have as many elements as send_sizes, a multiple of "
                f"the {count} examples, but got shape {x.shape}"
            )
    if operand.dtype != output.dtype or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            "ragged_all_to_all operand and output must have equal dtypes and rows, got "
            f"{operand.aval.str_short()} and {output.aval.str_short()}"
        )
