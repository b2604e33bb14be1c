"""Refs: names for arrays, which may be given another value.

A function that writes to a Ref is still pure in what it means: its trace takes the value that a Ref
of outside has, and gives the one it leaves behind (decision 0023). No graph holds a Ref.
"""

# Functions of this module look into the Refs, and arrays into memory: they are what a Ref is.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from ..errors import UnexpectedTracerError
from .array import Array, ArrayImpl, asarray, aval_of
from .avals import ShapedArray
from .graph import Literal
from .source import Source, user_source
from .trace import JitTracer, Trace, state

_BASIC = (int, np.integer, slice, type(...), type(None))


class AbstractRef:
    """What tracing knows of a Ref: the aval of its values. Interned, as that is.

    Parameters
    ----------
    inner_aval : ShapedArray
    """

    __slots__ = ("inner_aval",)

    inner_aval: ShapedArray

    def __new__(cls, inner_aval: ShapedArray) -> AbstractRef:
        """Return the one of these values."""
        return _interned(cls, inner_aval)

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.inner_aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether values give way in promotion: False, their type was chosen."""
        return False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.inner_aval.size

    def str_short(self, short_dtypes: bool = False) -> str:
        """``Ref{float32[3,4]}``."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    __repr__ = __str__ = str_short


@cache
def _interned(cls: type[AbstractRef], inner: ShapedArray) -> Any:
    self = object.__new__(cls)
    self.inner_aval = inner
    return self


