"""Linear algebra by loops: what does not have a fixed extent is masked, as tracing demands."""

from __future__ import annotations

import numpy

from .registry import numbers, program

SIZES = {"test": {"n": 7}, "small": {"n": 60}, "large": {"n": 200}}


def definite(n: int) -> numpy.ndarray:
    """Return a symmetric matrix that dominates its rows."""
    a = numbers(n, n)
    return (a + a.T) / 2 + n * numpy.eye(n)


@program(**SIZES)
def lu_by_rows(m, n):
    """Doolittle's elimination without pivots, row by row: three loops, masked inner products."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        k = np.arange(n)

        def lower(i, j, a):
            done = np.sum(np.where(k < j, a[i, :] * a[:, j], 0.0))
            return a.at[i, j].set((a[i, j] - done) / a[j, j])

        def upper(i, j, a):
            return a.at[i, j].add(-np.sum(np.where(k < i, a[i, :] * a[:, j], 0.0)))

        def row(i, a):
            a = loop(0, i, lambda j, a: lower(i, j, a), a)
            return loop(i, n, lambda j, a: upper(i, j, a), a)

        return loop(0, n, row, a)

    return run, (definite(n),)


@program(**SIZES, grad=True)
def lu_by_products(m, n):
    """Gauss's elimination without pivots: one outer product a turn, masked to what remains."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        k = np.arange(n)

        def column(i, a):
            below = k > i
            factors = np.where(below, a[:, i] / a[i, i], 0.0)
            a = a - factors[:, None] * np.where(k > i, a[i, :], 0.0)[None, :]
            return a.at[:, i].set(np.where(below, factors, a[:, i]))

        return loop(0, n - 1, column, a)

    return run, (definite(n),)


@program(**SIZES)
def lu_solve(m, n):
    """Elimination, then substitution forth and back, by masked inner products."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a, b):
        k = np.arange(n)

        def row(i, a):
            def entry(j, a):
                done = np.sum(np.where(k < np.minimum(i, j), a[i, :] * a[:, j], 0.0))
                rest = a[i, j] - done
                return a.at[i, j].set(np.where(j < i, rest / a[j, j], rest))

            return loop(0, n, entry, a)

        a = loop(0, n, row, a)

        def forth(i, y):
            return y.at[i].set(b[i] - np.sum(np.where(k < i, a[i] * y, 0.0)))

        def back(t, x):
            i = n - 1 - t
            done = np.sum(np.where(k > i, a[i] * x, 0.0))
            return x.at[i].set((x[i] - done) / a[i, i])

        return loop(0, n, back, loop(0, n, forth, np.zeros_like(b)))

    return run, (definite(n), numbers(n, seed=1))


@program(**SIZES)
def cholesky_by_rows(m, n):
    """Cholesky's factor (Banachiewicz's order): a loop in a loop, masked inner products."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        k = np.arange(n)

        def row(i, f):
            def entry(j, f):
                done = np.sum(np.where(k < j, f[i] * f[j], 0.0))
                return f.at[i, j].set((a[i, j] - done) / f[j, j])

            f = loop(0, i, entry, f)
            return f.at[i, i].set(np.sqrt(a[i, i] - np.sum(np.where(k < i, f[i] ** 2, 0.0))))

        return loop(0, n, row, np.zeros_like(a))

    return run, (definite(n),)


@program(**SIZES, grad=True)
def cholesky_by_columns(m, n):
    """Cholesky's factor, a column a turn: a product of a matrix and a vector, masked."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        k = np.arange(n)

        def column(j, f):
            c = a[:, j] - f @ f[j]
            c = np.where(k >= j, c / np.sqrt(c[j]), 0.0)
            return f.at[:, j].set(c)

        return loop(0, n, column, np.zeros_like(a))

    return run, (definite(n),)


@program(**SIZES, grad=True)
def triangular_solve(m, n):
    """Substitution forth with a lower triangular matrix."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a, b):
        k = np.arange(n)

        def entry(i, x):
            done = np.sum(np.where(k < i, a[i] * x, 0.0))
            return x.at[i].set((b[i] - done) / a[i, i])

        return loop(0, n, entry, np.zeros_like(b))

    return run, (definite(n), numbers(n, seed=1))


