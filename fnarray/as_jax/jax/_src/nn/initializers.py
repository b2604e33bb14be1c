"""``jax._src.nn.initializers``: the public ones, and draws of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnarray.core.array import Array
from fnarray.core.dtypes import to_complex
from fnarray.nn.initializers import *  # noqa: F403
from fnarray.nn.initializers import truncated_disk, uniform_disk


def _complex_uniform(key: Any, shape: Sequence[int], dtype: Any) -> Array:
    return uniform_disk(key, tuple(shape), to_complex(dtype))


def _complex_truncated_normal(key: Any, upper: Any, shape: Sequence[int], dtype: Any) -> Array:
    return truncated_disk(key, upper, tuple(shape), to_complex(dtype))
