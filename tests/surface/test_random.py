"""Random numbers, against JAX, in both orders of counters.

JAX's own floats depend on the processor: XLA contracts products with sums where there is an
instruction for it, and rounds halves at every step where there is arithmetic of halves. Ours do so
alike everywhere.
So JAX is asked for what no processor changes, its bits and what is made of them by exact steps;
halves are compared with exact arithmetic on those bits; and where single precision follows XLA's
roundings, JAX's results on a processor that contracts (any x86-64 since 2013) are recorded.
"""

from __future__ import annotations

import hashlib
import pickle
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import fnarray
from fnarray import lax, random
from fnarray import numpy as jnp
from fnarray.config import threefry_partitionable
from fnarray.ops.random_bits import random_bits, random_split, threefry2x32


@pytest.fixture(params=[True, False], ids=["partitionable", "original"])
def scheme(request, jax):
    """Run a test under one order of counters, here and in JAX."""
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", request.param)
    with threefry_partitionable(request.param):
        yield request.param
    jax.config.update("jax_threefry_partitionable", before)


def check(jax, name, args=(), kwargs=None, *, rtol=0.0, seed=42):
    """Assert that a draw equals JAX's: shape, dtype, weak type and values."""
    kwargs = kwargs or {}
    want = getattr(jax.random, name)(jax.random.key(seed), *args, **kwargs)
    got = getattr(random, name)(random.key(seed), *args, **kwargs)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    assert not got.weak_type
    wide = np.complex128 if np.dtype(want.dtype).kind == "c" else np.float64
    got, want = (np.asarray(x).astype(wide) for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


ROW = np.array([0.3, 1.0, 2.5, 20.0], np.float32)
TABLE = np.arange(12).reshape(3, 4)
P = np.array([0.1, 0.2, 0.3, 0.2, 0.2], np.float32)
LOGITS = np.log(np.random.default_rng(0).random((3, 4))).astype(np.float32)

EXACT = [
    ("bits", ((5,),), {}),
    ("bits", ((5,), "uint8"), {}),
    ("bits", ((2, 3), "uint16"), {}),
    ("bits", ((0, 3),), {}),
    ("uniform", (), {}),
    ("uniform", ((3, 5),), {}),
    ("uniform", ((50,), "float16"), {}),
    ("uniform", ((50,), "bfloat16"), {}),
    ("uniform", ((4,), "float32", 0.0, ROW), {}),
    ("randint", ((50,), 0, 10), {}),
    ("randint", ((50,), -128, 128, "int8"), {}),
    ("randint", ((50,), 0, 300, "uint8"), {}),
    ("randint", ((50,), 0, 2**31 - 1, "uint32"), {}),
    ("randint", ((50,), -(2**31), 2**31 - 1), {}),
    ("randint", ((3,), np.arange(3), np.arange(3) + 7), {}),
    ("randint", ((5,), 5, 5), {}),
    ("randint", ((50,), 0.5, 9.7), {}),
    ("bernoulli", (), {}),
    ("bernoulli", (ROW / 20,), {}),
    ("bernoulli", (0.3, (50,), "high"), {}),
    ("rademacher", ((9,),), {}),
    ("permutation", (10,), {}),
    ("permutation", (TABLE,), {}),
    ("permutation", (TABLE, 1, True), {}),
    ("permutation", (2000,), {}),
    ("choice", (5, (3, 2)), {}),
    ("choice", (5, (3,), False), {}),
    ("choice", (TABLE, (5, 2)), {}),
    ("choice", (TABLE, (3,)), {"replace": False, "axis": 1}),
    ("choice", (5, (7,)), {"p": P}),
    ("choice", (5, (3,), False), {"p": P}),
    ("choice", (5, (0,)), {}),
    ("categorical", (LOGITS,), {}),
    ("categorical", (LOGITS, 0), {}),
    ("categorical", (LOGITS, 1, (6, 3)), {}),
    ("categorical", (LOGITS, -1, (2, 3), False), {}),
    ("categorical", (LOGITS, -1, None, False), {}),
    ("geometric", (0.3, (50,)), {}),
]

# In XLA's roundings. Digests of JAX 0.10's results from the key of seed 42, on a processor with
# fused multiply-add, in the partitionable and in the original order: `digest` makes them.
ROUNDED = [
    ("uniform", ((50,), "float32", -2.5, 3.1), {}, "80fa56db26a2cb14", "107cda675aeb43b9"),
    ("normal", ((300,),), {}, "9140e04d3a75382a", "6f971c32801e0baa"),
    ("exponential", ((50,),), {}, "24924af769c1ce7f", "068ca6722d5a78ff"),
    ("laplace", ((50,),), {}, "8a4d39045832fc17", "eb2f2e7b6a91b964"),
    ("logistic", ((50,),), {}, "4e827515467ec6db", "cc1619a9aea5b833"),
    ("gumbel", ((50,),), {}, "4060c6e377bf7b10", "9cc9d74175bd80b9"),
    ("gumbel", ((50,),), {"mode": "high"}, "c585c7188e074da7", "8b5a43931f5987f4"),
    ("gumbel", ((50,),), {"mode": "highest"}, "1e99141a24e7806a", "f0d59b7e293c2df0"),
]

CLOSE = [
    ("truncated_normal", (-1.0, 2.0, (50,)), {}),
    ("normal", ((50,), "complex64"), {}),
    ("cauchy", ((50,),), {}),
    ("maxwell", ((50,),), {}),
    ("double_sided_maxwell", (1.0, 2.0, (5,)), {}),
    ("lognormal", (2.0, (5,)), {}),
    ("pareto", (ROW,), {}),
    ("rayleigh", (np.float32(2), (50,)), {}),
    ("weibull_min", (2.0, 3.0, (50,)), {}),
    ("wald", (np.float32(2), (50,)), {}),
    ("triangular", (0.0, 0.3, 1.0, (50,)), {}),
]


# Loops: compiling them, here and in JAX, is what takes the time.
REJECTING = [
    ("poisson", (np.array([0, 0.5, 9, 11, 1000, np.nan], np.float32),), {}),
    ("binomial", (100.0, np.array([0, 0.01, 0.3, 0.7, 1, -0.1, np.nan], np.float32)), {}),
    ("multinomial", (100, np.array([0.2, 0.3, 0.5], np.float32)), {}),
    ("beta", (0.5, 2.0, (20,)), {}),
    ("t", (3.0, (20,)), {}),
    ("loggamma", (0.05, (20,)), {}),
    ("gamma", (ROW,), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), EXACT)
def test_equals_jax(jax, scheme, name, args, kwargs):
    """What is made of bits by exact steps is JAX's, bit for bit."""
    check(jax, name, args, kwargs)


def digest(x) -> str:
    """Digest of single-precision numbers: equal for equal bits."""
    return hashlib.sha256(np.asarray(x, "<f4").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(("name", "args", "kwargs", "partitionable", "original"), ROUNDED)
def test_rounded_as_xla(jax, scheme, name, args, kwargs, partitionable, original):
    """Bit for bit what JAX gives where products and sums contract; near what it gives here."""
    check(jax, name, args, kwargs, rtol=2e-6)
    ours = getattr(random, name)(random.key(42), *args, **kwargs)
    assert digest(ours) == (partitionable if scheme else original)


# --- halves, in exact arithmetic ------------------------------------------------------------------

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def rounded(x: Fraction, digits: int) -> Fraction:
    """Return the nearest number of so many binary digits, the even one of two."""
    if not x:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - digits + 1)
    return round(x / unit) * unit


def exact_uniform(jax, dtype, shape, low, high):
    """Uniform halves of JAX's bits, step by step, each as exact as is promised.

    In float16 product and sum are one step, rounded to single precision and then to half;
    in bfloat16 each is rounded.
    """
    digits = ml_dtypes.finfo(dtype).nmant + 1
    width = 8 if digits <= 8 else 16
    bits = np.asarray(jax.random.bits(jax.random.key(42), shape, f"uint{width}"))
    low, high = (Fraction(float(dtype.type(x))) for x in (low, high))
    span = rounded(high - low, digits)
    out = np.empty(shape, np.float64)
    for place, word in np.ndenumerate(bits):
        unit = Fraction(int(word) >> (width - digits + 1), 2 ** (digits - 1))
        first = (lambda x: x) if dtype == np.float16 else (lambda x: rounded(x, digits))
        second = (lambda x: rounded(x, 24)) if dtype == np.float16 else (lambda x: x)
        out[place] = max(low, rounded(second(first(unit * span) + low), digits))
    return out


@pytest.mark.parametrize("bounds", [(-2.5, 3.1), (0.0, 0.3), (-1.0, 1.0)])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_uniform_halves_are_exact_steps(jax, scheme, dtype, bounds):
    """The bits are JAX's; what is made of them is exact arithmetic, rounded where promised."""
    got = random.uniform(random.key(42), (200,), dtype, *bounds)
    assert (got.dtype, got.weak_type) == (dtype, False)
    want = exact_uniform(jax, dtype, (200,), *bounds)
    np.testing.assert_array_equal(np.asarray(got).astype(np.float64), want)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_normal_halves(jax, scheme, dtype):
    """Within two units in the last place of the quantiles of those uniform numbers."""
    got = random.normal(random.key(42), (300,), dtype)
    assert (got.dtype, got.weak_type) == (dtype, False)
    low = float(np.nextafter(dtype.type(-1), dtype.type(0)))
    want = np.sqrt(2) * scipy.special.erfinv(exact_uniform(jax, dtype, (300,), low, 1.0))
    unit = np.spacing(np.abs(want).astype(dtype)).astype(np.float64)
    assert (np.abs(np.asarray(got).astype(np.float64) - want) <= 2 * unit).all()


@pytest.mark.parametrize(("name", "args", "kwargs"), CLOSE)
def test_close_to_jax(jax, scheme, name, args, kwargs):
    """What goes through elementary functions is JAX's up to their last places."""
    check(jax, name, args, kwargs, rtol=2e-5)


@pytest.mark.parametrize(("name", "args", "kwargs"), REJECTING)
def test_rejection_close_to_jax(jax, name, args, kwargs):
    """Samplers that reject proposals accept JAX's."""
    check(jax, name, args, kwargs, rtol=2e-5)


def test_gamma_in_original_order(jax):
    """The order of counters holds in the loops of a sampler too."""
    key, old = jax.random.key(42), jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", False)
    want = jax.random.gamma(key, ROW)
    jax.config.update("jax_threefry_partitionable", old)
    with threefry_partitionable(False):
        got = random.gamma(random.key(42), ROW)
    np.testing.assert_allclose(got, want, rtol=2e-5)


@pytest.mark.parametrize("name", ["uniform", "bits", "randint", "normal", "exponential"])
def test_wide_equals_jax(jax, scheme, x64, name):
    """64-bit numbers draw both words of a block."""
    args = {"bits": ((7,),), "randint": ((7,), -5, 2**40)}.get(name, ((2, 3), "float64"))
    with jax.enable_x64(True):
        check(jax, name, args, rtol=2e-14 if name in ("normal", "exponential") else 0.0)


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("normal", "5ffec19e8078af29"),
        ("exponential", "937d5c8cdacdd956"),
        ("gumbel", "4543b9a2d5fa0dea"),
        ("logistic", "792b0ed0d9cb5d01"),
    ],
)
def test_many_equal_jax(jax, name, recorded):
    """Single-precision samples follow XLA's logarithms into the tails, compiled or not."""
    draw = lambda k: getattr(random, name)(k, (100_000,))  # noqa: E731
    want = getattr(jax.random, name)(jax.random.key(3), (100_000,))
    for got in (draw(random.key(3)), fnarray.jit(draw)(random.key(3))):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
        assert digest(got) == recorded


