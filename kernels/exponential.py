"""Exponentials of matrices, and their derivatives in a direction, for compiled programs.

Scaling, a diagonal Pade approximant and squaring (Higham, SIAM J. Matrix Anal. Appl. 26, 2005), in
double precision whatever the dtype: for single precision the norms up to which a degree serves are
its own, so that it takes fewer products. Arrays come flattened in C order, ``batch`` matrices one
after the other.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels.gemm import product
from fnarray_kernels.linalg import _factor, _substitute
from fnarray_kernels.registry import compiled, outside
from fnarray_kernels.scalar import u

#: Norms up to which the approximants of degrees 3, 5, 7 and 13 are as good as the precision; of
#: single precision that of 7 is as far as scaling goes.
_SINGLE = (4.258730016922831e-1, 1.880152677804762, 3.925724783138660)
_DOUBLE = (1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1)
_THIRTEEN = 5.371920351148152


@compiled
def _norm(x, n):
    """Return the largest sum of sizes along a column, NaN if there is one."""
    largest = np.float64(0)
    for j in range(n):
        total = np.float64(0)
        for i in range(n):
            total += abs(x[u(i * n + j)])
        if not total <= largest:
            largest = total
    return largest


@compiled
def _powers(two, four, six, out, n, a, b, c, d):
    """Write ``a + b x^2 + c x^4 + d x^6``; powers without a factor are not read."""
    for i in range(n * n):
        total = two[u(i)] * b
        if c != 0:
            total += four[u(i)] * c
        if d != 0:
            total += six[u(i)] * d
        out[u(i)] = total
    for i in range(n):
        out[u(i * (n + 1))] += a


@compiled
def _approximant(x, two, four, six, even, odd, upper, n, norm, single):
    """Write the even and the odd terms of the numerator, these without their factor ``x``."""
    low = _SINGLE[0] if single else _DOUBLE[0]
    middle = _SINGLE[1] if single else _DOUBLE[1]
    high = _SINGLE[2] if single else _DOUBLE[2]
    product(x, x, two, n, n, n, False, False)
    if norm <= low:
        _powers(two, two, two, even, n, 120.0, 12.0, 0.0, 0.0)
        _powers(two, two, two, odd, n, 60.0, 1.0, 0.0, 0.0)
        return
    product(two, two, four, n, n, n, False, False)
    if norm <= middle:
        _powers(two, four, four, even, n, 30240.0, 3360.0, 30.0, 0.0)
        _powers(two, four, four, odd, n, 15120.0, 420.0, 1.0, 0.0)
        return
    product(two, four, six, n, n, n, False, False)
    if norm <= high:
        _powers(two, four, six, even, n, 17297280.0, 1995840.0, 25200.0, 56.0)
        _powers(two, four, six, odd, n, 8648640.0, 277200.0, 1512.0, 1.0)
        return
    # The terms from the eighth power on are x^6 times a sum, which the places of the results hold.
    size = n * n
    _powers(two, four, six, even, n, 0.0, 1323241920.0, 960960.0, 182.0)
    _powers(two, four, six, odd, n, 0.0, 40840800.0, 16380.0, 1.0)
    product(six, even, upper[0:size], n, n, n, False, False)
    product(six, odd, upper[size : 2 * size], n, n, n, False, False)
    _powers(
        two, four, six, even, n, 64764752532480000.0, 7771770303897600.0, 129060195264000.0,
        670442572800.0,
    )  # fmt: skip
    _powers(
        two, four, six, odd, n, 32382376266240000.0, 1187353796428800.0, 10559470521600.0,
        33522128640.0,
    )  # fmt: skip
    for i in range(size):
        even[u(i)] += upper[u(i)]
        odd[u(i)] += upper[u(size + i)]


@compiled
def _exponential(x, work, pivots, n, single):
    """Replace a matrix that is finite by its exponential."""
    size = n * n
    two, four, six = work[0:size], work[size : 2 * size], work[2 * size : 3 * size]
    even, odd, upper = (
        work[3 * size : 4 * size],
        work[4 * size : 5 * size],
        work[5 * size : 7 * size],
    )
    most = _SINGLE[2] if single else _THIRTEEN
    norm, scale, times = _norm(x, n), np.float64(1), 0
    while norm > most:
        norm *= 0.5
        scale *= 0.5
        times += 1
    for i in range(size):
        x[u(i)] *= scale
    _approximant(x, two, four, six, even, odd, upper, n, norm, single)
    product(x, odd, two, n, n, n, False, False)
    for i in range(size):
        x[u(i)], even[u(i)] = even[u(i)] + two[u(i)], even[u(i)] - two[u(i)]
    _factor(even, 0, pivots, 0, n, n)
    for i in range(n):
        row, other = i * n, pivots[u(i)] * n
        for c in range(n):
            x[u(row + c)], x[u(other + c)] = x[u(other + c)], x[u(row + c)]
    _substitute(even, 0, n, 1, x, 0, n, 1, n, n, True, False, True)
    _substitute(even, 0, n, 1, x, 0, n, 1, n, n, False, False, False)
    for _ in range(times):
        product(x, x, two, n, n, n, False, False)
        for i in range(size):
            x[u(i)] = two[u(i)]


@outside(loops=True, improves=True)
def expm(a, out, batch, n, most, single):
    """Exponentials; NaN where the norm is over ``most``."""
    size, wide = n * n, type(out.dtype.type(0) * np.float64(1))
    x, work, pivots = np.empty(size, wide), np.empty(7 * size, wide), np.empty(n, np.int64)
    for s in range(batch):
        at = s * size
        for i in range(size):
            x[u(i)] = a[u(at + i)]
        norm = _norm(x, n)
        good = norm <= most and norm < np.inf
        if good:
            _exponential(x, work, pivots, n, single)
        for i in range(size):
            out[u(at + i)] = x[u(i)] if good else np.nan


@outside(loops=True, improves=True)
def expm_frechet(a, e, out, batch, n, most, single):
    """Derivatives at ``a`` in the direction ``e``: what ``exp([[a, e], [0, a]])`` has above."""
    size, m, wide = n * n, 2 * n, type(out.dtype.type(0) * np.float64(1))
    x, work, pivots = np.empty(4 * size, wide), np.empty(28 * size, wide), np.empty(m, np.int64)
    for s in range(batch):
        at = s * size
        # The direction is brought to a size of 1, which the matrix's own scaling then serves.
        large = np.float64(0)
        for i in range(size):
            x[u(i)] = a[u(at + i)]
            length = np.float64(abs(e[u(at + i)]))
            if not length <= large:
                large = length
        norm = _norm(x, n)
        good = norm <= most and norm < np.inf and large < np.inf
        if large == 0:
            large = np.float64(1)
        for i in range(n):
            for j in range(n):
                x[u(i * m + j)] = a[u(at + i * n + j)]
                x[u((i + n) * m + j + n)] = a[u(at + i * n + j)]
                x[u(i * m + j + n)] = e[u(at + i * n + j)] / large
                x[u((i + n) * m + j)] = 0
        if good:
            _exponential(x, work, pivots, m, single)
        for i in range(n):
            for j in range(n):
                value = x[u(i * m + j + n)] * large
                out[u(at + i * n + j)] = value if good else np.nan
