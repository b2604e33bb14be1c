"""What `install_methods` gives to `Array`, for type checkers and editors.

Made by ``python -m tests.typing.stub`` from the functions themselves; a test compares.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..numpy._at import IndexUpdateHelper
from ..runtime.spec import Sharding
from ..typing import ArrayLike, DTypeLike
from .array import Array

Axis = int | Sequence[int] | None
Axes = int | Sequence[int] | None

class _Converts(Protocol):
    def __jax_array__(self) -> Any: ...

Operand = ArrayLike | _Converts

class Installed:
    __slots__ = ()
    def __abs__(self) -> Array: ...
    def __add__(self, other: Operand, /) -> Array: ...
    def __and__(self, other: Operand, /) -> Array: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace of the array API standard: ``fnarray.numpy``."""
    def __contains__(self, item: Any) -> bool:
        """Say whether any element equals a number."""
    def __divmod__(self, other: Operand, /) -> tuple[Array, Array]: ...
    def __eq__(self, other: object, /) -> Array: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __floordiv__(self, other: Operand, /) -> Array: ...
    def __ge__(self, other: Operand, /) -> Array: ...
    def __getitem__(self, index: Any) -> Array:
        """Return ``x[idx]``."""
    def __gt__(self, other: Operand, /) -> Array: ...
    def __invert__(self) -> Array: ...
    def __le__(self, other: Operand, /) -> Array: ...
    def __lshift__(self, other: Operand, /) -> Array: ...
    def __lt__(self, other: Operand, /) -> Array: ...
    def __matmul__(self, other: Operand, /) -> Array: ...
    def __mod__(self, other: Operand, /) -> Array: ...
    def __mul__(self, other: Operand, /) -> Array: ...
    def __ne__(self, other: object, /) -> Array: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __neg__(self) -> Array: ...
    def __or__(self, other: Operand, /) -> Array: ...
    def __pos__(self) -> Array: ...
    def __pow__(self, other: Operand, /) -> Array: ...
    def __radd__(self, other: Operand, /) -> Array: ...
    def __rand__(self, other: Operand, /) -> Array: ...
    def __rdivmod__(self, other: Operand, /) -> tuple[Array, Array]: ...
    def __rfloordiv__(self, other: Operand, /) -> Array: ...
    def __rlshift__(self, other: Operand, /) -> Array: ...
    def __rmatmul__(self, other: Operand, /) -> Array: ...
    def __rmod__(self, other: Operand, /) -> Array: ...
    def __rmul__(self, other: Operand, /) -> Array: ...
    def __ror__(self, other: Operand, /) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array:
        """Round half to even; without ``ndigits``, to integers."""
    def __rpow__(self, other: Operand, /) -> Array: ...
    def __rrshift__(self, other: Operand, /) -> Array: ...
    def __rshift__(self, other: Operand, /) -> Array: ...
    def __rsub__(self, other: Operand, /) -> Array: ...
    def __rtruediv__(self, other: Operand, /) -> Array: ...
    def __rxor__(self, other: Operand, /) -> Array: ...
    def __sub__(self, other: Operand, /) -> Array: ...
    def __truediv__(self, other: Operand, /) -> Array: ...
    def __xor__(self, other: Operand, /) -> Array: ...
    @property
    def T(self) -> Array:
        """The array with its axes in reverse order."""
    def addressable_data(self, index: int) -> Array:
        """Return the part of the array on one of its devices, by number."""
    @property
    def addressable_shards(self) -> list[Any]:
        """The parts of the array, with the device and the index of each."""
    def all(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
    ) -> Array:
        """Whether all elements along axes are nonzero; true for none. Parameters are as of `sum`."""
    def any(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
    ) -> Array:
        """Whether any element along axes is nonzero; false for none. Parameters are as of `sum`."""
    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """Index of the first largest element along an axis; that of the first NaN if there is one."""
    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """Index of the first smallest element along an axis; see `argmax`."""
    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """Return the indices that partition an array along an axis; see `partition`."""
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: Any = None,
    ) -> Array:
        """Return the indices that sort an array along an axis; see `sort`."""
    def astype(self, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
        """Convert elements to a dtype."""
    @property
    def at(self) -> IndexUpdateHelper:
        """What ``x.at`` is: ``x.at[idx]`` names places of an array, to be read or updated."""
    def byteswap(self) -> Array:
        """Return the elements with their bytes in reverse order."""
    def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Array:
        """Choose, for each element, from the array that ``a`` numbers."""
    def clip(self, min: Any = None, max: Any = None) -> Array:
        """Limit elements to the range from ``min`` to ``max``."""
    def clone(self) -> Array:
        """Return a copy."""
    @property
    def committed(self) -> bool:
        """Whether the array was put on its device, and so stays there."""
    def compress(
        self,
        condition: Any,
        axis: int | None = None,
        *,
        size: int | None = None,
        fill_value: Any = 0,
        out: None = None,
    ) -> Array:
        """Return the slices along an axis (or elements) at which a condition holds."""
    def conj(self) -> Array:
        """Complex conjugate; real numbers stay as they are."""
    def conjugate(self) -> Array:
        """Complex conjugate; real numbers stay as they are."""
    def copy(self, order: str | None = None) -> Array:
        """Return a copy of an array."""
    def copy_to_host_async(self) -> None:
        """Do nothing: to read an array of a GPU copies it."""
    def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        """Running products along an axis; see `cumsum`."""
    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        """Running sums along an axis."""
    @property
    def device(self) -> Any:
        """The device the array is on; of several, the sharding."""
    def devices(self) -> set[Any]:
        """Return the devices the array is on."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return a diagonal of the matrices along two axes, as the last axis of the result."""
    def dot(
        self,
        b: Any,
        *,
        precision: Any = None,
        preferred_element_type: Any = None,
        out_sharding: Any = None,
    ) -> Array:
        """Sum products over the last axis of ``a`` and the last but one of ``b``, or its only one."""
    @property
    def flat(self) -> Iterator[Array]:
        """An iterator over all elements, the last axis fastest."""
    def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """Return the elements in one axis, as ``ravel``."""
    @property
    def format(self) -> Array:
        """How the array lies in memory, the last axis fastest, and where it is."""
    @property
    def global_shards(self) -> list[Any]:
        """The parts of the array, as ``addressable_shards``."""
    @property
    def imag(self) -> Array:
        """The imaginary parts."""
    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read all of it: True."""
    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device has all of it."""
    @property
    def mT(self) -> Array:
        """The array with its last two axes exchanged."""
    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Largest element along axes; NaN where there is one."""
    def mean(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = None,
    ) -> Array:
        """Mean of elements along axes; NaN over none."""
    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Smallest element along axes; NaN where there is one. See `max`."""
    def nonzero(self, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
        """Return the indices of elements that are not zero, an array for each axis."""
    def on_device_size_in_bytes(self) -> int:
        """Return the bytes of all elements."""
    def platform(self) -> str:
        """Return ``'cpu'`` or ``'gpu'``."""
    def prod(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        """Product of elements along axes; parameters are as of `sum`."""
    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """Largest less smallest element along axes; see `max`."""
    def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """Return an array's elements as a vector, in C or Fortran order."""
    @property
    def real(self) -> Array:
        """The real parts."""
    def repeat(
        self,
        repeats: Any,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: Any = None,
    ) -> Array:
        """Repeat each element along an axis."""
    def reshape(
        self, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None
    ) -> Array:
        """Return an array's elements in another shape of the same size."""
    def round(self, decimals: int = 0, out: None = None) -> Array:
        """Round to a number of decimals, halves to even."""
    def searchsorted(
        self, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
    ) -> Array:
        """Return the places at which values would be inserted into a sorted vector."""
    @property
    def sharding(self) -> Sharding:
        """How the array is cut over devices."""
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """Return the elements in rising order along an axis; NaNs are last."""
    def squeeze(self, axis: Axes = None) -> Array:
        """Remove axes of size 1: all of them, or those given."""
    def std(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Array:
        """Standard deviation along axes: the square root of `var`, whose parameters it has."""
    def sum(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        """Sum of elements along axes."""
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Exchange two axes."""
    def take(
        self,
        indices: Any,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: Any = None,
    ) -> Array:
        """Return elements at indices along an axis, or of the flattened array."""
    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """Return the array on a device."""
    def trace(
        self, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
    ) -> Array:
        """Sum a diagonal of the matrices along two axes."""
    def transpose(self, *axes: Any) -> Array:
        """Reverse the order of the axes, or put them in the order given."""
    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the first element."""
    def var(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Array:
        """Variance along axes: the mean squared distance to the mean, real for complex numbers too."""
    def view(self, dtype: Any = None, type: Any = None) -> Array:
        """Read the elements' bits as another dtype; the last axis shrinks or grows with their size."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def __bool__(self) -> bool: ...
    def __complex__(self) -> complex: ...
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __float__(self) -> float: ...
    def __hash__(self) -> int:
        """Return hash(self)."""
    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def block_until_ready(self) -> Array:
        """Return the array itself; results are always ready."""
    def delete(self) -> None:
        """Let the memory go; whoever reads the array from then on gets a `RuntimeError`."""
    def is_deleted(self) -> bool:
        """Whether the array was deleted, or donated to a compiled function: see `delete`."""
    def is_ready(self) -> bool:
        """Return True: results are always ready."""
    def item(self, *index: int) -> Any:
        """Return one element as a Python scalar."""
    def tobytes(self, order: Any = "C") -> bytes:
        """Return the elements' bytes."""
    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars."""
