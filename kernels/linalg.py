"""Factorisations and solutions of stacks of small matrices, for loops whose bodies hold them.

Arrays come flattened in C order: ``batch`` matrices one after the other, of floats or complex
numbers. Loops run along rows, which lie together in memory. Matrices beyond some dozens of rows
are LAPACK's, whose blocked forms are faster (see ``fnarray.ops.linalg_solve``).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .scalar import u  # noqa: TID251 - a relative import keeps the one name

kernel = njit(nogil=True, error_model="numpy")


@kernel
def _less_scaled_row(to, row, scale, source, other, start, stop):
    """``to[row, start:stop] -= scale * source[other, start:stop]``."""
    for j in range(start, stop):
        to[u(row), u(j)] -= scale * source[u(other), u(j)]


@kernel
def cholesky(a, out, batch, n):
    """Lower factors ``L`` with ``L L^H = A`` from lower triangles; NaN where there is none."""
    for s in range(batch):
        x = a[s * n * n : (s + 1) * n * n].reshape(n, n)
        f = out[s * n * n : (s + 1) * n * n].reshape(n, n)
        f[:] = 0
        failed = False
        for i in range(n):
            for j in range(i):
                total = x[u(i), u(j)]
                for k in range(j):
                    total -= f[u(i), u(k)] * np.conj(f[u(j), u(k)])
                f[u(i), u(j)] = total / f[u(j), u(j)]
            square = x[u(i), u(i)].real
            for k in range(i):
                square -= (f[u(i), u(k)] * np.conj(f[u(i), u(k)])).real
            if not square > 0:  # a NaN fails too
                failed = True
            f[u(i), u(i)] = np.sqrt(square)
        if failed:
            for i in range(n):
                for j in range(i + 1):
                    f[u(i), u(j)] = np.nan


@kernel
def _entry(a, i, j, transposed, conjugated):
    entry = a[u(j), u(i)] if transposed else a[u(i), u(j)]
    return np.conj(entry) if conjugated else entry


@kernel
def _substitute(a, x, n, k, lower, transposed, conjugated, unit):
    """Solve ``op(A) X = X`` in place; ``lower`` says where the triangle of ``A`` lies."""
    down = lower != transposed
    for step in range(n):
        i = step if down else n - 1 - step
        first, last = (0, i) if down else (i + 1, n)
        for j in range(first, last):
            _less_scaled_row(x, i, _entry(a, i, j, transposed, conjugated), x, j, 0, k)
        if not unit:
            pivot = _entry(a, i, i, transposed, conjugated)
            for c in range(k):
                x[u(i), u(c)] /= pivot


@kernel
def triangular_solve(a, b, out, batch, n, k, left, lower, transposed, conjugated, unit):
    """Solve ``op(A) X = B`` for B of (n, k), or ``X op(A) = B`` for B of (k, n)."""
    work = np.empty((n, k), out.dtype)
    for s in range(batch):
        x = a[s * n * n : (s + 1) * n * n].reshape(n, n)
        if left:
            to = out[s * n * k : (s + 1) * n * k].reshape(n, k)
            to[:] = b[s * n * k : (s + 1) * n * k].reshape(n, k)
            _substitute(x, to, n, k, lower, transposed, conjugated, unit)
        else:
            # X op(A) = B is op(A)^T X^T = B^T.
            work[:] = b[s * n * k : (s + 1) * n * k].reshape(k, n).T
            _substitute(x, work, n, k, lower, not transposed, conjugated, unit)
            out[s * n * k : (s + 1) * n * k].reshape(k, n)[:] = work.T


@kernel
def _size(x):
    # As LAPACK compares complex pivots: cheaper than the modulus, and as good for stability.
    return abs(x.real) + abs(x.imag)


@kernel
def _factor(x, pivots, m, n):
    """Factor in place with row exchanges; returns how many rows were exchanged."""
    exchanges = 0
    for j in range(min(m, n)):
        best = j
        for i in range(j + 1, m):
            if _size(x[u(i), u(j)]) > _size(x[u(best), u(j)]):
                best = i
        pivots[u(j)] = best
        if best != j:
            exchanges += 1
            for c in range(n):
                x[u(j), u(c)], x[u(best), u(c)] = x[u(best), u(c)], x[u(j), u(c)]
        pivot = x[u(j), u(j)]
        if pivot == 0:
            continue
        for i in range(j + 1, m):
            scale = x[u(i), u(j)] / pivot
            x[u(i), u(j)] = scale
            _less_scaled_row(x, i, scale, x, j, j + 1, n)
    return exchanges


@kernel
def lu(a, out, pivots, permutation, batch, m, n):
    """Factor ``P A = L U``: both factors in one matrix, the exchanges, the rows' new order."""
    size = min(m, n)
    for s in range(batch):
        x = out[s * m * n : (s + 1) * m * n].reshape(m, n)
        x[:] = a[s * m * n : (s + 1) * m * n].reshape(m, n)
        exchanged = pivots[s * size : (s + 1) * size]
        _factor(x, exchanged, m, n)
        order = permutation[s * m : (s + 1) * m]
        for i in range(m):
            order[u(i)] = i
        for i in range(size):
            other = exchanged[u(i)]
            order[u(i)], order[u(other)] = order[u(other)], order[u(i)]


