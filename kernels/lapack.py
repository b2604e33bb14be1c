"""Decompositions that LAPACK computes, for loops whose bodies hold them: its routines are called.

Arrays come flattened in C order: ``batch`` matrices one after the other. LAPACK has matrices by
columns, so each is turned on its way there and back. Working arrays are as long as the routines'
pages ask for, with room for blocks. A matrix that is not finite, on which iterations need not end,
is not handed over, and its results are NaN; so are those of an iteration that does not converge.

Routines for complex numbers take a real working array more, in two places another name or one
array for two: functions that end in ``_real`` and ``_complex`` call them.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels.complexmath import make, quotient
from fnarray_kernels.complexmath import sqrt as complex_root
from fnarray_kernels.gemm import product
from fnarray_kernels.registry import compiled, outside
from fnarray_kernels.routines import (
    gees,
    geev,
    gehrd,
    geqp3,
    gesdd,
    heevd,
    hetrd,
    orgqr,
    syevd,
    sytrd,
    ungqr,
)
from fnarray_kernels.scalar import u

#: Letters that routines take: vectors or none, all columns or some, a triangle.
_V, _N, _A, _S, _U, _L = (ord(letter) for letter in "VNASUL")
#: Columns of a block.
_BLOCK = 64


@compiled
def _turned(a, at, x, m, n):
    """Copy a matrix by columns; return whether all of it is finite."""
    total = a[u(at)].real * 0
    for i in range(m):
        for j in range(n):
            value = a[u(at + i * n + j)]
            x[u(j * m + i)] = value
            total += value.real * 0 + value.imag * 0
    return total == 0


@compiled
def _back(x, out, at, m, n, good):
    """Copy a matrix from columns, or make it NaN."""
    for i in range(m):
        for j in range(n):
            out[u(at + i * n + j)] = x[u(j * m + i)] if good else np.nan


@compiled
def _known(out, at, count, good):
    """Make numbers NaN unless they are good."""
    if not good:
        for i in range(count):
            out[u(at + i)] = np.nan


# ---- Hermitian matrices --------------------------------------------------------------------------


def _hermitian(call):
    @outside(loops=True)
    def eigh(a, v, w, batch, n, lower):
        """Eigenvectors and values of matrices of which one triangle is read."""
        room, more, some = 1 + (6 + 2 * n + _BLOCK) * n, 1 + (5 + 2 * n) * n, 3 + 5 * n
        x, work, reals = np.empty(n * n, v.dtype), np.empty(room, v.dtype), np.empty(more, w.dtype)
        whole, words = np.empty(some, np.int32), np.empty(7, np.int32)
        words[0], words[1], words[2], words[3] = n, room, some, more
        words[5] = _V
        words[6] = _L if lower else _U
        for s in range(batch):
            good = _turned(a, s * n * n, x, n, n)
            if good:
                call(x, w[s * n : (s + 1) * n], work, reals, whole, words)
                good = words[4] == 0
            _back(x, v, s * n * n, n, n, good)
            _known(w, s * n, n, good)

    return eigh


@compiled
def _eigh_real(x, w, work, reals, whole, k):
    syevd(x, k[5:], k[6:], k, x, k, w, work, k[1:], whole, k[2:], k[4:])


@compiled
def _eigh_complex(x, w, work, reals, whole, k):
    heevd(x, k[5:], k[6:], k, x, k, w, work, k[1:], reals, k[3:], whole, k[2:], k[4:])


eigh, eigh_complex = _hermitian(_eigh_real), _hermitian(_eigh_complex)


# ---- singular values -----------------------------------------------------------------------------


def _singular(call):
    @compiled
    def each(a, s, left, right, batch, m, n, rows, columns, job):
        k, large = min(m, n), max(m, n)
        room, more = (4 * k + 8) * k + _BLOCK * (m + n), (7 * k + 2 * large + 6) * k
        x, work, reals = np.empty(m * n, a.dtype), np.empty(room, a.dtype), np.empty(more, s.dtype)
        y, z = np.empty(m * rows + 1, a.dtype), np.empty(columns * n + 1, a.dtype)
        whole, words = np.empty(8 * k, np.int32), np.empty(6, np.int32)
        words[0], words[1], words[2], words[3], words[5] = m, n, max(columns, 1), room, job
        for t in range(batch):
            good = _turned(a, t * m * n, x, m, n)
            if good:
                call(x, s[t * k : (t + 1) * k], y, z, work, reals, whole, words)
                good = words[4] == 0
            _back(y, left, t * m * rows, m, rows, good)
            _back(z, right, t * columns * n, columns, n, good)
            _known(s, t * k, k, good)

    @outside(loops=True)
    def svd(a, s, left, right, batch, m, n, full):
        """Singular values, and the vectors of some or all columns and rows."""
        k = min(m, n)
        if full:
            each(a, s, left, right, batch, m, n, m, n, _A)
        else:
            each(a, s, left, right, batch, m, n, k, k, _S)

    @outside(loops=True)
    def svdvals(a, s, batch, m, n):
        """Singular values."""
        each(a, s, a, a, batch, m, n, 0, 0, _N)

    @outside(loops=True)
    def pinv(a, rtol, out, batch, m, n):
        """Pseudo-inverses; values up to ``rtol`` of the largest count as 0."""
        k, one = min(m, n), a[u(0)].real * 0 + 1
        s, left, right = np.empty(k, rtol.dtype), np.empty(m * k, a.dtype), np.empty(k * n, a.dtype)
        x, y = np.empty(n * k, a.dtype), np.empty(k * m, a.dtype)
        for t in range(batch):
            each(a[t * m * n : (t + 1) * m * n], s, left, right, 1, m, n, k, k, _S)
            for r in range(k):
                scale = one * 0 if s[u(r)] <= rtol[u(t)] * s[u(0)] else one / s[u(r)]
                for j in range(n):
                    x[u(j * k + r)] = np.conj(right[u(r * n + j)]) * scale
                for i in range(m):
                    y[u(r * m + i)] = np.conj(left[u(i * k + r)])
            product(x, y, out[t * n * m : (t + 1) * n * m], n, k, m, False, False)

    return svd, svdvals, pinv


@compiled
def _svd_real(x, s, left, right, work, reals, whole, k):
    gesdd(x, k[5:], k, k[1:], x, k, s, left, k, right, k[2:], work, k[3:], whole, k[4:])


@compiled
def _svd_complex(x, s, left, right, work, reals, whole, k):
    gesdd(x, k[5:], k, k[1:], x, k, s, left, k, right, k[2:], work, k[3:], reals, whole, k[4:])


svd, svdvals, pinv = _singular(_svd_real)
svd_complex, svdvals_complex, pinv_complex = _singular(_svd_complex)


# ---- general matrices ----------------------------------------------------------------------------


@compiled
def _paired(x, turns, out, at, n, good):
    """Write vectors by columns; the two of a pair are kept as the parts of the first."""
    for j in range(n):
        turn = turns[u(j)]
        for i in range(n):
            part = x[u(j * n + i)]
            if not good:
                out[u(at + i * n + j)] = np.nan
            elif turn == 0:
                out[u(at + i * n + j)] = make(part, part * 0)
            elif turn > 0:
                other = x[u((j + 1) * n + i)]
                out[u(at + i * n + j)] = make(part, other)
                out[u(at + i * n + j + 1)] = make(part, -other)


@compiled
def _asked(words, n, room, lefts, rights):
    """Say an order, how long the working array is, and which vectors are wanted."""
    words[0], words[1] = n, room
    words[3] = _V if lefts else _N
    words[4] = _V if rights else _N


@compiled
def _eig_real(a, w, left, right, lefts, rights, batch, n):
    room = (4 + _BLOCK) * n
    x, work = np.empty(n * n, a.dtype), np.empty(room, a.dtype)
    reals, turns = np.empty(n, a.dtype), np.empty(n, a.dtype)
    y, z, words = np.empty(n * n, a.dtype), np.empty(n * n, a.dtype), np.empty(5, np.int32)
    _asked(words, n, room, lefts, rights)
    for s in range(batch):
        good, at = _turned(a, s * n * n, x, n, n), s * n * n
        if good:
            geev(
                x, words[3:], words[4:], words, x, words, reals, turns, y, words, z, words, work,
                words[1:], words[2:],
            )  # fmt: skip
            good = words[2] == 0
        for j in range(n):
            w[u(s * n + j)] = make(reals[u(j)], turns[u(j)]) if good else np.nan
        if lefts:
            _paired(y, turns, left, at, n, good)
        if rights:
            _paired(z, turns, right, at, n, good)


@compiled
def _eig_complex(a, w, left, right, lefts, rights, batch, n):
    room = (2 + _BLOCK) * n
    x, work = np.empty(n * n, a.dtype), np.empty(room, a.dtype)
    reals, words = np.empty(2 * n, type(a[u(0)].real)), np.empty(5, np.int32)
    y, z = np.empty(n * n, a.dtype), np.empty(n * n, a.dtype)
    _asked(words, n, room, lefts, rights)
    for s in range(batch):
        good, at = _turned(a, s * n * n, x, n, n), s * n * n
        if good:
            geev(
                x, words[3:], words[4:], words, x, words, w[s * n : (s + 1) * n], y, words, z,
                words, work, words[1:], reals, words[2:],
            )  # fmt: skip
            good = words[2] == 0
        _known(w, s * n, n, good)
        if lefts:
            _back(y, left, at, n, n, good)
        if rights:
            _back(z, right, at, n, n, good)


def _general(each):
    @outside(loops=True)
    def values(a, w, batch, n):
        """Eigenvalues."""
        each(a, w, w, w, False, False, batch, n)

    @outside(loops=True)
    def lefts(a, w, left, batch, n):
        """Eigenvalues and left eigenvectors."""
        each(a, w, left, left, True, False, batch, n)

    @outside(loops=True)
    def rights(a, w, right, batch, n):
        """Eigenvalues and right eigenvectors."""
        each(a, w, right, right, False, True, batch, n)

    @outside(loops=True)
    def both(a, w, left, right, batch, n):
        """Eigenvalues, left and right eigenvectors."""
        each(a, w, left, right, True, True, batch, n)

    return values, lefts, rights, both


eigvals, eig_left, eig_right, eig_both = _general(_eig_real)
eigvals_complex, eig_left_complex, eig_right_complex, eig_both_complex = _general(_eig_complex)


# ---- Schur's form --------------------------------------------------------------------------------


def _triangular(call):
    @compiled
    def each(a, t, z, vectors, batch, n):
        room = (3 + _BLOCK) * n
        x, y, work = np.empty(n * n, a.dtype), np.empty(n * n, a.dtype), np.empty(room, a.dtype)
        reals, values = np.empty(n, type(a[u(0)].real)), np.empty(2 * n, a.dtype)
        words = np.empty(6, np.int32)
        words[0], words[1], words[5] = n, room, _N
        words[4] = _V if vectors else _N
        for s in range(batch):
            good, at = _turned(a, s * n * n, x, n, n), s * n * n
            if good:
                call(x, y, work, reals, values, words, n)
                good = words[2] == 0
            _back(x, t, at, n, n, good)
            if not good:
                for i in range(n):
                    for j in range(i):
                        t[u(at + i * n + j)] = 0
            if vectors:
                _back(y, z, at, n, n, good)

    @outside(loops=True)
    def schur(a, t, z, batch, n):
        """Triangles and vectors."""
        each(a, t, z, True, batch, n)

    @outside(loops=True)
    def schur_form(a, t, batch, n):
        """Triangles alone."""
        each(a, t, t, False, batch, n)

    return schur, schur_form


@compiled
def _schur_real(x, y, work, reals, values, k, n):
    # What selects values and what it finds are not read, as none are to come first.
    gees(
        x, k[4:], k[5:], k, k, x, k, k[3:], values, values[n:], y, k, work, k[1:], k, k[2:],
    )  # fmt: skip


@compiled
def _schur_complex(x, y, work, reals, values, k, n):
    gees(x, k[4:], k[5:], k, k, x, k, k[3:], values, y, k, work, k[1:], reals, k, k[2:])


schur, schur_form = _triangular(_schur_real)
schur_complex, schur_form_complex = _triangular(_schur_complex)


# ---- square roots --------------------------------------------------------------------------------


def _rooted(call, root):
    @compiled
    def rooted(a, x, y, z, work, reals, values, out, at, n, words):
        """Write the root of a matrix, by its triangle (Bjorck & Hammarling 1983).

        Returns whether there is one in these numbers; if not, NaN is written.
        """
        good = _turned(a, at, x, n, n)
        if good:
            call(x, y, work, reals, values, words, n)
            good = words[2] == 0
        for j in range(n):
            # Of real numbers: pairs of eigenvalues, and negative ones, have complex roots.
            pair = j + 1 < n and x[u(j * n + j + 1)] != 0
            good = good and not (words[6] != 0 and (pair or x[u(j * n + j)].real < 0))
        if not good:
            _known(out, at, n * n, False)
            return False
        for j in range(n):
            x[u(j * n + j)] = root(x[u(j * n + j)])
            for below in range(j):
                i = j - 1 - below
                total = x[u(j * n + i)]
                for k in range(i + 1, j):
                    total -= x[u(k * n + i)] * x[u(j * n + k)]
                if total != 0:
                    total = quotient(total, x[u(i * n + i)] + x[u(j * n + j)])
                x[u(j * n + i)] = total
        for i in range(n * n):
            z[u(i)] = np.conj(y[u(i)])
        half = work[: n * n]
        product(x, z, half, n, n, n, True, False)
        product(y, half, z, n, n, n, True, False)
        for i in range(n * n):
            out[u(at + i)] = z[u(i)]
        return True

    return rooted


@compiled
def _real_root(x):
    return np.sqrt(x)


_rooted_real = _rooted(_schur_real, _real_root)
_rooted_complex = _rooted(_schur_complex, complex_root)


def _roots(real):
    @outside(loops=True)
    def sqrtm(a, out, batch, n):
        """Principal square roots; of real matrices in real numbers, where they are real."""
        one, room = a[u(0)].real, (3 + _BLOCK + n) * n
        x, y, z = np.empty(n * n, out.dtype), np.empty(n * n, out.dtype), np.empty(n * n, out.dtype)
        work, values = np.empty(room, out.dtype), np.empty(2 * n, out.dtype)
        v, w, s = np.empty(n * n, a.dtype), np.empty(n * n, a.dtype), np.empty(n * n, a.dtype)
        own, reals, pairs = (
            np.empty(room, a.dtype),
            np.empty(n, type(one)),
            np.empty(2 * n, a.dtype),
        )
        words = np.empty(7, np.int32)
        words[0], words[1], words[4], words[5] = n, room, _V, _N
        for t in range(batch):
            at, done = t * n * n, False
            if real:
                words[6] = 1
                done = _rooted_real(a, v, w, s, own, reals, pairs, out, at, n, words)
            words[6] = 0
            if not done:
                _rooted_complex(a, x, y, z, work, reals, values, out, at, n, words)

    return sqrtm


sqrtm, sqrtm_complex = _roots(True), _roots(False)


# ---- condensed forms -----------------------------------------------------------------------------


@outside(loops=True)
def hessenberg(a, packed, taus, batch, n):
    """Hessenberg's form, and the reflections that lead there."""
    room = (n + 65) * _BLOCK
    x, work, words = np.empty(n * n, a.dtype), np.empty(room, a.dtype), np.empty(4, np.int32)
    words[0], words[1], words[3] = n, room, 1
    for s in range(batch):
        _turned(a, s * n * n, x, n, n)
        to = taus[s * (n - 1) : (s + 1) * (n - 1)]
        gehrd(x, words, words[3:], words, x, words, to, work, words[1:], words[2:])
        _back(x, packed, s * n * n, n, n, True)


