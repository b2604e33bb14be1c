"""``jaxlib._jax``: its names of types, which libraries dispatch on."""

from __future__ import annotations

from fnarray import Device as Device
from fnarray.api.jit import PjitFunction as PjitFunction
from fnarray.core.array import Array as Array
