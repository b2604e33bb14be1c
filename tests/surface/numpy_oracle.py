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

from ..oracle import in_one

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


def run(text: str, jnp, names=None):
    """Evaluate an expression over a namespace; ``w`` is a weak scalar."""
    names = names or {k: jnp.asarray(v) for k, v in VALUES.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w = 2.0 if jnp is np else jnp.asarray(2.0)
        with np.errstate(all="ignore"):
            return eval(text, {"jnp": jnp, "np": np, "w": w, **names})


def leaves(x):
    """Arrays of a result, in order."""
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple | list) else [x]


def compare(text: str, rtol: float = 2e-6, atol: float = 1e-6, values: str = "jax") -> None:
    """Assert that an expression gives JAX's types, and the values of JAX or of NumPy.

    JAX compiles each operation at its first use, which takes most of the time of such tests; its
    types alone come at no such cost, and NumPy has the values of most expressions.

    Parameters
    ----------
    values : {"jax", "numpy", "types only"}
    """
    got = leaves(run(text, fnarray.numpy))
    types = leaves(jax.eval_shape(lambda: run(text, jax.numpy)))
    oracle = {"jax": jax.numpy, "numpy": np, "types only": fnarray.numpy}[values]
    if values == "jax":
        names = {k: oracle.asarray(v) for k, v in VALUES.items()}
        wanted = leaves(in_one(lambda names: run(text, oracle, names), names))
    else:
        wanted = leaves(run(text, oracle))
    assert len(types) == len(got), text
    for ours, kind, theirs in zip(got, types, wanted, strict=True):
        assert ours.shape == kind.shape, f"{text}: {ours.shape}, JAX {kind.shape}"
        assert ours.dtype == kind.dtype, f"{text}: {ours.dtype}, JAX {kind.dtype}"
        # A bool promotes alike whether weak or not; JAX marks some.
        if kind.dtype != bool:
            assert ours.weak_type == kind.weak_type, f"{text}: weak {ours.weak_type}"
        a, b = np.asarray(ours), np.asarray(theirs)
        if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
            a, b, rtol = a.astype(np.float32), b.astype(np.float32), 1e-2
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
