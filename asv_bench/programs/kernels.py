"""Numerical kernels of many fields: particles, dynamic programming, statistics, sampling, bits."""

from __future__ import annotations

import math

import numpy

from .registry import numbers, program


# --- particles and graphs ------------------------------------------------------------------------
@program(
    test={"n": 5, "turns": 3},
    small={"n": 30, "turns": 20},
    large={"n": 300, "turns": 50},
    grad=True,
)
def n_body(m, n, turns):
    """Leapfrog under softened gravity, and the energy at each step."""
    np, scan = m.numpy, m.lax.scan

    def run(position, velocity, mass):
        def pull(x):
            apart = x[None, :, :] - x[:, None, :]
            near = np.sum(apart * apart, -1) + 0.01
            return np.sum(apart * (mass[None, :] * near**-1.5)[..., None], 1), near

        def step(carry, _):
            x, v, a = carry
            v = v + 0.005 * a
            x = x + 0.01 * v
            a, near = pull(x)
            v = v + 0.005 * a
            kinetic = 0.5 * np.sum(mass[:, None] * v * v)
            potential = -0.5 * np.sum(mass[:, None] * mass[None, :] / np.sqrt(near))
            return (x, v, a), (kinetic, potential)

        return scan(step, (position, velocity, pull(position)[0]), None, length=turns)

    return run, (numbers(n, 3), 0.1 * numbers(n, 3, seed=1), numbers(n, low=0.5, seed=2))


@program(test={"n": 6}, small={"n": 60}, large={"n": 250})
def floyd_warshall(m, n):
    """Lengths of all shortest paths, by the vertices in between."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(path):
        turn = lambda k, d: np.minimum(d, d[:, k][:, None] + d[k, :][None, :])  # noqa: E731
        return loop(0, n, turn, path)

    return run, (numbers(n, n, low=0.0, high=10.0),)


@program(test={"n": 6}, small={"n": 40}, large={"n": 150})
def nussinov(m, n):
    """Most pairs of a folded strand (Nussinov 1978): a table filled by spans, masked maxima."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(strand):
        k = np.arange(n)

        def cell(i, j, table):
            pair = np.where(strand[i] + strand[j] == 3, 1, 0)
            # A neighbour in the chain cannot pair; the table below the diagonal stays zero.
            inside = np.where(i < j - 1, table[np.minimum(i + 1, n - 1), j - 1] + pair, 0)
            split = table[i, :] + np.roll(table[:, j], -1)
            best = np.max(np.where((k >= i) & (k < j), split, 0))
            return table.at[i, j].set(np.maximum(best, inside))

        def row(t, table):
            i = n - 1 - t
            return loop(i + 1, n, lambda j, table: cell(i, j, table), table)

        return loop(0, n, row, np.zeros((n, n), strand.dtype))

    return run, (numpy.random.default_rng(0).integers(0, 4, n).astype(numpy.int32),)


@program(test={"n": 7, "k": 5}, small={"n": 60, "k": 50}, large={"n": 400, "k": 300})
def alignment(m, n, k):
    """Smith-Waterman scores by rows: gaps along a row are a running maximum."""
    np, scan = m.numpy, m.lax.scan

    def run(a, b):
        def row(above, letter):
            def cell(left, xs):
                corner, up, other = xs
                match = corner + np.where(letter == other, 2.0, -1.0)
                best = np.maximum(np.maximum(0.0, match), np.maximum(up, left) - 1.0)
                return best, best

            zero = above[0] * 0
            cells = scan(cell, zero, (above[:-1], above[1:], b))[1]
            return np.concatenate([zero[None], cells]), np.max(cells)

        return scan(row, np.zeros(k + 1, np.float32), a)

    letters = numpy.random.default_rng(0).integers(0, 4, n + k).astype(numpy.int32)
    return run, (letters[:n], letters[n:])


@program(test={"n": 9, "k": 3}, small={"n": 2000, "k": 8}, large={"n": 200_000, "k": 16}, grad=True)
def sparse_product(m, n, k):
    """A sparse matrix in coordinates, times a vector, three times."""
    np = m.numpy

    def run(values, x, rows, columns):
        for _ in range(3):
            x = np.zeros_like(x).at[rows].add(values * x[columns]) + 0.1 * x
        return x

    draw = numpy.random.default_rng(0)
    rows = numpy.repeat(numpy.arange(n), k).astype(numpy.int32)
    columns = draw.integers(0, n, n * k).astype(numpy.int32)
    return run, (numbers(n * k), numbers(n, seed=1), rows, columns)


# --- statistics ----------------------------------------------------------------------------------
@program(test={"n": 9, "k": 4}, small={"n": 100, "k": 60}, large={"n": 1000, "k": 500}, grad=True)
def covariance(m, n, k):
    """Covariance of columns."""

    def run(x):
        x = x - x.mean(0)
        return x.T @ x / (n - 1.0)

    return run, (numbers(n, k),)


