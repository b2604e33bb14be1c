"""Pages that are tables: the settings with their environment variables, and the operations."""

from __future__ import annotations

import inspect
import pkgutil
import re
import types
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import fnarray_kernels.vmath
from fnarray import control, ops, random, scipy
from fnarray.config import SETTINGS
from fnarray.core import forms
from fnarray.core.primitive import Missing, Primitive
from fnarray.ops.kit.registry import registry


def _page(title: str, text: str, body: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n{text}\n\n{body}"


def _table(widths: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {widths}",
        "   :class: wide",
        "",
    ]
    for row in (head, *rows):
        first, *rest = (cell or "\\ " for cell in row)
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    return "\n".join(lines) + "\n"


# ---- settings -----------------------------------------------------------------------------------

_ABOUT_SETTINGS = """\
Each is an attribute of ``fnarray.config``, and set in four ways, of which the last named wins: the
environment, ``JAX_<NAME>`` first and ``FNARRAY_<NAME>`` over it; ``fnarray.config.update(name,
value)``, for all threads; and, where a function of its name is among the names of
:doc:`fnarray <fnarray>`, a ``with`` block, for one thread. A name may also be spelled with
``fnarray_`` or ``jax_`` before it.

A value that a setting does not admit is an error that says what it admits. A bool is 1, true, yes
or on, and 0, false, no or off, in the environment. Functions compiled under one value of a setting
with a † are kept apart from those compiled under another.
"""
_OTHERS = """\
Other variables of the environment
----------------------------------

``JAX_PLATFORM_NAME``
   Read as ``platforms``, where neither ``JAX_PLATFORMS`` nor ``FNARRAY_PLATFORMS`` is set.
``XLA_FLAGS``
   Of it, ``--xla_force_host_platform_device_count=N`` alone is read: it is ``num_cpu_devices``.
``NUMBA_DISABLE_JIT``
   ``1`` runs the emitted Python as it stands, without a compiler.
``NUMBA_*``
   What Numba reads is part of the key of every kernel on the disk.
``XDG_CACHE_HOME``
   The folder in which ``fnarray/``, the cache, is made where ``cache_dir`` is None; ``~/.cache``.
``NO_COLOR``, ``FORCE_COLOR``
   Whether ``fnarray lint`` writes in colours.
"""


def settings() -> str:
    """Return the page of the settings, made from their table."""
    rows = (
        (
            f"| ``{row.name}``\n       | ``FNARRAY_{row.name.upper()}``",
            f"``{row.default!r}``",
            f"{row.doc} {'† ' if row.affects_tracing else ''}It must be {_admitted(row)}.",
        )
        for row in SETTINGS.values()
    )
    table = _table("34 14 52", ("name, and in the environment", "default", "what it does"), rows)
    return _page("Settings", _ABOUT_SETTINGS, f"{table}\n{_OTHERS}")


def _admitted(row: Any) -> str:
    text = re.sub(r" \(in the environment.*?\)", "", row.admits())
    return re.sub(r"'[^']*'", r"``\g<0>``", text)


# ---- operations ---------------------------------------------------------------------------------

_ABOUT_OPERATIONS = """\
What programs are made of: the names in printed graphs, which are ``<name>_p`` in ``fnarray.lax`` or
``fnarray.extend.core.primitives``. *Form* is what the compiler knows of an operation (see the
glossary). *Derivative* says whether it has one, in forward mode and so in reverse mode too, *vmap*
whether it maps; "no" carries the reason, which is also the text of the error. *Processor* and *GPU*
say how it runs: **kernel**, in loops that are emitted; **library**, a step of its own, of LAPACK,
BLAS or the kernels' package; **host**, by NumPy or SciPy, for which a GPU's operands are copied to
the host and back. What a GPU does by its own library (library\\*), or by the host's where it has
none, is in the text of the lowered program.
*ULP* is the error that the function of the kernels states, in units in the last place of the
result, and that the tests check in float32 and float64.
"""
_FORMS = {name for name, value in vars(forms).items() if isinstance(value, type)} - {"Any"}


def operations() -> str:
    """Return the page of the operations, made from their declarations."""
    rows = [
        (
            f"``{prim.name}``",
            _form(prim),
            _rule(prim, "jvp"),
            _rule(prim, "batch"),
            *_targets(prim),
            _bound(prim.name),
        )
        for prim in sorted(every_operation(), key=lambda prim: prim.name)
    ]
    head = ("name", "form", "derivative", "vmap", "processor", "GPU", "ULP")
    return _page("Operations", _ABOUT_OPERATIONS, _table("20 14 22 18 10 10 6", head, rows))


def every_operation() -> list[Primitive]:
    """Return every operation of the package, whose modules are imported for it."""
    for package in (ops, control, random, scipy):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    return list(registry.values())


def _form(prim: Primitive) -> str:
    """Return the names of the forms that an operation takes: what its rule says it returns."""
    if isinstance(prim.form, Missing):
        return "none"
    return " or ".join(sorted(_made_by(prim.form, 4))) or "none"


def _made_by(form: Any, depth: int) -> set[str]:
    """Return the forms that a rule makes: as it is annotated, or by what it calls."""
    said = str(getattr(form, "__annotations__", {}).get("return", ""))
    names = _FORMS.intersection(re.findall(r"\w+", said))
    if names or not depth or not isinstance(form, types.FunctionType):
        return names
    used = inspect.getclosurevars(form)
    called = {**used.nonlocals, **used.globals}
    names |= {"Library (host)" for value in called.values() if value is forms.HOST}
    names |= {"Library (host)" for value in (form.__defaults__ or ()) if value is forms.HOST}
    names |= _FORMS.intersection(called)
    return names or {name for value in called.values() for name in _made_by(value, depth - 1)}


def _rule(prim: Primitive, slot: str) -> str:
    rule = getattr(prim, slot)
    return f"no: {_plain(rule.why)}" if isinstance(rule, Missing) else "yes"


def _targets(prim: Primitive) -> tuple[str, str]:
    found = _form(prim)
    if found == "none":
        return ("", "")
    if found == "Library (host)":
        return ("host", "host")
    if "Library" not in found:
        return ("kernel", "kernel")
    return ("library", "library*")


def _bound(name: str) -> str:
    function = getattr(fnarray_kernels.vmath, name, None)
    stated = re.findall(r"([\d.]+) ULP", getattr(function, "__doc__", None) or "")
    return max(stated, key=float, default="")


def _plain(text: str) -> str:
    return re.sub(r"([*|])", r"\\\1", text).replace("\n", " ")
