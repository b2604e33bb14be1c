"""Signatures: what a function is called, and what it is called with.

Arguments are leaves in a structure, and static values beside them. What a function was traced or
compiled for is known by its `Signature`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ..config import config
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.callables import is_a, said_of, signature_of, unwrapped
from ..core.dtypes import canonicalize_dtype
from ..core.frozen import frozen
from ..core.ref import Ref
from ..core.source import UNKNOWN, Source

__all__: list[str] = []

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# ---- functions -----------------------------------------------------------------------------------


def fun_name(fun: Callable[..., Any]) -> str:
    """Return a function's name; that of what it wraps for a partial."""
    while is_a(fun, partial) and "__name__" not in vars(fun):
        fun = fun.func
    name = said_of(fun, "__name__")
    return name if is_a(name, str) else "<unnamed function>"


def fun_source(fun: Callable[..., Any]) -> Source:
    """Return where a function begins, under the name it goes by."""
    inner = unwrapped(fun)
    while is_a(inner, partial):
        inner = unwrapped(inner.func)
    if not is_a(inner, (types.FunctionType, types.MethodType)):
        return Source(UNKNOWN.file, UNKNOWN.line, fun_name(fun))
    code = inner.__code__
    return Source(code.co_filename, code.co_firstlineno, fun_name(fun))


def fun_text(fun: Callable[..., Any]) -> str:
    """Return a function's name with file and line, for messages."""
    at = fun_source(fun)
    return at.function + (f" ({at.file}:{at.line})" if at.file != UNKNOWN.file else "")


