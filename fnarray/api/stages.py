"""The stages of ahead-of-time compilation: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from typing import Any, Protocol, overload, runtime_checkable

from ..config import config
from ..control.signature import abstract
from ..control.tracing import Traced as _Traced
from ..core import hooks, tree
from ..core.avals import ShapedArray, ShapeDtypeStruct
from ..core.graph import ClosedGraph
from ..core.source import boundary
from ..core.trace import state
from ..errors import ReadEffectError
from ..ops.kit.moves import without_words
from ..runtime.device import Device
from ..runtime.dispatch import (
    assembly_for,
    buffer_of,
    built_for,
    caller,
    executable,
    executable_on_gpu,
    file_for,
)
from .staged_places import StagedPlaces, formatted, spelled

#: Options by their names; each must be one that this compiler knows.
CompilerOptions = dict[str, str | bool]
#: What a notebook shows of a program, and the dialect of each.
_DIALECTS = {"graph": "jaxpr", "plan": "plan", "source": "numba"}


@runtime_checkable
class Wrapped(Protocol):
    """A function ready to be traced, lowered and compiled: what `jit` returns."""

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        ...

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace the function for arguments."""
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function for arguments."""
        ...


@dataclass(frozen=True)
class ArgInfo:
    """What a compiled function knows of one argument."""

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self._aval.dtype


@dataclass(frozen=True)
class MemoryStats:
    """Bytes a compiled program needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int = 0
    generated_code_size_in_bytes: int = 0


