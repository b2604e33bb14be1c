"""Watching compiled programs run: values are printed, or handed to Python, as they are computed."""

from .api.showing import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from .control.debugging import debug_breakpoint as breakpoint
from .control.debugging import debug_callback as callback
from .control.debugging import debug_log as log
from .control.debugging import debug_print as print
from .core.lazy import absent as _absent

__all__ = [
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]

_MISSING = {
    'effects are words here: "debug" in jaxpr.effects': "DebugEffect OrderedDebugEffect",
}
__getattr__ = _absent(__name__, _MISSING)
