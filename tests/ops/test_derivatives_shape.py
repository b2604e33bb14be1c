"""Derivatives and batches of operations that rename places, cut and join."""

from __future__ import annotations

import pytest

from .cases_shape import BROADCASTS, PADS, RESHAPES, SLICES
from .derive import is_array, loops_agree, modes_agree, runs, same_as_jax
from .opcase import OpCase

ROWS = (*BROADCASTS, *RESHAPES, *SLICES, *PADS)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, ("float32", "float16", "complex64")))
def test_same_as_jax(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's."""
    same_as_jax(jax, case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, ("float32", "complex128")))
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, ("float32", "int32", "bool"), is_array))
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop."""
    loops_agree(case, signature)
