"""Arguments and results of functions with derivatives of their own, as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..core import tree
from ..core.array import Array
from ..core.ref import Ref
from ..core.trace import Tracer
from ..ops.convert import stop_gradient
from ..ops.kit.canonical import as_array
from .signature import fun_text

__all__: list[str] = []


class Arguments:
    """Arguments of one call as flat operands, and back.

    Those that are not differentiated stay as they are, but for tracers in them, which are operands
    too, ``held`` ones: rules that run later see them as they run.
    """

    def __init__(self, args: Sequence[Any], nondiff: Sequence[int]):
        self.count = len(args)
        self.nondiff = nondiff
        self.diff = [i for i in range(len(args)) if i not in nondiff]
        flat = [tree.flatten_spec(args[i]) for i in nondiff]
        self.static_specs = [spec for _, spec in flat]
        self.statics = [leaves for leaves, _ in flat]
        self.places: list[tuple[int, int]] = []
        #: What the call is applied to; taken off when it is, as rules outlive the trace.
        self.operands: list[Any] = []
        for k, leaves in enumerate(self.statics):
            for j, x in enumerate(leaves):
                if isinstance(x, Tracer):
                    self.places.append((k, j))
                    self.operands.append(stop_gradient(x))
                    leaves[j] = None
        self.held = len(self.places)
        leaves, self.spec = tree.flatten_spec(tuple(args[i] for i in self.diff))
        #: Refs, by number among the leaves: they are no operands, and have no cotangents.
        self.refs = {k: x for k, x in enumerate(leaves) if type(x) is Ref}
        self.operands += self.of_arrays(leaves)

    def take(self) -> list[Any]:
        """Return the operands, and hold them no longer."""
        operands, self.operands = self.operands, []
        return operands

    def nondiff_args(self, held: Sequence[Any]) -> list[Any]:
        """Return the arguments that are not differentiated."""
        rows = [list(leaves) for leaves in self.statics]
        for (k, j), x in zip(self.places, held, strict=True):
            rows[k][j] = x
        return [s.unflatten(row) for s, row in zip(self.static_specs, rows, strict=True)]

    def of_arrays(self, leaves: Sequence[Any]) -> list[Any]:
        """Return what belongs to arrays, of what belongs to all leaves."""
        return [x for k, x in enumerate(leaves) if k not in self.refs]

    def diff_args(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the differentiated arguments, or trees like them, from leaves."""
        rest = iter(leaves)
        leaves = [
            self.refs[k] if k in self.refs else next(rest) for k in range(self.spec.num_leaves)
        ]
        return cast("tuple[Any, ...]", self.spec.unflatten(leaves))

    def all(self, operands: Sequence[Any]) -> list[Any]:
        """Return all arguments from operands."""
        args: list[Any] = [None] * self.count
        for i, x in zip(self.nondiff, self.nondiff_args(operands[: self.held]), strict=True):
            args[i] = x
        for i, x in zip(self.diff, self.diff_args(operands[self.held :]), strict=True):
            args[i] = x
        return args


def result(x: Any, k: int, out: Any, fun: Callable[..., Any]) -> Array:
    """Return a leaf of what a function returned as an array; raise naming it where it is none."""
    if type(x) is Ref:
        raise ValueError(
            f"{fun_text(fun)} returned a mutable array reference of type {x.aval}, but functions "
            "with derivatives of their own cannot return one. Return its value: ref[...]."
        )
    try:
        return as_array(x)
    except TypeError as error:
        path = tree.keystr(tree.leaves_with_path(out)[k][0])
        raise TypeError(
            f"{x!r} of type {type(x)} is not a valid fnarray type: it is returned by "
            f"{fun_text(fun)} at result{path}. Return arrays, numbers, and containers of them."
        ) from error
