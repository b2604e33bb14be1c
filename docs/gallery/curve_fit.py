"""A damped oscillation, fitted by Gauss and Newton.

The Jacobian comes from `jacfwd`, each step solves a linear least-squares problem, and the whole
fit is one `fori_loop`. SciPy's `curve_fit` finds the same parameters.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import curve_fit

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

START = (1.0, 0.3, 3.0, 0.0)


def model(p, t):
    """Amplitude, decay, frequency, phase."""
    return p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t + p[3])


@fa.jit
def fit(t, y):
    """Return the parameters that twelve steps find."""

    def residual(p):
        return model(p, t) - y

    def step(_, p):
        return p - jnp.linalg.lstsq(fa.jacfwd(residual)(p), residual(p))[0]

    return lax.fori_loop(0, 12, step, jnp.asarray(START))


def main():
    """Fit, compare, draw."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 8, 60, dtype=np.float32)
    clean = 2 * np.exp(-0.4 * t) * np.cos(2.9 * t + 0.3)
    y = (clean + rng.normal(0, 0.1, t.size)).astype(np.float32)
    found = np.asarray(fit(t, y))
    reference, _ = curve_fit(
        lambda t, a, b, c, d: a * np.exp(-b * t) * np.cos(c * t + d), t, y, START
    )
    np.testing.assert_allclose(found, reference, rtol=1e-2)
    figure = Figure(figsize=(6.4, 3.2))
    axes = figure.subplots()
    axes.plot(t, y, ".", label="data")
    fine = np.linspace(0, 8, 400)
    axes.plot(fine, model(found, fine), label="fit")
    axes.set_xlabel("seconds")
    axes.set_ylabel("displacement")
    axes.legend()
    return figure
