"""Pure functions on arrays, compiled to Numba source you can read.

The interface is JAX's: ``import fnarray`` where a program says ``import jax``.
"""

from __future__ import annotations

__version__ = "0.1.0"

from importlib import import_module as _import_module
from typing import Any as _Any

from . import errors as errors
from . import numpy as numpy
from .api import (
    Device as Device,
)
from .api import (
    block_until_ready as block_until_ready,
)
from .api import (
    clear_caches as clear_caches,
)
from .api import (
    default_backend as default_backend,
)
from .api import (
    device_count as device_count,
)
from .api import (
    device_get as device_get,
)
from .api import (
    device_put as device_put,
)
from .api import (
    devices as devices,
)
from .api import (
    effects_barrier as effects_barrier,
)
from .api import (
    ensure_compile_time_eval as ensure_compile_time_eval,
)
from .api import (
    eval_shape as eval_shape,
)
from .api import (
    jit as jit,
)
from .api import (
    local_device_count as local_device_count,
)
from .api import (
    local_devices as local_devices,
)
from .api import (
    make_jaxpr as make_jaxpr,
)
from .api import (
    named_call as named_call,
)
from .api import (
    named_scope as named_scope,
)
from .api import (
    process_count as process_count,
)
from .api import (
    process_index as process_index,
)
from .api import (
    process_indices as process_indices,
)
from .api import (
    typeof as typeof,
)
from .config import (
    check_tracer_leaks as check_tracer_leaks,
)
from .config import (
    checking_leaks as checking_leaks,
)
from .config import (
    config as config,
)
from .config import (
    debug_infs as debug_infs,
)
from .config import (
    debug_nans as debug_nans,
)
from .config import (
    default_matmul_precision as default_matmul_precision,
)
from .config import (
    disable_jit as disable_jit,
)
from .config import (
    enable_x64 as enable_x64,
)
from .config import (
    log_compiles as log_compiles,
)
from .config import (
    numpy_dtype_promotion as numpy_dtype_promotion,
)
from .config import (
    numpy_rank_promotion as numpy_rank_promotion,
)
from .config import (
    threefry_partitionable as threefry_partitionable,
)
from .core import hooks as _hooks
from .core.array import Array as Array
from .core.avals import ShapeDtypeStruct as ShapeDtypeStruct
from .core.dtypes import float0 as float0
from .runtime.dispatch import compiled_call as _compiled_call

_hooks.install_compiled_call(_compiled_call)

_LAZY = frozenset(
    {
        "dtypes", "flatten_util", "lax", "nn", "random", "scipy", "stages", "tree", "tree_util",
    }
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module 'fnarray' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


def cache_info() -> dict[str, _Any]:
    """Return where compiled kernels came from in this process, and where they are kept.

    Returns
    -------
    dict
        ``memory``, ``disk``, ``compiled``: how many kernels were found in memory, loaded from
        the disk, compiled; ``compile_seconds``; ``directory`` of the cache on disk.
    """
    from .compile import build
    from .compile.cache import store

    return {**build.stats, "directory": store.info().directory}