@program(test={"n": 9, "k": 4}, small={"n": 100, "k": 60}, large={"n": 1000, "k": 500}, grad=True)
def correlation(m, n, k):
    """Correlation of columns; those that hardly vary are left as they are."""
    np = m.numpy

    def run(x):
        x = x - x.mean(0)
        spread = x.std(0)
        x = x / (np.where(spread <= 0.1, 1.0, spread) * n**0.5)
        return x.T @ x

    return run, (numbers(n, k),)


@program(
    test={"n": 30, "bins": 4}, small={"n": 5000, "bins": 20}, large={"n": 500_000, "bins": 100}
)
def radial_histogram(m, n, bins):
    """Mean of values by their distance: bins found by comparisons, sums by scatter."""
    np = m.numpy

    def run(radius, values):
        edges = np.linspace(0.0, 1.0, bins + 1)
        place = np.clip(np.searchsorted(edges, radius, side="right") - 1, 0, bins - 1)
        total = np.zeros((bins,), values.dtype).at[place].add(values)
        count = np.zeros((bins,), values.dtype).at[place].add(np.ones_like(values))
        return total / np.maximum(count, 1), count

    return run, (numbers(n, low=0.001, high=0.999), numbers(n, seed=1))


@program(test={"n": 30}, small={"n": 5000}, large={"n": 500_000})
def weighted_histogram(m, n):
    """Sums of weights in sixteen bins, each by its own comparison."""
    np = m.numpy

    def run(x, w):
        low, high = np.min(x), np.max(x)
        edges = low + (high - low) * np.arange(17) / 16
        inside = [(x >= edges[i]) & (x < edges[i + 1]) for i in range(15)]
        inside.append((x >= edges[15]) & (x <= edges[16]))
        return np.stack([np.sum(np.where(mine, w, 0.0)) for mine in inside])

    return run, (numbers(n), numbers(n, seed=1))


# --- maps ----------------------------------------------------------------------------------------
@program(test={"n": 12, "turns": 10}, small={"n": 60, "turns": 40}, large={"n": 400, "turns": 100})
def escape_time(m, n, turns):
    """Mandelbrot's set: points that left are masked, for a fixed number of turns."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(x, y):
        c = x[None, :] + 1j * y[:, None]

        def turn(i, carry):
            z, count = carry
            inside = np.abs(z) < 2.0
            return np.where(inside, z * z + c, z), np.where(inside, i, count)

        z, count = loop(0, turns, turn, (np.zeros_like(c), np.zeros(c.shape, np.int32)))
        return np.abs(z) < 2.0, count

    return run, (numpy.linspace(-2.25, 0.75, n), numpy.linspace(-1.25, 1.25, n))


@program(test={"n": 12, "turns": 10}, small={"n": 60, "turns": 40}, large={"n": 400, "turns": 100})
def escape_time_real(m, n, turns):
    """Mandelbrot's set in real numbers, only the counts."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(x, y):
        cx, cy = x[None, :] + 0 * y[:, None], 0 * x[None, :] + y[:, None]

        def turn(_, carry):
            x, y, count = carry
            inside = x * x + y * y < 4.0
            new_x, new_y = x * x - y * y + cx, 2 * x * y + cy
            return np.where(inside, new_x, x), np.where(inside, new_y, y), count + inside

        return loop(0, turns, turn, (cx * 0, cy * 0, np.zeros(cx.shape, np.int32)))[2]

    return run, (numpy.linspace(-2.25, 0.75, n), numpy.linspace(-1.25, 1.25, n))


@program(test={"n": 20}, small={"n": 5000}, large={"n": 1_000_000}, grad=True)
def great_circle(m, n):
    """Distances on a sphere (haversine)."""
    np = m.numpy

    def run(a, b, c, d):
        h = np.sin((c - a) / 2) ** 2 + np.cos(a) * np.cos(c) * np.sin((d - b) / 2) ** 2
        return 2 * np.arctan2(np.sqrt(h), np.sqrt(1 - h))

    return run, tuple(numbers(n, seed=i) for i in range(4))


