"""Convolutions by products of windows, which are ours where registers have 512 bits.

Elsewhere the same tests hold of products of copied windows, but for that of bits.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.compile.cpu import told
from fnarray.compile.cpu.processor import processor

LAYOUT = ("NHWC", "HWIO", "NHWC")
LAYOUTS = {
    "features last": "N{0}C {0}IO N{0}C",
    "features first": "NC{0} OI{0} NC{0}",
    "mixed": "N{0}C OI{0} NC{0}",
    "batch last": "C{0}N I{0}O {0}NC",  # what a derivative by a kernel asks for
}


@dataclass(frozen=True)
class Case:
    """Sizes of a convolution, its spatial axes in order."""

    batch: int
    features: int
    out: int
    images: tuple[int, ...]
    kernel: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int = 1
    params: dict[str, tuple[int, ...]] = field(default_factory=dict)


CASES = {
    "plain": Case(2, 8, 20, (9, 14), (3, 3), ((1, 1), (1, 1))),
    "one axis": Case(3, 5, 33, (40,), (4,), ((0, 2),)),
    "three axes": Case(2, 4, 17, (5, 6, 7), (2, 3, 2), ((1, 0), (1, 1), (0, 1))),
    "cut by pads": Case(2, 6, 9, (11, 9), (2, 3), ((-1, 2), (2, -2))),
    "strides": Case(1, 7, 16, (13, 12), (3, 5), ((1, 2), (2, 2)), 1, {"window_strides": (2, 3)}),
    "holes": Case(2, 4, 8, (12, 13), (3, 2), ((0, 1), (2, 0)), 1, {"rhs_dilation": (2, 3)}),
    "fractional strides": Case(
        2, 6, 10, (5, 7), (3, 4), ((2, 1), (3, 3)), 1, {"lhs_dilation": (2, 3)}
    ),
    "kernels shorter than strides": Case(
        2, 4, 5, (4, 5), (1, 2), ((1, 0), (0, 2)), 1, {"lhs_dilation": (3, 3)}
    ),
    "both": Case(
        1, 4, 6, (6, 8), (3, 3), ((2, 2), (2, 2)), 1,
        {"lhs_dilation": (2, 1), "rhs_dilation": (2, 2), "window_strides": (1, 2)},
    ),
    "groups": Case(2, 12, 20, (8, 9), (3, 3), ((1, 1), (1, 1)), 4),
    "each feature apart": Case(2, 6, 12, (8, 9), (3, 3), ((1, 1), (1, 1)), 6),
    "large windows": Case(4, 9, 12, (14, 15), (12, 13), ((0, 0), (0, 0))),
    "large windows with holes": Case(
        3, 5, 12, (17, 15), (7, 7), ((1, 1), (0, 1)), 1, {"rhs_dilation": (2, 2)}
    ),
    "points of one feature": Case(3, 1, 40, (7, 5), (1, 1), ((0, 0), (0, 0))),
    "points": Case(3, 24, 40, (7, 5), (1, 1), ((0, 0), (0, 0))),
}  # fmt: skip


def by_definition(x: np.ndarray, w: np.ndarray, case: Case) -> np.ndarray:
    """Convolve (batch, feature, ...) with (out, in, ...) in double precision, term by term."""
    n = len(case.images)
    strides, base, spread = (
        case.params.get(k, (1,) * n) for k in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    wide = [(m - 1) * b + 1 for m, b in zip(case.images, base, strict=True)]
    reach = [low + m + high for m, (low, high) in zip(wide, case.pads, strict=True)]
    places = [
        (m - (k - 1) * d - 1) // s + 1
        for m, k, d, s in zip(reach, case.kernel, spread, strides, strict=True)
    ]
    out = np.zeros((case.batch, case.out, *places))
    for at in itertools.product(*map(range, places)):
        for element in itertools.product(*map(range, case.kernel)):
            here = [
                o * s + k * d - low
                for o, s, k, d, (low, _) in zip(
                    at, strides, element, spread, case.pads, strict=True
                )
            ]
            if any(
                i % b or not 0 <= i // b < m
                for i, b, m in zip(here, base, case.images, strict=True)
            ):
                continue
            read = x[(..., *(i // b for i, b in zip(here, base, strict=True)))].astype("f8")
            of = w[(..., *element)].astype("f8")
            by_group = (
                read.reshape(case.batch, case.groups, -1),
                of.reshape(case.groups, -1, of.shape[1]),
            )
            out[(..., *at)] += np.einsum("ngi,goi->ngo", *by_group).reshape(case.batch, -1)
    return out


def specs(layout: str, n: int) -> list[str]:
    """Return the letters of three layouts, with those of the spatial axes in them."""
    return LAYOUTS[layout].format("DHW"[3 - n :]).split()


def arranged(x: np.ndarray, have: str, want: str) -> np.ndarray:
    """Return an array with its axes in another order, in memory too."""
    return np.ascontiguousarray(x.transpose([have.index(letter) for letter in want]))


def operands(case: Case, layout: str, dtype: str) -> tuple[Any, ...]:
    """Return the operands of a case as a layout has them, its parameters, and what it gives."""
    rng, letters = np.random.default_rng(7), "DHW"[3 - len(case.images) :]
    x = rng.standard_normal((case.batch, case.features, *case.images)).astype(dtype)
    w = rng.standard_normal((case.out, case.features // case.groups, *case.kernel)).astype(dtype)
    lhs, rhs, out = specs(layout, len(letters))
    want = arranged(by_definition(x, w, case), "NC" + letters, out)
    return arranged(x, "NC" + letters, lhs), arranged(w, "OI" + letters, rhs), (lhs, rhs, out), want


def convolved(case: Case, layout: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Convolve by a compiled program."""

    def program(x: Any, w: Any) -> Any:
        strides = case.params.get("window_strides", (1,) * len(case.images))
        rest: dict[str, Any] = {k: v for k, v in case.params.items() if k != "window_strides"}
        return lax.conv_general_dilated(
            x,
            w,
            strides,
            case.pads,
            dimension_numbers=layout,
            feature_group_count=case.groups,
            **rest,
        )

    return np.asarray(fnarray.jit(program, effects="off")(x, w))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_convolution_is_what_its_definition_says(name, layout):
    """In all layouts, with strides, holes, groups, zeros around and what is cut off."""
    case = CASES[name]
    x, w, letters, want = operands(case, layout, "f4")
    got = convolved(case, letters, x, w)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 4e-6 * np.abs(want).max()


