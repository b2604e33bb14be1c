"""Pure functions on arrays, compiled to Numba source you can read.

The interface is JAX's: ``import fnarray`` where a program says ``import jax``.

Names are imported when they are first used (PEP 562): ``fnarray lint`` and the flake8 plugin pass
through here on machines that have neither NumPy nor Numba.
"""

from __future__ import annotations

__version__ = "0.1.0"

import typing as _typing
from typing import Any as _Any

# Not late: the submodule of this name would take the place of the object.
from .config import config as config  # pyright: ignore[reportGeneralTypeIssues] - and module
from .config import followers as _followers
from .core import hooks as _hooks
from .core.lazy import load as _load
from .core.lazy import surface as _surface

if _typing.TYPE_CHECKING:
    # For type checkers; what follows is what runs, and a test compares the two.
    from . import ad as ad
    from . import ad_checkpoint as ad_checkpoint
    from . import api_util as api_util
    from . import checkpoint_policies as checkpoint_policies
    from . import custom_batching as custom_batching
    from . import custom_derivatives as custom_derivatives
    from . import debug as debug
    from . import dlpack as dlpack
    from . import dtypes as dtypes
    from . import errors as errors
    from . import example_libraries as example_libraries
    from . import experimental as experimental
    from . import export as export
    from . import extend as extend
    from . import ffi as ffi
    from . import flatten_util as flatten_util
    from . import image as image
    from . import interpreters as interpreters
    from . import lax as lax
    from . import memory as memory
    from . import nn as nn
    from . import numpy as numpy
    from . import ops as ops
    from . import profiler as profiler
    from . import purity as purity
    from . import random as random
    from . import ref as ref
    from . import scipy as scipy
    from . import sharding as sharding
    from . import stages as stages
    from . import test_util as test_util
    from . import testing as testing
    from . import tree as tree
    from . import tree_util as tree_util
    from . import typing as typing
    from .api.arrays import block_until_ready as block_until_ready
    from .api.arrays import clear_caches as clear_caches
    from .api.arrays import copy_to_host_async as copy_to_host_async
    from .api.arrays import default_backend as default_backend
    from .api.arrays import device_count as device_count
    from .api.arrays import device_get as device_get
    from .api.arrays import device_put as device_put
    from .api.arrays import device_put_replicated as device_put_replicated
    from .api.arrays import device_put_sharded as device_put_sharded
    from .api.arrays import effects_barrier as effects_barrier
    from .api.arrays import host_count as host_count
    from .api.arrays import host_id as host_id
    from .api.arrays import host_ids as host_ids
    from .api.arrays import live_arrays as live_arrays
    from .api.arrays import local_device_count as local_device_count
    from .api.arrays import local_devices as local_devices
    from .api.arrays import process_count as process_count
    from .api.arrays import process_index as process_index
    from .api.arrays import process_indices as process_indices
    from .api.batching import vmap as vmap
    from .api.derivatives import jvp as jvp
    from .api.derivatives import linear_transpose as linear_transpose
    from .api.derivatives import linearize as linearize
    from .api.derivatives import vjp as vjp
    from .api.environment import print_environment_info as print_environment_info
    from .api.gradients import fwd_and_bwd as fwd_and_bwd
    from .api.gradients import grad as grad
    from .api.gradients import value_and_grad as value_and_grad
    from .api.jacobians import hessian as hessian
    from .api.jacobians import jacfwd as jacfwd
    from .api.jacobians import jacobian as jacobian
    from .api.jacobians import jacrev as jacrev
    from .api.jit import jit as jit
    from .api.parallel import pmap as pmap
    from .api.resharding import make_array_from_callback as make_array_from_callback
    from .api.resharding import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from .api.resharding import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from .api.resharding import reshard as reshard
    from .api.shards import shard_map as shard_map
    from .api.shards import smap as smap
    from .api.tracing import ensure_compile_time_eval as ensure_compile_time_eval
    from .api.tracing import eval_shape as eval_shape
    from .api.tracing import make_jaxpr as make_jaxpr
    from .api.tracing import named_call as named_call
    from .api.tracing import named_scope as named_scope
    from .api.tracing import typeof as typeof
    from .config import check_determinism as check_determinism
    from .config import check_tracer_leaks as check_tracer_leaks
    from .config import checking_leaks as checking_leaks
    from .config import debug_infs as debug_infs
    from .config import debug_nans as debug_nans
    from .config import default_device as default_device
    from .config import default_matmul_precision as default_matmul_precision
    from .config import default_prng_impl as default_prng_impl
    from .config import disable_jit as disable_jit
    from .config import effects as effects
    from .config import enable_checks as enable_checks
    from .config import enable_custom_prng as enable_custom_prng
    from .config import enable_x64 as enable_x64
    from .config import explain_cache_misses as explain_cache_misses
    from .config import legacy_prng_key as legacy_prng_key
    from .config import log_compiles as log_compiles
    from .config import make_user_context as make_user_context
    from .config import no_tracing as no_tracing
    from .config import numpy_dtype_promotion as numpy_dtype_promotion
    from .config import numpy_rank_promotion as numpy_rank_promotion
    from .config import threefry_partitionable as threefry_partitionable
    from .config import transfer_guard as transfer_guard
    from .config import transfer_guard_device_to_device as transfer_guard_device_to_device
    from .config import transfer_guard_device_to_host as transfer_guard_device_to_host
    from .config import transfer_guard_host_to_device as transfer_guard_host_to_device
    from .control.callback import io_callback as io_callback
    from .control.callback import pure_callback as pure_callback
    from .control.checkpoint import checkpoint as checkpoint
    from .control.checkpoint import remat as remat
    from .control.closures import closure_convert as closure_convert
    from .control.closures import custom_gradient as custom_gradient
    from .control.custom import custom_jvp as custom_jvp
    from .control.custom import custom_vjp as custom_vjp
    from .control.progress import progress as progress
    from .core.array import Array as Array
    from .core.avals import ShapeDtypeStruct as ShapeDtypeStruct
    from .core.dtypes import float0 as float0
    from .core.places import ds as ds
    from .core.ref import Ref as Ref
    from .core.ref import empty_ref as empty_ref
    from .core.ref import free_ref as free_ref
    from .core.ref import freeze as freeze
    from .core.ref import new_ref as new_ref
    from .purity.live import assume_pure as assume_pure
    from .report.explain import explain as explain
    from .runtime.ambient import set_mesh as set_mesh
    from .runtime.device import Device as Device
    from .runtime.device import devices as devices
    from .runtime.mesh import make_mesh as make_mesh
    from .runtime.placed import Shard as Shard
    from .runtime.spec import NamedSharding as NamedSharding
    from .runtime.spec import P as P

