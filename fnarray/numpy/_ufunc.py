"""Functions of elements as objects: ``add.reduce``, ``add.accumulate``, ``add.at``."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .. import lax
from ..core.apart import apart
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, is_bool
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array, canonical_axis, canonical_ints
from ._at import IndexUpdateHelper
from ._promote import as_operand, broadcast_to, operands, wide_integer
from ._select import choose_where

__all__ = ["frompyfunc", "ufunc"]


R = TypeVar("R")

#: Methods that add up in the default integer.
_WIDENING = ("reduce", "accumulate")


class ufunc(Generic[R]):  # noqa: N801 - named as in NumPy
    """A function of elements, with the whole-array functions that follow from it.

    Parameters
    ----------
    call : callable
        The function itself; broadcasts.
    nin, nout : int
        Numbers of array arguments and results.
    monoid : callable, optional
        ``lax`` reduction that folds elements by it.
    running : callable, optional
        ``lax`` function of running folds by it.
    at : str, optional
        Method of ``x.at[...]`` that applies it.
    identity : scalar, optional
        Value that changes nothing: the fold of no elements.
    widens : bool
        Whether folds of bools and narrow integers are in the default integer.
    """

    __name__: str

    def __init__(
        self,
        call: Callable[..., R],
        nin: int = 2,
        nout: int = 1,
        *,
        monoid: Callable[..., Array] | None = None,
        running: Callable[..., Array] | None = None,
        at: str = "",
        identity: Any = None,
        widens: bool = False,
    ):
        functools.update_wrapper(self, call)
        self.call: Callable[..., Any] = call
        self.nin = nin
        self.nout = nout
        self.nargs = nin
        self.identity = identity
        self._monoid = monoid
        self._running = running
        self._at = at
        self._widens = widens

    def __call__(self, *args: Any, out: None = None, where: None = None) -> R:
        if out is not None or where is not None:
            raise NotImplementedError(
                f"numpy.{self.__name__}: out and where must be None, as arrays are immutable. Use "
                "the result, and numpy.where."
            )
        return self.call(*args)

    def __repr__(self) -> str:
        return f"<fnarray.numpy.ufunc {self.__name__!r}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Be pickled as functions are, by name, where the name is this one's."""
        module = sys.modules.get(self.__module__)
        named = getattr(module, self.__name__, None) is self
        return self.__name__ if named else super().__reduce_ex__(protocol)

    def _operand(self, method: str, a: Any, dtype: Any = None) -> Array:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(
                f"numpy.{self.__name__}.{method} needs a function of two arrays and one result, "
                f"got {self.nin} and {self.nout}."
            )
        a = as_array(as_operand(f"{self.__name__}.{method}", a))
        if dtype is not None:
            return convert(a, canonicalize_dtype(dtype))
        return convert(a, wide_integer(a.dtype)) if self._widens and method in _WIDENING else a

    def reduce(
        self,
        a: Any,
        axis: int | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Fold elements along an axis, from its start.

        Parameters
        ----------
        a : array_like
        axis : int or None
            None folds all elements.
        dtype : dtype-like, optional
            To convert to first; sums and products of narrow integers widen by default.
        keepdims : bool
        initial : scalar, optional
            To start with.
        where : array_like of bool, optional
            Elements to fold; the others change nothing.

        Raises
        ------
        ValueError
            For no elements, or a ``where``, and neither ``initial`` nor an identity.
        """
        a = self._operand("reduce", a, dtype)
        mask = None if where is None else self._mask(where, a.shape)
        rank = a.ndim
        if axis is None:
            kept: Any = range(rank)
            a, along = lax.reshape(a, (a.size,)), 0
            mask = None if mask is None else lax.reshape(mask, (a.size,))
        else:
            along = canonical_axis(f"{self.__name__}.reduce", axis, rank)
            kept = (along,)
        if mask is None:
            folded = self._fold(a, along, initial)
        else:
            folded = self._fold_where(a, along, initial, mask)
        return lax.expand_dims(folded, kept) if keepdims else folded

    def _fold_where(self, a: Array, axis: int, initial: Any, where: Any) -> Array:
        """Fold the elements where ``where`` holds onto ``initial``, or onto the identity."""
        start = self.identity if initial is None else initial
        if start is None:
            raise ValueError(
                f"reduction operation {self.__name__} does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        if self._monoid is not None:
            # The start changes nothing where it is the identity; folded twice, it is as if once
            # in maxima and minima, which are the folds here that have none.
            nothing = start if self.identity is None else self.identity
            a = choose_where(where, a, convert(nothing, a.dtype))
            return self._fold(a, axis, initial)
        total: Any = start
        for k in range(a.shape[axis]):
            row, used = (lax.index_in_dim(x, k, axis, keepdims=False) for x in (a, where))
            total = choose_where(used, self.call(total, row), total)
        return as_array(total)

    def _mask(self, where: Any, shape: tuple[int, ...]) -> Array:
        where = as_array(as_operand(f"{self.__name__}.reduce", where))
        if not is_bool(where.dtype):
            raise ValueError(
                f"numpy.{self.__name__}.reduce: where must be bool, got {where.dtype}."
            )
        return broadcast_to(f"{self.__name__}.reduce", where, shape)

    def _fold(self, a: Array, axis: int, initial: Any) -> Array:
        length = a.shape[axis]
        if length == 0:
            start = self.identity if initial is None else initial
            if start is None:
                raise ValueError(f"numpy.{self.__name__}.reduce: no elements and no identity.")
            return lax.full(a.shape[:axis] + a.shape[axis + 1 :], start, a.dtype)
        if self._monoid is not None:
            folded = self._monoid(a, (axis,))
            return folded if initial is None else self.call(initial, folded)
        rows = [lax.index_in_dim(a, i, axis, keepdims=False) for i in range(length)]
        return functools.reduce(self.call, rows if initial is None else [initial, *rows])

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """Fold elements along an axis, keeping each step's result; see `reduce`."""
        a = self._operand("accumulate", a, dtype)
        axis = canonical_axis(f"{self.__name__}.accumulate", axis, a.ndim)
        if self._running is not None:
            return self._running(a, axis)
        rows = [lax.index_in_dim(a, i, axis, keepdims=False) for i in range(a.shape[axis])]
        steps = itertools.accumulate(rows, self.call)
        return lax.concatenate([lax.expand_dims(s, (axis,)) for s in steps], axis)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Array:
        """Fold the runs of elements between consecutive indices, which must be concrete.

        Where an index is not below the next, the run is its one element.
        """
        a = self._operand("reduceat", a, dtype)
        axis = canonical_axis(f"{self.__name__}.reduceat", axis, a.ndim)
        starts = canonical_ints(f"{self.__name__}.reduceat", "indices", indices)
        stops = [*starts[1:], a.shape[axis]]
        runs = [
            lax.slice_in_dim(a, i, j if i < j else i + 1, axis=axis)
            for i, j in zip(starts, stops, strict=True)
        ]
        return lax.concatenate(
            [lax.expand_dims(self._fold(run, axis, None), (axis,)) for run in runs], axis
        )

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """Return ``a`` with the function applied at some places; repeated places add up.

        Raises
        ------
        ValueError
            Unless ``inplace=False``: arrays are immutable.
        """
        if inplace:
            raise ValueError(
                f"numpy.{self.__name__}.at cannot change an array in place. Pass inplace=False and "
                "use the result."
            )
        a = self._operand("at", a)
        places = IndexUpdateHelper(a)[indices]
        if self._at:
            return getattr(places, self._at)(b)
        return places.set(self.call(places.get(), b))

    def outer(self, a: Any, b: Any, /) -> Array:
        """Apply the function to every pair of elements, one of each array."""
        a, b = (as_array(x) for x in operands(f"{self.__name__}.outer", a, b))
        return self.call(lax.reshape(a, a.shape + (1,) * b.ndim), b)


def ufunc_of(**options: Any) -> Callable[[Callable[..., R]], ufunc[R]]:
    """Make a `ufunc` of a function; the options are its parameters."""
    return lambda call: ufunc(call, **options)


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None
) -> ufunc[Any]:
    """Make a `ufunc` of a function of scalars written with array functions, so that it broadcasts.

    Parameters
    ----------
    func : callable
        Of ``nin`` arrays; gives ``nout`` results.
    nin, nout : int
    identity : scalar, optional
        The fold of no elements.
    """

    @functools.wraps(func)
    def call(*args: Any) -> Any:
        return apart(func(*args), args)

    return ufunc(call, nin, nout, identity=identity)
