"""Convolutions as products of windows: each way in which their kernels are laid out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cuda.processor import simulated
from fnarray.config import scoped

from .compare import Report, both
from .host import HOST
from .programs import floats
from .ptx import PTX

LAST = ("NHWC", "HWIO", "NHWC")


def conv(strides: Any = (1, 1), padding: Any = "SAME", **more: Any) -> Any:
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **more)


def slopes(f: Any) -> Any:
    return fnarray.grad(lambda x, w: jnp.sum(f(x, w) ** 2), (0, 1))


def halves(*shape: int) -> np.ndarray:
    return floats(*shape).astype(np.float16)


FIRST = floats(2, 5, 5, 6), floats(6, 5, 3, 3)
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "features first": (slopes(conv()), FIRST),
    "features last": (
        slopes(conv(dimension_numbers=LAST)),
        (floats(2, 5, 6, 5), floats(3, 3, 5, 6)),
    ),
    "sixteen features": (
        slopes(conv(dimension_numbers=LAST)),
        (floats(1, 4, 5, 16), floats(3, 2, 16, 4)),
    ),
    "nothing reaches over": (conv(padding="VALID"), FIRST),
    "strides": (slopes(conv((2, 3), ((1, 2), (0, 1)))), FIRST),
    "apart": (conv((2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2)), FIRST),
    "fractional strides": (conv((1, 1), ((2, 2), (1, 3)), lhs_dilation=(2, 3)), FIRST),
    "holes": (conv((2, 1), ((2, 2), (1, 3)), lhs_dilation=(2, 3)), FIRST),
    "both apart": (conv(padding=((2, 2), (2, 3)), lhs_dilation=(2, 3), rhs_dilation=(2, 1)), FIRST),
    "cut off": (conv((1, 1), ((-1, 2), (3, -2))), FIRST),
    "groups": (slopes(conv(feature_group_count=2)), (floats(2, 8, 4, 4), floats(8, 4, 3, 3))),
    "groups of images": (conv(batch_group_count=2), (floats(4, 5, 5, 5), floats(8, 5, 3, 3))),
    "terms are cut": (conv(padding="VALID"), (floats(1, 64, 4, 4), floats(5, 64, 3, 3))),
    "points": (conv(padding="VALID"), (floats(2, 16, 3, 5), floats(5, 16, 1, 1))),
    "one axis": (slopes(conv((2,))), (floats(3, 5, 9), floats(6, 5, 4))),
    "three axes": (conv((1, 2, 1)), (floats(1, 4, 3, 5, 4), floats(4, 4, 3, 2, 3))),
    "features by themselves": (
        slopes(conv(feature_group_count=4)),
        (floats(1, 4, 15, 18), floats(4, 1, 3, 2)),
    ),
    "halves": (conv(), (halves(2, 5, 5, 6), halves(6, 5, 3, 3))),
    "integers": (conv(), tuple((9 * x).astype(np.int32) for x in FIRST)),
    "complex numbers": (conv(), tuple(x + 1j * x[::-1] for x in FIRST)),
}


@pytest.mark.parametrize("target", [HOST, simulated(2), PTX], ids=["lowered", "two", "ptx"])
def test_convolutions_agree(target: Any) -> None:
    """Results are the processor's; what all lanes run, which takes longer, is few of them."""
    few = (
        "features last",
        "features by themselves",
        "fractional strides",
        "terms are cut",
        "points",
    )
    for name, (f, args) in CASES.items():
        if target is HOST or name in few:
            report = Report()
            with both(report, target), scoped("effects", "off"), scoped("cuda_fma", False):
                fnarray.jit(lambda *xs, f=f: f(*xs))(*args)
            assert report.programs
            assert not report.differences, f"{name}: {report.differences[0]}"


def test_few_features_are_no_product() -> None:
    """A tile would be mostly empty: each element of the result is a thread's."""
    by_threads = conv(feature_group_count=8), (floats(2, 8, 5, 6), floats(8, 1, 3, 3))
    for (f, args), tiles in ((by_threads, False), (CASES["points"], True)):
        text = fnarray.jit(lambda *xs, f=f: f(*xs)).lower(*args).as_text("cuda")
        assert ("room(" in text) == tiles
        assert ("spread.direct" in text) != tiles
    f, args = CASES["features by themselves"]
    assert "spread.summed" in fnarray.jit(lambda *xs: f(*xs)).lower(*args).as_text("cuda")
