"""Programs as bytes: a function traced once, to be called in other processes, at other times.

What is kept is the graph, as plain data, with the dtypes and structures of what it takes and gives,
and a digest of it all. Nothing in it is run or unpickled; machine code is made, and cached, where
the program is called.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..control.call import jit_p
from ..control.custom import custom_vjp
from ..control.signature import abstract, fun_name
from ..control.tracing import Traced
from ..core import tree
from ..core.avals import ShapedArray, ShapeDtypeStruct
from ..core.dims import SymbolicScope, is_symbolic_dim, names_of, parsed, symbolic_shape
from ..core.dtypes import as_dtype, float0
from ..core.graph import ClosedGraph, Graph, eval_graph, subgraphs
from ..core.surgery import closed_over
from ..core.tangents import differentiable
from ..core.trace import bind
from ..ops.kit.calls import full
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import over_words
from ..runtime.spec import NamedSharding
from ..transforms.graphs import recorded
from .derivatives import vjp
from .encoding import Unencodable, decoded_array, decoded_graph, encoded_array, encoded_graph
from .export_traces import all_traced, on_mesh, places_said, scope_of
from .generalize import at_sizes, choices, generalized
from .jit import PjitFunction, jit
from .safety import DisabledSafetyCheck
from .sizes import SymbolicArray, check_solvable, found_sizes
from .trees import decoded_tree, encoded_tree

_MAGIC = b"fnarray program\n"
#: Of the form of the bytes, and of how a program is called.
#: The oldest form of exported programs that is read.
minimum_supported_calling_convention_version = 1
#: The form that exported programs are written in.
maximum_supported_calling_convention_version = 1
#: Names a program may be exported for: it is the same graph for all, and runs where fnarray does.
_PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")
_CUSTOM = ("custom_jvp_call", "custom_vjp_call")


def default_export_platform() -> str:
    """Return the platform that programs are exported for."""
    return "cpu"


# ---- exported programs ---------------------------------------------------------------------------

_PAGE = "docs/how-to/run-a-jax-library.md"
_INSTEAD = {f"{way}_shardings_hlo": f"{way}_shardings_jax(mesh)" for way in ("in", "out")}
_INSTEAD |= dict.fromkeys(("mlir_module", "mlir_module_serialized"), "serialize()")


class Exported:
    """A program, and what it takes and gives; made by `export` and `deserialize`.

    Attributes
    ----------
    fun_name : str
    in_tree, out_tree : PyTreeDef
        Structures of ``(args, kwargs)`` and of the result.
    in_avals, out_avals : tuple
        Of the leaves; sizes may be symbolic.
    platforms : tuple of str
    calling_convention_version : int
    nr_devices : int
    disabled_safety_checks : tuple of DisabledSafetyCheck
    ordered_effects, unordered_effects : tuple
        Accepted for compatibility; empty.
    """

    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()

    def __init__(
        self,
        program: _Program,
        in_tree: tree.PyTreeDef,
        out_tree: tree.PyTreeDef,
        fun: Callable[..., Any] | None = None,
    ):
        self._program = program
        self._fun = fun
        self._vjp: Exported | None = None
        self.fun_name = program.name
        self.platforms = program.platforms
        self.disabled_safety_checks = tuple(map(DisabledSafetyCheck, program.unchecked))
        self.calling_convention_version = maximum_supported_calling_convention_version
        self.in_tree, self.out_tree = in_tree, out_tree
        self.scope = SymbolicScope(program.constraints)
        self.in_avals = tuple(_aval_of(a, self.scope) for a in program.in_avals)
        self.out_avals = tuple(_aval_of(a, self.scope) for a in program.out_avals)
        for what, structure, avals in (
            ("arguments", in_tree, self.in_avals),
            ("results", out_tree, self.out_avals),
        ):
            if structure.num_leaves != len(avals):
                raise ValueError(f"the structure of the {what} has another number of leaves")
        self.names = names_of(a.shape for a in self.in_avals)
        self._graphs: dict[tuple[int, ...], tuple[list[Any], ClosedGraph]] = {}
        #: Whether derivatives are those of the rules that it was traced with.
        self._whole = not program.rules

    def __getattr__(self, name: str) -> Any:
        why = f": it is XLA's. Use {_INSTEAD[name]}; see {_PAGE}." if name in _INSTEAD else ""
        raise AttributeError(f"Exported has no attribute {name!r}{why}", name=name, obj=self)

    def __repr__(self) -> str:
        return (
            f"Exported(fun_name={self.fun_name!r}, in_tree={self.in_tree}, "
            f"in_avals={self.in_avals}, out_tree={self.out_tree}, out_avals={self.out_avals}, "
            f"platforms={self.platforms})"
        )

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    @property
    def nr_devices(self) -> int:
        """Number of devices of the mesh that arguments or results are said to be cut over, or 1."""
        places = (*self._program.in_places, *self._program.out_places)
        return max((prod(n for _, n in place[0]) for place in places if place), default=1)

    def in_shardings_jax(self, mesh: Any) -> tuple[NamedSharding | None, ...]:
        """Return how arguments are said to be cut, on a mesh with the axes that they name."""
        return on_mesh(self._program.in_places or [None] * len(self.in_avals), mesh)

    def out_shardings_jax(self, mesh: Any) -> tuple[NamedSharding | None, ...]:
        """Return how the types of results are cut, on a mesh with the axes that they name."""
        return on_mesh(self._program.out_places or [None] * len(self.out_avals), mesh)

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """Numbers of the arguments that the program takes: all."""
        return tuple(range(len(self.in_avals)))

    @property
    def uses_global_constants(self) -> bool:
        """Whether it depends on symbolic sizes."""
        return bool(self.names)

    # ---- calls ----

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; it may be staged, batched and differentiated.

        Raises
        ------
        ValueError
            The arguments are of another structure, dtypes or shapes than the program is for.
        """
        known = self.platforms
        if "cpu" not in known and DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            raise ValueError(
                f"Function '{self.fun_name}' was exported for platforms {self.platforms} but it "
                "is used on 'cpu'."
            )
        leaves, spec = tree.flatten_spec((args, kwargs))
        if spec != self.in_tree.spec:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported: it takes {self.in_tree}, got "
                f"{tree.PyTreeDef(spec)}."
            )
        sizes = found_sizes(self, leaves)
        arrays = [as_array(x) for x in leaves]
        run = functools.partial(self._run, sizes)
        outs = run(*arrays) if self._whole else self._with_derivative(run)(*arrays)
        return self.out_tree.unflatten(outs)

    def _run(self, sizes: tuple[int, ...], *arrays: Any) -> list[Any]:
        consts, graph = self._graph(sizes)
        return bind(jit_p, *consts, *arrays, name=self.fun_name, jaxpr=graph)

    def _graph(self, sizes: tuple[int, ...]) -> tuple[list[Any], ClosedGraph]:
        """Return constants and graph at some sizes."""
        found = self._graphs.get(sizes)
        if found is None:
            data = at_sizes(self._program.data, dict(zip(self.names, sizes, strict=True)))
            consts = [decoded_array(c) for c in data["consts"]]
            found = self._graphs[sizes] = consts, decoded_graph(data["graph"])
        return found

    def _with_derivative(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the program with the derivative that its rules gave when it was exported."""
        call = custom_vjp(lambda *arrays: run(*arrays))

        def back(arrays: Any, cts: Any) -> tuple[Any, ...]:
            if not self.has_vjp():
                raise ValueError(
                    f"No VJP is available for '{self.fun_name}': functions with derivatives of "
                    "their own are in it, whose rules are not kept. Serialize it with vjp_order=1."
                )
            found = self.vjp().call(*arrays, *cts)
            return tuple(
                c if differentiable(a.dtype) else None for c, a in zip(found, arrays, strict=True)
            )

        call.defvjp(lambda *arrays: (run(*arrays), arrays), back)
        return call

    # ---- derivatives ----

    def has_vjp(self) -> bool:
        """Whether `vjp` can be had."""
        return self._vjp is not None or self._fun is not None or self._whole

    def vjp(self) -> Exported:
        """Return the program that takes arguments and cotangents of results back, all as leaves.

        Raises
        ------
        ValueError
            Rules that the derivative needs were not serialized.
        """
        if self._vjp is None:
            if not self.has_vjp():
                raise ValueError(
                    f"No VJP is available for '{self.fun_name}': serialize it with vjp_order=1."
                )
            self._vjp = self._derived()
        return self._vjp

    def _derived(self) -> Exported:
        n = len(self.in_avals)

        def flat(*leaves: Any) -> list[Any]:
            args, kwargs = self.in_tree.unflatten(leaves)
            return tree.leaves((self._fun or self.call)(*args, **kwargs))

        def fun_vjp(*operands: Any) -> tuple[Any, ...]:
            primals, cts = operands[:n], operands[n:]
            outs, back = vjp(flat, *primals)
            given = [
                c if differentiable(o.dtype) else np.zeros(o.shape, float0)
                for c, o in zip(cts, outs, strict=True)
            ]
            return tuple(
                c if differentiable(x.dtype) else full(x.aval.update(dtype=np.dtype(bool)), 0)
                for c, x in zip(back(given), map(as_array, primals), strict=True)
            )

        fun_vjp.__name__ = f"{self.fun_name}_vjp"
        avals = (*self.in_avals, *self.out_avals)
        specs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        terms = {"platforms": self.platforms, "disabled_checks": self.disabled_safety_checks}
        return export(jit(fun_vjp, effects="off"), **terms)(*specs)

    # ---- bytes ----

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return the program as bytes.

        Parameters
        ----------
        vjp_order : int
            How often functions with derivatives of their own, in it, may be differentiated in
            reverse; others always may.

        Raises
        ------
        NotImplementedError
            The program holds Python functions.
        ValueError
            An instance of a class is in the structure of arguments or results, and how to write
            it is not registered.
        """
        body = zlib.compress(json.dumps(self._at_order(vjp_order)).encode(), 6)
        head = _MAGIC + struct.pack("<I", self.calling_convention_version)
        return bytearray(head + hashlib.sha256(head + body).digest() + body)

    def _at_order(self, order: int) -> dict[str, Any]:
        program = self._program
        if isinstance(program.data, Unencodable):
            raise NotImplementedError(
                f"serialization of '{self.fun_name}' is not possible: it holds {program.data}. "
                "Python functions cannot be kept."
            )
        written = program._asdict()
        # Where nothing is said they are as those were before that places were written.
        if not any((*program.in_places, *program.out_places)):
            del written["in_places"], written["out_places"]
        return {
            **written,
            "in_tree": encoded_tree(self.in_tree),
            "out_tree": encoded_tree(self.out_tree),
            "vjp": self.vjp()._at_order(order - 1) if order > 0 else None,
        }


class _Program(NamedTuple):
    """A program as data.

    Attributes
    ----------
    data : dict or Unencodable
        Graph and constants; integers may be formulas of the symbolic sizes. Or why there is none.
    rules : bool
        Whether functions with derivatives of their own were in it: they are written out.
    unchecked : tuple of str
        Names of the checks that calls leave out.
    in_places, out_places : list
        How arguments and results are said to be cut: a mesh's names and sizes, and a spec; or None.
    """

    name: str
    platforms: tuple[str, ...]
    constraints: tuple[str, ...]
    in_avals: list[Any]
    out_avals: list[Any]
    data: Any
    rules: bool
    unchecked: tuple[str, ...] = ()
    in_places: Sequence[Any] = ()
    out_places: Sequence[Any] = ()


def _aval_of(data: Any, scope: SymbolicScope) -> Any:
    shape, dtype, weak = data
    shape = tuple(parsed(n, scope) if isinstance(n, str) else int(n) for n in shape)
    kind = SymbolicArray if any(map(is_symbolic_dim, shape)) else ShapedArray
    return kind(shape, as_dtype(dtype), bool(weak))


def _aval_data(x: Any) -> list[Any]:
    shape = [str(n) if is_symbolic_dim(n) else int(n) for n in x.shape]
    return [shape, x.dtype.name, bool(getattr(x, "weak_type", False))]


# ---- making them ---------------------------------------------------------------------------------


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
) -> Callable[..., Exported]:
    """Return a function that exports a jitted one for given arguments.

    Parameters
    ----------
    fun_jit : PjitFunction
        Made by `jit`.
    platforms : sequence of str, optional
        Of ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; by default the one in use. The program is
        the same for all, and is called on those that fnarray has.
    disabled_checks : sequence of DisabledSafetyCheck
        ``DisabledSafetyCheck.platform()``: the program is called wherever it is, whatever
        ``platforms`` says.

    Returns
    -------
    callable
        Takes what the function takes, or `ShapeDtypeStruct` stand-ins, whose sizes may be symbolic
        (see `symbolic_shape`); returns an `Exported`.

    Raises
    ------
    ValueError
        The function is not jitted, or a platform unknown. When called: symbolic sizes are of
        different scopes, or cannot be found from the shapes.
    InconclusiveDimensionOperation
        When called: what the function does depends on symbolic sizes in more than sizes, or it
        branches on one, of an argument or of what it computes, in ways that the constraints do
        not decide.
    """
    if getattr(fun_jit, "__module__", "").startswith("fnarray."):
        fun_jit = fun_jit if isinstance(fun_jit, PjitFunction) else jit(fun_jit)
    if not isinstance(fun_jit, PjitFunction):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit!r}")
    chosen = (default_export_platform(),) if platforms is None else tuple(platforms)
    if bad := [p for p in chosen if p not in _PLATFORMS]:
        raise ValueError(f"export: unknown platform {bad[0]!r}, known are {_PLATFORMS}.")

    unchecked = tuple(check.name for check in disabled_checks)

    @functools.wraps(fun_jit.__wrapped__)
    def export_for(*args: Any, **kwargs: Any) -> Exported:
        args, kwargs = over_words((args, kwargs))
        dyn, dyn_kw, _ = fun_jit._split(args, kwargs)
        leaves, spec = tree.flatten_spec((dyn, dyn_kw))
        symbolic = [any(map(is_symbolic_dim, getattr(x, "shape", ()))) for x in leaves]
        scope = scope_of(fun_jit, leaves) if any(symbolic) else None
        names = names_of(x.shape for x, s in zip(leaves, symbolic, strict=True) if s)
        sizes = choices(names, scope)
        ts = all_traced(fun_jit, args, kwargs, leaves, sizes, scope)
        if ts[0].written_refs is not None:
            raise NotImplementedError(
                f"export: {fun_name(fun_jit)} takes Refs, which belong to this process. Pass their "
                "values, and return the new ones."
            )
        in_tree = tree.PyTreeDef(spec)
        made = _exported(ts, sizes, leaves, in_tree, (chosen, unchecked), scope, fun_jit)
        if names:
            check_solvable(made, sizes[0])
        return made

    return export_for


