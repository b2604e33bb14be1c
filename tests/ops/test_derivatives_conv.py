"""Derivatives and batches of convolutions."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from .cases_reduce import CONVOLUTIONS
from .derive import is_array, loops_agree, modes_agree, runs, same_as_jax
from .opcase import OpCase


def _conv(label: str, shapes: tuple, **params) -> OpCase:
    params = MappingProxyType(params)

    def fn(lax):
        return lambda x, w: lax.conv_general_dilated(x, w, **params)

    return OpCase(f"conv:{label}", fn, shapes=shapes, dtypes=("float32", "float32"), ulp=64)


# What is left over by strides, paddings that cut, empty axes, groups with every other option.
HARD = [
    _conv("left over", ((2, 3, 8), (4, 3, 3)), window_strides=(3,), padding=((1, 0),)),
    _conv("large pads", ((1, 1, 3), (1, 1, 2)), window_strides=(2,), padding=((4, 5),)),
    _conv("all cut", ((1, 2, 6), (3, 2, 2)), window_strides=(1,), padding=((-2, -1),)),
    _conv("no spatial axes", ((2, 3), (4, 3)), window_strides=(), padding=()),
    _conv("no batch", ((0, 3, 5), (4, 3, 3)), window_strides=(1,), padding="SAME"),
    _conv("no places", ((2, 3, 2), (4, 3, 3)), window_strides=(1,), padding="VALID"),
    *(
        _conv(
            f"{name} with all",
            ((4, 4, 7), (6, 4 // (2 if name[0] == "f" else 1), 3)),
            window_strides=(2,),
            padding=((2, 1),),
            lhs_dilation=(2,),
            rhs_dilation=(3,),
            **{name: 2},
        )
        for name in ("feature_group_count", "batch_group_count")
    ),
    _conv(
        "depthwise in another layout",
        ((2, 6, 5, 4), (3, 2, 1, 8)),
        window_strides=(1, 2),
        padding="SAME",
        feature_group_count=4,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    ),
    _conv(
        "batch groups in another layout",
        ((3, 6, 5, 4), (6, 2, 3, 3)),
        window_strides=(1, 2),
        padding="SAME",
        batch_group_count=2,
        dimension_numbers=("CWHN", "OWHI", "WCNH"),
    ),
]
ROWS = (*CONVOLUTIONS, *HARD)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, ("float32", "complex64")))
def test_same_as_jax(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's."""
    same_as_jax(jax, case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, ("float32", "complex64")))
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, ("float32", "int32"), is_array))
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop."""
    loops_agree(case, signature, ulp=64)
