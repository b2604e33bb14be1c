"""Convolutions of real numbers as products of windows where they lie (see `native.windows`).

Images are brought to rows of features, with zeros around them where windows reach over their edges,
and met by panels of the kernel: no window is copied. A fractional stride is a convolution for each
place that a stride passes, with the elements of the kernel that meet something there. A derivative
by a kernel has large windows and few places: rows are the features that lie together, terms the
places of the cotangent.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from ...core.contraction import slides_along_lines
from ..ir import Node
from ..schedule.access import row_major
from ..target import Limits
from .blas import LETTERS, address
from .native import windows
from .native.call import layout_is_known
from .told import TOGETHER, Part, calls, code_of, several

Run = Callable[..., tuple[np.ndarray, ...]]
#: The addresses that a call's words begin with.
_POINTERS: Final = Struct("=3q")
#: Where these words count columns.
_COLUMNS: Final = windows.WORDS.index("n")


class Axis(NamedTuple):
    """One spatial axis of a convolution, or what it is at every so many places."""

    #: First place, how far apart they are, how many.
    out: int
    step: int
    places: int
    #: The same of the kernel's elements.
    first: int
    every: int
    kernel: int
    #: The operand's index under the first element at the first place; how much further it is at the
    #: next place, and under the next element.
    at: int
    stride: int
    spread: int

    @property
    def end(self) -> int:
        """The operand's largest index that a window reaches."""
        return self.at + (self.places - 1) * self.stride + (self.kernel - 1) * self.spread


class Sizes(NamedTuple):
    """Sizes of a convolution, its spatial axes brought to three."""

    batch: int
    features: int  # of a group
    out: int
    groups: int
    images: tuple[int, ...]
    kernel: tuple[int, ...]
    places: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    width: int

    @property
    def around(self) -> tuple[int, ...]:
        """The images' sizes with the zeros around them."""
        return tuple(map(sum, zip(self.low, self.images, self.high, strict=True)))


