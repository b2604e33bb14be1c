"""The record of one operation: everything any stage may ask about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import MissingRuleError
from .frozen import frozen


@frozen
class Missing:
    """A rule that an operation does not have, and why; the reason becomes the error's text."""

    why: str


@frozen
class RuleOf:
    """A common shape of rule, made into the rule of the primitive that it is given to."""

    make: Callable[[Primitive], Callable[..., Any]]


Rule = Callable[..., Any] | RuleOf | Missing


class Primitive:
    """One operation and its rules.

    Parameters
    ----------
    name : str
        Its name in the registry, and as printed in graphs.
    aval : callable
        ``aval(*avals, **params) -> ShapedArray`` or a tuple of them: the shape and dtype rule; it
        raises the errors that bad operands get.
    eval : callable
        ``eval(*numpy_arrays, **params)``: the value by NumPy. Eager mode, and the oracle of
        emitted code.
    form : callable
        ``form(in_avals, out_avals, **params) -> Form``: how it lowers (see ``core.forms``).
    jvp : callable, RuleOf or Missing
        ``jvp(primals, tangents, **params) -> (out, tangent)``, lists of them for several results.
        A tangent may be a `Zero`, of operands and results; never all of the operands'.
    linearize : callable, optional
        ``linearize(primals, tangents, **params) -> (outs, tangent_outs)`` where the tangents are
        tracers of a tape that is later transposed: given by operations that hold graphs, whose
        ``jvp`` mixes both. ``jvp`` serves where it is omitted.
    transpose : callable, RuleOf or Missing
        ``transpose(ct, *operands, **params) -> list`` of cotangents, None for operands that are
        not linear; linear ones come as `Undefined`. Of several results, ``ct`` is a list.
    batch : callable, RuleOf or Missing
        ``batch(size, operands, batched, **params) -> out``, or ``(outs, flags)`` for several
        results, and ``(out, flag)`` for one that may be the same for all examples. ``batched``
        says which operands carry the mapped axis, at position 0 always, as does the result.
    collective : callable, optional
        Of operations between the examples of a mapped axis, which have a param ``axis_name``, a
        tuple: ``collective(axis, operands, batched, **params) -> (out, whether it has the axis)``,
        where ``axis`` is one of those named.
    effects : tuple of str
        What it does beside computing its results; an operation with effects is never dropped.
    multiple_results : bool
        Whether ``aval`` and ``eval`` give tuples.
    quiet : bool
        Whether ``eval`` runs with NumPy's floating-point warnings off. Not where it runs graphs,
        whose operations see to it themselves, or the user's Python, which is to see the
        caller's context.
    stepwise : bool
        Whether ``eval`` is no more than the operations of the graph that ``form`` inlines.
    weak : bool
        Whether results are weakly typed when every operand is.
    word : bool
        Whether it only says where its operand is: it is no part of what is compiled.
    typed : bool
        Whether ``aval`` itself says where results are, as that of words does.
    affine : bool
        Whether ``transpose`` may make something of cotangents that are zero, as a user's rule does.
    print_name : str, optional
        The name in printed graphs, where JAX has no operation of its own.
    print_params : callable, optional
        ``print_params(params) -> params`` as the printed graph should show them.
    """

    __slots__ = (
        "affine",
        "aval",
        "batch",
        "collective",
        "effects",
        "eval",
        "form",
        "jvp",
        "linearize",
        "multiple_results",
        "name",
        "print_name",
        "print_params",
        "quiet",
        "stepwise",
        "transpose",
        "typed",
        "word",
    )

    #: Whether a param is a graph that is called as it is: interpreters of graphs ask.
    call_primitive = False

    jvp: Callable[..., Any] | Missing
    linearize: Callable[..., Any] | None
    transpose: Callable[..., Any] | Missing
    batch: Callable[..., Any] | Missing

    def __init__(
        self,
        name: str,
        *,
        aval: Callable[..., Any],
        eval: Callable[..., Any],
        form: Callable[..., Any] | Missing,
        jvp: Rule,
        linearize: Callable[..., Any] | RuleOf | None = None,
        transpose: Rule,
        batch: Rule,
        collective: Callable[..., Any] | None = None,
        effects: tuple[str, ...] = (),
        multiple_results: bool = False,
        quiet: bool = True,
        stepwise: bool = False,
        word: bool = False,
        typed: bool = False,
        affine: bool = False,
        print_name: str | None = None,
        print_params: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ):
        self.name = name
        self.aval = aval
        self.eval = eval
        self.form = form
        self.jvp, self.linearize, self.transpose, self.batch = map(
            self._made, (jvp, linearize, transpose, batch)
        )
        self.collective = collective
        self.effects = effects
        self.multiple_results = multiple_results
        self.quiet = quiet
        self.stepwise = stepwise
        self.word = word
        self.typed = typed or word
        self.affine = affine
        self.print_name = print_name or name
        self.print_params = print_params

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Apply the operation: `core.trace` says how."""
        raise RuntimeError("fnarray is only partly imported: import fnarray first")

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return an equation's params as `bind` takes them: those that it has."""
        return params

    def _made(self, rule: Any) -> Any:
        return rule.make(self) if isinstance(rule, RuleOf) else rule

    def rule(self, slot: str) -> Callable[..., Any]:
        """Return the rule in ``slot``; raise `MissingRuleError` with the declared reason."""
        rule = getattr(self, slot)
        if isinstance(rule, Missing):
            raise MissingRuleError(slot, self.name, rule.why)
        return rule

    def __repr__(self) -> str:
        return self.name
