"""Functions on pytrees, under the long names of ``jax.tree_util``."""

from .core import tree as _tree
from .core import tree_whole as _whole
from .core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Partial,
    PyTreeDef,
    SequenceKey,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from .core.tree_whole import (
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
)

all_leaves = _whole.all_leaves
tree_all = _whole.all
tree_broadcast = _whole.broadcast
tree_flatten = _whole.flatten
tree_flatten_with_path = _whole.flatten_with_path
tree_leaves = _whole.leaves
tree_leaves_with_path = _whole.leaves_with_path
tree_map = _whole.map
tree_map_with_path = _whole.map_with_path
tree_reduce = _whole.reduce
tree_reduce_associative = _whole.reduce_associative
tree_structure = _whole.structure
tree_transpose = _whole.transpose
tree_unflatten = _tree.unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
