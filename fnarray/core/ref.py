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
from .dtypes import is_float, is_integer
from .graph import Literal
from .hooks import convert, seen_ref
from .places import check_shape, is_whole, place, updated
from .quiet import quietly
from .source import Source, user_source
from .trace import JitTracer, Trace, state
from .tree_nodes import Whole


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
        """Whether values give way in promotion, as the first one did."""
        return self.inner_aval.weak_type

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
        return f"Ref{{{self.inner_aval.str_short(short_dtypes).lstrip('~')}}}"

    __repr__ = __str__ = str_short


@cache
def _interned(cls: type[AbstractRef], inner: ShapedArray) -> Any:
    self = object.__new__(cls)
    self.inner_aval = inner
    return self


class Ref(Whole):
    """A mutable array: a name for a value that ``ref[...] = x`` replaces, made by `new_ref`.

    ``ref[i]`` reads and ``ref[i] = x`` writes, ``ref[...]`` all of it. Its shape and dtype stay. A
    compiled function may take it as an argument or be closed over it, and its caller sees what it
    wrote; it cannot return it: return ``ref[...]``. A Ref is no array: read it to compute with it.

    Raises
    ------
    ValueError
        When it is read or written: an index is out of bounds, or what is written has another shape
        than the part that it is for, or is an array of another dtype. When traced: a function
        returns it.
    TypeError
        Arithmetic on the Ref itself.
    """

    __slots__ = ("__weakref__", "_base", "_shared", "_value", "_written", "aval", "home", "origin")

    def __init__(self, home: Trace | None, value: Array, origin: Source | str, *, shared: bool):
        self.home = home
        self.origin = origin
        self.aval = AbstractRef(value.aval)
        self._value: Array | None = value
        # Whether an array that somebody holds lies in the same memory.
        self._shared = shared
        # Whether the value was replaced, by one that JAX's Refs show without its weak type.
        self._written = False
        # Of a row: the Ref that it is one of, and which.
        self._base: tuple[Ref, int] | None = None

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
        if self._base is not None and self.home is state.trace:
            return repr(value_of(self)).replace("Array", "Ref", 1)
        if self._value is None or self.home is not None:
            return f"{self.aval}" + (" (frozen)" if self._value is None else "")
        text = repr(self._value).replace("Array", "Ref", 1)
        return text.replace(", weak_type=True)", ")") if self._written else text

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("The truth value of a Ref is not defined: read it first, ref[...].")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise ValueError(f"A {self.aval} is no array: read its value first, ref[...].")

    def __reduce__(self) -> Any:
        return new_ref, (self[...],)

    def __deepcopy__(self, memo: dict[int, Any]) -> Ref:
        return new_ref(self[...])

    def __getitem__(self, index: Any) -> Array:
        value = value_of(self)
        if is_whole(index):
            self._shared |= self.home is state.trace
            self._written &= self.home is not state.trace
            return value
        part = value[place(self.aval, self.shape, index).index]
        if type(part) is ArrayImpl and np.may_share_memory(part._data, value._data):  # type: ignore[attr-defined]
            part = ArrayImpl(part._data.copy(), part.aval)
        return part

    def __setitem__(self, index: Any, x: Any) -> None:
        self._write((index,), "set", x)

    def get(self, idx: Any = ()) -> Array:
        """Return what lies at an index."""
        return self[idx]

    def set(self, value: Any, idx: Any = ()) -> None:
        """Replace what lies at an index."""
        self[idx] = value

    def swap(self, value: Any, idx: Any = ()) -> Array:
        """Replace what lies at an index, and return what was there before."""
        before = self[idx]
        self[idx] = value
        return before

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add to what lies at an index: as often as a place is named in it."""
        self._write((idx,), "add", x)

    def _write(self, path: tuple[Any, ...], name: str, x: Any) -> None:
        """Set, or add to, what lies at a path of indices."""
        x = fitting(self, x, "set" if name == "set" else "addupdate")
        if state.trace is None and self.home is self._base is None and len(path) == 1:
            at = place(self.aval, self.shape, () if is_whole(path[0]) else path[0])
            if at.static and not (name == "set" and is_whole(path[0])):
                check_shape(self.aval, at.shape, x, name)
                data, new = self.taken(), asarray(x)._data
                data[at.index] = new if name == "set" else quietly(np.add, data[at.index], new)
                return
        store(self, updated(self.aval, value_of(self), path, name, x))

    def _end(self) -> Array:
        """Return the last value, and be none from then on."""
        if self.home is not state.trace and self.home is None:
            raise ValueError(
                f"freeze: {self.aval} was {described(self)}, outside of the function that is "
                f"traced at {user_source()}. Freeze it where it was made; here, read it: ref[...]."
            )
        value = value_of(self)
        if self.home is None:
            # Nothing is traced: the order of what is done is that of the program, and the Ref goes
            # on, with a copy as soon as it is written.
            self._shared = True
        else:
            self._value = None
        return value

    # ---- other views ----

    def reshape(self, *shape: Any) -> TransformedRef:
        """Return a Ref of the same elements in another shape."""
        return seen_ref(self, "reshaped", shape)

    def bitcast(self, dtype: Any) -> TransformedRef:
        """Return a Ref of the same bits, as another dtype of the same width."""
        return seen_ref(self, "bitcast", dtype)

    def transpose(self, permutation: Any = None) -> TransformedRef:
        """Return a Ref of the same elements with its axes in another order."""
        return seen_ref(self, "transposed", permutation)

    # ---- what is asked of the array that lies there ----

    @property
    def sharding(self) -> Any:
        """Where the value lies."""
        return value_of(self).sharding

    @property
    def format(self) -> Any:
        """How the value is laid out, and where it lies."""
        return value_of(self).format

    @property
    def committed(self) -> bool:
        """Whether the Ref stays where it is: True."""
        return True

    def unsafe_buffer_pointer(self) -> int:
        """Address of the memory, which changes as soon as the Ref is written elsewhere."""
        return value_of(self).unsafe_buffer_pointer()

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
        if self._base is not None:
            base, k = self._base
            base.taken()[k] = data
            return
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
            x = x if is_whole(inner) else x[place(self._ref.aval, x.shape, inner).index]
        return x

    def __setitem__(self, index: Any, x: Any) -> None:
        self._ref._write((*self._path, index), "set", x)

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add to what lies at an index of the part."""
        self._ref._write((*self._path, idx), "add", x)

    get, set, swap = Ref.get, Ref.set, Ref.swap
    reshape, bitcast, transpose = Ref.reshape, Ref.bitcast, Ref.transpose


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
    if ref._base is not None:
        base, k = ref._base
        return base[k]
    if ref.home is not trace:
        if trace is None:
            raise _leaked(ref)
        return trace.load(ref)
    if ref._value is None:
        raise ValueError(f"{ref.aval} is read or written after freeze, which ended its life.")
    return ref._value


