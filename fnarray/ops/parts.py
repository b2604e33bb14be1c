"""Complex numbers made of parts, and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import float32, float64, to_complex, to_real
from ..core.forms import Map
from ..core.primitive import Primitive
from ..core.trace import bind
from .kit import calls
from .kit.calls import neg
from .kit.checks import all_weak, broadcast_avals, kind
from .kit.declare import elementwise
from .kit.registry import register
from .kit.rules import ELEMENTWISE_BATCH, LINEAR, linear_in, transposed, transposed_each

__all__ = ["complex", "conj", "imag", "real"]


@elementwise(
    "{0}.real",
    eval=np.real,
    dtypes="c",
    result=to_real,
    jvp=LINEAR,
    transpose=transposed(lambda ct, x: calls.complex(ct, 0)),
)
def real(x: Any) -> Any:
    """Real part of complex numbers."""


@elementwise(
    "{0}.imag",
    eval=np.imag,
    dtypes="c",
    result=to_real,
    jvp=LINEAR,
    # Cotangents pair with tangents by Re(ct * t), nothing conjugated: Im t is Re(-i t).
    transpose=transposed(lambda ct, x: calls.complex(0, neg(ct))),
)
def imag(x: Any) -> Any:
    """Imaginary part of complex numbers."""


def _check_parts(name: str, *dtypes: np.dtype) -> None:
    for dtype in dtypes:
        if dtype not in (float32, float64):
            raise TypeError(
                f"lax.{name} makes complex numbers of float32 or float64, got {dtype}. "
                "Convert with lax.convert_element_type first."
            )


def _complex_aval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    _check_parts("complex", x.dtype, y.dtype)
    if x.dtype != y.dtype:
        raise TypeError(
            f"lax.complex requires arguments to have the same dtypes, got {x.dtype}, {y.dtype}."
        )
    shape = broadcast_avals("complex", (x, y))
    return ShapedArray(shape, to_complex(x.dtype), all_weak((x, y)))


def join_parts(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return complex numbers of two arrays of parts."""
    # x + 1j * y would turn an infinite y into a NaN real part.
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), to_complex(x.dtype))
    out.real, out.imag = x, y
    return out


_complex_p = register(
    Primitive(
        "complex",
        aval=_complex_aval,
        eval=join_parts,
        form=lambda ins, outs: Map("fk.complexmath.make({0}, {1})"),
        jvp=linear_in(0, 1),
        transpose=transposed_each(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))),
        batch=ELEMENTWISE_BATCH,
    )
)


def complex(x: Any, y: Any) -> Any:
    """Complex numbers of real part ``x`` and imaginary part ``y``, both float32 or float64."""
    return bind(_complex_p, x, y)


def _conj_aval(x: ShapedArray, *, input_dtype: np.dtype) -> ShapedArray:
    if kind(x.dtype) != "c":
        _check_parts("conj", x.dtype)
    return x.update(dtype=to_complex(x.dtype))


def _conj_form(ins: tuple[ShapedArray, ...], outs: Any, *, input_dtype: np.dtype) -> Map:
    if kind(ins[0].dtype) == "c":
        return Map("fk.complexmath.conj({0})")
    return Map("fk.complexmath.make({0}, -0.0 * {0})")


def _conj_back(ct: Any, x: ShapedArray, *, input_dtype: np.dtype) -> Any:
    return conj(ct) if kind(x.dtype) == "c" else real(ct)


_conj_p = register(
    Primitive(
        "conj",
        aval=_conj_aval,
        eval=lambda x, *, input_dtype: np.conj(x.astype(to_complex(x.dtype))),
        form=_conj_form,
        jvp=LINEAR,
        transpose=transposed(_conj_back),
        batch=ELEMENTWISE_BATCH,
    )
)


def conj(x: Any) -> Any:
    """Complex conjugate; a real operand becomes complex."""
    return bind(_conj_p, x, input_dtype=aval_of(x).dtype)
