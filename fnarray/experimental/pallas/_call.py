"""``pallas_call``: a kernel on blocks of arrays, as a function of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...api.jit import jit
from ...control.admission import admit
from ...control.signature import fun_name, fun_text, parameters_of
from ...core import tree
from ...core.array import Array
from ...core.avals import ShapedArray
from ...core.dtypes import canonicalize_dtype
from ...core.frozen import frozen
from ...core.ref import AbstractRef, Ref, new_ref
from ...core.source import boundary
from ._blocks import BlockSpec, GridSpec, MemoryRef, NoBlockSpec, no_block_spec, spec_of
from ._grid import Window, empty, run_grid, window_of

__all__: list[str] = []


@boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: Any = None,
    backend: Any = None,
) -> Callable[..., Any]:
    """Return a function of arrays that runs a kernel on blocks of them, for each turn of a grid.

    It is compiled to a native loop over the grid, in which results lie where they lie, and can be
    transformed like any function.

    Parameters
    ----------
    kernel : callable
        Of a Ref for each argument, result and piece of scratch memory. It returns nothing.
    out_shape : tree of ShapeDtypeStruct
        Of the results.
    grid_spec : GridSpec, optional
        In place of ``grid``, ``in_specs``, ``out_specs`` and ``scratch_shapes``.
    grid : int, or tuple of int
        How often the kernel runs along each axis; the last one turns fastest. A size may be traced.
    in_specs, out_specs : tree of BlockSpec
        How arguments and results are cut; by default an array is one block.
    scratch_shapes : sequence or dict of MemoryRef
        Memory that turns share: the kernel's last parameters, or its keywords.
    input_output_aliases : mapping of int to int
        Which argument a result begins as; others begin as NaN, or the least integers.
    debug, interpret, compiler_params, cost_estimate, metadata, backend
        Accepted: the kernel is always compiled for the CPU.
    name : str, optional
        Of the kernel, for messages; by default the function's.

    Returns
    -------
    callable
        Of the arguments by position.

    Raises
    ------
    ValueError
        Specs do not have the structure or rank of what they cut, an index map gives another number
        of indices, the kernel returns something, or an alias has another type: when it is called.
    TypeError
        ``kernel`` is not callable, or an index map takes another number of indices.
    """
    if not callable(kernel):
        raise TypeError(f"pallas_call: kernel must be callable, got {kernel!r}.")
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for what, given in (
            ("grid", not isinstance(grid, tuple) or len(grid)),
            ("in_specs", not isinstance(in_specs, NoBlockSpec)),
            ("out_specs", not isinstance(out_specs, NoBlockSpec)),
            ("scratch_shapes", len(scratch_shapes)),
        ):
            if given:
                raise ValueError(
                    f"pallas_call: `grid_spec` is specified, and so is `{what}`. Give it in the "
                    "grid_spec alone."
                )
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    aliases = dict(input_output_aliases or {})
    kernel_name = name or fun_name(kernel)
    call = _Call(kernel, kernel_name, grid_spec, out_shape, aliases)

    def pallas(*args: Any) -> Any:
        return call(*args)

    pallas.__name__ = pallas.__qualname__ = kernel_name
    return jit(pallas)


@frozen(eq=False)
class _Call:
    """What a call of a kernel is made of."""

    kernel: Callable[..., None]
    name: str
    spec: GridSpec
    out_shape: Any
    aliases: dict[int, int]

    def __call__(self, *args: Any) -> Any:
        first = self.spec.num_scalar_prefetch
        scalars = [tree.map(_scalar_ref, x) for x in args[:first]]
        grid = tuple(n if not isinstance(n, np.integer) else int(n) for n in self.spec.grid)
        ins, in_tree = tree.flatten(tuple(args[first:]))
        shapes, out_tree = tree.flatten(self.out_shape)
        outs = [self._result(k, s) for k, s in enumerate(shapes)]
        windows = [
            *self._windows("in_specs", "args", args[first:], in_tree, len(grid), first),
            *self._windows("out_specs", "outputs", self.out_shape, out_tree, len(grid), first),
        ]
        given = [jnp.asarray(x) for x in (*tree.leaves(args[:first]), *ins)]
        self._check_uncut(given)
        self._begin(outs, given)
        buffers = [new_ref(w.filled(x)) for w, x in zip(windows, (*ins, *outs), strict=True)]
        scratch = tree.map(_scratch_ref, self.spec.scratch_shapes)
        n = len(ins)

        def kernel(refs: list[Ref]) -> None:
            of_args: Any = in_tree.unflatten(refs[:n])
            of_outs: Any = out_tree.unflatten(refs[n:])
            results = of_outs if isinstance(of_outs, tuple | list) else (of_outs,)
            by_place, by_name = ((), scratch) if isinstance(scratch, dict) else (tuple(scratch), {})
            self._run((*scalars, *of_args, *results, *by_place), by_name)

        run_grid(self.name, grid, windows, buffers, scalars, kernel)
        left = [w.cropped(b[...]) for w, b in zip(windows[n:], buffers[n:], strict=True)]
        return out_tree.unflatten(left)

    def _run(self, refs: Sequence[Any], named: dict[str, Any]) -> None:
        statics = tuple(
            (where, AbstractRef, ref.aval)
            for where, ref in (*enumerate(refs), *named.items())
            if type(ref) is Ref
        )
        self._check_arity(refs, named)
        with admit(self.kernel, "pallas_call", statics=statics):
            out = self.kernel(*refs, **named)
        if out is not None:
            raise ValueError(
                f"The kernel function in the pallas_call {fun_text(self.kernel)} should return "
                f"None. It returns {out!r}: write results to the Refs of `out_shape`, "
                "o_ref[...] = x."
            )

    def _check_arity(self, refs: Sequence[Any], named: dict[str, Any]) -> None:
        params = parameters_of(self.kernel)
        if params is None:
            return
        try:
            inspect.Signature(list(params.values())).bind(*refs, **named)
        except TypeError as error:
            raise TypeError(
                f"The kernel function in the pallas_call {fun_text(self.kernel)} is called with "
                f"{len(refs)} Refs by position and {sorted(named)} by name, of scalars, arguments, "
                f"results and scratch memory in this order: {error}. Give it a parameter for each."
            ) from None

    def _result(self, k: int, shape: Any) -> Any:
        if not (hasattr(shape, "shape") and hasattr(shape, "dtype")):
            raise ValueError(
                f"pallas_call of {self.name}: Invalid out_shape type: {type(shape)} of result {k}. "
                "Give its shape and dtype: fnarray.ShapeDtypeStruct(shape, dtype)."
            )
        return ShapedArray(tuple(shape.shape), canonicalize_dtype(np.dtype(shape.dtype)))

    def _windows(
        self, what: str, whose: str, of: Any, structure: Any, axes: int, more: int
    ) -> list[Window]:
        """Return how the arguments, or the results, are cut."""
        specs = getattr(self.spec, what)
        paths = tree.leaves_with_path(tuple(of) if what == "in_specs" else of)
        if isinstance(specs, NoBlockSpec):
            flat: list[Any] = [BlockSpec()] * len(paths)
        else:
            flat, found = tree.flatten(specs)
            if found != structure:
                other = "`inputs`" if what == "in_specs" else "`out_shape`"
                raise ValueError(
                    f"pallas_call of {self.name}: Pytree for `{what}` and {other} do not match: "
                    f"{found} and {structure}. Give a BlockSpec for each leaf."
                )
        return [
            window_of(spec_of(s, f"{what}[{k}]"), f"{whose}{tree.keystr(path)}",
                      tuple(np.shape(x) if not hasattr(x, "shape") else x.shape), axes, more)
            for k, (s, (path, x)) in enumerate(zip(flat, paths, strict=True))
        ]  # fmt: skip

    def _check_uncut(self, given: list[Array]) -> None:
        """Raise `ValueError` for arguments whose types say that several devices have them."""
        for k, x in enumerate(given):
            if x.aval.place is not None and any(x.aval.place.cuts):
                raise ValueError(
                    f"pallas_call of {self.name}: argument {k}, {x.aval.str_short()}, is cut along "
                    "axes of a mesh, and a kernel runs on one device. Call it in a function that "
                    "fnarray.shard_map maps, on each device's part."
                )

    def _begin(self, outs: list[Any], given: list[Array]) -> None:
        """Put what each result begins as in place of its type."""
        begins = {out: k for k, out in self.aliases.items()}
        for k, out in self.aliases.items():
            for what, i, count in (("input", k, len(given)), ("output", out, len(outs))):
                if i not in range(count):
                    raise ValueError(
                        f"pallas_call of {self.name}: input_output_aliases contains the mapping "
                        f"'{k}:{out}' with {what} index {i} outside the range [0, {count})."
                    )
        for out, aval in enumerate(outs):
            if out not in begins:
                outs[out] = empty(aval.shape, aval.dtype)
                continue
            x = given[begins[out]]
            if (x.shape, x.dtype) != (aval.shape, aval.dtype):
                raise ValueError(
                    f"pallas_call of {self.name}: input_output_aliases contains the mapping "
                    f"'{begins[out]}:{out}' of an input {x.aval.str_short()} and an output "
                    f"{aval.str_short()}: a different abstract value. Give them one type."
                )
            outs[out] = x


def _scalar_ref(x: Any) -> Ref:
    return new_ref(jnp.asarray(x))


def _scratch_ref(shape: Any) -> Ref:
    if not (hasattr(shape, "shape") and hasattr(shape, "dtype")):
        raise TypeError(
            f"pallas_call: scratch_shapes has {shape!r} of type {type(shape)}: ask for memory of a "
            "shape and a dtype, pltpu.VMEM((8, 128), jnp.float32)."
        )
    return allocated(shape)


def allocated(shape: MemoryRef) -> Ref:
    """Return a Ref of the memory that is asked for."""
    return new_ref(empty(shape.shape, shape.dtype))
