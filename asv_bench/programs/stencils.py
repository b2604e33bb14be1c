"""Explicit and implicit steps on grids, repeated in loops."""

from __future__ import annotations

import numpy

from .registry import numbers, program


@program(
    test={"n": 20, "turns": 4},
    small={"n": 1000, "turns": 100},
    large={"n": 30_000, "turns": 400},
    grad=True,
)
def heat_1d(m, n, turns):
    """Means of three neighbours, from one array to another and back."""
    loop = m.lax.fori_loop

    def run(a):
        def turn(_, ab):
            a, b = ab
            b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3)
            a = a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3)
            return a, b

        return loop(0, turns, turn, (a, a))[0]

    return run, (numbers(n),)


@program(
    test={"n": 9, "turns": 4},
    small={"n": 60, "turns": 50},
    large={"n": 250, "turns": 200},
    grad=True,
)
def jacobi_2d(m, n, turns):
    """Means of five neighbours on a square, from one array to another and back."""
    loop = m.lax.fori_loop

    def mean(a):
        inner = a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        return 0.2 * inner

    def run(a):
        def turn(_, ab):
            a, b = ab
            b = b.at[1:-1, 1:-1].set(mean(a))
            return a.at[1:-1, 1:-1].set(mean(b)), b

        return loop(0, turns, turn, (a, a))[0]

    return run, (numbers(n, n),)


@program(
    test={"n": 6, "turns": 3}, small={"n": 20, "turns": 25}, large={"n": 70, "turns": 60}, grad=True
)
def heat_3d(m, n, turns):
    """Explicit heat flow in a cube."""
    loop = m.lax.fori_loop
    inner = (slice(1, -1),) * 3

    def flow(a):
        total = a[inner]
        for axis in range(3):
            at = lambda s, axis=axis: a[tuple(s if i == axis else slice(1, -1) for i in range(3))]  # noqa: E731
            total = total + 0.125 * (at(slice(2, None)) - 2 * a[inner] + at(slice(None, -2)))
        return total

    def run(a):
        def turn(_, ab):
            a, b = ab
            b = b.at[inner].set(flow(a))
            return a.at[inner].set(flow(b)), b

        return loop(0, turns, turn, (a, a))[0]

    return run, (numbers(n, n, n),)


@program(
    test={"n": 8, "k": 9, "turns": 4},
    small={"n": 60, "k": 70, "turns": 50},
    large={"n": 300, "k": 400, "turns": 150},
    grad=True,
)
def fdtd_2d(m, n, k, turns):
    """Maxwell's equations in two dimensions, leapfrog (Yee 1966), driven along one side."""
    loop = m.lax.fori_loop

    def run(ex, ey, hz, drive):
        def turn(t, fields):
            ex, ey, hz = fields
            ey = ey.at[0, :].set(drive[t])
            ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
            ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
            curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

        return loop(0, turns, turn, (ex, ey, hz))

    return run, (*(numbers(n, k, seed=i) for i in range(3)), numbers(turns, seed=3))


@program(test={"n": 7, "turns": 3}, small={"n": 40, "turns": 5}, large={"n": 120, "turns": 20})
def seidel_2d(m, n, turns):
    """Means of nine neighbours in place, so that each point sees the new ones before it."""
    lax = m.lax

    def run(a):
        def row(i, a):
            above, here, below = a[i - 1], a[i], a[i + 1]
            known = above[:-2] + above[1:-1] + above[2:] + below[:-2] + below[1:-1] + below[2:]
            known = known + here[1:-1] + here[2:]

            def point(left, rest):
                new = (left + rest) / 9
                return new, new

            return a.at[i, 1:-1].set(lax.scan(point, here[0], known)[1])

        return lax.fori_loop(0, turns, lambda _, a: lax.fori_loop(1, n - 1, row, a), a)

    return run, (numbers(n, n),)


