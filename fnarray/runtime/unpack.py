"""Taking a call's arguments apart, by code made for one structure.

Flattening asks every leaf what it is. Where the next call has the structure of the last one, it is
enough to check the containers and pick the leaves out of them, which is ten times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import optree

#: Above this many leaves the code is not worth compiling.
MOST_LEAVES = 2000


def no_leaves(tree: Any) -> list[Any]:
    """Stand for code that knows no structure."""
    raise KeyError


@lru_cache(maxsize=1024)
def unpacker(spec: Any) -> Callable[[Any], list[Any]]:
    """Return a function that gives the leaves of a tree of one structure.

    It raises `KeyError` or `ValueError` for a tree of another structure; what stands in a leaf's
    place it does not check. For structures with registered classes it always raises.

    Parameters
    ----------
    spec : optree.PyTreeSpec
    """
    if spec.num_leaves > MOST_LEAVES:
        return no_leaves
    lines: list[str] = []
    leaves: list[str] = []
    names: dict[str, Any] = {}

    def bound(value: Any) -> str:
        names[f"c{len(names)}"] = value
        return f"c{len(names) - 1}"

    def visit(node: Any, text: str) -> bool:
        if node.is_leaf():
            leaves.append(text)
            return True
        kind = node.type
        if kind is type(None):
            lines.append(f"if {text} is not None: raise KeyError")
            return True
        mapping = kind is dict
        if not (mapping or kind in (tuple, list) or optree.is_namedtuple_class(kind)):
            return False
        n, x = node.num_children, f"x{len(lines)}"
        lines.append(f"{x} = {text}")
        lines.append(f"if type({x}) is not {bound(kind)} or len({x}) != {n}: raise KeyError")
        if mapping:
            items = [f"{x}[{bound(key)}]" for key in node.entries()]
        else:
            items = [f"{x}_{i}" for i in range(n)]
            lines.append(f"[{', '.join(items)}] = {x}")
        return all(map(visit, node.children(), items))

    if not visit(spec, "tree"):
        return no_leaves
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def leaves(tree):\n{body}    return [{', '.join(leaves)}]", names)
    return names["leaves"]
