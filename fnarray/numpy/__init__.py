"""Functions of arrays as ``jax.numpy`` names them: they promote dtypes and broadcast.

Arrays get their operators and methods from here (see ``core.hooks``).
"""

from __future__ import annotations

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

from ..core.hooks import install_array_methods as _install_array_methods

# ruff: noqa: F403 - the modules say in __all__ what is public
from ._creation import *
from ._cumulative import *
from ._dtypes import *
from ._einsum import *
from ._floating import *
from ._join import *
from ._lists import *
from ._math import *
from ._methods import array_methods as _array_methods
from ._nan_reductions import *
from ._pad import *
from ._patterns import *
from ._products import *
from ._quantiles import *
from ._ranges import *
from ._reductions import *
from ._search import *
from ._select import *
from ._sets import *
from ._shape import *
from ._sorting import *
from ._stats import *
from ._ufunc import *
from ._ufuncs import *
from ._windows import *

# TODO(lead): star imports, like those above, once both are written.
for _name in ("_poly", "_io"):
    if _find_spec(f"fnarray.numpy.{_name}"):
        _module = _import_module(f"fnarray.numpy.{_name}")
        globals().update({_n: getattr(_module, _n) for _n in _module.__all__})

_install_array_methods(_array_methods(globals()))
