"""Numbers that a program computes of numbers alone, by the text that kernels would compute.

SciPy's import takes 0.11 s of the processor, a gamma function of a number as text 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..core.dtypes import is_half

#: What texts of maps name.
_HOMES = {
    "fk": "fnarray_kernels", "sc": "fnarray_kernels.scalar", "vm": "fnarray_kernels.vmath",
    "np": "numpy", "math": "math",
}  # fmt: skip
_FAMILY = re.compile(r"\bfk\.(\w+)\.")


def by_text(template: str, ins: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Evaluate the text of a map on numbers."""
    numbers = {f"x{k}": _register(x) for k, x in enumerate(ins)}
    names = {short: import_module(home) for short, home in _HOMES.items()}
    for family in _FAMILY.findall(template):
        import_module(f"fnarray_kernels.{family}")
    return np.asarray(eval(template.format(*numbers), {**names, **numbers}), dtype)


def _register(x: np.ndarray) -> Any:
    """Return a number as kernels hold it: half precision in single."""
    return x.astype(np.float32)[()] if is_half(x.dtype) else x[()]