def test_double_precision_is_kept():
    """The products of float64 have tiles of their own."""
    case = CASES["plain"]
    x, w, letters, want = operands(case, "features last", "f8")
    with fnarray.enable_x64(True):
        got = convolved(case, letters, x, w)
    assert got.dtype == "f8"
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", ["features last", "batch last"])
def test_no_cut_changes_a_bit(layout, monkeypatch):
    """The images, rows and features that threads share have the same terms in the same order."""
    case = Case(6, 40, 50, (16, 17), (3, 3), ((1, 1), (1, 1)))
    x, w, letters, _ = operands(case, layout, "f4")
    bits = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(told, "threads", lambda threads=threads: threads)
        fnarray.clear_caches()
        bits.append(convolved(case, letters, x, w))
    tolerance = 0 if processor().wide else 1e-5  # the order of BLAS's terms is not known
    for others in bits[1:]:
        np.testing.assert_allclose(others, bits[0], rtol=tolerance, atol=tolerance)


def test_infinities_stay_where_they_are():
    """What is not under a window, and the zeros around, meet no infinite element."""
    x = np.ones((1, 4, 5, 6), np.float32)
    x[0, 0, 0] = np.inf
    case = Case(1, 6, 16, (4, 5), (3, 3), ((1, 1), (1, 1)))
    w = np.ones((3, 3, 6, 16), np.float32)
    got = convolved(case, LAYOUT, x, w)
    want = np.zeros((4, 5), bool)
    want[:2, :2] = True
    np.testing.assert_array_equal(np.isinf(got[0]), np.repeat(want[..., None], 16, -1))
    assert not np.isnan(got).any()


def test_large_convolutions_outside_of_programs_are_programs():
    """They have the bits of `jit`: NumPy copied every window."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 20, 21, 24)).astype(np.float32)
    w = rng.standard_normal((3, 3, 24, 32)).astype(np.float32)

    def convolution(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAYOUT)

    np.testing.assert_array_equal(convolution(x, w), fnarray.jit(convolution)(x, w))
