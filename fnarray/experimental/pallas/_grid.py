"""A grid's turns: which block each works on, and the Refs that a kernel has of them.

Refs are values while functions are traced (decision 0023), so a kernel is a function like any other
and a grid a counted loop: what it writes is carried, and lies where it lies.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...control.signature import fun_text, parameters_of
from ...core.array import Array, aval_of
from ...core.dtypes import is_inexact
from ...core.frozen import frozen
from ...core.places import Slice
from ...core.primitive import Primitive
from ...core.ref import Ref, new_ref
from ...core.trace import Trace, bind, state, tracing, within
from ._blocks import BlockDim, Blocked, BlockSpec, BoundedSlice, Element, Indirect, Squeezed
from ._blocks import block_dim as block_dim
from ._blocks import get_block_size as get_block_size

__all__: list[str] = []

# ---- the grid around -----------------------------------------------------------------------------


class GridAxis(NamedTuple):
    """The name that traces know an axis of a grid by: what is traced in a kernel is of its grid."""

    number: int

    def __repr__(self) -> str:
        return f"axis {self.number} of a Pallas grid"


class GridTrace(Trace):
    """Says where in its grid a kernel is, while it is traced; operations pass through.

    Attributes
    ----------
    ids : tuple of Array
        The turn, along each axis.
    sizes : tuple of int or Array
        Of the grid.
    """

    def __init__(self, name: str, ids: Sequence[Array], sizes: Sequence[Any]):
        super().__init__(name)
        self.ids, self.sizes = tuple(ids), tuple(sizes)
        known = (s if isinstance(s, int) else -1 for s in sizes)
        self.axes = tuple((GridAxis(k), n) for k, n in enumerate(known))

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Pass an operation on."""
        with within(self.parent):
            return bind(prim, *args, **params)


def _around(what: str, axis: int) -> GridTrace:
    trace = state.trace
    while trace is not None and not isinstance(trace, GridTrace):
        trace = trace.parent
    if trace is None:
        raise ValueError(f"pallas.{what} is asked outside of a kernel: there is no grid.")
    if not 0 <= axis < len(trace.sizes):
        raise ValueError(
            f"pallas.{what}: axis {axis} is out of range of the grid of {trace.name}, which has "
            f"{len(trace.sizes)} axes."
        )
    return trace


def program_id(axis: int) -> Array:
    """Return where in the grid a kernel is, along one axis.

    Parameters
    ----------
    axis : int
        Which axis of the grid.

    Returns
    -------
    Array
        An int32 scalar, from 0.

    Raises
    ------
    ValueError
        There is no such axis, or no kernel around.
    """
    return _around("program_id", axis).ids[axis]


def num_programs(axis: int) -> Any:
    """Return the size of the grid along one axis.

    Parameters
    ----------
    axis : int
        Which axis of the grid.

    Returns
    -------
    int or Array
        An array where the grid was given one.

    Raises
    ------
    ValueError
        There is no such axis, or no kernel around.
    """
    return _around("num_programs", axis).sizes[axis]


# ---- arrays in blocks ----------------------------------------------------------------------------


def uninitialized(dtype: np.dtype) -> Any:
    """Return what lies where nothing was written: as JAX's interpreter has it, so that it shows."""
    if is_inexact(dtype):
        return np.asarray(np.nan, dtype)[()]
    if dtype.kind in "iu" and dtype != np.int16:  # which semaphores are, there
        return np.asarray(np.iinfo(dtype).min, dtype)[()]
    return np.zeros((), dtype)[()]


def empty(shape: Sequence[int], dtype: Any) -> Array:
    """Return an array whose elements are not set yet.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    dtype : dtype
        Its element type.

    Returns
    -------
    Array
        Of NaN, or the least integers: nobody is to depend on them.
    """
    dtype = aval_of(jnp.zeros((), dtype)).dtype
    return jnp.full(tuple(shape), uninitialized(dtype), dtype)


