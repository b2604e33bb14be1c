"""Factorisations and solutions of stacks of small matrices, for loops whose bodies hold them.

Arrays come flattened in C order: ``batch`` matrices one after the other, of floats or complex
numbers. A matrix is known by where it begins and by its strides, so that transposes cost nothing;
slices, reshapes and 2-D indexing compile three times slower. Matrices beyond some dozens of rows
are LAPACK's, whose blocked forms are faster (see ``fnarray.ops.kit.matrix``).
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels.complexmath import make, quotient
from fnarray_kernels.definite import factor
from fnarray_kernels.registry import compiled, outside
from fnarray_kernels.scalar import u

#: Rows of which sums are taken, or that are solved for, at a time.
_BLOCK = 64

#: Outside of loops these are object code of their own: LLVM took 90 to 350 ms to put one into each
#: kernel, as for the five steps of a fit, and to work around it.
of_its_own = outside(loops=False, integers=True, improves=True, sized=True)


@of_its_own
def cholesky(a, out, batch, n):
    """Lower factors ``L`` with ``L L^H = A`` from lower triangles; NaN where there is none.

    In double precision, as `linear_solve`.
    """
    x = np.empty(n * n, np.float64)
    for s in range(batch):
        factor(a, s * n * n, x, n, out)


@of_its_own
def cholesky_complex(a, out, batch, n):
    """Do as `cholesky`."""
    x = np.empty(n * n, np.complex128)
    for s in range(batch):
        _cholesky(a, s * n * n, x, 0, n, out)


@compiled
def _cholesky(a, at, x, base, n, out):
    """Write the factor of the matrix at ``at``, which is worked out in ``x`` from ``base`` on.

    What a column takes off those after it is taken off at once, each sum's terms in their order: as
    sums of one element after another, each waiting for the last, 16 rows took 1.3 us in place of
    0.5. The column is kept in the row that mirrors it, along which the others are reached.
    """
    failed = False
    for i in range(n):
        for j in range(i + 1):
            x[u(base + i * n + j)] = a[u(at + i * n + j)]
    for j in range(n):
        row = base + j * n
        square = x[u(row + j)].real
        if not square > 0:  # a NaN fails too
            failed = True
            break
        pivot = np.sqrt(square)
        x[u(row + j)] = pivot
        for i in range(j + 1, n):
            entry = x[u(base + i * n + j)] / pivot
            x[u(base + i * n + j)] = entry
            x[u(row + i)] = np.conj(entry)
        for i in range(j + 1, n):
            scale = x[u(base + i * n + j)]
            for k in range(j + 1, i + 1):
                x[u(base + i * n + k)] -= scale * x[u(row + k)]
    for i in range(n):
        for j in range(i + 1):
            out[u(at + i * n + j)] = np.nan if failed else x[u(base + i * n + j)]
        for j in range(i + 1, n):
            out[u(at + i * n + j)] = 0


@compiled
def _substitute(a, at, row, column, x, to, down, across, n, k, lower, conjugated, unit):
    """Solve ``A X = X`` in place for a triangular ``A``.

    ``A`` begins at ``at`` with strides ``row`` and ``column``, ``X`` at ``to`` with ``down`` and
    ``across``.
    """
    for step in range(n):
        i = step if lower else n - 1 - step
        first = 0 if lower else i + 1
        last = i if lower else n
        for j in range(first, last):
            scale = a[u(at + i * row + j * column)]
            if conjugated:
                scale = np.conj(scale)
            for c in range(k):
                x[u(to + i * down + c * across)] -= scale * x[u(to + j * down + c * across)]
        if not unit:
            pivot = a[u(at + i * (row + column))]
            if conjugated:
                pivot = np.conj(pivot)
            for c in range(k):
                place = to + i * down + c * across
                x[u(place)] = quotient(x[u(place)], pivot)


@of_its_own
def triangular_solve(a, b, out, batch, n, k, left, lower, transposed, conjugated, unit):
    """Solve ``op(A) X = B`` for B of (n, k), or ``X op(A) = B`` for B of (k, n)."""
    # X op(A) = B is op(A)^T X^T = B^T: strides change places.
    turned = transposed == left
    row, column = (1, n) if turned else (n, 1)
    some = np.empty(n * _BLOCK, out.dtype)
    if left:
        for e in range(batch * n * k):
            out[u(e)] = b[u(e)]
        for s in range(batch):
            _substitute(
                a, s * n * n, row, column, out, s * n * k, k, 1, n, k,
                lower != turned, conjugated, unit,
            )  # fmt: skip
    else:  # some rows at a time, turned round, so that what is done to each of them is vectors
        for s in range(batch):
            for first in range(0, k, _BLOCK):
                count = min(_BLOCK, k - first)
                at = (s * k + first) * n
                for c in range(count):
                    for i in range(n):
                        some[u(i * count + c)] = b[u(at + c * n + i)]
                _substitute(
                    a, s * n * n, row, column, some, 0, count, 1, n, count,
                    lower != turned, conjugated, unit,
                )  # fmt: skip
                for c in range(count):
                    for i in range(n):
                        out[u(at + c * n + i)] = some[u(i * count + c)]


@compiled
def _size(x):
    # As LAPACK compares complex pivots: cheaper than the modulus, and as good for stability.
    return abs(x.real) + abs(x.imag)


@compiled
def _factor(x, at, pivots, to, m, n):
    """Factor in place with row exchanges; returns how many rows were exchanged."""
    exchanges = 0
    for j in range(min(m, n)):
        best, largest = j, _size(x[u(at + j * n + j)])
        for i in range(j + 1, m):
            size = _size(x[u(at + i * n + j)])
            if size > largest:
                best, largest = i, size
        pivots[u(to + j)] = best
        row, other = at + j * n, at + best * n
        if best != j:
            exchanges += 1
            for c in range(n):
                x[u(row + c)], x[u(other + c)] = x[u(other + c)], x[u(row + c)]
        pivot = x[u(row + j)]
        if pivot == 0:
            continue
        for i in range(j + 1, m):
            below = at + i * n
            scale = x[u(below + j)] / pivot
            x[u(below + j)] = scale
            for c in range(j + 1, n):
                x[u(below + c)] -= scale * x[u(row + c)]
    return exchanges


@of_its_own
def lu(a, out, pivots, order, batch, m, n):
    """Factor ``P A = L U``: both factors in one matrix, the exchanges, the rows' new order."""
    size = min(m, n)
    # As for `linear_solve`; factors are rounded once.
    work = np.empty(m * n, type(out.dtype.type(0) * np.float64(1)))
    for s in range(batch):
        for e in range(m * n):
            work[u(e)] = a[u(s * m * n + e)]
        _factor(work, 0, pivots, s * size, m, n)
        for e in range(m * n):
            out[u(s * m * n + e)] = work[u(e)]
    permutation(pivots, order, batch, size, m)


