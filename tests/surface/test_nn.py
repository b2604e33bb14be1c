"""Activations and normalisations, against JAX."""

from __future__ import annotations

import numpy as np
import pytest

from fnarray import nn

from ..oracle import in_one

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
