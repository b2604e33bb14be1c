"""Rows of the special functions."""

from __future__ import annotations

import numpy as np

from .opcase import OpCase

_TWO = ((3, 4), (3, 4))


def _grid(*axes) -> tuple[np.ndarray, ...]:
    return tuple(np.ravel(x).astype(np.float32) for x in np.meshgrid(*axes))


_a = [0.1, 0.7, 1.0, 2.5, 10.0, 40.0]
_x = [1e-3, 0.3, 1.0, 3.0, 11.0, 60.0]

CASES = [
    OpCase("erf", ulp=8, special=True),
    OpCase("erfc", ulp=32, special=True),
    OpCase("erf_inv", ulp=16, domain=(-0.99, 0.99)),
    OpCase("erf_inv:edges", values=(np.float32([-1, 1, 2, np.nan, 0]),)),
    OpCase("lgamma", ulp=40, domain=(3, 20)),
    # Its zeros, 1 and 2, are among the tests of kernels: JAX's are 5e-7 without fused multiply-add.
    OpCase("lgamma:edges", values=(np.float32([0, -1, np.inf, -np.inf, np.nan, 3, -2.5]),), ulp=64),
    OpCase("digamma", ulp=40, domain=(2, 20)),
    OpCase(
        "digamma:edges", values=(np.float32([0, -1, np.inf, -np.inf, np.nan, 1, -2.5]),), ulp=64
    ),
    OpCase("zeta", shapes=_TWO, ulp=32, domain=(1.5, 8)),
    OpCase(
        "zeta:edges",
        values=_grid([-2, 0.5, 1, 2, 3, np.inf], [-np.inf, -1, 0, 2, np.inf]),
        ulp=32,
    ),
    OpCase("polygamma", values=_grid([0, 1, 2, 5], [0.3, 1.0, 4.0, 20.0]), ulp=64),
    OpCase("polygamma:edges", values=(np.float32([0.5, -1, 1, 2]), np.float32([1.5, 1.5, 0, -1]))),
    *(OpCase(n, values=_grid(_a, _x), ulp=200) for n in ("igamma", "igammac")),
    *(
        OpCase(f"{n}:edges", values=_grid(_ends, [-np.inf, *_ends]), ulp=200)
        for _ends in ([-1, 0, 1, np.inf, np.nan],)
        for n in ("igamma", "igammac")
    ),
    # JAX's gradients have four digits in float32.
    *(
        OpCase(n, shapes=_TWO, dtypes=("float64",) * 2, domain=(low, high), ulp=1e5)
        for n in ("igamma_grad_a", "random_gamma_grad")
        for low, high in ((0.1, 2), (0.5, 30))
    ),
    OpCase(
        "igamma:half",
        fn=lambda lax: lax.igamma,
        shapes=_TWO,
        dtypes=("float16",) * 2,
        ulp=2,
        domain=(0.5, 5),
    ),
    OpCase(
        "betainc",
        values=_grid([0.5, 1.0, 4.0], [0.7, 2.0, 9.0], [0.0, 0.1, 0.5, 0.9, 1.0]),
        ulp=200,
    ),
    OpCase("bessel_i0e", ulp=16, domain=(-20, 20)),
    OpCase("bessel_i1e", ulp=16, domain=(-20, 20)),
]

ERRORS = [
    OpCase(name, values=(np.ones(3, np.int32),), raises=TypeError, match="floating")
    for name in ("erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e")
] + [
    OpCase("igamma", values=(np.ones(3, np.complex64),) * 2, raises=TypeError, match="floating"),
    OpCase("polygamma", values=(1, np.ones(3, np.float32)), raises=TypeError, match="int32"),
]
