"""Programs on custom primitives, as JAX's tutorials on its interface for extensions write them.

Run as a script, under fnarray (``python -m fnarray run``) or under JAX: it writes what it found.
"""

from __future__ import annotations

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import ad, batching, mlir

# ---- one result: x * y + z, with every rule ----------------------------------------------------

fma_p = jex_core.Primitive("fma")


def fma(x, y, z):
    return fma_p.bind(x, y, z)


def sum_of(x, y):
    return fma(x, y, fma(y, y, jnp.sin(x)))


@fma_p.def_impl
def _fma_impl(x, y, z):
    return jnp.asarray(np.add(np.multiply(x, y), z))


@fma_p.def_abstract_eval
def _fma_abstract(x, y, z):
    assert x.shape == y.shape == z.shape
    return jax.core.ShapedArray(x.shape, x.dtype)


mlir.register_lowering(fma_p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))


def _fma_jvp(primals, tangents):
    x, y, z = primals
    xt, yt, zt = tangents

    def made(t, like):
        return jnp.zeros_like(like) if type(t) is ad.Zero else t

    out = fma(x, y, z)
    return out, fma(made(xt, x), y, fma(x, made(yt, y), made(zt, z)))


def _fma_transpose(ct, x, y, z):
    zero = jnp.zeros_like(ct)
    return (
        fma(ct, y, zero) if ad.is_undefined_primal(x) else None,
        fma(x, ct, zero) if ad.is_undefined_primal(y) else None,
        ct if ad.is_undefined_primal(z) else None,
    )


def _fma_batch(args, dims):
    (size,) = {x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None}
    front = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    return fma(*front), 0


ad.primitive_jvps[fma_p] = _fma_jvp
ad.primitive_transposes[fma_p] = _fma_transpose
batching.primitive_batchers[fma_p] = _fma_batch

# ---- several results, and a param: sums and differences, scaled ---------------------------------

both_p = jex_core.Primitive("both")
both_p.multiple_results = True


def both(x, y, scale):
    return both_p.bind(x, y, scale=scale)


def _both_impl(x, y, *, scale):
    return [scale * (x + y), scale * (x - y)]


both_p.def_impl(_both_impl)
both_p.def_abstract_eval(lambda x, y, *, scale: [x, y])
mlir.register_lowering(both_p, mlir.lower_fun(_both_impl, multiple_results=True))


def _both_jvp(primals, tangents, *, scale):
    return both(*primals, scale), both(*map(ad.instantiate_zeros, tangents), scale)


def _both_transpose(cts, x, y, *, scale):
    a, b = map(ad.instantiate_zeros, cts)
    found = both(a, b, scale)
    return [c if ad.is_undefined_primal(v) else None for c, v in zip(found, (x, y), strict=True)]


def _both_batch(args, dims, *, scale):
    (size,) = {x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None}
    front = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    return both(*front, scale), [0, 0]


ad.primitive_jvps[both_p] = _both_jvp
ad.primitive_transposes[both_p] = _both_transpose
batching.primitive_batchers[both_p] = _both_batch

# ---- linear, by a table of the transpose alone ---------------------------------------------------

twice_p = jex_core.Primitive("twice")
twice_p.def_impl(lambda x: x + x)
twice_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(
    twice_p, mlir.lower_fun(lambda x: x * jnp.array([2.0, 2.0, 2.0]), multiple_results=False)
)
ad.deflinear2(twice_p, lambda ct, _: [twice_p.bind(ct)])
batching.defvectorized(twice_p)

# ---- the same for all examples -------------------------------------------------------------------

any_p = jex_core.Primitive("any_of_all")
any_p.def_impl(jnp.any)
any_p.def_abstract_eval(lambda x: jax.core.ShapedArray((), jnp.bool_))
mlir.register_lowering(any_p, mlir.lower_fun(jnp.any, multiple_results=False))
batching.primitive_batchers[any_p] = lambda args, dims: (any_p.bind(args[0]), None)

# ---- an interpreter of graphs --------------------------------------------------------------------

INVERSES = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh, lax.neg_p: jnp.negative}


