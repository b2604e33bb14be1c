"""Rules of what works along some axes and is the same for each place of the others.

Axes that nothing happens along stay cut. A cut along one that something does is moved to another
one meanwhile, from device to device: nobody gets the whole where there is such an axis. Where there
is none a sort meets in pairs of devices, each of which keeps the lower or the upper half.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import numpy as jnp
from ..core.primitive import Primitive
from ..core.trace import bind
from ..ops.collective import psum_p
from ..ops.exchange import ppermute_p
from ..ops.kit import calls
from ..ops.kit.calls import add, mul
from .blocks import Mapped, Rule, Spec, Value
from .rules import concatenated

Params = dict[str, Any]
Busy = Callable[[Params, int], Collection[int]]
#: Positions of a sort are counted in 32 bits.
_MOST = 1 << 31


def _moved(m: Mapped, shape: Sequence[int], spec: Spec, busy: Collection[int]) -> Spec:
    """Return how an array is cut while something happens along some axes."""
    out = [() if d in busy else s for d, s in enumerate(spec)]
    for names in (spec[d] for d in busy if spec[d]):
        for e, n in enumerate(shape):
            if e not in busy and not out[e] and n and n % m.parts(names) == 0:
                out[e] = names
                break
    return tuple(out)


def _apart(busy: Busy) -> Rule:
    """Do an operation on blocks that are cut along axes that it leaves alone."""

    def rule(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
        first, shape = values[0], m.shape(values[0])
        used = [d % len(shape) for d in busy(params, len(shape))]
        spec = _moved(m, shape, first.spec, used)
        if not any(spec):
            return None
        blocks = []
        for v in values:
            own = spec[: len(v.spec)] + ((),) * (len(v.spec) - len(spec))
            cut = [d for d, names in enumerate(spec) if names]
            if v.spec and any(m.shape(v)[d : d + 1] != (shape[d],) for d in cut):
                return None
            blocks.append(m.to(v, own))
        out = bind(prim, *blocks, **params)
        results = []
        for x in out if prim.multiple_results else [out]:
            made = Value(x, spec[: x.ndim] + ((),) * (x.ndim - len(spec)))
            back = first.spec
            if x.ndim != len(back) or not m.divides(m.shape(made), back):
                back = made.spec
            results.append(Value(m.to(made, back), back))
        return results

    return rule


def _matrices(params: Params, rank: int) -> Collection[int]:
    return range(max(rank - 2, 0), rank)


def _windows(params: Params, rank: int) -> Collection[int]:
    alone = (1, 1, (0, 0), 1, 1)
    keys = (
        "window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation"
    )  # fmt: skip
    return [d for d in range(rank) if tuple(params[k][d] for k in keys) != alone]


def _fft(params: Params, rank: int) -> Collection[int]:
    return range(rank - len(params["fft_lengths"]), rank)


def _padded(params: Params, rank: int) -> Collection[int]:
    return [d for d, c in enumerate(params["padding_config"]) if tuple(c) != (0, 0, 0)]


# ---- sorting along a cut axis --------------------------------------------------------------------


def _rounds(count: int) -> Iterator[list[tuple[int, int]]]:
    """Yield pairs of places that compare at a time: Batcher's network, of any size.

    Of a network for the next power of two those with places that are not there are left out: what
    would be there is larger than all, and never moves.
    """
    size = 1 << (count - 1).bit_length()
    p = 1
    while p < size:
        k = p
        while k:
            pairs = [
                (a + j, a + j + k)
                for a in range(k % p, size - k, 2 * k)
                for j in range(min(k, size - a - k))
                if (a + j) // (2 * p) == (a + j + k) // (2 * p)
            ]
            yield [(a, b) for a, b in pairs if b < count]
            k //= 2
        p *= 2


def _sort(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Sort blocks, then pairs of blocks, of which one device keeps the lower half, one the upper.

    Equal elements keep their order, whose place is one more key.
    """
    done = _apart(lambda p, rank: [p["dimension"]])(m, prim, values, params)
    axis = params["dimension"]
    spec = next((v.spec for v in values if v.spec[axis]), values[0].spec)
    names, shape = spec[axis], m.shape(values[0])
    if done is not None or not names or shape[axis] >= _MOST:
        return done
    count, size = m.parts(names), shape[axis] // m.parts(names)
    index, keys = m.index(names), params["num_keys"]
    blocks = [m.to(v, spec) for v in values]
    local = blocks[0].shape
    place = add(mul(index.astype(np.int32), size), jnp.arange(size, dtype=np.int32))
    place = place.reshape([size if d == axis else 1 for d in range(len(local))])
    place = jnp.broadcast_to(place, local)
    blocks = [*blocks[:keys], place, *blocks[keys:]]
    params = {**params, "num_keys": keys + 1, "is_stable": False}
    blocks = bind(prim, *blocks, **params)
    for pairs in _rounds(count):
        perm = tuple(p for a, b in pairs for p in ((a, b), (b, a)))
        role = np.zeros(count, np.int32)  # who keeps the lower half, who the upper, who nothing
        for a, b in pairs:
            role[a], role[b] = 1, 2
        mine = jnp.asarray(role)[index]
        theirs = [bind(ppermute_p, x, axis_name=names, perm=perm) for x in blocks]
        both = [jnp.concatenate([x, y], axis=axis) for x, y in zip(blocks, theirs, strict=True)]
        both = bind(prim, *both, **params)
        blocks = [
            jnp.where(
                mine == 0,
                x,
                jnp.where(mine == 1, _half(y, axis, 0, size), _half(y, axis, size, 2 * size)),
            )
            for x, y in zip(blocks, both, strict=True)
        ]
    return [Value(x, spec) for k, x in enumerate(blocks) if k != keys]


