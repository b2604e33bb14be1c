"""Policies of `checkpoint`: which values of the forward pass are kept for the backward pass.

A policy is ``policy(primitive, *avals, **params) -> bool``: whether what an operation computed may
be kept. There is one memory here, so that to offload is to keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]

Policy = Callable[..., Any]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keep everything: as without `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keep nothing but the arguments: as without a policy."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Keep results of matrix products, or of those alone that have no batch dimensions."""

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        """Whether what an operation computed may be kept."""
        if prim.name != "dot_general":
            return False
        _, batch = params["dimension_numbers"]
        return not (self.only_if_no_batch_dims and any(batch))


dots_saveable = checkpoint_dots = DotsSaveable(False)
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = DotsSaveable(True)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep results of matrix products without batch dimensions; the memories are accepted."""
    return dots_with_no_batch_dims_saveable


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep values that `checkpoint_name` gave one of some names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        """Whether what an operation computed may be kept."""
        return prim.name == "name" and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAllBut:
    """Keep values that `checkpoint_name` gave any name but some, and nameless ones if asked to."""

    names: frozenset[str]
    nameless: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        """Whether what an operation computed may be kept."""
        if prim.name == "name":
            return params["name"] not in self.names
        return self.nameless


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep the values of these names."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep values that have a name, but for these names."""
    return SaveAllBut(frozenset(names_not_to_save), nameless=False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep everything, but for the values of these names."""
    return SaveAllBut(frozenset(names_not_to_save), nameless=True)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Any,
    names_which_can_be_offloaded: Any,
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep the values of either names; the memories are accepted.

    Raises
    ------
    ValueError
        A name is in both.
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError(
            "save_and_offload_only_these_names: the names must be different, and both hold "
            f"{', '.join(sorted(both))}."
        )
    return SaveOnlyTheseNames(saved | offloaded)


@dataclass(frozen=True)
class SaveFromBoth:
    """Keep what either of two policies keeps."""

    policy_1: Policy
    policy_2: Policy

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        """Whether what an operation computed may be kept."""
        kept = self.policy_1(prim, *avals, **params) or self.policy_2(prim, *avals, **params)
        return bool(kept)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either policy keeps."""
    return SaveFromBoth(policy_1, policy_2)
