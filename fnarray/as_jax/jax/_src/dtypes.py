"""``jax._src.dtypes``."""

from __future__ import annotations

import numpy as np

from fnarray.core.dtypes import bfloat16 as bfloat16
from fnarray.core.dtypes import canonicalize_dtype as canonicalize_dtype
from fnarray.core.dtypes import dtype_and_weak, short_name, to_complex, to_inexact
from fnarray.core.dtypes import extended as extended
from fnarray.core.dtypes import finfo as finfo
from fnarray.core.dtypes import float0 as float0
from fnarray.core.dtypes import iinfo as iinfo
from fnarray.core.dtypes import isdtype as isdtype
from fnarray.core.dtypes import issubdtype as issubdtype
from fnarray.core.dtypes import itemsize_bits as itemsize_bits
from fnarray.core.dtypes import prng_key as prng_key
from fnarray.core.dtypes import promote_types as promote_types
from fnarray.core.dtypes import result_type as result_type
from fnarray.core.dtypes import scalar_type_of as scalar_type_of
from fnarray.errors import TypePromotionError as TypePromotionError

DType = np.dtype
short_dtype_name = short_name
to_complex_dtype = to_complex
to_inexact_dtype = to_inexact


class ExtendedDType:
    """A dtype that NumPy has not: a base to derive from, though arrays take none of these."""


def dtype(x: object) -> np.dtype:
    """Return the dtype of a value."""
    return dtype_and_weak(x)[0]


def is_weakly_typed(x: object) -> bool:
    """Say whether the dtype of a value gives way in promotion."""
    return dtype_and_weak(x)[1]
