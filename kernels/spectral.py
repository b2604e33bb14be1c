"""Schur's form of matrices by blocks of a grid, and the balance that eigenvalues want before.

A block has a matrix, whose rows and columns its lanes share; with one lane it is a loop. What all
lanes must know (a reflection, a shift, where a matrix splits) each works out for itself, from
memory that nobody writes until the next `sync`. Arrays are flattened in C order.

By QR iteration with shifts on Hessenberg's form (Francis 1961; Golub & Van Loan, "Matrix
Computations", 7.5). A matrix that is not finite, or on which the iteration does not end, has NaN
for results.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels import complexmath as cm
from fnarray_kernels.complexmath import make
from fnarray_kernels.grid import block, block_max, block_sum, blocks, lane, lanes, sync
from fnarray_kernels.linalg import _size
from fnarray_kernels.reflections import _copied, _from_left, _identity, _packed, _reflection
from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u

#: Steps that a matrix may take to split; after each ten the shift is another.
_STEPS, _ANOTHER = 40, 10

# ---- balance -----------------------------------------------------------------------------------


@compiled
def _beside(x, at, step, i, n):
    """Return the length of a row or column, but for its entry on the diagonal."""
    total = x[u(at)].real * 0
    e = lane()
    while e < n:
        if e != i:
            total = np.hypot(total, _size(x[u(at + e * step)]))
        e += lanes()
    largest = block_max(total)
    if not largest > 0:
        return largest
    total /= largest
    return largest * np.sqrt(block_sum(total * total))


@compiled
def balance(a, x, scales, batch, n, large):
    """Scale rows by powers of two, columns by their inverses, until the two have like lengths.

    By Parlett & Reinsch (1969), with the lengths of James, Langou & Lowery (2014).
    """
    s = block()
    while s < batch:
        at = s * n * n
        norm = _copied(a, x, at, n * n)
        e = lane()
        while e < n:
            scales[u(s * n + e)] = 1
            e += lanes()
        sync()
        again = norm == norm
        while again:
            again = False
            for i in range(n):
                c, r = _beside(x, at + i, n, i, n), _beside(x, at + i * n, 1, i, n)
                held = scales[u(s * n + i)]
                sync()
                if not (c > 0 and r > 0):
                    continue
                f, two = type(c)(1), type(c)(2)
                while c * f * f * two <= r:
                    f *= two
                while c * f * f >= r * two:
                    f /= two
                fit = held * f < large and held * f * large > 1
                if not (fit and c * f + r / f < type(c)(0.95) * (c + r)):
                    continue
                again = True
                e = lane()
                while e < n:
                    if e == i:
                        scales[u(s * n + i)] = held * f
                    else:
                        x[u(at + i * n + e)] /= f
                        x[u(at + e * n + i)] *= f
                    e += lanes()
                sync()
        s += blocks()


# ---- Hessenberg's form -------------------------------------------------------------------------


@compiled
def _from_right(x, to, down, v, at, step, count, rows, tau):
    """Take ``tau x v v^H`` off rows of ``x``, a lane for each."""
    r = lane()
    while r < rows:
        row = to + r * down
        total = x[u(row)]
        for i in range(1, count):
            total += x[u(row + i)] * v[u(at + i * step)]
        total *= tau
        x[u(row)] -= total
        for i in range(1, count):
            x[u(row + i)] -= total * np.conj(v[u(at + i * step)])
        r += lanes()


@compiled
def _hessenberg(t, z, at, n):
    """Bring a matrix to zeros below its first subdiagonal; ``z`` takes the reflections up."""
    for k in range(n - 2):
        corner, rows = at + (k + 1) * n + k, n - k - 1
        beta, scale = _reflection(t, corner, n, rows)
        if scale == 0:
            continue
        _packed(t, corner, n, rows, beta)
        _from_left(t, at + (k + 1) * n, n, t, corner, n, rows, k + 1, n, np.conj(scale))
        sync()
        _from_right(t, at + k + 1, n, t, corner, n, rows, n, scale)
        _from_right(z, at + k + 1, n, t, corner, n, rows, n, scale)
        sync()
        i = 1 + lane()
        while i < rows:
            t[u(corner + i * n)] = 0
            i += lanes()
        sync()


@compiled
def _split(t, at, n, high, norm, eps):
    """Return where the part that ends with ``high`` begins; what is above is cut off."""
    low = high
    while low > 0:
        below = at + low * n + low - 1
        near = _size(t[u(below - n)]) + _size(t[u(below + 1)])
        if near == 0:
            near = norm
        if _size(t[u(below)]) <= eps * near:
            break
        low -= 1
    sync()
    if low > 0 and lane() == 0:
        t[u(at + low * n + low - 1)] = 0
    sync()
    return low


@compiled
def _turn_rows(x, at, n, i, first, c, s):
    """Turn rows ``i`` and ``i + 1``, from column ``first`` on, by ``[[c, s], [-s*, c]]``."""
    e = first + lane()
    while e < n:
        here = at + i * n + e
        a, b = x[u(here)], x[u(here + n)]
        x[u(here)], x[u(here + n)] = c * a + s * b, c * b - np.conj(s) * a
        e += lanes()
    sync()


@compiled
def _turn_columns(x, at, n, i, rows, c, s):
    """Turn columns ``i`` and ``i + 1`` of the first rows by the adjoint of `_turn_rows`' turn."""
    e = lane()
    while e < rows:
        here = at + e * n + i
        a, b = x[u(here)], x[u(here + 1)]
        x[u(here)], x[u(here + 1)] = c * a + np.conj(s) * b, c * b - s * a
        e += lanes()


