"""What JAX keeps under this name."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.lazy import surface as _surface

if _TYPE_CHECKING:
    from ..control.callback import io_callback as io_callback
    from . import checkify as checkify
    from . import hijax as hijax
    from . import jet as jet
    from . import layout as layout
    from . import mesh_utils as mesh_utils
    from . import multihost_utils as multihost_utils
    from . import ode as ode
    from . import pallas as pallas
    from . import shard_map as shard_map
    from . import sparse as sparse

_HOMES = {"..control.callback": "io_callback"}
_MISSING = {
    "it is for types that JAX is still trying out: use hijax's and pytrees": """
        EArray cur_qdd primal_tangent_dtype
    """,
    "it hands a program to a compiler for TPUs or GPUs, and every program is fused here": """
        fused mosaic
    """,
    "it moves arrays between clusters by XLA's runtime: use jax.device_put, or the workers of "
    "fnarray.distributed": "transfer",
    "it adds up what XLA's devices could do at best: jit(f).lower(...).compile()"
    ".cost_analysis() counts operations and bytes": "roofline",
    "it maps lines of XLA's text: explain(f)(x) shows each kernel beside the user's lines": """
        source_mapper
    """,
    "it orders what a GPU does at once, and kernels run here in the order of the program": """
        control_deps
    """,
    "it reads XLA's profiles: jax.profiler.trace writes one that Perfetto opens": "profiler",
    "`fnarray lint` finds keys that are used twice": "key_reuse",
}
__getattr__, __dir__, __all__ = _surface(  # pyright: ignore[reportUnsupportedDunderAll]
    __name__,
    _HOMES,
    "checkify hijax jet layout mesh_utils multihost_utils ode pallas shard_map sparse",
    _MISSING,
)
