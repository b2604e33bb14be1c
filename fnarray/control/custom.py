"""Functions whose derivatives their authors give: ``custom_jvp`` and ``custom_vjp``."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ..core import tree
from ..core.array import Array, aval_of
from ..core.callables import is_a, signature_of, take_name, unwrapped
from ..core.dtypes import float0
from ..core.ref import Ref, check_distinct
from ..core.source import PACKAGE, boundary, located
from ..core.tangents import SymbolicZero, Zero, differentiable, symbolic, tangent_aval
from ..core.trace import GraphTrace, call_custom, state
from ..errors import UnexpectedTracerError
from ..ops.kit.canonical import as_array
from ..ops.kit.rules import add_tangents, instantiate
from .admission import admit, guard_rules
from .custom_args import Arguments, result
from .custom_rules import JVPCall, JVPRule, VJPCall
from .in_place import RulesOfRefs
from .signature import abstract, fun_name, fun_text

__all__: list[str] = []

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., tuple[Any, Any]])


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangents of the leaves of a tree: symbolic, or as arrays."""

    def zero_of(x: Any) -> Any:
        zero = SymbolicZero(tangent_aval(aval_of(x)))
        return zero if symbolic_zeros else instantiate(Zero(zero.aval))

    return tree.map(zero_of, val)


# ---- calls ---------------------------------------------------------------------------------------


