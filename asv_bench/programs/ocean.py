"""Parts of an ocean model: equation of state, isoneutral mixing, turbulent kinetic energy.

Fields have axes (x, y, z), two rows of halo on both sides in x and y, and the surface last in z;
those that are stepped in time have a fourth axis of time levels.
"""

from __future__ import annotations

from typing import Any

import numpy

from .registry import numbers, program

SIZES = {
    "test": {"nx": 9, "ny": 8, "nz": 5},
    "small": {"nx": 51, "ny": 51, "nz": 7},
    "large": {"nx": 120, "ny": 120, "nz": 30},
}


def tridiagonal(np: Any, lax: Any, below: Any, diagonal: Any, above: Any, right: Any) -> Any:
    """Solve along the last axis by elimination and back substitution (Thomas 1949)."""

    def eliminate(carry, row):
        a, b, c, d = row
        c_before, d_before = carry
        pivot = 1 / (b - a * c_before)
        kept = (c * pivot, (d - a * d_before) * pivot)
        return kept, kept

    def substitute(x_after, row):
        c, d = row
        x = d - c * x_after
        return x, x

    rows = tuple(np.moveaxis(x, -1, 0) for x in (below, diagonal, above, right))
    zero = np.zeros_like(rows[3][0])
    _, kept = lax.scan(eliminate, (zero, zero), rows)
    _, xs = lax.scan(substitute, zero, kept, reverse=True)
    return np.moveaxis(xs, 0, -1)


# --- equation of state ---------------------------------------------------------------------------
# McDougall and Barker (2011), Getting started with TEOS-10, appendix K: 48 coefficients of density
# in conservative temperature (degrees), absolute salinity (g/kg) and pressure (dbar), a ratio of
# two polynomials, each of which is kept by powers of pressure: terms are (temperature row), with
# rows for S, S * sqrt(S) and S * S.
NUMERATOR = (
    (
        (9.998420897506056e2, 2.839940833161907e0, -3.147759265588511e-2, 1.181805545074306e-3),
        (-6.698001071123802e0, -2.986498947203215e-2, 2.327859407479162e-4),
        (-3.988822378968490e-2, 5.095422573880500e-4, -1.426984671633621e-5, 1.645039373682922e-7),
        (),
    ),
    (
        (-2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6),
        (-1.806789763745328e-4, 6.876837219536232e-7),
        (),
        (),
    ),
    (
        (-3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11),
        (1.550932729220080e-10,),
        (),
        (),
    ),
)
DENOMINATOR = (
    (
        (
            1.0,
            2.775927747785646e-3,
            -2.349607444135925e-5,
            1.119513357486743e-6,
            6.743689325042773e-10,
        ),
        (
            -7.521448093615448e-3,
            -2.764306979894411e-5,
            1.262937315098546e-7,
            9.527875081696435e-10,
            -1.811147201949891e-11,
        ),
        (
            -3.303308871386421e-5,
            3.801564588876298e-7,
            -7.672876869259043e-9,
            -4.634182341116144e-11,
            2.681097235569143e-12,
        ),
        (5.419326551148740e-6,),
    ),
    (
        (
            -2.742185394906099e-5,
            -3.212746477974189e-7,
            3.191413910561627e-9,
            -1.931012931541776e-12,
        ),
        (-1.105097577149576e-7, 6.211426728363857e-10),
        (),
        (),
    ),
    (
        (-1.119011592875110e-10, -1.941660213148725e-11, -1.864826425365600e-14),
        (1.119522344879478e-14,),
        (),
        (),
    ),
    ((-1.200507748551599e-15, 6.057902487546866e-17), (), (), ()),
)


def horner(coefficients, x):
    """Evaluate a polynomial and its derivative, lowest power first."""
    value, slope = coefficients[-1], 0.0
    for c in coefficients[-2::-1]:
        slope = slope * x + value
        value = value * x + c
    return value, slope


def rational_part(powers, s, root, t, p):
    """Evaluate one of the two polynomials, and its derivatives in S, T and p."""
    rows = []
    for constant, linear, three_halves, square in powers:
        value, slope_t = horner(constant, t)
        slope_s = 0.0
        for row, factor, slope in (
            (linear, s, 1.0),
            (three_halves, s * root, 1.5 * root),
            (square, s * s, 2 * s),
        ):
            if row:
                v, dt = horner(row, t)
                value, slope_t = value + factor * v, slope_t + factor * dt
                slope_s = slope_s + slope * v
        rows.append((value, slope_s, slope_t))
    value, slope_p = horner([v for v, _, _ in rows], p)
    return (
        value,
        horner([ds for _, ds, _ in rows], p)[0],
        horner([dt for *_, dt in rows], p)[0],
        slope_p,
    )


