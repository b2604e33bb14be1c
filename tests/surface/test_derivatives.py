"""Derivatives and maps of what ``fnarray.numpy`` and ``fnarray.nn`` compose agree with JAX."""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.nn
import fnarray.numpy
import fnarray.scipy.special
from fnarray.core.tangents import differentiable

_rng = np.random.default_rng(0)
#: What the names in expressions stand for; ``t`` has ties and zeros.
VALUES = {
    "x": _rng.normal(size=(3, 4)).astype(np.float32),
    "y": _rng.normal(size=(3, 4)).astype(np.float32),
    "p": _rng.uniform(0.2, 2, (3, 4)).astype(np.float32),
    "v": _rng.normal(size=6).astype(np.float32),
    "k": _rng.normal(size=3).astype(np.float32),
    "sq": _rng.normal(size=(4, 4)).astype(np.float32),
    "m": _rng.normal(size=(4, 5)).astype(np.float32),
    "cube": _rng.normal(size=(2, 3, 4)).astype(np.float32),
    "t": np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, 1, -1, 2]], np.float32),
    "z": np.zeros((3, 4), np.float32),
    "c": (_rng.normal(size=(3, 4)) + 1j * _rng.normal(size=(3, 4))).astype(np.complex64),
    "h": _rng.normal(size=(3, 4)).astype(np.float16),
}

FEW = """
jnp.mean(x, axis=1, where=x > -0.5)
jnp.var(c)
jnp.std(x, axis=0)
jnp.std(z)
jnp.max(t, axis=1)
jnp.max(x, axis=1, where=x < 1, initial=-1.)
jnp.prod(t, axis=1)
jnp.cumsum(h, axis=0)
jnp.cumprod(t, axis=1)
lax.cumlogsumexp(x, 1)
lax.cummax(x, 1)
sp.logsumexp(x, axis=0, b=y, return_sign=True)
nn.softmax(x, where=y > -1)
nn.log_softmax(x, axis=0)
nn.standardize(x)
jnp.einsum('bij,jk,ik->bk', cube, m, m[:3])
jnp.einsum('ii->i', sq)
jnp.tensordot(cube, x, ((1,), (0,)))
jnp.matmul(cube, m)
jnp.vdot(c, c)
jnp.kron(x, y)
jnp.cross(x[:, :3], y[:, :3])
jnp.convolve(v, k, mode='same')
jnp.correlate(v, k)
jnp.linalg.norm(x, axis=1)
jnp.linalg.norm(z)
jnp.linalg.norm(c, axis=1)
x * jnp.argmax(x)
jnp.median(t, axis=0)
jnp.quantile(x, 0.3, axis=1)
jnp.sort(t, axis=0)
jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
jnp.nanmax(t, axis=1)
jnp.cov(x, y)
jnp.trapezoid(x, p, axis=0)
jnp.logaddexp(x, y)
jnp.logaddexp2(t, t)
jnp.frexp(x)
jnp.ldexp(x, 3)
jnp.where(z > 0, jnp.sqrt(z), 0.)
nn.relu(z)
nn.relu6(z)
nn.softplus(z)
nn.celu(z)
nn.gelu(x)
nn.dot_product_attention(cube[None], cube[None], cube[None], is_causal=True)
"""

