"""``jax._src.pjit``: the primitive of calls."""

from __future__ import annotations

from fnarray import jit as jit
from fnarray.control.call import jit_p as jit_p