def density(np, s, t, p):
    """Density of sea water in kg/m3, and its derivatives in S, T and p."""
    root = np.sqrt(s)
    above, above_s, above_t, above_p = rational_part(NUMERATOR, s, root, t, p)
    below, below_s, below_t, below_p = rational_part(DENOMINATOR, s, root, t, p)
    rho = above / below
    return (
        rho,
        (above_s - rho * below_s) / below,
        (above_t - rho * below_t) / below,
        (above_p - rho * below_p) / below,
    )


@program(**SIZES, grad=True)
def equation_of_state(m, nx, ny, nz):
    """Density, haline contraction, thermal expansion and speed of sound: 300 operations."""
    np = m.numpy

    def run(s, t, p):
        rho, rho_s, rho_t, rho_p = density(np, s, t, p)
        return rho, rho_s / rho, -rho_t / rho, 100 / np.sqrt(rho_p)

    shape = (nx, ny, nz)
    return run, (
        numbers(*shape, low=33, high=37),
        numbers(*shape, low=-1, high=25, seed=1),
        numpy.broadcast_to(numpy.linspace(4000.0, 0.0, nz), shape).copy(),
    )


# --- isoneutral mixing ---------------------------------------------------------------------------
# Griffies, Gnanadesikan, Pacanowski, Larichev, Dukowicz and Smith (1998), Isoneutral diffusion in a
# z-coordinate ocean model: four triads of gradients at each face, so that no density is mixed. The
# taper of steep slopes by tanh is that of Danabasoglu and McWilliams (1995).
K_ISO, STEEP, TAPER_WIDTH = 1000.0, 4e-3, 1e-3


def between(x, axis):
    """Differences of neighbours along an axis."""
    here = [slice(None)] * x.ndim
    there = list(here)
    here[axis], there[axis] = slice(None, -1), slice(1, None)
    return x[tuple(there)] - x[tuple(here)]


def slope_and_taper(np, across, upward):
    """Slope of a neutral surface from two gradients of density, and how much of it to keep."""
    slope = -across / (np.minimum(upward, 0.0) - 1e-20)
    return slope, 0.5 * (1 + np.tanh((STEEP - np.abs(slope)) / TAPER_WIDTH))


def levels(kr):
    """Cells that have an interface below (0) or above (1), and those interfaces."""
    return (slice(1, None), slice(None, -1)) if kr == 0 else (slice(None, -1), slice(None, -1))


def side_triads(axis, n):
    """Yield the number of each triad of the faces in x or y, and where its points lie."""
    for kr in range(2):
        cells, faces = levels(kr)
        for ip in range(2):
            at = [slice(1, -2) if a == axis else slice(2, -2) for a in range(2)]
            beside = list(at)
            beside[axis] = slice(1 + ip, n - 2 + ip)
            yield (ip, kr), (*at, cells), (*beside, cells), (*beside, faces)


def upper_triads(axis, shape):
    """Yield the number of each triad of the faces in z, and where its points lie."""
    for kr in range(2):
        cells = slice(kr, shape[2] - 1 + kr)
        for ip in range(2):
            here = (slice(2, -2), slice(2, -2), cells)
            beside = list(here)
            beside[axis] = slice(1 + ip, shape[axis] - 3 + ip)
            yield (ip, kr), (*here[:2], slice(None, -1)), here, tuple(beside)


