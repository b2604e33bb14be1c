"""Distributions by their standard forms, and the one transformation by location and scale.

A distribution is a row of a table: functions of ``z = (x - loc) / scale`` (continuous) or of
``y = k - loc`` (discrete) and of its shapes. The name under which a form stands says what is made
of it::

    logpdf(x) = logpdf(z) - normalizer        cdf, logcdf, sf, logsf(x) = of z
    pdf(x) = pdf(z) / scale                   ppf, isf(q) = loc + scale * of q
    logpmf(k) = logpmf(y)

The first parameter of a form says what it is a function of: ``z``, ``w = (loc - x) / scale``,
which spares reflected tails a negation, or ``y``; any other name is that of the public function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from types import ModuleType
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...core.eager import replayed
from ...nn._args import inexact_operands

__all__: list[str] = []

Form = Callable[..., Array]
#: From the arguments of a distribution to those of the form it is made of.
Map = Callable[..., tuple[Any, ...]]


def inside(
    ok: Any, x: Array, f: Callable[[Array], Array], outside: float = -np.inf, safe: float = 0.5
) -> Array:
    """Return ``f(x)`` where ``ok``, a constant elsewhere.

    ``f`` sees a harmless number in the place of others: a derivative of infinity would make NaN
    even where it is not selected. NaN is not outside.
    """
    ok = jnp.logical_or(ok, x != x)
    return jnp.where(ok, f(jnp.where(ok, x, safe)), outside)


@dataclass(frozen=True)
class on:  # noqa: N801 - a word of the table
    """A form where a condition holds, a constant elsewhere; see `inside`."""

    where: Form
    form: Form
    outside: float = -np.inf
    safe: float = 0.5

    def then(self, finish: Form) -> Form:
        """Return the form followed by a function, which leaves the constant alone."""

        def both(x: Array, *shapes: Array) -> Array:
            ok = self.where(x, *shapes)
            return inside(ok, x, lambda x: finish(self.form(x, *shapes)), self.outside, self.safe)

        return both


@dataclass(frozen=True)
class plain:  # noqa: N801 - a word of the table
    """A public function as it is: one without location and scale, or with its own use of them."""

    form: Form


def positive(z: Array, *_: Array) -> Array:
    """Where distributions of positive numbers live."""
    return z >= 0


def unit(q: Array, *_: Array) -> Array:
    """Where probabilities are."""
    return jnp.logical_and(q >= 0, q <= 1)


def _then(form: Any, finish: Form) -> Form:
    if isinstance(form, on):
        return form.then(finish)
    return lambda x, *shapes: finish(form(x, *shapes))


def log_of(value: Form, rest: Form) -> Form:
    """Return the logarithm of a probability, by the rest where that is smaller and keeps digits."""

    def form(z: Array, *shapes: Array) -> Array:
        v = value(z, *shapes)
        near = v > 0.5
        # At 0 sums and fractions have no terms, and the slopes by shapes are finite.
        missing = rest(jnp.where(near, z, 0.0), *shapes)
        above = jnp.log1p(-jnp.where(near, missing, 0.5))
        return jnp.where(near, above, jnp.log(jnp.where(near, 0.5, v)))

    return form


def continuous(
    head: str,
    *about: str,
    normalizer: Form = lambda scale, *_: jnp.log(scale),
    of: Map | None = None,
    tails: bool = False,
    **forms: Any,
) -> ModuleType:
    """Return the module of a distribution with a density.

    Parameters
    ----------
    head : str
        Its name and shapes.
    *about : str
        What it is and what its parameters are, the formula of its density, the source.
    normalizer : callable, optional
        Of the scale and the shapes: the logarithm of the integral over ``x`` of what ``logpdf``
        leaves without its constant.
    of : callable, optional
        From the public function's arguments to those of the distribution that has the forms.
    tails : bool, optional
        Whether ``cdf`` and ``sf`` are public without a form: they are made of a logarithm.
    **forms : callable, on or plain
    """

    def public(kind: str, lead: str, form: Any) -> Form:
        def value(x: Array, *rest: Array) -> Array:
            x, *shapes, loc, scale = of(x, *rest) if of else (x, *rest)
            if kind in ("ppf", "isf"):
                return _then(form, lambda v: v * scale + loc)(x, *shapes)
            z = (loc - x) / scale if lead == "w" else (x - loc) / scale
            if kind == "pdf":
                # No density has another scale: its logarithm has none.
                scale = jnp.where(scale > 0, scale, np.nan)
                return _then(form, lambda v: v / scale)(z, *shapes)
            if kind != "logpdf":
                return _then(form, lambda v: v)(z, *shapes)
            total = normalizer(scale, *shapes)
            return _then(form, lambda v: v - total)(z, *shapes)

        return value

    about = about[0], _formula("pdf(x)", about[1], "z = (x - loc) / scale", forms), about[2]
    return _module(head, about, {"loc": 0, "scale": 1}, forms, public, tails)


def discrete(head: str, *about: str, of: Map | None = None, **forms: Any) -> ModuleType:
    """Return the module of a distribution of integers, as `continuous` does without a scale."""

    def public(kind: str, lead: str, form: Any) -> Form:
        def value(k: Array, *rest: Array) -> Array:
            k, *shapes, loc = of(k, *rest) if of else (k, *rest)
            return _then(form, lambda v: v)(k - loc, *shapes)

        return value

    about = about[0], _formula("pmf(k)", about[1], "y = k - loc", forms), about[2]
    return _module(head, about, {"loc": 0}, forms, public)


# --- public functions -----------------------------------------------------------------------------

#: What is made of what, in this order: the first of these that is there.
_DERIVED: dict[str, tuple[tuple[Form, str], ...]] = {
    "pdf": ((jnp.exp, "logpdf"),),
    "pmf": ((jnp.exp, "logpmf"),),
    "cdf": ((jnp.exp, "logcdf"), (lambda v: -jnp.expm1(v), "logsf")),
    "sf": ((jnp.exp, "logsf"), (lambda v: -jnp.expm1(v), "logcdf")),
}
_WHAT = {
    "logpdf": "Logarithm of the density at ``x``",
    "pdf": "Density at ``x``",
    "logpmf": "Logarithm of the probability of ``k``",
    "pmf": "Probability of ``k``",
    "cdf": "Probability of values up to ``{}``",
    "logcdf": "Logarithm of `cdf`",
    "sf": "Probability of values above ``{}``",
    "logsf": "Logarithm of `sf`",
    "ppf": "Value up to which there is probability ``{}``",
    "isf": "Value above which there is probability ``{}``",
    "entropy": "Entropy in nats",
}
_DOC = """{what} of the {distribution}.