def _half(x: Any, axis: int, start: int, stop: int) -> Any:
    return calls.slice(
        x,
        tuple(start if d == axis else 0 for d in range(x.ndim)),
        tuple(stop if d == axis else n for d, n in enumerate(x.shape)),
    )


# ---- others --------------------------------------------------------------------------------------


def _reversed(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Reverse blocks, and which device has which."""
    (v,) = values
    out = bind(prim, v.x, **params)
    for names in (v.spec[d] for d in params["dimensions"] if v.spec[d]):
        count = m.parts(names)
        perm = tuple((k, count - 1 - k) for k in range(count))
        out = bind(ppermute_p, out, axis_name=names, perm=perm)
    return [Value(out, v.spec)]


def _convolved(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Examples stay cut, or features of the results, or those that are summed over."""
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        return None
    (lb, lf, *_), (ro, ri, *_), (ob, of, *_) = params["dimension_numbers"]
    left, right = values
    batch, summed = left.spec[lb], left.spec[lf] or right.spec[ri]
    features = right.spec[ro]
    used = {*batch}
    summed = () if used & {*summed} else summed
    used |= {*summed}
    features = () if used & {*features} else features
    aims: list[list[tuple[Hashable, ...]]] = [[()] * len(v.spec) for v in values]
    aims[0][lb], aims[0][lf], aims[1][ri], aims[1][ro] = batch, summed, summed, features
    specs = [tuple(a) for a in aims]
    if not all(m.divides(m.shape(v), s) for v, s in zip(values, specs, strict=True)):
        return None
    out = bind(prim, *(m.to(v, s) for v, s in zip(values, specs, strict=True)), **params)
    if summed:
        out = bind(psum_p, out, axis_name=summed, axis_index_groups=None)
    spec: list[tuple[Hashable, ...]] = [()] * out.ndim
    spec[ob], spec[of] = batch, features
    return [Value(out, tuple(spec))]


def _joined(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    apart = _apart(lambda p, rank: [p["dimension"]])(m, prim, values, params)
    return apart or concatenated(m, prim, values, params)


_OF_MATRICES = (
    "cholesky", "det", "eig", "eigh", "expm", "linear_solve", "lu", "qr", "slogdet", "sqrtm", "svd",
    "symmetric_product", "triangular_solve",
)  # fmt: skip

#: By name of operation.
ALONG: dict[str, Rule] = {
    "sort": _sort,
    "top_k": _apart(lambda p, rank: [p["axis"]]),
    "fft": _apart(_fft),
    "rev": _reversed,
    "pad": _apart(_padded),
    "tile": _apart(lambda p, rank: [d for d, n in enumerate(p["reps"]) if n != 1]),
    "concatenate": _joined,
    "conv_general_dilated": _convolved,
    **dict.fromkeys(
        ("reduce_window_max", "reduce_window_min", "reduce_window_sum"), _apart(_windows)
    ),
    **dict.fromkeys(_OF_MATRICES, _apart(_matrices)),
}