@program(**SIZES, grad=True)
def isoneutral_mixing(m, nx, ny, nz):
    """Diffusion of temperature and salinity along neutral surfaces, about 600 operations."""
    np, lax = m.numpy, m.lax

    def side_faces(axis, gradients, rho_s, rho_t, mask):
        """Triads of the faces in x or y: their tapered slopes, and the coefficient K11 or K22."""
        (sx, sz), (tx, tz) = gradients
        own = np.zeros_like(mask)
        triads = np.zeros((*mask.shape, 2, 2), mask.dtype)
        for triad, at, beside, above in side_triads(axis, mask.shape[axis]):
            across = rho_t[beside] * tx[at] + rho_s[beside] * sx[at]
            upward = rho_t[beside] * tz[above] + rho_s[beside] * sz[above]
            slope, taper = slope_and_taper(np, across, upward)
            inside = mask[at] * mask[beside]
            own = own.at[at].add(0.25 * K_ISO * taper * inside)
            triads = triads.at[(*at, *triad)].set(0.25 * K_ISO * taper * slope * inside)
        return own, triads

    def upper_faces(axis, gradients, rho_s, rho_t, mask):
        """Triads of the faces in z: their tapered slopes, and their part of K33."""
        (sx, sz), (tx, tz) = gradients
        own = np.zeros_like(mask)
        triads = np.zeros((*mask.shape, 2, 2), mask.dtype)
        for triad, at, here, beside in upper_triads(axis, mask.shape):
            across = rho_t[here] * tx[beside] + rho_s[here] * sx[beside]
            upward = rho_t[here] * tz[at] + rho_s[here] * sz[at]
            slope, taper = slope_and_taper(np, across, upward)
            inside = mask[at] * mask[here]
            own = own.at[at].add(0.25 * K_ISO * taper * slope * slope * inside)
            triads = triads.at[(*at, *triad)].set(0.25 * K_ISO * taper * slope * inside)
        return own, triads

    def side_flux(axis, own, triads, gradient, upward):
        """Flux of a tracer through the faces in x or y."""
        flux = own * gradient
        for triad, at, _, above in side_triads(axis, own.shape[axis]):
            flux = flux.at[at].add(triads[(*at, *triad)] * upward[above])
        return flux

    def upper_flux(flux, axis, triads, gradient):
        """Add the flux of a tracer through the faces in z that gradients in x or y cause."""
        for triad, at, _, beside in upper_triads(axis, flux.shape):
            flux = flux.at[at].add(triads[(*at, *triad)] * gradient[beside])
        return flux

    def run(temperature, salinity, pressure, mask, dx, dy, dz, dt):
        fields = salinity[..., 0], temperature[..., 0]
        _, rho_s, rho_t, _ = density(np, fields[0], fields[1], pressure)

        def gradient(x, axis):
            full = np.zeros_like(x)
            step = (dx[:-1, None, None], dy[None, :-1, None], dz[None, None, :-1])[axis]
            here = [slice(None)] * 3
            here[axis] = slice(None, -1)
            there = list(here)
            there[axis] = slice(1, None)
            wet = mask[tuple(here)] * mask[tuple(there)]
            return full.at[tuple(here)].set(between(x, axis) / step * wet)

        slopes = [[gradient(x, axis) for axis in range(3)] for x in fields]
        pairs = [[(s[axis], s[2]) for s in slopes] for axis in range(2)]
        sides = [side_faces(a, pairs[a], rho_s, rho_t, mask) for a in range(2)]
        uppers = [upper_faces(a, pairs[a], rho_s, rho_t, mask) for a in range(2)]
        k33 = uppers[0][0] + uppers[1][0]

        results = []
        for levels_of, (x_x, x_y, x_z) in zip((salinity, temperature), slopes, strict=True):
            east = side_flux(0, *sides[0], x_x, x_z)
            north = side_flux(1, *sides[1], x_y, x_z)
            top = upper_flux(np.zeros_like(mask), 0, uppers[0][1], x_x)
            top = upper_flux(top, 1, uppers[1][1], x_y)
            change = np.zeros_like(mask)
            change = change.at[2:-2, 2:-2, :].add(
                (east[2:-2, 2:-2] - east[1:-3, 2:-2]) / dx[2:-2, None, None]
                + (north[2:-2, 2:-2] - north[2:-2, 1:-3]) / dy[None, 2:-2, None]
            )
            change = change.at[:, :, 1:].add((top[:, :, 1:] - top[:, :, :-1]) / dz[1:])
            change = change.at[:, :, 0].add(top[:, :, 0] / dz[0])
            stepped = levels_of.at[2:-2, 2:-2, :, 1].add(dt * (mask * change)[2:-2, 2:-2])

            # K33 is large where slopes are: its flux is implicit.
            rate = dt * k33 / dz
            below = np.zeros_like(mask).at[:, :, 1:].set(-rate[:, :, :-1] / dz[1:])
            above = np.zeros_like(mask).at[:, :, :-1].set(-rate[:, :, :-1] / dz[:-1])
            solved = tridiagonal(np, lax, below, 1 - below - above, above, stepped[..., 1])
            results.append(levels_of.at[1:-1, 2:-2, :, 1].set(solved[1:-1, 2:-2]))
        return results[1], results[0], k33

    z = numpy.linspace(0, 1, nz)
    shape = (nx, ny, nz, 3)
    mask = (numbers(nx, ny, nz, seed=3) > -0.8).astype(float)
    return run, (
        5 + 15 * z[:, None] + 0.5 * numbers(*shape),
        34.5 + 0.5 * z[:, None] + 0.05 * numbers(*shape, seed=1),
        numpy.broadcast_to(4000 * (1 - z), (nx, ny, nz)).copy(),
        mask,
        numpy.linspace(5e4, 6e4, nx),
        numpy.linspace(5e4, 5.5e4, ny),
        numpy.linspace(300.0, 50.0, nz),
        numpy.asarray(3600.0),
    )


# --- turbulent kinetic energy --------------------------------------------------------------------
# Gaspar, Gregoris and Lefevre (1990); lengths are bounded as in Blanke and Delecluse (1993).
C_K, C_EPS, ALPHA, KAPPA_MAX = 0.1, 0.7, 30.0, 100.0


