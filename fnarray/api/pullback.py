"""What `vjp` returns: a function of cotangents, its residuals, and where cotangents are to go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import tree
from ..core.ref import AbstractRef, Ref
from ..core.tree import register_dataclass, register_pytree_node
from ..ops.kit.calls import full

__all__ = ["VJP", "DidntWant", "DontWant", "GradRef", "GradValue"]


@dataclass(frozen=True)
class GradValue:
    """Asks `VJP.with_refs` for a cotangent as a result."""


@dataclass(frozen=True)
class DontWant:
    """Asks `VJP.with_refs` for no cotangent."""


@register_dataclass
@dataclass(frozen=True)
class GradRef:
    """In the place of a cotangent: it was added to a Ref."""


@register_dataclass
@dataclass(frozen=True)
class DidntWant:
    """In the place of a cotangent that nobody asked for."""


@register_dataclass
@dataclass(frozen=True)
class NotNeeded:
    """In the place of an argument that the derivative does not need."""


class VJP(tree.Partial):
    """A function that takes cotangents back, with its residuals: what `vjp` returns.

    Attributes
    ----------
    args_res : list
        The arguments of the function, those that are no residuals replaced by `NotNeeded`. What is
        put there is used in their place: a weight that is kept elsewhere need not be kept here.
    opaque_residuals : list of Array
        The other residuals.
    """

    func: Any
    _spec: tuple[int, ...]

    @classmethod
    def of(cls, pull: Any, residuals: Sequence[Any], primals: Sequence[Any]) -> VJP:
        """Return the function of residuals, some of which are the arguments of the derivative."""
        where = {id(x): k for k, x in enumerate(primals)}
        return cls._made(
            (pull, tuple(where.get(id(r), -1) for r in residuals)), (tuple(residuals),)
        )

    @classmethod
    def _made(cls, metadata: tuple[Any, tuple[int, ...]], children: Any) -> VJP:
        pull, spec = metadata
        self = cls(pull, *children)
        self._spec = spec
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in ("args_res", "opaque_residuals"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        (residuals,) = self.args
        leaves: list[Any] = [NotNeeded()] * len(self.func.in_avals)
        for k, r in zip(self._spec, residuals, strict=True):
            if k >= 0:
                leaves[k] = r
        self.args_res = list(self.func.in_spec.unflatten(leaves)[0])
        self.opaque_residuals = [r for k, r in zip(self._spec, residuals, strict=True) if k < 0]
        return self.__dict__[name]

    def residuals(self) -> tuple[Any, ...]:
        """Return the residuals, with what was put in their place."""
        if "args_res" not in self.__dict__:
            return self.args[0]
        given = self.func.in_spec.flatten_up_to((tuple(self.args_res), {}))
        others = iter(self.opaque_residuals)
        return tuple(given[k] if k >= 0 else next(others) for k in self._spec)

    @property
    def jaxpr(self) -> Any:
        """The linear function, which is transposed."""
        return self.func.linear.closed.jaxpr

    def __call__(self, *cts: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take a cotangent back; return the tuple of those of the arguments."""
        return self.func(self.residuals(), *cts)

    def with_refs(self, *wanted: Any) -> Callable[[Any], tuple[Any, ...]]:
        """Return the function that adds cotangents to Refs, where there are some.

        Parameters
        ----------
        *wanted : pytrees
            Of the structure of the arguments: for each a Ref of its shape and dtype, to which its
            cotangent is added, or ``ad.GradValue()`` or ``ad.DontWant()``. Of an argument that is a
            Ref, what it holds is taken as the cotangent of what the function leaves in the
            argument, and replaced with that of what the function found there: if it only reads,
            its cotangent is added as well.

        Returns
        -------
        callable
            Its results are those of this function, with ``ad.GradRef()`` where a Ref has the
            cotangent, and ``ad.DidntWant()`` where it was not wanted. A pytree.

        Raises
        ------
        ValueError
            The structure is another, or a Ref does not fit its argument.
        """
        found, spec = tree.flatten_spec((wanted, {}))
        if spec != self.func.in_spec:
            raise ValueError(
                "with_refs: what is wanted must have the structure of the arguments, "
                f"{tree.PyTreeDef(self.func.in_spec.child(0))}, got {tree.structure(wanted)}."
            )
        for k, (given, x) in enumerate(zip(self.func.in_avals, found, strict=True)):
            aval = given.update(weak_type=False)
            fits = (x.shape, x.dtype) == (aval.shape, aval.dtype) if isinstance(x, Ref) else True
            held = isinstance(x, GradValue) and k in self.func.linear.refs
            if not fits or held or not isinstance(x, Ref | GradValue | DontWant):
                raise ValueError(
                    f"with_refs: the cotangent of an argument {aval.str_short()} goes to a "
                    f"{AbstractRef(aval)}, ad.GradValue() (but not of a Ref's) or ad.DontWant(), "
                    f"got {x!r}."
                )
        return tree.Partial(_Accumulate(self.func), self.residuals(), found)


register_pytree_node(
    VJP,
    lambda f: ((f.residuals(),), (f.func, f._spec)),
    VJP._made,
)


@dataclass(frozen=True)
class _Accumulate:
    """Adds cotangents to Refs."""

    pull: Any

    def __call__(self, residuals: Sequence[Any], wanted: Sequence[Any], ct: Any) -> Any:
        asked = [not isinstance(x, DontWant) for x in wanted]
        # A Ref has the cotangent of what is left in it before, and of what was in it after.
        left = [
            wanted[k][...] if isinstance(wanted[k], Ref) else full(aval, 0)
            for k, aval in self.pull.linear.refs.items()
        ]
        found = self.pull(residuals, ct, wanted=None if all(asked) else asked, left=left)
        cts = self.pull.in_spec.flatten_up_to((found, {}))
        held = (k in self.pull.linear.refs for k in range(len(cts)))
        return self.pull.in_spec.unflatten(map(_put, wanted, cts, held))[0]


def _put(wanted: Any, ct: Any, held: bool) -> Any:
    if isinstance(wanted, Ref):
        if held:
            wanted[...] = ct
        else:
            wanted.addupdate(ct)
        return GradRef()
    return DidntWant() if isinstance(wanted, DontWant) else ct
