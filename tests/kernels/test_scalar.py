"""Scalar helpers mean what XLA means, in both readings."""

from __future__ import annotations

import functools
import itertools

import jax
import numba
import numpy as np
import pytest
from jax import lax

from fnarray_kernels import _ir
from fnarray_kernels import scalar as sc

INTS = ("int8", "int64", "uint8", "uint32")
FLOATS = ("float32", "float64")
NUMBERS = INTS + FLOATS
EVERY = tuple(f"{s}int{w}" for s in ("", "u") for w in (8, 16, 32, 64)) + FLOATS


@pytest.fixture(autouse=True)
def wide():
    """Let the oracle use 64-bit types."""
    with jax.enable_x64(True):
        yield


def samples(dtype):
    """Return corner cases of `dtype`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info, bits = np.iinfo(dtype), 8 * dtype.itemsize
        near = [0, 1, 2, 3, 7, bits - 1, bits, bits + 1, info.max, info.max - 1, info.max // 3]
        low = [-1, -2, -7, -bits, info.min, info.min + 1] if dtype.kind == "i" else []
        return np.array(near + low, dtype)
    info = np.finfo(dtype)
    half = [0.0, 0.5, 1.0, 1.5, 2.5, 0.49999997, 8388609.0, 300.7, 127.5, 65519.0, 65520.0, 1e-8]
    far = [2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e10, 1e20, np.inf, info.max, info.tiny]
    edge = [info.smallest_subnormal, info.tiny / 2, 6e-8, 5.97e-8, 3e-5, 6.1e-5, np.pi]
    both = np.array(half + far + edge, dtype)
    return np.concatenate([both, -both, np.array([np.nan], dtype)])


def pairs(dtype):
    """Return all pairs of corner cases."""
    grid = list(itertools.product(samples(dtype), repeat=2))
    return tuple(np.array(column, dtype) for column in zip(*grid, strict=True))


@pytest.fixture
def check(compiled):
    """Give the comparison of both readings with what is wanted."""
    return functools.partial(compare, compiled)


def compare(compiled, fn, args, want):
    """Both readings of `fn` give `want`, bit for bit (any NaN equals any NaN)."""
    want = np.asarray(want)
    out = np.empty(want.shape, want.dtype)
    compiled(fn, len(args))(*args, out)
    np.testing.assert_array_equal(out, want)
    plain = fn(*args)
    assert plain.dtype == want.dtype
    np.testing.assert_array_equal(plain, want)
    if want.dtype.kind == "f":
        signs = [np.signbit(v[want == want]) for v in (out, plain, want)]
        assert (signs[0] == signs[2]).all()
        assert (signs[1] == signs[2]).all()
    one = fn(*(a[0] for a in args))
    assert (one.shape, one.dtype) == ((), want.dtype)


BINARY = [
    (sc.add, lax.add, NUMBERS),
    (sc.sub, lax.sub, NUMBERS),
    (sc.mul, lax.mul, NUMBERS),
    (sc.radd, lax.add, NUMBERS),
    (sc.rmul, lax.mul, NUMBERS),
    (sc.div, lax.div, INTS),
    (sc.rem, lax.rem, NUMBERS),
    (sc.maximum, lax.max, ("bool", *NUMBERS)),
    (sc.minimum, lax.min, ("bool", *NUMBERS)),
    (sc.shl, lax.shift_left, INTS),
    (sc.shr_logical, lax.shift_right_logical, INTS),
    (sc.shr_arith, lax.shift_right_arithmetic, INTS),
    (sc.and_, lax.bitwise_and, ("bool", *INTS)),
    (sc.or_, lax.bitwise_or, ("bool", *INTS)),
    (sc.xor, lax.bitwise_xor, ("bool", *INTS)),
]
UNARY = [
    (sc.neg, lax.neg, NUMBERS),
    (sc.abs_, lax.abs, ("int8", "int64", *FLOATS)),
    (sc.sign, lax.sign, NUMBERS),
    (sc.not_, lax.bitwise_not, ("bool", *INTS)),
    (sc.popcount, lax.population_count, INTS),
    (sc.clz, lax.clz, INTS),
    (sc.rint, lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), FLOATS),
    (sc.round_away, lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), FLOATS),
    (sc.floor, np.floor, FLOATS),
    (sc.ceil, np.ceil, FLOATS),
    (sc.trunc, np.trunc, FLOATS),
    (sc.sqrt, np.sqrt, FLOATS),
    (sc.is_nan, np.isnan, FLOATS),
    (sc.is_finite, np.isfinite, FLOATS),
]


def each(table):
    """Return one test case per function and dtype."""
    return [
        pytest.param(fn, want, t, id=f"{fn.__name__}-{t}") for fn, want, ts in table for t in ts
    ]


@pytest.mark.parametrize(("fn", "want", "dtype"), each(BINARY))
@np.errstate(all="ignore")
def test_binary_matches_lax(check, fn, want, dtype):
    """Two-operand helpers agree with lax on all pairs of corner cases."""
    args = pairs(dtype)
    if np.dtype(dtype).kind == "f":  # XLA flushes subnormals to zero; these keep them
        normal = [(np.abs(a) >= np.finfo(dtype).tiny) | (a == 0) | (a != a) for a in args]
        args = tuple(a[normal[0] & normal[1]] for a in args)
        plain = {sc.add: np.add, sc.sub: np.subtract, sc.mul: np.multiply, sc.rem: np.fmod}
        want = plain.get(fn, plain.get({sc.radd: sc.add, sc.rmul: sc.mul}.get(fn), want))
    check(fn, args, want(*args))


@pytest.mark.parametrize(("fn", "want", "dtype"), each(UNARY))
@np.errstate(all="ignore")
def test_unary_matches_lax(check, fn, want, dtype):
    """One-operand helpers agree with lax (or NumPy) on corner cases."""
    x = samples(dtype)
    if fn is sc.sign and np.dtype(dtype).kind == "f":
        want = np.sign
        x = x[x != 0]
    check(fn, (x,), np.asarray(want(x)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_pairs(check, dtype):
    """Division, nextafter and copysign are IEEE's, zeros and subnormals included."""
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        check(sc.div, (x, y), x / y)
        check(sc.nextafter, (x, y), np.nextafter(x, y))
        check(sc.copysign, (x, y), np.copysign(x, y))
    zeros = np.array([0.0, -0.0], dtype)
    check(sc.sign, (zeros,), zeros)


