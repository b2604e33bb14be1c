"""Immutable arrays."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from ..config import config
from ..errors import UnexpectedTracerError
from . import hooks
from .avals import SMALL_INT, ShapedArray, ShapeDtypeStruct, ambiguous, aval_of_number
from .dtypes import canonicalize_dtype, dtype_and_weak
from .hooks import install_operators
from .lines import copied
from .quiet import quietly
from .tree_nodes import Whole

if TYPE_CHECKING:
    from .installed import Installed
else:
    Installed = object


def _keep_freed_memory() -> None:
    """Have glibc keep up to 64 MB that arrays free, rather than give it back to the system.

    What was given back is faulted in again page by page: five results of 4 MB took 33 ms a call,
    of 3,900 faults, on a busy machine, and 2.5 without. glibc keeps twice the largest block that
    was mapped and freed, up to 32 MB: this is one, never touched (1 us). It changes nothing for
    other allocators, nor where the user has set ``MALLOC_TRIM_THRESHOLD_``.
    """
    with suppress(MemoryError):
        np.empty((1 << 25) - (1 << 16), np.uint8)


_keep_freed_memory()


class Array(Whole, Installed):
    """An immutable n-dimensional array; also the base of tracers.

    Operators and methods are installed by ``fnarray.numpy`` (see `install_methods`), so that an
    array and the tracer that stands for it answer to the same names. ``isinstance(x, Array)``
    holds for both.
    """

    __slots__ = ("__weakref__",)

    aval: ShapedArray
    where_from: Any  # of tracers
    # Makes NumPy defer to our operators: `np_array * x` calls `x.__rmul__`.
    __array_priority__ = 100

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way in promotion."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.aval.shape[0]))  # type: ignore[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} is immutable: x[idx] = y is not possible. Use the functional "
            "form, which returns a new array: x = x.at[idx].set(y) "
            "(or .add, .multiply, .min, .max, ...)."
        )

    def item(self, *index: int) -> Any:
        """Return one element as a Python scalar."""
        return np.asarray(self).item(*index)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("an array's elements cannot be deleted: use fnarray.numpy.delete")


class _Late:
    """A member not yet installed: installs them all, and stands for the real one.

    It stands in the class, where Python looks operators up, and ``Array.sum`` is found.
    """

    def __init__(self, name: str):
        self.name = name

    def __get__(self, x: Array | None, owner: type) -> Any:
        install_operators()
        return getattr(owner if x is None else x, self.name)


_TWO_SIDED = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_OPERATORS = (
    "eq ne lt le gt ge neg pos invert abs contains getitem round array_namespace "
    f"{_TWO_SIDED} r{_TWO_SIDED.replace(' ', ' r')}"
)
_METHODS = """
    T addressable_data addressable_shards all any argmax argmin argpartition argsort astype at
    byteswap choose clip clone committed compress conj conjugate copy copy_to_host_async cumprod
    cumsum device devices diagonal dot flat flatten format global_shards imag is_fully_addressable
    is_fully_replicated mT max mean min nonzero on_device_size_in_bytes platform prod ptp ravel real
    repeat reshape round searchsorted sharding sort squeeze std sum swapaxes take to_device trace
    transpose unsafe_buffer_pointer var view
