"""``jax._src.tree_util``."""

from __future__ import annotations

from fnarray.tree_util import *  # noqa: F403
from fnarray.tree_util import is_tree_node as _is_tree_node


class _Registry:
    """Answers which types are nodes."""

    def __contains__(self, kind: type) -> bool:
        return _is_tree_node(kind)


_registry = _Registry()