{meaning}: {mass}.

Parameters
----------
{given} : array_like
{optional}
Returns
-------
Array
    In the inexact dtype that the arguments promote to, of the shape that they broadcast to.

References
----------
{source}.
"""


def _formula(left: str, right: str, variable: str, forms: dict[str, Any]) -> str:
    where = "" if all(isinstance(form, plain) for form in forms.values()) else f", ``{variable}``"
    return f"``{left} = {right}``{where}"


def _module(
    head: str,
    about: tuple[str, ...],
    optional: dict[str, Any],
    forms: dict[str, Any],
    public: Callable[..., Form],
    tails: bool = False,
) -> ModuleType:
    """Return the public functions as a module, which ``import`` finds under its name as well."""
    name, *shapes = head.split()
    rest = {**dict.fromkeys(shapes, Parameter.empty), **optional}
    made: dict[str, tuple[Form, dict[str, Any]]] = {}
    for kind, form in forms.items():
        if isinstance(form, plain):
            named = signature(form.form).parameters.values()
            made[kind] = form.form, {p.name: p.default for p in named}
        else:
            lead, *_ = signature(getattr(form, "form", form)).parameters
            first = {"z": "x", "w": "x", "y": "k"}.get(lead, lead)
            made[kind] = public(kind, lead, form), {first: Parameter.empty, **rest}
    for kind in _DERIVED if tails else ("pdf", "pmf"):
        for outer, inner in _DERIVED[kind]:
            if kind not in made and inner in made:
                value, named = made[inner]
                made[kind] = (lambda *args, f=outer, g=value: f(g(*args))), named
    module = ModuleType(f"{__package__}.{name}", about[0][0].upper() + about[0][1:] + ".")
    for kind, (value, named) in made.items():
        setattr(module, kind, _function(module, kind, value, named, about))
    sys.modules[module.__name__] = module
    return module


def _bound(
    label: str, head: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    try:
        bound = head.bind(*args, **kwargs)
    except TypeError as error:
        names = ", ".join(head.parameters)
        raise TypeError(f"scipy.stats.{label}: {error}. Its parameters are {names}.") from None
    bound.apply_defaults()
    return bound.args


def _function(
    module: ModuleType, kind: str, value: Form, named: dict[str, Any], about: tuple[str, ...]
) -> Any:
    """Return a public function: it binds, promotes and aligns arguments for the value."""
    label = f"{module.__name__.rpartition('.')[2]}.{kind}"
    either = Parameter.POSITIONAL_OR_KEYWORD
    head = Signature(
        [Parameter(n, either, default=d, annotation="Any") for n, d in named.items()],
        return_annotation="Array",
    )

    values = tuple(named.values())
    required = values.count(Parameter.empty)

    def function(*args: Any, **kwargs: Any) -> Array:
        # Binding takes 7 us, and no keyword is the common case.
        if kwargs or not required <= len(args) <= len(values):
            args = _bound(label, head, args, kwargs)
        return value(*inexact_operands(label, *args, *values[len(args) :]))

    given, optional = ([n for n in named if (n in ("loc", "scale")) is o] for o in (False, True))
    distribution, _, meaning = about[0].partition(", ")
    function.__name__ = function.__qualname__ = kind
    function.__module__ = module.__name__
    function.__signature__ = head  # type: ignore[attr-defined] - what help and inspect show
    function.__doc__ = _DOC.format(
        what=_WHAT[kind].format(given[0]),
        distribution=distribution,
        meaning=meaning[0].upper() + meaning[1:],
        mass=about[1],
        given=", ".join(given),
        optional=f"{', '.join(optional)} : array_like, optional\n" if optional else "",
        source=about[2],
    )
    return replayed(function)
