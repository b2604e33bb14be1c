"""Convolutions as products of windows where they lie: no window is copied.

Rows and columns are places of the result and features of the kernel, terms are features of the
operand and elements of a window. Fractional strides are a product for each place that a stride
passes, with those elements of the kernel that meet something there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Final, NamedTuple

from ...core.forms import Library
from ..ir import Node
from .tiles import DEEP, Tiles
from .values import GridValues

#: Features, places and terms of which a product is worth it: of fewer, tiles are mostly empty.
LEAST, LEAST_TERMS = 4, 8
#: Names of an element of a window, and of a place.
_ELEMENT: Final = ("w0", "w1", "w2")
_PLACE: Final = ("o0", "o1", "o2")


class Axis(NamedTuple):
    """One spatial axis: extents, then steps of places, padding, steps in either operand."""

    n: int
    window: int
    places: int
    stride: int
    low: int
    base: int
    spread: int

    @property
    def phases(self) -> int:
        """Places that a fractional stride passes, each with elements of the kernel of its own."""
        return self.base if self.stride == self.spread == 1 else 1

    @property
    def inside(self) -> bool:
        """Whether every element of every window is one of the operand's."""
        last = (self.places - 1) * self.stride + (self.window - 1) * self.spread - self.low
        return self.base == 1 and self.low <= 0 and last < self.n