MANY = """
jnp.interp(x, np.linspace(-2, 2, 6), v)
jnp.sum(x)
jnp.sum(x, axis=1)
jnp.sum(x, axis=(0,), keepdims=True)
jnp.sum(x, where=x > 0)
jnp.sum(h, axis=0)
jnp.mean(x)
jnp.mean(x, axis=0)
jnp.mean(h)
jnp.var(x)
jnp.var(x, axis=1, ddof=1)
jnp.std(x)
jnp.std(c, axis=0)
jnp.max(x)
jnp.max(t)
jnp.min(t, axis=0)
jnp.amax(x, axis=0, initial=0.2)
jnp.prod(x)
jnp.prod(z)
jnp.prod(x, axis=0, where=y > 0)
jnp.prod(c, axis=0)
jnp.cumsum(x, axis=1)
jnp.cumsum(x)
jnp.cumprod(x)
jnp.nancumsum(x, axis=0)
jnp.nancumprod(x, axis=0)
lax.cummin(t, 0, True)
nn.logsumexp(x)
nn.logsumexp(x, axis=1)
nn.logsumexp(t, axis=1, keepdims=True)
nn.logsumexp(x, axis=0, b=y)
nn.logsumexp(c)
nn.logmeanexp(x, axis=1)
nn.softmax(x)
nn.softmax(x, axis=0)
nn.softmax(x, axis=(0, 1))
nn.softmax(h)
nn.log_softmax(x)
nn.log_softmax(x, where=y > -1)
nn.standardize(x, axis=0, epsilon=1e-3)
jnp.einsum('ij,jk->ik', x, m)
jnp.einsum('ij,ij->', x, y)
jnp.einsum('ij,ij->i', x, y)
jnp.einsum('ij->ji', x)
jnp.einsum('ii', sq)
jnp.einsum('...ij,jk', cube, m)
jnp.tensordot(cube, x, 2)
jnp.matmul(x, m)
jnp.matmul(sq, sq)
cube @ m
jnp.matmul(x, y[0])
jnp.dot(x, m)
jnp.dot(cube, m)
jnp.dot(x[0], y[1])
jnp.vdot(x, y)
jnp.inner(x, y)
jnp.outer(x, y)
jnp.vecdot(x, y)
jnp.vecdot(c, c)
jnp.trace(sq)
jnp.convolve(v, k)
jnp.convolve(v, k, mode='valid')
jnp.correlate(v, k, mode='full')
jnp.linalg.norm(x)
jnp.linalg.norm(x, ord=1, axis=1)
jnp.linalg.norm(x, ord=np.inf, axis=1)
jnp.linalg.norm(x, ord=3, axis=0)
jnp.linalg.norm(x, ord='fro')
jnp.linalg.norm(t, ord=1)
jnp.linalg.norm(t, ord=np.inf)
jnp.linalg.norm(t, ord=-np.inf, axis=0)
jnp.linalg.norm(c)
jnp.linalg.vector_norm(x)
jnp.linalg.matrix_norm(x)
jnp.linalg.multi_dot([x, m, m.T])
jnp.linalg.matrix_power(sq, 3)
jnp.take_along_axis(x, jnp.argmin(x, axis=1, keepdims=True), axis=1)
jnp.median(x)
jnp.median(x, axis=1)
jnp.nanmedian(x, axis=0)
jnp.quantile(x, 0.3)
jnp.quantile(x, np.array([0.1, 0.6], 'f'), axis=0)
jnp.quantile(x, 0.3, method='nearest')
jnp.quantile(x, 0.3, method='lower', axis=0)
jnp.quantile(x, 0.3, method='midpoint', axis=0)
jnp.percentile(x, 40., axis=1)
jnp.nanquantile(x, 0.4, axis=1)
jnp.sort(x)
jnp.sort(x, axis=None)
jnp.sort(x, descending=True)
jnp.partition(x, 2)
x[jnp.argsort(x[:, 0])]
jnp.lexsort((x, y)) * x
jnp.ptp(x, axis=1)
jnp.average(x, axis=0, weights=p)
jnp.average(x, weights=p, axis=1, returned=True)
jnp.cov(x)
jnp.cov(c)
jnp.corrcoef(x)
jnp.nansum(x, axis=0)
jnp.nanmean(x, axis=0)
jnp.nanvar(x, axis=0)
jnp.nanstd(x)
jnp.nanmin(t, axis=1)
jnp.nanprod(t, axis=1)
jnp.diff(x)
jnp.diff(x, n=2, axis=0)
jnp.gradient(x)
jnp.gradient(v)
jnp.ediff1d(x)
jnp.trapezoid(x)
jnp.interp(x, np.arange(4.), v[:4])
jnp.polyval(k, x)
jnp.polyfit(np.arange(6.), v, 2)
jnp.histogram(x, bins=4, weights=p)
jnp.bincount(np.array([0, 1, 1, 2, 4, 0]), weights=v, length=5)
jnp.count_nonzero(x) * x
jnp.digitize(x, np.array([0., 1.])) * x
jnp.logaddexp2(x, y)
jnp.logaddexp.reduce(x, axis=1)
jnp.add.reduce(x, axis=1)
jnp.add.accumulate(x, axis=1)
jnp.multiply.reduce(x, axis=0)
jnp.maximum.reduce(t, axis=1)
jnp.add.outer(x, y)
jnp.multiply.at(x, np.array([0, 2]), 3.0, inplace=False)
jnp.add.at(x, np.array([0, 0]), 3.0, inplace=False)
jnp.add.reduceat(v, np.array([0, 2, 4]))
jnp.where(x > 0, x, y)
jnp.clip(x, -0.5, 0.5)
jnp.maximum(t, 2.)
jnp.minimum(x, y)
jnp.maximum(z, z)
jnp.heaviside(x, y)
jnp.abs(z)
jnp.abs(c)
jnp.angle(c)
jnp.real(c * c)
jnp.hypot(x, y)
jnp.sinc(x)
jnp.sinc(z)
jnp.i0(x)
jnp.unwrap(3 * x)
jnp.cbrt(p)
jnp.exp2(x)
jnp.power(p, x)
p ** 2
x ** 3
x ** 0
p ** -1.5
jnp.float_power(p, x)
jnp.fmod(x, p)
jnp.mod(x, p)
jnp.remainder(x, p)
jnp.divmod(x, p)
jnp.modf(x)
jnp.nan_to_num(x)
jnp.select([x > 0.5, x > -0.5], [x, y], 0.)
jnp.piecewise(x, [x > 0, x < -1], [lambda q: q * 2, lambda q: q ** 2, 1.])
jnp.take(x, np.array([0, 2, 2]), axis=1)
jnp.roll(x, 1, axis=1)
jnp.flip(x)
jnp.rot90(x)
jnp.pad(x, 1)
jnp.pad(x, 1, mode='reflect')
jnp.pad(x, 1, mode='edge')
jnp.pad(x, 1, mode='linear_ramp')
jnp.pad(x, 1, mode='mean')
jnp.pad(x, 1, mode='wrap')
jnp.pad(x, 1, mode='maximum')
jnp.tile(x, (2, 1))
jnp.repeat(x, 2, axis=0)
jnp.stack([x, y], axis=1)
jnp.concatenate([x, y], axis=1)
jnp.split(x, 2, axis=1)
jnp.array_split(x, 3, axis=1)
jnp.block([[x, y], [y, x]])
jnp.vander(v)
jnp.diag(v)
jnp.diagonal(sq)
jnp.diagflat(x)
jnp.tril(sq)
jnp.triu(x, 1)
jnp.meshgrid(v, k)
jnp.apply_along_axis(lambda q: q * q.sum(), 1, x)
jnp.apply_over_axes(jnp.sum, cube, (0, 2))
jnp.unique(t, size=5)
jnp.polyadd(v, k)
jnp.polymul(v, k)
jnp.polyder(v)
jnp.polyint(v)
jnp.polydiv(v, k)
nn.celu(x)
nn.elu(x)
nn.gelu(x, approximate=False)
nn.glu(x)
nn.hard_sigmoid(3 * x)
nn.hard_silu(3 * x)
nn.hard_tanh(2 * x)
nn.leaky_relu(x)
nn.relu(x)
nn.relu6(5 * x)
nn.selu(x)
nn.selu(z)
nn.elu(z)
nn.sigmoid(x)
nn.log_sigmoid(x)
nn.silu(x)
nn.mish(x)
nn.soft_sign(x)
nn.softplus(x)
nn.sparse_plus(2 * x)
nn.sparse_sigmoid(2 * x)
nn.squareplus(x)
nn.log1mexp(p)
nn.one_hot(np.array([0, 2]), 4) @ sq
nn.dot_product_attention(cube[None], cube[None], cube[None])
"""