def _exported(
    ts: Sequence[Traced],
    sizes: Sequence[Mapping[str, int]],
    leaves: Sequence[Any],
    in_tree: tree.PyTreeDef,
    terms: tuple[tuple[str, ...], tuple[str, ...]],
    scope: SymbolicScope | None,
    fun: Any,
) -> Exported:
    platforms, unchecked = terms
    t = ts[0]
    data: Any
    out_data: Any = [[list(a.shape), a.dtype.name, a.weak_type] for a in t.out_avals]
    plain = [without_rules(one.closed) for one in ts]
    try:
        programs = [
            {"consts": [encoded_array(c) for c in one.consts], "graph": encoded_graph(graph)}
            for one, (graph, _) in zip(ts, plain, strict=True)
        ]
        data = generalized(programs, sizes)
    except Unencodable as error:
        if scope is not None:
            raise
        data = error
    if scope is not None:
        outs = [[[list(a.shape), a.dtype.name, a.weak_type] for a in one.out_avals] for one in ts]
        out_data = [
            [[n if isinstance(n, int) else n["size"] for n in shape], dtype, weak]
            for shape, dtype, weak in generalized(outs, sizes)
        ]
    in_data = (
        [[list(a.shape), a.dtype.name, a.weak_type] for a in t.signature.in_avals]
        if scope is None
        else list(map(_aval_data, map(_described, leaves)))
    )
    program = _Program(
        t.name,
        platforms,
        () if scope is None else scope.constraints,
        in_data,
        out_data,
        data,
        any(rules for _, rules in plain),
        unchecked,
        places_said(fun, "in_shardings", in_tree.unflatten(leaves)[0], leaves),
        places_said(fun, "out_shardings", t.out_tree.unflatten(t.out_avals), t.out_avals),
    )
    made = Exported(program, in_tree, t.out_tree, fun)
    if scope is None:
        # In this process it is what was traced, rules and Python functions and all.
        made._graphs[()] = list(t.consts), t.closed
        made._whole = True
    return made


