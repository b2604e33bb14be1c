"""Discrete Fourier transforms of small sizes, sixteen lines at a time.

Stockham's self-sorting form of the algorithm of Cooley and Tukey (1965), of radices 4, 3, 2 and 5,
others by their definition. Lines lie side by side in a working array, real parts apart from
imaginary ones, so that every operation is one of sixteen numbers, whatever the size. A line that is
alone is made a matrix, whose columns and then rows are such lines (Bailey, "FFTs in external or
hierarchical memory", 1990). An inverse is a transform with the two parts exchanged.
"""

from __future__ import annotations

import math

import numpy as np

from fnarray_kernels.complexmath import make
from fnarray_kernels.radices import LINES, ROW, stages_of_all, stages_of_twos
from fnarray_kernels.registry import compiled, outside
from fnarray_kernels.scalar import u

#: Numbers of a table that are computed at once.
_TURNS = 8
#: Fewer lines than these, and longer ones, are transformed one by one, as matrices.
_FEW, _LONG = 8, 4096
#: Elements of a line that are read in a row: lines of powers of two share the sets of a cache.
_RUN = 8
_HALF_PI = math.pi / 2


@outside(loops=True, integers=True, free=True)
def _turns(table, n):
    """Write the real and imaginary parts of ``exp(-2 pi i k / n)``, eight k at a time.

    Angles are reduced exactly, to an eighth of a turn; Taylor's series there leave 5e-17. Of a size
    that is a multiple of four a quarter is computed; the others are its numbers, to the bit.
    """
    quarters = 4 if n % 4 == 0 else 1
    some, size = n // quarters, np.float64(n)
    ramp, share, angle = np.empty(_TURNS, np.float64), 1.0 / size, _HALF_PI / size
    for j in range(_TURNS):
        ramp[u(j)] = np.float64(j)
    for first in range(0, some, _TURNS):
        start = np.float64(first)
        for i in range(_TURNS):
            k = 4.0 * (ramp[u(i)] + start)
            quarter = np.floor(k * share + 0.5)
            x = (k - quarter * size) * angle
            y = x * x
            c12 = 1 / 479001600 - y * (1 / 87178291200 - y * (1 / 20922789888000))
            c10 = 1 / 3628800 - y * c12
            c4 = 1 / 24 - y * (1 / 720 - y * (1 / 40320 - y * c10))
            c = 1.0 - y * (0.5 - y * c4)
            s9 = 1 / 362880 - y * (1 / 39916800 - y * (1 / 6227020800 - y * (1 / 1307674368000)))
            s3 = 1 / 6 - y * (1 / 120 - y * (1 / 5040 - y * s9))
            s = x - x * y * s3
            half = np.floor(quarter * 0.5)
            odd = quarter - 2.0 * half
            sign = 1.0 - 2.0 * (half - 2.0 * np.floor(half * 0.5))
            # One of the two terms is zero: there are no branches, and nothing is rounded.
            table[u(2 * (first + i))] = sign * ((1.0 - odd) * c - odd * s)
            table[u(2 * (first + i) + 1)] = -sign * ((1.0 - odd) * s + odd * c)
    if quarters == 4:
        for at in range(0, 2 * some, 2):
            e, f = table[u(at)], table[u(at + 1)]
            table[u(at + 2 * some)], table[u(at + 2 * some + 1)] = f, -e
            table[u(at + 4 * some)], table[u(at + 4 * some + 1)] = -e, -f
            table[u(at + 6 * some)], table[u(at + 6 * some + 1)] = -f, e


@compiled
def _places(places, first, count, inner, outer, step, start):
    """Write where sixteen lines begin; in place of those that there are not, the last one.

    It is transformed as often, and written where it was before.
    """
    first = min(first, count - 1)
    line, column = first // inner, first % inner
    for i in range(LINES):
        places[u(i)] = start + line * outer + column * step
        if first + i + 1 < count:
            column += 1
            if column == inner:
                column = 0
                line += 1


