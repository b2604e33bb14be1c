"""Functions that say themselves how they run on batches: ``custom_vmap``, ``sequential_vmap``.

A call is an equation that holds the function's graph, and the rule, which runs when the equation is
batched. Forward derivatives keep a rule, the derivative of the given one; reverse mode is that of
the function itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..core import tree
from ..core.graph import ClosedGraph
from ..core.source import boundary
from ..core.tangents import chosen, nonzero, with_zeros
from ..core.trace import bind
from ..errors import MissingRuleError
from ..ops.kit.canonical import as_array
from ..ops.kit.rules import instantiate, spread
from ..transforms.batch import Axis
from ..transforms.derivative import jvp, lift
from ..transforms.graphs import jvp_graph
from . import scan
from ._bodies import Holding, holding
from .admission import admit, guard_rules
from .call import jit_p
from .signature import Signature, abstract, fun_text, parameters_of
from .tracing import traced

__all__: list[str] = []

Flags = tuple[bool, ...]
Values = Sequence[Any]
#: ``rule(size, operands, batched) -> (results, flags)``, flat.
Rule = Callable[[int, Values, Flags], tuple[list[Any], Flags]]
_AS_CALL = Holding()


class FlatRule:
    """A rule that a user gave, on flat operands; ``num_consts`` of them are closed over."""

    def __init__(
        self, rule: Callable[..., Any], name: str, in_spec: Any, out_spec: Any, consts: int
    ):
        self.rule, self.name = rule, name
        self.in_spec, self.out_spec, self.num_consts = in_spec, out_spec, consts

    def __call__(self, size: int, operands: Values, batched: Flags) -> tuple[list[Any], Flags]:
        """Apply the rule."""
        n = self.num_consts
        if any(batched[:n]):
            raise MissingRuleError(
                "batch",
                self.name,
                "it closes over a value that is being mapped, of which its rule says nothing. Pass "
                "the value as an argument",
            )
        args = self.in_spec.unflatten(operands[n:])
        with admit(self.rule, "custom_vmap"):
            found = self.rule(size, list(self.in_spec.unflatten(batched[n:])), *args)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise TypeError(
                f"custom_vmap: the rule of {self.name} must return a pair, results and whether "
                f"each is batched, got {found!r}."
            )
        outs, spec = tree.flatten_spec(found[0])
        flags, of_flags = tree.flatten_spec(found[1])
        for what, got in (("results", spec), ("which of them are batched", of_flags)):
            if got != self.out_spec:
                raise TypeError(
                    f"custom_vmap: the rule of {self.name} returns {what} in the structure "
                    f"{tree.PyTreeDef(got)}, the function in {tree.PyTreeDef(self.out_spec)}."
                )
        return [as_array(x) for x in outs], tuple(map(bool, flags))


class DerivedRule:
    """The rule of a function's forward derivative: that of its results and their tangents."""

    def __init__(self, rule: Rule, active: Flags, wanted: Flags, name: str):
        self.rule, self.active, self.wanted, self.name = rule, active, wanted, name

    def __call__(self, size: int, operands: Values, batched: Flags) -> tuple[list[Any], Flags]:
        """Differentiate the rule."""
        n = len(self.active)
        tangents_batched = iter(batched[n:])
        both = [
            b or (a and next(tangents_batched)) for a, b in zip(self.active, batched, strict=False)
        ]
        given = iter(zip(operands[n:], batched[n:], strict=True))
        primals = [
            x if b or not w else spread(x, size)
            for x, b, w in zip(operands[:n], batched[:n], both, strict=True)
        ]
        tangents = []
        for a, w in zip(self.active, both, strict=True):
            if a:
                t, b = next(given)
                tangents.append(t if b or not w else spread(t, size))
        flags: list[Flags] = []

        def run(*xs: Any) -> list[Any]:
            outs, found = self.rule(size, xs, tuple(both))
            flags.append(found)
            return outs

        primals = [lift(x) for x in primals]
        duals = with_zeros(self.active, tangents, [x.aval for x in primals])
        outs, of_outs = jvp(run, primals, duals, self.name)
        kept = [instantiate(t) for t in chosen(self.wanted, of_outs)]
        return [*outs, *kept], (*flags[0], *chosen(self.wanted, flags[0]))