"""
for _name in [f"__{_name}__" for _name in _OPERATORS.split()] + _METHODS.split():
    setattr(Array, _name, _Late(_name))


def install_methods(methods: dict[str, Any]) -> None:
    """Give arrays and tracers their operators, methods and properties."""
    for name, method in methods.items():
        setattr(Array, name, method)


class Deletable(Array):
    """An array with a value, whose memory can be let go before the array itself."""

    __slots__ = ()

    #: The class of those that were deleted, and the attribute that held the memory.
    _deleted: ClassVar[type[Any]]
    _held: ClassVar[str]

    def is_deleted(self) -> bool:
        """Whether the array was deleted, or donated to a compiled function: see `delete`."""
        return False

    def delete(self) -> None:
        """Let the memory go; whoever reads the array from then on gets a `RuntimeError`."""
        delattr(self, self._held)
        self.__class__ = self._deleted

    def _again(self) -> Self:
        """Return another array over the same memory: each may be deleted without the other."""
        other = object.__new__(type(self))
        for kind in type(self).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if name != "__weakref__":
                    setattr(other, name, getattr(self, name))
        return other


class ArrayImpl(Deletable):
    """An array with a value, in a NumPy buffer that nothing writes to any more.

    The buffer is C-contiguous, aligned and in native byte order: compiled kernels rely on it.
    """

    __slots__ = ("_data", "aval")

    _held = "_data"

    def __init__(self, data: np.ndarray, aval: ShapedArray):
        self._data = data
        self.aval = aval

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is None or np.dtype(dtype) == self._data.dtype:
            if copy:
                return self._data.copy()
            view = self._data.view()
            view.flags.writeable = False
            return view
        if copy is False:
            raise ValueError(f"a conversion from {self.dtype} to {dtype} needs a copy")
        return self._data.astype(dtype)

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise ValueError(ambiguous(self.shape))
        return bool(self._data)

    def __int__(self) -> int:
        return int(self._real_scalar("int"))

    def __float__(self) -> float:
        return float(self._real_scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self._data.ndim or self._data.dtype.kind not in "iu":
            raise TypeError(
                f"only integer arrays of rank 0 can be an index, got {self.aval.str_short()}"
            )
        return int(self._data)

    def _real_scalar(self, kind: str) -> Any:
        if self._data.dtype.kind == "c":
            raise TypeError(
                f"a complex number does not convert to Python {kind}, got {self.aval.str_short()}. "
                "Use x.real."
            )
        return self._scalar(kind)

    def _scalar(self, kind: str) -> Any:
        if self._data.ndim:
            raise TypeError(
                f"only arrays of rank 0 convert to Python {kind}, got shape {self.shape}. "
                "Use x.item() for an array of one element."
            )
        return self._data[()]

    def __format__(self, spec: str) -> str:
        if self._data.ndim == 0:
            scalar = self._data[()]
            return format(scalar.item() if spec else scalar, spec)
        if not spec:
            return str(self)
        raise TypeError(f"unsupported format string passed to Array of shape {self.shape}")

    def __str__(self) -> str:
        return str(self._data)

    def __repr__(self) -> str:
        name = self.dtype.name
        tail = f"dtype={name}" + (", weak_type=True" if self.weak_type else "") + ")"
        if self._data.size == 0:
            return f"Array([], shape={self.shape}, {tail}"
        width = np.get_printoptions()["linewidth"]
        body = np.array2string(
            self._data, prefix="Array(", suffix=",", separator=", ", max_line_width=width
        )
        # As JAX prints it, to the column: what does not fit is set apart, on the same line.
        last = len(body) - body.rfind("\n") + 1
        gap = " " if last + len(tail) + 1 <= width else " " * len("Array(")
        return f"Array({body},{gap}{tail}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the elements as printed, under dtype, shape and size."""
        about = f"{self.aval.str_short()}, {self.nbytes:,} bytes"
        # Notebooks' own style for pre is that of text.
        pre = f'<pre style="font-family:monospace">{escape(str(self))}</pre>'
        return f"<small>{escape(about)}</small>{pre}"

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        row = self.aval.update(shape=self.shape[1:])
        return (ArrayImpl(np.asarray(part), row) for part in self._data)

    def __hash__(self) -> int:
        raise TypeError(
            "unhashable type: 'Array' (its == is elementwise). Use x.tobytes() as a key, or "
            "pass the array as a traced argument rather than a static one."
        )

    def __reduce__(self):
        return _unpickle, (self._data, self.weak_type)

    def __copy__(self) -> ArrayImpl:
        return ArrayImpl(self._data.copy(), self.aval)

    def __deepcopy__(self, memo: dict[int, Any]) -> ArrayImpl:
        return self.__copy__()

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._data.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def item(self, *index: int) -> Any:
        """Return one element as a Python scalar."""
        return self._data.item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars."""
        return self._data.tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the elements' bytes."""
        return self._data.tobytes(order)

    def __bytes__(self) -> bytes:
        # As NumPy's: elements lie in memory, and an integer is a length as Python's is. Without
        # this, `bytes` would take the elements' values for bytes.
        return self.tobytes() if self.ndim or self.dtype.kind not in "iu" else bytes(int(self))

    def block_until_ready(self) -> ArrayImpl:
        """Return the array itself; results are always ready."""
        return self

    def is_ready(self) -> bool:
        """Return True: results are always ready."""
        return True


