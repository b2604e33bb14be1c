"""Factors of matrices by blocks of a grid: QR, Schur's form, eigenvectors, square roots.

A block has a matrix, whose rows and columns its lanes share; with one lane it is a loop. What all
lanes must know (a reflection, a shift, where a matrix splits) each works out for itself, from
memory that nobody writes until the next `sync`. Arrays are flattened in C order.

Eigenvalues come by QR iteration with shifts on Hessenberg's form (Francis 1961; Golub & Van Loan,
"Matrix Computations", 7.5), eigenvectors and square roots from triangles by substitution
(Bjorck & Hammarling 1983). A matrix that is not finite, or on which the iteration does not end, has
NaN for results.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels import complexmath as cm
from fnarray_kernels.complexmath import make
from fnarray_kernels.grid import block, block_max, block_sum, blocks, lane, lanes, sync
from fnarray_kernels.linalg import _length, _size
from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u

#: Steps that a matrix may take to split; after each ten the shift is another.
_STEPS, _ANOTHER = 40, 10
#: Entries of a vector beyond which it is made smaller, in the course of a substitution.
_MUCH = 1e12


# ---- reflections -------------------------------------------------------------------------------


@compiled
def _reflection(x, at, step, rows):
    """Return the first entry that a column is to have, and the reflection's scale.

    Signs are LAPACK's: the opposite of what the column begins with. The scale is 0 where nothing is
    to be done.
    """
    first = x[u(at)]
    rest = first.real * 0
    if rows > 1:
        rest = _length(x, at + step, step, rows - 1)
    if rest == 0 and first.imag == 0:
        return first.real, first * 0
    beta = -np.copysign(np.hypot(np.hypot(first.real, first.imag), rest), first.real)
    return beta, (beta - first) / beta


@compiled
def _packed(x, at, step, rows, beta):
    """Write what a column begins with, and below it the reflection, whose first entry is 1."""
    first = x[u(at)]
    sync()
    i = lane()
    while i < rows:
        x[u(at + i * step)] = beta if i == 0 else x[u(at + i * step)] / (first - beta)
        i += lanes()
    sync()


@compiled
def _from_left(x, to, down, v, at, step, rows, first, last, tau):
    """Take ``tau v v^H x`` off columns of ``x``, a lane for each."""
    c = first + lane()
    while c < last:
        total = x[u(to + c)]
        for i in range(1, rows):
            total += np.conj(v[u(at + i * step)]) * x[u(to + i * down + c)]
        total *= tau
        x[u(to + c)] -= total
        for i in range(1, rows):
            x[u(to + i * down + c)] -= total * v[u(at + i * step)]
        c += lanes()


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
def _copied(a, x, at, count):
    """Copy a matrix; return the largest size of its entries, NaN where one is not finite."""
    largest, total = a[u(at)].real * 0, a[u(at)].real * 0
    e = lane()
    while e < count:
        value = a[u(at + e)]
        x[u(at + e)] = value
        size = _size(value)
        total += size * 0
        if size > largest:
            largest = size
        e += lanes()
    norm = block_max(largest) + block_sum(total)
    sync()
    return norm


@compiled
def _largest(x, at, count):
    """Return the largest size of a matrix's entries; 1 for none."""
    largest = x[u(at)].real * 0
    e = lane()
    while e < count:
        largest = max(largest, _size(x[u(at + e)]))
        e += lanes()
    largest = block_max(largest)
    return largest if largest > 0 else largest * 0 + 1


@compiled
def _identity(x, at, rows, columns):
    """Write ones on the diagonal, zeros elsewhere."""
    e = lane()
    while e < rows * columns:
        x[u(at + e)] = 1 if e // columns == e % columns else 0
        e += lanes()


# ---- QR ----------------------------------------------------------------------------------------


@compiled
def _exchanged(x, at, order, places, norms, partial, m, n, j):
    """Bring the column that adds most to place ``j``."""
    best = j
    for c in range(j + 1, n):
        if norms[u(partial + c)] > norms[u(partial + best)]:
            best = c
    sync()
    if best == j:
        return
    i = lane()
    while i < m:
        here, there = at + i * n + j, at + i * n + best
        x[u(here)], x[u(there)] = x[u(there)], x[u(here)]
        i += lanes()
    if lane() == 0:
        here, there = places + j, places + best
        order[u(here)], order[u(there)] = order[u(there)], order[u(here)]
        norms[u(partial + best)] = norms[u(partial + j)]
        norms[u(partial + n + best)] = norms[u(partial + n + j)]
    sync()


