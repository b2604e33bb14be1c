"""Activations and normalisations, against JAX."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

import fnarray
from fnarray import nn

from ..oracle import in_one

RNG = np.random.default_rng(5)

X = np.random.default_rng(0).normal(0, 3, (4, 6)).astype(np.float32)
X[0, :4] = [0, -1, 1, 3]
MASK = np.random.default_rng(1).random(X.shape) < 0.7
MASK[:, 0] = True

ACTIVATIONS = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
]
CALLS = [
    ("gelu", (X,), {"approximate": False}),
    ("celu", (X, 2.0), {}),
    ("elu", (X, 0.5), {}),
    ("leaky_relu", (X, 0.2), {}),
    ("squareplus", (X, 1), {}),
    ("glu", (X,), {"axis": 0}),
    ("log1mexp", (np.abs(X) + 0.01,), {}),
    ("softmax", (X,), {}),
    ("softmax", (X,), {"axis": (0, 1)}),
    ("softmax", (X,), {"axis": None}),
    ("softmax", (X,), {"where": MASK}),
    ("softmax", (np.full((2, 3), -1e30, np.float32),), {}),
    ("log_softmax", (X,), {"axis": 0}),
    ("log_softmax", (X,), {"where": MASK}),
    ("logsumexp", (X,), {}),
    ("logsumexp", (X,), {"axis": 1, "keepdims": True}),
    ("logsumexp", (X,), {"axis": (0,), "where": MASK}),
    ("logsumexp", (X,), {"b": X, "return_sign": True, "axis": 1}),
    ("logsumexp", (X,), {"b": -1.0}),
    ("logsumexp", (np.float32([-np.inf, -np.inf]),), {}),
    ("logsumexp", (np.float32([np.inf, 1]),), {}),
    ("logsumexp", ((X + 1j * X).astype(np.complex64),), {"axis": 0}),
    ("logmeanexp", (X,), {"axis": 1}),
    ("logmeanexp", (X,), {"axis": 1, "where": MASK, "keepdims": True}),
    ("standardize", (X,), {}),
    ("standardize", (X,), {"axis": 0, "algorithm": "stable"}),
    ("standardize", (X,), {"where": MASK}),
    ("standardize", (X,), {"mean": 1.0, "variance": 2.0, "epsilon": 0.1}),
    ("one_hot", (np.array([[0, 2], [5, -1]]), 3), {}),
    ("one_hot", (np.array([[0, 2], [1, 1]]), 3), {"axis": 0, "dtype": np.int8}),
    ("one_hot", (1, 3), {"dtype": bool}),
]


def same(got, want, rtol=2e-5, atol=2e-6):
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, rtol, atol)
        return
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.weak_type == want.weak_type
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        np.asarray(got).astype(wide), np.asarray(want).astype(wide), rtol=rtol, atol=atol
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name, jax):
    """Values, dtypes and weak types are JAX's, for arrays, half types and Python scalars."""
    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    half, whole = X.astype(np.float16), np.arange(-2, 4)
    same(ours(X), in_one(lambda: theirs(X)))
    same(ours(half), in_one(lambda: theirs(half)), rtol=4e-3, atol=4e-3)
    if name != "glu":
        same(ours(1.5), in_one(lambda: theirs(1.5)))
    if name not in ("glu", "sigmoid", "silu", "swish"):
        same(ours(whole), in_one(lambda: theirs(whole)))


@pytest.mark.parametrize(("name", "args", "params"), CALLS, ids=lambda v: v if v is str else None)
def test_call(name, args, params, jax):
    """Each combination of arguments gives JAX's result."""
    want = in_one(lambda: getattr(jax.nn, name)(*args, **params))
    same(getattr(nn, name)(*args, **params), want)


#: Numbers whose exponentials overflow, or are none; masks that take them out, or everything.
MASKED = [[1.0, 1000.0, 2.0], [1.0, np.inf, 2.0], [1.0, np.nan, 2.0], [1.0, -np.inf, 2.0]]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "logmeanexp"])
@pytest.mark.parametrize("where", [(True, False, True), (False, False, False)], ids=str)
def test_what_is_masked_does_not_count(name, where, jax):
    """Neither in values, nor in derivatives of any order, whatever it is."""
    where = np.array(where)
    for row in MASKED:
        x = np.float32(row)

        def losses(lib, x=x):
            f = getattr(lib.nn, name)
            numbers = lib.numpy.array([1.0, 2.0, 3.0])

            def loss(x):
                y = f(x, where=where)
                return lib.numpy.sum(lib.numpy.where(lib.numpy.isfinite(y), y * numbers, 0.0))

            return f(x, where=where), lib.grad(loss)(x)

        for got, want in zip(losses(fnarray), in_one(lambda: losses(jax)), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-5)
        second = fnarray.jit(fnarray.hessian(lambda x: nn.logsumexp(x, where=where)))(x)
        assert np.isfinite(np.asarray(second)).all()


HEADS = [
    {},
    {"is_causal": True},
    {"scale": 0.3, "local_window_size": (2, 1)},
    {"query_seq_lengths": np.array([5, 2]), "key_value_seq_lengths": np.array([7, 3])},
    {"bias": True},
    {"mask": True, "return_residual": True},
]