@compiled
def _lie_beside(places):
    """Whether sixteen lines, none of them repeated, begin side by side.

    Four lines of five numbers, too, begin at 0, 5, 10 and 15, where the others repeat the last.
    """
    begin, end = places[u(0)], places[u(LINES - 1)]
    return end - places[u(LINES - 2)] == 1 and end - begin == LINES - 1


@compiled
def _load(x, work, places, n, step, inverse):
    """Read lines; the parts of an inverse's change places."""
    re = LINES if inverse else 0
    im, begin = LINES - re, places[u(0)]
    if _lie_beside(places):
        _load_beside(x, work, begin, n, step, re, im)
    else:
        _load_apart(x, work, places, n, step, re, im)


@compiled
def _load_beside(x, work, begin, n, step, re, im):
    for j in range(n):
        at, to = begin + j * step, j * ROW
        for i in range(LINES):
            z = x[u(at + i)]
            work[u(to + re + i)], work[u(to + im + i)] = z.real, z.imag


@compiled
def _load_apart(x, work, places, n, step, re, im):
    whole = n // _RUN * _RUN
    for first in range(0, whole, _RUN):
        for line in range(LINES):
            at, to = places[u(line)] + first * step, first * ROW + line
            for k in (0, 1, 2, 3, 4, 5, 6, 7):
                z = x[u(at + k * step)]
                work[u(to + k * ROW + re)], work[u(to + k * ROW + im)] = z.real, z.imag
    for i in range(LINES):
        for j in range(whole, n):
            w = x[u(places[u(i)] + j * step)]
            work[u(j * ROW + i + re)], work[u(j * ROW + i + im)] = w.real, w.imag


@compiled
def _store(work, a, out, places, n, step, inverse, scale):
    """Write lines; see `_load`."""
    re = LINES if inverse else 0
    im, begin = LINES - re, places[u(0)]
    if _lie_beside(places):
        _store_beside(work, out, begin, n, step, a + re, a + im, scale)
    else:
        _store_apart(work, out, places, n, step, a + re, a + im, scale)


@compiled
def _store_beside(work, out, begin, n, step, re, im, scale):
    for j in range(n):
        at, to = j * ROW, begin + j * step
        for i in range(LINES):
            x, y = work[u(at + re + i)], work[u(at + im + i)]
            out[u(to + i)] = make(scale * x, scale * y)


@compiled
def _store_apart(work, out, places, n, step, re, im, scale):
    whole = n // _RUN * _RUN
    for first in range(0, whole, _RUN):
        for line in range(LINES):
            at, to = first * ROW + line, places[u(line)] + first * step
            for k in (0, 1, 2, 3, 4, 5, 6, 7):
                x, y = work[u(at + k * ROW + re)], work[u(at + k * ROW + im)]
                out[u(to + k * step)] = make(scale * x, scale * y)
    for i in range(LINES):
        for j in range(whole, n):
            v, w = work[u(j * ROW + i + re)], work[u(j * ROW + i + im)]
            out[u(places[u(i)] + j * step)] = make(scale * v, scale * w)


@compiled
def _load_parts(x, work, places, n, part):
    """Read real lines that are one of the two parts of lines."""
    whole = n // _RUN * _RUN
    for first in range(0, whole, _RUN):
        for line in range(LINES):
            at, to = places[u(line)] + first, first * ROW + line + part
            for k in (0, 1, 2, 3, 4, 5, 6, 7):
                work[u(to + k * ROW)] = x[u(at + k)]
    for i in range(LINES):
        for j in range(whole, n):
            work[u(j * ROW + i + part)] = x[u(places[u(i)] + j)]


@compiled
def _store_parts(work, a, out, places, n, scale):
    """Write real lines; see `_load_parts`."""
    whole = n // _RUN * _RUN
    for first in range(0, whole, _RUN):
        for line in range(LINES):
            at, to = a + first * ROW + line, places[u(line)] + first
            for k in (0, 1, 2, 3, 4, 5, 6, 7):
                out[u(to + k)] = scale * work[u(at + k * ROW)]
    for i in range(LINES):
        for j in range(whole, n):
            out[u(places[u(i)] + j)] = scale * work[u(a + j * ROW + i)]


