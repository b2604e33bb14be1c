"""``jit``: a function, its signatures, and the programs they were compiled to."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)  # fmt: skip

import numpy as np

from ..config import SETTINGS, Effects, common, config, threads_own
from ..config import effects as effects_scope
from ..control.admission import admit
from ..control.signature import (
    Signature,
    Statics,
    StaticSpec,
    abstract,
    first_rejected,
    fun_text,
    named_arguments,
    parameters_of,
    unhashable,
)
from ..control.tracing import Traced, traced
from ..core import tree
from ..core.array import ArrayElsewhere, ArrayImpl, ArrayPlaced, default, stays_on_host
from ..core.avals import ShapedArray
from ..core.callables import SignatureOf, is_generator_function, take_name
from ..core.keep import kept_with
from ..core.source import boundary, tidy
from ..core.surgery import says_places
from ..core.trace import state
from ..core.unpack import no_leaves, unpacker
from ..ops.kit.moves import over_words
from ..purity.guards import Guards
from ..runtime import where
from ..runtime.dispatch import buffer_of, caller
from .content import tell
from .recorded import Recorder

if TYPE_CHECKING:
    from ..runtime.device import Device
    from .stages import Lowered, TracedFunction

    class _Options(TypedDict, total=False):
        """What `jit` takes beside the function, for its overloads."""

        static_argnums: int | Sequence[int] | None
        static_argnames: str | Iterable[str] | None
        donate_argnums: int | Sequence[int] | None
        donate_argnames: str | Iterable[str] | None
        keep_unused: bool
        device: Device | None
        backend: str | None
        inline: bool
        effects: Effects | None
        in_shardings: Any
        out_shardings: Any
        abstracted_axes: Any
        compiler_options: dict[str, Any] | None


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

#: Types of which every value is a leaf, and has a buffer.
LEAVES = frozenset({ArrayImpl, np.ndarray, np.float32, np.int32, float, int, bool, complex})


class Programs:
    """What one function was compiled to.

    Attributes
    ----------
    calls : dict
        Programs by ``(token of the settings, number, *avals)``.
    numbers : dict
        What stands for structure and static values in these keys: 0 where each argument is a leaf,
        by position, and none is static, which is known without a look at the structure.
    guards : Guards
        Of what all the programs depend on: while they hold, so does every program.
    """

    __slots__ = ("_new", "calls", "guards", "numbers")

    def __init__(self) -> None:
        self.calls: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self.numbers: dict[tuple[Any, Statics], int] = {}
        # Never used again: who remembers one from before `clear` finds nothing.
        self._new = count(1)
        self.guards = Guards()

    def number(self, signature: Signature, flat: bool) -> int:
        """Return the number that stands for a new structure and static values."""
        number = 0 if flat else next(self._new)
        return self.numbers.setdefault((signature.in_spec, signature.statics), number)

    def clear(self) -> None:
        """Forget all programs."""
        self.calls.clear()
        self.numbers.clear()
        self.guards = Guards()


class PjitFunction(Generic[R, P]):  # R first: jedi knows no ParamSpec, and skips it
    """A function that is traced once per signature and runs compiled; made by `jit`."""

    __signature__ = SignatureOf()
    # Slots beside the attributes, which are the function's: read faster, and never mistaken.
    __slots__ = (
        "__dict__", "__weakref__", "_calls", "_donated", "_effects", "_inline", "_kept", "_last",
        "_options", "_place", "_programs", "_statics",
    )  # fmt: skip

    def __init__(
        self,
        fun: Callable[P, R],
        statics: StaticSpec,
        donated: tuple[tuple[int, ...], tuple[str, ...]],
        inline: bool,
        effects: Effects | None,
        options: dict[str, Any],
    ):
        take_name(self, fun)
        self.__wrapped__ = fun
        self._statics = statics
        self._donated = donated
        self._inline = inline
        self._effects: Effects | None = effects
        if effects in ("off", "warn"):  # what is found in it is no matter of other functions
            self.__fnarray_pure__ = True
        self._options = options
        self._kept = kept_with(fun)
        self._place = where.place_of(options)
        place = () if self._place is None else (self._place,)
        key = "programs", statics, inline, effects, *place
        self._programs = self._kept.table(*key, make=Programs)
        self._calls = self._programs.calls
        self._last: tuple[Callable[[Any], list[Any]] | None, int] = no_leaves, 0

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function: traced and compiled at the first call of each signature.

        Raises
        ------
        EffectError
            The function is not pure; nothing has run.
        """
        if not (threads_own and state.trace is not None) and self._programs.guards.holds():
            # Arguments as they were taken apart last, if in containers, then arrays. Avals are
            # interned, so keys hash addresses; nothing is ever stored under disable_jit's token.
            unpack, number = self._last
            if unpack is None:  # numbers among arrays: what follows would raise, for 0.6 us
                run, data = self._bare(args, kwargs)
            else:
                try:
                    bare = unpack is no_leaves and not kwargs
                    leaves = args if bare else unpack((args, kwargs))
                    token = config.trace_token if threads_own else common.token
                    run = self._calls[token, number, *[x._known_as for x in leaves]]  # pyright: ignore
                    data = [x._handed for x in leaves]  # pyright: ignore[reportAttributeAccessIssue]
                except (AttributeError, KeyError, TypeError, ValueError):
                    # Keys have no aval, by a TypeError. Called below, outside: an error must not
                    # show this one as its context.
                    run, data = self._bare(args, kwargs)
            if run is not None:
                return run(*data)
        try:
            return self._call(args, kwargs)
        except Exception as error:
            tidy(error)
            raise

    def _bare(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        """Return the program of a call with arrays and numbers, each a leaf, and their buffers."""
        here = self._place is None and default.find is None
        if kwargs or not here or not LEAVES.issuperset(map(type, args)):
            return None, []
        try:
            avals = [x.aval if type(x) is ArrayImpl else abstract(x) for x in args]
        except (TypeError, OverflowError):
            return None, []
        # How many there are tells which are static: what is known by number 0 has none.
        run = self._calls.get((config.trace_token if threads_own else common.token, 0, *avals))
        if run is not None and self._last[0] is no_leaves:
            self._last = None, 0
        return run, [] if run is None else list(map(buffer_of, args, avals))

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
            return self._as_it_is(args, kwargs)
        programs = self._programs
        if not programs.guards.holds():
            programs.clear()
        leaves, signature = self._signature_of(args, kwargs)
        if state.trace is not None:
            return self._record(self._traced(signature), leaves, args, kwargs)
        spec, avals, statics = signature
        number = programs.numbers.get((spec, statics))
        if number is None:
            # A node each for the root, args and kwargs: all arguments are leaves.
            flat = spec.num_nodes - 3 == len(leaves) == len(args) and not statics
            number = programs.number(signature, flat)
        elif number:  # seen before: worth code of its own
            self._last = unpacker(spec, statics), number
        # Workers that arguments lie on, if nothing says where else.
        if there := where.platform_under(leaves, self._place):
            return self._elsewhere(leaves, signature, (there, token, number, *avals), there.caller)
        place = self._where(leaves)
        if place is None and self._place is not None:
            leaves = [x.on_host() if isinstance(x, ArrayElsewhere) else x for x in leaves]
        if place is not None:
            key = place, token, number, *avals
            return self._elsewhere(leaves, signature, key, where.on_gpu(place))
        key = (token, number, *avals)
        if any(isinstance(x, ArrayPlaced) for x in leaves):
            known = (getattr(x, "_known_as", a) for x, a in zip(leaves, avals, strict=True))
            key = (token, number, *known)
        run = self._calls.get(key)
        if run is None:
            run, guards = self._program(signature, leaves)
            self._calls[key] = run
            # After the program is stored: whoever clears in between clears it, too.
            programs.guards.update(guards)
        return run(*map(buffer_of, leaves, avals))

    def _as_it_is(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        with admit(self.__wrapped__, "jit", statics=self._split(args, kwargs)[2]):
            return self.__wrapped__(*args, **kwargs)

    def _where(self, leaves: Sequence[Any]) -> Device | None:
        """Return the GPU that a call runs on; None for the processor."""
        if self._place is not None:
            return self._place if self._place.platform == "gpu" else None
        if any(isinstance(x, ArrayElsewhere) for x in leaves):
            from ..runtime import gpu  # asked for by whoever has one

            return gpu.place_of(leaves, fun_text(self.__wrapped__))
        if default.find is None or any(map(stays_on_host, leaves)):
            return None
        from ..runtime.device import default_device

        return default_device() if default.find() is not None else None

    def _elsewhere(
        self, leaves: Sequence[Any], signature: Signature, key: Any, make: Callable[..., Any]
    ) -> Any:
        """Call where the host's memory is not: ``make`` returns what calls a program there."""
        run = self._calls.get(key)
        if run is None:
            from .placed_jit import made_for

            t = self._traced(signature)
            run = self._calls[key] = made_for(key[0], self.__wrapped__, t, make)
            self._programs.guards.update(t.guards)
        there = (isinstance(x, ArrayElsewhere) and x.place == key[0] for x in leaves)
        if leaves and (direct := getattr(run, "direct", None)) and all(there):  # for `__call__`
            self._calls[*key[1:3], *[x._known_as for x in leaves]] = direct
        return run(*leaves)

    def _program(
        self, signature: Signature, leaves: Sequence[Any]
    ) -> tuple[Callable[..., Any], Guards]:
        """Return what calls the program of a signature, and guards of what it depends on."""
        on_mesh = config.mesh is not None or any(isinstance(x, ArrayPlaced) for x in leaves)
        recorder = None if on_mesh else Recorder(self.__wrapped__, signature)
        if recorder is not None and (found := recorder.found()) is not None:
            return found
        t = self._traced(signature)
        if captured := [c for c in t.consts if isinstance(c, ArrayElsewhere)]:
            there = where.platform_under(captured)
            if there is None:
                return where.on_gpu(captured[0].place)(t.closed, t.consts, t.out_spec), t.guards
            return there.caller(t.closed, t.consts, t.out_spec), t.guards
        wait = config.first_call == "wait"
        run = caller(t.closed, t.consts, t.out_spec, wait=wait, refs=t.written_refs)
        if on_mesh or says_places(t.closed.jaxpr):
            from . import places  # programs without meshes never ask

            given = [places.placement_of(x) for x in (*t.consts, *leaves)]
            places.check_together(
                fun_text(self.__wrapped__), given[len(t.consts) :], signature.in_avals
            )
            run = places.placing(run, t.closed, given, t.out_spec.num_leaves)
        elif wait and recorder is not None:
            recorder.keep(t)
        if config.recheck != "off":
            from ..control.recheck import rechecked

            run = rechecked(run, self.__wrapped__, signature, t)
        return run, t.guards

    def _record(self, t: Traced, leaves: Sequence[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Record the call in the trace in progress."""
        from ..control.call import call  # and the transforms' rules for it: 10 ms
        from ..control.in_place import runs_in_place

        if runs_in_place(t):
            return self._as_it_is(args, kwargs)
        if config.recheck != "off":
            from ..control.recheck import compared

            compared(self._calls, self.__wrapped__, t)
        return call(t, leaves, inline=self._inline)

    def _split(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict, Statics]:
        """Part arguments into traced ones and static ones; raise `ValueError` for those unfit."""
        if not self._statics:
            return args, kwargs, ()
        dyn, dyn_kw, statics = self._statics.split(args, kwargs)
        if found := unhashable(statics):
            fun, (where, value, error) = self.__wrapped__, found
            raise ValueError(
                f"jit: the static argument {_shown(fun, where)} of {fun_text(fun)} is "
                f"{value!r} of type {type(value)}, which is not hashable: {error}. Static "
                "arguments are part of the cache's key: pass a tuple in place of a list, "
                "or do not mark it static."
            ) from error
        return dyn, dyn_kw, statics

    def _signature_of(self, args: tuple, kwargs: dict[str, Any]) -> tuple[list[Any], Signature]:
        """Return the leaves of a call's arguments, and all that is known before it."""
        dyn, dyn_kw, statics = self._split(args, kwargs)
        leaves, spec = tree.flatten_spec((dyn, dyn_kw))
        try:
            avals = self._avals(leaves, args, kwargs)
        except TypeError:
            if (given := over_words((dyn, dyn_kw)))[0] is dyn:
                raise
            leaves, spec = tree.flatten_spec(given)
            avals = self._avals(leaves, args, kwargs)
        return leaves, Signature(spec, avals, statics)

    def _avals(self, leaves: Sequence[Any], args: tuple, kwargs: dict) -> tuple[ShapedArray, ...]:
        try:
            return tuple([x.aval if type(x) is ArrayImpl else abstract(x) for x in leaves])
        except (TypeError, OverflowError):
            self._reject(args, kwargs)
            raise

    def _reject(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Raise the error of the first argument that is no array, by name."""
        fun = self.__wrapped__
        admit(fun, "jit")
        if (found := first_rejected(fun, *self._split(args, kwargs))) is None:
            return
        path, leaf, error = found
        if isinstance(error, OverflowError):
            raise OverflowError(f"jit: the argument {path} of {fun_text(fun)}: {error}") from None
        raise TypeError(
            f"Argument {leaf!r} of type {type(leaf)} is not a valid fnarray type: it is "
            f"the argument {path} of {fun_text(fun)}. Pass arrays, numbers, and "
            "containers of them, or mark it static (static_argnums, static_argnames)."
        ) from None

    def _traced(self, signature: Signature) -> Traced:
        return traced(self.__wrapped__, signature, kept=self._kept)

    # ---- stages ----

    @boundary
    def trace(self, /, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace for arguments, or `ShapeDtypeStruct` stand-ins, and return the graph."""
        from .placed_jit import donated_leaves
        from .staged_places import staged
        from .stages import TracedFunction

        with effects_scope(self._effects or config.effects):
            t = self._traced(self._signature_of(args, kwargs)[1])
        where = staged(self, args, kwargs, t)
        donated = donated_leaves(args, kwargs, self._statics, *self._donated)
        return TracedFunction(t, donated, self.__wrapped__, where)

    @boundary
    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for arguments, or stand-ins: the first half of compiling ahead."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result, as `ShapeDtypeStruct` leaves; nothing is computed."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled of the function."""
        self._kept.forget()

    def _clear_cache(self) -> None:
        self.clear_cache()

    def _cache_size(self) -> int:
        return len(self._calls)

    # ---- as a Python object ----

    @overload
    def __get__(self, obj: None, objtype: Any = None) -> PjitFunction[R, P]: ...

    @overload
    def __get__(
        self: PjitFunction[R, Concatenate[Any, Q]], obj: object, objtype: Any = None
    ) -> Callable[Q, R]: ...

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return self if obj is None else types.MethodType(self, obj)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self.__wrapped__!r}>"

    def __reduce__(self) -> Any:
        name, module = getattr(self, "__qualname__", ""), getattr(self, "__module__", None)
        found = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        here = found is self and module != "__main__"
        return name if here else (functools.partial(jit, **self._options), (self.__wrapped__,))


tell(
    PjitFunction,
    lambda f: (f.__wrapped__, f._statics.nums, f._statics.names, f._inline, f._effects),
)


def _shown(fun: Callable[..., Any], where: int | str) -> str:
    """Return a static argument's name, or its position where it has none."""
    names = list(parameters_of(fun) or ())
    if isinstance(where, int) and where < len(names):
        where = names[where]
    return repr(where)


class PlacedPjitFunction(PjitFunction):
    """A compiled function whose arguments and results are somewhere, or arguments given up."""

    _rules: ClassVar[Any]  # the module `placed_jit`, which most programs never import

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function; see `PjitFunction`.

        Raises
        ------
        ValueError
            An argument is somewhere else than ``in_shardings`` say, or an array is no multiple of
            the devices that it is to be cut for.
        """
        options, rules = self._options, self._rules
        ins, outs = options.get("in_shardings"), options.get("out_shardings")
        if ins is not None:
            nums = self._statics.nums if self._statics else ()
            args = rules.brought(self.__wrapped__, args, kwargs, nums, ins)
        out = super().__call__(*args, **kwargs)
        if outs is not None:
            out = rules.sent(self.__wrapped__, out, outs)
        donates = any(self._donated) and state.trace is None
        if donates and (left := rules.given_up(args, kwargs, *self._donated, out)):
            self._tell(left, args, kwargs)
        return out

    def _tell(self, left: list[Any], args: tuple, kwargs: dict[str, Any]) -> None:
        """Warn of donated arguments that are like no result, once for each signature."""
        from .placed_jit import warn_of_unusable

        leaves, signature = self._signature_of(args, kwargs)
        told: set[Signature] = self.__dict__.setdefault("_told", set())
        if signature not in told:
            told.add(signature)
            with effects_scope(self._effects or config.effects):
                graph = self._traced(signature).closed.jaxpr
            warn_of_unusable(self.__wrapped__, graph, leaves, left)


# ---- the decorator -------------------------------------------------------------------------------


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[_Options]) -> PjitFunction[R, P]: ...


@overload
def jit(**options: Unpack[_Options]) -> Callable[[Callable[P, R]], PjitFunction[R, P]]: ...


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
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
        Arguments the caller will not use again. They are deleted, as many as there are results of
        their shape and dtype: whoever reads one afterwards gets a `RuntimeError`.
    keep_unused : bool
        Accepted: unused arguments cost nothing here.
    backend : {"cpu", "gpu", "cuda"}, optional
        Where it runs; where its arguments are, if omitted, or else on the processor.
    device : Device, optional
        The same, as a device: arguments are brought to a GPU.
    inline : bool
        Whether a call inside another traced function leaves its equations there.
    effects : {"error", "warn", "off"}, optional
        What to do if the function is not pure, in place of ``config.effects``.
    in_shardings, out_shardings : Sharding or PartitionSpec, or trees of them, optional
        How arguments and results are cut over the devices of a mesh; trees are prefixes of the
        arguments' tuple and of the result, and None is for whatever it is.
    abstracted_axes, compiler_options
        Accepted for compatibility: sizes are symbolic already.

    Returns
    -------
    PjitFunction
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
    # By identity: `static_argnums=0` equals False.
    given = {k: v for k, v in locals().items() if k != "fun"}
    options = {k: v for k, v in given.items() if v is not None and v is not False}
    if fun is None:
        return functools.partial(jit, **options)
    if not callable(fun):
        raise TypeError(f"jit: expected a callable value, got {fun!r} of type {type(fun)}.")
    if effects is not None:
        SETTINGS["effects"].check(effects, "jit")
    if is_generator_function(fun):
        admit(fun, "jit", effects)
        raise TypeError(f"jit: {fun_text(fun)} is a generator function; return a value instead.")
    where.place_of({"backend": backend})  # raises for one that does not exist
    static = named_arguments(fun, static_argnums, static_argnames, "static")
    donated = named_arguments(fun, donate_argnums, donate_argnames, "donate")
    if both := set(sum(static, ())) & set(sum(donated, ())):
        raise ValueError(
            f"jit: static and donated arguments of {fun_text(fun)} cannot intersect: "
            f"{sorted(both, key=str)} appear in both."
        )
    placed = in_shardings is not None or out_shardings is not None
    kind = PjitFunction
    if placed or any(donated):
        from . import placed_jit

        kind, PlacedPjitFunction._rules = PlacedPjitFunction, placed_jit
    return kind(fun, StaticSpec(*static), donated, inline, effects, options)