@compiled
def permutation(pivots, order, batch, size, rows):
    """Order of rows that successive exchanges make."""
    for s in range(batch):
        at = s * rows
        for i in range(rows):
            order[u(at + i)] = i
        for i in range(size):
            other = at + pivots[u(s * size + i)]
            order[u(at + i)], order[u(other)] = order[u(other)], order[u(at + i)]


@of_its_own
def linear_solve(a, b, out, batch, n, k):
    """Solve ``A X = B`` by LU factorisation, in double precision whatever the dtype.

    It takes as long, and in single precision errors were up to 2.2 times LAPACK's, whose products
    of blocks add terms up in parts.
    """
    wide = type(out.dtype.type(0) * np.float64(1))
    work, x, pivots = np.empty(n * n, wide), np.empty(n * k, wide), np.empty(n, np.int64)
    for s in range(batch):
        for e in range(n * n):
            work[u(e)] = a[u(s * n * n + e)]
        for e in range(n * k):
            x[u(e)] = b[u(s * n * k + e)]
        _factor(work, 0, pivots, 0, n, n)
        for i in range(n):
            row, other = i * k, pivots[u(i)] * k
            for c in range(k):
                x[u(row + c)], x[u(other + c)] = x[u(other + c)], x[u(row + c)]
        for lower in (True, False):
            _substitute(work, 0, n, 1, x, 0, k, 1, n, k, lower, False, lower)
        for e in range(n * k):
            out[u(s * n * k + e)] = x[u(e)]