#: Public names by the module they come from.
_HOMES = {
    ".api.arrays": """
        block_until_ready clear_caches copy_to_host_async default_backend device_count device_get
        device_put device_put_replicated device_put_sharded effects_barrier host_count host_id
        host_ids live_arrays local_device_count local_devices process_count process_index
        process_indices
    """,
    ".api.batching": "vmap",
    ".api.derivatives": "jvp linear_transpose linearize vjp",
    ".api.gradients": "fwd_and_bwd grad value_and_grad",
    ".api.resharding": """
        make_array_from_callback make_array_from_process_local_data
        make_array_from_single_device_arrays reshard
    """,
    ".api.jacobians": "hessian jacfwd jacobian jacrev",
    ".api.jit": "jit",
    ".api.parallel": "pmap",
    ".api.shards": "shard_map smap",
    ".api.environment": "print_environment_info",
    ".api.tracing": """
        ensure_compile_time_eval eval_shape make_jaxpr named_call named_scope typeof
    """,
    ".config": """
        check_determinism check_tracer_leaks checking_leaks debug_infs debug_nans default_device
        default_matmul_precision default_prng_impl disable_jit effects enable_checks
        enable_custom_prng enable_x64 explain_cache_misses legacy_prng_key log_compiles
        make_user_context no_tracing
        numpy_dtype_promotion numpy_rank_promotion threefry_partitionable transfer_guard
        transfer_guard_device_to_device transfer_guard_device_to_host
        transfer_guard_host_to_device
    """,
    ".control.callback": "io_callback pure_callback",
    ".control.checkpoint": "checkpoint remat",
    ".control.closures": "closure_convert custom_gradient",
    ".control.custom": "custom_jvp custom_vjp",
    ".control.progress": "progress",
    ".core.array": "Array",
    ".core.avals": "ShapeDtypeStruct",
    ".core.dtypes": "float0",
    ".core.ref": "Ref empty_ref free_ref freeze new_ref",
    ".core.places": "ds",
    ".purity.live": "assume_pure",
    ".report.explain": "explain",
    ".runtime.device": "Device devices",
    ".runtime.ambient": "set_mesh",
    ".runtime.mesh": "make_mesh",
    ".runtime.placed": "Shard",
    ".runtime.spec": "NamedSharding P",
}
_MODULES = """
    ad ad_checkpoint api_util checkpoint_policies custom_batching custom_derivatives debug dlpack
    dtypes errors example_libraries experimental export extend ffi flatten_util image interpreters
    lax memory nn numpy ops profiler purity random ref scipy sharding stages test_util testing
    tree tree_util typing
"""

