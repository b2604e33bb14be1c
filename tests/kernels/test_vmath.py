"""Vector math keeps its stated bounds, in units in the last place, over the whole range."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fnarray_kernels import vmath as vm

from .bounds import (
    BINARY,
    FLOATS,
    UNARY,
    Wide,
    binary_points,
    errors,
    everywhere,
    specials,
    unary_points,
)


def assert_within(bound, got, want, *args):
    """No error exceeds `bound`, and zeros have the right sign."""
    off = errors(got, want)
    worst = np.argmax(off)
    where = [a[worst] for a in args]
    assert off[worst] <= bound, f"{off[worst]} ULP at {where}: {got[worst]} for {want[worst]}"
    zero = (got == 0) & (want == 0)
    assert (np.signbit(got[zero]) == np.signbit(want[zero])).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_unary_bound(compiled, name, dtype):
    """The stated bound holds on random bits, ordinary intervals, small numbers and specials."""
    reference, _, *bounds = UNARY[name]
    count = {"erf": 2_000, "erfc": 2_000, "erf_inv": 500}.get(name, 40_000)
    (x,) = unary_points(name, dtype, count)
    out = np.empty_like(x)
    compiled(getattr(vm, name), 1)(x, out)
    assert_within(bounds[dtype == "float64"], out, reference(x.astype(Wide)), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_binary_bound(compiled, name, dtype):
    """The stated bound holds on random bits, ordinary pairs, and all pairs of specials."""
    reference, *bounds = BINARY[name]
    x, y = binary_points(dtype, 40_000)
    out = np.empty_like(x)
    compiled(getattr(vm, name), 2)(x, y, out)
    want = reference(x.astype(Wide), y.astype(Wide))
    assert_within(bounds[dtype == "float64"], out, want, x, y)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_docstring_states_a_bound(name):
    """Each docstring names the bound that its test checks in float64, or a larger one."""
    bound = (UNARY.get(name) or BINARY.get(name))[-1]
    text = getattr(vm, name).__doc__
    stated = [float(v) for v in re.findall(r"([\d.]+) ULP", text)]
    assert bound == 0.5 or max(stated) >= bound


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_powers(dtype):
    """Powers and roots that a float can hold come out exactly."""
    base = np.arange(2, 13).astype(dtype)
    for n in (2, 3, 4, 5, 6):
        np.testing.assert_array_equal(vm.pow(base, np.full_like(base, n)), base**n)
    np.testing.assert_array_equal(vm.cbrt(base**3), base)
    whole = np.arange(-120, 120).astype(dtype)
    np.testing.assert_array_equal(vm.exp2(whole), 2.0**whole)
    np.testing.assert_array_equal(vm.log2(2**whole), whole)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_tiny_is_its_own_expm1(dtype):
    """Subnormal numbers too, whose last digit logarithms of the result see."""
    tiny = np.finfo(dtype).smallest_subnormal * np.arange(1, 99).astype(dtype)
    x = np.concatenate([tiny, np.geomspace(np.finfo(dtype).tiny, np.finfo(dtype).eps / 9, 99)])
    np.testing.assert_array_equal(vm.expm1(-x.astype(dtype)), -x.astype(dtype))


def test_reduction_at_its_hardest():
    """Of all doubles this is nearest to a multiple of pi/2 (Muller, Elementary Functions, 1997)."""
    x = np.float64(6381956970095103.0) * 2.0**797
    assert abs(vm.cos(x) - -4.687165924254627611e-19) < 1e-34
    assert vm.sin(x) == 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@np.errstate(all="ignore")
def test_readings_agree_bit_for_bit(compiled, name, dtype):
    """NumPy's reading of a text gives the compiled one's bits, NaN payloads aside."""
    fn, count = getattr(vm, name), 1 + (name in BINARY)
    rng = np.random.default_rng(4)
    grid = [
        everywhere(dtype, 800),
        rng.uniform(-5, 5, 800),
        rng.uniform(-1, 1, 400),
        specials(dtype),
    ]
    x = np.concatenate([g.astype(dtype) for g in grid])
    args = (x, rng.permutation(x))[:count]
    out = np.empty_like(x)
    compiled(fn, count)(*args, out)
    plain = fn(*args)
    assert plain.dtype == x.dtype
    number = out == out
    np.testing.assert_array_equal(number, plain == plain)
    bits = np.dtype(dtype.replace("float", "uint"))
    np.testing.assert_array_equal(plain[number].view(bits), out[number].view(bits))
    assert np.shape(fn(*(a[0] for a in args))) == ()