@compiled
def _parted(z, at, x, y, to, count):
    """Copy the real and the imaginary parts of complex numbers."""
    for c in range(count):
        x[u(to + c)] = z[u(at + c)].real
        y[u(to + c)] = z[u(at + c)].imag


@compiled
def _eliminate_parts(x, y, n, width):
    """Eliminate in ``n`` rows of ``width`` complex numbers, their parts apart; as `_factor` does.

    Of numbers whose parts lie side by side LLVM makes no vectors: it cannot tell that no turn of a
    loop reads what another one writes. Rows go on beyond the matrix: right-hand sides are solved
    for along with it. Returns how many rows were exchanged.
    """
    exchanges = 0
    for j in range(n):
        best, largest = j, abs(x[u(j * width + j)]) + abs(y[u(j * width + j)])
        for i in range(j + 1, n):
            size = abs(x[u(i * width + j)]) + abs(y[u(i * width + j)])
            if size > largest:
                best, largest = i, size
        row, other = j * width, best * width
        if best != j:
            exchanges += 1
            for c in range(j, width):
                x[u(row + c)], x[u(other + c)] = x[u(other + c)], x[u(row + c)]
                y[u(row + c)], y[u(other + c)] = y[u(other + c)], y[u(row + c)]
        pivot = make(x[u(row + j)], y[u(row + j)])
        if pivot == 0:
            continue
        for i in range(j + 1, n):
            below = i * width
            scale = make(x[u(below + j)], y[u(below + j)]) / pivot
            v = scale.real
            w = scale.imag
            for c in range(j + 1, width):
                left, right = x[u(row + c)], y[u(row + c)]
                x[u(below + c)] -= v * left - w * right
                y[u(below + c)] -= v * right + w * left
    return exchanges


@of_its_own
def linear_solve_complex(a, b, out, batch, n, k):
    """Solve as `linear_solve` does, real and imaginary parts apart."""
    width = n + k
    x, y = np.empty(n * width, np.float64), np.empty(n * width, np.float64)
    for s in range(batch):
        for i in range(n):
            _parted(a, (s * n + i) * n, x, y, i * width, n)
            _parted(b, (s * n + i) * k, x, y, i * width + n, k)
        _eliminate_parts(x, y, n, width)
        for step in range(n):
            i = n - 1 - step
            to = i * width
            for j in range(i + 1, n):
                v = x[u(to + j)]
                w = y[u(to + j)]
                for c in range(n, width):
                    left, right = x[u(j * width + c)], y[u(j * width + c)]
                    x[u(to + c)] -= v * left - w * right
                    y[u(to + c)] -= v * right + w * left
            pivot = make(x[u(to + i)], y[u(to + i)])
            for c in range(k):
                entry = quotient(make(x[u(to + n + c)], y[u(to + n + c)]), pivot)
                x[u(to + n + c)] = entry.real
                y[u(to + n + c)] = entry.imag
                out[u((s * n + i) * k + c)] = entry


@compiled
def _solve_factored(factors, order, b, out, work, s, at, n, k, transposed, conjugated):
    """Solve system ``s``, with working memory for its right-hand sides from ``at`` on."""
    row, column = (1, n) if transposed else (n, 1)
    to = s * n * k
    for i in range(n):
        source = i if transposed else order[u(s * n + i)]
        for c in range(k):
            work[u(at + i * k + c)] = b[u(to + source * k + c)]
    for first in (True, False):
        # L, then U; transposed U^T, then L^T.
        unit = first != transposed
        _substitute(factors, s * n * n, row, column, work, at, k, 1, n, k, first, conjugated, unit)
    for i in range(n):
        target = order[u(s * n + i)] if transposed else i
        for c in range(k):
            out[u(to + target * k + c)] = work[u(at + i * k + c)]


