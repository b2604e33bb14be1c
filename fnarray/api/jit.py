"""``jit``: a function, its signatures, and the programs they were compiled to."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, Literal

import numpy as np

from ..config import SETTINGS, config
from ..config import effects as effects_scope
from ..control import call as calls
from ..control.call import Statics, Traced, fun_name, fun_text, parameters_of
from ..core import tree
from ..core.array import ArrayImpl
from ..core.avals import ShapedArray
from ..core.graph import eval_graph
from ..core.trace import bind, state
from ..purity.guards import Guards
from ..runtime import device as devices
from ..runtime.dispatch import buffer_of, program
from ..runtime.unpack import no_leaves, unpacker
from .stages import Lowered, TracedFunction

#: Types of which every value is a leaf, and has a buffer.
LEAVES = frozenset({ArrayImpl, np.ndarray, np.float32, np.int32, float, int, bool, complex})
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Programs:
    """What one function was compiled to.

    Attributes
    ----------
    calls : dict
        Programs by signature.
    numbers : dict
        What stands for structures in signatures.
    guards : Guards
        Of what all the programs depend on: while they hold, so does every program.
    """

    __slots__ = ("calls", "guards", "numbers")

    def __init__(self) -> None:
        self.calls: dict[Any, Callable[..., Any]] = {}
        self.numbers: dict[Any, int] = {}
        self.guards = Guards()

    def clear(self) -> None:
        """Forget all programs."""
        self.calls.clear()
        self.guards = Guards()


class Jitted:
    """A function that is traced once per signature and runs compiled; made by `jit`."""

    def __init__(
        self,
        fun: Callable[..., Any],
        statics: StaticSpec,
        inline: bool,
        effects: str | None,
        kept: dict[str, Any],
    ):
        functools.update_wrapper(self, fun)
        self.__wrapped__ = fun
        self._statics = statics
        self._inline = inline
        self._effects = effects
        if effects == "off":  # neither is it checked as part of other functions
            self.__fnarray_pure__ = True
        self._options = kept
        self._cache = calls.cache_of(fun)
        self._programs = self._cache.setdefault(("calls", statics, inline, effects), Programs())
        self._calls = self._programs.calls
        self._last: tuple[Callable[[Any], list[Any]], int] = no_leaves, 0

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function: traced and compiled at the first call of each signature.

        Raises
        ------
        EffectError
            The function is not pure; nothing has run.
        """
        if state.trace is None and self._programs.guards.holds():
            # Arrays, then containers of arrays in the structure of the last call. Avals are
            # interned, so keys hash addresses; nothing is ever stored under disable_jit's token.
            try:
                if args and type(args[0]) is ArrayImpl and not kwargs:
                    run = self._calls[config.trace_token, *[a.aval for a in args]]
                    data = [a._data for a in args]
                else:
                    unpack, number = self._last
                    leaves = unpack((args, kwargs))
                    run = self._calls[config.trace_token, number, (), *[x.aval for x in leaves]]
                    data = [x._data for x in leaves]
            except (AttributeError, KeyError, ValueError):
                run = None  # called below, outside: an error must not show this one as its context
            if run is not None:
                return run(*data)
        return self._call(args, kwargs)

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call with any arguments: numbers, static values, tracers, a new structure."""
        # Programs are found by the settings of the caller, whatever tracing changes.
        token = config.trace_token
        if self._effects is None:
            return self._run(args, kwargs, token)
        with effects_scope(self._effects):
            return self._run(args, kwargs, token)

    def _run(self, args: tuple, kwargs: dict[str, Any], token: int) -> Any:
        if config.disable_jit:
            statics = self._split(args, kwargs)[2]
            with calls.admit(self.__wrapped__, "jit", statics=statics):
                return self.__wrapped__(*args, **kwargs)
        programs = self._programs
        if not programs.guards.holds():
            programs.clear()
        if (
            state.trace is None
            and not (kwargs or self._statics)
            and LEAVES.issuperset(map(type, args))
        ):
            avals = self._avals(args, args, kwargs)
            run = self._calls.get((token, *avals))
            if run is not None:
                return run(*map(buffer_of, args, avals))
        dyn, dyn_kw, statics = self._split(args, kwargs)
        leaves, spec = tree.flatten_spec((dyn, dyn_kw))
        avals = self._avals(leaves, args, kwargs)
        if state.trace is not None:
            return self._record(self._traced(spec, avals, statics), leaves)
        number = programs.numbers.get(spec)
        if number is None:
            number = programs.numbers.setdefault(spec, len(programs.numbers))
        elif not statics:  # seen before: worth code of its own
            self._last = unpacker(spec), number
        key = (token, number, statics, *avals)
        run = self._calls.get(key)
        if run is None:
            t = self._traced(spec, avals, statics)
            run = self._calls[key] = program(t.closed, t.consts, t.out_spec)
            # A node each for the root, args and kwargs: all arguments are leaves.
            if spec.num_nodes - 3 == len(leaves) == len(args) and not statics:
                self._calls[token, *avals] = run
            # After the program is stored: whoever clears in between clears it, too.
            programs.guards.update(t.guards)
        return run(*map(buffer_of, leaves, avals))

    def _record(self, t: Traced, leaves: Sequence[Any]) -> Any:
        """Record the call in the trace in progress."""
        if not self._inline:
            return calls.call(t, leaves, fun_name(self.__wrapped__))
        outs = eval_graph(t.closed.jaxpr, (), [*t.consts, *leaves], bind)
        return t.out_spec.unflatten(outs)

    def _split(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict, Statics]:
        return (
            self._statics.split(self.__wrapped__, args, kwargs)
            if self._statics
            else (args, kwargs, ())
        )

    def _avals(self, leaves: Sequence[Any], args: tuple, kwargs: dict) -> tuple[ShapedArray, ...]:
        try:
            return tuple([x.aval if type(x) is ArrayImpl else calls.abstract(x) for x in leaves])
        except (TypeError, OverflowError):
            self._reject(args, kwargs)
            raise

    def _reject(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Raise the error of the first argument that is no array, by name."""
        fun = self.__wrapped__
        calls.admit(fun, "jit")
        dyn, dyn_kw, statics = self._split(args, kwargs)
        shown = calls.merged(dyn, dyn_kw, [(where, kind, None) for where, kind, _ in statics])
        paths = calls.argument_paths(fun, *shown)
        for path, leaf in zip(paths, tree.leaves((dyn, dyn_kw)), strict=False):
            try:
                calls.abstract(leaf)
            except OverflowError as error:
                raise OverflowError(
                    f"jit: the argument {path} of {fun_text(fun)}: {error}"
                ) from None
            except TypeError:
                raise TypeError(
                    f"Argument {leaf!r} of type {type(leaf)} is not a valid fnarray type: it is "
                    f"the argument {path} of {fun_text(fun)}. Pass arrays, numbers, and "
                    "containers of them, or mark it static (static_argnums, static_argnames)."
                ) from None

    def _traced(self, spec: Any, avals: tuple[ShapedArray, ...], statics: Statics) -> Traced:
        return calls.traced(self.__wrapped__, spec, avals, statics=statics, cache=self._cache)

    # ---- stages ----

    def trace(self, /, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace for arguments, or `ShapeDtypeStruct` stand-ins, and return the graph."""
        with effects_scope(self._effects or config.effects):
            dyn, dyn_kw, statics = self._split(args, kwargs)
            leaves, spec = tree.flatten_spec((dyn, dyn_kw))
            avals = self._avals(leaves, args, kwargs)
            t = self._traced(spec, avals, statics)
        return TracedFunction(t, spec, avals, fun_name(self.__wrapped__), self._statics.donated)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for arguments, or stand-ins: the first half of compiling ahead."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result, as `ShapeDtypeStruct` leaves; nothing is computed."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled of the function."""
        self._programs.clear()
        for key in [k for k in self._cache if k[0] != "calls"]:
            del self._cache[key]

    def _clear_cache(self) -> None:
        self.clear_cache()

    def _cache_size(self) -> int:
        return sum(type(k[1]) is int for k in self._calls)

    # ---- as a Python object ----

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return self if obj is None else types.MethodType(self, obj)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self.__wrapped__!r}>"

    def __reduce__(self) -> Any:
        name = getattr(self, "__qualname__", "")
        module = getattr(self, "__module__", None)
        found = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self and module != "__main__":
            return name
        return functools.partial(jit, **self._options), (self.__wrapped__,)


