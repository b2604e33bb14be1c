"""Functions of compiled libraries in programs, named as in ``jax.ffi``.

Kernels written for XLA's interface on a CPU are called as they are: by their headers' ABI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .api.ffi_frame import address, call_typed, call_untyped, capsule
from .control.callback import io_callback, pure_callback
from .core.avals import ShapeDtypeStruct
from .core.frozen import frozen
from .errors import JaxRuntimeError

__all__ = [
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_type",
    "register_ffi_type_id",
]
__dir__ = __all__.copy


@frozen
class Target:
    """A C function, and the interface it is written for: 0 untyped, 1 typed."""

    at: int
    api_version: int
    #: What has the function, to be kept alive.
    owner: Any


_targets: dict[str, Target] = {}


def pycapsule(funcptr: Any) -> Any:
    """Return the capsule of a C function, as `register_ffi_target` takes it."""
    return capsule(funcptr)


def include_dir() -> str:
    """Say where the headers are; they are jaxlib's and not shipped here.

    Raises
    ------
    FileNotFoundError
        Always, with what to do.
    """
    raise FileNotFoundError(
        "ffi.include_dir: the headers of XLA's interface (xla/ffi/api/ffi.h) come with jaxlib. "
        "Compile the kernel where jaxlib is installed; it is called here as it is."
    )


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Give a C function a name to call it by.

    Parameters
    ----------
    name : str
    fn : capsule, function of ctypes, or dict
        A dict has it under ``"execute"``.
    platform : str
        Functions for other platforms than ``"cpu"`` are accepted, and never called.
    api_version : {0, 1}
        ``void f(void* out, const void** in)``, or a handler of ``xla/ffi/api/ffi.h``.

    Raises
    ------
    ValueError
        Another version; or a handler with stages other than execution.
    TypeError
        ``fn`` is no C function.
    """
    if api_version not in (0, 1):
        raise ValueError(f"register_ffi_target: api_version must be 0 or 1, got {api_version}.")
    if isinstance(fn, Mapping):
        if set(fn) != {"execute"}:
            raise ValueError(
                f"register_ffi_target: {name} has the stages {sorted(fn)}, and only 'execute' is "
                "run. Do what the others do in it, or call it by fnarray.pure_callback."
            )
        fn = fn["execute"]
    if platform.lower() == "cpu":
        _targets[name] = Target(address(fn), api_version, fn)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Refuse a type for a handler's state: handlers have none here.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        f"register_ffi_type: {name} is for state that handlers keep, and they keep none here. Pass "
        "state as arrays, or call the library by fnarray.io_callback."
    )


register_ffi_type_id = register_ffi_type


def _is_row_major(layouts: Any) -> bool:
    """Say whether layouts, or one of them, have the axes in the order that arrays have them."""
    order = getattr(layouts, "major_to_minor", layouts)
    if order is None:
        return True
    if all(isinstance(axis, int) for axis in order):
        return list(order) == list(range(len(order)))
    return all(map(_is_row_major, order))


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Return a function of arrays that calls a registered C function, compiled or not.

    Parameters
    ----------
    target_name : str
        As registered.
    result_shape_dtypes : ShapeDtypeStruct, or a sequence of them
        Of the results.
    has_side_effect : bool
        Whether each call counts, or calls may be merged and dropped.
    vmap_method : str, optional
        As of `fnarray.pure_callback`.
    input_output_aliases : dict of int to int, optional
        Results that share the memory of an operand, which is copied before.
    input_layouts, output_layouts : sequence, optional
        Of each array None, a layout, or its axes from the slowest to the fastest: in row-major
        order, as arrays are.
    custom_call_api_version, legacy_backend_config
        Only the defaults.

    Returns
    -------
    callable
        Of arrays, and of the attributes by name: numbers of NumPy, strings, arrays, dicts.

    Raises
    ------
    ValueError
        No function has the name, or a layout is another than row-major.
    """
    rows = _is_row_major(input_layouts) and _is_row_major(output_layouts)
    if not rows or legacy_backend_config:
        raise ValueError(
            f"ffi_call: {target_name}: layouts and backend configurations other than the default "
            "are not there. Transpose the arrays, or pass attributes by name."
        )
    several = isinstance(result_shape_dtypes, Sequence)
    asked = list(result_shape_dtypes) if several else [result_shape_dtypes]
    specs: list[Any] = [ShapeDtypeStruct(s.shape, s.dtype) for s in asked]
    aliases = dict(input_output_aliases or {})

    def call(*args: Any, **attrs: Any) -> Any:
        target = _targets.get(target_name)
        if target is None:
            raise JaxRuntimeError(
                f"ffi_call: NOT_FOUND: No FFI handler registered for {target_name} on the CPU: no "
                f"target {target_name!r} is registered, there are "
                f"{sorted(_targets)}. Register it by ffi.register_ffi_target."
            )

        def run(*arrays: Any) -> Any:
            ins = [np.asarray(x, order="C") for x in arrays]
            shapes = _batched(specs, ins, args)
            outs = [
                np.empty(shape, np.dtype(s.dtype)) for shape, s in zip(shapes, specs, strict=True)
            ]
            for i, k in aliases.items():
                outs[k] = ins[i] = ins[i].copy()
            if target.api_version:
                call_typed(target_name, target.at, ins, outs, attrs)
            else:
                call_untyped(target.at, ins, outs)
            return outs

        if has_side_effect:
            found = io_callback(run, specs, *args)
        else:
            found = pure_callback(run, specs, *args, vmap_method=vmap_method)
        return list(found) if several else found[0]

    return call


def ffi_lowering(call_target_name: str, **settings: Any) -> Callable[..., Any]:
    """Return the lowering of a primitive that is a call of a registered C function.

    For `interpreters.mlir.register_lowering`; the primitive's params are the attributes.

    Raises
    ------
    ValueError
        For layouts, a backend configuration, or whatever else is particular to XLA's compiler.
    """
    if settings:
        raise ValueError(
            f"ffi_lowering: {call_target_name}: {', '.join(settings)} cannot be given: arrays are "
            "in row-major order, and there is no XLA to configure."
        )

    def lower(ctx: Any, *operands: Any, **attrs: Any) -> Any:
        specs = [ShapeDtypeStruct(a.shape, a.dtype) for a in ctx.avals_out]
        return ffi_call(call_target_name, specs)(*operands, **attrs)

    return lower


def _batched(
    specs: Sequence[Any], ins: Sequence[np.ndarray], args: Sequence[Any]
) -> list[tuple[int, ...]]:
    """Return the results' shapes, with the axes that ``vmap`` has put before the operands'."""
    extra = max((x.ndim - np.ndim(a) for x, a in zip(ins, args, strict=True)), default=0)
    lead = np.broadcast_shapes(*(x.shape[:extra] for x in ins)) if extra else ()
    return [(*lead, *s.shape) for s in specs]
