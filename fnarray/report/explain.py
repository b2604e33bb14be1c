"""`explain`: a function's report, as a page, as text, compared with another."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..api.jit import jit
from ..core import hooks
from ..core.callables import named_as
from ..core.source import PACKAGE
from ..errors import EffectError
from .collect import facts_of
from .excerpts import excerpts_of
from .files import written
from .model import Facts, Failure, Place
from .words import count

__all__ = ["Report", "explain", "report_of"]


class Report:
    """What `explain` returns: shown in a notebook, printed as text, saved as a page.

    Attributes
    ----------
    facts : Facts
        All that it says, as plain values.
    """

    def __init__(self, facts: Facts):
        self.facts = facts

    @property
    def html(self) -> str:
        """The report as one page of HTML that asks for nothing else."""
        from .page import page

        return page(self.facts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all; return its path.

        Raises
        ------
        OSError
            The file cannot be written; what was there is left as it was.
        """
        return written(Path(path), self.html, "explain: the report")

    def text(self, width: int | None = None) -> str:
        """Return the report as plain text, for a terminal of a width."""
        from .text import text

        return text(self.facts, width)

    def __rich__(self) -> Any:
        from .text import renderable

        return renderable(self.facts)

    def __str__(self) -> str:
        return self.text(100)

    def __repr__(self) -> str:
        steps = sum(k.is_step for k in self.facts.kernels)
        what = f"{count(len(self.facts.kernels) - steps, 'kernel')}, {count(steps, 'step')}"
        what = "it cannot be compiled" if self.facts.failure else what
        return f"<Report of {self.facts.name}: {what}>"

    def _repr_html_(self) -> str:
        from .page import framed

        return framed(self.html)


class _Explain:
    """Explain what a function compiles to: ``explain(f)(*args)`` gives its `Report`.

    The report shows the source beside the graph and the emitted kernels, what was fused and why not
    more, the time of each kernel on the arguments against what this machine reaches, buffers, and
    what is guarded. A notebook shows it, ``print`` prints it as text, its method ``save(path)``
    writes a page of HTML, and ``facts`` has all that it says as plain values.
    ``explain.diff(a, b)`` compares two reports; what it returns is shown, printed, saved as well.

    Parameters
    ----------
    fun : callable
        PjitFunction or not.

    Returns
    -------
    callable
        Takes what ``fun`` takes, or `ShapeDtypeStruct` stand-ins, which are not run. A function
        that cannot be compiled gives a report, too: of the error, at its line.

    Raises
    ------
    TypeError
        ``fun`` is not callable.
    """

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Report]:
        if not callable(fun):
            raise TypeError(f"explain: expected a function, got {fun!r} of type {type(fun)}.")
        jitted: Any = fun
        refused: Exception | None = None
        try:
            jitted = fun if hasattr(fun, "lower") else jit(fun)
        except Exception as error:  # a generator: it cannot be traced whatever it is given
            refused = error

        @named_as(fun)
        def explained(*args: Any, **kwargs: Any) -> Report:
            if refused is not None:
                return Report(_failed(fun, refused))
            spans: list[tuple[str, float]] = []

            def listen(kind: str, name: str, begin: float, end: float) -> None:
                if kind == "trace":
                    spans.append((kind, end - begin))

            hooks.listeners.append(listen)
            try:
                lowered = jitted.lower(*args, **kwargs)
                lowered._executable.load()
            except Exception as error:  # it is what the report is about
                return Report(_failed(fun, error))
            finally:
                hooks.listeners.remove(listen)
            return Report(facts_of(lowered, *_dynamic(jitted, args, kwargs), spans[-1:]))

        return explained

    def diff(self, a: Report, b: Report) -> Any:
        """Compare two reports: figures, operations, kernels and their text.

        Returns
        -------
        Difference
            With ``html``, ``save``, ``text`` and ``_repr_html_``, as a report.
        """
        from .compare import Difference

        for which, report in (("first", a), ("second", b)):
            if not isinstance(report, Report):
                raise TypeError(
                    f"explain.diff: the {which} argument must be a report, got {report!r} of type "
                    f"{type(report)}. Write explain.diff(explain(f)(x), explain(g)(x))."
                )
        return Difference(a.facts, b.facts)

    def __repr__(self) -> str:
        return "<function fnarray.explain>"


explain = _Explain()


def report_of(lowered: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Report:
    """Return the report of a lowered function."""
    return Report(facts_of(lowered, args, kwargs, ()))


def _dynamic(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple, dict]:
    """Return the arguments that are not static."""
    split = getattr(jitted, "_split", None)
    return split(args, kwargs)[:2] if split else (args, kwargs)


def _failed(fun: Callable[..., Any], error: Exception) -> Facts:
    """Return what is known of a function that could not be compiled: the error and its line."""
    place = Place()
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith(PACKAGE) and frame.lineno:
            place = Place(frame.filename, frame.lineno, frame.name)
    if isinstance(error, EffectError):
        finding = error.findings[0]
        place = Place(finding.file, finding.line, getattr(fun, "__qualname__", ""))
    name = getattr(fun, "__name__", None) or type(fun).__name__
    notes = "".join(f"\n{n}" for n in getattr(error, "__notes__", ()))
    failure = Failure(type(error).__name__, f"{error}{notes}", place)
    return Facts(name=name, failure=failure, excerpts=excerpts_of([place]))
