"""Parts of complex numbers; real numbers are taken for complex ones without an imaginary part."""

from __future__ import annotations

from typing import Any

from .. import lax
from ..core.apart import another
from ..core.array import Array
from ..core.dtypes import is_complex
from ..core.eager import replayed
from ..ops.kit.canonical import as_array
from ._promote import as_operand
from ._ufunc import ufunc_of

__all__ = ["conj", "conjugate", "imag", "real"]


def real(val: Any, /) -> Array:
    """Real part; real numbers stay as they are."""
    val = as_array(as_operand("real", val))
    return lax.real(val) if is_complex(val.dtype) else another(val)


@replayed
def imag(val: Any, /) -> Array:
    """Imaginary part, zero for real numbers."""
    val = as_array(as_operand("imag", val))
    return lax.imag(val) if is_complex(val.dtype) else lax.full_like(val, 0)


@ufunc_of(nin=1)
def conjugate(x: Any, /) -> Array:
    """Complex conjugate; real numbers stay as they are."""
    x = as_array(as_operand("conjugate", x))
    return lax.conj(x) if is_complex(x.dtype) else another(x)


conj = conjugate