@pytest.mark.parametrize(
    ("partitionable", "first"), [(True, [1.6226422, 2.0252647]), (False, [0.36753944, -0.9082042])]
)
def test_documented_values(partitionable, first):
    """The numbers that documentation and tutorials show."""
    with threefry_partitionable(partitionable):
        x = random.normal(random.key(0), (2, 3, 4))
    np.testing.assert_array_equal(np.asarray(x[0, 0, :2]), np.float32(first))


def test_known_answers():
    """Test vectors of the paper's reference implementation."""
    words = [(0, 0, 0, 0), (2**32 - 1,) * 4, (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)]
    out = threefry2x32(*np.array(words, np.uint32).T)
    want = [(0x6B200159, 0x99BA4EFE), (0x1CB996FC, 0xBB002BE7), (0xC4923A9C, 0x483DF7A0)]
    np.testing.assert_array_equal(np.stack(out, -1), np.array(want, np.uint32))


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 42, -1, True, 2**31, 2**40 + 7, np.uint8(200), np.int16(-3)])
def test_key_equals_jax(jax, seed):
    """Seeds of any width make JAX's keys."""
    want = jax.random.key_data(jax.random.key(seed))
    np.testing.assert_array_equal(random.key_data(random.key(seed)), want)
    np.testing.assert_array_equal(random.PRNGKey(seed), want)