def _described(x: Any) -> Any:
    return x if any(map(is_symbolic_dim, getattr(x, "shape", ()))) else abstract(x)


def without_rules(closed: ClosedGraph) -> tuple[ClosedGraph, bool]:
    """Return a graph without rules of derivatives, which are functions; and if there were any."""
    if not _has_rules(closed.jaxpr):
        return closed, False

    def apply(prim: Any, *args: Any, **params: Any) -> Any:
        if prim.name in _CUSTOM:
            inner = params["call_jaxpr"]
            return eval_graph(inner.jaxpr, inner.consts, args, apply)
        return bind(prim, *args, **{name: _cut(x) for name, x in params.items()})

    found = recorded(
        lambda *xs: eval_graph(closed.jaxpr, closed.consts, xs, apply),
        closed.in_avals,
        closed.jaxpr.debug_name,
    )
    return closed_over(found.graph, tuple(found.consts)), True


def _cut(x: Any) -> Any:
    if isinstance(x, ClosedGraph):
        return without_rules(x)[0]
    return tuple(map(_cut, x)) if type(x) is tuple else x


def _has_rules(graph: Graph) -> bool:
    return any(
        eqn.primitive.name in _CUSTOM or any(map(_has_rules, subgraphs(eqn.params)))
        for eqn in graph.eqns
    )


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Return `ShapeDtypeStruct` stand-ins for arguments, with symbolic sizes of one scope.

    Parameters
    ----------
    args : pytree
        Arrays or stand-ins.
    shapes_specs : pytree prefix of str or None
        As of `symbolic_shape`; None is the shape of the argument.
    constraints, scope
        As of `symbolic_shape`.
    """
    scope = scope or SymbolicScope(constraints)
    leaves, spec = tree.flatten_spec(args)
    is_spec = lambda x: x is None or isinstance(x, str)  # noqa: E731
    if is_spec(shapes_specs):
        texts: list[Any] = [shapes_specs] * len(leaves)
    else:
        tops = tree.broadcast_prefix(shapes_specs, args, is_leaf=is_spec)
        texts = list(tops)
    structs = []
    for x, text in zip(leaves, texts, strict=True):
        aval = abstract(x)
        shape = symbolic_shape(text, scope=scope, like=aval.shape)
        structs.append(ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type))
    return spec.unflatten(structs)


# ---- reading them --------------------------------------------------------------------------------


def deserialize(blob: bytes | bytearray) -> Exported:
    """Return the program that `Exported.serialize` wrote.

    Raises
    ------
    TypeError
        ``blob`` is no bytes.
    ValueError
        It is no program, or was damaged, or is of another version.
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize: expected bytes, got {blob!r} of type {type(blob)}.")
    blob = bytes(blob)
    start = len(_MAGIC)
    if blob[:start] != _MAGIC or len(blob) < start + 36:
        raise ValueError(
            "deserialize: these bytes are no exported program of fnarray: they do not begin like "
            "one. Programs of other frameworks cannot be read: export the function itself."
        )
    (version,) = struct.unpack("<I", blob[start : start + 4])
    low, high = (
        minimum_supported_calling_convention_version,
        maximum_supported_calling_convention_version,
    )
    if not low <= version <= high:
        raise ValueError(
            f"deserialize: the program is of version {version}, and this fnarray reads {low} to "
            f"{high}. Export it anew, or install the version that did."
        )
    digest, body = blob[start + 4 : start + 36], blob[start + 36 :]
    if hashlib.sha256(blob[: start + 4] + body).digest() != digest:
        raise ValueError(
            "deserialize: the program is damaged: its bytes are not those that were written. Copy "
            "or export it anew."
        )
    try:
        return _loaded(json.loads(zlib.decompress(body)))
    except (KeyError, TypeError, AttributeError, IndexError, AssertionError, zlib.error) as error:
        raise ValueError(f"deserialize: this is no program of this version: {error!r}.") from error
    except ValueError as error:
        raise ValueError(f"deserialize: the program cannot be read here: {error}.") from error


def _loaded(data: dict[str, Any]) -> Exported:
    inner, in_tree, out_tree = data.pop("vjp"), data.pop("in_tree"), data.pop("out_tree")
    data["platforms"], data["constraints"] = tuple(data["platforms"]), tuple(data["constraints"])
    # Programs written before calls could leave checks out have none.
    data["unchecked"] = tuple(data.get("unchecked", ()))
    made = Exported(_Program(**data), decoded_tree(in_tree), decoded_tree(out_tree))
    if not made.names:
        made._graph(())  # so that it is known now if an operation is not
    if inner is not None:
        made._vjp = _loaded(inner)
    return made