# ---- Schur's form of complex matrices ----------------------------------------------------------


@compiled
def _turn(x, y):
    """Return the turn that takes two complex numbers to one."""
    f, g = np.hypot(x.real, x.imag), np.hypot(y.real, y.imag)
    if g == 0:
        return type(f)(1), x * 0
    if f == 0:
        return f, np.conj(y) / g
    size = np.hypot(f, g)
    return f / size, (x / f) * (np.conj(y) / size)


@compiled
def _shift(t, at, n, high, turns):
    """Return the eigenvalue of the last 2 x 2 that is closer to its corner (Wilkinson's shift)."""
    corner = at + high * n + high
    d, c = t[u(corner)], t[u(corner - 1)]
    if turns % _ANOTHER == 0:
        return d + _size(c) * type(d.real)(0.75)
    a, b = t[u(corner - n - 1)], t[u(corner - n)]
    half = (a - d) * type(d.real)(0.5)
    scale = max(_size(half), _size(b), _size(c))
    if scale == 0:
        return d
    p = half / scale
    root = cm.sqrt(p * p + (b / scale) * (c / scale))
    if _size(p - root) > _size(p + root):
        root = -root
    if p + root == 0:
        return d
    return d - (b / scale) * (c / (p + root))


@compiled
def _triangle(t, z, at, n, norm, eps):
    """Iterate to a triangle; return whether it ended."""
    high, turns = n - 1, 0
    while high > 0 and turns <= _STEPS:
        low = _split(t, at, n, high, norm, eps)
        if low == high:
            high, turns = high - 1, 0
            continue
        turns += 1
        shift = _shift(t, at, n, high, turns)
        for k in range(low, high):
            here = at + k * n + k
            if k == low:
                c, s = _turn(t[u(here)] - shift, t[u(here + n)])
            else:
                c, s = _turn(t[u(here - 1)], t[u(here + n - 1)])
            sync()
            first = max(k - 1, low)
            _turn_rows(t, at, n, k, first, c, s)
            if k > low and lane() == 0:  # which has turned this column
                t[u(here + n - 1)] = 0
            _turn_columns(t, at, n, k, min(k + 2, high) + 1, c, s)
            _turn_columns(z, at, n, k, n, c, s)
            sync()
    return turns <= _STEPS


# ---- Schur's form of real matrices -------------------------------------------------------------


@compiled
def _small(p, q, r):
    """Return the reflection that takes three numbers to one: that, its scale, and its entries."""
    rest = np.hypot(q, r)
    if rest == 0:
        return p, rest, rest, rest
    beta = -np.copysign(np.hypot(p, rest), p)
    return beta, (beta - p) / beta, q / (p - beta), r / (p - beta)