@compiled
def _measured(x, at, norms, partial, m, n, j, eps):
    """Take row ``j`` off the lengths of columns; what lost half its digits is made anew."""
    c = j + 1 + lane()
    while c < n:
        length, whole = norms[u(partial + c)], norms[u(partial + n + c)]
        if length > 0:
            one = type(length)(1)
            share = np.abs(x[u(at + j * n + c)]) / length
            left = (one - share) * (one + share)
            if left < 0:
                left = one * 0
            ratio = length / whole
            if left * ratio * ratio <= np.sqrt(eps):
                length = one * 0
                if j + 1 < m:
                    length = _length(x, at + (j + 1) * n + c, n, m - j - 1)
                norms[u(partial + n + c)] = length
            else:
                length *= np.sqrt(left)
            norms[u(partial + c)] = length
        c += lanes()
    sync()


@compiled
def _reflected(x, at, tau, to, m, n, j):
    """Take column ``j`` to its first entry, and the columns after it along."""
    corner = at + j * n + j
    beta, scale = _reflection(x, corner, n, m - j)
    if scale != 0:
        _packed(x, corner, n, m - j, beta)
        _from_left(x, at + j * n, n, x, corner, n, m - j, j + 1, n, np.conj(scale))
    if lane() == 0:
        tau[u(to)] = scale
    sync()


@compiled
def _orthonormal(x, at, tau, scales, q, to, m, n, k, size):
    """Write the columns that the reflections of ``x`` make of the first ones of the identity."""
    _identity(q, to, m, k)
    sync()
    for step in range(size):
        j = size - 1 - step
        scale = tau[u(scales + j)]
        if scale != 0:
            _from_left(q, to + j * k, k, x, at + j * n + j, n, m - j, j, k, scale)
        sync()


@compiled
def _upper(x, at, r, to, n, k):
    """Copy what is on the diagonal and above."""
    e = lane()
    while e < k * n:
        i, c = e // n, e % n
        r[u(to + e)] = x[u(at + e)] if c >= i else 0
        e += lanes()
    sync()


@compiled
def qr(a, q, r, x, tau, batch, m, n, k):
    """Orthonormal columns (m, k) and upper triangles (k, n)."""
    size = min(m, n)
    s = block()
    while s < batch:
        at = s * m * n
        _copied(a, x, at, m * n)
        for j in range(size):
            _reflected(x, at, tau, s * size + j, m, n, j)
        _upper(x, at, r, s * k * n, n, k)
        _orthonormal(x, at, tau, s * size, q, s * m * k, m, n, k, size)
        s += blocks()


@compiled
def qr_pivoted(a, q, r, order, x, tau, norms, batch, m, n, k, eps):
    """Factors of ``a[:, order]``, whose columns are ordered by what they add.

    Lengths of what is left of columns are taken on from step to step (Drmac & Bujanovic 2008).
    """
    size = min(m, n)
    s = block()
    while s < batch:
        at, partial = s * m * n, 2 * s * n
        _copied(a, x, at, m * n)
        c = lane()
        while c < n:
            length = _length(x, at + c, n, m)
            norms[u(partial + c)], norms[u(partial + n + c)] = length, length
            order[u(s * n + c)] = c
            c += lanes()
        sync()
        for j in range(size):
            _exchanged(x, at, order, s * n, norms, partial, m, n, j)
            _reflected(x, at, tau, s * size + j, m, n, j)
            _measured(x, at, norms, partial, m, n, j, eps)
        _upper(x, at, r, s * k * n, n, k)
        _orthonormal(x, at, tau, s * size, q, s * m * k, m, n, k, size)
        s += blocks()


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


# ---- eigenvectors, and roots, of triangles -----------------------------------------------------


