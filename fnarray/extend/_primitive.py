"""Primitives that are declared rule by rule, as JAX's interface for extensions has them.

One is a primitive like any other: its rules stand in the same slots, where the tables of
``interpreters`` put them. What it lowers to is a function on arrays, traced into the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..control.callback import pure_callback
from ..core.array import asarray
from ..core.avals import OverlayAval, ShapedArray, ShapeDtypeStruct
from ..core.forms import Inline
from ..core.graph import eval_graph
from ..core.primitive import Missing
from ..core.primitive import Primitive as _Primitive
from ..core.trace import bind, no_trace, state, trace_graph
from ..ops.kit.calls import full, reshape
from ..ops.slicing import concatenate

Rule = Callable[..., Any]


class _AllOfThem(type):
    """Says that every operation is a `Primitive`: JAX has one class for them."""

    def __instancecheck__(cls, x: object) -> bool:
        return issubclass(type(x), _Primitive if cls is Primitive else cls)


class Primitive(_Primitive, metaclass=_AllOfThem):
    """An operation whose rules are given after it is made.

    Parameters
    ----------
    name : str
        As it is printed. Two primitives may have one name.

    Attributes
    ----------
    multiple_results : bool
        Whether its results are a list; False until it is set.
    impl : callable
        What calls outside of any transform do, as given to `def_impl`.
    abstract_eval : callable
        As given to `def_abstract_eval`.
    """

    __slots__ = (
        "__weakref__",
        "abstract_eval",
        "call_primitive",
        "impl",
        "lowered_for",
        "lowering",
    )

    form: Rule | Missing

    def __init__(self, name: str):
        kind = type(self)  # a class below may have the rules as methods
        several = kind.multiple_results is not Primitive.multiple_results and kind.multiple_results
        if kind.impl is Primitive.impl:
            self.impl: Rule = _refusing(
                f"Evaluation rule for '{name}' not implemented: give one by def_impl."
            )
        if kind.abstract_eval is Primitive.abstract_eval:
            self.abstract_eval: Rule = _refusing(
                f"Abstract evaluation for '{name}' not implemented: give one by def_abstract_eval."
            )
        else:
            self.def_effectful_abstract_eval(self.abstract_eval)
        self.lowering: Rule | None = None
        self.lowered_for: str | None = None
        self.call_primitive = False
        super().__init__(
            name,
            aval=self._aval,
            eval=self._eval,
            form=Missing(
                f"MLIR translation rule for primitive '{name}' not found for platform cpu: give "
                "one by mlir.register_lowering(p, mlir.lower_fun(f))."
            ),
            jvp=Missing(
                f"Differentiation rule for '{name}' not implemented: give one as "
                "ad.primitive_jvps[p]."
            ),
            transpose=Missing(
                f"Transpose rule (for reverse-mode differentiation) for '{name}' not implemented: "
                "give one as ad.primitive_transposes[p]."
            ),
            batch=Missing(
                f"Batching rule for '{name}' not implemented: give one as "
                "batching.primitive_batchers[p]."
            ),
            quiet=False,
        )
        self.multiple_results = bool(several)

    # ---- what its author gives ----

    def def_impl(self, impl: Rule) -> Rule:
        """Set what calls outside of any transform do; return it."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Set what gives the results' avals of those of the operands; return it."""
        self.abstract_eval = abstract_eval
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Set what gives the results' avals, and effects, which count for nothing here."""
        self.abstract_eval = lambda *avals, **params: abstract_eval(*avals, **params)[0]
        return abstract_eval

    def lower_to(self, fun: Rule) -> None:
        """Set the function on arrays that it is compiled as."""
        self.lowering = fun
        self.form = self._form

    # ---- what stages ask ----

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Apply it: as its author says, or as the trace in progress does."""
        if state.trace is not None:
            return bind(self, *args, **params)
        outs = self.impl(*args, **params)
        return list(map(_array, outs)) if self.multiple_results else _array(outs)

    def _aval(self, /, *avals: ShapedArray, **params: Any) -> Any:
        outs = self.abstract_eval(*avals, **params)
        return tuple(map(as_aval, outs)) if self.multiple_results else as_aval(outs)

    def _eval(self, /, *xs: Any, **params: Any) -> Any:
        outs = self.impl(*map(asarray, xs), **params)
        return [asarray(o)._data for o in outs] if self.multiple_results else asarray(outs)._data

    def _form(self, ins: Sequence[Any], outs: Sequence[Any], /, **params: Any) -> Inline:
        fun = self.lowering
        assert fun is not None

        def flat(*xs: Any) -> Sequence[Any]:
            found = fun(*xs, **params)
            return list(found) if self.multiple_results else [found]

        with no_trace():
            graph = trace_graph(flat, ins, self.name)
            if not graph.consts:
                return Inline(graph)
            # What is inlined holds no arrays: those that the function makes are computed in it.
            made = [np.asarray(c) for c in graph.consts]
            return Inline(
                trace_graph(
                    lambda *xs: eval_graph(graph.jaxpr, list(map(_constant, made)), xs, bind),
                    ins,
                    self.name,
                )
            )


def _array(x: Any) -> Any:
    """Return what an implementation gives as an array, where NumPy computed it."""
    return asarray(x) if isinstance(x, np.ndarray | np.generic) else x


def _refusing(text: str) -> Rule:
    def refuse(*args: Any, **params: Any) -> Any:
        raise NotImplementedError(text)

    return refuse


#: Arrays of up to so many elements are spelled out, larger ones fetched by a callback.
_SPELLED = 64


def _constant(x: np.ndarray) -> Any:
    """Return an array as what operations compute, in the trace in progress."""
    aval = ShapedArray(x.shape, x.dtype)
    if x.size <= 1 or (x == x.flat[0]).all():
        return full(aval, x.flat[0] if x.size else 0)
    if x.size > _SPELLED:
        return pure_callback(lambda: x, ShapeDtypeStruct(x.shape, x.dtype))
    each = ShapedArray((1,), x.dtype)
    return reshape(concatenate([full(each, v) for v in x.flat], 0), x.shape)


def as_aval(x: Any) -> ShapedArray:
    """Return the aval that something of a shape and a dtype has."""
    if isinstance(x, ShapedArray | OverlayAval):
        return x  # type: ignore[return-value]
    return ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))


class Rules(dict[Any, Rule]):
    """A table of rules by primitive: setting one puts it where transforms look.

    Parameters
    ----------
    slot : str
        Of a primitive.
    adapt : callable
        ``adapt(rule, prim)``, the rule as the slot has it.
    read : callable
        ``read(rule, prim)``, the slot's rule as the table has it.
    """

    def __init__(self, slot: str, adapt: Callable[..., Rule], read: Callable[..., Rule]):
        super().__init__()
        self.slot, self.adapt, self.read = slot, adapt, read

    def __setitem__(self, prim: Any, rule: Rule) -> None:
        super().__setitem__(prim, rule)
        setattr(prim, self.slot, self.adapt(rule, prim))

    def __missing__(self, prim: Any) -> Rule:
        found = getattr(prim, self.slot, None)
        if found is None or isinstance(found, Missing):
            raise KeyError(prim)
        return self.read(found, prim)

    def __contains__(self, prim: object) -> bool:
        if super().__contains__(prim):
            return True
        return isinstance(prim, _Primitive) and not isinstance(
            getattr(prim, self.slot, None), Missing | None
        )

    def get(self, prim: Any, default: Any = None) -> Any:
        """Return a primitive's rule, or the default where it has none."""
        return self[prim] if prim in self else default  # noqa: SIM401 - this is `get`