#: Names of JAX's that are not here, by the reason.
_MISSING = {
    "it is about XLA's compiler or its runtime, which are not here": """
        allow_f16_reductions array_garbage_collection_guard no_execution thread_guard
    """,
    "it converts programs to TensorFlow": "jax2tf_associative_scan_reductions",
    "it changes which programs types accept, not what they compute": """
        auto_pcast remove_size_one_mesh_axis_from_type
    """,
    "fnarray lint finds keys that are used twice": "debug_key_reuse",
    "softmax has one derivative": "softmax_custom_jvp",
}

if not _typing.TYPE_CHECKING:  # for whom any name would be one of ours
    __getattr__, __dir__, _names = _surface(__name__, _HOMES, _MODULES, _MISSING)
    __all__ = sorted({*_names, "cache_info", "config"})


def _operators() -> None:
    from .core.array import install_methods

    install_methods(_load(".numpy._methods", __name__).array_methods())


_hooks.bind_with(
    operators=_operators,
    convert=lambda: _load(".ops.kit.calls", __name__).convert,
    ref_views=lambda: _load(".core.ref_views", __name__),
    eqn_text=lambda: _load(".core.pretty", __name__).eqn_text,
    graph_text=lambda: _load(".core.pretty", __name__).graph_text,
    extension_names=lambda: _load(".extend._aliases", __name__),
    families=lambda: _load(".lax", __name__)._import_families,
    compiled_call=lambda: _load(".runtime.dispatch", __name__).compiled_call,
    report=lambda: _load(".report.explain", __name__).report_of,
    prepared=lambda: _load(".runtime.dispatch", __name__).prepared,
    gpus=lambda: _load(".runtime.gpu", __name__).BY_DEFAULT,
    # What only programs on meshes need: modules.
    mesh=lambda: _load(".runtime.spec", __name__),
    ambient=lambda: _load(".runtime.ambient", __name__),
    cutting=lambda: _load(".ops.cutting", __name__),
    resharding=lambda: _load(".api.resharding", __name__),
    places=lambda: _load(".api.places", __name__),
)


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


def _profile(value: str) -> None:
    _load(".profiler", __name__)._profile_set(value)


_followers["profile"] = _profile
_wanted = config.read("profile")  # pyright: ignore[reportAttributeAccessIssue] - as above
if _wanted != "off":
    _profile(_wanted)