class _Custom(Generic[R, P]):
    """What the two kinds of functions share."""

    kind = ""
    #: Attributes that hold rules, which may be given anew.
    rules: tuple[str, ...] = ()

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        if not callable(fun):
            raise TypeError(
                f"{self.kind}: Expected a callable value, got {fun!r} of type {type(fun)}."
            )
        take_name(self, fun)
        self.__wrapped__ = self.fun = fun
        try:
            self._signature = signature_of(fun)
        except (ValueError, TypeError):
            self._signature = None
        self.nondiff_argnums = self._nondiff(nondiff_argnums, nondiff_argnames)
        self.symbolic_zeros = False
        # The package's own functions are pure, and need no look.
        inner = unwrapped(fun)
        self.ours = is_a(inner, types.FunctionType) and inner.__code__.co_filename.startswith(
            PACKAGE
        )

    def __getattr__(self, name: str) -> Any:
        # What the function beneath is declared by, such as def_vmap of a custom_vmap.
        if name.startswith("def") and hasattr(vars(self).get("fun"), name):
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def admitted(self, fun: Callable[..., Any]) -> Any:
        """Check the function or a rule; enter the result while it runs."""
        if self.ours:
            return contextlib.nullcontext()
        guard_rules(self, self.rules)
        return admit(fun, self.kind)

    def _eagerly(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the function where nothing is traced: as it is."""
        if any(type(x) is Ref for x in args):
            check_distinct(fun_name(self.fun), self.kind, args, 0)
        with self.admitted(self.fun):
            out = self.fun(*args, **kwargs)
        if isinstance(out, Array):
            return out
        leaves, spec = tree.flatten_spec(out)
        return spec.unflatten([result(x, k, out, self.fun) for k, x in enumerate(leaves)])

    def _nondiff(self, nums: Any, names: Any) -> tuple[int, ...]:
        places = set(map(index, (nums,) if isinstance(nums, int) else nums))
        known = list(self._signature.parameters) if self._signature else []
        for name in (names,) if isinstance(names, str) else names:
            if name not in known:
                raise ValueError(
                    f"{self.kind}: nondiff_argnames={name!r} is no parameter of "
                    f"{fun_text(self.fun)}, which takes {', '.join(known)}."
                )
            places.add(known.index(name))
        return tuple(sorted(places))

    def _positional(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """Return all arguments by position, defaults included, as rules take them."""
        if self._signature is None and not kwargs:
            return args
        text = (
            f"The input arguments to the {self.kind}-decorated function {fun_name(self.fun)} could "
            "not be resolved to positional-only arguments. Binding failed with the error:\n"
        )
        if self._signature is None:
            raise TypeError(f"{text}its signature is not known, so call it by position.")
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{text}{error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            left = ", ".join(bound.kwargs)
            raise TypeError(
                f"{text}The following keyword arguments could not be resolved to positions: {left}"
            )
        return bound.args

    def _arguments(self, args: tuple, kwargs: dict[str, Any]) -> Arguments:
        args = self._positional(args, kwargs)
        n = len(args)
        if any(not -n <= i < n for i in self.nondiff_argnums):
            raise ValueError(
                f"{self.kind}: nondiff_argnums={self.nondiff_argnums} do not fit the {n} arguments "
                f"of {fun_text(self.fun)}."
            )
        given = Arguments(args, [i % n for i in self.nondiff_argnums])
        check_distinct(fun_name(self.fun), self.kind, tuple(given.refs.values()), 0)
        for k, x in enumerate(given.operands[given.held :]):
            if not isinstance(x, Array):
                self._check_argument(x, args, given, k)
        return given

    def _check_argument(self, x: Any, args: tuple, given: Arguments, k: int) -> None:
        try:
            aval_of(x)
        except TypeError as error:
            value = tuple(args[i] for i in given.diff)
            path = tree.keystr(tree.leaves_with_path(value)[k][0])
            raise TypeError(
                f"{self.kind}: the argument args{path} of {fun_text(self.fun)} is {x!r} of type "
                f"{type(x)}, not a valid fnarray type. Pass arrays, or list the argument in "
                "nondiff_argnums."
            ) from error


class _CustomCall:
    """One call of a custom function, and what is known of its results."""

    def __init__(self, custom: _Custom, given: Arguments):
        self.custom = custom
        self.given = given
        self.out_spec: Any = None
        self.out_avals: list[Any] | None = None

    def run(self, *operands: Any) -> list[Any]:
        """Call the function on flat operands."""
        fun = self.custom.fun
        with self.custom.admitted(fun):
            out = fun(*self.given.all(operands))
        outs, spec = tree.flatten_spec(out)
        outs = [result(x, k, out, fun) for k, x in enumerate(outs)]
        self.out_spec = spec
        self.out_avals = [x.aval for x in outs]
        return outs

    def check_primals(self, kind: str, rule: Any, outs: Sequence[Any], spec: Any) -> None:
        """Raise `TypeError` unless a rule's results are like the function's, where it has run."""
        if self.out_spec is None:
            self.out_spec = spec
        if self.out_avals is None:
            return
        text = (
            f"Custom {kind} rule {fun_text(rule)} for function {fun_text(self.custom.fun)} must "
            "produce a pair (list or tuple of length two) where the first element represents the "
            "primal output (equal in value to the output of the custom-decorated function, and in "
            "particular "
        )
        if spec != self.out_spec:
            raise TypeError(
                f"{text}of the same container/pytree structure), but its structure is "
                f"{tree.PyTreeDef(spec)} while the function's is {tree.PyTreeDef(self.out_spec)}."
            )
        for k, (x, a) in enumerate(zip(outs, self.out_avals, strict=True)):
            if (x.shape, x.dtype) != (a.shape, a.dtype):
                raise TypeError(
                    f"{text}with leaves of the same shape/dtype), but at result{_path(spec, k)} it "
                    f"is {_short(x.aval)} while the function's is {_short(a)}."
                )


def _path(spec: Any, k: int) -> str:
    return tree.keystr(tree.leaves_with_path(spec.unflatten([0] * spec.num_leaves))[k][0])


def _short(aval: Any) -> str:
    return aval.str_short().lstrip("~")


def _pair(kind: str, rule: Any, custom: _Custom, out: Any, second: str) -> tuple[Any, Any]:
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(
            f"Custom {kind} rule {fun_text(rule)} for function {fun_text(custom.fun)} must produce "
            f"a pair (list or tuple of length two) representing primal output and {second}, but "
            f"got {out!r}."
        )
    return tuple(out)


# ---- custom_jvp ----------------------------------------------------------------------------------


class custom_jvp(_Custom[R, P]):  # noqa: N801, JAX's name
    """A function with a rule for its derivative in forward mode, and so in reverse mode too.

    Parameters
    ----------
    fun : callable
    nondiff_argnums, nondiff_argnames : sequences of int, of str
        Arguments that are not differentiated, such as functions; the rule takes them first.

    Raises
    ------
    AttributeError
        When called: no rule is defined.
    TypeError
        When differentiated: the rule's results are not of the structure, shapes and dtypes of the
        function's.

    Examples
    --------
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log(1.0 + jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + jnp.exp(x))) * t
    """

    kind = "custom_jvp"
    rules = ("jvp",)

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Any = None

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Set the rule: ``jvp(*nondiff_args, primals, tangents) -> (result, tangent)``.

        ``symbolic_zeros`` hands the rule `SymbolicZero` in place of zeros that are known.
        Returns the rule, so that it may be used as a decorator.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: ``rule(tangent, result, *args)``, None for zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def part(rule: Any, t: Any, out: Any, primals: tuple) -> Any:
            with self.admitted(rule):
                return rule(t, out, *primals)

        def jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            out = cast("Any", self)(*primals)
            parts = [
                part(rule, t, out, primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule and getattr(t, "dtype", None) != float0
            ]
            if not parts:
                return out, tree.map(zero_from_primal, out)
            return out, functools.reduce(functools.partial(tree.map, add_tangents), parts)

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {fun_text(self.fun)} using defjvp."
            )
        if state.trace is None and not kwargs:
            return self._eagerly(args, kwargs)
        given = self._arguments(args, kwargs)
        call = _CustomCall(self, given)
        rule = _JVPRule(self, call)
        outs = call_custom(
            JVPCall(call.run, rule, fun_name(self.fun), self.symbolic_zeros), given.take()
        )
        return call.out_spec.unflatten([as_array(x) for x in outs])


class _JVPRule(JVPRule):
    """The user's rule of one call."""

    def __init__(self, custom: custom_jvp, call: _CustomCall):
        self.custom = custom
        self.call = call
        self.held = call.given.held

    def __str__(self) -> str:
        return fun_name(self.custom.jvp)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Apply the rule; check what it returns."""
        custom, given, rule = self.custom, self.call.given, self.custom.jvp
        n = given.held
        duals = map(symbolic if custom.symbolic_zeros else instantiate, tangents[n:])
        with located(None), custom.admitted(rule):
            out = rule(
                *given.nondiff_args(primals[:n]),
                given.diff_args(primals[n:]),
                given.diff_args(list(duals)),
            )
        out, dual = _pair("JVP", rule, custom, out, "tangent output")
        outs, spec = tree.flatten_spec(out)
        found, dual_spec = tree.flatten_spec(dual)
        if spec != dual_spec:
            raise TypeError(
                f"Custom JVP rule {fun_text(rule)} for function {fun_text(custom.fun)} must "
                "produce primal and tangent outputs with equal container (pytree) structures, but "
                f"got {tree.PyTreeDef(spec)} and {tree.PyTreeDef(dual_spec)} respectively."
            )
        outs = [result(x, k, out, rule) for k, x in enumerate(outs)]
        self.call.check_primals("JVP", rule, outs, spec)
        return outs, [
            self._tangent(x, t, k, dual) for k, (x, t) in enumerate(zip(outs, found, strict=True))
        ]

    def _tangent(self, x: Any, t: Any, k: int, dual: Any) -> Any:
        wanted = tangent_aval(x.aval)
        if isinstance(t, Zero):
            return Zero(wanted)
        got = abstract(t) if hasattr(t, "dtype") else result(t, k, dual, self.custom.jvp).aval
        if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
            path = tree.keystr(tree.leaves_with_path(dual)[k][0])
            raise TypeError(
                f"Custom JVP rule {fun_text(self.custom.jvp)} must produce primal and tangent "
                f"outputs with corresponding shapes and dtypes. At result{path}, expected "
                f"{_short(wanted)} (tangent type of {_short(x.aval)}) but got {_short(got)}."
            )
        return as_array(t) if differentiable(x.aval.dtype) else Zero(wanted)


# ---- custom_vjp ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of a forward rule with symbolic zeros.

    Attributes
    ----------
    value : Array
    perturbed : bool
        Whether it is differentiated.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree_: Any) -> Any:
    """Return the values of a tree of `CustomVJPPrimal`, which a forward rule is given."""
    return tree.map(lambda x: x.value, tree_, is_leaf=lambda x: isinstance(x, CustomVJPPrimal))


class custom_vjp(_Custom[R, P]):  # noqa: N801, JAX's name
    """A function with a rule for its derivative in reverse mode.

    Parameters
    ----------
    fun : callable
    nondiff_argnums, nondiff_argnames : sequences of int, of str
        Arguments that are not differentiated, such as functions, and are no tracers: the forward
        rule takes them where they are, the backward rule first.

    Raises
    ------
    AttributeError
        When called: no rules are defined.
    TypeError
        When differentiated in forward mode, or a rule's results are of the wrong structure.
    ValueError
        A cotangent is of the wrong shape or dtype.
    """

    kind = "custom_vjp"
    rules = ("fwd", "bwd")

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Any = None
        self.bwd: Any = None

    def defvjp(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., tuple[Any, ...]],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules.

        Parameters
        ----------
        fwd : callable
            ``fwd(*args) -> (result, residuals)``, which may be any tree of arrays.
        bwd : callable
            ``bwd(*nondiff_args, residuals, cotangent) -> cotangents``, a tuple with one for each
            argument; None, for an argument or a part of it, stands for zeros.
        symbolic_zeros : bool
            Whether ``fwd`` gets `CustomVJPPrimal` in place of arrays, and ``bwd`` `SymbolicZero`
            for cotangents known to be zero.
        optimize_remat : bool
            Accepted for compatibility: what is not needed of ``fwd`` is always dropped.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {fun_text(self.fun)} using defvjp."
            )
        if state.trace is None and not kwargs:
            return self._eagerly(args, kwargs)
        given = self._arguments(args, kwargs)
        if given.held:
            raise UnexpectedTracerError(
                f"custom_vjp: {fun_text(self.fun)} is called with a tracer in an argument of "
                f"nondiff_argnums={self.nondiff_argnums}, {given.operands[0].where_from()}. These "
                "are for arguments that hold no arrays, such as functions: pass arrays as other "
                "arguments, and return None for their cotangents."
            )
        call = _VJPCall(self, given)
        names = fun_name(self.fun), fun_name(self.fwd), fun_name(self.bwd)
        run, forward, operands = call.run, call.forward, given.take()
        if given.refs and type(state.trace) is GraphTrace:
            # No graph holds a Ref: the function is laid out, and its results have no derivative.
            rules = RulesOfRefs(fun_text(self.fun))
            run, forward, operands = _same, rules, call.run(*operands)
        outs = call_custom(VJPCall(run, forward, names, self.symbolic_zeros), operands)
        return call.out_spec.unflatten([as_array(x) for x in outs])


def _same(*xs: Any) -> Sequence[Any]:
    return xs


_NO_VALUES = (bool, int, float, complex, Ref)


class _VJPCall(_CustomCall):
    """One call of a ``custom_vjp`` function."""

    custom: custom_vjp

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        """Run the forward rule; return results, residuals, and the way back."""
        custom, given, fwd = self.custom, self.given, self.custom.fwd
        leaves: Sequence[Any] = primals
        if custom.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        with located(None), custom.admitted(fwd):
            both = fwd(*given.all(leaves))
        out, held = _pair("VJP fwd", fwd, custom, both, "residuals")
        outs, spec = tree.flatten_spec(out)
        outs = [result(x, k, out, fwd) for k, x in enumerate(outs)]
        self.check_primals("VJP fwd", fwd, outs, spec)
        kept, res_spec = tree.flatten_spec(held)
        # Python's numbers stay what they are, that the way back may branch on them, and so do Refs,
        # to be written by it.
        apart = {k: x for k, x in enumerate(kept) if type(x) in _NO_VALUES}
        residuals = [result(x, k, held, fwd) for k, x in enumerate(kept) if k not in apart]
        avals = [as_array(x).aval for x in primals]

        def back(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            rest = iter(residuals)
            every = [apart[k] if k in apart else next(rest) for k in range(res_spec.num_leaves)]
            return self.back(res_spec.unflatten(every), spec, cts, avals)

        return outs, residuals, back

    def back(self, residuals: Any, spec: Any, cts: Sequence[Any], avals: Sequence[Any]) -> Any:
        """Run the backward rule; return a cotangent for each operand."""
        custom, given, bwd = self.custom, self.given, self.custom.bwd
        ct = spec.unflatten(map(symbolic if custom.symbolic_zeros else instantiate, cts))
        with located(None), custom.admitted(bwd):
            out = bwd(*given.nondiff_args(()), residuals, ct)
        if isinstance(out, list):
            out = tuple(out)
        found = _filled(out, given.spec) if isinstance(out, tuple) else None
        if found is None:
            raise TypeError(
                f"Custom VJP bwd rule {fun_text(bwd)} must produce an output with the same "
                "container (pytree) structure as the args tuple of the primal function, and in "
                "particular must produce a tuple of length equal to the number of arguments to the "
                f"primal function, but got bwd output structure {tree.structure(out)} for primal "
                f"input structure {tree.PyTreeDef(given.spec)}."
            )
        numbers = given.of_arrays(range(len(found)))
        return [self._cotangent(found[k], a, k) for k, a in zip(numbers, avals, strict=True)]

    def _cotangent(self, c: Any, aval: Any, k: int) -> Any:
        wanted = tangent_aval(aval)
        if c is None or isinstance(c, Zero) or not differentiable(aval.dtype):
            return Zero(wanted)
        path = _path(self.given.spec, k)
        try:
            c = as_array(c)
        except TypeError as error:
            raise TypeError(
                f"Custom VJP bwd rule {fun_text(self.custom.bwd)} returned {c!r} of type {type(c)} "
                f"at output{path}, which is not a valid fnarray type."
            ) from error
        for what, word in ("shape", "shapes"), ("dtype", "dtypes"), ("vma", "manual axis types"):
            if getattr(c.aval, what) != getattr(aval, what):
                raise ValueError(
                    f"Custom VJP bwd rule {fun_text(self.custom.bwd)} must produce an output with "
                    "the same type as the args tuple of the primal function, but at "
                    f"output{path} the bwd rule produced an output of type {_short(c.aval)} "
                    f"corresponding to an input of type {_short(aval)}, so the {word} do not match"
                )
        return c


def _filled(found: Any, spec: Any) -> list[Any] | None:
    """Return a leaf for each of a structure's, of a tree that is a prefix; None if it is none."""
    leaves, got = tree.flatten_spec(found)
    if got == spec:
        return leaves
    tops, prefix = tree.flatten_spec(found, is_leaf=lambda x: x is None)
    try:
        parts = prefix.flatten_up_to(spec.unflatten([0] * spec.num_leaves))
    except ValueError:
        return None
    filled = []
    for top, part in zip(tops, parts, strict=True):
        filled += [top] * len(tree.leaves(part))
    return filled
