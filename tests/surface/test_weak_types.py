"""Which results give way in promotion, as in JAX: a library's dtypes depend on it."""

from __future__ import annotations

import jax
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import pytest

import fnarray

FUNCTIONS = """
jnp.diag(w) jnp.diag(w,1) jnp.diagflat(w) jnp.diagonal(w[None]) jnp.tril(jnp.diag(w))
jnp.insert(w,0,1.0) jnp.insert(w,0,x) jnp.insert(x,0,1.0) jnp.delete(w,0) jnp.append(w,w)
jnp.append(w,x) jnp.choose(np.array([0,1,0]),[w,w]) jnp.trapezoid(w) jnp.trapezoid(w,x)
jnp.gradient(w) jnp.gradient(w,2.0) jnp.gradient(x) jnp.gradient(w,w) jnp.where(x==0,1.0,x)
jnp.where(w>0,w,0.0) jnp.concatenate([w,w]) jnp.concatenate([w,x]) jnp.stack([w,w])
jnp.block([w,x]) jnp.pad(w,1) jnp.roll(w,1) jnp.flip(w) jnp.sort(w) jnp.cumsum(w) jnp.cumprod(w)
jnp.clip(w,0,1) jnp.max(w) jnp.mean(w) jnp.var(w) jnp.sum(w) jnp.prod(w) jnp.dot(w,x) jnp.dot(w,w)
jnp.outer(w,x) jnp.kron(w,w) jnp.einsum("i,i",w,w) w@x jnp.interp(x,x,w) jnp.select([w>0],[w],x)
jnp.broadcast_arrays(w,x)[0] jnp.repeat(w,2) jnp.tile(w,2) jnp.take(w,np.array([0])) w[0] w[::-1]
w.reshape(3,1) w.at[0].set(2.0) x.at[0].set(w[0]) w.at[0].get() jnp.diff(w) jnp.median(w)
jnp.quantile(w,0.5)
jnp.linalg.norm(w) jnp.fft.fft(w) jnp.cov(w) jnp.polyval(w,x) jnp.cross(w,x)
jnp.argsort(w) jnp.argmax(w) jnp.unique(w) jnp.full((2,),w[0])
jnp.full_like(w,2)
jnp.ones_like(w) jnp.meshgrid(w,w)[0] jnp.vander(w) jnp.nan_to_num(w) jnp.round(w)
jnp.power(w,2) jnp.power(x,w) w**2 w*2 w*2.0 x*w jnp.hypot(w,x) jnp.maximum(w,x) jnp.exp(w)
jnp.linspace(w[0],1.0,3)
jnp.split(w,3)[0] jnp.convolve(w,x) jnp.average(w) jnp.std(w) jnp.ptp(w)
special.exp1(w) special.expi(w) special.expn(1,w) special.hyp1f1(w,w,w) special.hyp2f1(w,w,w,w)
special.spence(w) special.ndtr(w) special.log_ndtr(w) special.ndtri(w) special.gamma(w)
special.beta(w,w) special.poch(w,w) special.multigammaln(w+2,2) special.erf(w) special.gammaln(w)
special.ndtr(0.5) special.gamma(2) special.beta(2,3.0) norm.cdf(0.5) norm.ppf(w) norm.logsf(w)
uniform.cdf(0.5) uniform.cdf(w,0.0)
"""


@pytest.mark.parametrize("x64", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("text", FUNCTIONS.replace("\n", " ").split())
def test_dtypes_and_weakness(text, x64):
    """Of a weak vector ``w`` and a strong one ``x``: dtype and weakness are JAX's."""

    def said(lib):
        with lib.enable_x64(x64):
            w = lib.numpy.broadcast_to(lib.numpy.asarray(0.5), (3,))
            x = lib.numpy.arange(3, dtype="float32")
            stats = {name: getattr(lib.scipy.stats, name) for name in ("norm", "uniform")}
            scipy = {"special": lib.scipy.special, **stats}
            out = eval(text, {"jnp": lib.numpy, "np": np, "w": w, "x": x, **scipy})
            return str(out.dtype), out.weak_type, out.shape

    assert said(fnarray) == said(jax)