class _Deleted:
    """What deleted arrays have in place of elements: an error."""

    __slots__ = ()

    aval: ShapedArray

    @property
    def _data(self) -> Any:
        raise RuntimeError(
            f"Array has been deleted with shape={self.aval.str_short()}. It was donated to a "
            "compiled function (donate_argnums), or its delete() was called. Use the function's "
            "result in its place, or donate a copy: x.copy()."
        )

    #: What arrays on other kinds of devices hold theirs by.
    _there = handle = _data

    def is_deleted(self) -> bool:
        """Return True."""
        return True

    def delete(self) -> None:
        """Do nothing: it is."""


class DeletedArray(_Deleted, ArrayImpl):  # pyright: ignore[reportIncompatibleVariableOverride]
    """An array that was deleted: its shape and dtype are still known."""

    __slots__ = ()


ArrayImpl._deleted = DeletedArray  # pyright: ignore[reportPrivateUsage]


#: What a compiled function knows an argument by: its type, and where it is said to be if it is.
ArrayImpl._known_as = ArrayImpl.aval  # type: ignore[attr-defined]
#: What programs are handed of it; arrays of another device have both of their own.
ArrayImpl._handed = ArrayImpl._data  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateUsage]


class Elsewhere(Exception):
    """An operand lies on another kind of device, where ``run(prim, args, params)`` evaluates.

    Where a function of several operations is better run as one, ``program(graph, args)`` does.
    """

    def __init__(self, run: Any, program: Any = None):
        super().__init__("an array of another device")
        self.run, self.program = run, program


class _Default:
    """Where values go that are nowhere yet.

    Attributes
    ----------
    find : callable or None
        Returns the kind of device, with ``evaluate(prim, args, params)`` and ``put(x)``, or None
        for the host's memory; None itself where there is no other than that.
    """

    find: Any = None

    def put(self, x: Any) -> Any:
        """Return an array that is nowhere yet on the default device."""
        there = None if self.find is None else self.find()
        return x if there is None else there.put(x)


def stays_on_host(x: Any) -> bool:
    """Whether a value is the host's, or workers', to stay: plain numbers go where others are."""
    if getattr(x, "placement", None) is not None:
        return True
    return isinstance(x, ArrayImpl) and (x.ndim > 0 or type(x) is not ArrayImpl)


#: Set by whoever finds another kind of device on the machine.
default = _Default()


class ArrayPlaced(ArrayImpl):
    """An array of which it is said where it is; base of its class.

    All devices share the host's memory: the elements are where any array's are. What is said is
    found out for results of operations, too.
    """

    __slots__ = ()

    def elsewhere(self) -> Elsewhere:
        """Return what tells an operation that it is said where its operands are."""
        return Elsewhere(hooks.evaluate_placed)


def is_placed(x: Any) -> bool:
    """Whether it is said where an array is."""
    return isinstance(x, ArrayPlaced) or (isinstance(x, Array) and x.aval.place is not None)


class ArrayElsewhere(Deletable):
    """An array on another kind of device than the processor (decision 0016); base of its class."""

    __slots__ = ()

    @property
    def place(self) -> Any:
        """The device."""
        raise NotImplementedError

    def on_host(self) -> ArrayImpl:
        """Return the same elements in the host's memory."""
        raise NotImplementedError

    def elsewhere(self) -> Elsewhere:
        """Return what tells an operation that its operands lie there."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"an array on {self.place} needs a copy to be NumPy's")
        return self.on_host().__array__(dtype)

    def __bool__(self) -> bool:
        return bool(self.on_host())

    def __int__(self) -> int:
        return int(self.on_host())

    def __float__(self) -> float:
        return float(self.on_host())

    def __complex__(self) -> complex:
        return complex(self.on_host())

    def __index__(self) -> int:
        return self.on_host().__index__()

    def __format__(self, spec: str) -> str:
        return format(self.on_host(), spec)

    def __str__(self) -> str:
        return str(self.on_host())

    def __repr__(self) -> str:
        return repr(self.on_host())

    def __hash__(self) -> int:
        return hash(self.on_host())  # raises, and says why

    def __reduce__(self) -> Any:
        return self.on_host().__reduce__()

    def item(self, *index: int) -> Any:
        """Return one element as a Python scalar."""
        return self.on_host().item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars."""
        return self.on_host().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the elements' bytes."""
        return self.on_host().tobytes(order)

    __bytes__ = ArrayImpl.__bytes__