def _tridiagonals(call):
    @outside(loops=True)
    def tridiagonal(a, packed, d, e, taus, batch, n, lower):
        """Tridiagonal form of Hermitian matrices, and the reflections that lead there."""
        m, room = n - 1, n * _BLOCK
        x, work, words = np.empty(n * n, a.dtype), np.empty(room, a.dtype), np.empty(4, np.int32)
        words[0], words[1] = n, room
        words[3] = _L if lower else _U
        for s in range(batch):
            _turned(a, s * n * n, x, n, n)
            here, off, to = (
                d[s * n : (s + 1) * n],
                e[s * m : (s + 1) * m],
                taus[s * m : (s + 1) * m],
            )
            call(x, here, off, to, work, words)
            _back(x, packed, s * n * n, n, n, True)

    return tridiagonal


@compiled
def _tridiagonal_real(x, d, e, taus, work, k):
    sytrd(x, k[3:], k, x, k, d, e, taus, work, k[1:], k[2:])


@compiled
def _tridiagonal_complex(x, d, e, taus, work, k):
    hetrd(x, k[3:], k, x, k, d, e, taus, work, k[1:], k[2:])


tridiagonal = _tridiagonals(_tridiagonal_real)
tridiagonal_complex = _tridiagonals(_tridiagonal_complex)
hessenberg_complex = hessenberg


