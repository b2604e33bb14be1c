"""Derivatives of the incomplete gamma function against differences of SciPy's function."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from fnarray_kernels import gammagrad

POINTS = [(a, x) for a in (0.05, 0.7, 1.0, 3.5, 20.0, 300.0) for x in (0.01, 0.5, 2.0, 19.0, 290.0)]
_grad_a = njit(lambda a, x: gammagrad.igamma_grad_a(a, x))
_sample_grad = njit(lambda a, x: gammagrad.random_gamma_grad(a, x))


@pytest.mark.parametrize(("a", "x"), POINTS)
def test_matches_differences(a, x):
    """Both agree with central differences of P; compiled and plain readings agree."""
    h = 1e-5 * a
    slope = (special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h)
    assert _grad_a(a, x) == pytest.approx(slope, rel=1e-6, abs=1e-10)
    assert gammagrad.igamma_grad_a(a, x) == pytest.approx(_grad_a(a, x), rel=1e-10, abs=1e-300)
    density = stats.gamma.pdf(x, a)
    if density > 1e-6:
        assert _sample_grad(a, x) == pytest.approx(-slope / density, rel=1e-4)


def test_edges():
    """Zero at x = 0; NaN outside the domain."""
    assert _grad_a(2.0, 0.0) == _sample_grad(2.0, 0.0) == 0
    assert all(np.isnan(_grad_a(a, x)) for a, x in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0)))