@pytest.mark.parametrize("source", ["bool", "int32", "uint64", *FLOATS])
@pytest.mark.parametrize("target", ["bool", *EVERY])
def test_convert_matches_lax(check, source, target):
    """Integers wrap, floats saturate and NaN becomes 0, as lax.convert_element_type does."""
    x = samples(source)
    if source == "float64" and target == "float32":
        with np.errstate(all="ignore"):
            want = x.astype(np.float32)
    elif target == "bool":
        want = x != 0
    elif source == "float32" and target == "float64":
        want = x.astype(np.float64)
    else:
        want = np.asarray(jax.jit(lambda v: lax.convert_element_type(v, target))(x))
    check(getattr(sc, f"to_{target}"), (x,), want)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", EVERY[:8])
def test_floats_saturate_at_the_ends_of_integers(check, source, target):
    """The numbers around both ends of each integer, and around 0, are cut off or become the end."""
    ends = [2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64)]
    near = [s * e + d for s in (1, -1) for e in (0, *ends) for d in (-1.5, -1, -0.5, 0, 0.5, 1)]
    x = np.array([*near, 1e30, -1e30, np.nan, -np.nan, np.inf, -np.inf, 1e-40]).astype(source)
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)], dtype=source)
    info = np.iinfo(target)
    cut = lambda v: 0 if v != v else min(max(v, float(info.min)), float(info.max + 1))  # noqa: E731
    check(getattr(sc, f"to_{target}"), (x,), np.array([
        min(int(cut(v)), info.max) for v in x.tolist()
    ], target))  # fmt: skip


@pytest.mark.parametrize("target", EVERY)
def test_bitcast_keeps_bits(check, target):
    """Bits survive a reading as any dtype of the same width."""
    for source in EVERY:
        x = samples(source)
        if x.dtype.itemsize == np.dtype(target).itemsize:
            check(getattr(sc, f"bitcast_{target}"), (x,), x.view(target))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "float32"])
