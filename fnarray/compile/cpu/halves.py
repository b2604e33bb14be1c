"""Half precision on the processor: 16-bit words in memory, float32 in registers.

Numba knows neither dtype; processors that convert halves differ in which of the two they know.
"""

from __future__ import annotations

from typing import Any, Final

from ...core.dtypes import is_half
from ..emit.values import Narrow

#: How the text of kernels holds halves.
NARROW: Final = {
    "float16": Narrow("u16", "sc.f16_load({})", "sc.f16_store({})"),
    "bfloat16": Narrow("u16", "sc.bf16_load({})", "sc.bf16_store({})"),
}


def words(x: Any) -> Any:
    """Return an argument of a kernel as its text takes it: arrays of halves as their bits."""
    return x.view("u2") if is_half(getattr(x, "dtype", None)) else x