@compiled
def _substituted(t, x, at, n, k, left, norm, eps):
    """Write eigenvector ``k`` of a triangle, or of its adjoint, as column ``k``.

    Where eigenvalues meet it is divided by a little: the vectors come out parallel.
    """
    value = t[u(at + k * n + k)]
    least = eps * max(_size(value), eps * norm)
    count = n - k if left else k + 1
    for i in range(n):
        x[u(at + i * n + k)] = 1 if i == k else 0
    for step in range(1, count):
        i = k + step if left else k - step
        total = value * 0
        for turn in range(step):
            j = k + turn if left else k - turn
            entry = np.conj(t[u(at + j * n + i)]) if left else t[u(at + i * n + j)]
            total -= entry * x[u(at + j * n + k)]
        gap = t[u(at + i * n + i)] - value
        if left:
            gap = np.conj(gap)
        if _size(gap) < least:
            gap = make(least, least * 0)
        total /= gap
        x[u(at + i * n + k)] = total
        size = _size(total)
        if size > _MUCH:
            for turn in range(step + 1):
                j = k + turn if left else k - turn
                x[u(at + j * n + k)] /= size


@compiled
def _normalised(out, at, n, k, is_real):
    """Give a column's largest entry no phase, and the column length 1."""
    best = at + k
    for i in range(1, n):
        if _size(out[u(at + i * n + k)]) > _size(out[u(best)]):
            best = at + i * n + k
    entry = out[u(best)]
    phase = np.conj(entry) / np.hypot(entry.real, entry.imag)
    for i in range(n):
        here = at + i * n + k
        entry = out[u(here)] * phase
        # A real vector with a phase; where eigenvalues meet, the rest is rounding grown large.
        out[u(here)] = make(entry.real, entry.real * 0) if is_real or here == best else entry
    length = _length(out, at + k, n, n)
    for i in range(n):
        out[u(at + i * n + k)] /= length


@compiled
def eigenvectors(t, z, scales, x, out, batch, n, left, conjugates, eps):
    """Eigenvectors of matrices with triangles ``t`` and vectors ``z``; left ones if asked.

    ``scales`` are those of `balance`.

    Of real matrices, ``conjugates`` says, real eigenvalues have real vectors, and of two that are
    conjugates the second is the first's.
    """
    s = block()
    while s < batch:
        at = s * n * n
        norm = _largest(t, at, n * n)
        k = lane()
        while k < n:
            turned = t[u(at + k * n + k)].imag
            if not (conjugates and turned < 0):
                _substituted(t, x, at, n, k, left, norm, eps)
                for i in range(n):
                    total = x[u(at + k)] * 0
                    for j in range(n):
                        total += z[u(at + i * n + j)] * x[u(at + j * n + k)]
                    scale = scales[u(s * n + i)]
                    out[u(at + i * n + k)] = total / scale if left else total * scale
                _normalised(out, at, n, k, conjugates and turned == 0)
                if conjugates and turned > 0:
                    for i in range(n):
                        out[u(at + i * n + k + 1)] = np.conj(out[u(at + i * n + k)])
            k += lanes()
        sync()
        s += blocks()


@compiled
def diagonals(t, w, batch, n):
    """Diagonals of matrices."""
    e = block() * lanes() + lane()
    while e < batch * n:
        s, k = e // n, e % n
        w[u(e)] = t[u(s * n * n + k * n + k)]
        e += blocks() * lanes()


@compiled
def roots(t, z, r, x, out, batch, n):
    """Square roots of matrices with triangles ``t`` and vectors ``z``, diagonal by diagonal."""
    s = block()
    while s < batch:
        at = s * n * n
        e = lane()
        while e < n * n:
            r[u(at + e)] = cm.sqrt(t[u(at + e)]) if e // n == e % n else 0
            e += lanes()
        sync()
        for distance in range(1, n):
            i = lane()
            while i + distance < n:
                j = i + distance
                total = t[u(at + i * n + j)]
                for k in range(i + 1, j):
                    total -= r[u(at + i * n + k)] * r[u(at + k * n + j)]
                both = r[u(at + i * n + i)] + r[u(at + j * n + j)]
                if total != 0:
                    total /= both
                r[u(at + i * n + j)] = total
                i += lanes()
            sync()
        e = lane()
        while e < n * n:
            i, j = e // n, e % n
            total = t[u(at)] * 0
            for k in range(j + 1):
                total += z[u(at + i * n + k)] * r[u(at + k * n + j)]
            x[u(at + e)] = total
            e += lanes()
        sync()
        e = lane()
        while e < n * n:
            i, j = e // n, e % n
            total = t[u(at)] * 0
            for k in range(n):
                total += x[u(at + i * n + k)] * np.conj(z[u(at + j * n + k)])
            out[u(at + e)] = total
            e += lanes()
        sync()
        s += blocks()
