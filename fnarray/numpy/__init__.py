"""Functions of arrays as ``jax.numpy`` names them: they promote dtypes and broadcast.

Arrays get their operators and methods from here (see ``core.array``).
"""

from __future__ import annotations

from ..core.array import install_methods as _install_methods
from . import fft as fft
from . import linalg as linalg
from ._complex_parts import *

# ruff: noqa: F403 - the modules say in __all__ what is public
from ._creation import *
from ._cumulative import *
from ._dtypes import *
from ._einsum import *
from ._floating import *
from ._io import *
from ._join import *
from ._lists import *
from ._math import *
from ._methods import array_methods as _array_methods
from ._nan_reductions import *
from ._pad import *
from ._patterns import *
from ._poly import *
from ._products import *
from ._quantiles import *
from ._ranges import *
from ._reductions import *
from ._repeat import *
from ._roots import *
from ._search import *
from ._select import *
from ._sets import *
from ._shape import *
from ._sorting import *
from ._stats import *
from ._ufunc import *
from ._ufuncs import *
from ._vectorize import *
from ._windows import *

_install_methods(_array_methods(globals()))
