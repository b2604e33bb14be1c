"""Settings of JAX that have no row in `fnarray.config`: read when a program names one.

Programs set them at the top, and run all the same: most tune XLA, or JAX's own internals.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

#: Those under another name here.
ALIASES: Final = {"platform_name": "platforms", "x64_enabled": "enable_x64"}

#: They tune XLA, its caches and clients, or say how JAX is built: kept, and without effect.
_TUNING: Final = """
    allow_f16_reductions auto_pcast backend_target bcoo_cusparse_lowering
    captured_constants_report_frames captured_constants_warn_bytes check_proxy_envs
    compilation_cache_check_contents compilation_cache_dir compilation_cache_expect_pgle
    compilation_cache_include_metadata_in_key compilation_cache_max_size
    compiler_detailed_logging_min_ops compiler_enable_remat_pass cpu_collectives_implementation
    cpu_enable_async_dispatch cpu_get_global_topology_timeout_minutes
    cpu_get_local_topology_timeout_minutes cross_host_transfer_socket_address
    cross_host_transfer_timeout_seconds cross_host_transfer_transfer_size
    cross_host_transport_addresses cuda_visible_devices custom_vjp3
    debug_leaked_clients_on_clear_backends debug_log_modules disable_bwd_checks
    disable_most_optimizations disable_vmap_shmap_error disallow_mesh_context_manager
    distributed_debug dump_ir_modes dump_ir_to eager_constant_folding
    embedded_constants_max_bytes enable_compilation_cache enable_pgle enable_preemption_service
    enable_recoverability exec_time_optimization_effort experimental_unsafe_xla_runtime_errors
    export_calling_convention_version export_ignore_forward_compatibility
    force_dcn_cross_host_transfers hlo_source_file_canonicalization_regex
    include_debug_info_in_dumps include_full_tracebacks_in_locations
    jax2tf_associative_scan_reductions jax2tf_default_native_serialization
    log_checkpoint_residuals logging_level memory_fitting_effort memory_fitting_level
    mock_gpu_topology mock_num_gpu_processes mosaic_allow_hlo mutable_array_checks
    oneapi_visible_devices optimization_level pallas_enable_debug_checks pallas_poison_buffers
    pallas_use_mosaic_gpu pallas_verbose_errors persistent_cache_enable_xla_caches
    persistent_cache_min_compile_time_secs persistent_cache_min_entry_size_bytes
    pgle_aggregation_percentile pgle_profiling_runs pjrt_client_create_options pprint_use_color
    ragged_dot_use_gpu_pallas_triton_lowering ragged_dot_use_ragged_dot_instruction
    raise_persistent_cache_errors refs_to_pins remat3
    remove_custom_partitioning_ptr_from_cache_key remove_size_one_mesh_axis_from_type
    rocm_visible_devices scan3 send_traceback_to_runtime serialization_version
    share_binary_between_hosts share_binary_between_hosts_timeout_ms softmax_custom_jvp
    sort_devices_by_process_index source_url_schema threefry_gpu_kernel_lowering
    traceback_in_locations_limit tracer_error_num_traceback_frames use_direct_linearize
    use_emit_pipeline_primitive use_magma use_shardy_partitioner use_simplified_jaxpr_constants
    xla_backend xla_profile_version
"""

#: They ask for checks that are not made here: kept, and a warning says what there is instead.
_CHECKS: Final[dict[str, tuple[Any, str]]] = {
    "array_garbage_collection_guard": (None, "no arrays in cycles are looked for"),
    "check_static_indices": (False, "indices out of range are clamped, as ever"),
    "check_vma": (False, "shard_map's check_vma= asks for it"),
    "debug_key_reuse": (False, "`fnarray lint` finds keys that are used twice"),
    "error_checking_behavior_divide": ("ignore", "experimental.checkify finds divisions by zero"),
    "error_checking_behavior_nan": ("ignore", "config.debug_nans and checkify find NaNs"),
    "error_checking_behavior_oob": ("ignore", "experimental.checkify finds indices out of range"),
    "thread_guard": (False, "programs may be called from any thread"),
    "transfer_guard_device_to_device": (None, "config.transfer_guard is for all directions"),
    "transfer_guard_device_to_host": (None, "config.transfer_guard is for all directions"),
    "transfer_guard_host_to_device": (None, "config.transfer_guard is for all directions"),
}

#: They change results: only their defaults are taken.
_RESULTS: Final[dict[str, Any]] = {
    "explicit_x64_dtypes": "warn",
    "high_dynamic_range_gumbel": False,
    "no_execution": False,
    "random_seed_offset": 0,
}

_values: Final[dict[str, Any]] = {}


def is_known(bare: str) -> bool:
    """Return whether JAX has a setting of a name (without ``jax_``) that has no row here."""
    return bare in _TUNING.split() or bare in _CHECKS or bare in _RESULTS


def update(bare: str, value: Any) -> None:
    """Keep the value of a setting that has no effect here.

    Raises
    ------
    ValueError
        The setting would change results.

    Warns
    -----
    UserWarning
        The setting asks for a check that is not made.
    """
    word = getattr(value, "name", value)  # of an enumeration
    word = word.lower() if isinstance(word, str) else word
    if bare in _RESULTS and word != _RESULTS[bare]:
        raise ValueError(
            f"config: jax_{bare} has no counterpart here, and results would differ from those it "
            f"asks for, got {value!r}. Leave it at {_RESULTS[bare]!r}."
        )
    if bare in _CHECKS:
        default, instead = _CHECKS[bare]
        if word != default:
            warnings.warn(
                f"config: jax_{bare}={value!r} has no effect here: {instead}.", stacklevel=3
            )
    _values[bare] = value


def read(bare: str) -> Any:
    """Return the value that a setting was given; its default where that matters; None else."""
    default = _RESULTS[bare] if bare in _RESULTS else _CHECKS.get(bare, (None,))[0]
    return _values.get(bare, default)


def flags() -> list[tuple[str, str]]:
    """Return names and texts of ``--jax_NAME=VALUE`` on the command line, and take them off."""
    found: list[tuple[str, str]] = []
    rest: list[str] = []
    for argument in sys.argv:
        name, is_given, text = argument.removeprefix("--").partition("=")
        if argument.startswith("--jax_") and is_given:
            found.append((name, text))
        else:
            rest.append(argument)
    sys.argv[:] = rest
    return found


def state(bare: str) -> Callable[..., AbstractContextManager[None]]:
    """Return what gives a setting a value for a block, as ``jax.NAME(value)`` does."""

    @contextmanager
    def given(value: Any = True) -> Generator[None, None, None]:
        before = read(bare)
        update(bare, value)
        try:
            yield
        finally:
            _values[bare] = before

    given.__name__ = given.__qualname__ = bare
    given.__doc__ = f"Give ``jax_{bare}``, which has no effect here, a value for a block."
    return given