@program(
    test={"nx": 5, "ny": 6, "nz": 7},
    small={"nx": 40, "ny": 40, "nz": 20},
    large={"nx": 128, "ny": 128, "nz": 80},
    grad=True,
)
def vertical_advection(m, nx, ny, nz):
    """Implicit advection by a vertical wind: a tridiagonal system a column, scanned by levels."""
    np, scan = m.numpy, m.lax.scan

    def run(u, wind, old, tendency):
        dt = 3.0 / 20
        up = 0.25 * (wind[1:] + wind[:-1])
        zero = np.zeros_like(u[0])
        below = np.concatenate([zero[None], -0.5 * up]) * 0.5
        above = np.concatenate([0.5 * up, zero[None]]) * 0.5
        right = dt * (old + tendency) + u

        def eliminate(carry, row):
            c, d = carry
            a_k, c_k, d_k = row
            pivot = 1 / (1 + dt - a_k * c)
            kept = c_k * pivot, (d_k - a_k * d) * pivot
            return kept, kept

        def substitute(x, row):
            c, d = row
            x = d - c * x
            return x, x

        _, rows = scan(eliminate, (zero, zero), (below, above, right))
        return scan(substitute, zero, rows, reverse=True)[1]

    shape = nz, nx, ny
    return run, tuple(numbers(*shape, seed=i) for i in range(4))


@program(
    test={"nx": 8, "ny": 9, "nz": 3},
    small={"nx": 64, "ny": 64, "nz": 8},
    large={"nx": 256, "ny": 256, "nz": 40},
    grad=True,
)
def horizontal_diffusion(m, nx, ny, nz):
    """Biharmonic diffusion with fluxes limited to flow downhill (a weather model's filter)."""
    np = m.numpy

    def run(x, strength):
        around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
        laplace = 4 * x[1:-1, 1:-1] - around
        fx = laplace[1:, 1:-1] - laplace[:-1, 1:-1]
        fx = np.where(fx * (x[2:-1, 2:-2] - x[1:-2, 2:-2]) > 0, 0.0, fx)
        fy = laplace[1:-1, 1:] - laplace[1:-1, :-1]
        fy = np.where(fy * (x[2:-2, 2:-1] - x[2:-2, 1:-2]) > 0, 0.0, fy)
        return x[2:-2, 2:-2] - strength * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])

    return run, (numbers(nx, ny, nz), numbers(nx - 4, ny - 4, nz, low=0.0, seed=1))


@program(
    test={"n": 8, "turns": 2},
    small={"n": 40, "turns": 10},
    large={"n": 160, "turns": 20},
    grad=True,
)
def alternating_directions(m, n, turns):
    """Heat flow, implicit along one axis and then the other (Peaceman and Rachford 1955)."""
    np, lax = m.numpy, m.lax
    a, b = -0.3, 1.6

    def sweep(right):
        """Solve for each column, a scan of its rows; edges are zero."""
        zero = np.zeros_like(right[0])

        def eliminate(carry, d):
            p, q = carry
            pivot = 1 / (b + a * p)
            kept = -a * pivot, (d - a * q) * pivot
            return kept, kept

        def substitute(x, row):
            x = row[0] * x + row[1]
            return x, x

        _, rows = lax.scan(eliminate, (zero, zero), right)
        return lax.scan(substitute, zero, rows, reverse=True)[1]

    def run(u):
        def turn(_, u):
            for _ in range(2):
                inner = u[1:-1, 1:-1]
                right = inner + 0.3 * (u[1:-1, 2:] - 2 * inner + u[1:-1, :-2])
                u = np.pad(sweep(right), 1).T
            return u

        return lax.fori_loop(0, turns, turn, u)

    return run, (numbers(n, n),)


