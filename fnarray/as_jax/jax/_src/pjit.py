"""``jax._src.pjit``: the primitive of calls, and regions of a mesh."""

from __future__ import annotations

from fnarray import jit as jit
from fnarray.control.call import jit_p as jit_p
from fnarray.sharding import auto_axes as auto_axes
from fnarray.sharding import reshard as reshard