def inverted(fun):
    def inverse(y):
        closed = jax.make_jaxpr(fun)(y)
        env = {closed.jaxpr.outvars[0]: y}
        for eqn in reversed(closed.jaxpr.eqns):
            env[eqn.invars[0]] = INVERSES[eqn.primitive](env[eqn.outvars[0]])
        return env[closed.jaxpr.invars[0]]

    return inverse


def evaluated(closed, *args):
    """Run a graph equation by equation, as interpreters written for JAX do."""
    env = {}

    def read(atom):
        return atom.val if isinstance(atom, jex_core.Literal) else env[atom]

    env.update(zip(closed.jaxpr.invars, args, strict=True))
    env.update(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    for eqn in closed.jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        env.update(
            zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True)
        )
    return [read(v) for v in closed.jaxpr.outvars]


def main() -> dict[str, np.ndarray]:
    x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, -1.0, 2.0])
    rows = jnp.stack([x, y, x - y])

    def total(x, y):
        return sum_of(x, y).sum()

    def pair(x, y):
        return sum(jnp.sin(o).sum() for o in both(x, y, 3.0))

    def scanned(x):
        return lax.scan(lambda c, r: (fma(c, r, r), twice_p.bind(c)), x, rows)

    derived = jax.make_jaxpr(jax.grad(total))(x, y)
    found = {
        "eager": fma(x, y, x),
        "jit": jax.jit(sum_of)(x, y),
        "jvp": jax.jvp(sum_of, (x, y), (y, x))[1],
        "jit_jvp": jax.jit(lambda *a: jax.jvp(sum_of, a, a)[1])(x, y),
        "grad": jnp.stack(jax.grad(total, (0, 1))(x, y)),
        "jit_grad": jnp.stack(jax.jit(jax.grad(total, (0, 1)))(x, y)),
        "grad_jit": jnp.stack(jax.grad(jax.jit(total), (0, 1))(x, y)),
        "hessian": jax.jit(jax.hessian(total))(x, y),
        "vmap": jax.vmap(sum_of, (0, None))(rows, y),
        "jit_vmap": jax.jit(jax.vmap(sum_of, (1, None), 1))(rows, y),
        "vmap_grad": jax.jit(jax.vmap(jax.grad(total), (0, None)))(rows, y),
        "both": jnp.stack(both(x, y, 2.0)),
        "both_grad": jnp.stack(jax.jit(jax.grad(pair, (0, 1)))(x, y)),
        "both_vmap": jnp.stack(jax.jit(jax.vmap(partial(both, scale=2.0), (0, None)))(rows, y)),
        "both_vmap_grad": jax.vmap(jax.grad(pair), (None, 0))(x, rows),
        "twice": jax.jit(twice_p.bind)(x),
        "twice_grad": jax.jit(jax.grad(lambda x: jnp.sin(twice_p.bind(x)).sum()))(x),
        "twice_vmap": jax.jit(jax.vmap(twice_p.bind))(rows),
        "any_vmap": jax.vmap(lambda r: jnp.where(any_p.bind(r > 2.5), r, 0.0))(rows),
        "any_once": jax.jit(jax.vmap(lambda r: any_p.bind(r > 2.5), out_axes=None))(rows),
        "scan": jnp.concatenate([scanned(x)[0], scanned(x)[1].ravel()]),
        "scan_grad": jax.jit(jax.grad(lambda x: scanned(x)[1].sum() + scanned(x)[0].sum()))(x),
        "while": lax.fori_loop(0, 3, lambda i, c: fma(c, y, x), x),
        "cond": lax.cond(x[0] > 0, lambda: fma(x, y, x), lambda: x),
        "inverse": inverted(lambda x: jnp.exp(jnp.tanh(-x)))(jnp.float32(1.5)),
        "zeros_mapped": np.float32(
            [len(jax.tree.leaves(jax.vmap(lambda r: (r, ad.Zero(jax.typeof(r))))(rows)))]
        ),
        "evaluated": evaluated(jax.make_jaxpr(total)(x, y), x, y)[0],
        "evaluated_jit": jax.jit(partial(evaluated, derived))(x, y)[0],
    }
    return {k: np.asarray(v) for k, v in found.items()}


if __name__ == "__main__":
    np.savez(sys.argv[1], **main())
