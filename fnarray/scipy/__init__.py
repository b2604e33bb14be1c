"""SciPy's functions over arrays, as ``jax.scipy`` has them."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.lazy import surface as _surface

if _TYPE_CHECKING:
    from . import cluster as cluster
    from . import fft as fft
    from . import integrate as integrate
    from . import interpolate as interpolate
    from . import linalg as linalg
    from . import ndimage as ndimage
    from . import optimize as optimize
    from . import signal as signal
    from . import sparse as sparse
    from . import spatial as spatial
    from . import special as special
    from . import stats as stats

__getattr__, __dir__, __all__ = _surface(  # pyright: ignore[reportUnsupportedDunderAll]
    __name__,
    {},
    "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats",
)
