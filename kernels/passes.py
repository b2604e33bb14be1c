"""Sorting and running sums by all threads of a grid, a kernel for each pass.

What is sorted, or added up, lies along the middle axis of ``(outer, n, inner)``, flattened in C
order; a line is one of its ``outer * inner`` rows. Functions come in families: of how elements lie
in memory, and of how two of them are compared or combined.

Sorting is by merging: ``begin`` writes keys side by side with the places they came from, ``runs``
sorts eight neighbours, each ``merge`` doubles the length of what is sorted, each element finding
its place by halving; ``take`` moves operands. It is stable, so several keys are applied from the
last to the first.

Running sums take two passes: ``fold`` adds up parts of a line, ``scan`` begins each part with what
comes before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnarray_kernels import scalar as sc
from fnarray_kernels.cumulative import _log_add
from fnarray_kernels.grid import (
    block,
    blocks,
    from_first,
    from_lane,
    lane,
    lanes,
    thread,
    threads,
)
from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u
from fnarray_kernels.sort import _above, _less

#: Neighbours that one thread sorts by insertion.
RUN = 8
#: Turns of a thread that adds up a part: a read takes memory some 700 cycles.
AT_ONCE = 8


@compiled
def _plain(x):
    return x


@compiled
def _f16(x):
    return sc.f16_load(x)


@compiled
def _bf16(x):
    return sc.bf16_load(x)


@compiled
def _to_f16(x):
    return sc.f16_store(x)


@compiled
def _to_bf16(x):
    return sc.bf16_store(x)


#: How elements are read and written, by the name of what is kept narrow in memory.
HELD: dict[str, tuple[Any, Any]] = {
    "": (_plain, _plain),
    "float16": (_f16, _to_f16),
    "bfloat16": (_bf16, _to_bf16),
}


@compiled
def _element(line, k, n, inner):
    """Return where element ``k`` of a line lies."""
    return line // inner * (n * inner) + line % inner + k * inner


# --- sorting ------------------------------------------------------------------------------------


@compiled
def _less_complex(a, b):
    """Whether ``a`` precedes ``b``: by real parts, then by imaginary ones."""
    if _less(a.real, b.real):
        return True
    if _less(b.real, a.real):
        return False
    return _less(a.imag, b.imag)


def _begin(load: Any) -> Any:
    @compiled
    def begin(key, keys, perm, lines, n, inner, again):
        """Write the keys in the order of the places, which are their own the first time."""
        i = thread()
        while i < lines * n:
            if again == 0:
                perm[u(i)] = i % n
            k = np.int64(perm[u(i)])
            keys[u(i)] = load(key[u(_element(i // n, k, n, inner))])
            i += threads()

    return begin


def _runs(less: Any) -> Any:
    @compiled
    def runs(keys, perm, lines, n):
        """Sort runs of neighbours, each by one thread."""
        each = (n + RUN - 1) // RUN
        i = thread()
        while i < lines * each:
            base = i // each * n
            start = base + i % each * RUN
            stop = min(start + RUN, base + n)
            for j in range(start + 1, stop):
                key, place = keys[u(j)], perm[u(j)]
                k = j - 1
                while k >= start and less(key, keys[u(k)]):
                    keys[u(k + 1)], perm[u(k + 1)] = keys[u(k)], perm[u(k)]
                    k -= 1
                keys[u(k + 1)], perm[u(k + 1)] = key, place
            i += threads()

    return runs


def _merge(less: Any) -> Any:
    @compiled
    def merge(keys, perm, to_keys, to_perm, lines, n, width):
        """Merge neighbouring runs of ``width``: each element finds its place in the other run."""
        i = thread()
        while i < lines * n:
            base = i // n * n
            r = i - base
            start = r // (2 * width) * (2 * width)
            middle = min(start + width, n)
            key = keys[u(i)]
            low, high = start, middle
            if r < middle:
                low, high = middle, min(start + 2 * width, n)
            while low < high:
                half = (low + high) // 2
                other = keys[u(base + half)]
                if less(other, key) if r < middle else not less(key, other):
                    low = half + 1
                else:
                    high = half
            to = base + r + low - middle
            to_keys[u(to)] = key
            to_perm[u(to)] = perm[u(i)]
            i += threads()

    return merge


@compiled
def take(x, out, perm, lines, n, inner, k):
    """Write the first ``k`` elements of each line in the order that was found."""
    i = thread()
    while i < lines * k:
        line, r = i // k, i % k
        source = np.int64(perm[u(line * n + r)])
        out[u(_element(line, r, k, inner))] = x[u(_element(line, source, n, inner))]
        i += threads()


@compiled
def places(perm, out, lines, n, inner, k):
    """Write where the first ``k`` elements of each line were."""
    i = thread()
    while i < lines * k:
        line, r = i // k, i % k
        out[u(_element(line, r, k, inner))] = perm[u(line * n + r)]
        i += threads()


begin, begin_float16, begin_bfloat16 = (_begin(load) for load, _ in HELD.values())
runs, runs_complex, runs_above = map(_runs, (_less, _less_complex, _above))
merge, merge_complex, merge_above = map(_merge, (_less, _less_complex, _above))


# --- running sums -------------------------------------------------------------------------------


@compiled
def _place(line, k, n, inner, reverse):
    return _element(line, n - 1 - k if reverse else k, n, inner)


@compiled
def _stride(inner, reverse):
    return -inner if reverse else inner


def _fold(combine: Any, load: Any) -> Any:
    @compiled
    def fold(x, parts, lines, n, inner, reverse, per, neutral):
        """Combine each of the ``per`` parts of every line."""
        share = (n + per - 1) // per
        job = block()
        while job < lines * per:
            line = job // per
            # Found once: to find where a line begins takes divisions.
            start, by = _place(line, 0, n, inner, reverse), _stride(inner, reverse)
            stop = min(job % per * share + share, n)
            k = job % per * share + lane()
            total = neutral
            while k + (AT_ONCE - 1) * lanes() < stop:  # whose reads are under way together
                for j in range(AT_ONCE):
                    total = combine(total, load(x[u(start + (k + j * lanes()) * by)]))
                k += AT_ONCE * lanes()
            while k < stop:
                total = combine(total, load(x[u(start + k * by)]))
                k += lanes()
            step = 1
            while step < lanes():
                total = combine(total, from_lane(total, step))
                step *= 2
            if lane() == 0:
                parts[u(job)] = total
            job += blocks()

    return fold


def _scan(combine: Any, load: Any, store: Any) -> Any:
    @compiled
    def scan(x, parts, out, lines, n, inner, reverse, per, neutral):
        """Write running results, each part beginning with all that comes before it."""
        share = (n + per - 1) // per
        job = block()
        while job < lines * per:
            line, mine = job // per, job % per
            origin, by = _place(line, 0, n, inner, reverse), _stride(inner, reverse)
            carry = neutral
            k = lane()
            while k < mine:
                carry = combine(carry, parts[u(line * per + k)])
                k += lanes()
            step = 1
            while step < lanes():
                carry = combine(carry, from_lane(carry, step))
                step *= 2
            carry = from_first(carry)
            tile, stop = mine * share, min(mine * share + share, n)
            while tile < stop:
                k = tile + 4 * lane()
                a, b, c, d = neutral, neutral, neutral, neutral
                if k < stop:
                    a = load(x[u(origin + k * by)])
                if k + 1 < stop:
                    b = load(x[u(origin + (k + 1) * by)])
                if k + 2 < stop:
                    c = load(x[u(origin + (k + 2) * by)])
                if k + 3 < stop:
                    d = load(x[u(origin + (k + 3) * by)])
                b = combine(a, b)
                c = combine(b, c)
                d = combine(c, d)
                total = d
                step = 1
                while step < lanes():
                    before = from_lane(total, -step)
                    if lane() >= step:
                        total = combine(before, total)
                    step *= 2
                before = from_lane(total, -1)
                start = carry
                if lane() > 0:
                    start = combine(carry, before)
                if k < stop:
                    out[u(origin + k * by)] = store(combine(start, a))
                if k + 1 < stop:
                    out[u(origin + (k + 1) * by)] = store(combine(start, b))
                if k + 2 < stop:
                    out[u(origin + (k + 2) * by)] = store(combine(start, c))
                if k + 3 < stop:
                    out[u(origin + (k + 3) * by)] = store(combine(start, d))
                carry = combine(carry, from_lane(total, lanes() - 1 - lane()))
                tile += 4 * lanes()
            job += blocks()

    return scan


@compiled
def _add(a, b):
    return sc.add(a, b)


@compiled
def _multiply(a, b):
    return sc.mul(a, b)


@compiled
def _add_complex(a, b):
    return a + b


@compiled
def _multiply_complex(a, b):
    return a * b


@compiled
def _most(a, b):
    return sc.maximum(a, b)


@compiled
def _least(a, b):
    return sc.minimum(a, b)


#: What combines two elements, by the operation, and of complex numbers.
COMBINES: dict[str, Any] = {
    "cumsum": _add,
    "cumprod": _multiply,
    "cummax": _most,
    "cummin": _least,
    "cumlogsumexp": _log_add,
    "cumsum_complex": _add_complex,
    "cumprod_complex": _multiply_complex,
}
for _name, _combine in COMBINES.items():
    for _held, (_load, _store) in HELD.items():
        _suffix = f"{_name}_{_held}" if _held else _name
        globals()[f"fold_{_suffix}"] = _fold(_combine, _load)
        globals()[f"scan_{_suffix}"] = _scan(_combine, _load, _store)


@compiled
def fold_linear(scale, x, scales, parts, lines, n, inner, reverse, per):
    """Compose the steps ``y -> scale * y + x`` of each of the ``per`` parts of every line."""
    share = (n + per - 1) // per
    job = block()
    while job < lines * per:
        line = job // per
        start, by = _place(line, 0, n, inner, reverse), _stride(inner, reverse)
        stop = min(job % per * share + share, n)
        each = (share + lanes() - 1) // lanes()
        k = job % per * share + lane() * each
        last = min(k + each, stop)
        a, b = scale.dtype.type(1), scale.dtype.type(0)
        while k < last:
            at = start + k * by
            a = scale[u(at)] * a
            b = scale[u(at)] * b + x[u(at)]
            k += 1
        step = 1
        while step < lanes():
            a_after, b_after = from_lane(a, step), from_lane(b, step)
            if lane() + step < lanes():
                b = a_after * b + b_after
                a = a_after * a
            step *= 2
        if lane() == 0:
            scales[u(job)] = a
            parts[u(job)] = b
        job += blocks()


@compiled
def scan_linear(scale, x, scales, parts, out, lines, n, inner, reverse, per):
    """Write ``y = scale * y + x``, each part beginning with what comes of those before it."""
    share = (n + per - 1) // per
    job = block()
    while job < lines * per:
        line, mine = job // per, job % per
        start, by = _place(line, 0, n, inner, reverse), _stride(inner, reverse)
        carry = scale.dtype.type(0)
        for k in range(mine):  # all lanes alike: there are few parts
            at = line * per + k
            carry = scales[u(at)] * carry + parts[u(at)]
        stop = min(mine * share + share, n)
        each = (share + lanes() - 1) // lanes()
        begin_at = mine * share + lane() * each
        last = min(begin_at + each, stop)
        a, b = scale.dtype.type(1), scale.dtype.type(0)
        k = begin_at
        while k < last:
            at = start + k * by
            a = scale[u(at)] * a
            b = scale[u(at)] * b + x[u(at)]
            k += 1
        step = 1
        while step < lanes():
            a_before, b_before = from_lane(a, -step), from_lane(b, -step)
            if lane() >= step:
                b = a * b_before + b
                a = a * a_before
            step *= 2
        a_before, b_before = from_lane(a, -1), from_lane(b, -1)
        if lane() > 0:
            carry = a_before * carry + b_before
        k = begin_at
        while k < last:
            at = start + k * by
            carry = scale[u(at)] * carry + x[u(at)]
            out[u(at)] = carry
            k += 1
        job += blocks()