@compiled
def _reflect_rows(x, at, n, i, three, tau, v, w):
    """Reflect two or three rows from ``i`` on, from the diagonal on."""
    e = i + lane()
    while e < n:
        here = at + i * n + e
        third = here + 2 * n if three else here
        total = x[u(here)] + v * x[u(here + n)] + w * x[u(third)]
        total *= tau
        x[u(here)] -= total
        x[u(here + n)] -= total * v
        if three:
            x[u(third)] -= total * w
        e += lanes()
    sync()


@compiled
def _reflect_columns(x, at, n, i, rows, three, tau, v, w):
    """Reflect two or three columns from ``i`` on, of the first rows."""
    e = lane()
    while e < rows:
        here = at + e * n + i
        third = here + 2 if three else here
        total = x[u(here)] + v * x[u(here + 1)] + w * x[u(third)]
        total *= tau
        x[u(here)] -= total
        x[u(here + 1)] -= total * v
        if three:
            x[u(third)] -= total * w
        e += lanes()


@compiled
def _start(t, at, n, low, high, turns, eps):
    """Return where a double step begins, and the first column of what its two shifts make.

    That may be below ``low``, where two entries of the subdiagonal are small together.
    """
    corner = at + high * n + high
    x, y = t[u(corner)], t[u(corner - n - 1)]
    w = t[u(corner - 1)] * t[u(corner - n)]
    if turns % _ANOTHER == 0:
        size = np.abs(t[u(corner - 1)]) + np.abs(t[u(corner - n - 2)])
        x += size * type(size)(0.75)
        y, w = x, size * size * type(size)(-0.4375)
    m = high - 2
    while True:
        here = at + m * n + m
        z, below = t[u(here)], t[u(here + n)]
        r, s = x - z, y - z
        p = (r * s - w) / below + t[u(here + 1)]
        q = t[u(here + n + 1)] - z - r - s
        r = t[u(here + 2 * n + 1)]
        size = np.abs(p) + np.abs(q) + np.abs(r)
        p, q, r = p / size, q / size, r / size
        if m == low:
            break
        around = np.abs(t[u(here - n - 1)]) + np.abs(z) + np.abs(t[u(here + n + 1)])
        if np.abs(t[u(here - 1)]) * (np.abs(q) + np.abs(r)) <= eps * np.abs(p) * around:
            break
        m -= 1
    return m, p, q, r


@compiled
def _standard(a, b, c, d):
    """Return a 2 x 2 in Schur's standard form, and the turn that leads there.

    That is a triangle, or has two equal entries on the diagonal and two of other signs beside it.
    """
    one = type(a)(1)
    none = one * 0
    if c == 0:
        return a, b, c, d, one, none
    if b == 0:
        return d, -c, none, a, none, one
    gap = a - d
    if gap == 0 and (b < 0) != (c < 0):
        return a, b, c, d, one, none
    half = gap * type(a)(0.5)
    more, less = max(np.abs(b), np.abs(c)), min(np.abs(b), np.abs(c))
    signed = less if (b < 0) == (c < 0) else -less
    scale = max(np.abs(half), more)
    inside = half / scale * half + more / scale * signed
    if inside > 0:
        # Two real eigenvalues: a turn to the vector of the first.
        root = half + np.copysign(np.sqrt(scale) * np.sqrt(inside), half)
        size = np.hypot(c, root)
        return d + root, b - c, none, d - more / root * signed, root / size, c / size
    both = b + c
    size = np.hypot(both, gap)
    cs = np.sqrt(type(a)(0.5) * (one + np.abs(both) / size))
    sn = -(half / (size * cs)) * np.copysign(one, both)
    p, q, r, s = a * cs + b * sn, b * cs - a * sn, c * cs + d * sn, d * cs - c * sn
    a, b, c, d = p * cs + r * sn, q * cs + s * sn, r * cs - p * sn, s * cs - q * sn
    a = (a + d) * type(a)(0.5)
    if c == 0 or (b < 0) != (c < 0):
        return a, b, c, a, cs, sn
    # By a rounding the two are real: two equal ones nearly.
    root, turned = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)), one / np.sqrt(np.abs(b + c))
    x, y = np.sqrt(np.abs(b)) * turned, np.sqrt(np.abs(c)) * turned
    root = np.copysign(root, c)
    return a + root, b - c, none, a - root, cs * x - sn * y, cs * y + sn * x


