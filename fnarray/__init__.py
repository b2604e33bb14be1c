"""Pure functions on arrays, compiled to Numba source you can read.

The interface is JAX's: ``import fnarray`` where a program says ``import jax``.

Names are imported when they are first used (PEP 562): ``fnarray lint`` and the flake8 plugin pass
through here on machines that have neither NumPy nor Numba.
"""

from __future__ import annotations

__version__ = "0.1.0"

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# Not late: the submodule of this name would take the place of the object.
from .config import config as config  # pyright: ignore[reportGeneralTypeIssues] - and module
from .core import hooks as _hooks

if _TYPE_CHECKING:
    # For type checkers; what follows is what runs, and a test compares the two.
    from . import (  # noqa: F401
        ad_checkpoint,
        checkpoint_policies,
        custom_derivatives,
        debug,
        dlpack,
        dtypes,
        errors,
        experimental,
        flatten_util,
        lax,
        nn,
        numpy,
        ops,
        purity,
        random,
        scipy,
        sharding,
        stages,
        test_util,
        tree,
        tree_util,
        typing,
    )  # fmt: skip
    from .api import *  # noqa: F403
    from .config import (  # noqa: F401
        check_determinism,
        check_tracer_leaks,
        checking_leaks,
        debug_infs,
        debug_nans,
        default_matmul_precision,
        disable_jit,
        effects,
        enable_x64,
        log_compiles,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        threefry_partitionable,
    )
    from .control.callback import io_callback as io_callback
    from .control.callback import pure_callback as pure_callback
    from .core.array import Array as Array
    from .core.avals import ShapeDtypeStruct as ShapeDtypeStruct
    from .core.dtypes import float0 as float0
    from .purity.live import assume_pure as assume_pure

#: Public names by the module they come from.
_NAMES = {
    "api": """
        block_until_ready checkpoint clear_caches closure_convert custom_gradient custom_jvp
        custom_vjp default_backend Device device_count device_get device_put device_put_replicated
        device_put_sharded devices effects_barrier ensure_compile_time_eval eval_shape grad
        hessian jacfwd jacobian jacrev jit jvp linear_transpose linearize local_device_count
        local_devices make_jaxpr make_mesh named_call named_scope pmap process_count process_index
        process_indices remat shard_map typeof value_and_grad vjp vmap
    """,
    "config": """
        check_determinism check_tracer_leaks checking_leaks debug_infs debug_nans
        default_matmul_precision disable_jit effects enable_x64 log_compiles numpy_dtype_promotion
        numpy_rank_promotion threefry_partitionable
    """,
    "control.callback": "io_callback pure_callback",
    "core.array": "Array",
    "core.avals": "ShapeDtypeStruct",
    "core.dtypes": "float0",
    "purity.live": "assume_pure",
}
_MODULES = """
    ad_checkpoint checkpoint_policies custom_derivatives debug dlpack dtypes errors experimental
    flatten_util lax nn numpy ops purity random scipy sharding stages test_util tree tree_util
    typing
"""

_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_HOME |= dict.fromkeys(_MODULES.split(), "")

__all__ = sorted({*_HOME, "cache_info", "config"})  # pyright: ignore[reportUnsupportedDunderAll]


def _bind() -> None:
    """Give graphs their text, arrays their operators, eager control flow its compiler."""
    from .core.pretty import graph_text
    from .core.trace import no_trace

    _hooks.install_graph_text(graph_text)

    # The first use may be inside a function being traced; what modules compute is not part of it.
    with no_trace():
        _import_module(".numpy", __name__)
        from .runtime.dispatch import compiled_call, prepare
    _hooks.install_compiled_call(compiled_call, prepare)


_hooks.bind_with(_bind)


def __getattr__(name: str) -> _Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _HOME[name]:
        return _import_module(f".{name}", __name__)
    if _HOME[name] != "config":
        _hooks.bind()
    found = getattr(_import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found  # the next access does not come here
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def cache_info() -> dict[str, _Any]:
    """Return where compiled kernels came from in this process, and where they are kept.

    Returns
    -------
    dict
        ``memory``, ``disk``, ``compiled``: how many kernels were found in memory, loaded from
        the disk, compiled; ``compile_seconds``; ``directory`` of the cache on disk.
    """
    from .compile.cache import store
    from .compile.cpu import build

    return {**build.stats, "directory": store.info().directory}