@frozen(eq=False)
class Window:
    """How one array is cut, and what it is called in messages.

    Attributes
    ----------
    where : str
    shape : tuple of int
        Of the array.
    dims : tuple of BlockDim
    index_map : callable or None
    """

    where: str
    shape: tuple[int, ...]
    dims: tuple[BlockDim, ...]
    index_map: Callable[..., Any] | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of a block, squeezed axes among it."""
        return tuple(map(get_block_size, self.dims))

    @property
    def squeezed(self) -> tuple[int, ...]:
        """Which axes the kernel does not see."""
        return tuple(k for k, d in enumerate(self.dims) if isinstance(d, Squeezed))

    @property
    def pads(self) -> tuple[tuple[int, int], ...]:
        """What is before and after the array so that blocks fill it."""
        out: list[tuple[int, int]] = []
        for n, dim, size in zip(self.shape, self.dims, self.sizes, strict=True):
            low, high = dim.padding if isinstance(dim, Element) else (0, 0)
            whole = n + low + high
            out.append((low, high + (-whole % size if size else 0)))
        return tuple(out)

    @property
    def is_whole(self) -> bool:
        """Whether a block is the array, wherever it is said to begin: it is moved inside."""
        return self.sizes == self.shape and not self.squeezed and not any(map(any, self.pads))

    def filled(self, x: Any) -> Array:
        """Return an array with what is beyond its ends, of which nothing is known."""
        x = jnp.asarray(x)
        if not any(map(any, self.pads)):
            return x
        return lax.pad(x, uninitialized(x.dtype), [(*p, 0) for p in self.pads])

    def cropped(self, x: Array) -> Array:
        """Return an array without what is beyond its ends."""
        lows = [low for low, _ in self.pads]
        if x.shape == self.shape:
            return x
        return lax.slice(x, lows, [low + n for low, n in zip(lows, self.shape, strict=True)])

    def at(self, ids: Sequence[Array], scalars: Sequence[Any]) -> Place:
        """Return where a turn's block is."""
        if self.index_map is None:
            found: tuple[Any, ...] = (0,) * len(self.shape)
        else:
            said: Any = self.index_map(*ids, *scalars)
            found = tuple(said) if isinstance(said, tuple | list) else (said,)
        if len(found) != len(self.dims):
            raise ValueError(
                f"Index map function {fun_text(cast('Any', self.index_map))} for {self.where} "
                f"must return {len(self.dims)} values to match block_shape="
                f"({', '.join(map(str, self.dims))}). Currently returning {len(found)} values."
            )
        starts: list[Any] = []
        counts: list[Any] = []
        for k, (i, dim) in enumerate(zip(found, self.dims, strict=True)):
            count = None
            if isinstance(dim, BoundedSlice):
                i, count = self._bounds(i, k, dim)
            starts.append(self._start(i, k, dim))
            counts.append(count)
        return Place(tuple(starts), tuple(counts))

    def _bounds(self, i: Any, k: int, dim: BoundedSlice) -> tuple[Any, Any]:
        if isinstance(i, Slice):
            return i.start, i.size
        if isinstance(i, slice) and isinstance(i.start, int) and isinstance(i.stop, int):
            return i.start, i.stop - i.start
        raise ValueError(
            f"The index map of {self.where} must give a pl.ds(start, size) for axis {k}, which is "
            f"{dim}; got {i!r}."
        )

    def _start(self, i: Any, k: int, dim: BlockDim) -> Any:
        if isinstance(dim, Indirect):
            raise NotImplementedError(
                f"pallas: axis {k} of {self.where} is {dim}, whose elements lie anywhere. Pass the "
                "array as one block, and index its Ref with the array of places."
            )
        dtype = getattr(i, "dtype", np.dtype(int if type(i) is int else type(i)))
        if np.shape(i) or dtype.kind not in "iu":
            raise ValueError(
                f"Index map function {fun_text(cast('Any', self.index_map))} for {self.where} must "
                f"return integer scalars. Output[{k}] has type "
                f"{aval_of(i).str_short() if isinstance(i, Array) else type(i).__name__}."
            )
        i = (
            np.int32(i)
            if isinstance(i, int | np.integer)
            else lax.convert_element_type(i, np.int32)
        )
        return i * np.int32(dim.block_size) if isinstance(dim, Blocked) else i


def _int32(x: Any) -> Any:
    if isinstance(x, int | np.integer):
        return np.int32(x)
    return lax.convert_element_type(x, np.int32)


class Place(NamedTuple):
    """Where a block begins, and how many elements count along axes of which the map says that."""

    starts: tuple[Any, ...]
    counts: tuple[Any, ...]