def test_wide_seed_equals_jax(jax, x64):
    """Under enable_x64 the high word of a seed counts."""
    with jax.enable_x64(True):
        for seed in (2**40 + 7, -1):
            want = jax.random.key_data(jax.random.key(seed))
            np.testing.assert_array_equal(random.key_data(random.key(seed)), want)


@pytest.mark.parametrize("num", [2, 1, 3, 0, (2, 3)])
def test_split_equals_jax(jax, scheme, num):
    """Split makes JAX's keys, typed or not as the key it is given."""
    want = jax.random.key_data(jax.random.split(jax.random.key(7), num))
    typed, legacy = random.split(random.key(7), num), random.split(random.PRNGKey(7), num)
    assert isinstance(typed, random.PRNGKeyArray)
    assert legacy.dtype == np.uint32
    np.testing.assert_array_equal(random.key_data(typed), want)
    np.testing.assert_array_equal(legacy, want)


def test_fold_in_equals_jax(jax, scheme):
    """Folding in an integer makes JAX's key."""
    want = jax.random.key_data(jax.random.fold_in(jax.random.key(7), 99))
    np.testing.assert_array_equal(random.key_data(random.fold_in(random.key(7), 99)), want)
    np.testing.assert_array_equal(random.fold_in(random.PRNGKey(7), np.int32(99)), want)