def _jvp(primals: Values, tangents: Values, *, call: ClosedGraph, rule: Rule, name: str) -> Any:
    active = nonzero(tangents)
    derived = jvp_graph(call, active)
    found = bind(
        custom_vmap_p,
        *derived.consts,
        *primals,
        *chosen(active, tangents),
        call=derived.graph,
        rule=_after(len(derived.consts), DerivedRule(rule, active, derived.flags, name)),
        name=name,
    )
    n = len(call.out_avals)
    return found[:n], with_zeros(derived.flags, found[n:], [x.aval for x in found[:n]])


def _after(count: int, rule: Rule) -> Rule:
    """Return the rule of operands that follow some which it does not take."""
    return lambda size, operands, batched: rule(size, operands[count:], batched[count:])


def _batch(
    axis: Axis, operands: Values, batched: Flags, *, call: ClosedGraph, rule: Rule, name: str
) -> Any:
    return rule(int(axis), operands, batched)


custom_vmap_p = holding(
    "custom_vmap_call",
    Holding("call"),
    jvp=_jvp,
    linearize=lambda primals, tangents, *, call, rule, name: _AS_CALL.linearize(jit_p)(
        primals, tangents, jaxpr=call, name=name
    ),
    transpose=lambda cts, *operands, call, rule, name: _AS_CALL.transpose(jit_p)(
        cts, *operands, jaxpr=call, name=name
    ),
    batch=_batch,
    print_params=lambda params: {k: v for k, v in params.items() if k != "rule"},
)


class custom_vmap:  # noqa: N801 - JAX's name
    """A function with a rule of its own for `vmap`.

    Parameters
    ----------
    fun : callable

    Examples
    --------
    >>> import fnarray, fnarray.numpy as jnp
    >>> from fnarray.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, xs):
    ...     return xs + 10, in_batched[0]
    >>> f(0), fnarray.vmap(f)(jnp.arange(3)).tolist()
    (Array(1, dtype=int32, weak_type=True), [10, 11, 12])
    """

    def __init__(self, fun: Callable[..., Any]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule: ``rule(axis_size, in_batched, *args) -> (results, whether batched)``.

        Batched arguments and results have the mapped axis in front; ``in_batched`` has a bool for
        each leaf of the arguments, as has what is returned for each leaf of the results.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises
        ------
        AttributeError
            It has no rule yet.
        """
        fun, rule = self.fun, self.vmap_rule
        if rule is None:
            raise AttributeError(
                f"custom_vmap: {fun_text(fun)} has no rule for vmap. Give it by @f.def_vmap."
            )
        guard_rules(self, ("vmap_rule",))
        if kwargs:
            args = _by_position(fun, args, kwargs)
        leaves, spec = tree.flatten_spec((args, {}))
        t = traced(fun, Signature(spec, tuple(map(abstract, leaves))), user="custom_vmap")
        name = t.name
        flat = FlatRule(rule, name, tree.flatten_spec(args)[1], t.out_spec, len(t.consts))
        outs = bind(custom_vmap_p, *t.consts, *leaves, call=t.closed, rule=flat, name=name)
        return t.out_spec.unflatten(outs)


def _by_position(fun: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    if parameters_of(fun) is None:
        raise TypeError(f"custom_vmap: {fun_text(fun)} takes arguments by position alone.")
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"custom_vmap: {fun_text(fun)} has keyword-only arguments {sorted(bound.kwargs)}, "
            "which its rule could not be given. Make them arguments by position."
        )
    return bound.args


def sequential_vmap(fun: Callable[..., Any]) -> custom_vmap:
    """Return a function that `vmap` applies to one example after the other, by `lax.map`."""
    mapped = custom_vmap(fun)

    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> Any:
        leaves, spec = tree.flatten_spec(args)
        flags = tree.leaves(in_batched)
        rows = tuple(x for x, b in zip(leaves, flags, strict=True) if b)

        def one(row: Any) -> Any:
            given = iter(row)
            return fun(
                *spec.unflatten(
                    [next(given) if b else x for x, b in zip(leaves, flags, strict=True)]
                )
            )

        out = scan.map(one, rows)
        return out, tree.map(lambda _: True, out)

    mapped.def_vmap(rule)
    return mapped
