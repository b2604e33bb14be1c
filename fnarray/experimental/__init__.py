"""What JAX keeps under this name."""

from ..control.callback import io_callback as io_callback
from ..core.lazy import absent as _absent
from . import checkify as checkify
from . import jet as jet
from . import layout as layout
from . import mesh_utils as mesh_utils
from . import multihost_utils as multihost_utils
from . import ode as ode
from . import shard_map as shard_map
from . import sparse as sparse

__all__ = [
    "checkify",
    "io_callback",
    "jet",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "shard_map",
    "sparse",
]

__getattr__ = _absent(
    __name__,
    {
        "it is for types that JAX is still trying out: use hijax's and pytrees": """
        EArray cur_qdd primal_tangent_dtype
    """
    },
)