# ---- columns in the order of what they add -------------------------------------------------------


def _pivoted(call, spread):
    @outside(loops=True)
    def qr_pivoted(a, q, r, order, batch, m, n, k):
        """Orthonormal columns (m, k), upper triangles (k, n), and which column came when."""
        size, room = min(m, n), (2 + _BLOCK) * (max(m, n) + 1)
        x, y = np.empty(m * n, a.dtype), np.empty(m * max(k, n), a.dtype)
        taus, work = np.empty(size, a.dtype), np.empty(room, a.dtype)
        reals = np.empty(2 * n, type(a[u(0)].real))
        places, words = np.empty(n, np.int32), np.empty(6, np.int32)
        words[0], words[1], words[2], words[3], words[5] = m, n, k, room, size
        for s in range(batch):
            _turned(a, s * m * n, x, m, n)
            for j in range(n):
                places[u(j)] = 0
            call(x, places, taus, work, reals, words)
            for j in range(n):
                order[u(s * n + j)] = places[u(j)] - 1
                for i in range(k):
                    r[u((s * k + i) * n + j)] = x[u(j * m + i)] if i <= j else 0
            for i in range(m * k):
                y[u(i)] = x[u(i)] if i < m * n else 0
            spread(y, taus, work, words)
            _back(y, q, s * m * k, m, k, True)

    return qr_pivoted


@compiled
def _order_real(x, places, taus, work, reals, k):
    geqp3(x, k, k[1:], x, k, places, taus, work, k[3:], k[4:])


@compiled
def _order_complex(x, places, taus, work, reals, k):
    geqp3(x, k, k[1:], x, k, places, taus, work, k[3:], reals, k[4:])


@compiled
def _spread_real(y, taus, work, k):
    orgqr(y, k, k[2:], k[5:], y, k, taus, work, k[3:], k[4:])


@compiled
def _spread_complex(y, taus, work, k):
    ungqr(y, k, k[2:], k[5:], y, k, taus, work, k[3:], k[4:])


qr_pivoted = _pivoted(_order_real, _spread_real)
qr_pivoted_complex = _pivoted(_order_complex, _spread_complex)