def store(ref: Ref, value: Array) -> None:
    """Give a Ref another value in the trace in progress, of the same shape and dtype."""
    if ref._base is not None:
        base, k = ref._base
        base[k] = value
        return
    value, trace = _as_weak(ref, value), state.trace
    if ref.home is trace:
        value_of(ref)  # raises, where it is frozen
        ref._value, ref._shared, ref._written = value, True, True
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


def row_of(ref: Ref, k: int) -> Ref:
    """Return a Ref of what lies at an index of the first axis: to write one is to write the other.

    Where programs run op by op it is what a turn of a loop over rows takes.
    """
    row = Ref(ref.home, ref[k], ref.origin, shared=True)
    row._base, row._value = (ref, k), None
    return row


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


def fitting(ref: Ref, x: Any, name: str) -> Array:
    """Return what is to be written, as an array; raise `ValueError` for another dtype."""
    if type(x) is Ref:
        raise TypeError(f"Ref: a {ref.aval} cannot hold another Ref. Write its value: other[...].")
    x = x.array() if type(x) is Literal else x if isinstance(x, Array) else asarray(x)
    want = ref.aval.inner_aval
    if x.dtype != want.dtype and name == "set" and _gives_way(x.aval, want.dtype):
        x = convert(x, want.dtype, want.weak_type)
    if x.dtype != want.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {want.dtype}. Value dtype: {x.dtype}. "
            f"Convert the value: x.astype({str(want.dtype)!r})."
        )
    return x


