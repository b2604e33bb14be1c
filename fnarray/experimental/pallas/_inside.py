"""What kernels call: branches, loops, memory of their own, semaphores."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import debug, lax
from ... import numpy as jnp
from ...core import tree
from ...core.array import Array
from ...core.ref import Ref, new_ref
from ._call import allocated
from ._grid import empty

__all__: list[str] = []

# ---- numbers -------------------------------------------------------------------------------------


def cdiv(a: Any, b: Any) -> Any:
    """Return a quotient of integers, rounded up.

    Parameters
    ----------
    a, b : int or Array

    Returns
    -------
    int or Array
        An int where both are.
    """
    if isinstance(a, int) and isinstance(b, int):
        return (a + b - 1) // b
    return lax.div(*_alike(a + (b - 1), b))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    dtype = jnp.result_type(a, b)
    return jnp.asarray(a, dtype), jnp.asarray(b, dtype)


def align_to(a: Any, alignment: Any) -> Any:
    """Return the least multiple of ``alignment`` that is no less than ``a``.

    Parameters
    ----------
    a, alignment : int or Array

    Returns
    -------
    int or Array
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """Return the least power of two that is no less than an integer.

    Parameters
    ----------
    x : int

    Returns
    -------
    int

    Raises
    ------
    ValueError
        ``x`` is negative.
    """
    if x < 0:
        raise ValueError(f"`next_power_of_2` requires a non-negative integer, got {x}.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements apart neighbours along each axis are, in rows.

    Parameters
    ----------
    shape : sequence of int

    Returns
    -------
    tuple of int
    """
    size, strides = int(np.prod(shape)), []
    for n in shape:
        size //= n
        strides.append(size)
    return tuple(strides)


def multiple_of(x: Any, values: int | Sequence[int]) -> Any:
    """Return ``x``, of which it is promised that it is a multiple: nothing is made of it.

    Parameters
    ----------
    x : Array
    values : int or sequence of int
    """
    return x


def max_contiguous(x: Any, values: int | Sequence[int]) -> Any:
    """Return ``x``, of which it is promised how much of it is contiguous: nothing is made of it."""
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Array:
    """Return ``1 / x``; where ``approx`` is set, rounded as by bfloat16."""
    if approx:
        return jnp.reciprocal(x.astype(jnp.bfloat16)).astype(jnp.float32)
    return jnp.reciprocal(x)


# ---- control -------------------------------------------------------------------------------------


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """Decorate what is done where a condition holds: it is called at once.

    Parameters
    ----------
    condition : bool or Array
        A bool is decided while the kernel is traced.

    Returns
    -------
    callable
        A decorator of a function without parameters.
    """

    def wrapped(fun: Callable[[], None]) -> None:
        if not isinstance(condition, bool):
            lax.cond(condition, fun, _nothing)
        elif condition:
            fun()

    return wrapped


def _nothing() -> None:
    return None


def loop(
    lower: Any,
    upper: Any,
    *,
    init_carry: Any = None,
    step: Any = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorate the body of a counted loop: it is run at once.

    Parameters
    ----------
    lower, upper, step : int or Array
    init_carry : pytree, optional
        Where it is given the body takes it after the index, and returns the next.
    unroll : int or bool, optional
        How many turns to lay out in a row.

    Returns
    -------
    callable
        A decorator, which returns the last carry.
    """
    zero: Any = 0
    if not all(isinstance(x, int | np.integer) for x in (lower, upper, step)):
        dtype = jnp.result_type(lower, upper, step)
        lower, upper, step, zero = (jnp.asarray(x, dtype) for x in (lower, upper, step, 0))

    def wrapped(body: Callable[..., Any]) -> Any:
        def turn(i: Any, carry: Any) -> Any:
            at = lower + i * step
            return body(at) if init_carry is None else body(at, carry)

        return lax.fori_loop(zero, cdiv(upper - lower, step), turn, init_carry, unroll=unroll)

    return wrapped


# ---- memory --------------------------------------------------------------------------------------


def empty_like(x: Any) -> Any:
    """Return arrays of the shapes and dtypes of a tree's leaves, whose elements are not set yet."""
    return tree.map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Ref:
    """Return a Ref of a shape and dtype, whose elements are not set yet."""
    return allocated(x)


def run_scoped(
    f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any
) -> Any:
    """Call a function with memory of its own, and return its result.

    Parameters
    ----------
    f : callable
        Of Refs.
    *types, **kw_types : trees of MemoryRef
        What it is given, by position and by name.
    collective_axes : tuple
        Must be empty: turns run one by one.

    Returns
    -------
    pytree
        What ``f`` returns.
    """
    if collective_axes not in ((), None):
        raise NotImplementedError(
            f"pallas.run_scoped: collective_axes={collective_axes!r} shares memory between "
            "programs that run at once; here turns of a grid run one by one. Ask for "
            "scratch_shapes, which they share."
        )
    return f(*tree.map(allocated, types), **tree.map(allocated, kw_types))


def with_scoped(
    *types: Any, collective_axes: Any = (), **kw_types: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that is given memory of its own after its arguments; see `run_scoped`."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any) -> Any:
            def given(*refs: Any, **named: Any) -> Any:
                return f(*args, *refs, **named)

            return run_scoped(given, *types, collective_axes=collective_axes, **kw_types)

        return inner

    return decorate


# ---- semaphores ----------------------------------------------------------------------------------


class DeviceIdType(enum.Enum):
    """How a device is named; there is one."""

    MESH = "mesh"
    LOGICAL = "logical"


def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: Any = None,
) -> None:
    """Add to a semaphore, a Ref of one integer.

    Raises
    ------
    NotImplementedError
        It is another device's: there is one.
    """
    if device_id is not None:
        raise NotImplementedError(
            "pallas.semaphore_signal: device_id names another device, and a kernel runs on one. "
            "Use fnarray.shard_map with collectives between devices."
        )
    sem_or_view[...] = sem_or_view[...] + jnp.asarray(inc, sem_or_view.dtype)


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Take from a semaphore: turns run one by one, so that nothing is waited for."""
    if decrement:
        sem_or_view[...] = sem_or_view[...] - jnp.asarray(value, sem_or_view.dtype)


def semaphore_read(sem_or_view: Any) -> Array:
    """Return the value of a semaphore, an int32."""
    return lax.convert_element_type(sem_or_view[...], np.int32)


# ---- beside --------------------------------------------------------------------------------------


def debug_print(fmt: str, *args: Any) -> None:
    """Print values while the kernel runs; see `fnarray.debug.print`.

    Parameters
    ----------
    fmt : str
        With a placeholder ``{}`` for each value.
    *args : Array
    """
    debug.print(fmt, *args, skip_format_check=True)


def delay(nanos: Any) -> None:
    """Wait: which a program that runs turn by turn has no reason to do."""


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Array:
    """Return the product of two matrices, summed in float32, or int32, at least.

    Parameters
    ----------
    a, b : Array
        Of rank 2.
    trans_a, trans_b : bool
        Whether to transpose an operand.
    allow_tf32, precision
        How exactly products are computed at least; one of them.

    Returns
    -------
    Array

    Raises
    ------
    ValueError
        An operand is no matrix, or both ways of precision are given.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"`a` and `b` must be 2D arrays, got shapes {a.shape} and {b.shape}.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified.")
        precision = lax.Precision.HIGH if allow_tf32 else lax.Precision.HIGHEST
    dtype = jnp.promote_types(a.dtype, b.dtype)
    integer = jnp.issubdtype(dtype, jnp.integer)
    out = jnp.int32 if integer else jnp.promote_types(dtype, jnp.float32)
    dims = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    return lax.dot_general(a, b, dims, precision=precision, preferred_element_type=out)


def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Return a function of arrays that calls one of Refs, and returns what it left in them.

    Parameters
    ----------
    f : callable
        Of a tree of Refs; it returns nothing.
    """

    def wrapped(args: Any) -> Any:
        refs = tree.map(lambda x: new_ref(jnp.asarray(x)), args)
        f(refs)
        return tree.map(lambda ref: ref[...], refs)

    return wrapped


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Array:
    """Return an array broadcast to a shape."""
    return jnp.broadcast_to(a, shape)
