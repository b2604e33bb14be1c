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
    from . import (  # noqa: F401
        ad,
        ad_checkpoint,
        api_util,
        checkpoint_policies,
        custom_batching,
        custom_derivatives,
        debug,
        dlpack,
        dtypes,
        errors,
        example_libraries,
        experimental,
        export,
        extend,
        ffi,
        flatten_util,
        image,
        interpreters,
        lax,
        memory,
        nn,
        numpy,
        ops,
        profiler,
        purity,
        random,
        ref,
        scipy,
        sharding,
        stages,
        test_util,
        testing,
        tree,
        tree_util,
        typing,
    )  # fmt: skip
    from .api.arrays import (  # noqa: F401
        block_until_ready,
        clear_caches,
        copy_to_host_async,
        default_backend,
        device_count,
        device_get,
        device_put,
        device_put_replicated,
        device_put_sharded,
        effects_barrier,
        host_count,
        host_id,
        host_ids,
        live_arrays,
        local_device_count,
        local_devices,
        process_count,
        process_index,
        process_indices,
    )
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
    from .api.resharding import (  # noqa: F401
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
        reshard,
    )
    from .api.shards import shard_map as shard_map
    from .api.shards import smap as smap
    from .api.tracing import (  # noqa: F401
        ensure_compile_time_eval,
        eval_shape,
        make_jaxpr,
        named_call,
        named_scope,
        typeof,
    )
    from .config import (  # noqa: F401
        check_determinism,
        check_tracer_leaks,
        checking_leaks,
        debug_infs,
        debug_nans,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        effects,
        enable_checks,
        enable_custom_prng,
        enable_x64,
        explain_cache_misses,
        legacy_prng_key,
        log_compiles,
        make_user_context,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
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
    eqn_text=lambda: _load(".core.pretty", __name__).eqn_text,
    graph_text=lambda: _load(".core.pretty", __name__).graph_text,
    families=lambda: _load(".lax", __name__)._import_families,
    compiled_call=lambda: _load(".runtime.dispatch", __name__).compiled_call,
    report=lambda: _load(".report.explain", __name__).report_of,
    prepare=lambda: _load(".runtime.dispatch", __name__).prepare,
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
