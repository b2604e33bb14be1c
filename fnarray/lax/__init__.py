"""Operations as ``jax.lax`` names them: strict about dtypes and ranks.

Every primitive is here as ``<name>_p`` too.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from ..ops._rules import registry

# TODO(lead): becomes a list of star imports when all families have landed.
for _family in (
    "elementwise", "parts", "bitwise", "convert", "special", "shape", "slicing", "dynamic", "fill", "index",
    "gather", "scatter", "reduce", "window", "cumulative", "contract", "conv", "sort",
):
    if find_spec(f"fnarray.ops.{_family}"):
        try:
            _module = import_module(f"fnarray.ops.{_family}")
        except ImportError as _error:
            import sys
            print(f"lax: family {_family} not importable yet: {_error}", file=sys.stderr)
            continue
        globals().update({n: getattr(_module, n) for n in _module.__all__})

globals().update({f"{name.replace('-', '_')}_p": prim for name, prim in registry.items()})

from .. import control as _control  # noqa: E402

globals().update({n: getattr(_control, n) for n in _control.__all__})
globals().update({f"{name.replace('-', '_')}_p": prim for name, prim in registry.items()})