def superbee(np, x, speed, rate, axis):
    """Flux of ``x`` by a flow through faces: upwind, corrected as far as Roe's limiter allows."""
    at = lambda a, b: tuple(slice(a, b) if i == axis else slice(2, -2) for i in range(2))  # noqa: E731
    u = speed[at(1, -2)]
    courant = np.abs(u) * rate
    step = x[at(2, -1)] - x[at(1, -2)]
    before, after = x[at(1, -2)] - x[at(None, -3)], x[at(3, None)] - x[at(2, -1)]
    safe = np.where(np.abs(step) < 1e-20, 1e-20, step)
    ratio = np.where(u > 0, before, after) / safe
    limit = np.maximum(0.0, np.maximum(np.minimum(1.0, 2 * ratio), np.minimum(2.0, ratio)))
    middle = 0.5 * (x[at(2, -1)] + x[at(1, -2)])
    return u * middle - np.abs(u) * (1 - limit + courant * limit) * 0.5 * step


@program(**SIZES, grad=True)
def turbulent_kinetic_energy(m, nx, ny, nz):
    """One step: mixing lengths, shear, dissipation, implicit diffusion, advection."""
    np, lax = m.numpy, m.lax

    def mixing_length(length, dz):
        """Let lengths grow away from the bottom and the surface no faster than distance."""

        def upward(k, x):
            return x.at[:, :, k].set(np.minimum(x[:, :, k], x[:, :, k - 1] + dz[k]))

        def downward(i, x):
            k = nz - 2 - i
            return x.at[:, :, k].set(np.minimum(x[:, :, k], x[:, :, k + 1] + dz[k + 1]))

        length = lax.fori_loop(1, nz, upward, length)
        length = length.at[:, :, -1].set(np.minimum(length[:, :, -1], 0.4 * dz[-1]))
        return lax.fori_loop(0, nz - 1, downward, length)

    def run(tke, shear, stability, u, v, wind, mask, dz, dx, dt):
        tau, taup1 = 0, 1
        old = tke[:, :, :, tau]
        root = np.sqrt(np.maximum(0.0, old))
        length = np.sqrt(2.0) * root / np.sqrt(np.maximum(1e-12, stability))
        length = np.maximum(1e-8, mixing_length(length, dz))
        kappa_m = np.minimum(KAPPA_MAX, C_K * length * root)
        richardson = np.maximum(0.0, stability) / np.maximum(shear, 1e-12)
        prandtl = np.maximum(1.0, np.minimum(10.0, 6.6 * richardson))
        kappa_h = np.maximum(1e-5, kappa_m / prandtl)
        forcing = kappa_m * shear - kappa_h * np.maximum(0.0, stability)
        forcing = forcing.at[:, :, -1].add(wind / (0.5 * dz[-1]))

        kappa_e = ALPHA * kappa_m
        flow = np.zeros_like(old)
        flow = flow.at[:, :, :-1].set(dt / dz[1:] * 0.5 * (kappa_e[:, :, :-1] + kappa_e[:, :, 1:]))
        below = np.zeros_like(old).at[:, :, 1:].set(-flow[:, :, :-1] / dz[1:])
        above = np.zeros_like(old).at[:, :, :-1].set(-flow[:, :, :-1] / dz[:-1])
        diagonal = 1 - below - above + dt * C_EPS * root / length
        solved = tridiagonal(np, lax, below, diagonal, above, old + dt * forcing)
        inner = (slice(2, -2), slice(2, -2))
        tke = tke.at[2:-2, 2:-2, :, taup1].set(solved[inner] * mask[inner])

        # Where the surface lost energy below zero it is given back, and counted.
        surface = tke[:, :, -1, taup1]
        lost = np.where(surface < 0, -surface * 0.5 * dz[-1], 0.0)
        tke = tke.at[:, :, -1, taup1].set(np.maximum(0.0, surface))

        east, north = (
            superbee(np, old, c, dt / dx, axis) for axis, c in enumerate((u * mask, v * mask))
        )
        change = -(east[1:] - east[:-1]) / dx - (north[:, 1:] - north[:, :-1]) / dx
        tke = tke.at[2:-2, 2:-2, :, taup1].add(dt * change * mask[inner])
        return tke, kappa_m, kappa_h, lost

    shape = (nx, ny, nz)
    return run, (
        1e-3 * numbers(*shape, 3, low=0.1),
        1e-4 * numbers(*shape, low=0.0, seed=1),
        1e-5 * numbers(*shape, low=-0.2, seed=2),
        0.1 * numbers(*shape, seed=3),
        0.1 * numbers(*shape, seed=4),
        1e-4 * numbers(nx, ny, low=0.0, seed=5),
        (numbers(*shape, seed=6) > -0.8).astype(float),
        numpy.linspace(30.0, 10.0, nz),
        numpy.asarray(1e4),
        numpy.asarray(600.0),
    )