def test_what_orders_places(check, dtype):
    """High halves have the numbers' order, or the opposite; NaN is first and zeros are equal."""
    x = samples(dtype)
    floats = x.dtype.kind == "f"
    order = np.unique(np.where(x == 0, 0, x), return_inverse=True)[1]
    for function, sign in ((sc.least_first, 1), (sc.greatest_first, -1)):
        keys = np.array([function(v) for v in x])
        assert keys.dtype == np.int64
        assert not (keys & 0xFFFFFFFF).any()
        wanted = np.where(x != x, -len(x), sign * order)
        assert (np.sign(keys[:, None] // 2 - keys // 2) == np.sign(wanted[:, None] - wanted)).all()
        check(function, (x[np.isfinite(x)] if floats else x,), keys[np.isfinite(x)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64", "uint64", "f4", "f8"])
def test_total_order(check, dtype):
    """Integers have their order, floats that of IEEE, where zeros and NaN of both signs differ."""
    x = samples(dtype)
    if x.dtype.kind == "f":
        x = np.concatenate([x, np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)])
        bits = x.view(f"i{x.itemsize}")
        wanted = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).astype(np.int64)
        assert list(np.argsort(wanted[-6:])) == [1, 3, 5, 4, 2, 0]
    else:
        wanted = (
            (x ^ np.uint64(1 << 63)).view(np.int64) if dtype == "uint64" else x.astype(np.int64)
        )
    check(sc.in_total_order, (x,), wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
@np.errstate(all="ignore")
def test_divisions_side_by_side_are_exact(check, dtype):
    """By doubles integers have the quotients and remainders that they have, multiples above all."""
    limits, draw = np.iinfo(dtype), np.random.default_rng(0)
    b = draw.integers(limits.min, limits.max, 4000, dtype, endpoint=True)
    b >>= draw.integers(0, limits.bits, 4000).astype(dtype)
    a = draw.integers(limits.min, limits.max, 4000, dtype, endpoint=True)
    whole = sc.div(a, b) * b  # a multiple, where there is one
    x, y = pairs(dtype)
    left, right = np.concatenate([x, a, whole]), np.concatenate([y, b, b])
    for fn in (sc.div, sc.rem):
        check(fn.abreast, (left, right), fn(left, right))


@np.errstate(all="ignore")
def test_remainders_of_floats_side_by_side_are_exact(check):
    """They are C's for any two numbers: multiples and their neighbours above all."""
    draw = np.random.default_rng(0)
    edges = samples("float32")
    x, y = (np.ravel(v) for v in np.meshgrid(edges, edges))
    a, b = draw.integers(0, 2**32, (2, 4000), np.uint32).view(np.float32)
    near = draw.uniform(0.01, 10, 4000).astype(np.float32)
    times = np.floor(np.exp2(draw.uniform(0, 40, 4000)))
    multiple = (near * times).astype(np.float32)
    others = (multiple, np.nextafter(multiple, np.inf, dtype=np.float32), -multiple)
    left = np.concatenate([x, a, *others, np.nextafter(multiple, 0, dtype=np.float32)])
    right = np.concatenate([y, b, *[near] * 4])
    want = np.fmod(left, right)
    check(sc.rem_abreast, (left, right), want)
    got = sc.rem_abreast(left, right)
    np.testing.assert_array_equal(np.signbit(got)[want == want], np.signbit(want)[want == want])


@pytest.mark.parametrize("dtype", FLOATS)
@np.errstate(all="ignore")
def test_remainders_by_powers_of_two_are_exact(check, dtype):
    """They are C's, zeros' signs too."""
    for power in (1.0, 256.0, 2.0**100):
        x = np.concatenate([samples(dtype), np.ldexp(samples(dtype), 5)])
        x, p = x.astype(dtype), np.full_like(x, power, dtype)
        want = np.fmod(x, p)
        check(sc.rem_by_power, (x, 1 / p, p), want)
        got = sc.rem_by_power(x, 1 / p, p)
        np.testing.assert_array_equal(np.signbit(got)[want == want], np.signbit(want)[want == want])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", "uint64"])
def test_mulhi(check, dtype):
    """High halves equal those of exact Python products."""
    x, y = pairs(dtype)
    bits = 8 * x.dtype.itemsize
    want = [(int(a) * int(b)) >> bits for a, b in zip(x, y, strict=True)]
    check(sc.mulhi, (x, y), np.array(want, dtype))


def test_half_formats_convert_exactly(check):
    """Every half loads exactly; every rounding boundary stores as ml_dtypes and NumPy round."""
    bits = np.arange(2**16, dtype=np.uint16)
    bfloat16 = jax.numpy.bfloat16
    for load, store, kind in (
        (sc.f16_load, sc.f16_store, np.float16),
        (sc.bf16_load, sc.bf16_store, bfloat16),
    ):
        exact = bits.view(kind).astype(np.float32)
        check(load, (bits,), exact)
        step = exact.view(np.uint32)
        ends = np.concatenate(
            [
                step,
                step + 0xFFF,
                step + 0x1000,
                step + 0x1001,
                step + 0x7FFF,
                step + 0x8000,
                step + 0x8001,
            ]
        ).view(np.float32)
        random = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
        x = np.concatenate([ends, random.view(np.float32), samples("float32")])
        x = x[x == x]
        with np.errstate(all="ignore"):
            check(store, (x,), x.astype(kind).view(np.uint16))
        nans = np.array([0x7F800001, 0xFF800001, 0x7FC00000], np.uint32).view(np.float32)
        assert np.isnan(store(nans).view(kind).astype(np.float32)).all()


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32"])
@pytest.mark.parametrize("n", [-3, 0, 1, 2, 7, 10])
def test_ipow(dtype, n):
    """Constant powers are built by the squarings of lax.integer_pow."""
    x = samples(dtype)
    if x.dtype.kind == "f":
        x = np.array([0.0, -0.0, 1.5, -2.5, 3.0, np.inf, -np.inf, np.nan], dtype)
    elif n < 0:
        with pytest.raises(TypeError, match="convert it to a float"):
            sc.ipow(x, n)
        return
    loop = numba.njit(error_model="numpy")(lambda v: sc.ipow(v, n)) if n else None
    want = np.asarray(lax.integer_pow(x, n))
    np.testing.assert_array_equal(sc.ipow(x, n), want)
    if loop is not None:
        np.testing.assert_array_equal(np.array([loop(v) for v in x], dtype), want)


def test_unsigned_index_and_flat_view():
    """`flat` shares the data of an array of any rank, and `u` indexes it, in both readings."""

    def double(a):
        v = sc.flat(a)
        for i in range(v.size):
            v[sc.u(i)] *= 2

    for shape in ((), (5,), (2, 3), (2, 0, 3)):
        for fn in (double, numba.njit(double)):
            a = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
            want = a * 2
            fn(a)
            np.testing.assert_array_equal(a, want)


def test_flat_refuses_what_it_could_only_copy():
    """A strided array has no flat view."""
    strided = np.zeros((4, 5))[:, ::2]
    with pytest.raises(ValueError, match="copy"):
        sc.flat(strided)
    with pytest.raises(numba.TypingError, match="C-contiguous"):
        numba.njit(lambda a: sc.flat(a))(strided)


def test_fused_multiply_add_rounds_once():
    """Both readings of fma keep the low half of the product."""
    fma = _ir.scalar(lambda a, b, c: _ir.fma(a, b, c))
    for dtype in FLOATS:
        a = np.dtype(dtype).type(1) + np.finfo(dtype).eps
        want = (a - 1) ** 2 + 2 * (a - 1)
        assert fma(a, a, dtype_one := np.dtype(dtype).type(-1)) == want
        assert numba.njit(lambda x, y, f=fma: f(x, x, y))(a, dtype_one) == want


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: sc.add(x, 1.5), "share one dtype"),
        (sc.floor, "no rule for int32"),
        (sc.f16_store, "takes float32"),
        (sc.bitcast_float64, "another width"),
    ],
)
def test_bad_operands_are_named(call, words):
    """Operands of wrong dtype are refused by name, before anything runs."""
    with pytest.raises(Exception, match=words):
        numba.njit(call)(np.int32(1)) if call.__name__ == "<lambda>" else call(np.int32(1))


def test_integer_literals_adopt_the_dtype_of_their_partner():
    """A Python integer beside an int8 is an int8."""
    for fn in (sc.shl, numba.njit(lambda x, y: sc.shl(x, 3))):
        assert int(fn(np.int8(33), 3)) == 8