@compiled
def _double_step(t, z, at, n, low, high, turns, eps):
    """Make a step with two shifts, that may be conjugates."""
    m, p, q, r = _start(t, at, n, low, high, turns, eps)
    for k in range(m, high):
        here, three = at + k * n + k, k < high - 1
        if k > m:
            p, q, r = t[u(here - 1)], t[u(here + n - 1)], p * 0
            if three:
                r = t[u(here + 2 * n - 1)]
        sync()
        beta, tau, v, w = _small(p, q, r)
        _reflect_rows(t, at, n, k, three, tau, v, w)
        _reflect_columns(t, at, n, k, min(k + 3, high) + 1, three, tau, v, w)
        _reflect_columns(z, at, n, k, n, three, tau, v, w)
        if lane() == 0:
            if k > m:
                t[u(here - 1)], t[u(here + n - 1)] = beta, 0
                if three:
                    t[u(here + 2 * n - 1)] = 0
            elif m > low:
                t[u(here - 1)] *= type(tau)(1) - tau
        sync()


@compiled
def _blocks(t, z, at, n, norm, eps):
    """Iterate to a triangle with blocks of size 2 on its diagonal; return whether it ended."""
    high, turns = n - 1, 0
    while high > 0 and turns <= _STEPS:
        low = _split(t, at, n, high, norm, eps)
        if low == high:
            high, turns = high - 1, 0
        elif low == high - 1:
            here = at + low * n + low
            a, b, c, d, cs, sn = _standard(
                t[u(here)], t[u(here + 1)], t[u(here + n)], t[u(here + n + 1)]
            )
            sync()
            _turn_rows(t, at, n, low, low, cs, sn)
            _turn_columns(t, at, n, low, low + 2, cs, sn)
            _turn_columns(z, at, n, low, n, cs, sn)
            sync()
            if lane() == 0:
                t[u(here)], t[u(here + 1)], t[u(here + n)], t[u(here + n + 1)] = a, b, c, d
            sync()
            high, turns = high - 2, 0
        else:
            turns += 1
            _double_step(t, z, at, n, low, high, turns, eps)
    return turns <= _STEPS


def _schur(iterate):
    @compiled
    def schur(a, t, z, batch, n, eps, large):
        """Write triangles and the vectors that lead there; NaN for those without."""
        s = block()
        while s < batch:
            at = s * n * n
            norm = _copied(a, t, at, n * n)
            good = norm == norm
            # Products of two entries stay in range.
            scale = norm if norm > large or (norm > 0 and norm * large < 1) else norm * 0 + 1
            if good:
                e = lane()
                while e < n * n:
                    t[u(at + e)] /= scale
                    e += lanes()
                _identity(z, at, n, n)
                sync()
                _hessenberg(t, z, at, n)
                good = iterate(t, z, at, n, norm / scale, eps)
            e = lane()
            while e < n * n:
                below = e // n > e % n
                if good:
                    t[u(at + e)] *= scale
                else:
                    t[u(at + e)], z[u(at + e)] = 0 if below else np.nan, np.nan
                e += lanes()
            sync()
            s += blocks()

    return schur


schur, schur_complex = _schur(_blocks), _schur(_triangle)


@compiled
def to_triangles(t, z, whole, vectors, batch, n):
    """Make complex triangles of real ones with blocks, conjugates side by side."""
    s = block()
    while s < batch:
        at = s * n * n
        e = lane()
        while e < n * n:
            whole[u(at + e)], vectors[u(at + e)] = t[u(at + e)], z[u(at + e)]
            e += lanes()
        sync()
        for k in range(n - 1):
            here = at + k * n + k
            b, c = t[u(here + 1)], t[u(here + n)]
            if c == 0 or c != c:
                continue
            a, width = t[u(here)], np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
            size = np.hypot(b, width)
            turned = make(c * 0, -np.copysign(width / size, b))
            _turn_rows(whole, at, n, k, k, np.abs(b) / size, turned)
            _turn_columns(whole, at, n, k, k + 2, np.abs(b) / size, turned)
            _turn_columns(vectors, at, n, k, n, np.abs(b) / size, turned)
            sync()
            if lane() == 0:
                whole[u(here)], whole[u(here + n + 1)] = make(a, width), make(a, -width)
                whole[u(here + n)] = 0
            sync()
        s += blocks()
