"""SciPy's functions over arrays, as ``jax.scipy`` has them."""

from . import fft as fft
from . import linalg as linalg
from . import special as special
from . import stats as stats

__all__ = ["fft", "linalg", "special", "stats"]