class Ref:
    """A mutable array: a name for a value that ``ref[...] = x`` replaces, made by `new_ref`.

    ``ref[i]`` reads and ``ref[i] = x`` writes, ``ref[...]`` all of it. Functions may take it as an
    argument or be closed over it; they cannot return it.
    """

    __slots__ = ("__weakref__", "_shared", "_value", "aval", "home", "origin")

    def __init__(self, home: Trace | None, value: Array, origin: Source | str, *, shared: bool):
        self.home = home
        self.origin = origin
        self.aval = AbstractRef(value.aval)
        self._value: Array | None = value
        # Whether an array that somebody holds lies in the same memory.
        self._shared = shared

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def at(self) -> RefIndexer:
        """Parts of the Ref: ``ref.at[i]`` reads and writes there."""
        return RefIndexer(self, ())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._value is None or self.home is not None:
            return f"{self.aval}" + (" (frozen)" if self._value is None else "")
        return repr(self._value).replace("Array", "Ref", 1)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("The truth value of a Ref is not defined: read it first, ref[...].")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(f"A {self.aval} is no array: read its value first, ref[...].")

    def __reduce__(self) -> Any:
        return new_ref, (self[...],)

    def __deepcopy__(self, memo: dict[int, Any]) -> Ref:
        return new_ref(self[...])

    def __getitem__(self, index: Any) -> Array:
        value = value_of(self)
        if _is_whole(index):
            self._shared |= self.home is state.trace
            return value
        _checked(self, index)
        part = value[index]
        if type(part) is ArrayImpl and np.may_share_memory(part._data, value._data):  # type: ignore[attr-defined]
            part = ArrayImpl(part._data.copy(), part.aval)
        return part

    def __setitem__(self, index: Any, x: Any) -> None:
        x = _fitting(self, x, "set")
        whole = _is_whole(index)
        wanted = self.shape if whole else _checked(self, index)
        if wanted is not None and wanted != x.shape:
            raise ValueError(
                f"Invalid shape for `swap`: the part of {self.aval} that is written has the shape "
                f"{wanted}, the value has {x.shape}. Broadcast it first: "
                "fnarray.numpy.broadcast_to(value, shape)."
            )
        if whole:
            store(self, x)
        elif wanted is not None and state.trace is None and self.home is None:
            self.taken()[index] = asarray(x)._data
        else:
            store(self, value_of(self).at[index].set(x))

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add to what lies at an index."""
        addupdate(self, idx, x)

    # ---- memory: of a Ref that belongs to no trace ----

    def buffer(self) -> np.ndarray:
        """Return the memory, to be read."""
        return asarray(value_of(self))._data

    def taken(self) -> np.ndarray:
        """Return the memory, to be written: a copy of its own where an array lies there, too."""
        data = self.buffer()
        if self._shared or not data.flags.writeable:
            data = data.copy()
            self.give(data)
        return data

    def give(self, data: np.ndarray, *, shared: bool = False) -> None:
        """Let the Ref lie in other memory."""
        self._value = ArrayImpl(data, self.aval.inner_aval)
        self._shared = shared


class RefIndexer:
    """``ref.at``, and the parts of it: ``ref.at[i]``, ``ref.at[i].at[j]``."""

    __slots__ = ("_path", "_ref")

    def __init__(self, ref: Ref, path: tuple[Any, ...]):
        self._ref = ref
        self._path = path

    def __getitem__(self, index: Any) -> TransformedRef:
        return TransformedRef(self._ref, (*self._path, index))


class TransformedRef:
    """A part of a Ref, to be read and written like one."""

    __slots__ = ("_path", "_ref")

    def __init__(self, ref: Ref, path: tuple[Any, ...]):
        self._ref = ref
        self._path = path

    @property
    def ref(self) -> Ref:
        """The Ref that it is a part of."""
        return self._ref

    @property
    def at(self) -> RefIndexer:
        """Parts of this part."""
        return RefIndexer(self._ref, self._path)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self[...].shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self._ref.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"{self._ref.aval}" + "".join(f".at[{i!r}]" for i in self._path)

    def __getitem__(self, index: Any) -> Array:
        x: Any = self._ref[self._path[0]]
        for inner in (*self._path[1:], index):
            x = x[inner]
        return x

    def __setitem__(self, index: Any, x: Any) -> None:
        path = [i for i in (*self._path, index) if not _is_whole(i)] or [...]
        places = [self._ref[path[0]]]
        for inner in path[1:-1]:
            places.append(places[-1][inner])
        for place, inner in zip(reversed(places[: len(path) - 1]), reversed(path), strict=False):
            x = place.at[inner].set(x)
        self._ref[path[0]] = x


# ---- values in the trace in progress -------------------------------------------------------------


def value_of(ref: Any) -> Array:
    """Return the value that a Ref has in the trace in progress.

    Raises
    ------
    UnexpectedTracerError
        It belongs to a trace that has ended.
    ValueError
        It is frozen.
    """
    trace = state.trace
    if ref.home is not trace:
        if trace is None:
            raise _leaked(ref)
        return trace.load(ref)
    if ref._value is None:
        raise ValueError(f"{ref.aval} is read or written after freeze, which ended its life.")
    return ref._value


def store(ref: Ref, value: Array) -> None:
    """Give a Ref another value in the trace in progress, of the same shape and dtype."""
    trace = state.trace
    if ref.home is trace:
        value_of(ref)  # raises, where it is frozen
        ref._value, ref._shared = value, True
    elif trace is None:
        raise _leaked(ref)
    else:
        trace.store(ref, value)


def _leaked(ref: Ref) -> UnexpectedTracerError:
    where = ref.home.name if ref.home is not None else "another function"
    return UnexpectedTracerError(
        f"A {ref.aval} of {where} is used at {user_source()}, outside of it.\n  It is "
        f"{described(ref)}.\n  A Ref lives as long as the function that made it runs: return its "
        "value, ref[...], and make a new one."
    )


def described(ref: Ref) -> str:
    """Say where a Ref came from, as a clause."""
    return ref.origin if isinstance(ref.origin, str) else f"made at {ref.origin}"


def local(trace: Trace, tracer: JitTracer) -> Ref:
    """Return the Ref that stands for one among the arguments of a function that is traced."""
    return Ref(trace, tracer, f"passed in as {tracer.where_from()}", shared=False)


def check_distinct(name: str, where: str, operands: Sequence[Any], captured: int) -> None:
    """Raise `ValueError` for a Ref that comes twice: its value would depend on the order."""
    seen: dict[int, int] = {}
    for k, x in enumerate(operands):
        if type(x) is not Ref:
            continue
        before = seen.setdefault(id(x), k)
        if before == k:
            continue
        if before < captured:
            raise ValueError(
                f"when tracing {name} for {where}, a mutable array reference of type {x.aval} was "
                f"both closed over and passed as argument {k - captured}. Do one of the two."
            )
        raise ValueError(
            "only one reference to a mutable array may be passed as an argument to a function, but "
            f"when tracing {name} for {where} the mutable array reference of type {x.aval} "
            f"appeared at both argument {before - captured} and argument {k - captured}."
        )


def _is_whole(index: Any) -> bool:
    """Whether an index selects all there is."""
    if type(index) is not tuple:
        return index is ...
    parts = cast("tuple[Any, ...]", index)
    return not parts or (len(parts) == 1 and parts[0] is ...)


def _fitting(ref: Ref, x: Any, name: str) -> Array:
    """Return what is to be written, as an array; raise `ValueError` for another dtype."""
    if type(x) is Ref:
        raise TypeError(f"Ref: a {ref.aval} cannot hold another Ref. Write its value: other[...].")
    x = x.array() if type(x) is Literal else x if isinstance(x, Array) else asarray(x)
    want = ref.aval.inner_aval
    if x.dtype != want.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {want.dtype}. Value dtype: {x.dtype}. "
            f"Convert the value: x.astype({str(want.dtype)!r})."
        )
    return x.astype(want.dtype) if x.aval.weak_type else x


def _checked(ref: Ref, index: Any) -> tuple[int, ...] | None:
    """Return the shape that a static index selects, None of another; raise where it is outside."""
    parts = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, _BASIC) and not isinstance(i, bool) for i in parts):
        return None
    if any(isinstance(b, Array) for i in parts if type(i) is slice for b in (i.start, i.stop)):
        return None
    try:
        return np.broadcast_to(np.False_, ref.shape)[index].shape
    except IndexError as error:
        raise ValueError(f"Out of bound indexer {index!r} of {ref.aval}: {error}.") from None


# ---- the interface -------------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Create a mutable array with an initial value.

    Parameters
    ----------
    init_val : Array
        An array or a number.
    memory_space : None
        Accepted for compatibility: there is one memory.
    kind : {None, "no_grad_no_remat"}
        Accepted for compatibility.

    Returns
    -------
    Ref

    Raises
    ------
    TypeError
        ``init_val`` is no array and no number.
    """
    if isinstance(init_val, Ref | TransformedRef):
        raise TypeError("new_ref: a Ref cannot hold another Ref. Pass its value: ref[...].")
    try:
        aval_of(init_val)
    except TypeError:
        raise TypeError(
            f"new_ref: the initial value must be an array or a number, got {init_val!r} of type "
            f"{type(init_val)}."
        ) from None
    value: Any = init_val if isinstance(init_val, Array) else asarray(init_val)
    value = value.astype(value.dtype) if value.aval.weak_type else value
    return Ref(state.trace, value, user_source(), shared=True)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Create a mutable array of a shape and dtype, those of ``ty``, whose elements are not set yet.

    They are zeros: nobody is to depend on them.
    """
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(f"empty_ref: ty must have a shape and a dtype, got {ty!r}.")
    return new_ref(asarray(np.zeros(ty.shape, ty.dtype)), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """Return the last value of a Ref, which cannot be used after it.

    Raises
    ------
    ValueError
        The Ref was made outside of the function that is traced.
    """
    if ref.home is not state.trace and ref.home is None:
        raise ValueError(
            f"freeze: {ref.aval} was {described(ref)}, outside of the function that is traced at "
            f"{user_source()}. Freeze it where it was made; here, read it: ref[...]."
        )
    value = value_of(ref)
    ref._value = None
    return value


def free_ref(ref: Ref) -> None:
    """End the life of a Ref, and let its memory go."""
    freeze(ref)


def get(ref: Ref, idx: Any = None) -> Array:
    """Return ``ref[idx]``; all of it for None."""
    return ref[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Do ``ref[idx] = value``."""
    ref[idx] = value


def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Do ``ref[idx] = value``, and return what was there before."""
    before = ref[idx]
    ref[idx] = value
    return before


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Do ``ref[idx] += x``."""
    ref[idx] = ref[idx] + _fitting(ref, x, "addupdate")
