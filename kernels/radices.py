"""Radices of Fourier transforms, of sixteen lines that lie side by side in a working array.

Each is object code of its own: a transform has compiled those that its sizes call for.
"""

from __future__ import annotations

import math

from fnarray_kernels.registry import outside
from fnarray_kernels.scalar import u

#: Lines that are transformed at once; a row of the working array has two parts of each.
LINES, ROW = 16, 32
_FIFTH = tuple(f(k * math.pi / 5) for f in (math.cos, math.sin) for k in (2, 4))


@outside(loops=True, integers=True, free=True)
def _twos(work, a, b, m, s, table, t):
    gap, hop = m * s * ROW, s * ROW
    for p in range(m):
        c, d = table[u(2 * p * t)], table[u(2 * p * t + 1)]
        for q in range(s):
            at, to = a + (q + s * p) * ROW, b + (q + 2 * s * p) * ROW
            for i in range(LINES):
                x, y = work[u(at + i)], work[u(at + i + LINES)]
                v, w = work[u(at + gap + i)], work[u(at + gap + i + LINES)]
                work[u(to + i)], work[u(to + i + LINES)] = x + v, y + w
                g, h = x - v, y - w
                work[u(to + hop + i)] = g * c - h * d
                work[u(to + hop + i + LINES)] = g * d + h * c


@outside(loops=True, integers=True, free=True)
def _threes(work, a, b, m, s, table, t):
    gap, hop = m * s * ROW, s * ROW
    half, root = type(table[u(0)])(0.5), type(table[u(0)])(math.sqrt(0.75))
    for p in range(m):
        c, d = table[u(2 * p * t)], table[u(2 * p * t + 1)]
        e, f = table[u(4 * p * t)], table[u(4 * p * t + 1)]
        for q in range(s):
            at, to = a + (q + s * p) * ROW, b + (q + 3 * s * p) * ROW
            for i in range(LINES):
                x, y = work[u(at + i)], work[u(at + i + LINES)]
                v, w = work[u(at + gap + i)], work[u(at + gap + i + LINES)]
                g, h = work[u(at + 2 * gap + i)], work[u(at + 2 * gap + i + LINES)]
                x1, y1, x2, y2 = v + g, w + h, root * (w - h), root * (g - v)
                work[u(to + i)], work[u(to + i + LINES)] = x + x1, y + y1
                x3, y3 = x - half * x1, y - half * y1
                x4, y4, x5, y5 = x3 + x2, y3 + y2, x3 - x2, y3 - y2
                work[u(to + hop + i)] = x4 * c - y4 * d
                work[u(to + hop + i + LINES)] = x4 * d + y4 * c
                work[u(to + 2 * hop + i)] = x5 * e - y5 * f
                work[u(to + 2 * hop + i + LINES)] = x5 * f + y5 * e


@outside(loops=True, integers=True, free=True)
def _fours(work, a, b, m, s, table, t):
    gap, hop = m * s * ROW, s * ROW
    for p in range(m):
        c1, d1 = table[u(2 * p * t)], table[u(2 * p * t + 1)]
        c2, d2 = table[u(4 * p * t)], table[u(4 * p * t + 1)]
        c3, d3 = table[u(6 * p * t)], table[u(6 * p * t + 1)]
        for q in range(s):
            at, to = a + (q + s * p) * ROW, b + (q + 4 * s * p) * ROW
            for i in range(LINES):
                x0, y0 = work[u(at + i)], work[u(at + i + LINES)]
                x1, y1 = work[u(at + gap + i)], work[u(at + gap + i + LINES)]
                x2, y2 = work[u(at + 2 * gap + i)], work[u(at + 2 * gap + i + LINES)]
                x3, y3 = work[u(at + 3 * gap + i)], work[u(at + 3 * gap + i + LINES)]
                x4, y4, x5, y5 = x0 + x2, y0 + y2, x0 - x2, y0 - y2
                x6, y6, x7, y7 = x1 + x3, y1 + y3, y1 - y3, x3 - x1
                work[u(to + i)], work[u(to + i + LINES)] = x4 + x6, y4 + y6
                v1, w1, v2, w2, v3, w3 = x5 + x7, y5 + y7, x4 - x6, y4 - y6, x5 - x7, y5 - y7
                work[u(to + hop + i)] = v1 * c1 - w1 * d1
                work[u(to + hop + i + LINES)] = v1 * d1 + w1 * c1
                work[u(to + 2 * hop + i)] = v2 * c2 - w2 * d2
                work[u(to + 2 * hop + i + LINES)] = v2 * d2 + w2 * c2
                work[u(to + 3 * hop + i)] = v3 * c3 - w3 * d3
                work[u(to + 3 * hop + i + LINES)] = v3 * d3 + w3 * c3


