"""How arrays lie in memory. All of ours are dense, the last axis fastest."""

from __future__ import annotations

from typing import Any

from ..core.frozen import frozen

__all__ = ["Format", "Layout"]


class _Automatic:
    """The compiler's choice."""

    def __repr__(self) -> str:
        return "AUTO"


class Layout:
    """An order of axes in memory, from the slowest to the fastest.

    Parameters
    ----------
    major_to_minor : tuple of int
    tiling : None or empty
        Arrays have no tiles.
    sub_byte_element_size_in_bits : int

    Raises
    ------
    NotImplementedError
        For an order that arrays do not have.
    """

    AUTO = _Automatic()

    def __init__(
        self,
        major_to_minor: tuple[int, ...],
        tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self) -> Any:
        return self.major_to_minor, self.tiling or (), self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the order has the axes of a shape."""
        if sorted(self.major_to_minor) != list(range(len(aval_shape))):
            raise ValueError(
                f"Layout: {self.major_to_minor} is no order of the axes of shape {aval_shape}."
            )


@frozen
class Format:
    """A layout and a sharding; a leaf of trees."""

    layout: Any = None
    sharding: Any = None


def row_major(rank: int) -> Layout:
    """Return the layout that every array has."""
    return Layout(tuple(range(rank)), ())


def format_of(x: Any) -> Format:
    """How an array is laid out, and where it is."""
    return Format(row_major(x.ndim), x.sharding)


def check_layout(what: str, layout: Any) -> None:
    """Raise `NotImplementedError` for a layout that arrays do not have; AUTO and None are any."""
    if layout is None or layout is Layout.AUTO:
        return
    if layout.major_to_minor != tuple(range(len(layout.major_to_minor))) or layout.tiling:
        raise NotImplementedError(
            f"{what}: arrays lie in memory with the last axis fastest, got {layout}. Transpose the "
            "array instead."
        )