def _functions(text: str) -> tuple[Any, Any, list[np.ndarray]]:
    """Return an expression as a function of its arrays, over our modules and over JAX's."""
    names = [name for name in VALUES if re.search(rf"\b{name}\b", text)]
    spaces = (
        {"jnp": fnarray.numpy, "nn": fnarray.nn, "lax": fnarray.lax, "sp": fnarray.scipy.special},
        {"jnp": jax.numpy, "nn": jax.nn, "lax": jax.lax, "sp": jax.scipy.special},
    )

    def over(space: dict[str, Any]) -> Any:
        def f(*arrays: Any) -> list[Any]:
            out = eval(text, {"np": np, **space, **dict(zip(names, arrays, strict=True))})
            return [leaf for leaf in _leaves(out) if differentiable(leaf.dtype)]

        return f

    return *map(over, spaces), [VALUES[name] for name in names]


def _leaves(out: Any) -> list[Any]:
    return [x for part in out for x in _leaves(part)] if isinstance(out, tuple | list) else [out]


def _all(api: Any, f: Any, xs: Any, ts: Any, cts: Any, stacks: Any) -> dict[str, list[Any]]:
    """Return values, tangents, cotangents, and the cotangents of a batch."""
    outs, tangents = api.jvp(f, tuple(xs), tuple(ts))

    def back(*xs: Any) -> list[Any]:
        return list(api.vjp(f, *xs)[1](cts))

    batch = api.vmap(back)(*stacks)
    return {"value": outs, "jvp": tangents, "vjp": back(*xs), "vmap of vjp": batch}


def _random(like: Any) -> np.ndarray:
    t = _rng.uniform(-1, 1, like.shape)
    return np.asarray(t + (1j * (1 - t) if np.dtype(like.dtype).kind == "c" else 0), like.dtype)


def check(text: str) -> None:
    """Assert that an expression's derivatives, alone and mapped, are JAX's."""
    ours, theirs, xs = _functions(text)
    with warnings.catch_warnings(), fnarray.effects("off"):
        warnings.simplefilter("ignore")
        ts = [_random(x) for x in xs]
        cts = [_random(y) for y in jax.eval_shape(theirs, *xs)]
        stacks = [np.stack([x, x[::-1]]) for x in xs]
        oracle = SimpleNamespace(jvp=jax.jvp, vjp=jax.vjp, vmap=jax.vmap)
        want = jax.jit(lambda *args: _all(oracle, theirs, *args))(xs, ts, cts, stacks)
        got = _all(fnarray, ours, xs, ts, cts, stacks)
    for what, arrays in got.items():
        for a, b in zip(arrays, want[what], strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{text}: {what}"
            tol = 2e-2 if b.dtype == np.float16 else 3e-5
            a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
            size = np.abs(b[np.isfinite(b)]).max(initial=1)
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol * size, err_msg=f"{text}: {what}")


@pytest.mark.parametrize("text", FEW.strip().splitlines())
def test_derivatives(text: str) -> None:
    """Forward and reverse mode, alone and mapped, give what JAX gives."""
    check(text)


@pytest.mark.slow
@pytest.mark.parametrize("text", MANY.strip().splitlines())
def test_more_derivatives(text: str) -> None:
    """The same of the rest of the surface."""
    check(text)