@outside(loops=True, integers=True, free=True)
def _fives(work, a, b, m, s, table, t):
    gap, hop = m * s * ROW, s * ROW
    # The parts of exp(2 pi i / 5) and of its square.
    one, two = type(table[u(0)])(_FIFTH[0]), type(table[u(0)])(_FIFTH[1])
    near, far = type(table[u(0)])(_FIFTH[2]), type(table[u(0)])(_FIFTH[3])
    for p in range(m):
        c1, d1 = table[u(2 * p * t)], table[u(2 * p * t + 1)]
        c2, d2 = table[u(4 * p * t)], table[u(4 * p * t + 1)]
        c3, d3 = table[u(6 * p * t)], table[u(6 * p * t + 1)]
        c4, d4 = table[u(8 * p * t)], table[u(8 * p * t + 1)]
        for q in range(s):
            at, to = a + (q + s * p) * ROW, b + (q + 5 * s * p) * ROW
            for i in range(LINES):
                x, y = work[u(at + i)], work[u(at + i + LINES)]
                x1, y1 = work[u(at + gap + i)], work[u(at + gap + i + LINES)]
                x2, y2 = work[u(at + 2 * gap + i)], work[u(at + 2 * gap + i + LINES)]
                x3, y3 = work[u(at + 3 * gap + i)], work[u(at + 3 * gap + i + LINES)]
                x4, y4 = work[u(at + 4 * gap + i)], work[u(at + 4 * gap + i + LINES)]
                v1, w1, v4, w4 = x1 + x4, y1 + y4, x1 - x4, y1 - y4
                v2, w2, v3, w3 = x2 + x3, y2 + y3, x2 - x3, y2 - y3
                work[u(to + i)], work[u(to + i + LINES)] = x + v1 + v2, y + w1 + w2
                e, f = x + one * v1 + two * v2, y + one * w1 + two * w2
                g, h = x + two * v1 + one * v2, y + two * w1 + one * w2
                p1, q1 = near * w4 + far * w3, near * v4 + far * v3
                p2, q2 = far * w4 - near * w3, far * v4 - near * v3
                g1, h1, g4, h4 = e + p1, f - q1, e - p1, f + q1
                g2, h2, g3, h3 = g + p2, h - q2, g - p2, h + q2
                work[u(to + hop + i)] = g1 * c1 - h1 * d1
                work[u(to + hop + i + LINES)] = g1 * d1 + h1 * c1
                work[u(to + 2 * hop + i)] = g2 * c2 - h2 * d2
                work[u(to + 2 * hop + i + LINES)] = g2 * d2 + h2 * c2
                work[u(to + 3 * hop + i)] = g3 * c3 - h3 * d3
                work[u(to + 3 * hop + i + LINES)] = g3 * d3 + h3 * c3
                work[u(to + 4 * hop + i)] = g4 * c4 - h4 * d4
                work[u(to + 4 * hop + i + LINES)] = g4 * d4 + h4 * c4


@outside(loops=True, integers=True, free=True)
def _several(work, a, b, m, s, r, table, t):
    """Do as `_twos` for any radix, by the definition."""
    gap, hop = m * s * ROW, s * ROW
    for p in range(m):
        for q in range(s):
            here, there = a + (q + s * p) * ROW, b + (q + r * s * p) * ROW
            for k in range(r):
                to = there + k * hop
                c, d = table[u(2 * k * p * t)], table[u(2 * k * p * t + 1)]
                for i in range(LINES):
                    x, y = work[u(here + i)], work[u(here + i + LINES)]
                    work[u(to + i)], work[u(to + i + LINES)] = x * c - y * d, x * d + y * c
                for j in range(1, r):
                    turn = (k * p + j * k % r * m) % (r * m) * t
                    e, f = table[u(2 * turn)], table[u(2 * turn + 1)]
                    at = here + j * gap
                    for h in range(LINES):
                        v, w = work[u(at + h)], work[u(at + h + LINES)]
                        work[u(to + h)] += v * e - w * f
                        work[u(to + h + LINES)] += v * f + w * e


@outside(loops=True, integers=True, free=True)
def stages_of_all(work, n, table, step, places):
    """Transform what the working array's first half holds; tell last where the result begins.

    Every ``step``-th entry of the table is one of ``n``.
    """
    a, b, left, s = 0, n * ROW, n, 1
    while left > 1:
        r = 4
        if left % 4 == 0:
            _fours(work, a, b, left // 4, s, table, s * step)
        elif left % 3 == 0:
            r = 3
            _threes(work, a, b, left // 3, s, table, s * step)
        elif left % 5 == 0:
            r = 5
            _fives(work, a, b, left // 5, s, table, s * step)
        elif left % 2 == 0:
            r = 2
            _twos(work, a, b, left // 2, s, table, s * step)
        else:
            r = 7
            while left % r != 0:
                r += 2
            _several(work, a, b, left // r, s, r, table, s * step)
        left, s = left // r, s * r
        a, b = b, a
    places[u(LINES)] = a


@outside(loops=True, integers=True, free=True)
def stages_of_twos(work, n, table, step, places):
    """Do as `stages_of_all`, of powers of two: the other radices are two thirds of its text."""
    a, b, left, s = 0, n * ROW, n, 1
    while left > 1:
        r = 4
        if left > 2:
            _fours(work, a, b, left // 4, s, table, s * step)
        else:
            r = 2
            _twos(work, a, b, 1, s, table, s * step)
        left, s = left // r, s * r
        a, b = b, a
    places[u(LINES)] = a