def test_key_is_a_scalar():
    """A key has the shape, dtype, size and printed form of JAX's."""
    key = random.key(0)
    assert (key.shape, key.ndim, key.size, key.nbytes) == ((), 0, 1, 8)
    assert str(key.dtype) == "key<fry>"
    assert key.dtype == random.key_dtype()
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert isinstance(key, fnarray.Array)
    assert random.key_impl(key) == "threefry2x32"


def test_key_arrays_move_as_arrays_do():
    """Indexing, reshaping, iterating and comparing keys act on whole keys."""
    keys = random.split(random.key(0), (2, 3))
    assert keys[1].shape == (3,)
    assert keys[..., 0].shape == (2,)
    assert keys[None, :, 1:].shape == (1, 2, 2)
    assert keys.T.shape == (3, 2)
    assert keys.reshape(-1).shape == (6,) == keys.flatten().shape
    assert len(list(keys)) == 2
    assert bool((keys.reshape(3, 2).reshape(2, 3) == keys).all())
    assert bool((keys[0] != keys[1]).all())
    assert bool((keys.at[0].set(keys[1])[0] == keys[1]).all())
    assert bool(random.wrap_key_data(random.key_data(keys))[1, 2] == keys[1, 2])
    assert bool((pickle.loads(pickle.dumps(keys)) == keys).all())


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda k: k + 1, TypeError),
        (lambda k: 2 * k, TypeError),
        (lambda k: -k, TypeError),
        (lambda k: k < k, TypeError),
        (lambda k: k == 1, TypeError),
        (lambda k: lax.add(k, 1), TypeError),
        (lambda k: jnp.sin(k), TypeError),
        (lambda k: fnarray.jit(lambda x: x * 2)(k), TypeError),
        (np.asarray, TypeError),
        (bool, TypeError),
        (float, TypeError),
        (hash, TypeError),
        (len, TypeError),
        (lambda k: k[0], IndexError),
        (lambda k: random.key(k), TypeError),
        (lambda k: random.key(1.5), TypeError),
        (lambda k: random.key(np.arange(3)), TypeError),
        (lambda k: random.key(2**63), OverflowError),
        (lambda k: random.key(0, impl="other"), ValueError),
        (lambda k: random.normal(0), TypeError),
        (lambda k: random.normal(None), TypeError),
        (lambda k: random.normal([0, 1]), TypeError),
        (lambda k: random.normal(jnp.zeros(2)), TypeError),
        (lambda k: random.normal(np.zeros(3, np.uint32)), TypeError),
        (lambda k: random.normal(np.zeros((3, 2), np.uint32)), ValueError),
        (lambda k: random.split(random.split(k)), ValueError),
        (lambda k: random.split(k, 2.5), TypeError),
        (lambda k: random.split(k, -1), ValueError),
        (lambda k: random.fold_in(k, -1), OverflowError),
        (lambda k: random.fold_in(k, np.arange(2)), TypeError),
        (lambda k: random.wrap_key_data(jnp.zeros(2)), TypeError),
        (lambda k: random.normal(k, (2, -1)), TypeError),
        (lambda k: random.normal(k, (2.0,)), TypeError),
        (lambda k: random.normal(k, (2,), int), ValueError),
        (lambda k: random.uniform(k, (2,), minval=np.zeros(3)), TypeError),
        (lambda k: random.bits(k, (2,), "int32"), ValueError),
        (lambda k: random.bernoulli(k, 1), TypeError),
        (lambda k: random.bernoulli(k, np.zeros(3, np.float32), (2,)), ValueError),
        (lambda k: random.bernoulli(k, mode="other"), ValueError),
        (lambda k: random.randint(k, (2,), 0, 3, float), TypeError),
        (lambda k: random.randint(k, (2,), 0, 2**40), OverflowError),
        (lambda k: random.permutation(k, 1.5), TypeError),
        (lambda k: random.choice(k, 0), ValueError),
        (lambda k: random.choice(k, 3, 3), TypeError),
        (lambda k: random.choice(k, 3, (5,), replace=False), ValueError),
        (lambda k: random.choice(k, 3, p=jnp.ones(2)), ValueError),
        (lambda k: random.gamma(k, np.ones(3), (2,)), ValueError),
        (lambda k: random.poisson(k, 3.0, dtype=float), ValueError),
    ],
)
def test_bad_input_is_an_error(wrong, error):
    """Misuse raises the type of error that JAX raises."""
    with pytest.raises(error):
        wrong(random.key(0))