@of_its_own
def factored_solve(a, factors, order, b, out, batch, n, k, transposed, conjugated):
    """Solve ``op(A) X = B`` given the factors and the rows' order of ``P A = L U``."""
    work = np.empty(n * k, type(out.dtype.type(0) * np.float64(1)))
    for s in range(batch):
        _solve_factored(factors, order, b, out, work, s, 0, n, k, transposed, conjugated)


@of_its_own
def determinant(a, out, batch, n):
    """Determinants, by LU factorisation in double precision."""
    wide = type(out.dtype.type(0) * np.float64(1))
    work, pivots = np.empty(n * n, wide), np.empty(n, np.int64)
    for s in range(batch):
        for e in range(n * n):
            work[u(e)] = a[u(s * n * n + e)]
        total = work.dtype.type(1 - 2 * (_factor(work, 0, pivots, 0, n, n) % 2))
        for i in range(n):
            total *= work[u(i * n + i)]
        out[u(s)] = total


@of_its_own
def determinant_complex(a, out, batch, n):
    """Determinants as `determinant` finds them, real and imaginary parts apart."""
    x, y = np.empty(n * n, np.float64), np.empty(n * n, np.float64)
    for s in range(batch):
        _parted(a, s * n * n, x, y, 0, n * n)
        total = make(np.float64(1 - 2 * (_eliminate_parts(x, y, n, n) % 2)), np.float64(0))
        for i in range(n):
            total *= make(x[u(i * n + i)], y[u(i * n + i)])
        out[u(s)] = total


@of_its_own
def log_determinant(a, sign, log, batch, n):
    """Phases (signs, of real matrices) and logarithms of the sizes of determinants, in double."""
    wide = type(sign.dtype.type(0) * np.float64(1))
    work, pivots = np.empty(n * n, wide), np.empty(n, np.int64)
    for s in range(batch):
        for e in range(n * n):
            work[u(e)] = a[u(s * n * n + e)]
        phase = work.dtype.type(1 - 2 * (_factor(work, 0, pivots, 0, n, n) % 2))
        total = np.float64(0)
        for i in range(n):
            pivot = work[u(i * n + i)]
            size = abs(pivot)
            phase *= pivot / size if size != 0 else pivot
            total += np.log(size)
        sign[u(s)], log[u(s)] = phase, total


@of_its_own
def log_determinant_complex(a, sign, log, batch, n):
    """What `log_determinant` finds, real and imaginary parts apart."""
    x, y = np.empty(n * n, np.float64), np.empty(n * n, np.float64)
    for s in range(batch):
        _parted(a, s * n * n, x, y, 0, n * n)
        phase = make(np.float64(1 - 2 * (_eliminate_parts(x, y, n, n) % 2)), np.float64(0))
        total = np.float64(0)
        for i in range(n):
            pivot = make(x[u(i * n + i)], y[u(i * n + i)])
            size = abs(pivot)
            phase *= pivot / size if size != 0 else pivot
            total += np.log(size)
        sign[u(s)], log[u(s)] = phase, total


@compiled
def _length(x, at, step, count):
    """Length of a vector; of one whose squares leave the range, in units of its largest part."""
    total = x[u(at)].real * x[u(at)].real * 0
    for i in range(count):
        part = x[u(at + i * step)]
        total += part.real * part.real + part.imag * part.imag
    if total > 1e-30 and total < 1e30:
        return np.sqrt(total)
    largest = total * 0
    for i in range(count):
        size = _size(x[u(at + i * step)])
        if not size <= largest:  # NaN is kept
            largest = size
    if largest == 0 or not largest < np.inf:
        return largest
    total = largest * 0
    for i in range(count):
        part = x[u(at + i * step)]
        re, im = part.real / largest, part.imag / largest
        total += re * re + im * im
    return largest * np.sqrt(total)


