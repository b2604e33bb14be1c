"""Fourier and cosine transforms beside NumPy's, SciPy's and JAX's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.fft

import fnarray
import fnarray.scipy.fft
from fnarray import lax
from fnarray import numpy as jnp
from fnarray.config import enable_x64

RNG = np.random.default_rng(5)
REAL = RNG.standard_normal((3, 4, 6))
COMPLEX = REAL + 1j * RNG.standard_normal((3, 4, 6))

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
NORMS = (None, "ortho", "forward")
CASES = [
    *(
        (f, {"n": n, "axis": a, "norm": w})
        for f in ONE
        for n, a, w in zip((None, 3, 9), (-1, 1, 0), NORMS, strict=True)
    ),
    *((f, {"axes": (1, 0), "norm": "ortho"}) for f in MANY),
    *((f, {}) for f in MANY + TWO),
    *((f, {"s": (5, 3), "axes": (2, 0), "norm": "forward"}) for f in MANY + TWO),
]
TAKES_REAL = {"rfft", "ihfft", "rfftn", "rfft2"}


def operand(name, dtype):
    """Real or complex numbers, as a transform takes them."""
    if name in TAKES_REAL:
        return REAL.astype({"single": np.float32, "double": np.float64}[dtype])
    return COMPLEX.astype({"single": np.complex64, "double": np.complex128}[dtype])


@pytest.mark.parametrize("dtype", ["single", "double"])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_matches_numpy(name, settings, dtype):
    """Values are NumPy's, and single precision stays single."""
    x = operand(name, dtype)
    tol = 1e-5 if dtype == "single" else 1e-13
    with enable_x64(dtype == "double"):
        got = getattr(jnp.fft, name)(x, **settings)
    want = getattr(np.fft, name)(x, **settings)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * abs(want).max())
    assert (got.dtype.itemsize == x.dtype.itemsize) == (got.dtype.kind == x.dtype.kind)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"]
)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_dtypes_are_those_of_jax(jax, name, dtype):
    """Shapes, dtypes and refusals agree with JAX's for every dtype."""
    results = []
    for module in (jax.numpy, jnp):
        try:
            out = getattr(module.fft, name)(module.ones(6, dtype))
            results.append((out.shape, np.dtype(out.dtype), out.weak_type))
        except (TypeError, ValueError) as error:
            results.append(type(error))
    assert results[0] == results[1]


FREQUENCIES = [(8,), (7,), (8, 0.25), (1,), (5, 2)]


@pytest.mark.parametrize("args", FREQUENCIES)
def test_frequencies(jax, args):
    """Frequencies and their dtypes are JAX's."""
    for name in ("fftfreq", "rfftfreq"):
        got, want = getattr(jnp.fft, name)(*args), getattr(jax.numpy.fft, name)(*args)
        # XLA divides by a constant with its reciprocal: the last bit differs.
        np.testing.assert_allclose(got, want, rtol=2e-7)
        assert (got.dtype, got.weak_type) == (want.dtype, want.weak_type)
    assert jnp.fft.fftfreq(4, dtype="float16").dtype == np.float16


@pytest.mark.parametrize("axes", [None, 0, (0, 2), -1])
def test_shifts(axes):
    """Shifts are NumPy's, and one undoes the other."""
    shifted = jnp.fft.fftshift(REAL, axes)
    np.testing.assert_array_equal(shifted, np.fft.fftshift(np.float32(REAL), axes))
    np.testing.assert_array_equal(jnp.fft.ifftshift(shifted, axes), np.float32(REAL))


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("lengths", [(6,), (7,), (4, 6), (3, 4, 5)])
def test_derivatives_meet_in_an_inner_product(kind, lengths):
    """A linear map's derivative is itself, its transpose its adjoint, in each mode and compiled."""
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    shape = half if kind == "IRFFT" else lengths
    with enable_x64(True):
        x, dx = (RNG.standard_normal((2, *shape)) for _ in "ab")
        if kind != "RFFT":
            x, dx = x + 1j * dx, dx - 1j * x
        transform = lambda x: lax.fft(x, kind, lengths)  # noqa: E731
        y, dy = fnarray.jvp(transform, (x,), (dx,))
        np.testing.assert_allclose(dy, transform(dx))
        ct = jnp.asarray(RNG.standard_normal(y.shape))
        if kind != "IRFFT":
            ct = ct + 1j * RNG.standard_normal(y.shape)
        (back,) = fnarray.vjp(transform, x)[1](ct)
        assert back.shape == x.shape
        # JAX's cotangents of complex numbers pair without conjugation, as real parts.
        np.testing.assert_allclose(jnp.sum(ct * dy).real, jnp.sum(back * dx).real, rtol=1e-9)
        np.testing.assert_allclose(fnarray.jit(transform)(x), y)
        np.testing.assert_allclose(fnarray.vmap(transform, 1, 1)(x[:, None])[:, 0], y)


def test_gradient_is_that_of_jax(jax):
    """A power spectrum's gradient, compiled, agrees with JAX's."""

    def loss(np_, x):
        return (np_.abs(np_.fft.rfft(x, 9)) ** 2 * np_.arange(5)).sum()

    x = np.float32(REAL[0, 0])
    want = jax.grad(lambda x: loss(jax.numpy, x))(x)
    np.testing.assert_allclose(fnarray.jit(fnarray.grad(lambda x: loss(jnp, x)))(x), want, 1e-4)


