"""Monte Carlo methods, filters of states, and flows on grids."""

from __future__ import annotations

import numpy

from .registry import numbers, program


def draws(*shape, seed=0):
    """Normal numbers, the same on every call."""
    return numpy.random.default_rng(seed).normal(size=shape)


@program(
    test={"paths": 5, "steps": 6},
    small={"paths": 500, "steps": 50},
    large={"paths": 20_000, "steps": 200},
    grad=True,
)
def heston(m, paths, steps):
    """Price of an option whose variance is a process too, truncated at zero (Heston, 1993)."""
    np = m.numpy
    dt, kappa, theta, sigma, rho = 1.0 / steps, 1.5, 0.04, 0.3, -0.7

    def run(start, z):
        def step(state, z):
            x, v = state
            level = np.maximum(v, 0)
            root = np.sqrt(level * dt + 1e-12)
            x = x - 0.5 * level * dt + root * z[0]
            v = v + kappa * (theta - level) * dt + sigma * root * (rho * z[0] + 0.714 * z[1])
            return (x, v), level

        (x, _), levels = m.lax.scan(step, (start, np.full_like(start, 0.04)), z)
        return np.mean(np.maximum(np.exp(x) - 1, 0)), np.mean(levels, 1)

    return run, (numpy.zeros(paths), draws(steps, 2, paths))


@program(
    test={"n": 8, "steps": 5},
    small={"n": 200, "steps": 50},
    large={"n": 5000, "steps": 200},
    rtol=0.05,
)
def particle_filter(m, n, steps):
    """Bootstrap filter of a nonlinear series, resampled systematically (Gordon et al., 1993).

    A rounding chooses another particle, and later ones with it: in single precision means agree as
    those of two filters do, in double to the last bits.
    """
    np = m.numpy

    def run(noise, seen):
        places = (np.arange(n) + 0.5) / n

        def step(x, both):
            z, y = both
            x = 0.5 * x + 8 * x / (1 + x * x) + z
            weight = np.exp(-0.125 * (y - 0.05 * x * x) ** 2)
            weight = weight / np.sum(weight)
            mean = np.sum(weight * np.abs(x))
            chosen = np.searchsorted(np.cumsum(weight), places)
            return x[np.minimum(chosen, n - 1)], mean

        return m.lax.scan(step, noise[0], (noise, seen))[1]

    return run, (draws(steps, n), numpy.abs(draws(steps, seed=1)))


@program(test={"n": 3, "steps": 4}, small={"n": 4, "steps": 200}, large={"n": 12, "steps": 1000})
def kalman_filter(m, n, steps):
    """Means, covariances and the likelihood of a linear series with one observation (1960)."""
    np = m.numpy

    def run(a, h, q, seen):
        def step(state, y):
            x, p = state
            x, p = a @ x, a @ p @ a.T + q
            ph = p @ h
            s = h @ ph + 0.5
            gain = ph / s
            miss = y - h @ x
            x, p = x + gain * miss, p - np.outer(gain, ph)
            return (x, p), (x, -0.5 * (np.log(s) + miss * miss / s))

        (_, p), (means, terms) = m.lax.scan(step, (np.zeros_like(h), np.eye(n)), seen)
        return means, p, np.sum(terms)

    turn = 0.9 * numpy.linalg.qr(numbers(n, n))[0]
    return run, (turn, numbers(n, seed=1), 0.1 * numpy.eye(n), draws(steps, seed=2))


@program(
    test={"n": 4, "steps": 5},
    small={"n": 64, "steps": 200},
    large={"n": 2000, "steps": 500},
    rtol=2e-2,
)
def metropolis(m, n, steps):
    """Chains of Metropolis' algorithm on a crooked density of two dimensions."""
    np = m.numpy

    def run(x, z, u):
        def density(x):
            return -0.5 * (x[0] ** 2 / 4 + (x[1] - 0.5 * x[0] ** 2) ** 2)

        def step(state, both):
            x, here = state
            z, u = both
            other = x + 0.8 * z
            there = density(other)
            accept = np.log(u) < there - here
            x, here = np.where(accept, other, x), np.where(accept, there, here)
            return (x, here), (np.mean(x[0]), np.mean(accept.astype(x.dtype)))

        return m.lax.scan(step, (x, density(x)), (z, u))[1]

    uniform = (numbers(steps, n, seed=2) + 1) / 2
    return run, (draws(2, n), draws(steps, 2, n, seed=1), uniform)


@program(
    test={"n": 6, "turns": 3},
    small={"n": 40, "turns": 40},
    large={"n": 256, "turns": 60},
    grad=True,
)
def shallow_water(m, n, turns):
    """Rotating shallow water on a periodic staggered grid, forward and backward (Arakawa's C)."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(h, u, v):
        def turn(_, state):
            h, u, v = state
            flux_x = u * 0.5 * (h + np.roll(h, -1, 0))
            flux_y = v * 0.5 * (h + np.roll(h, -1, 1))
            h = h - 0.02 * (flux_x - np.roll(flux_x, 1, 0) + flux_y - np.roll(flux_y, 1, 1))
            mean_v = 0.25 * (v + np.roll(v, 1, 1) + np.roll(v + np.roll(v, 1, 1), -1, 0))
            u = u + 0.02 * (0.5 * mean_v - (np.roll(h, -1, 0) - h)) - 1e-3 * u * np.abs(u)
            mean_u = 0.25 * (u + np.roll(u, 1, 0) + np.roll(u + np.roll(u, 1, 0), -1, 1))
            v = v - 0.02 * (0.5 * mean_u + (np.roll(h, -1, 1) - h)) - 1e-3 * v * np.abs(v)
            return h, u, v

        return loop(0, turns, turn, (h, u, v))

    return run, (1 + 0.1 * numbers(n, n), 0.1 * numbers(n, n, seed=1), 0.1 * numbers(n, n, seed=2))


D2Q9 = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
SHARES = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)


@program(test={"n": 5, "turns": 3}, small={"n": 32, "turns": 30}, large={"n": 200, "turns": 40})
def lattice_boltzmann(m, n, turns):
    """Flow past obstacles by nine populations that meet and move on (Qian et al., 1992)."""
    np, loop = m.numpy, m.lax.fori_loop

    def run(f, wall):
        def turn(_, f):
            rho = np.sum(f, 0)
            u = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / rho
            v = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / rho
            moved = []
            for k, ((cx, cy), share) in enumerate(zip(D2Q9, SHARES, strict=True)):
                along = cx * u + cy * v
                still = share * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u + v * v))
                moved.append(np.where(wall > 0.9, f[k], f[k] + 0.6 * (still - f[k])))
            back = (0, 3, 4, 1, 2, 7, 8, 5, 6)
            turned = [np.where(wall > 0.9, moved[back[k]], moved[k]) for k in range(9)]
            return np.stack([np.roll(g, c, (0, 1)) for g, c in zip(turned, D2Q9, strict=True)])

        return loop(0, turns, turn, f)

    start = numpy.array(SHARES)[:, None, None] * (1 + 0.05 * numbers(9, n, n))
    return run, (start, numbers(n, n, seed=3))