class _Stage:
    """What all stages tell of their signature."""

    def __init__(
        self,
        traced: _Traced,
        donated: tuple[int, ...],
        fun: Callable[..., Any],
        where: StagedPlaces | None = None,
    ):
        self._traced = traced
        self._fun = fun
        self._where = where
        self._in_spec, self._avals, _ = traced.signature
        self._donated = donated

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self._traced.name

    @property
    def in_tree(self) -> tree.PyTreeDef:
        """Structure of ``(args, kwargs)``, static arguments left out."""
        return tree.PyTreeDef(self._in_spec)

    @property
    def out_tree(self) -> tree.PyTreeDef:
        """Structure of the result."""
        return self._traced.out_tree

    @property
    def in_avals(self) -> Any:
        """Avals of the arguments, in their structure."""
        return self._in_spec.unflatten(self._avals)

    @property
    def out_avals(self) -> Any:
        """Avals of the result, in its structure."""
        return self._traced.out_spec.unflatten(self._traced.out_avals)

    @property
    def args_info(self) -> Any:
        """`ArgInfo` of each argument, in their structure."""
        infos = [ArgInfo(a, i in self._donated) for i, a in enumerate(self._avals)]
        return self._in_spec.unflatten(infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Numbers of the donated leaves."""
        return self._donated

    @property
    def out_info(self) -> Any:
        """`ShapeDtypeStruct` of each result, in its structure; weak types until it is lowered."""
        avals = self._traced.out_avals
        if self._stage != "traced":
            avals = [a.update(weak_type=False) for a in avals]
        return structs_of(self._traced.out_spec, avals)

    def _as(self, stage: type) -> Any:
        return stage(self._traced, self._donated, self._fun, self._where)

    #: What it is, in a notebook, and the texts that are shown of it.
    _stage = "traced"

    def _texts(self) -> dict[str, str]:
        return {"graph": str(self._traced.closed)}

    def _signature(self) -> str:
        taken = ", ".join(a.str_short() for a in self._avals)
        given = ", ".join(a.str_short() for a in self._traced.out_avals)
        return f"{self.fun_name}({taken}) -> {given}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._signature()}>"

    def _repr_html_(self) -> str:
        folds = "".join(
            f'<details><summary>{name}</summary><pre style="font-family:monospace">{escape(text)}'
            "</pre></details>"
            for name, text in self._texts().items()
        )
        title = escape(self._signature())
        return f"<div><b><code>{title}</code></b>, {escape(self._stage)}{folds}</div>"


class TracedFunction(_Stage):
    """A function traced for one signature."""

    @cached_property
    def jaxpr(self) -> ClosedGraph:
        """The graph; what the function captured comes before its arguments."""
        return self._traced.told(self._traced.closed, self._fun)

    def lower(self) -> Lowered:
        """Schedule the graph and emit its source."""
        return self._as(Lowered)


class Lowered(_Stage):
    """A function scheduled and emitted as source for one signature."""

    _stage = "lowered"

    def _texts(self) -> dict[str, str]:
        return {name: self.as_text(dialect) for name, dialect in _DIALECTS.items()}

    @property
    def _gpu(self) -> Device | None:
        """The GPU that the program is to run on; None for the processor."""
        return None if self._where is None else self._where.gpu

    @property
    def _executable(self) -> Any:
        """The program for where it is to run."""
        return self._on_cpu if self._gpu is None else self._on_gpu

    @cached_property
    def _on_cpu(self) -> Any:
        return executable(self._traced.closed, self._traced.given, shown=True)

    @cached_property
    def _on_gpu(self) -> Any:
        number = 0 if self._gpu is None else self._gpu.id
        return executable_on_gpu(self._traced.closed, number, shown=True)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the program as text.

        Parameters
        ----------
        dialect : {"numba", "cuda", "numba-cuda", "jaxpr", "plan"}, optional
            The emitted Python source, that for a GPU with its launches, the same as a file that
            needs the package of that name alone, the graph, or the schedule in words. By default
            the source for where the program is to run.
        debug_info : bool
            Accepted for compatibility: the text names the user's lines.

        Raises
        ------
        ValueError
            For any other dialect.
        UnsupportedOnTarget
            A step of the program is no kernel, which a file cannot hold.
        """
        match dialect:
            case None:
                return self._executable.as_text()
            case "numba":
                return self._on_cpu.as_text()
            case "cuda":
                return self._on_gpu.as_text()
            case "numba-cuda":
                return file_for(self._on_gpu)
            case "jaxpr":
                return str(self._traced.closed)
            case "plan":
                return self._executable.plan_text
        raise ValueError(
            f"as_text: unknown dialect {dialect!r}. Use 'numba', 'cuda', 'numba-cuda', "
            "'jaxpr' or 'plan'."
        )

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """Explain the program: source, graph, kernels, buffers; see `fnarray.explain`.

        Parameters
        ----------
        *args, **kwargs
            Of the signature, to run the program on and time its kernels; nothing is run without.
        """
        return hooks.report(self, args, kwargs)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the program as an object: the graph for ``"jaxpr"``, else its text."""
        return self._traced.closed if dialect == "jaxpr" else self.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """Estimated operations (``flops``) and bytes moved (``bytes accessed``)."""
        return dict(self._executable.cost)

    @overload
    def compile(self, compiler_options: CompilerOptions | None = None) -> Compiled: ...

    @overload
    def compile(
        self, compiler_options: CompilerOptions | None = None, *, target: str
    ) -> CompiledAhead: ...

    def compile(
        self, compiler_options: CompilerOptions | None = None, *, target: str | None = None
    ) -> Compiled | CompiledAhead:
        """Build the kernels and return the program, callable.

        Parameters
        ----------
        target : str, optional
            The architecture of a GPU, which need not be here: ``"sm_90"``. Its kernels are built
            and kept in the cache, where a process that has the GPU finds them.
        """
        return self._as(Compiled) if target is None else CompiledAhead(self, target)


class CompiledAhead(_Stage):
    """A function compiled for one signature and a GPU that need not be in this machine.

    Attributes
    ----------
    target : str
        The architecture.
    kernels : tuple
        In the order of their first launch: ``name``, ``kind`` (``"cubin"`` or ``"ptx"``), ``code``
        and ``cost`` (registers, spilled and shared bytes, where they are known).
    """

    def __init__(self, lowered: Lowered, target: str):
        super().__init__(lowered._traced, lowered._donated, lowered._fun, lowered._where)
        self.target = target
        self._stage = f"compiled for {target}"
        self._lowered = lowered
        self.kernels = built_for(lowered._on_gpu, target)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the kernels and launches as Python source, or the kernels as ``"ptx"``."""
        if dialect == "ptx":
            return "\n\n".join(assembly_for(self._lowered._on_gpu, self.target))
        return self._lowered.as_text("cuda" if dialect is None else dialect)

    @property
    def _executable(self) -> Any:
        return self._lowered._on_gpu

    def report(self) -> Any:
        """Explain the program for that GPU, as `fnarray.explain` does; nothing is run."""
        return hooks.report(self, (), {})

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Refuse: it was compiled for another machine.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError(
            f"Function {self.fun_name} was compiled ahead for {self.target}, to be kept in the "
            "cache. Call the jitted function on a machine with that GPU and the same cache."
        )


class Compiled(Lowered):
    """A function compiled for one signature: a call never traces or compiles."""

    _stage = "compiled"

    def __init__(self, *args: Any):
        super().__init__(*args)
        t, self._run = self._traced, self._caller()
        if config.recheck != "off":
            from ..control.recheck import rechecked

            self._run = rechecked(self._run, self._fun, t.signature, t)

    def _caller(self) -> Callable[..., Any]:
        t, place = self._traced, self._gpu
        if place is None:
            return caller(t.closed, t.consts, t.out_spec, refs=t.written_refs)
        from ..runtime import gpu
        from .placed_jit import made_for

        self._on_gpu.load()
        run = made_for(place, self._fun, t, partial(gpu.caller, place=place))

        def call(*leaves: Any) -> Any:
            if gpu.place_of(leaves, self.fun_name) not in (None, place):
                raise ValueError(
                    f"Compiled function {self.fun_name} is for {place}, and an argument lies on "
                    f"{gpu.place_of(leaves, self.fun_name)}. Bring it there with "
                    "fnarray.device_put, or call the jitted function."
                )
            return run(*leaves)

        return call

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run on arguments of the signature; static arguments are left out.

        Raises
        ------
        TypeError
            The arguments have another structure, shape or dtype, or are tracers.
        ReadEffectError
            A constant, array or function that the program holds has been rebound since; or the
            function has become another one, and ``config.recheck`` asks.
        """
        guards = self._traced.guards
        if not guards.holds():
            raise ReadEffectError(
                f"Compiled function {self.fun_name} reads {', '.join(guards.changed())}, rebound "
                "since it was traced, and never traces again: lower and compile it anew, or call "
                "the jitted function itself."
            )
        leaves, spec = tree.flatten_spec((args, kwargs))
        if spec != self._in_spec:
            raise TypeError(
                f"Function {self.fun_name} was compiled for another structure of arguments: for "
                f"{self.in_tree}, called with {tree.PyTreeDef(spec)}."
            )
        if state.trace is not None:
            raise TypeError(
                f"Compiled function {self.fun_name} cannot be called while tracing "
                f"{state.trace.name}: it has one signature and no graph to transform. Call the "
                "jitted function itself."
            )
        self._check(leaves)
        where = self._where
        if where is not None and (where.said or any(hasattr(x, "placement") for x in leaves)):
            given, named = self._traced.signature.arguments(leaves)
            return where.jitted(*given, **named)
        if self._gpu is not None:
            return self._run(*leaves)
        return self._run(*map(buffer_of, leaves, self._avals))

    call = __call__

    def _check(self, leaves: Sequence[Any]) -> None:
        got = [abstract(x) for x in leaves]
        if all(g is w for g, w in zip(got, self._avals, strict=True)):
            return
        pairs = zip(tree.leaves_with_path(self.in_avals), got, strict=True)
        bad = [
            f"{tree.keystr(path)}: compiled for {want.str_short()}, called with {g.str_short()}"
            for (path, want), g in pairs
            if (want.shape, want.dtype) != (g.shape, g.dtype)
        ]
        if bad:
            raise TypeError(
                f"Argument types of {self.fun_name} differ from those it was compiled for "
                "(in (args, kwargs)):\n  " + "\n  ".join(bad)
            )

    @property
    def input_shardings(self) -> Any:
        """Where each argument is to be, as ``(args, kwargs)``."""
        return self._in_spec.unflatten(map(spelled, self._places()[0]))

    @property
    def output_shardings(self) -> Any:
        """Where each result will be, in its structure."""
        return self._traced.out_spec.unflatten(map(spelled, self._places()[1]))

    @property
    def input_formats(self) -> Any:
        """Layout and sharding of each argument, as ``(args, kwargs)``."""
        ranks = [a.ndim for a in self._avals]
        return self._in_spec.unflatten(map(formatted, self._places()[0], ranks))

    @property
    def output_formats(self) -> Any:
        """Layout and sharding of each result, in its structure."""
        ranks = [a.ndim for a in self._traced.out_avals]
        return self._traced.out_spec.unflatten(map(formatted, self._places()[1], ranks))

    def _places(self) -> tuple[list[Any], list[Any]]:
        """Return where arguments and results are; None of those that may be anywhere."""
        t, where = self._traced, self._where
        if where is None:
            return [None] * len(self._avals), [None] * len(t.out_avals)
        return where.of_arguments(t), where.of_results(t)

    def memory_analysis(self) -> MemoryStats:
        """Bytes of arguments, results and temporaries."""
        m = self._executable.memory
        return MemoryStats(m["argument_bytes"], m["output_bytes"], m["temp_bytes"])

    def runtime_executable(self) -> Any:
        """Return the executable itself."""
        return self._executable


def struct_of(aval: ShapedArray) -> ShapeDtypeStruct:
    """Return an aval as users see it."""
    where = None if aval.place is None else aval.sharding
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where, weak_type=aval.weak_type)


def structs_of(spec: Any, avals: Sequence[ShapedArray]) -> Any:
    """Return the avals of a structure's leaves as users see them: of keys it is the keys'."""
    structs = [struct_of(a) for a in avals]
    return without_words(structs, spec.unflatten(structs))
