"""``jax._src.public_test_util``: ``jax.test_util``, and comparisons of trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnarray import tree
from fnarray.test_util import check_grads as check_grads
from fnarray.test_util import check_jvp as check_jvp
from fnarray.test_util import check_vjp as check_vjp

#: How far results of a dtype may differ where nobody says.
_TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "complex64": 1e-6}
_WIDE = {"float64": 1e-15, "complex128": 1e-15}


def default_tolerance() -> dict[np.dtype, float]:
    """Return by dtype how far results may differ; 0 where they are exact."""
    return {np.dtype(name): value for name, value in (_TOLERANCE | _WIDE).items()}


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raise `AssertionError` where two trees differ in structure, or their arrays in values.

    Tolerances are numbers, or dictionaries of them by dtype.
    """

    def close(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        names = {x.dtype.name, y.dtype.name}

        def allowed(given: Any) -> float:
            if given is None or isinstance(given, dict):
                by_name = {np.dtype(k).name: v for k, v in (given or {}).items()}
                return max((_TOLERANCE | _WIDE | by_name).get(name, 0.0) for name in names)
            return given

        if x.dtype.kind == y.dtype.kind == "V":  # numbers that NumPy compares by their name alone
            x, y = x.astype(np.float32), y.astype(np.float32)
        np.testing.assert_allclose(
            x,
            y,
            rtol=allowed(rtol),
            atol=allowed(atol),
            err_msg=err_msg,
        )

    tree.map(close, xs, ys)
