"""Functions of arrays as ``jax.numpy`` names them: they promote dtypes and broadcast.

Arrays get their operators and methods from here (see ``core.hooks``).
"""

from __future__ import annotations

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

from ..core.hooks import install_array_methods as _install_array_methods
from ._methods import array_methods as _array_methods

# TODO(lead): becomes a list of star imports when all modules have landed.
for _name in (
    "_dtypes", "_ufunc", "_ufuncs", "_math", "_select", "_creation", "_patterns", "_reductions", "_cumulative", "_quantiles", "_shape",
    "_join", "_sorting", "_products", "_einsum", "_stats", "_poly", "_windows", "_sets", "_search",
    "_pad", "_io", "_lists",
):
    if _find_spec(f"fnarray.numpy.{_name}"):
        try:
            _module = _import_module(f"fnarray.numpy.{_name}")
        except ImportError as _error:
            import sys as _sys
            print(f"numpy: {_name} not importable yet: {_error}", file=_sys.stderr)
            continue
        globals().update({_n: getattr(_module, _n) for _n in _module.__all__})


class _Missing(dict):
    def __missing__(self, name):
        def absent(*args, **kwargs):
            raise NotImplementedError(name)
        return absent


_install_array_methods(_array_methods(_Missing(globals())))