@program(
    test={"n": 9, "turns": 2, "inner": 3},
    small={"n": 41, "turns": 5, "inner": 20},
    large={"n": 101, "turns": 20, "inner": 50},
    grad=True,
)
def cavity_flow(m, n, turns, inner):
    """Flow in a box under a moving lid: momentum, and a pressure by relaxation (Chorin 1967)."""
    loop = m.lax.fori_loop
    h, dt, rho, nu = 2.0 / (n - 1), 0.001, 1.0, 0.1
    C, E, W, N, S = (
        (slice(1, -1), slice(1, -1)),
        (slice(1, -1), slice(2, None)),
        (slice(1, -1), slice(None, -2)),
        (slice(2, None), slice(1, -1)),
        (slice(None, -2), slice(1, -1)),
    )

    def source(u, v):
        ux, vy = (u[E] - u[W]) / (2 * h), (v[N] - v[S]) / (2 * h)
        uy, vx = (u[N] - u[S]) / (2 * h), (v[E] - v[W]) / (2 * h)
        return rho * ((ux + vy) / dt - ux * ux - 2 * uy * vx - vy * vy)

    def relax(b, p):
        p = p.at[C].set(0.25 * (p[E] + p[W] + p[N] + p[S]) - 0.25 * h * h * b)
        p = p.at[:, -1].set(p[:, -2]).at[0, :].set(p[1, :])
        return p.at[:, 0].set(p[:, 1]).at[-1, :].set(0.0)

    def moved(x, u, v, slope):
        return (
            x[C]
            - u[C] * dt / h * (x[C] - x[W])
            - v[C] * dt / h * (x[C] - x[S])
            - dt / (2 * rho * h) * slope
            + nu * dt / (h * h) * (x[E] + x[W] + x[N] + x[S] - 4 * x[C])
        )

    def run(u, v, p):
        def turn(_, fields):
            u, v, p = fields
            b = source(u, v)
            p = loop(0, inner, lambda _, p: relax(b, p), p)
            u_new = u.at[C].set(moved(u, u, v, p[E] - p[W]))
            v_new = v.at[C].set(moved(v, u, v, p[N] - p[S]))
            for edge in ((0, slice(None)), (slice(None), 0), (slice(None), -1), (-1, slice(None))):
                u_new, v_new = u_new.at[edge].set(0.0), v_new.at[edge].set(0.0)
            return u_new.at[-1, :].set(1.0), v_new, p

        return loop(0, turns, turn, (u, v, p))

    return run, tuple(0.1 * numbers(n, n, seed=i) for i in range(3))


@program(
    test={"n": 10, "turns": 3},
    small={"n": 100, "turns": 40},
    large={"n": 500, "turns": 100},
    grad=True,
)
def reaction_diffusion(m, n, turns):
    """Two substances on a torus (Gray and Scott 1984), shifted by ``roll``."""
    np, loop = m.numpy, m.lax.fori_loop

    def spread(x):
        return sum(np.roll(x, s, axis) for axis in range(2) for s in (-1, 1)) - 4 * x

    def run(u, v):
        def turn(_, uv):
            u, v = uv
            met = u * v * v
            return u + 0.16 * spread(u) - met + 0.06 * (1 - u), v + 0.08 * spread(
                v
            ) + met - 0.122 * v

        return loop(0, turns, turn, (u, v))

    return run, (numbers(n, n, low=0.5), numbers(n, n, low=0.0, high=0.3, seed=1))


@program(test={"n": 12, "turns": 3}, small={"n": 64, "turns": 40}, large={"n": 400, "turns": 100})
def game_of_life(m, n, turns):
    """Conway's automaton on a torus: sums of eight neighbours of integers, and a rule."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(cells):
        def turn(_, x):
            rows = x + np.roll(x, 1, 0) + np.roll(x, -1, 0)
            count = rows + np.roll(rows, 1, 1) + np.roll(rows, -1, 1) - x
            return np.where((count == 3) | ((count == 2) & (x == 1)), 1, 0).astype(x.dtype)

        return loop(0, turns, turn, cells)

    return run, ((numbers(n, n) > 0.3).astype(numpy.int32),)


@program(
    test={"n": 10, "turns": 5},
    small={"n": 100, "turns": 41},
    large={"n": 500, "turns": 100},
    grad=True,
)
def waves(m, n, turns):
    """A membrane held at its edge: two states, of which each step updates the older (leapfrog)."""
    loop = m.lax.fori_loop

    def run(a, b):
        def turn(_, ab):
            a, b = ab
            bent = b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] - 4 * b[1:-1, 1:-1]
            return b, a.at[1:-1, 1:-1].set(2 * b[1:-1, 1:-1] - a[1:-1, 1:-1] + 0.2 * bent)

        return loop(0, turns, turn, (a, b))

    return run, (numbers(n, n), numbers(n, n, seed=1))