@kernel
def linear_solve(a, b, out, batch, n, k):
    """Solve ``A X = B`` by LU factorisation."""
    work = np.empty((n, n), out.dtype)
    pivots = np.empty(n, np.int64)
    for s in range(batch):
        work[:] = a[s * n * n : (s + 1) * n * n].reshape(n, n)
        x = out[s * n * k : (s + 1) * n * k].reshape(n, k)
        x[:] = b[s * n * k : (s + 1) * n * k].reshape(n, k)
        _factor(work, pivots, n, n)
        for i in range(n):
            other = pivots[i]
            if other != i:
                for c in range(k):
                    x[u(i), u(c)], x[u(other), u(c)] = x[u(other), u(c)], x[u(i), u(c)]
        _substitute(work, x, n, k, True, False, False, True)
        _substitute(work, x, n, k, False, False, False, False)


@kernel
def factored_solve(a, factors, permutation, b, out, batch, n, k, transposed, conjugated):
    """Solve ``op(A) X = B`` given the factors and the rows' order of ``P A = L U``."""
    work = np.empty((n, k), out.dtype)
    for s in range(batch):
        x = factors[s * n * n : (s + 1) * n * n].reshape(n, n)
        order = permutation[s * n : (s + 1) * n]
        rows = b[s * n * k : (s + 1) * n * k].reshape(n, k)
        to = out[s * n * k : (s + 1) * n * k].reshape(n, k)
        if transposed:
            work[:] = rows
            _substitute(x, work, n, k, False, True, conjugated, False)
            _substitute(x, work, n, k, True, True, conjugated, True)
            for i in range(n):
                to[u(order[i])] = work[u(i)]
        else:
            for i in range(n):
                to[u(i)] = rows[u(order[i])]
            _substitute(x, to, n, k, True, False, conjugated, True)
            _substitute(x, to, n, k, False, False, conjugated, False)


@kernel
def determinant(a, out, batch, n):
    """Determinants, by LU factorisation."""
    work = np.empty((n, n), out.dtype)
    pivots = np.empty(n, np.int64)
    for s in range(batch):
        work[:] = a[s * n * n : (s + 1) * n * n].reshape(n, n)
        total = out.dtype.type(1 - 2 * (_factor(work, pivots, n, n) % 2))
        for i in range(n):
            total *= work[u(i), u(i)]
        out[s] = total


@kernel
def log_determinant(a, sign, log, batch, n):
    """Phases (signs, of real matrices) and logarithms of the sizes of determinants."""
    work = np.empty((n, n), sign.dtype)
    pivots = np.empty(n, np.int64)
    for s in range(batch):
        work[:] = a[s * n * n : (s + 1) * n * n].reshape(n, n)
        phase = sign.dtype.type(1 - 2 * (_factor(work, pivots, n, n) % 2))
        total = log.dtype.type(0)
        for i in range(n):
            pivot = work[u(i), u(i)]
            size = abs(pivot)
            phase *= pivot / size if size != 0 else pivot
            total += np.log(size)
        sign[s], log[s] = phase, total


@kernel
def tridiagonal_solve(lower, diagonal, upper, b, out, batch, n, k):
    """Solve tridiagonal systems by elimination with exchanges of neighbouring rows.

    ``lower[0]`` and ``upper[n - 1]`` are not read. The second diagonal above holds what an
    exchange brings in.
    """
    d, e, f = (np.empty(n, out.dtype), np.empty(n, out.dtype), np.empty(n, out.dtype))
    for s in range(batch):
        low = lower[s * n : (s + 1) * n]
        d[:] = diagonal[s * n : (s + 1) * n]
        e[:] = upper[s * n : (s + 1) * n]
        f[:] = 0
        x = out[s * n * k : (s + 1) * n * k].reshape(n, k)
        x[:] = b[s * n * k : (s + 1) * n * k].reshape(n, k)
        if n > 0:
            e[n - 1] = 0
        for i in range(n - 1):
            below = low[u(i + 1)]
            if _size(d[u(i)]) >= _size(below):
                if below == 0:
                    continue
                scale = below / d[u(i)]
                d[u(i + 1)] -= scale * e[u(i)]
            else:
                scale = d[u(i)] / below
                d[u(i)] = below
                e[u(i)], d[u(i + 1)] = d[u(i + 1)], e[u(i)] - scale * d[u(i + 1)]
                f[u(i)] = e[u(i + 1)]
                e[u(i + 1)] = -scale * f[u(i)]
                for c in range(k):
                    x[u(i), u(c)], x[u(i + 1), u(c)] = x[u(i + 1), u(c)], x[u(i), u(c)]
            _less_scaled_row(x, i + 1, scale, x, i, 0, k)
        for step in range(n):
            i = n - 1 - step
            if i + 1 < n:
                _less_scaled_row(x, i, e[u(i)], x, i + 1, 0, k)
            if i + 2 < n:
                _less_scaled_row(x, i, f[u(i)], x, i + 2, 0, k)
            for c in range(k):
                x[u(i), u(c)] /= d[u(i)]


@kernel
def permutation(pivots, out, batch, size, rows):
    """Order of rows that successive exchanges make."""
    for s in range(batch):
        order = out[s * rows : (s + 1) * rows]
        for i in range(rows):
            order[u(i)] = i
        for i in range(size):
            other = pivots[u(s * size + i)]
            order[u(i)], order[u(other)] = order[u(other)], order[u(i)]
