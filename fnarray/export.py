"""Programs as bytes, for other processes and other times: see `export`."""

from . import random as _random
from .api.export import Exported as Exported
from .api.export import default_export_platform as default_export_platform
from .api.export import deserialize as deserialize
from .api.export import export as export
from .api.export import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from .api.export import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from .api.export import symbolic_args_specs as symbolic_args_specs
from .api.safety import DisabledSafetyCheck as DisabledSafetyCheck
from .api.sizes import is_symbolic_dim as is_symbolic_dim
from .api.trees import register_namedtuple_serialization as register_namedtuple_serialization
from .api.trees import register_pytree_node_serialization as register_pytree_node_serialization
from .core.dims import SymbolicScope as SymbolicScope
from .core.dims import symbolic_shape as symbolic_shape

register_pytree_node_serialization(
    _random.PRNGKeyArray,
    serialized_name="fnarray.PRNGKeyArray",
    serialize_auxdata=lambda impl: impl.encode(),
    # Programs written before there was a choice of generator have no name.
    deserialize_auxdata=lambda name: name.decode() or "threefry2x32",
    # Any keys: of a structure, only that there are some counts.
    from_children=lambda impl, children: _random.key(0, impl=impl),
)