def parameters_of(fun: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """Return a function's parameters by name, or None where it does not tell them."""
    try:
        return dict(signature_of(fun).parameters)
    except (ValueError, TypeError):
        return None


def positional(fun: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that may be given by position."""
    return [name for name, p in (parameters_of(fun) or {}).items() if p.kind in _POSITIONAL]


def argument_paths(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> list[str]:
    """Return what each leaf is called in the function: ``x``, ``params['w'][0]``, ``args[2]``."""
    names = []
    for name, p in (parameters_of(fun) or {}).items():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(max(0, len(args) - len(names)))]
        elif p.kind is not p.KEYWORD_ONLY:
            names.append(name)
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    return [
        name + tree.keystr(path)
        for name, value in [*zip(names, args, strict=False), *sorted(kwargs.items())]
        for path, _ in tree.leaves_with_path(value)
    ]


# ---- avals ---------------------------------------------------------------------------------------


def abstract(x: Any) -> ShapedArray:
    """Return the aval of an array, a number, or anything else with a shape and a dtype."""
    kind = type(x)
    if kind is np.ndarray:
        return _of_numpy(x.shape, x.dtype, config.enable_x64)
    if isinstance(x, Array | np.ndarray | np.generic) or not hasattr(x, "dtype"):
        return aval_of(x)
    if kind is Ref:
        return x.aval
    weak, sharding = bool(getattr(x, "weak_type", False)), getattr(x, "sharding", None)
    return ShapedArray(x.shape, canonicalize_dtype(np.dtype(x.dtype)), weak, sharding=sharding)


@lru_cache(4096)
def _of_numpy(shape: tuple[int, ...], dtype: np.dtype, wide: bool) -> ShapedArray:
    """Return the aval of NumPy's arrays of a shape and dtype, under ``enable_x64``."""
    return ShapedArray(shape, canonicalize_dtype(dtype))


def first_rejected(
    fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any], statics: Statics = ()
) -> tuple[str, Any, Exception] | None:
    """Return the first argument that is no array, for an error: its path, its value, and why."""
    shown = with_statics(args, kwargs, [(where, kind, None) for where, kind, _ in statics])
    leaves = tree.leaves((args, kwargs))
    for path, leaf in zip(argument_paths(fun, *shown), leaves, strict=False):
        try:
            abstract(leaf)
        except (TypeError, OverflowError) as error:
            return path, leaf, error
    return None


# ---- static arguments ----------------------------------------------------------------------------

#: Values of static arguments: position or name, type, value; positions first and ascending. The
#: type tells apart values that are equal, as ``1`` and ``True`` are.
Statics = Sequence[tuple[int | str, type, Any]]


@frozen
class StaticSpec:
    """Which arguments of a function are static.

    Attributes
    ----------
    nums : tuple of int
        By position, from the end where negative; those that a call does not have are none.
    names : tuple of str
    """

    nums: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)

    def split(
        self, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[tuple, dict[str, Any], tuple[tuple[int | str, type, Any], ...]]:
        """Part arguments into traced ones, by position and by name, and static values."""
        n = len(args)
        nums = sorted({i % n for i in self.nums if -n <= i < n})
        left = tuple([a for i, a in enumerate(args) if i not in nums])
        found: list[tuple[int | str, type, Any]] = [(i, type(args[i]), args[i]) for i in nums]
        if kwargs:
            found += [(k, type(kwargs[k]), kwargs[k]) for k in self.names if k in kwargs]
            kwargs = {k: v for k, v in kwargs.items() if k not in self.names}
        return left, kwargs, tuple(found)


def unhashable(statics: Statics) -> tuple[int | str, Any, TypeError] | None:
    """Return the first static value that cannot be part of a key: where it is, itself, and why."""
    try:
        hash(statics)
    except TypeError:
        for where, _, value in statics:
            try:
                hash(value)
            except TypeError as error:
                return where, value, error
    return None


def with_statics(
    args: Sequence[Any], kwargs: dict[str, Any], statics: Statics
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments with the static ones put back where they were."""
    args, kwargs = list(args), dict(kwargs)
    for where, _, value in statics:
        if isinstance(where, int):
            args.insert(where, value)
        else:
            kwargs[where] = value
    return args, kwargs


def named_arguments(
    fun: Callable[..., Any], nums: Any, names: Any, kind: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of the arguments meant, each inferred from the other.

    ``nums`` and ``names`` are what ``{kind}_argnums`` and ``{kind}_argnames`` of `jit` may be.

    Raises
    ------
    ValueError
        The function has no such argument.
    """
    nums, names = None if nums is None else argnums(nums), _argnames(names, kind)
    params = parameters_of(fun)
    if params is None or (nums is None and names is None):
        return nums or (), names or ()
    placed = positional(fun)
    kinds = {p.kind for p in params.values()}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        n = len(placed)
        if bad := [i for i in nums or () if not -n <= i < n]:
            raise ValueError(
                f"jit: {kind}_argnums={nums} of {fun_text(fun)}: there is no argument "
                f"{bad[0]}, it only accepts {n} positional arguments."
            )
        nums = nums if nums is None else tuple(i % n for i in nums)
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        known = [name for name, p in params.items() if p.kind is not p.VAR_POSITIONAL]
        if bad := [name for name in names or () if name not in known]:
            raise ValueError(
                f"jit: {kind}_argnames has the invalid name {bad[0]!r}: {fun_text(fun)} takes "
                f"{', '.join(known) or 'no arguments'}."
            )
    if names is None:
        by_name = {n for n, p in params.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
        inside = (placed[i] for i in nums or () if -len(placed) <= i < len(placed))
        names = tuple(name for name in inside if name in by_name)
    elif nums is None:
        nums = tuple(i for i, name in enumerate(placed) if name in names)
    return nums or (), names


def argnums(value: Any) -> tuple[int, ...]:
    """Return one position or several as a tuple."""
    try:
        return (index(value),)
    except TypeError:
        return tuple(index(i) for i in value)


def _argnames(value: Any, kind: str) -> tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return (value,) if value else None
    names = tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"jit: {kind}_argnames must be a str or strs, got {name!r} of {type(name)}."
            )
    return names


# ---- calls ---------------------------------------------------------------------------------------


class Signature(NamedTuple):
    """What is known of a call before it: all that a trace may depend on. A part of keys.

    A tuple, as it is made and hashed whenever a function is looked up.
    """

    #: Structure of ``(args, kwargs)``, static arguments left out.
    in_spec: Any
    #: Of the leaves.
    in_avals: tuple[ShapedArray, ...]
    statics: Statics = ()

    def arguments(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments that have these leaves, static ones in their places."""
        args, kwargs = self.in_spec.unflatten(leaves)
        return with_statics(args, kwargs, self.statics)

    def paths(self, fun: Callable[..., Any]) -> list[str]:
        """Return what each leaf is called in a function; ``leaf 2`` if its class tells no more."""
        hidden = [(where, kind, None) for where, kind, _ in self.statics]
        try:
            args, kwargs = self.in_spec.unflatten(list(self.in_avals))
        except Exception:  # a class may refuse what is no array, as TFP's do, by any error it likes
            names = []
        else:
            names = argument_paths(fun, *with_statics(args, kwargs, hidden))
        if len(names) == len(self.in_avals):
            return names
        return [f"leaf {k}" for k in range(len(self.in_avals))]


def spec_of_call(*args: Any) -> Any:
    """Return the structure of a call of positional arguments, as a signature has it."""
    return tree.flatten_spec((args, {}))[1]
