"""Compare an expression over ``fnarray.numpy`` with the same expression over ``jax.numpy``.

Expressions are text, so that a table of them is short, and both sides run the same words. Names in
them are the arrays below, made anew for each side from the same NumPy values.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy
import ml_dtypes
import numpy as np

import fnarray.numpy

RNG = np.random.default_rng(0)
#: What the names in expressions stand for.
VALUES = {
    "f": (RNG.normal(size=(2, 3)) * 3).astype(np.float32),
    "g": (RNG.normal(size=(2, 3)) * 3).astype(np.float32),
    "p": RNG.uniform(0.1, 3, size=(2, 3)).astype(np.float32),
    "v": np.array([1.5, -2.5, 0.5], np.float32),
    "s": np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5], np.float32),
    "i": np.array([[7, -7, 3], [0, 5, -2]], np.int32),
    "j": np.array([[2, 3, -2], [4, -3, 1]], np.int32),
    "i8": np.array([100, -100, 3], np.int8),
    "u8": np.array([200, 1, 3], np.uint8),
    "b": np.array([[True, False, True], [False, False, True]]),
    "b2": np.array([[True, True, False], [False, True, True]]),
    "c": (RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))).astype(np.complex64),
    "d": (RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))).astype(np.complex64),
    "h": np.array([1.5, -2.25, 3.0], ml_dtypes.bfloat16),
    "e16": np.array([1.5, -2.25, 3.0], np.float16),
    "n": np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, -1.0]], np.float32),
    "empty": np.zeros((0, 3), np.float32),
}


def run(text: str, jnp, weak=None):
    """Evaluate an expression over a namespace; ``w`` is a weak scalar."""
    names = {k: jnp.asarray(v) for k, v in VALUES.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"jnp": jnp, "np": np, "w": jnp.asarray(2.0), **names})


def leaves(x):
    """Arrays of a result, in order."""
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple | list) else [x]


def compare(text: str, rtol: float = 2e-6, atol: float = 1e-6) -> None:
    """Assert that both sides agree: values, shape, dtype, weak type."""
    wanted, got = leaves(run(text, jax.numpy)), leaves(run(text, fnarray.numpy))
    assert len(wanted) == len(got), text
    for ours, theirs in zip(got, wanted, strict=True):
        if hasattr(theirs, "weak_type"):
            assert ours.dtype == theirs.dtype, f"{text}: {ours.dtype}, JAX {theirs.dtype}"
            # A bool promotes alike whether weak or not; JAX marks some.
            if theirs.dtype != bool:
                assert ours.weak_type == theirs.weak_type, f"{text}: weak {ours.weak_type}"
        a, b = np.asarray(ours), np.asarray(theirs)
        assert a.shape == b.shape, f"{text}: {a.shape}, JAX {b.shape}"
        if a.dtype.kind == "V" or a.dtype == np.float16:
            a, b = a.astype(np.float32), b.astype(np.float32)
            rtol = 1e-2
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=text)


def both_raise(text: str, kinds: tuple[type[Exception], ...]) -> str:
    """Assert that both sides raise one of some errors; return our message."""
    messages = []
    for jnp in (jax.numpy, fnarray.numpy):
        try:
            result = run(text, jnp)
        except kinds as error:
            messages.append(str(error))
        else:
            raise AssertionError(f"{text}: {jnp.__name__} raised nothing, gave {result!r}")
    return messages[1]