class Sizes(NamedTuple):
    """What a call of `fnarray_kernels.conv.direct` says.

    Attributes
    ----------
    images, features, groups, share : int
        Images and features of the operand in a group; groups; features of the result in one.
    x, w, y : tuple of int
        Strides of the operand, the kernel and the result: of images (for the kernel, the result's
        features), of features, of the spatial axes.
    group : int
        Stride of the operand's groups.
    axes : tuple of Axis
    """

    images: int
    features: int
    groups: int
    share: int
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    group: int
    axes: tuple[Axis, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """Extents of the places of one phase."""
        return tuple(-(-a.places // a.phases) for a in self.axes)

    @property
    def window(self) -> tuple[int, ...]:
        """Extents of the kernel's elements that one phase meets."""
        return tuple(-(-a.window // a.phases) for a in self.axes)


def sizes_of(statics: Sequence[int]) -> Sizes:
    """Return the sizes that a call's arguments are."""
    images, out, features, groups, batch_groups = statics[:5]
    x, w, y = (tuple(statics[5 + 5 * k : 10 + 5 * k]) for k in range(3))
    axes = tuple(Axis(*statics[20 + d :: 3]) for d in range(3))
    group = images * x[0] if batch_groups > 1 else features * x[1]
    both = groups * batch_groups
    return Sizes(images, features, both, out // both, x, w, y, group, axes)


def is_product(node: Node) -> bool:
    """Whether a convolution fills tiles."""
    s = sizes_of(node.form.statics)
    terms = s.features * prod(s.window)
    return min(s.share, s.images * prod(s.places)) >= LEAST and terms >= LEAST_TERMS


class Windows(Tiles):
    """Spells a convolution, the region's own.

    All sizes are in its text, so that divisions by them are products.
    """

    many = True

    def __init__(self, values: GridValues, node: Node, stage: int):
        form: Library = node.form
        self.sizes = s = sizes_of(form.statics)
        self.phases = tuple(a.phases for a in s.axes)
        places = s.images * prod(s.places)
        #: Columns are what lies closer in the result: features, or places.
        self.rows, self.columns = ("places", "features") if s.y[1] == 1 else ("features", "places")
        m, n = (places, s.share) if s.y[1] == 1 else (s.share, places)
        #: Whether neighbours in the operand's memory are elements of a window, not places.
        along = s.x[1] != 1 and s.window[-1] > s.places[-1]
        #: Whether the elements of a window are the inner ones of the terms, not features.
        self.inside = along or (s.x[1] != 1 and s.features % DEEP > 0)
        self.lie_along = along or s.x[1] == 1
        #: Whether the terms that are brought at a time are of one element of the kernel.
        self.alike = not self.inside and s.features % DEEP == 0
        terms = s.features * prod(s.window)
        super().__init__(values, node, stage, (s.groups * prod(self.phases), m, n), terms)

    def _is_kernel(self, k: int) -> bool:
        return (self.rows, self.columns)[k] == "features"

    def in_line(self, k: int) -> bool:
        """Whether the terms of a sum are neighbours in the memory of an operand."""
        if self._is_kernel(k):
            return self.sizes.w[4 if self.inside else 1] == 1
        return self.lie_along

    def _digits(
        self, name: str, extents: Sequence[int], names: Sequence[str], suffix: str = ""
    ) -> list[str]:
        """Write the indices along axes that a flat one has; an axis of one element has none."""
        found: list[str] = []
        inner = prod(extents)
        for k, (extent, digit) in enumerate(zip(extents, names, strict=True)):
            inner //= extent
            if extent == 1:
                found.append("0")
                continue
            text = name if inner == 1 else f"{name} // {inner}"
            outermost = prod(extents[:k]) == 1
            self.writer.line(f"{digit}{suffix} = {text if outermost else f'{text} % {extent}'}")
            found.append(f"{digit}{suffix}")
        return found

    def _place_of(self, name: str, suffix: str = "") -> list[str]:
        """Write the image and the spatial indices of a place; images are inside where they lie."""
        s = self.sizes
        if s.x[0] == 1:
            *at, image = self._digits(name, (*s.places, s.images), (*_PLACE, "image"), suffix)
            return [image, *at]
        return self._digits(name, (s.images, *s.places), ("image", *_PLACE), suffix)

    # -- what a tile knows -------------------------------------------------------------------

    def begin(self) -> None:
        """Make room for where rows and columns begin."""
        for k in range(2):
            names = ["panel"] if self._is_kernel(k) else ["origin"]
            if not self._is_kernel(k):
                names += [f"reach{d}" for d, a in enumerate(self.sizes.axes) if not a.inside]
            for name in names:
                self.writer.line(f"{name} = held(i64(0), {self._turns(k)})")

    def prepare(self) -> None:
        """Find the group and the phase, and where each row and column begins."""
        s, line = self.sizes, self.writer.line
        extents, names = (s.groups, *self.phases), ("group", "f0", "f1", "f2")
        self.group, *self.phase = self._digits("batch", extents, names)
        for d, (axis, f) in enumerate(zip(s.axes, self.phase, strict=True)):
            if axis.phases > 1:  # the first element of the kernel that meets one, and which
                line(f"r{d} = ({axis.low} - {f}) % {axis.base}")
                line(f"b{d} = ({f} + r{d} - {axis.low}) // {axis.base}")
        for k, low in enumerate(("top", "first")):
            with self.turns(k) as (turn, i, _):
                if self._is_kernel(k):
                    line(f"feature = min({low} + {i}, {s.share - 1})")
                    line(f"panel[{turn}] = ({self.group} * {s.share} + feature) * {s.w[0]}")
                else:
                    line(f"place = min({low} + {i}, {s.images * prod(s.places) - 1})")
                    self._originate(turn)

    def _originate(self, turn: str) -> None:
        """Write where the window of a place begins."""
        s, line = self.sizes, self.writer.line
        image, *at = self._place_of("place")
        origin = [f"{self.group} * {s.group}", f"{image} * {s.x[0]}"]
        for d, (axis, o) in enumerate(zip(s.axes, at, strict=True)):
            first = f"{o} + b{d}" if axis.phases > 1 else f"{o} * {axis.stride} - {axis.low}"
            if not axis.inside:
                line(f"reach{d}[{turn}] = {first}")
            if axis.base == 1 or axis.phases > 1:
                origin.append(f"({first}) * {s.x[2 + d]}")
        line(f"origin[{turn}] = {' + '.join(origin)}")

    def step(self) -> None:
        """Find the element of the kernel that all terms have, where that is one."""
        if self.alike:
            s, line = self.sizes, self.writer.line
            line(f"here = min(begin, {self.inner - DEEP})")  # those behind the last are not used
            line(f"deep = here % {s.features}")
            line(f"element = here // {s.features}")
            self.at = self._digits("element", s.window, _ELEMENT)

    # -- the operands' elements --------------------------------------------------------------

    def fetch(self, k: int, turn: str, at: str, term: str) -> str:
        """Write the load of an element, where there is one."""
        s, writer = self.sizes, self.writer
        window, tests = (self.at if self.alike else self._element(k, term)), []
        feature = f"deep + {term} - begin" if self.alike else f"deep{k}"
        if not self.alike and self.inner % DEEP:
            tests.append(f"{term} < {self.inner}")
        elements = list(window)
        for d, axis in enumerate(s.axes):
            if axis.phases > 1:
                elements[d] = f"({window[d]} * {axis.base} + r{d})"
                if axis.window % axis.base:
                    tests.append(f"{elements[d]} < {axis.window}")
        if self._is_kernel(k):
            place = [f"panel[{turn}]", f"({feature}) * {s.w[1]}"]
            place += [f"{e} * {w}" for e, w in zip(elements, s.w[2:], strict=True)]
        else:
            place = [f"origin[{turn}]", f"({feature}) * {s.x[1]}"]
            place += self._reached(turn, window, tests)
        value = writer.declare(writer.fresh("v"))
        writer.line(f"{value} = {self.zero}")
        with ExitStack() as stack:
            if tests:
                header = f"if {' and '.join(tests)}:"
                stack.enter_context(writer.block(header, barrier=True))
            operand = self.node.ins[1 if self._is_kernel(k) else 0]
            store = self.values.stored(operand)
            assert store is not None
            element = f"{store.name}[u({' + '.join(place)})]"
            held = self.values.narrow.get(operand.aval.dtype.name)
            loaded = held.load.format(element) if held else element
            writer.line(f"{value} = {self.widened(loaded, k)}")
        return value

    def _element(self, k: int, term: str) -> list[str]:
        """Write which feature and which element of the window a term is."""
        s = self.sizes
        name = f"term{k}"
        self.writer.line(f"{name} = min({term}, {self.inner - 1})")
        if self.inside:
            extents, names = (s.features, *s.window), ("deep", *_ELEMENT)
            feature, *at = self._digits(name, extents, names, str(k))
        else:
            extents, names = (*s.window, s.features), (*_ELEMENT, "deep")
            *at, feature = self._digits(name, extents, names, str(k))
        if feature == "0":
            self.writer.line(f"deep{k} = 0")
        return at

    def _reached(self, turn: str, window: Sequence[str], tests: list[str]) -> list[str]:
        """Return how much further than its place's origin an element lies; add what it must pass.

        The operand has holes where its elements are apart and places are too.
        """
        s, further = self.sizes, list[str]()
        for d, (axis, w) in enumerate(zip(s.axes, window, strict=True)):
            steps = f"{w} * {axis.spread}"
            index = f"(reach{d}[{turn}] + {steps})"
            if axis.base > 1 and axis.phases == 1:
                tests.append(f"{index} % {axis.base} == 0")
                index = f"({index} // {axis.base})"
                further.append(f"{index} * {s.x[2 + d]}")
            elif w != "0":
                further.append(f"{steps} * {s.x[2 + d]}")
            if not axis.inside:
                tests += [f"{index} >= 0", f"{index} < {axis.n}"]
        return further

    # -- the result --------------------------------------------------------------------------

    def deliver(self, row: str, column: str, name: str) -> None:
        """Write the store of a sum, where its place is one."""
        s, writer = self.sizes, self.writer
        feature, place = (column, row) if self.rows == "places" else (row, column)
        image, *at = self._place_of(place, "y")
        tests: list[str] = []
        for d, axis in enumerate(s.axes):
            if axis.phases > 1:
                at[d] = f"({at[d]} * {axis.base} + {self.phase[d]})"
                if axis.places % axis.base:
                    tests.append(f"{at[d]} < {axis.places}")
        strides = (s.y[0], *s.y[2:])
        terms = [f"{i} * {y}" for i, y in zip((image, *at), strides, strict=True) if i != "0"]
        terms.append(f"({self.group} * {s.share} + {feature}) * {s.y[1]}")
        self.position = " + ".join(terms)
        with ExitStack() as stack:
            if tests:
                stack.enter_context(writer.block(f"if {' and '.join(tests)}:", barrier=True))
            super().deliver(row, column, name)

    def place(self, row: str, column: str) -> str:
        """Return the position that `deliver` has found."""
        return self.position
