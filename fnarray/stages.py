"""Stages of ahead-of-time compilation, as ``jax.stages`` names them."""

from .api.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Wrapped
from .api.stages import TracedFunction as Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