# ---- static arguments ----------------------------------------------------------------------------


class StaticSpec:
    """Which arguments are static and which may be donated: known by value."""

    __slots__ = ("donated", "names", "nums")

    def __init__(self, nums: tuple[int, ...], names: tuple[str, ...], donated: tuple[int, ...]):
        self.nums = nums
        self.names = names
        self.donated = donated

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticSpec) and (self.nums, self.names) == (
            other.nums,
            other.names,
        )

    def __hash__(self) -> int:
        return hash((self.nums, self.names))

    def split(
        self, fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
    ) -> tuple[tuple, dict[str, Any], Statics]:
        """Part arguments into traced ones and static ones, in the form of a key.

        Raises
        ------
        ValueError
            A static argument cannot be hashed.
        """
        n = len(args)
        nums = sorted({i if i >= 0 else i + n for i in self.nums if -n <= i < n})
        found: list[tuple[int | str, Any]] = [(i, args[i]) for i in nums]
        found += [(name, kwargs[name]) for name in self.names if name in kwargs]
        for where, value in found:
            try:
                hash(value)
            except TypeError as error:
                raise ValueError(
                    f"jit: the static argument {_shown(fun, where)} of {fun_text(fun)} is "
                    f"{value!r} of type {type(value)}, which is not hashable: {error}. Static "
                    "arguments are part of the cache's key: pass a tuple in place of a list, "
                    "or do not mark it static."
                ) from error
        dyn = tuple(a for i, a in enumerate(args) if i not in nums)
        dyn_kw = {k: v for k, v in kwargs.items() if k not in self.names}
        return dyn, dyn_kw, tuple((where, type(v), v) for where, v in found)


