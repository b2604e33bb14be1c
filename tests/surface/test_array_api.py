"""The array API standard, with `array_api_strict`, which implements it to the letter, as oracle.

The standard's own test suite is not on the package index. The calls below are what it calls, on
arrays of every dtype of the standard, empty ones and special values included.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import fnarray
from fnarray import numpy as jnp

strict = pytest.importorskip("array_api_strict")  # of the extra `test`

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REALS = ["float32", "float64"]
COMPLEXES = ["complex64", "complex128"]
NUMBERS = INTEGERS + REALS + COMPLEXES
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e30]


@pytest.fixture(autouse=True)
def _wide():
    with fnarray.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def values(dtype, shape=(3, 4), special=False):
    """Return NumPy's array of a dtype: small numbers, or with special ones among them."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(0 if dtype[0] == "u" else -5, 6, shape).astype(dtype)
    x = rng.normal(size=shape) * 3 + (1j * rng.normal(size=shape) if dtype in COMPLEXES else 0)
    x = x.astype(dtype)
    if special:
        x.flat[: len(SPECIAL)] = SPECIAL
    return x


def agree(want, got, what):
    """Assert that results are alike: structure, names of fields, dtypes, shapes, values."""
    if isinstance(want, list | tuple):
        assert isinstance(got, list | tuple), what
        assert getattr(got, "_fields", None) == getattr(want, "_fields", None), what
        for a, b in zip(want, got, strict=True):
            agree(a, b, what)
    elif isinstance(want, strict._array_object.Array):
        want = want._array
        assert (got.dtype, got.shape) == (want.dtype, want.shape), what
        rtol = 1e-4 if want.dtype in ("float32", "complex64") else 1e-9
        np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=rtol, err_msg=what)
    else:
        assert got == want, what


def compare(line, dtypes, shape=(3, 4), *, special=False):
    """Run a line of code with ``xp`` and arrays ``x``, ``y`` in both, for each dtype."""
    for dtype in dtypes:
        x = values(dtype, shape, special)
        y = np.flip(x) + np.array(1 if dtype != "bool" else False, dtype)
        m = values(dtype, (3, 3))
        both = []
        for xp in (strict, jnp):
            space = {k: xp.asarray(v) for k, v in (("x", x), ("y", y), ("m", m))}
            both.append(eval(line, {"xp": xp, "dt": getattr(xp, dtype), **space}))
        agree(*both, f"{line} of {dtype}{shape}")


UNARY = {
    "abs negative positive square round": NUMBERS,
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan "
    "tanh": REALS,
    "ceil floor trunc sign": INTEGERS + REALS,
    "isfinite isinf isnan": NUMBERS,
    "signbit": REALS,
    "bitwise_invert": ["bool", *INTEGERS],
    "logical_not": ["bool"],
    "conj real imag": COMPLEXES,
}
BINARY = {
    "add subtract multiply": NUMBERS,
    "equal not_equal": ["bool", *NUMBERS],
    "less less_equal greater greater_equal maximum minimum": INTEGERS + REALS,
    "atan2 copysign hypot logaddexp nextafter divide": REALS,
    "bitwise_and bitwise_or bitwise_xor": ["bool", *INTEGERS],
    "logical_and logical_or logical_xor": ["bool"],
}


@pytest.mark.parametrize("names", UNARY)
def test_functions_of_one_array(names):
    """Elementwise functions have the standard's dtypes and special values."""
    for name in names.split():
        for shape, special in (((3, 4), True), ((), False), ((0, 2), False)):
            compare(f"xp.{name}(x)", UNARY[names], shape, special=special)


