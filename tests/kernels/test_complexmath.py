"""Complex kernels against NumPy, compiled and as plain Python."""

from __future__ import annotations

import ast
import cmath
import inspect

import numpy as np
import pytest
from numba import njit

from fnarray_kernels import complexmath, halves
from fnarray_kernels.registry import straights

UNARY = {
    "neg": np.negative,
    "conj": np.conj,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "exp": np.exp,
    "exp2": lambda z: np.exp(z * np.log(2)),
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
BINARY = {
    "div": np.divide,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)),
}


def points(dtype, seed: int) -> np.ndarray:
    """Points of the plane, some close to 0 and to the unit circle, where formulas cancel."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-3, 3, 60) + 1j * rng.uniform(-3, 3, 60)
    z[:15] *= 1e-4
    z[15:30] /= np.abs(z[15:30])
    return z.astype(dtype)


def compiled(f):
    return njit(error_model="numpy")(f)


def close(got, want, dtype) -> None:
    # Twenty roundings: Numba's formulas for tan and the inverses take several steps.
    np.testing.assert_allclose(got, want, rtol=20 * np.finfo(dtype).eps)


# What is written here runs in both precisions; what is Numba's, in one.
OURS = {"abs", "sign", "exp2", "expm1", "log", "log1p", "logistic"}
RUNS = [(name, np.complex64) for name in UNARY] + [(name, np.complex128) for name in sorted(OURS)]


@pytest.mark.parametrize(("name", "dtype"), RUNS)
def test_unary(name, dtype):
    """Each function agrees with NumPy in long double, and keeps the operand's precision."""
    f, z = getattr(complexmath, name), points(dtype, 1)
    out = np.empty(z.shape, z.real.dtype if name == "abs" else dtype)
    _loop(f)(z, out)
    want = UNARY[name](z.astype(np.clongdouble))
    close(out, want, dtype)
    plain = f(z[20])
    assert np.dtype(type(plain)) == out.dtype
    close(plain, want[20], dtype)


def _loop(f):
    g = compiled(f)

    @compiled
    def loop(z, out):
        for i in range(z.size):
            out[i] = g(z[i])

    return loop


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    """Functions of two numbers agree with NumPy in double precision."""
    dtype = np.complex64
    g, a, b = compiled(getattr(complexmath, name)), points(dtype, 2), points(dtype, 3)
    got = [g(x, y) for x, y in zip(a, b, strict=True)]
    wide = np.complex128
    want = BINARY[name](a.astype(wide), b.astype(wide))
    np.testing.assert_allclose(got, want, rtol=100 * np.finfo(dtype).eps)


SPECIAL = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
CORNERS = [complex(x, y) for x in SPECIAL for y in SPECIAL]


def test_div_of_corners():
    """Quotients of zeros, infinities and NaN are NumPy's, signs of zeros included."""
    g = compiled(complexmath.div)
    with np.errstate(all="ignore"):
        for a in map(np.complex128, CORNERS):
            for b in map(np.complex128, CORNERS):
                got, want = g(a, b), np.divide(a, b)
                assert repr(complex(got)).replace("-nan", "nan") == repr(complex(want)), (a, b)


def test_exp_of_corners():
    """Exponentials of zeros, infinities and NaN are NumPy's, up to the signs C leaves open."""
    g = compiled(complexmath.exp)
    with np.errstate(all="ignore"):
        for z in map(np.complex128, CORNERS):
            got, want = complex(g(z)), complex(np.exp(z))
            size = abs if abs(z.real) == np.inf and not abs(z.imag) < np.inf else float
            for a, b in ((got.real, want.real), (got.imag, want.imag)):
                np.testing.assert_allclose(size(a), size(b), rtol=1e-15, err_msg=str(z))


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverse_functions_of_corners(name):
    """Without branches they are CPython's at zeros, infinities, NaN and sizes that overflow."""
    f, parts = getattr(complexmath, name), [*SPECIAL, 1.0, 1e-200, -1e160, 1.7e308]
    for z in (complex(x, y) for x in parts for y in parts):
        try:
            want = getattr(cmath, name)(z)
        except ValueError:
            continue  # a pole
        if name == "acosh" and z.real == 0 and z.imag != z.imag:
            want = complex(np.nan, np.pi / 2)  # C99's; CPython's is NaN
        with np.errstate(all="ignore"):
            got = complex(f(np.complex128(z)))
        known = z == z  # beside a NaN, C leaves signs open
        for a, b in ((got.real, want.real), (got.imag, want.imag)):
            np.testing.assert_allclose(*((a, b) if known else np.abs((a, b))), rtol=4e-15)
            assert not known or np.signbit(a) == np.signbit(b), z


def test_logistic_beside_its_poles_and_at_its_ends():
    """Beside i pi nothing cancels; at infinities it is 1, and 0."""
    z = np.complex64(complex(1e-5, np.float32(np.pi)))
    want = 1 / (1 + np.exp(-np.complex128(z)))
    got = complexmath.logistic(z)
    assert abs(got - want) < 4 * np.finfo(np.float32).eps * abs(want)
    with np.errstate(all="ignore"):
        ends = [complexmath.logistic(np.complex128(complex(x, 1.5))) for x in (np.inf, -np.inf)]
    assert ends == [1, 0]


def test_straight_functions_have_no_branch():
    """What loops may call as vectors holds no statement but assignments and a result."""
    assert {"abs", "div", "exp", "log"} <= straights
    for name in straights:
        (function,) = ast.parse(inspect.getsource(getattr(complexmath, name))).body
        doc, *steps, last = function.body
        assert isinstance(doc, ast.Expr)
        assert all(isinstance(step, ast.Assign) for step in steps), name
        assert isinstance(last, ast.Return)


@pytest.mark.parametrize("n", [0, 1, 2, 5, -1, -3])
def test_ipow(n):
    """Integer powers agree with NumPy's."""
    g = compiled(lambda z: complexmath.ipow(z, n))
    z = points(np.complex128, 4)
    close([g(x) for x in z], z**n, np.complex128)


def test_double_from_single():
    """Conversions go both ways and keep the value."""
    assert compiled(complexmath.to_complex128)(np.complex64(1 + 2j)) == 1 + 2j
    assert compiled(complexmath.to_complex64)(np.float32(3)) == 3


def test_half_steps():
    """`nextafter` of half types steps in their own bits, as NumPy's does."""
    x = np.array([0, -0.0, 1, -1, 2, 6e-8, -6e-8, 65504, np.inf, 0.5], np.float16)
    g = compiled(halves.nextafter_f16)
    for a in x:
        for b in x:
            with np.errstate(over="ignore"):
                want = np.nextafter(a, b)
            assert np.float16(g(np.float32(a), np.float32(b))) == want


def test_recast_copies_bytes():
    """Bytes arrive unchanged under the other dtype."""
    x, out = np.arange(6, dtype=np.float32), np.empty(12, np.uint16)
    compiled(halves.recast)(x, out)
    np.testing.assert_array_equal(out, x.view(np.uint16))
