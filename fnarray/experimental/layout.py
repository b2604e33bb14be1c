"""How arrays lie in memory, and what is asked of it."""

from __future__ import annotations

from typing import Any

from .. import tree_util
from ..runtime.layout import Format as Format
from ..runtime.layout import Layout as Layout
from ..runtime.layout import check_layout

__all__ = ["Format", "Layout", "with_layout_constraint"]
__dir__ = __all__.copy


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return a value, which must be asked for in the layout that it has.

    Raises
    ------
    NotImplementedError
        For another layout: transpose the array, whose layout is then what was meant.
    """

    def check(leaf: Any, layout: Any) -> Any:
        layout.check_compatible_aval(leaf.shape)
        check_layout("with_layout_constraint", layout)
        return leaf

    return tree_util.tree_map(check, x, layouts)