def _shown(fun: Callable[..., Any], where: int | str) -> str:
    names = list(parameters_of(fun) or ())
    if isinstance(where, str):
        return repr(where)
    return f"{names[where]!r}" if where < len(names) else f"{where}"


def _nums(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        return (index(value),)
    except TypeError:
        return tuple(index(i) for i in value)


def _names(value: Any, what: str) -> tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return value and (value,)
    names = tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"jit: {what} must be a str or strs, got {name!r} of {type(name)}.")
    return names


def _resolve(
    fun: Callable[..., Any], nums: Any, names: Any, kind: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of the arguments meant, each inferred from the other.

    Raises
    ------
    ValueError
        The function has no such argument.
    """
    nums, names = _nums(nums), _names(names, f"{kind}_argnames")
    params = parameters_of(fun)
    if params is None or (nums is None and names is None):
        return nums or (), names or ()
    positional = [name for name, p in params.items() if p.kind in _POSITIONAL]
    kinds = {p.kind for p in params.values()}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        n = len(positional)
        if bad := [i for i in nums or () if not -n <= i < n]:
            raise ValueError(
                f"jit: {kind}_argnums={tuple(nums)} of {fun_text(fun)}: there is no argument "
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
        inside = (positional[i] for i in nums if -len(positional) <= i < len(positional))
        names = tuple(name for name in inside if name in by_name)
    elif nums is None:
        nums = tuple(i for i, name in enumerate(positional) if name in names)
    return tuple(nums), tuple(names)


# ---- the decorator -------------------------------------------------------------------------------


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: devices.Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    effects: Literal["error", "warn", "off"] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    abstracted_axes: Any = None,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function: it is traced once per signature, fused, and runs as machine code.

    Usable as ``jit(f)``, ``@jit``, ``@jit(static_argnums=1)`` and through `functools.partial`.
    The compiled forms live as long as ``fun``: ``jit(fun)`` made anew does not trace again.

    Parameters
    ----------
    fun : callable
        Pure; takes and returns containers of arrays and numbers.
    static_argnums, static_argnames : int or str, or a sequence of them, optional
        Arguments that arrive as their Python values; each hashable value is compiled apart. The
        one is inferred from the other.
    donate_argnums, donate_argnames : int or str, or a sequence of them, optional
        Arguments the caller will not use again, whose buffers may be reused.
    keep_unused : bool
        Accepted: unused arguments cost nothing here.
    backend : str, optional
        ``"cpu"``, the only one.
    inline : bool
        Whether a call inside another traced function leaves its equations there.
    effects : {"error", "warn", "off"}, optional
        What to do if the function is not pure, in place of ``config.effects``.
    device, in_shardings, out_shardings, abstracted_axes, compiler_options
        Accepted for compatibility: arrays live in one memory, sizes are symbolic already.

    Returns
    -------
    Jitted
        Called as ``fun`` is; see its ``lower``, ``trace``, ``eval_shape``, ``clear_cache``.

    Raises
    ------
    TypeError
        ``fun`` is not callable.
    EffectError
        ``fun`` is a generator function. All other effects are found when it is called.
    ValueError
        An argument named static or donated does not exist, or is both.
    """
    options = {k: v for k, v in locals().items() if k != "fun" and v not in (None, False)}
    if fun is None:
        return functools.partial(jit, **options)
    if not callable(fun):
        raise TypeError(f"jit: expected a callable value, got {fun!r} of type {type(fun)}.")
    if effects is not None:
        SETTINGS["effects"].check(effects, "jit")
    if inspect.isgeneratorfunction(fun):
        calls.admit(fun, "jit", effects)
        raise TypeError(f"jit: {fun_text(fun)} is a generator function; return a value instead.")
    if backend is not None:
        devices.devices(backend)  # raises for one that does not exist
    static = _resolve(fun, static_argnums, static_argnames, "static")
    donated = _resolve(fun, donate_argnums, donate_argnames, "donate")
    if both := set(sum(static, ())) & set(sum(donated, ())):
        raise ValueError(
            f"jit: static and donated arguments of {fun_text(fun)} cannot intersect: "
            f"{sorted(both, key=str)} appear in both."
        )
    return Jitted(fun, StaticSpec(*static, donated[0]), inline, effects, options)
