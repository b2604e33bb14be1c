"""Hares and lynxes: the four rates of the Lotka-Volterra equations, fitted through their solution.

The solver is a ``scan`` of Runge-Kutta steps; ``jacfwd`` goes through it for Gauss-Newton steps
(four parameters, many residuals), and ``grad`` gives the gradient that must vanish at the end. Both
are one native loop. SciPy, with differences and an adaptive solver, finds the same rates.
Data: pelts (thousands) that the Hudson's Bay Company bought, 1900 to 1920 (Howard 2009).
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

HARES = (
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4,
    27.1, 40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
)  # fmt: skip
LYNXES = (
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1,
    7.4, 8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
)  # fmt: skip
STEPS_A_YEAR = 40
START = (0.5, 0.025, 0.8, 0.025, 30.0, 4.0)


def velocity(population, rates):
    """Growth of prey and predators: what Lotka (1925) and Volterra (1926) wrote."""
    hares, lynxes = population
    birth, hunt, death, feed = rates
    return hares * (birth - hunt * lynxes), lynxes * (feed * hares - death)


def runge_kutta(population, rates, dt):
    """Advance by ``dt`` with the classical method of order four."""

    def ahead(slope, share):
        moved = (p + share * dt * s for p, s in zip(population, slope, strict=True))
        return velocity(tuple(moved), rates)

    k1 = velocity(population, rates)
    k2 = ahead(k1, 0.5)
    k3 = ahead(k2, 0.5)
    k4 = ahead(k3, 1.0)
    slopes = zip(population, k1, k2, k3, k4, strict=True)
    return tuple(p + dt / 6 * (a + 2 * b + 2 * c + d) for p, a, b, c, d in slopes)


def solve(params):
    """Populations (21, 2) at the start of each year from 1900 to 1920."""
    rates, start = params[:4], (params[4], params[5])

    def year(population, _):
        def step(_, population):
            return runge_kutta(population, rates, 1 / STEPS_A_YEAR)

        return lax.fori_loop(0, STEPS_A_YEAR, step, population), jnp.stack(population)

    return lax.scan(year, start, None, length=len(HARES))[1]


def residuals(log_params):
    """Differences of the logarithms of populations to those counted."""
    counted = jnp.array((HARES, LYNXES)).T
    return (jnp.log(solve(jnp.exp(log_params))) - jnp.log(counted)).ravel()


def misfit(log_params):
    """Half the sum of squared residuals."""
    return 0.5 * jnp.sum(residuals(log_params) ** 2)


@fa.jit
def levenberg(log_params, damping):
    """One damped Gauss-Newton step: new parameters with their misfit (Marquardt 1963)."""
    r, jacobian = residuals(log_params), fa.jacfwd(residuals)(log_params)
    normal = jacobian.T @ jacobian
    normal = normal + damping * jnp.diag(jnp.diag(normal))
    new = log_params - jnp.linalg.solve(normal, jacobian.T @ r)
    return new, misfit(new)


def fit(log_params, tolerance=1e-6, most=100):
    """Go on until the gradient of the misfit is below ``tolerance``; also return the steps."""
    value_and_slope = fa.jit(fa.value_and_grad(misfit))
    damping = 1e-2
    for steps in range(most):
        value, slope = value_and_slope(log_params)
        if jnp.linalg.norm(slope) < tolerance:
            return log_params, steps
        new, below = levenberg(log_params, damping)
        accepted = bool(below <= value)
        log_params, damping = (new, damping / 10) if accepted else (log_params, damping * 10)
    raise RuntimeError(f"no convergence in {most} steps: misfit {value}, gradient {slope}")


def fit_in_scipy(start):
    """Find the same by differences through an adaptive solver."""

    def residuals(log_params):
        params = np.exp(log_params)
        path = solve_ivp(
            lambda t, p: velocity(p, params[:4]),
            (0, len(HARES) - 1),
            params[4:],
            t_eval=range(len(HARES)),
            rtol=1e-9,
            atol=1e-9,
        )
        return (np.log(path.y) - np.log([HARES, LYNXES])).ravel()

    return least_squares(residuals, np.log(start), xtol=1e-10, gtol=1e-10).x


def main():
    """Fit here and in SciPy."""
    with fa.enable_x64(True):
        found, steps = fit(jnp.log(jnp.array(START)))
        reference = fit_in_scipy(START)
        print(f"{steps} steps, misfit {float(misfit(found)):.6f}")
        for name, params in (("fnarray", found), ("SciPy", reference)):
            print(f"  {name:8}", " ".join(f"{p:9.5f}" for p in np.exp(np.asarray(params))))
    assert np.allclose(np.asarray(found), reference, atol=1e-4)


if __name__ == "__main__":
    main()
