"""``jax._src.literals``: literals that carry a dtype. Tracing makes none of these here."""

from __future__ import annotations

import numpy as np


class TypedNdArray(np.ndarray):
    """An array literal of a dtype, as some libraries tell them from others."""


class TypedInt(int):
    """An integer literal of a dtype."""


class TypedFloat(float):
    """A float literal of a dtype."""


class TypedComplex(complex):
    """A complex literal of a dtype."""
