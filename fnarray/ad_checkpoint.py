"""Checkpointing of derivatives, named as in ``jax.ad_checkpoint``."""

from . import checkpoint_policies as checkpoint_policies
from .control.checkpoint import checkpoint as checkpoint
from .control.checkpoint import checkpoint as remat
from .control.checkpoint import checkpoint_name as checkpoint_name
from .control.checkpoint import print_saved_residuals as print_saved_residuals
from .control.checkpoint import saved_residuals as saved_residuals

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