def _unpickle(data: np.ndarray, weak_type: bool) -> ArrayImpl:
    return from_numpy(data, weak_type=weak_type)


def native(data: np.ndarray, dtype: np.dtype, *, copy: bool = False) -> np.ndarray:
    """Return ``data`` as a C-contiguous, aligned, native buffer of ``dtype``, of no subclass."""
    if type(data) is not np.ndarray:
        data = np.asarray(data)
    if data.dtype is not dtype and (data.dtype != dtype or not data.dtype.isnative):
        return quietly(copied, data, dtype)
    fits = not copy and data.flags.c_contiguous and data.flags.aligned
    return data if fits else copied(data, dtype)


def from_numpy(data: np.ndarray, *, weak_type: bool = False, copy: bool = True) -> ArrayImpl:
    """Return an array of a NumPy array's elements, in the canonical dtype.

    Parameters
    ----------
    data : numpy.ndarray
    weak_type : bool
    copy : bool
        False promises that nobody writes to ``data`` again.

    Raises
    ------
    TypeError
        For a dtype with no counterpart: objects, strings, dates, records.
    """
    dtype = canonicalize_dtype(data.dtype)
    data = native(data, dtype, copy=copy)
    return ArrayImpl(data, ShapedArray(data.shape, dtype, weak_type))


def stored(data: Any, aval: ShapedArray) -> ArrayImpl:
    """Return an array of what NumPy computed, in a dtype that was promised for it."""
    if type(data) is not np.ndarray or data.dtype is not aval.dtype:
        data = np.asarray(data, aval.dtype)
    return ArrayImpl(data if data.flags.c_contiguous else data.copy(order="C"), aval)


def aval_of(x: Any) -> ShapedArray:
    """Return the aval of anything that counts as an array.

    Raises
    ------
    TypeError
        For values that are not arrays or numbers; lists are not arrays (use ``numpy.asarray``).
    OverflowError
        For a Python int outside the default integer dtype.
    """
    kind = cast("type[Any]", type(x))
    if kind is float or kind is bool or (kind is int and -SMALL_INT < x < SMALL_INT):
        return aval_of_number(kind, config.enable_x64)
    if isinstance(x, Array):
        return x.aval
    dtype, weak = dtype_and_weak(x)
    return ShapedArray(() if isinstance(x, np.generic) else np.shape(x), dtype, weak)


def asarray(x: Any) -> ArrayImpl:
    """Return an array of a number or NumPy array; copies the latter, as it may change.

    Raises
    ------
    TypeError, OverflowError
        As `aval_of`.
    UnexpectedTracerError
        For a tracer, which has no value.
    """
    if isinstance(x, ArrayImpl):
        return x
    if type(x) in (int, float, bool):
        aval = aval_of(x)
        return ArrayImpl(np.array(x, aval.dtype), aval)
    if isinstance(x, Array):
        if isinstance(x, ArrayElsewhere):
            raise TypeError(
                f"an array on {x.place} is not in the host's memory: ask for numpy.asarray(x), or "
                "fnarray.device_put(x, fnarray.devices('cpu')[0])."
            )
        advice = "Return values from traced functions; do not store them."
        if getattr(getattr(x, "frame", None), "alive", False):
            advice = (
                "A function with a derivative of its own, and its rule, may not close over what is "
                "being differentiated: pass it as an argument."
            )
        raise UnexpectedTracerError(
            f"{x!r} is used outside the function whose tracing made it. "
            f"It is {x.where_from()}. {advice}"
        )
    if isinstance(x, ShapeDtypeStruct):
        raise TypeError(
            f"A ShapeDtypeStruct does not have a value and cannot be used as a constant, got {x}. "
            "Pass an array; eval_shape needs no values."
        )
    aval = aval_of(x)
    if isinstance(x, np.ndarray):
        return from_numpy(cast("np.ndarray", x))
    if isinstance(x, np.generic | numbers.Number):
        return ArrayImpl(np.array(x, aval.dtype), aval)
    return from_numpy(np.asarray(x))