def test_printed_as_jax_prints(jax):
    """The graph of a transform reads as JAX's."""
    x = np.ones((2, 8), np.float32)
    ours = fnarray.make_jaxpr(lambda x: lax.fft(x, "RFFT", (8,)))(x)
    theirs = jax.make_jaxpr(lambda x: jax.lax.fft(x, "RFFT", (8,)))(x)
    (line,) = (row.strip() for row in str(theirs).splitlines() if "fft_lengths" in row)
    assert line in str(ours)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_cosine_transforms(name, norm, n):
    """Values are SciPy's, of odd and even sizes, cropped or extended."""
    ours, theirs = getattr(fnarray.scipy.fft, name), getattr(scipy.fft, name)
    x = REAL[..., :5].astype(np.float32)
    np.testing.assert_allclose(ours(x, n=n, norm=norm), theirs(x, n=n, norm=norm), 2e-5, 2e-5)
    np.testing.assert_allclose(ours(x, axis=0, norm=norm), theirs(x, axis=0, norm=norm), 2e-5, 2e-5)
    z = COMPLEX.astype(np.complex64)
    np.testing.assert_allclose(ours(z, norm=norm), theirs(z, norm=norm), 2e-5, 2e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"axes": (0, 2)}, {"s": (3, 7)}, {"s": (2, 3), "axes": (1, 0)}]
)
@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_cosine_transforms_along_several_axes(name, settings):
    """Values are SciPy's."""
    x = REAL.astype(np.float32)
    want = getattr(scipy.fft, name)(x, norm="ortho", **settings)
    got = getattr(fnarray.scipy.fft, name)(x, norm="ortho", **settings)
    np.testing.assert_allclose(got, want, 2e-5, 2e-5)


F = jnp.fft
X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.fft(X, n=0), "positive"),
        (lambda: F.fft(X, axis=2), "out of bounds"),
        (lambda: F.fft(X, axis=(0,)), "multiple axes"),
        (lambda: F.fft(X, norm="x"), "norm"),
        (lambda: F.rfft(X + 0j), "real valued"),
        (lambda: F.fft2(X, axes=(1,)), "2 axes"),
        (lambda: F.fftn(X, axes=(1, 1)), "distinct"),
        (lambda: F.fftn(X, s=(1,), axes=(1, 0)), "different lengths"),
        (lambda: F.fftfreq([3]), "single value"),
        (lambda: lax.fft(X, "FFT", (3, 3)), "fft_lengths"),
        (lambda: lax.fft(X, "FFT", (2, 3, 4)), "at least as many"),
        (lambda: lax.fft(X, "FHT", (4,)), "unknown FFT type"),
        (lambda: fnarray.scipy.fft.dct(X, type=3), "type must be 2"),
        (lambda: fnarray.scipy.fft.dct(X, norm="forward"), "norm"),
    ],
)
def test_errors(call, text):
    """What cannot be transformed is refused by name."""
    with pytest.raises(ValueError, match=text):
        call()


def test_names_and_signatures(jax):
    """Every public name of JAX's modules is here, with its parameters."""
    import jax.scipy.fft

    pairs = ((F, jax.numpy.fft), (fnarray.scipy.fft, jax.scipy.fft))
    for ours, theirs in pairs:
        names = {n for n in dir(theirs) if n[0] != "_"}
        assert set(ours.__all__) == names
        for name in names:
            want, got = (inspect.signature(getattr(m, name)).parameters for m in (theirs, ours))
            assert list(want) == list(got)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(4100,), (1, 6000), (2, 3001), (5, 1000), (31, 160), (9000,)])
def test_few_real_lines(shape, dtype):
    """Few lines of real numbers are NumPy's, compiled and not, in loops kernels'."""
    n, bound = shape[-1], 1e-6 if dtype == "float32" else 1e-14
    with enable_x64(dtype == "float64"):
        x = RNG.standard_normal(shape).astype(dtype)
        half = np.fft.rfft(x)
        for f, a, want in (
            (jnp.fft.rfft, x, half),
            (lambda h: jnp.fft.irfft(h, n), half, np.fft.irfft(half, n)),
        ):
            got, plain = fnarray.jit(f)(a), f(a)
            assert got.dtype == plain.dtype == want.dtype
            np.testing.assert_allclose(got, want, atol=bound * np.abs(want).max())
            np.testing.assert_allclose(plain, want, atol=bound * np.abs(want).max())
            many = fnarray.jit(lambda a, f=f: lax.fori_loop(0, 2, lambda _, y: f(a), f(a)))(a)
            np.testing.assert_allclose(many, want, atol=bound * np.abs(want).max())
            if got.dtype != np.complex64 or x.size < 9000:
                np.testing.assert_array_equal(got, plain)


def test_few_real_lines_meet_in_an_inner_product():
    """Derivatives of transforms that NumPy computes, batched along another axis too."""
    x, y = RNG.standard_normal((2, 3, 2000)).astype(np.float32)
    f = lambda v: jnp.abs(jnp.fft.rfft(v)).sum()  # noqa: E731
    want = fnarray.grad(f)(x)
    np.testing.assert_allclose(fnarray.jit(fnarray.grad(f))(x), want, rtol=1e-3, atol=1e-3)
    rows = fnarray.vmap(lambda v: jnp.fft.irfft(jnp.fft.rfft(v), 2000))
    np.testing.assert_allclose(fnarray.jit(rows)(y), y, atol=1e-5)
