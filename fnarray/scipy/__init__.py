"""SciPy's functions over arrays, as ``jax.scipy`` has them."""

from . import linalg as linalg
from . import special as special
from . import stats as stats

__all__ = ["linalg", "special", "stats"]