def window_of(spec: BlockSpec, where: str, shape: tuple[int, ...], axes: int, more: int) -> Window:
    """Return how a spec cuts an array.

    Parameters
    ----------
    spec : BlockSpec
    where : str
        What the array is, for messages.
    shape : tuple of int
        Of the array.
    axes, more : int
        How many axes the grid has, and scalars are fetched first: what the index map takes.

    Raises
    ------
    ValueError
        The block has another rank than the array, or the index map another number of parameters.
    """
    dims = tuple(map(block_dim, shape if spec.block_shape is None else spec.block_shape))
    if len(dims) != len(shape):
        raise ValueError(
            f"Block shape for {where} (= ({', '.join(map(str, dims))})) must have the same number "
            f"of dimensions as the array shape {shape}."
        )
    _check_arity(spec.index_map, where, axes, more)
    return Window(where, shape, dims, spec.index_map)


def _check_arity(index_map: Any, where: str, axes: int, more: int) -> None:
    if index_map is None or (params := parameters_of(index_map)) is None:
        return
    try:
        inspect.Signature(list(params.values())).bind(*range(axes + more))
    except TypeError as error:
        prefetched = f" and {more} scalars that are fetched first" if more else ""
        raise TypeError(
            f"Index map function {fun_text(index_map)} for {where} is called with the {axes} "
            f"indices of the grid{prefetched}: {error}. Give it a parameter for each."
        ) from None


def cut(value: Array, window: Window, place: Place) -> Array:
    """Return a block, as the kernel sees it."""
    return lax.squeeze(lax.dynamic_slice(value, place.starts, window.sizes), window.squeezed)


def put(value: Array, window: Window, place: Place, block: Array) -> Array:
    """Return an array with a block replaced."""
    block = lax.expand_dims(block, window.squeezed)
    if any(count is not None for count in place.counts):
        kept = lax.dynamic_slice(value, place.starts, window.sizes)
        for k, count in enumerate(place.counts):
            if count is not None:
                turn = lax.broadcasted_iota(np.int32, window.sizes, k)
                block = jnp.where(turn < count, block, kept)
    return lax.dynamic_update_slice(value, block, place.starts)


# ---- turns ---------------------------------------------------------------------------------------


def run_grid(
    name: str,
    grid: Sequence[Any],
    windows: Sequence[Window],
    buffers: Sequence[Ref],
    scalars: Sequence[Any],
    kernel: Callable[[list[Ref]], Any],
) -> None:
    """Run a kernel for each turn of a grid, on Refs of blocks; what it writes is put back.

    Parameters
    ----------
    name : str
        Of the kernel, for messages.
    grid : sequence of int or Array
        The last axis turns fastest.
    windows : sequence of Window
    buffers : sequence of Ref
        Of the arrays that are cut, filled.
    scalars : sequence
        What index maps are given after the indices: trees of Refs.
    kernel : callable
        Of the list of the blocks' Refs. An array that is one block is handed in as it is.
    """

    def turn(step: Any) -> None:
        step = _int32(step)  # the default integer, where the turns are known
        with tracing(GridTrace(name, _indices(step, grid), grid)) as here:
            ids = cast("GridTrace", here).ids
            places = [w.at(ids, scalars) for w in windows]
            blocks = [
                None if w.is_whole else cut(buffer[...], w, p)
                for w, buffer, p in zip(windows, buffers, places, strict=True)
            ]
            refs = [
                buffer if block is None else new_ref(block)
                for block, buffer in zip(blocks, buffers, strict=True)
            ]
            kernel(refs)
            for w, buffer, p, block, ref in zip(
                windows, buffers, places, blocks, refs, strict=True
            ):
                if block is not None and (left := ref[...]) is not block:
                    buffer[...] = put(buffer[...], w, p, left)

    if not len(grid):
        return turn(0)

    def body(step: Any, _: Any) -> tuple[()]:
        turn(step)
        return ()

    lax.fori_loop(np.int32(0), _total(grid), body, ())
    return None


def _total(grid: Sequence[Any]) -> Any:
    if all(isinstance(n, int) for n in grid):
        total = math.prod(grid)
        if total > np.iinfo(np.int32).max:
            raise ValueError(f"pallas: the grid {tuple(grid)} has {total} turns: over 2**31 - 1.")
        return np.int32(total)
    total: Any = np.int32(1)
    for n in grid:
        total = total * _int32(n)
    return total


def _indices(step: Any, grid: Sequence[Any]) -> list[Any]:
    """Return the indices of a turn, of which the last runs fastest."""
    out: list[Any] = []
    for k in reversed(range(len(grid))):
        n = _int32(grid[k])
        if type(n) is np.int32 and n <= 1:
            out.append(jnp.asarray(np.int32(0)))
        elif k == 0:
            out.append(step)
        else:
            out.append(lax.rem(step, n))
            step = lax.div(step, n)
    return out[::-1]