@program(test={"n": 8}, small={"n": 100}, large={"n": 1000}, grad=True)
def trace_of_tanh(m, n):
    """A matrix plus the sum of tanh along its diagonal, by a loop of scalars."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(a):
        total = loop(0, n, lambda i, t: t + np.tanh(a[i, i]), a[0, 0] * 0)
        return a + total

    return run, (numbers(n, n),)


@program(
    test={"n": 4, "points": 8},
    small={"n": 12, "points": 32},
    large={"n": 50, "points": 64},
    rtol=1e-2,
)
def contour_integral(m, n, points):
    """Moments of a nonlinear eigenvalue problem: inverses on a circle, summed (Beyn 2012)."""
    np = m.numpy

    def run(a0, a1, a2, y):
        angle = 2 * np.pi * (np.arange(points) + 0.5) / points
        z = 3.0 * np.exp(1j * angle)[:, None, None]
        t = a0 + z * a1 + z * z * a2
        x = np.linalg.solve(t, np.broadcast_to(y.astype(t.dtype), (points, n, 2)))
        p0, p1 = np.mean(z * x, 0), np.mean(z * z * x, 0)
        # Nothing but rounding is left of the first, where all eigenvalues are enclosed.
        return np.concatenate([p0.real, p1.real], 1)

    eye = numpy.eye(n)
    return run, (
        4 * eye + 0.3 * numbers(n, n),
        eye + 0.1 * numbers(n, n, seed=1),
        eye,
        numbers(n, 2, seed=2),
    )


@program(
    test={"n": 4, "turns": 3}, small={"n": 10, "turns": 20}, large={"n": 60, "turns": 60}, grad=True
)
def blocks_of_operators(m, n, turns):
    """Contraction of a stack of matrices over two batched axes, chained."""
    np = m.numpy

    def run(a, b):
        for _ in range(3):
            a = np.einsum("ijk,kl->ijl", a, b) / n
        return np.einsum("ijk,ijl->kl", a, a)

    return run, (numbers(turns, n, n), numbers(n, n, seed=1))


# --- bits and sampling ---------------------------------------------------------------------------
def scrambled(np, x):
    """Finalise a 32-bit hash: shifts, products and exclusive ors (MurmurHash3's constants)."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


@program(test={"n": 20}, small={"n": 20_000}, large={"n": 2_000_000})
def hashing(m, n):
    """Eight rounds of mixing 32-bit words."""
    np = m.numpy

    def run(x):
        for i in range(8):
            x = scrambled(np, x + np.uint32(0x9E3779B9 * (i + 1) & 0xFFFFFFFF))
        return x

    return run, (numpy.arange(n, dtype=numpy.uint32),)


@program(test={"n": 20}, small={"n": 2000}, large={"n": 200_000})
def checksum(m, n):
    """The cyclic redundancy check of 16 bits (CCITT), byte by byte."""
    np, lax = m.numpy, m.lax

    def run(message):
        def bit(_, c):
            return np.where(c & 1 == 1, (c >> 1) ^ 0x8408, c >> 1)

        def byte(c, b):
            return lax.fori_loop(0, 8, bit, c ^ b), None

        return lax.scan(byte, np.bitwise_or(message[0] * 0, 0xFFFF), message)[0]

    return run, (numpy.random.default_rng(0).integers(0, 256, n).astype(numpy.int32),)


@program(
    test={"n": 40, "steps": 3},
    small={"n": 1000, "steps": 16},
    large={"n": 50_000, "steps": 64},
    grad=True,
)
def asian_option(m, n, steps):
    """Price of a call on a mean: normal numbers from hashed counters (Box and Muller 1958)."""
    np = m.numpy

    def uniform(counter, dtype):
        return ((scrambled(np, counter) >> 9).astype(dtype) + 0.5) * 2.0**-23

    def run(spot, volatility):
        paths = np.arange(n * steps, dtype=np.uint32) * np.uint32(2)
        radius = np.sqrt(-2 * np.log(uniform(paths, spot.dtype)))
        normal = radius * np.cos(2 * math.pi * uniform(paths + np.uint32(1), spot.dtype))
        dt = 1.0 / steps
        moves = (0.03 - 0.5 * volatility**2) * dt + volatility * dt**0.5 * np.reshape(
            normal, (n, steps)
        )
        path = spot * np.exp(np.cumsum(moves, 1))
        return math.exp(-0.03) * np.mean(np.maximum(np.mean(path, 1) - 100.0, 0.0))

    return run, (numpy.asarray(100.0), numpy.asarray(0.2))


@program(test={"n": 30}, small={"n": 5000}, large={"n": 1_000_000}, grad=True)
def black_scholes(m, n):
    """Calls and puts, the normal distribution by a polynomial (Abramowitz and Stegun 26.2.17)."""
    np = m.numpy

    def cumulative(x):
        k = 1 / (1 + 0.2316419 * np.abs(x))
        series = k * (
            0.31938153
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = np.exp(-0.5 * x * x) * 0.3989422804014327 * series
        return np.where(x > 0, 1 - tail, tail)

    def run(spot, strike, years):
        spread = 0.3 * np.sqrt(years)
        d1 = (np.log(spot / strike) + (0.02 + 0.045) * years) / spread
        d2, later = d1 - spread, strike * np.exp(-0.02 * years)
        call = spot * cumulative(d1) - later * cumulative(d2)
        return call, call - spot + later

    return run, tuple(numbers(n, low=0.5, high=1.5, seed=i) for i in range(3))


@program(test={"n": 12, "turns": 3}, small={"n": 64, "turns": 40}, large={"n": 512, "turns": 100})
def ising(m, n, turns):
    """Metropolis sampling of spins, half a chessboard at a time, chances from hashed counters."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(spins):
        place = np.reshape(np.arange(n * n, dtype=np.uint32), (n, n))
        black = (np.arange(n)[:, None] + np.arange(n)[None, :]) % 2

        def turn(t, s):
            for colour in range(2):
                around = np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
                word = scrambled(np, place * np.uint32(977) + np.asarray(2 * t + colour, np.uint32))
                chance = (word >> 8).astype(np.float32) * 2.0**-24
                flip = (chance < np.exp(-0.8 * s * around)) & (black == colour)
                s = np.where(flip, -s, s)
            return s

        return loop(0, turns, turn, spins)

    return run, (numpy.sign(numbers(n, n)),)


@program(
    test={"n": 10, "turns": 20},
    small={"n": 100, "turns": 500},
    large={"n": 1000, "turns": 2000},
    grad=True,
)
def hidden_markov(m, n, turns):
    """Forward algorithm in logarithms: a largest element and a sum of exponentials a step."""
    np, scan = m.numpy, m.lax.scan
    states = 8

    def run(move, emit, seen):
        def step(alpha, word):
            total = alpha[:, None] + move
            top = np.max(total, 0)
            alpha = top + np.log(np.sum(np.exp(total - top), 0)) + emit[:, word]
            return alpha, None

        alpha = scan(step, emit[:, 0], seen)[0]
        top = np.max(alpha)
        return top + np.log(np.sum(np.exp(alpha - top)))

    seen = numpy.random.default_rng(0).integers(0, n, turns).astype(numpy.int32)
    return run, (numbers(states, states), numbers(states, n, seed=1), seen)


# --- rows of a few numbers -----------------------------------------------------------------------
@program(test={"lanes": 5}, small={"lanes": 300}, large={"lanes": 20_000}, numpy=False)
def adaptive_steps(m, lanes):
    """Bogacki and Shampine's pair of orders 3 and 2: oscillators by steps of their own."""
    np, loop = m.numpy, m.lax.while_loop
    end = 3.0

    def one(y, stiffness):
        def slope(y):
            return np.stack([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])

        def step(carry):
            t, h, y = carry
            a = slope(y)
            b = slope(y + h / 2 * a)
            c = slope(y + 0.75 * h * b)
            new = y + h * (2 / 9 * a + 1 / 3 * b + 4 / 9 * c)
            error = h * (-5 / 72 * a + 1 / 12 * b + 1 / 9 * c - 1 / 8 * slope(new))
            norm = np.sqrt(np.mean((error / (1e-4 + 1e-3 * np.abs(y))) ** 2)) + 1e-6
            done = np.where(norm < 1, t + h, t)
            h = np.minimum(h * np.clip(0.9 * norm ** (-1 / 3), 0.2, 5.0), end - done + 1e-6)
            return done, h, np.where(norm < 1, new, y)

        t, _, y = loop(lambda carry: carry[0] < end, step, (0 * stiffness, 0 * stiffness + 0.01, y))
        return t, y

    return m.vmap(one), (numbers(lanes, 2), numbers(lanes, low=0.5, high=3.0, seed=1))


@program(
    test={"n": 9, "k": 5}, small={"n": 2000, "k": 12}, large={"n": 100_000, "k": 12}, grad=True
)
def rows_in_short(m, n, k):
    """Logarithm of a sum of exponentials, variance, largest and norm of each of many short rows."""
    np = m.numpy

    def run(x):
        top = np.max(x, 1)
        soft = np.log(np.sum(np.exp(x - top[:, None]), 1)) + top
        spread = np.mean((x - np.mean(x, 1)[:, None]) ** 2, 1)
        length = np.sqrt(np.sum(x * x, 1))
        return soft, spread, (np.exp(-length) / (length + 0.1))[:, None] * x

    return run, (numbers(n, k),)


@program(test={"n": 7}, small={"n": 500}, large={"n": 40_000}, grad=True)
def turned_frames(m, n):
    """Stress in frames of their own, ``R S R^T`` of many 3 x 3, and what it does to a normal."""
    np = m.numpy

    def run(frames, stress, normals):
        there = frames @ stress @ np.swapaxes(frames, 1, 2)
        pull = np.einsum("nij,nj->ni", there, normals)
        return there, pull, np.sum(pull * normals, 1) / 3

    return run, (numbers(n, 3, 3), numbers(n, 3, 3, seed=1), numbers(n, 3, seed=2))