# --- compiled -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_compiled_bits_equal_evaluated(scheme, width):
    """Kernels hash as NumPy does, for one key and for several."""
    keys = random.key_data(random.split(random.key(1), 3))
    for words in (keys[0], keys):
        draw = lambda k: random_bits(k, width, (5, 3))  # noqa: E731
        np.testing.assert_array_equal(fnarray.jit(draw)(words), draw(words))


def test_batches_equal_single_draws(scheme):
    """Keys in leading axes draw what each of them draws alone."""
    keys = random.key_data(random.split(random.key(1), 3))
    alone = np.stack([random_split(k, (4,)) for k in keys])
    np.testing.assert_array_equal(random_split(keys, (4,)), alone)


def test_draws_inside_loops(scheme):
    """A scan that carries a typed key draws what a Python loop does."""

    def step(key, _):
        key, sub = random.split(key)
        return key, (random.bits(sub), random.uniform(sub, (3,)))

    key, rows = random.key(5), []
    for _ in range(4):
        key, row = step(key, None)
        rows.append(row)
    last, (words, floats) = fnarray.jit(lambda k: lax.scan(step, k, None, length=4))(random.key(5))
    assert bool(last == key)
    np.testing.assert_array_equal(words, np.stack([w for w, _ in rows]))
    np.testing.assert_array_equal(floats, np.stack([f for _, f in rows]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_compiled_normal_equals_evaluated(dtype):
    """Compiled and evaluated normal numbers agree to two units in the last place."""
    draw = lambda k: random.normal(k, (1000,), dtype)  # noqa: E731
    got, want = (np.asarray(f(random.key(9))) for f in (fnarray.jit(draw), draw))
    bits = np.int32 if dtype == "float32" else np.int16
    assert np.abs(got.view(bits).astype(int) - want.view(bits)).max() <= 2


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: random.bits(k, (7, 3)),
        lambda k: random.uniform(k, (300,), "float32", -3, 2),
        lambda k: random.uniform(k, (300,), "float64", -3, 2),
        lambda k: random.normal(k, (300,)),
        lambda k: random.normal(k, (300,), "float64"),
        lambda k: random.normal(k, (300,), "bfloat16"),
        lambda k: random.normal(k, (300,), "complex64"),
        lambda k: random.randint(k, (300,), -5, 1000),
        lambda k: random.bernoulli(k, 0.37, (300,)),
        lambda k: random.rademacher(k, (300,)),
        lambda k: random.exponential(k, (300,)),
        lambda k: random.laplace(k, (300,)),
        lambda k: random.logistic(k, (300,)),
        lambda k: random.gumbel(k, (300,), mode="high"),
        lambda k: random.rayleigh(k, 2.0, (300,)),
        lambda k: random.wald(k, 2.0, (300,)),
        lambda k: random.triangular(k, 0, 0.3, 1, (300,)),
        lambda k: random.categorical(k, np.arange(9, dtype=np.float32), shape=(300,)),
        lambda k: random.choice(k, 9, (300,), p=np.full(9, 1 / 9, np.float32)),
        lambda k: random.permutation(k, 300),
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_repeated_draws_are_the_same_bits(draw, wide):
    """The third call and later ones may run compiled: nobody can tell."""
    with fnarray.enable_x64(wide):
        key = random.key(4)
        first, *others = (np.asarray(draw(key)).tobytes() for _ in range(5))
    assert all(other == first for other in others)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_compiled_uniform_bounds_equal_evaluated(dtype):
    """The product with the span is fused with the sum in kernels and in NumPy alike."""
    draw = lambda k: random.uniform(k, (1000,), dtype, -2.5, 3.1)  # noqa: E731
    np.testing.assert_array_equal(fnarray.jit(draw)(random.key(9)), draw(random.key(9)))


def test_traced_length_is_an_error():
    """A permutation of a traced number of elements has no shape."""
    with pytest.raises(fnarray.errors.ConcretizationTypeError, match="permutation"):
        fnarray.jit(lambda n: random.permutation(random.key(0), n))(3)


def test_jit_of_keys_compiles_once():
    """New keys and seeds reuse the compiled function; keys are returned typed."""
    draw = fnarray.jit(lambda s: random.split(random.key(s)))
    for seed in (0, 1):
        assert bool((draw(seed) == random.split(random.key(seed))).all())
