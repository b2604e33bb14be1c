"""What users call on functions: compile, trace, inspect."""

from __future__ import annotations

from ..control.checkpoint import checkpoint
from ..control.checkpoint import checkpoint as remat
from ..control.closures import closure_convert, custom_gradient
from ..control.custom import custom_jvp, custom_vjp
from ..runtime.device import Device, devices
from ..runtime.mesh import make_mesh
from .arrays import (
    block_until_ready,
    clear_caches,
    default_backend,
    device_count,
    device_get,
    device_put,
    device_put_replicated,
    device_put_sharded,
    effects_barrier,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from .batching import vmap
from .derivatives import jvp, linear_transpose, linearize, vjp
from .gradients import grad, value_and_grad
from .jacobians import hessian, jacfwd, jacobian, jacrev
from .jit import jit
from .parallel import pmap, shard_map
from .tracing import (
    ensure_compile_time_eval,
    eval_shape,
    make_jaxpr,
    named_call,
    named_scope,
    typeof,
)

__all__ = [
    "Device",
    "block_until_ready",
    "checkpoint",
    "clear_caches",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "device_put_replicated",
    "device_put_sharded",
    "devices",
    "effects_barrier",
    "ensure_compile_time_eval",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "make_mesh",
    "named_call",
    "named_scope",
    "pmap",
    "process_count",
    "process_index",
    "process_indices",
    "remat",
    "shard_map",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]