@pytest.mark.parametrize("params", HEADS, ids=str)
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_attention(params, key_heads, jax):
    """Grouped heads, masks, windows, lengths and residuals agree with JAX."""
    rng = np.random.default_rng(3)
    q = rng.normal(size=(2, 5, 4, 8)).astype(np.float32)
    k, v = rng.normal(size=(2, 2, 7, key_heads, 8)).astype(np.float32)
    params = dict(params)
    if params.get("bias"):
        params["bias"] = rng.normal(size=(1, 4, 5, 7)).astype(np.float32)
    if params.get("mask"):
        params["mask"] = rng.random((2, 1, 5, 7)) < 0.8
    want = in_one(lambda: jax.nn.dot_product_attention(q, k, v, **params))
    same(nn.dot_product_attention(q, k, v, **params), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: nn.relu([1.0]), TypeError, "list"),
        (lambda: nn.softmax("a"), TypeError, "position 0"),
        (lambda: nn.sigmoid(1), TypeError, "int32"),
        (lambda: nn.glu(X[:, :5]), ValueError, "even"),
        (lambda: nn.standardize(X, algorithm="best"), ValueError, "stable"),
        (lambda: nn.one_hot(np.array([0]), 3, axis=5), ValueError, "axis"),
        (lambda: nn.dot_product_attention(X, X, X), ValueError, "query"),
        (
            lambda: nn.dot_product_attention(
                *[np.ones((2, 3, 1, 4), np.float32)] * 3, implementation="cudnn"
            ),
            ValueError,
            "implementation",
        ),
    ],
)
def test_refuses(call, error, match):
    """Bad arguments are named in the error."""
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_operands_become_as_narrow_as_jaxs(mode):
    """Products are those of what JAX's quantized operands stand for, scales included."""
    oracle = pytest.importorskip("jax._src.cudnn.scaled_matmul_stablehlo")
    scale = np.array([0.5], np.float32) if mode == "nvfp4" else None
    config = nn.get_scaled_dot_general_config(mode, scale)
    theirs = jax.nn.get_scaled_dot_general_config(
        mode, scale if scale is None else jax.numpy.array(scale)
    )
    x, y = (RNG.normal(size=(2, n, 64)).astype(np.float32) * 3 for n in (3, 4))

    @partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": True})  # the other rounds
    def quantized(x):
        return oracle.quantize(x, theirs)

    def wide(x):
        data, scales = quantized(x)
        whole = np.asarray(data, np.float32) * np.asarray(scales, np.float32).repeat(
            config.block_size, -1
        )
        return whole * (1 if scale is None else scale)

    numbers = (((2,), (2,)), ((0,), (0,)))
    got = nn.scaled_dot_general(x, y, numbers, configs=[config] * 3)
    np.testing.assert_allclose(
        got, np.einsum("bik,bjk->bij", wide(x), wide(y)), rtol=1e-4, atol=1e-4
    )
    plain = nn.scaled_dot_general(x, y, numbers)
    np.testing.assert_allclose(plain, np.einsum("bik,bjk->bij", x, y), rtol=1e-4, atol=1e-4)
    assert not np.allclose(got, plain, atol=1e-3)


@pytest.mark.parametrize(
    ("shapes", "numbers"),
    [
        (((2, 3, 64), (2, 4, 64)), (((2,), (2,)), ((0,), (0,)))),
        (((3, 4, 5), (5, 2, 4)), (((1, 2), (2, 0)), ((), ()))),
        (((5, 2, 3), (3, 6, 5)), (((2,), (0,)), ((0,), (2,)))),
    ],
)
def test_gradients_of_narrow_products(shapes, numbers):
    """Where nothing is lost to rounding, gradients are those of `dot_general`."""
    config = nn.get_scaled_dot_general_config("mxfp8")
    x, y = (2.0 ** RNG.integers(-2, 3, s).astype(np.float32) for s in shapes)
    weights = np.float32(2) ** RNG.integers(0, 2, np.shape(fnarray.lax.dot_general(x, y, numbers)))

    def of(product):
        return fnarray.jit(fnarray.grad(lambda x, y: (product(x, y) * weights).sum(), (0, 1)))(x, y)

    got = of(lambda x, y: nn.scaled_dot_general(x, y, numbers, configs=[config] * 3))
    wanted = of(lambda x, y: fnarray.lax.dot_general(x, y, numbers))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_narrow_products_of_zeros_and_of_too_much():
    """Blocks of zeros are zeros; what no scale holds is clipped, and passes no gradient."""
    config = nn.get_scaled_dot_general_config("nvfp4")
    numbers = (((0,), (0,)), ((), ()))

    def product(x, y):
        return nn.scaled_dot_general(x, y, numbers, configs=[config] * 3)

    zeros, sixes = np.zeros(16, np.float32), np.full(16, 6, np.float32)
    assert product(zeros, sixes) == 0
    large = sixes * 1e5
    assert product(large, sixes) == 16 * 6 * 448 * 6
    np.testing.assert_array_equal(fnarray.grad(product)(large, sixes), zeros)
    # The gradient, 1, is 6 times a scale of three bits there: 1 / 6 to a thirty-second.
    np.testing.assert_allclose(fnarray.grad(product)(sixes, sixes), sixes, rtol=1 / 32)
    with pytest.raises(ValueError, match="must be three"):
        nn.scaled_dot_general(sixes, sixes, numbers, configs=[config])
    with pytest.raises(ValueError, match="'mxfp8' or 'nvfp4'"):
        nn.get_scaled_dot_general_config("int8")


def test_sigmoids_of_large_complex_numbers_are_finite():
    """Eager ones, too, which were NaN where the exponential is infinite."""
    z = np.array(
        [1e10 + 1e9j, -200 + 3j, -1e10 + 2j, 1e30 - 1e5j, -np.inf + 1j, 2 - 3j], np.complex64
    )
    want = np.array([1, 0, 0, 1, 0, 1 / (1 + np.exp(-(2 - 3j)))])
    for f in (nn.sigmoid, fnarray.jit(nn.sigmoid)):
        np.testing.assert_allclose(f(z), want, rtol=1e-6, atol=1e-30)