def _gives_way(aval: ShapedArray, dtype: np.dtype) -> bool:
    """Say whether a value that is written takes the Ref's dtype, as it does in JAX.

    A weak floating one takes another floating dtype, an integer, weak or not, that of any integers.
    """
    if is_integer(dtype):
        return is_integer(aval.dtype)
    return aval.weak_type and is_float(aval.dtype) and is_float(dtype)


def _as_weak(ref: Ref, value: Array) -> Array:
    """Return a value as weakly typed as the Ref's: that is part of its type, as the dtype is."""
    want = ref.aval.inner_aval
    if value.aval.weak_type == want.weak_type:
        return value
    return convert(value, want.dtype, want.weak_type)


# ---- the interface -------------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Create a mutable array with an initial value.

    Parameters
    ----------
    init_val : Array
        An array, random keys, or a number.
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
    made: Any = getattr(cast("type[Any]", type(init_val)), "ref_of", None)
    if made is not None:
        return made(init_val)
    try:
        aval_of(init_val)
    except TypeError:
        raise TypeError(
            f"new_ref: the initial value must be an array or a number, got {init_val!r} of type "
            f"{type(init_val)}."
        ) from None
    value: Any = init_val if isinstance(init_val, Array) else asarray(init_val)
    return Ref(state.trace, value, user_source(), shared=True)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Create a mutable array of a shape and dtype, those of ``ty``, whose elements are not set yet.

    They are zeros: nobody is to depend on them.
    """
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(f"empty_ref: ty must have a shape and a dtype, got {ty!r}.")
    return new_ref(asarray(np.zeros(ty.shape, ty.dtype)), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """Return the last value of a Ref, which the function that is traced cannot use after it.

    Where nothing is traced the Ref can be used as before, and the array that is returned stays
    what it is.

    Raises
    ------
    ValueError
        The Ref was made outside of the function that is traced.
    """
    return ref._end()


def free_ref(ref: Ref) -> None:
    """End the life of a Ref, and let its memory go."""
    freeze(ref)


def get(ref: Any, idx: Any = None) -> Any:
    """Return ``ref[idx]``; all of it for None."""
    return _ref("get", ref)[... if idx is None else idx]


def set(ref: Any, idx: Any, value: Any) -> None:
    """Do ``ref[idx] = value``."""
    _ref("set", ref)[... if idx is None else idx] = value


def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Do ``ref[idx] = value``, and return what was there before."""
    return _ref("swap", ref).swap(value, ... if idx is None else idx)


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to what lies at an index: as often as a place is named in it.

    ``ref[idx] += x`` reads, adds and writes, so that of a place that is named twice one sum stays.

    Parameters
    ----------
    ref : Ref
    idx : index
        None for all of it.
    x : Array
        Of the shape that the index selects, and the Ref's dtype.

    Raises
    ------
    ValueError
        The shape or the dtype is another one, or a static index is out of range.
    """
    _ref("addupdate", ref).addupdate(x, ... if idx is None else idx)


def _ref(name: str, ref: Any) -> Any:
    if not isinstance(ref, Ref | TransformedRef):
        raise ValueError(
            f"Can only call `{name}` on a `Ref`, got {ref!r} of type {type(ref).__name__}. "
            "Make one of an array: fnarray.new_ref(x)."
        )
    return ref
