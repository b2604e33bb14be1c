"""Trees with the containers of the last ones: taken apart by code made for their structure.

optree asks each leaf what it is, which takes 0.16 us; code that knows the containers picks ten
leaves out in 1 us, and asks of all at once whether their types are those of leaves.
"""

# pyright: standard
from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import optree

from .tree_nodes import when_registered

__all__ = ["met", "taken"]

#: Times that containers are met before code is made for them, which takes 0.3 ms; and further
#: times where none can be, or the code fits no longer: what is inside differs from call to call.
_OFTEN, _AGAIN = 20, 1000
_MOST: Final = 1024
#: Types of leaves that were met: arrays, and what is no node as long as its type is not registered.
_leaf_types: Final[set[type]] = set()
#: By the outermost container: how often it was met, or the code and the structure.
_known: Final[dict[Any, Any]] = {}


def _forget() -> None:
    _leaf_types.clear()
    _known.clear()


when_registered.append(_forget)


def _signature(tree: Any) -> Any:
    """Return what is asked of a tree first; None where no code is made."""
    kind = type(tree)
    if kind is dict:
        return tuple(tree)  # in the order in which they were set
    return (kind, len(tree)) if kind is list or kind is tuple else None


def taken(tree: Any) -> tuple[list[Any], optree.PyTreeSpec] | None:
    """Return leaves and structure of a tree with the containers of an earlier one, or None."""
    try:
        take, spec = _known[_signature(tree)]
        leaves = take(tree)
    except (KeyError, TypeError, ValueError):  # met too seldom, or made of other containers
        return None
    return (leaves, spec) if _leaf_types.issuperset(map(type, leaves)) else None


def met(tree: Any, leaves: list[Any], spec: optree.PyTreeSpec) -> None:
    """Note a tree that was taken apart, arrays being leaves; make code for it by and by."""
    signature = _signature(tree)
    if signature is None:
        return
    if len(_known) + len(_leaf_types) >= _MOST:
        _forget()
    known = _known.get(signature, 0)
    if isinstance(known, int) and known < _OFTEN:
        _known[signature] = known + 1
        return
    unpack = import_module(".unpack", __package__)  # which most trees are met too seldom for
    fits = isinstance(known, int) or known[1] is spec
    if fits and _is_plain(spec) and spec.num_leaves <= unpack.MOST_LEAVES:
        _leaf_types.update(map(type, leaves))
        _known[signature] = unpack.unpacker(spec), spec
    else:
        _known[signature] = _OFTEN - _AGAIN


def _is_plain(spec: optree.PyTreeSpec) -> bool:
    """Whether code tells a structure from all others: by types, lengths and names."""
    if spec.is_leaf() or spec.type is type(None):
        return True
    if spec.type is dict and any(type(key) is not str for key in spec.entries()):
        return False
    named = spec.kind == optree.PyTreeKind.NAMEDTUPLE
    return (named or spec.type in (tuple, list, dict)) and all(map(_is_plain, spec.children()))
