"""Fourier transforms of compiled programs beside SciPy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import fnarray
from fnarray import lax
from fnarray import numpy as jnp
from fnarray.config import config, enable_x64

RNG = np.random.default_rng(11)
#: Leading axes and sizes: radices and their products, lines that fill sixteen lanes or not, a line
#: that is a matrix, one that is longer than lines are side by side, a prime that SciPy takes; few
#: lines of which the last begins fifteen after the first, as of sixteen side by side it does.
SIZES = [
    ((), (1,)), ((), (2,)), ((17,), (3,)), ((16,), (4,)), ((33,), (5,)), ((15,), (7,)),
    ((40,), (8,)), ((3, 11), (9,)), ((31,), (11,)), ((32,), (12,)), ((8,), (13,)), ((7,), (15,)),
    ((), (16,)), ((2,), (30,)), ((70,), (48,)), ((), (60,)), ((20,), (49,)), ((), (64,)),
    ((), (105,)), ((), (1000,)), ((9,), (1024,)), ((), (5000,)), ((9,), (4160,)), ((2,), (17,)),
    ((), (8, 8)), ((3,), (5, 6)), ((), (1, 9)), ((2,), (9, 1)), ((), (17, 40)), ((), (64, 36)),
    ((), (3, 4, 5)), ((2,), (16, 1, 6)), ((), (20, 18, 16)),
    ((4,), (5,)), ((22,), (3,)), ((2,), (15,)), ((2,), (3, 4)),
]  # fmt: skip
#: Of the norm of the result, in units of the last place; SciPy has as much.
BOUND = 3


@pytest.fixture(autouse=True)
def _by_kernels(monkeypatch):
    """Small arrays, too, are transformed by kernels, as they are in loops."""
    monkeypatch.setattr("fnarray.compile.cpu.library._better_on_host", lambda *_: False)
    fnarray.clear_caches()


def error(got, want, dtype):
    """Return the error of an array over its norm, in units of the last place."""
    size = np.linalg.norm(want)
    return np.linalg.norm(np.asarray(got, want.dtype) - want) / (size or 1) / np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transforms_of_all_sizes(dtype):
    """Forward and back, complex and real, in lines, along axes and alone."""
    found = {}
    with enable_x64(dtype == "float64"):
        for lead, sizes in SIZES:
            axes = tuple(range(-len(sizes), 0))
            x = RNG.standard_normal((*lead, *sizes)).astype(dtype)
            z = (x + 1j * RNG.standard_normal(x.shape)).astype(np.result_type(dtype, np.complex64))
            half = z[..., : sizes[-1] // 2 + 1]
            compiled = fnarray.jit(
                lambda x, z, half, axes=axes, sizes=sizes: (
                    jnp.fft.fftn(z, axes=axes),
                    jnp.fft.ifftn(z, axes=axes),
                    jnp.fft.rfftn(x, axes=axes),
                    jnp.fft.irfftn(half, sizes, axes=axes),
                )
            )
            wide, real = z.astype(np.complex128), x.astype(np.float64)
            wants = (
                scipy.fft.fftn(wide, axes=axes),
                scipy.fft.ifftn(wide, axes=axes),
                scipy.fft.rfftn(real, axes=axes),
                scipy.fft.irfftn(half.astype(np.complex128), sizes, axes=axes),
            )
            for k, (got, want) in enumerate(zip(compiled(x, z, half), wants, strict=True)):
                assert got.shape == want.shape
                found[lead, sizes, k] = error(got, want, dtype)
    assert max(found.values()) < BOUND, max(found.items(), key=lambda x: x[1])


def test_zero_frequency_and_infinities():
    """Parts that a real result does not have are not read; what is not finite stays so."""
    half = np.array([complex(1, np.nan), 2j, complex(3, np.nan)], np.complex64)
    got = fnarray.jit(lambda z: jnp.fft.irfft(z, 4))(half)
    np.testing.assert_allclose(got, scipy.fft.irfft(np.array([1, 2j, 3]), 4), atol=1e-6)
    many = fnarray.jit(lambda z: jnp.fft.irfft(z, 4))(np.stack([half] * 40))
    np.testing.assert_array_equal(many, np.stack([got] * 40))
    assert np.isnan(fnarray.jit(jnp.fft.fft)(np.array([1, np.inf, 0], np.complex64))).any()


def test_loops_hold_transforms():
    """A loop whose turns transform is a kernel, under `vmap` and for gradients as well."""
    phase = jnp.exp(0.1j * jnp.arange(12.0))

    def steps(u):
        def step(u, _):
            return jnp.fft.ifft(jnp.fft.fft(u) * phase), jnp.abs(u).sum()

        return lax.scan(step, u, None, length=5)

    u = (RNG.standard_normal((3, 12)) + 1j * RNG.standard_normal((3, 12))).astype(np.complex64)
    want = np.fft.ifft(np.fft.fft(u) * np.asarray(phase) ** 5)
    compiled = fnarray.jit(fnarray.vmap(steps))
    np.testing.assert_allclose(compiled(u)[0], want, atol=1e-5)
    assert "fk.fft.full_float32" in compiled.lower(u).as_text()

    def energy(x):
        return (jnp.abs(steps(x + 0j)[0]) ** 2 * jnp.arange(12)).sum()

    got = fnarray.jit(fnarray.grad(energy))(u[0].real)
    np.testing.assert_allclose(got, fnarray.grad(energy)(u[0].real), rtol=1e-4, atol=1e-4)


#: Sizes that threads share, and axes: lines of even and odd numbers, groups not full, three axes.
SHARED = [((1003, 1000), 1), ((500, 525), 2), ((3, 400, 520), 2), ((48, 100, 126), 3)]


@pytest.mark.parametrize("threads", [1, 2])
def test_large_transforms_are_shared_by_threads(threads):
    """Lines are transformed in parts, along each axis, to the bits that fewer lines have."""
    for shape, rank in SHARED:
        axes = tuple(range(-rank, 0))
        x = RNG.standard_normal(shape).astype(np.float32)
        z = (x + 1j * RNG.standard_normal(shape)).astype(np.complex64)
        for name, a in (("fftn", z), ("ifftn", z), ("rfftn", x)):
            compiled = fnarray.jit(getattr(jnp.fft, name), static_argnames="axes")
            text = compiled.lower(a, axes=axes).as_text()
            assert text.count("fk.threads.share") == rank
            config.update("num_threads", threads)
            got = compiled(a, axes=axes)
            config.update("num_threads", None)
            want = getattr(scipy.fft, name)(a.astype(np.result_type(a, np.float64)), axes=axes)
            assert error(got, want, "float32") < BOUND
            if rank == 1:
                np.testing.assert_array_equal(got[:64], compiled(a[:64], axes=axes))
