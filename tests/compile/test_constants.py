"""What programs compute of numbers alone is what kernels would, and takes no SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.scipy import special

NUMBERS = (2.5, 0.0, -0.0, -1.5, 40.0, np.inf, -np.inf, np.nan)
ONE = {
    "lgamma": lax.lgamma, "digamma": lax.digamma, "erf": lax.erf, "erfc": lax.erfc,
    "erf_inv": lax.erf_inv, "i0e": special.i0e, "i1e": special.i1e,
}  # fmt: skip
TWO = {"igamma": lax.igamma, "igammac": lax.igammac, "zeta": special.zeta}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_numbers_of_numbers_are_what_kernels_compute(name, dtype):
    """Edges too; SciPy is loaded here, and is not asked."""
    f = ONE[name] if name in ONE else with_another(TWO[name])
    with fnarray.enable_x64(True):
        for number in NUMBERS:
            known = of_number(f, number, dtype)
            given = fnarray.jit(f)(fnp.asarray(number, dtype))
            assert known.dtype == dtype
            eps = float(fnp.finfo(dtype).eps)
            np.testing.assert_allclose(np.asarray(known), np.asarray(given), rtol=4 * eps)


def with_another(f):
    """Return a function of two numbers as one of the first."""
    return lambda x: f(x, lax.full((), 1.25, x.dtype))


def of_number(f, number, dtype):
    """Return a function's value of a number that the program holds."""
    return fnarray.jit(lambda: f(fnp.asarray(number, dtype)))()


PROGRAM = """
import sys
import fnarray, fnarray.numpy as fnp
from fnarray.scipy import signal, stats
x = fnp.linspace(0.1, 0.9, 50)
fnarray.jit(lambda x: stats.gamma.logpdf(x, 2.0) + stats.t.logpdf(x, 3.0) + fnp.kaiser(50, 3.0))(x)
fnarray.jit(lambda x: signal.stft(x, nperseg=16)[2])(x)
assert not [name for name in sys.modules if name.startswith("scipy.s")]
"""


def test_numbers_bring_no_library():
    """SciPy's special functions take a tenth of a second to import, its windows 0.7."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