@compiled
def _load_real(x, work, places, others, k):
    """Read what is the real part of an inverse, of two lines each, at a place."""
    for i in range(LINES):
        work[u(k * ROW + i)] = x[u(others[u(i)] + k)].real
        work[u(k * ROW + i + LINES)] = x[u(places[u(i)] + k)].real


@compiled
def _twist(work, a, places, n, table):
    """Multiply the result of place ``k`` of line ``j`` by ``exp(-2 pi i j k / size)``."""
    for k in range(n):
        at = a + k * ROW
        for i in range(LINES):
            turn = 2 * k * places[u(i)]
            c, d = table[u(turn)], table[u(turn + 1)]
            x, y = work[u(at + i)], work[u(at + i + LINES)]
            work[u(at + i)], work[u(at + i + LINES)] = x * c - y * d, x * d + y * c


@compiled
def _part(count, group, part, parts):
    """Return where one of many parts of lines begins, in whole groups; the last ends with them."""
    return min((count + group - 1) // group * part // parts * group, count)


@compiled
def _divisor(n):
    """Return the largest divisor whose square is no larger than a number."""
    d = np.int64(math.sqrt(n + 0.5))
    while n % d != 0:
        d -= 1
    return d


def _apart(real, kind):
    """Return what transforms long lines, and those that few lie beside."""

    @compiled
    def apart(x, out, count, n, tall, inner, inverse, scale):
        """Transform lines one by one, the columns and then the rows of each as a matrix."""
        wide = n // tall
        table, work = np.empty(2 * (n + LINES), real), np.empty(2 * ROW * wide, real)
        places, matrix = np.empty(LINES + 1, np.int64), np.empty(n, kind)
        _turns(table, n)
        for line in range(count):
            start = line // inner * n * inner + line % inner
            for column in range(0, wide, LINES):
                _places(places, column, wide, wide, 0, inner, start)
                _load(x, work, places, tall, wide * inner, inverse)
                stages_of_all(work, tall, table, wide, places)
                a = places[u(LINES)]
                _places(places, column, wide, wide, 0, 1, 0)
                _twist(work, a, places, tall, table)
                _store(work, a, matrix, places, tall, wide, False, real(1))
            for row in range(0, tall, LINES):
                _places(places, row, tall, tall, 0, wide, 0)
                _load(matrix, work, places, wide, 1, False)
                stages_of_all(work, wide, table, tall, places)
                b = places[u(LINES)]
                _places(places, row, tall, tall, 0, inner, start)
                _store(work, b, out, places, wide, tall * inner, inverse, scale)

    return apart


def _lines(real, stages):
    """Return what transforms some lines along the middle axis by the stages of their size."""

    @compiled
    def together(x, out, count, n, inner, inverse, scale, low, high):
        """Transform some of the lines, sixteen at a time."""
        table, work = np.empty(2 * (n + LINES), real), np.empty(2 * ROW * n, real)
        places = np.empty(LINES + 1, np.int64)
        _turns(table, n)
        for first in range(low, high, LINES):
            _places(places, first, count, inner, n * inner, 1, 0)
            _load(x, work, places, n, inner, inverse)
            stages(work, n, table, 1, places)
            a = places[u(LINES)]
            _store(work, a, out, places, n, inner, inverse, scale)

    @outside(loops=True, integers=True, free=True)
    def lines(x, out, outer, n, inner, inverse, size, part, parts):
        """Transform the lines of one part of many along the middle axis, divided by a size."""
        count, scale = outer * inner, real(1) / real(size)
        low, high = _part(count, LINES, part, parts), _part(count, LINES, part + 1, parts)
        together(x, out, count, n, inner, inverse, scale, low, high)

    @compiled
    def beside(x, out, outer, n, inner, inverse, size):
        """Do as `along`, of lines side by side: a third of its text."""
        lines(x, out, outer, n, inner, inverse, size, 0, 1)

    return beside, lines


def _along(real, apart, lines):
    """Return what transforms along the middle axis."""

    @outside(loops=True, integers=True, free=True)
    def along(x, out, outer, n, inner, inverse, size):
        """Transform along the middle axis."""
        count, tall = outer * inner, _divisor(n)
        if tall >= 4 and (count < _FEW or n > _LONG):
            apart(x, out, count, n, tall, inner, inverse, real(1) / real(size))
        else:
            lines(x, out, outer, n, inner, inverse, size, 0, 1)

    return along


def _full(real, along):
    """Return transforms in place along the first two of three axes, and along all of them."""

    @compiled
    def rest(out, outer, n0, n1, n2, inverse):
        """Transform in place along the first two of three axes."""
        if n1 > 1:
            along(out, out, outer * n0, n1, n2, inverse, 1)
        if n0 > 1:
            along(out, out, outer, n0, n1 * n2, inverse, 1)

    @outside(loops=True, integers=True, free=True)
    def full(x, out, outer, n0, n1, n2, inverse):
        """Transform complex arrays of three axes, the inverse divided by their size."""
        size = n0 * n1 * n2 if inverse else 1
        along(x, out, outer * n0 * n1, n2, 1, inverse, size)
        rest(out, outer, n0, n1, n2, inverse)

    return rest, full


def _forward(real, kind, stages, along, rest):
    """Return the transform of real numbers."""

    @compiled
    def few_forward(x, out, count, n, half):
        whole = np.empty(count * n, kind)
        for i in range(count * n):
            whole[u(i)] = make(x[u(i)], real(0))
        along(whole, whole, count, n, 1, False, 1)
        for line in range(count):
            for k in range(half):
                out[u(line * half + k)] = whole[u(line * n + k)]

    @compiled
    def forward_lines(x, out, count, n, half, low, high):
        """Transform lines of real numbers, two of them as the parts of one of complex numbers."""
        table, work = np.empty(2 * (n + LINES), real), np.empty(2 * ROW * n, real)
        places, by, one = np.empty(LINES + 1, np.int64), real(0.5), real(1)
        _turns(table, n)
        for first in range(low, high, ROW):
            for part in range(2):
                _places(places, first + part * LINES, count, 1, n, 0, 0)
                _load_parts(x, work, places, n, part * LINES)
            stages(work, n, table, 1, places)
            a = places[u(LINES)]
            b = n * ROW - a
            # Both parts are written in runs, too: of one line takes the other half of the working
            # array, the other one what it was computed of, as no later one is.
            for k in range(half):
                at, to, other = a + k * ROW, a + (n - k) % n * ROW, b + k * ROW
                for h in range(LINES):
                    x1, y1 = work[u(at + h)], work[u(at + h + LINES)]
                    x2, y2 = work[u(to + h)], work[u(to + h + LINES)]
                    work[u(other + h)] = by * (x1 + x2)
                    work[u(other + h + LINES)] = by * (y1 - y2)
                    work[u(at + h)] = by * (y1 + y2)
                    work[u(at + h + LINES)] = by * (x2 - x1)
            for part in range(2):
                _places(places, first + part * LINES, count, 1, half, 0, 0)
                at_row = b if part == 0 else a
                _store_apart(work, out, places, half, 1, at_row, at_row + LINES, one)

    @outside(loops=True, integers=True, free=True)
    def lines(x, out, count, n, part, parts):
        """Transform real lines of one part of many."""
        low, high = _part(count, ROW, part, parts), _part(count, ROW, part + 1, parts)
        forward_lines(x, out, count, n, n // 2 + 1, low, high)

    @outside(loops=True, integers=True, free=True)
    def forward(x, out, outer, n0, n1, n2):
        """Transform real arrays of three axes; of the last one the first half is kept."""
        count, half = outer * n0 * n1, n2 // 2 + 1
        if count < ROW:
            few_forward(x, out, count, n2, half)
        else:
            lines(x, out, count, n2, 0, 1)
        rest(out, outer, n0, n1, half, False)

    return forward, lines


def _back(real, kind, stages, along, rest):
    """Return the inverse of that of real numbers."""

    @compiled
    def few_back(x, out, count, n, half, size):
        whole = np.empty(count * n, kind)
        for line in range(count):
            at, to = line * half, line * n
            whole[u(to)] = make(x[u(at)].real, real(0))
            for k in range(1, half):
                z = x[u(at + k)]
                # The middle one of an even number is written twice: its imaginary part is none.
                y = real(0) if 2 * k == n else z.imag
                whole[u(to + k)] = make(z.real, y)
                whole[u(to + n - k)] = make(z.real, -y)
        along(whole, whole, count, n, 1, True, size)
        for i in range(count * n):
            out[u(i)] = whole[u(i)].real

    @compiled
    def back_lines(x, out, count, n, half, scale):
        table, work = np.empty(2 * (n + LINES), real), np.empty(2 * ROW * n, real)
        places, others = np.empty(LINES + 1, np.int64), np.empty(LINES, np.int64)
        _turns(table, n)
        for first in range(0, count, ROW):
            _places(places, first, count, 1, half, 0, 0)
            _places(others, first + LINES, count, 1, half, 0, 0)
            _load_real(x, work, places, others, 0)
            for k in range(1, (n + 1) // 2):
                at, to = k * ROW, (n - k) * ROW
                for i in range(LINES):
                    v, w = x[u(places[u(i)] + k)], x[u(others[u(i)] + k)]
                    work[u(at + i)], work[u(at + i + LINES)] = v.imag + w.real, v.real - w.imag
                    work[u(to + i)], work[u(to + i + LINES)] = w.real - v.imag, v.real + w.imag
            if n % 2 == 0:
                _load_real(x, work, places, others, n // 2)
            stages(work, n, table, 1, places)
            a = places[u(LINES)]
            _places(places, first, count, 1, n, 0, 0)
            _places(others, first + LINES, count, 1, n, 0, 0)
            _store_parts(work, a + LINES, out, places, n, scale)
            _store_parts(work, a, out, others, n, scale)

    @outside(loops=True, integers=True, free=True)
    def back(x, out, outer, n0, n1, n2):
        """Do the inverse of `forward`; of what has no imaginary part it is not read."""
        count, half = outer * n0 * n1, n2 // 2 + 1
        some = np.empty(count * half, kind)
        for i in range(count * half):
            some[u(i)] = x[u(i)]
        rest(some, outer, n0, n1, half, True)
        if count < ROW:
            few_back(some, out, count, n2, half, n0 * n1 * n2)
        else:
            back_lines(some, out, count, n2, half, real(1) / real(n0 * n1 * n2))

    return back


def _transforms(real, kind):
    """Return the kinds of transform: of all sizes, of lines side by side, and of powers of two."""
    beside, lines = _lines(real, stages_of_all)
    twos, lines_of_twos = _lines(real, stages_of_twos)
    along = _along(real, _apart(real, kind), lines)
    found = {"lines": lines, "lines_twos": lines_of_twos}
    ways = (
        ("", stages_of_all, along),
        ("_beside", stages_of_all, beside),
        ("_twos", stages_of_twos, twos),
    )
    for way, stages, one in ways:
        rest, full = _full(real, one)
        forward, real_lines = _forward(real, kind, stages, one, rest)
        back = _back(real, kind, stages, one, rest)
        found |= {f"full{way}": full, f"forward{way}": forward, f"back{way}": back}
        found[f"real_lines{way}"] = real_lines
    return {f"{name}_{real.__name__}": function for name, function in found.items()}


globals().update(_transforms(np.float32, np.complex64) | _transforms(np.float64, np.complex128))
