"""Decompositions of stacks of small matrices: LAPACK, called by the pool of machine code.

A call through SciPy costs 3 us, of which a matrix of order 3 takes LAPACK 0.4. Here the addresses
of all arguments of all calls are one array, and the pool's threads make the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from ...core.dtypes import to_real
from ...core.quiet import quietly
from ...threads.onethread import one_thread
from ..ir import Node
from ..target import Limits
from .blas import LETTERS, address
from .launch import threads

Run = Callable[..., Sequence[np.ndarray]]

#: Bytes of scratch memory that calls have at once.
_SCRATCH: Final = 1 << 22
#: Matrices that are worth another thread.
_SHARE: Final = 16
#: Nanoseconds of work that are.
_WORTH: Final = 200_000
#: How long working arrays are, by routine and its numbers and letters: asked once.
_lengths: Final[dict[tuple[int, tuple[int, ...]], list[int]]] = {}


class _Each:
    """An argument that differs from call to call: rows of an array, one for each."""

    def __init__(self, rows: np.ndarray):
        self.rows = rows


Argument = np.ndarray | _Each


def is_shared(node: Node) -> bool:
    """Whether a stack is worth two threads of the pool; a kernel decomposes others on its own.

    One takes half a microsecond and 3 ns for each cube of the order, to add up to 200 us.
    """
    form = node.form
    count = form.statics[0]
    known = node.eqn.primitive.name in _DECOMPOSITIONS
    return known and count >= 2 * _SHARE and count * (500 + 3 * form.size**3) > _WORTH


def stacked(node: Node, limits: Limits, otherwise: Run) -> Run | None:
    """Return a step that decomposes a stack, None for what it is not made for.

    Parameters
    ----------
    otherwise : callable
        Does the same, one matrix after another; taken where there is one alone, and where the
        library has no such routine.
    """
    decompose = _DECOMPOSITIONS.get(node.eqn.primitive.name)
    params = node.eqn.params
    if decompose is None or params["subset_by_index"] is not None:
        return None
    *batch, m, n = node.ins[0].aval.shape
    count = int(np.prod(batch))
    if not 0 < max(m, n) <= limits.matrix or not min(m, n) or count < 2:
        return None

    def step(x: np.ndarray) -> Sequence[np.ndarray]:
        found = quietly(decompose, x.reshape(count, m, n), params)
        if found is None:
            return otherwise(x)
        outs = zip(found, node.outs, strict=True)
        return tuple(np.asarray(o, order="C").reshape(v.aval.shape) for o, v in outs)

    return step


def _eigh(x: np.ndarray, params: dict[str, Any]) -> tuple[np.ndarray, ...] | None:
    """Return vectors and values; nothing where there is no routine."""
    count, n, _ = x.shape
    a, bad = _columns(x)
    w: np.ndarray[Any, Any] = np.empty((count, n), to_real(x.dtype))
    uplo = _letter("L" if params["lower"] else "U")
    before = [_letter("V"), uplo, _integer(n), _Each(a), _integer(n), _Each(w)]
    name = "heevd" if x.dtype.kind == "c" else "syevd"
    kinds = (x.dtype, to_real(x.dtype), np.dtype(np.int32))
    lengths = kinds if x.dtype.kind == "c" else (kinds[0], kinds[2])
    info = _call_all(x.dtype, name, before, lengths, count)
    if info is None:
        return None
    return _missing((a.swapaxes(1, 2), w), bad | (info != 0))


def _svd(x: np.ndarray, params: dict[str, Any]) -> tuple[np.ndarray, ...] | None:
    """Return values and vectors, or values alone; nothing where there is no routine."""
    count, m, n = x.shape
    k, full = min(m, n), params["full_matrices"]
    rows, columns = (m, n) if full else (k, k)
    job = ("A" if full else "S") if params["compute_uv"] else "N"
    a, bad = _columns(x)
    s: np.ndarray[Any, Any] = np.empty((count, k), to_real(x.dtype))
    u, vh = np.empty((count, rows, m), x.dtype), np.empty((count, n, columns), x.dtype)
    sizes = [_integer(m), _integer(n), _Each(a), _integer(m), _Each(s)]
    vectors = [_Each(u), _integer(m), _Each(vh), _integer(columns)]
    before = [_letter(job), *sizes, *vectors]
    scratch: list[np.ndarray] = [np.empty((count, 8 * k), np.int32)]
    if x.dtype.kind == "c":
        # As long as LAPACK's page on cgesdd asks for at most.
        room = 5 * k * k + 5 * k + 2 * max(m, n) * k + 2 * k * k + k
        scratch.insert(0, np.empty((count, room), s.dtype))
    info = _call_all(x.dtype, "gesdd", before, (x.dtype,), count, [*map(_Each, scratch)])
    if info is None:
        return None
    found = (s, u.swapaxes(1, 2), vh.swapaxes(1, 2)) if params["compute_uv"] else (s,)
    return _missing(found, bad | (info != 0))


_DECOMPOSITIONS: Final = {"eigh": _eigh, "svd": _svd}


def _columns(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices by columns, and which are not finite: those are zero, as LAPACK may hang."""
    a = np.array(x.swapaxes(1, 2), order="C")
    bad: np.ndarray[Any, Any] = np.logical_not(np.isfinite(x).all((1, 2)))
    a[bad] = 0
    return a, bad