@compiled
def _long(x, at, step, count):
    """Length of a vector, which may be long: its squares are added in double precision."""
    zero = x[u(at)].real * 0
    total = np.float64(zero)
    for i in range(count):
        part = x[u(at + i * step)]
        re, im = np.float64(part.real), np.float64(part.imag)
        total += re * re + im * im
    if total > 1e-200 and total < 1e200:
        return type(zero)(np.sqrt(total))
    return _length(x, at, step, count)


@compiled
def _reflect(x, v, at, tau, w, to, down, first, rows, columns):
    """Take ``tau v v^H x`` off ``x``, whose columns begin with ``first``; ``v`` begins with 1.

    Rows are reached along memory, so that columns are computed side by side. Sums are taken in
    blocks of rows, which may be many; ``w`` has two numbers for each column.
    """
    for c in range(first, columns):
        w[u(c)] = x[u(to + c)]
        w[u(columns + c)] = 0
    for start in range(1, rows, _BLOCK):
        for i in range(start, min(start + _BLOCK, rows)):
            scale = np.conj(v[u(at + i)])
            for c in range(first, columns):
                w[u(columns + c)] += scale * x[u(to + i * down + c)]
        for c in range(first, columns):
            w[u(c)] += w[u(columns + c)]
            w[u(columns + c)] = 0
    for c in range(first, columns):
        w[u(c)] *= tau
        x[u(to + c)] -= w[u(c)]
    for i in range(1, rows):
        scale = v[u(at + i)]
        for c in range(first, columns):
            x[u(to + i * down + c)] -= scale * w[u(c)]


@of_its_own
def qr(a, q, r, batch, m, n, k):
    """Orthonormal columns (m, k) and upper triangles (k, n), by Householder's reflections.

    Signs are LAPACK's: a reflection takes a column to the opposite of the sign that it begins with.
    """
    size = min(m, n)
    x, v = np.empty(m * n, q.dtype), np.empty(m * size, q.dtype)
    tau, w = np.empty(size, q.dtype), np.empty(2 * max(n, k), q.dtype)
    for s in range(batch):
        for e in range(m * n):
            x[u(e)] = a[u(s * m * n + e)]
        for j in range(size):
            at, rows = j * n + j, m - j
            first = x[u(at)]
            rest = first.real * 0
            if rows > 1:
                rest = _long(x, at + n, n, rows - 1)
            tau[u(j)] = 0
            if rest == 0 and first.imag == 0:
                continue
            beta = -np.copysign(np.hypot(np.hypot(first.real, first.imag), rest), first.real)
            tau[u(j)] = (beta - first) / beta
            x[u(at)] = beta
            for i in range(1, rows):
                v[u(j * m + i)] = x[u(at + i * n)] / (first - beta)
            _reflect(x, v, j * m, np.conj(tau[u(j)]), w, j * n, n, j + 1, rows, n)
        for i in range(k):
            for c in range(min(i, n)):
                r[u((s * k + i) * n + c)] = 0
            for c in range(i, n):
                r[u((s * k + i) * n + c)] = x[u(i * n + c)]
        to = s * m * k
        for i in range(m):
            for c in range(k):
                q[u(to + i * k + c)] = 1 if i == c else 0
        for step in range(size):
            j = size - 1 - step
            if tau[u(j)] != 0:
                _reflect(q, v, j * m, tau[u(j)], w, to + j * k, k, j, m - j, k)


@compiled
def _tridiagonal(lower, diagonal, upper, x, s, d, e, f, at, n, k):
    """Solve system ``s`` in place, with three arrays of working memory from ``at`` on."""
    for i in range(n):
        d[u(at + i)], f[u(at + i)] = diagonal[u(s * n + i)], 0
        e[u(at + i)] = upper[u(s * n + i)] if i + 1 < n else 0
    for i in range(n - 1):
        row, here, after = (s * n + i) * k, at + i, at + i + 1
        below = lower[u(s * n + i + 1)]
        if _size(d[u(here)]) < _size(below):
            scale = d[u(here)] / below
            d[u(here)] = below
            e[u(here)], d[u(after)] = d[u(after)], e[u(here)] - scale * d[u(after)]
            f[u(here)] = e[u(after)]
            e[u(after)] = -scale * f[u(here)]
            for c in range(k):
                x[u(row + c)], x[u(row + k + c)] = x[u(row + k + c)], x[u(row + c)]
        elif below != 0:
            scale = below / d[u(here)]
            d[u(after)] -= scale * e[u(here)]
        else:
            scale = below
        for c in range(k):
            x[u(row + k + c)] -= scale * x[u(row + c)]
    for step in range(n):
        i = n - 1 - step
        for c in range(k):
            row = (s * n + i) * k + c
            total = x[u(row)]
            if step > 0:
                total -= e[u(at + i)] * x[u(row + k)]
            if step > 1:
                total -= f[u(at + i)] * x[u(row + 2 * k)]
            x[u(row)] = quotient(total, d[u(at + i)])


