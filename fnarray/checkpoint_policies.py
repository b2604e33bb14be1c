"""Policies of `checkpoint`, named as in ``jax.checkpoint_policies``."""

from __future__ import annotations

from .control.policies import *
from .control.policies import __all__ as __all__