def _missing(outs: tuple[np.ndarray, ...], bad: np.ndarray) -> tuple[np.ndarray, ...]:
    for out in outs:
        out[bad] = np.nan
    return outs


# ---- calls ---------------------------------------------------------------------------------------


def _call_all(
    dtype: np.dtype,
    name: str,
    before: list[Argument],
    kinds: Sequence[np.dtype],
    count: int,
    extra: Sequence[_Each] = (),
) -> np.ndarray | None:
    """Call a routine for each matrix; return what each reports, nothing without the routine.

    Parameters
    ----------
    before : list
        Arguments up to the first working array.
    kinds : sequence of dtype
        Of working arrays that are followed by their lengths, which the routine is asked for.
    extra : sequence
        Working arrays without lengths, after those.
    """
    routine = _address(LETTERS[dtype.char] + name)
    if routine is None:
        return None
    info: np.ndarray[Any, Any] = np.zeros((count, 1), np.int32)
    fixed = tuple(int(one.flat[0]) for one in before if not isinstance(one, _Each))
    lengths = _lengths.get((routine, fixed))
    if lengths is None:
        ask = [np.zeros(1, kind) for kind in kinds]
        query = [v for one in ask for v in (one, _integer(-1))]
        _frames(routine, [*before, *query, *extra, info[:1]], 1, 1)
        lengths = _lengths[routine, fixed] = [int(one[0].real) for one in ask]
    each = sum(n * k.itemsize for n, k in zip(lengths, kinds, strict=True))
    some = max(1, min(count, _SCRATCH // max(each, 1)))
    work = [np.empty((some, n), kind) for n, kind in zip(lengths, kinds, strict=True)]
    sizes = [_integer(n) for n in lengths]
    own = [v for w, n in zip(work, sizes, strict=True) for v in (_Each(w), n)]
    for start in range(0, count, some):
        part = slice(start, min(start + some, count))

        def cut(one: Argument, part: slice = part) -> Argument:
            return _Each(one.rows[part]) if isinstance(one, _Each) else one

        now = part.stop - part.start
        args = [*map(cut, before), *own, *map(cut, extra), _Each(info[part])]
        _frames(routine, args, now, min(threads(), max(1, now // _SHARE)))
    return info[:, 0]


def _frames(routine: int, args: Sequence[Argument], count: int, share: int) -> None:
    from .native import pool, sharing  # which few programs need

    frames: np.ndarray[Any, Any] = np.zeros((count, sharing.POINTERS + 1), np.int64)
    all_ = [one.rows if isinstance(one, _Each) else one for one in args]
    steps = [0, *(r.strides[0] * isinstance(a, _Each) for r, a in zip(all_, args, strict=True))]
    used = frames[:, : len(steps)]
    np.multiply(np.arange(count)[:, None], steps, out=used)
    used += [routine, *map(address, all_)]
    pool.prepare(share)
    with one_thread:
        pool.call(frames, share)


@cache
def _address(routine: str) -> int | None:
    """Return the address of a routine of LAPACK, where there is a pool to call it."""
    from .native import blas, pool

    return blas.lapack(routine) if pool.is_known() else None


@cache
def _integer(number: int) -> np.ndarray:
    return np.array([number], np.int32)


@cache
def _letter(letter: str) -> np.ndarray:
    return np.frombuffer(letter.encode(), np.uint8)
