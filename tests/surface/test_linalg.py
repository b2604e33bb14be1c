"""``numpy.linalg``, ``scipy.linalg`` and ``lax.linalg`` beside JAX's: values, shapes, dtypes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.config import enable_x64

jax = pytest.importorskip("jax")


def draw(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Return a matrix of a dtype; ``dtype`` may begin with a word that says of which kind."""
    word, _, name = dtype.rpartition(" ")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(name).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    if np.dtype(name).kind in "iu":
        x = rng.integers(-4, 5, shape)
    if word == "hermitian":
        x = (x + x.conj().swapaxes(-1, -2)) / 2
    if word == "positive":
        x = x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    if word == "dominant":
        x = x + 3 * np.eye(*shape[-2:])
    return x.astype(name)


@dataclass(frozen=True)
class Case:
    """One call: the function's path below the package, the shapes of its arrays, its settings."""

    path: str
    *_: Any
    shapes: tuple[tuple[int, ...], ...] = ((3, 4, 4),)
    word: str = "dominant"
    settings: dict[str, Any] = field(default_factory=dict)


def _case(path: str, *shapes: tuple[int, ...], word: str = "dominant", **settings: Any) -> tuple:
    return path, shapes or ((3, 4, 4),), word, settings