@pytest.mark.parametrize("names", BINARY)
def test_functions_of_two_arrays(names):
    """Binary functions broadcast, promote, take Python scalars, and keep special values."""
    for name in names.split():
        compare(f"xp.{name}(x, y)", BINARY[names], special=True)
        compare(f"xp.{name}(x, y[0, :])", BINARY[names])
        scalar = "True" if "bool" in BINARY[names] and len(BINARY[names]) == 1 else "dt(1)"
        compare(
            f"xp.{name}(x, xp.asarray({scalar.replace('dt(1)', '1')}, dtype=dt))", BINARY[names]
        )
    for one, two in (("int8", "int16"), ("uint8", "int8"), ("uint32", "int32"), ("int64", "int8")):
        assert strict.result_type(getattr(strict, one), getattr(strict, two))._np_dtype == (
            jnp.result_type(getattr(jnp, one), getattr(jnp, two))
        )


LINES = {
    "statistics": (
        [
            "xp.sum(x)", "xp.sum(x, axis=1, keepdims=True)", "xp.prod(x % 2, axis=0)",
            "xp.max(x, axis=(0, 1))", "xp.min(x, axis=-1)", "xp.cumulative_sum(x, axis=1)",
            "xp.cumulative_sum(x, axis=0, include_initial=True)", "xp.cumulative_prod(x, axis=1)",
            "xp.argmax(x)", "xp.argmin(x, axis=1, keepdims=True)", "xp.count_nonzero(x, axis=0)",
            "xp.searchsorted(xp.sort(x[0, :]), x)",
            "xp.searchsorted(m[0, :], m, side='right', sorter=xp.argsort(m[0, :]))",
            "xp.clip(x, 1, 3)", "xp.diff(x, n=2, axis=1)",
            "xp.sort(x, axis=0, descending=True)", "xp.argsort(x, stable=True)",
        ],
        INTEGERS + REALS,
    ),
    "means": (
        ["xp.mean(x)", "xp.mean(x, axis=0, keepdims=True)", "xp.std(x, correction=1.0)",
         "xp.var(x, axis=(0, 1))"],
        REALS,
    ),
    "moves": (
        [
            "xp.concat([x, y], axis=None)", "xp.stack([x, y], axis=-1)", "xp.flip(x)",
            "xp.expand_dims(x, axis=(0, 2))", "xp.moveaxis(x, 0, 1)", "xp.permute_dims(x, (1, 0))",
            "xp.repeat(x, xp.asarray([1, 2, 0]), axis=0)", "xp.reshape(x, (-1,), copy=True)",
            "xp.roll(x, (1, 2), axis=(0, 1))", "xp.squeeze(x[None, ...], axis=0)",
            "xp.tile(x, (2, 1, 2))", "xp.unstack(x, axis=-1)", "xp.broadcast_to(x, (2, 3, 4))",
            "xp.broadcast_arrays(x, y[:1, :])", "xp.meshgrid(x[0, :], y[:, 0], indexing='ij')",
            "xp.tril(x, k=1)", "xp.triu(x, k=-1)", "xp.matrix_transpose(x)", "x.mT", "x.T",
            "xp.take(x, xp.asarray([-1, 0]), axis=1)",
            "xp.take_along_axis(x, xp.asarray([[0], [1], [2]]), axis=1)", "xp.where(x == y, x, y)",
            "xp.nonzero(x)", "x[1:, ::-2]", "x[..., 0]", "x[None, 1, :]", "x[x == y]",
            "xp.any(x, axis=0)", "xp.all(x)", "xp.zeros_like(x)",
            "xp.full_like(x, 1, dtype=xp.float32)", "xp.ones((2, 3), dtype=dt)",
            "xp.eye(3, 4, k=1, dtype=dt)", "xp.asarray(x, copy=True)",
            "xp.astype(x, dt, copy=False)",
            "x.to_device(x.device)", "xp.unique_all(x[0, :])", "xp.unique_values(x)",
            "xp.unique_counts(x)", "xp.unique_inverse(x)",
        ],
        ["bool", *NUMBERS],
    ),
    "products": (
        [
            "x @ y.T", "xp.matmul(x, y[0, :])", "xp.tensordot(x, y, axes=((1,), (1,)))",
            "xp.vecdot(x, y, axis=-1)", "xp.linalg.outer(x[0, :], y[1, :])",
            "xp.linalg.trace(m)", "xp.linalg.diagonal(m, offset=1)",
            "xp.linspace(0, 5, 7, dtype=dt)",
            "xp.linalg.cross(x[:, :3], y[:, :3])",
        ],
        ["int32", "int64", *REALS, *COMPLEXES],
    ),
    "linear algebra": (
        [
            "xp.linalg.det(m)", "xp.linalg.inv(m)", "xp.linalg.solve(m, m[0, :])",
            "xp.linalg.slogdet(m)", "xp.linalg.svdvals(x)", "xp.linalg.pinv(x)",
            "xp.linalg.matrix_power(m, 3)",
            "xp.linalg.matrix_norm(x, ord='nuc')", "xp.linalg.vector_norm(x, ord=3.5, axis=1)",
            "xp.linalg.matrix_rank(x)",
            "xp.linalg.cholesky(xp.conj(m).mT @ m + xp.eye(3, dtype=dt))",
            "xp.linalg.eigvalsh(m + xp.conj(m).mT)",
        ],
        REALS + COMPLEXES,
    ),
    "transforms": (
        ["xp.fft.ifft(xp.astype(x, xp.complex128))", "xp.fft.rfft(x, n=5, norm='ortho')",
         "xp.fft.ihfft(x)", "xp.fft.fftshift(x, axes=1)", "xp.fft.fftfreq(5, d=0.5)"],
        REALS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("group", LINES)
def test_functions_by_group(group):
    """Structures, dtypes, shapes and values are the standard's; several arrays come as a tuple."""
    lines, dtypes = LINES[group]
    for line in lines:
        compare(line, dtypes)


def _namespaces():
    for part in ("", "linalg", "fft"):
        yield part, *(getattr(xp, part) if part else xp for xp in (strict, jnp))


@pytest.mark.parametrize(("part", "wanted", "found"), list(_namespaces()))
def test_signatures(part, wanted, found):
    """Every function of the standard is there and takes its parameters by name."""
    listed = [n for n in getattr(wanted, "__all__", dir(wanted)) if n[0] != "_"]
    for name in listed:
        f = getattr(wanted, name)
        if not inspect.isfunction(f) or not f.__module__.startswith("array_api_strict"):
            continue
        if name.endswith("_array_api_strict_flags") or name in ("requires_api_version",):
            continue
        if part and not f.__module__.endswith(part):
            continue
        given = inspect.signature(getattr(found, name)).parameters
        for key, p in inspect.signature(f).parameters.items():
            by_name = p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
            assert not by_name or key in given, f"{part}.{name}({key}=)"


def test_namespace_tells_about_itself():
    """Inspection, versions, devices and dtypes are asked as the standard says."""
    x = jnp.ones((2, 3))
    info = x.__array_namespace__(api_version="2024.12").__array_namespace_info__()
    assert set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes"}
    assert x.device in info.devices()
    assert info.dtypes(kind="real floating").keys() == {"float32", "float64"}
    assert info.default_dtypes()["indexing"] == jnp.argsort(x).dtype == np.int64
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="1999.12")
    with pytest.raises(IndexError):
        jnp.expand_dims(x, axis=4)


def test_copies_and_other_libraries():
    """A copy is another object, and DLPack carries arrays both ways."""
    x = jnp.arange(3.0)
    assert jnp.asarray(x, copy=False) is x is jnp.asarray(x)
    assert jnp.asarray(x, copy=True) is not x
    assert x.__dlpack_device__()[0] == 1
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    back = jnp.from_dlpack(np.arange(3.0), device=x.device, copy=True)
    np.testing.assert_array_equal(np.asarray(back), np.arange(3.0))
    assert jnp.asarray(1.5).__complex__() == 1.5
    for convert in (int, float):
        with pytest.raises(TypeError, match="complex number does not convert"):
            convert(jnp.asarray(1j))