@program(test={"n": 7}, small={"n": 60}, large={"n": 1000}, grad=True)
def durbin(m, n):
    """Yule-Walker equations of a symmetric Toeplitz matrix (Durbin 1960), reversed by masks."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(r):
        j = np.arange(n)

        def order(k, carry):
            y, alpha, beta = carry
            beta = beta * (1 - alpha * alpha)
            before = j < k
            # r[k - 1], ..., r[0] beside y[0], ..., y[k - 1]: a rotation of the whole reversed.
            turned = np.roll(r[::-1], k - n)
            alpha = -(r[k] + np.sum(np.where(before, turned * y, 0.0))) / beta
            y = np.where(before, y + alpha * np.roll(y[::-1], k - n), y)
            return y.at[k].set(alpha), alpha, beta

        start = np.zeros_like(r).at[0].set(-r[0])
        return loop(1, n, order, (start, -r[0], np.ones_like(r[0])))[0]

    return run, (0.6 ** numpy.arange(1, n + 1) + 0.001 * numbers(n),)


@program(test={"n": 7}, small={"n": 40}, large={"n": 150}, grad=True)
def gram_schmidt(m, n):
    """Orthonormal columns by projections, one column after another (modified Gram-Schmidt)."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        k = np.arange(n)

        def column(j, carry):
            a, q, r = carry
            length = np.sqrt(np.sum(a[:, j] ** 2))
            unit = a[:, j] / length
            row = np.where(k > j, unit @ a, 0.0)
            return (
                a - unit[:, None] * row,
                q.at[:, j].set(unit),
                r.at[j].set(row).at[j, j].set(length),
            )

        return loop(0, n, column, (a, np.zeros((n + 3, n), a.dtype), np.zeros((n, n), a.dtype)))[1:]

    return run, (numbers(n + 3, n) + numpy.eye(n + 3, n),)


@program(test={"n": 6}, small={"n": 24}, large={"n": 80}, rtol=1e-2)
def jacobi_eigenvalues(m, n):
    """Eigenvalues of a symmetric matrix by sweeps of rotations (Jacobi 1846)."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        def rotate(p, q, a):
            theta = (a[q, q] - a[p, p]) / np.where(a[p, q] == 0, 1e-30, 2 * a[p, q])
            t = np.where(theta < 0, -1.0, 1.0) / (np.abs(theta) + np.sqrt(theta * theta + 1))
            c = 1 / np.sqrt(t * t + 1)
            s = t * c
            rows = c * a[p] - s * a[q], s * a[p] + c * a[q]
            a = a.at[p].set(rows[0]).at[q].set(rows[1])
            columns = c * a[:, p] - s * a[:, q], s * a[:, p] + c * a[:, q]
            return a.at[:, p].set(columns[0]).at[:, q].set(columns[1])

        def sweep(_, a):
            turn = lambda p, a: loop(p + 1, n, lambda q, a: rotate(p, q, a), a)  # noqa: E731
            return loop(0, n - 1, turn, a)

        a = loop(0, 6, sweep, a)
        return np.sort(np.diagonal(a))

    return run, (definite(n) + numpy.diag(numpy.arange(n)),)


@program(
    test={"n": 9, "turns": 5},
    small={"n": 60, "turns": 40},
    large={"n": 300, "turns": 40},
    grad=True,
)
def conjugate_gradients(m, n, turns):
    """Steps for a definite matrix (Hestenes and Stiefel 1952)."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a, b):
        def step(_, carry):
            x, r, p, rr = carry
            ap = a @ p
            alpha = rr / (p @ ap + 1e-30)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / (rr + 1e-30) * p, new

        return loop(0, turns, step, (np.zeros_like(b), b, b, b @ b))[0]

    a = numbers(n, n)
    return run, (a @ a.T / n + numpy.eye(n), numbers(n, seed=1))
