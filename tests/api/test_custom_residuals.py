"""What a forward rule hands to the way back."""

from __future__ import annotations

import numpy as np

import fnarray
from fnarray import lax


def test_numbers_among_residuals():
    """Python's numbers reach the way back as they are, under every transform: it may branch."""

    def bwd(residuals, ct):
        double, times, x = residuals
        return (ct * (2.0 if double else 1.0) * times * lax.cos(x),)

    @fnarray.custom_vjp
    def f(x):
        return lax.sin(x)

    f.defvjp(lambda x: (lax.sin(x), (True, 3, x)), bwd)
    x, want = np.float32(0.5), 6 * np.cos(np.float32(0.5))

    def scanned(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]

    for g in (f, fnarray.jit(f), fnarray.checkpoint(f), scanned):
        np.testing.assert_allclose(fnarray.grad(g)(x), want, rtol=1e-6)
        np.testing.assert_allclose(fnarray.jit(fnarray.grad(g))(x), want, rtol=1e-6)
    np.testing.assert_allclose(fnarray.vmap(fnarray.grad(f))(np.array([x, x])), want, rtol=1e-6)
