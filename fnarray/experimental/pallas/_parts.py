"""Parts of Refs as kernels for GPUs read and write them: masked, beyond the ends, atomically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...core.places import Slice
from ...core.ref import Ref, TransformedRef
from ._grid import uninitialized

__all__: list[str] = []

# ---- parts of Refs -------------------------------------------------------------------------------


def load(
    x_ref_or_view: Any,
    idx: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Array:
    """Return what lies at an index of a Ref; beyond its ends is NaN, or the least integer.

    Parameters
    ----------
    x_ref_or_view : Ref
    idx : index
        Numbers, slices (`ds`), or arrays.
    mask : Array, optional
        Where it is False the result is ``other``, or nobody's concern.
    other : Array, optional
    cache_modifier, eviction_policy, volatile
        Accepted.

    Returns
    -------
    Array
    """
    at = _Reach(x_ref_or_view, idx)
    value = at.read()
    return value if mask is None or other is None else _chosen(mask, value, other)


def _chosen(mask: Any, value: Array, other: Any) -> Array:
    return jnp.where(mask, value, jnp.asarray(other, value.dtype))


def swap(
    x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None
) -> Array:
    """Write what lies at an index of a Ref, and return what was there before.

    Parameters
    ----------
    x_ref_or_view : Ref
    idx : index
        Numbers, slices (`ds`), or arrays. What lies beyond the ends is not written.
    val : Array
        Of the shape that the index selects.
    mask : Array, optional
        Where it is False nothing is written.
    eviction_policy
        Accepted.

    Returns
    -------
    Array
    """
    at = _Reach(x_ref_or_view, idx)
    before = at.read()
    val = jnp.asarray(val)
    if mask is None:
        at.write(val)
        return before
    at.write(jnp.where(mask, val, before))
    return jnp.where(mask, before, val)


def store(
    x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None
) -> None:
    """Write what lies at an index of a Ref; see `swap`."""
    swap(x_ref_or_view, idx, val, mask=mask, eviction_policy=eviction_policy)


class _Reach:
    """An index of a Ref that may reach beyond its ends, as those of windows in Refs do not."""

    def __init__(self, ref: Any, idx: Any):
        if not isinstance(ref, Ref | TransformedRef):
            raise TypeError(
                f"pallas: a part is read or written of {ref!r} of type {type(ref)}, which is no "
                "Ref. Index arrays: x[i]."
            )
        self.ref = ref
        idx = ... if idx is None else idx
        self.idx: tuple[Any, ...] = idx if isinstance(idx, tuple) else (idx,)
        self.reaches = self._found()

    def _found(self) -> tuple[Any, ...] | None:
        """Return the index with places for windows that begin anywhere; None where none does."""
        if not any(isinstance(i, Slice) and isinstance(i.start, Array) for i in self.idx):
            return None
        shape, parts = self.ref.shape, list(self.idx)
        if any(i is None for i in parts):
            return None
        if ... in [i for i in parts if i is Ellipsis]:
            k = next(k for k, i in enumerate(parts) if i is Ellipsis)
            parts[k : k + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
        parts += [slice(None)] * (len(shape) - len(parts))
        axes = [k for k, i in enumerate(parts) if isinstance(i, slice | Slice)]
        out: list[Any] = []
        for k, (i, n) in enumerate(zip(parts, shape, strict=True)):
            if isinstance(i, slice):
                places: Any = np.arange(n, dtype=np.int32)[i]
            elif isinstance(i, Slice):
                places = i.start + i.stride * jnp.arange(i.size, dtype=np.int32)
            elif np.shape(i):
                return None  # arrays among windows: as Refs are indexed
            else:
                out.append(i)
                continue
            out.append(places.reshape([-1 if a == k else 1 for a in axes]))
        return tuple(out)

    def read(self) -> Array:
        """Return what lies there."""
        if self.reaches is None:
            return self.ref[self.idx]
        value = self.ref[...]
        return value.at[self.reaches].get(mode="fill", fill_value=uninitialized(value.dtype))

    def write(self, x: Array) -> None:
        """Replace what lies there."""
        if self.reaches is None:
            self.ref[self.idx] = x
            return
        self.ref[...] = self.ref[...].at[self.reaches].set(x, mode="drop")


# ---- read, change, write: turns run one by one, so that each is as atomic as a kernel asks -------


def _changed(name: str, by: Callable[[Any, Any], Any], put: str) -> Callable[..., Array]:
    def atomic(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
        at = _Reach(x_ref_or_view, idx)
        before = at.read()
        after = by(before, val)
        at.write(after if mask is None else jnp.where(mask, after, before))
        return before

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"Put {put} where an index says, and return what was there; see `atomic_add`."
    return atomic


def atomic_add(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Add to what lies at an index, as often as a place is named, and return what was there.

    Parameters
    ----------
    x_ref_or_view : Ref
    idx : index
    val : Array
    mask : Array, optional
        Where it is False nothing is added.

    Returns
    -------
    Array
    """
    at = _Reach(x_ref_or_view, idx)
    before = at.read()
    x = jnp.broadcast_to(jnp.asarray(val, before.dtype), before.shape)
    x = x if mask is None else jnp.where(mask, x, jnp.zeros_like(x))
    if at.reaches is None:
        at.ref.addupdate(x, at.idx)
    else:
        at.write(before + x)
    return before


atomic_max = _changed("atomic_max", jnp.maximum, "the greater of what lies there and ``val``")
atomic_min = _changed("atomic_min", jnp.minimum, "the lesser of what lies there and ``val``")
atomic_and = _changed(
    "atomic_and", jnp.bitwise_and, "the bits that what lies there and ``val`` share"
)
atomic_or = _changed(
    "atomic_or", jnp.bitwise_or, "the bits of what lies there and those of ``val``"
)
atomic_xor = _changed(
    "atomic_xor", jnp.bitwise_xor, "the bits of what lies there or of ``val``, not of both,"
)


def atomic_xchg(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Write what lies at an index, and return what was there before; see `swap`."""
    return swap(x_ref_or_view, idx, val, mask=mask)


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Array:
    """Write a scalar Ref where it is ``cmp``, and return what was there before."""
    before = ref[...]
    ref[...] = jnp.where(before == cmp, jnp.asarray(val, before.dtype), before)
    return before