@of_its_own
def tridiagonal_solve(lower, diagonal, upper, b, out, batch, n, k):
    """Solve tridiagonal systems by elimination with exchanges of neighbouring rows.

    ``lower[0]`` and ``upper[n - 1]`` are not read. An exchange brings in a second diagonal above.
    """
    d, e, f = np.empty(n, out.dtype), np.empty(n, out.dtype), np.empty(n, out.dtype)
    for s in range(batch * n * k):
        out[u(s)] = b[u(s)]
    for s in range(batch):
        _tridiagonal(lower, diagonal, upper, out, s, d, e, f, 0, n, k)


@of_its_own
def adjugate(a, out, batch, n):
    """Adjugates, by elimination with complete pivoting: zero pivots come last.

    With ``P A Q = L U`` and ``d`` the last pivot, ``adj(A)`` is the product of the other pivots
    times what solves for ``U``, its last pivot 1, the right-hand side ``L^-1 P`` whose rows but
    the last are scaled by ``d``. Of a second zero pivot the adjugate is zero.
    """
    work, x = np.empty(n * n, out.dtype), np.empty(n * n, out.dtype)
    rows, columns = np.empty(n, np.int64), np.empty(n, np.int64)
    for s in range(batch):
        for e in range(n * n):
            work[u(e)], x[u(e)] = a[u(s * n * n + e)], 0
        for i in range(n):
            rows[u(i)] = columns[u(i)] = i
        others = out.dtype.type(1)
        for j in range(n):
            best, place, largest = j, j, _size(work[u(j * n + j)])
            for i in range(j, n):
                for c in range(j, n):
                    size = _size(work[u(i * n + c)])
                    if size > largest:
                        best, place, largest = i, c, size
            if best != j:
                others = -others
                rows[u(j)], rows[u(best)] = rows[u(best)], rows[u(j)]
                for c in range(n):
                    here, there = j * n + c, best * n + c
                    work[u(here)], work[u(there)] = work[u(there)], work[u(here)]
            if place != j:
                others = -others
                columns[u(j)], columns[u(place)] = columns[u(place)], columns[u(j)]
                for i in range(n):
                    here, there = i * n + j, i * n + place
                    work[u(here)], work[u(there)] = work[u(there)], work[u(here)]
            if j == n - 1:
                break
            pivot = work[u(j * n + j)]
            others *= pivot
            if pivot == 0:
                break
            for i in range(j + 1, n):
                scale = work[u(i * n + j)] / pivot
                work[u(i * n + j)] = scale
                for c in range(j + 1, n):
                    work[u(i * n + c)] -= scale * work[u(j * n + c)]
        if others == 0:
            for e in range(n * n):
                out[u(s * n * n + e)] = 0
            continue
        for i in range(n):
            x[u(i * n + rows[u(i)])] = 1
        _substitute(work, 0, n, 1, x, 0, n, 1, n, n, True, False, True)
        last = work[u(n * n - 1)]
        for e in range((n - 1) * n):
            x[u(e)] *= last
        work[u(n * n - 1)] = 1
        _substitute(work, 0, n, 1, x, 0, n, 1, n, n, False, False, False)
        for i in range(n):
            for c in range(n):
                out[u(s * n * n + columns[u(i)] * n + c)] = others * x[u(i * n + c)]