def axes_of(kernel: int, places: int, stride: int, low: int, base: int, spread: int) -> list[Axis]:
    """Return an axis, or one for each place that a fractional stride passes.

    There is none where both operands have holes: those meet in ways of their own.
    """
    if base == 1:
        return [Axis(0, 1, places, 0, 1, kernel, -low, stride, spread)]
    if stride > 1 or spread > 1:
        return []
    found: list[Axis] = []
    for r in range(min(base, places)):
        k = (low - r) % base
        count, elements = -(-(places - r) // base), -(-max(kernel - k, 0) // base)
        found.append(Axis(r, base, count, k, base, elements, (r + k - low) // base, 1, 1))
    return found


# ---- loops ---------------------------------------------------------------------------------------


def _steps(width: int, spatial: Sequence[int], last: int) -> list[int]:
    """Return how many bytes apart arrays of these axes are, and what is along each but the last."""
    return [width * step for step in row_major((1, *spatial, last))[:-1]]


def _of_images(sizes: Sizes, axes: tuple[Axis, ...], b: int, limits: Limits) -> Iterator[Any]:
    """Yield the calls for some places of all images, the kernel's elements from ``b`` on."""
    w, c, o = sizes.width, sizes.features, sizes.out
    images, *image = _steps(w, sizes.around, c * sizes.groups)
    results, *result = _steps(w, sizes.places, o)
    _, *element = _steps(w, [x.kernel for x in axes], c * o)
    rows = [(sizes.batch, images, results)]
    rows += (
        (x.places, x.stride * a, x.step * y) for x, a, y in zip(axes, image, result, strict=True)
    )
    terms = [(x.kernel, x.spread * a, e) for x, a, e in zip(axes, image, element, strict=True)]
    terms.append((c, w, w * o))
    first = sum((x.at + low) * a for x, low, a in zip(axes, sizes.low, image, strict=True))
    third = sum(x.out * y for x, y in zip(axes, result, strict=True))
    share = o // sizes.groups
    for g in range(sizes.groups):
        at = first + g * c * w, b + g * share * w, third + g * share * w
        together = sizes.batch * images // TOGETHER
        yield calls([Part(*at[:2], terms)], at[2], share, rows, limits, together)


def _of_kernels(sizes: Sizes, axes: tuple[Axis, ...], limits: Limits) -> Iterator[Any]:
    """Yield the calls for places that are fewer than a window's elements."""
    w, o, batch = sizes.width, sizes.out, sizes.batch
    images, *image = _steps(w, sizes.around, batch)
    elements, *element = _steps(w, sizes.kernel, o)
    _, *result = _steps(w, sizes.places, batch * o)
    rows = [(x.places, x.stride * a, y) for x, a, y in zip(axes, image, result, strict=True)]
    rows.append((batch, w, w * o))
    terms = [(sizes.features, images, elements)]
    terms += ((x.kernel, x.spread * a, e) for x, a, e in zip(axes, image, element, strict=True))
    first = sum((x.at + low) * a for x, low, a in zip(axes, sizes.low, image, strict=True))
    yield calls([Part(first, 0, terms)], 0, o, rows, limits, 1)


# ---- the step ------------------------------------------------------------------------------------


def convolution(node: Node, limits: Limits) -> Run | None:
    """Return what computes a convolution; None where there is no product of windows for it."""
    (lhs, rhs), out = (a.aval for a in node.ins), node.out.aval
    letter = LETTERS.get(out.dtype.char)
    if letter is None or not lhs.dtype == rhs.dtype == out.dtype or not 3 <= out.ndim <= 5:
        return None
    params = node.eqn.params
    if params["batch_group_count"] > 1 or 0 in (*lhs.shape, *rhs.shape, *out.shape):
        return None
    if slides_along_lines(lhs, rhs, params):
        return None
    sizes, split = _sizes(node)
    if not windows.symbol(letter) or not layout_is_known() or not all(split):
        return None
    parts = [axes for axes in product(*split) if all(x.kernel for x in axes)]
    whole = len(parts) == 1 and all(x.every == 1 for x in parts[0])
    turned = whole and sizes.groups == 1 and prod(sizes.kernel) > prod(sizes.places)
    found: list[list[list[int]] | None] = []
    weights = 0
    for axes in parts:
        if turned:
            found += _of_kernels(sizes, axes, limits)
        else:
            found += _of_images(sizes, axes, weights, limits)
        weights += prod(x.kernel for x in axes) * sizes.features * sizes.out * sizes.width
    if None in found:
        return None
    words = [told for some in found for told in some or ()]
    columns = max((told[_COLUMNS] for told in words), default=0)
    code = code_of(letter, narrow=windows.is_narrow(letter, columns))
    (n, c, *images), (o, i, *kernel), (m, f, *places) = params["dimension_numbers"]
    orders = ((n, *images, c), (*kernel, i, o), (m, *places, f))
    if turned:
        orders = ((c, *images, n), (i, *kernel, o), (*places, m, f))
    return _step(node, code, sizes, parts, np.array(words, np.int64), orders)


def _sizes(node: Node) -> tuple[Sizes, list[list[Axis]]]:
    """Return a convolution's sizes, and what its spatial axes are, brought to three."""
    (lhs, rhs), out, params = (a.aval for a in node.ins), node.out.aval, node.eqn.params
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]

    def three(values: Iterable[int], fill: int) -> tuple[int, ...]:
        return (*(fill,) * (5 - out.ndim), *values)

    shaped: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        (lhs.shape, lhs_spec), (rhs.shape, rhs_spec), (out.shape, out_spec),
    ]  # fmt: skip
    images, kernel, places = (three([shape[a] for a in spec[2:]], 1) for shape, spec in shaped)
    split = list(map(
        axes_of, kernel, places, three(params["window_strides"], 1),
        three([low for low, _ in params["padding"]], 0),
        three(params["lhs_dilation"], 1), three(params["rhs_dilation"], 1),
    ))  # fmt: skip
    met = [[x for x in axes if x.kernel] for axes in split]
    low = tuple(max([0, *(-x.at for x in axes)]) for axes in met)
    high = tuple(
        max([0, *(x.end + 1 - n for x in axes)]) for n, axes in zip(images, met, strict=True)
    )
    sizes = Sizes(
        lhs.shape[lhs_spec[0]], rhs.shape[rhs_spec[1]], out.shape[out_spec[1]],
        params["feature_group_count"], images, kernel, places, low, high, out.dtype.itemsize,
    )  # fmt: skip
    return sizes, split


def _step(
    node: Node,
    code: int,
    sizes: Sizes,
    parts: list[tuple[Axis, ...]],
    words: np.ndarray,
    orders: tuple[tuple[int, ...], ...],
) -> Run:
    out, count = node.out.aval, node.out.aval.ndim - 2
    shape = tuple(out.shape[a] for a in orders[2])
    back = tuple(map(int, np.argsort(orders[2])))
    images = _surrounding(node, orders[0], sizes, count)
    elements = _elements(orders[1], parts, count)
    filled = sum(prod(x.places for x in axes) for axes in parts) == prod(sizes.places)
    new = np.empty if filled else np.zeros
    run = _one(code, words) if len(words) == 1 else _several(code, words)

    def step(lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, ...]:
        x, k, y = images(lhs), elements(rhs), new(shape, out.dtype)
        run(address(x), address(k), address(y))
        return (_laid_out(y, back),)

    return step


def _one(code: int, words: np.ndarray) -> Callable[[int, int, int], None]:
    """Return what makes one call, given where the operands and the result begin."""
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code)
    first, second, third = map(int, words[0, :3])

    def run(x: int, k: int, y: int) -> None:
        told = words.copy()
        # A third of the time of an addition by NumPy, which is a tenth of a small convolution's.
        _POINTERS.pack_into(told.data, 0, first + x, second + k, third + y)
        call(address(told))

    return run


def _several(code: int, words: np.ndarray) -> Callable[[int, int, int], None]:
    """Return what makes several calls, given the same."""
    run = several(code, words)
    return lambda x, k, y: run(np.array((x, k, y), np.int64))


def _laid_out(x: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """Return an array whose axes are moved, in C order."""
    moved = x.transpose(order)
    return moved if moved.flags.c_contiguous else moved.copy()


def _surrounding(
    node: Node, order: tuple[int, ...], sizes: Sizes, count: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what lays images out: their features together, with zeros around them."""
    around = tuple(zip(sizes.low, sizes.images, sizes.high, strict=True))[3 - count :]
    if not any(low or high for low, _, high in around):
        return lambda x: _laid_out(x, order)
    aval = node.ins[0].aval
    shape = (aval.shape[order[0]], *map(sum, around), aval.shape[order[-1]])
    inside = (slice(None), *(slice(low, low + n) for low, n, _ in around))

    def surrounded(x: np.ndarray) -> np.ndarray:
        wide = np.zeros(shape, aval.dtype)
        wide[inside] = x.transpose(order)
        return wide

    return surrounded


def _elements(
    order: tuple[int, ...], parts: list[tuple[Axis, ...]], count: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what lays out the elements of a kernel that each part takes, part after part."""
    if all(x.every == 1 for axes in parts for x in axes):
        return lambda x: _laid_out(x, order)
    places = [tuple(slice(x.first, None, x.every) for x in axes[3 - count :]) for axes in parts]

    def taken(x: np.ndarray) -> np.ndarray:
        kernel = x.transpose(order)
        return np.concatenate([kernel[at].ravel() for at in places])

    return taken
