"""Larger programs with Pallas kernels, as of JAX's pages on them; see `pallas_programs`."""

from __future__ import annotations

import functools
import importlib

import numpy as np

from .pallas_programs import normal, program


def triton(jax):
    """Return the module of a framework's that has loads, stores and atomic operations."""
    return importlib.import_module(f"{jax.__name__}.experimental.pallas.triton")


@program
def flash_attention(jax, jnp, pl, pltpu, call):
    def k(q_ref, k_ref, v_ref, o_ref, *, block_k, scale):
        q = q_ref[...] * scale
        n = k_ref.shape[0] // block_k

        def body(i, carry):
            acc, m, total = carry
            kk = k_ref[pl.ds(i * block_k, block_k), :]
            v = v_ref[pl.ds(i * block_k, block_k), :]
            s = q @ kk.T
            m_new = jnp.maximum(m, s.max(axis=1))
            alpha = jnp.exp(m - m_new)
            p = jnp.exp(s - m_new[:, None])
            return acc * alpha[:, None] + p @ v, m_new, total * alpha + p.sum(axis=1)

        bq, d = q_ref.shape
        acc, _, total = jax.lax.fori_loop(
            0,
            n,
            body,
            (
                jnp.zeros((bq, d), jnp.float32),
                jnp.full((bq,), -jnp.inf, jnp.float32),
                jnp.zeros((bq,), jnp.float32),
            ),
        )
        o_ref[...] = (acc / total[:, None]).astype(o_ref.dtype)

    q, kk, v = (
        normal(2, 3, 32, 16),
        normal(2, 3, 32, 16)[::-1],
        normal(3, 2, 32, 16).reshape(2, 3, 32, 16),
    )
    f = call(
        functools.partial(k, block_k=8, scale=0.25),
        jax.ShapeDtypeStruct((2, 3, 32, 16), jnp.float32),
        grid=(2, 3, 4),
        in_specs=[
            pl.BlockSpec((None, None, 8, 16), lambda b, h, i: (b, h, i, 0)),
            pl.BlockSpec((None, None, 32, 16), lambda b, h, i: (b, h, 0, 0)),
            pl.BlockSpec((None, None, 32, 16), lambda b, h, i: (b, h, 0, 0)),
        ],
        out_specs=pl.BlockSpec((None, None, 8, 16), lambda b, h, i: (b, h, i, 0)),
    )
    return f(q, kk, v)


@program
def softmax_rows(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        x = x_ref[...]
        e = jnp.exp(x - x.max(-1, keepdims=True))
        o_ref[...] = e / e.sum(-1, keepdims=True)

    b = pl.BlockSpec((4, 33), lambda i: (i, 0))
    return call(
        k, jax.ShapeDtypeStruct((16, 33), jnp.float32), grid=(4,), in_specs=[b], out_specs=b
    )(normal(16, 33))


@program
def layer_norm(jax, jnp, pl, pltpu, call):
    def k(x_ref, g_ref, b_ref, o_ref, mean_ref, rstd_ref):
        x = x_ref[...].astype(jnp.float32)
        mean = x.mean(-1)
        var = ((x - mean[:, None]) ** 2).mean(-1)
        r = jax.lax.rsqrt(var + 1e-5)
        mean_ref[...], rstd_ref[...] = mean, r
        o_ref[...] = ((x - mean[:, None]) * r[:, None] * g_ref[...] + b_ref[...]).astype(
            o_ref.dtype
        )

    row = pl.BlockSpec((4, 32), lambda i: (i, 0))
    vec = pl.BlockSpec((32,), lambda i: (0,))
    st = pl.BlockSpec((4,), lambda i: (i,))
    s = jax.ShapeDtypeStruct
    return call(
        k,
        [s((16, 32), jnp.float32), s((16,), jnp.float32), s((16,), jnp.float32)],
        grid=(4,),
        in_specs=[row, vec, vec],
        out_specs=[row, st, st],
    )(normal(16, 32), normal(32), normal(32) + 1)


@program
def sparse_dsd(jax, jnp, pl, pltpu, call):
    nb, b = 5, 4
    ii, kk = np.array([0, 0, 1, 3, 3], np.int32), np.array([0, 2, 1, 0, 3], np.int32)
    X, Y = normal(nb, b, b), normal(16, 8)

    def k(idxs_i_ref, idxs_k_ref, x_ref, y_ref, _, o_ref, acc):
        t = pl.program_id(1)
        changed = idxs_i_ref[t] != idxs_i_ref[jnp.maximum(t - 1, 0)]

        @pl.when((t == 0) | changed)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x_ref[0, :, :], y_ref[...], preferred_element_type=jnp.float32)
        nxt = idxs_i_ref[t] != idxs_i_ref[jnp.minimum(t + 1, nb)]

        @pl.when((t == nb - 1) | nxt)
        def _():
            o_ref[...] = acc[...].astype(o_ref.dtype)

    def om(j, t, ii, kk):
        return (ii[t], j)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2, nb),
        in_specs=[
            pl.BlockSpec((1, b, b), lambda j, t, ii, kk: (t, 0, 0)),
            pl.BlockSpec((b, 4), lambda j, t, ii, kk: (kk[t], j)),
            pl.BlockSpec((b, 4), om),
        ],
        out_specs=pl.BlockSpec((b, 4), om),
        scratch_shapes=[pltpu.VMEM((b, 4), jnp.float32)],
    )
    return call(
        k, jax.ShapeDtypeStruct((16, 8), jnp.float32), grid_spec=spec, input_output_aliases={4: 0}
    )(ii, kk, X, Y, jnp.zeros((16, 8), jnp.float32))


@program
def sparse_mask(jax, jnp, pl, pltpu, call):
    def k(prefetch, mask_ref, x_ref, y_ref, o_ref, acc):
        i, j, step = pl.program_id(0), pl.program_id(1), pl.program_id(2)
        m = mask_ref[i, j] != 0

        @pl.when(m & (step == 0))
        def _():
            acc[...] = jnp.zeros_like(acc)

        @pl.when(m)
        def _():
            acc[...] += jnp.dot(x_ref[...], y_ref[...])

        @pl.when(m & (step == 1))
        def _():
            o_ref[...] = acc[...]

        @pl.when(jnp.logical_not(m))
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

    mask = np.array([[1, 0], [0, 1]], np.int32)
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec((4, 4), lambda i, j, k, p: (i, jnp.where(p[0] > 0, k, 0))),
            pl.BlockSpec((4, 4), lambda i, j, k, p: (k, j)),
        ],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k, p: (i, j)),
        scratch_shapes=[pltpu.VMEM((4, 4), jnp.float32)],
    )
    return call(k, jax.ShapeDtypeStruct((8, 8), jnp.float32), grid_spec=spec)(
        np.array([1], np.int32), mask, normal(8, 8), normal(8, 8) + 1
    )


@program
def pipeline(jax, jnp, pl, pltpu, call):
    if jax.__name__ == "jax":
        return np.asarray(normal(16, 8) + 2 * normal(16, 8))

    def k(x_ref, y_ref, o_ref):
        def body(x, y, o):
            o[...] = x[...] + 2 * y[...]

        b = pl.BlockSpec((4, 8), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[b, b], out_specs=[b])(x_ref, y_ref, o_ref)

    any_ = pl.BlockSpec(memory_space=pl.ANY)
    return call(
        k, jax.ShapeDtypeStruct((16, 8), jnp.float32), in_specs=[any_, any_], out_specs=any_
    )(normal(16, 8), normal(16, 8))


@program
def places_by_arrays(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, o_ref, *, n, block):
        pid = pl.program_id(0)
        offs = pid * block + jnp.arange(block)
        x = x_ref[offs]
        idx = pl.ds(pid * block, block)
        o_ref[idx] = jnp.where(offs < n, x, 0.0) + y_ref[idx]

    return call(
        functools.partial(k, n=10, block=4), jax.ShapeDtypeStruct((12,), jnp.float32), grid=(3,)
    )(normal(10), normal(12))


@program
def load_store(jax, jnp, pl, pltpu, call):
    from jax._src.pallas import primitives as jp

    load, store = (jp.load, jp.store) if jax.__name__ == "jax" else (pl.load, pl.store)

    def k(x_ref, y_ref, o_ref, p_ref):
        pid = pl.program_id(0)
        idx = (pl.ds(pid * 4, 4),)
        mask = pid * 4 + jnp.arange(4) < 10
        x = load(x_ref, idx, mask=mask, other=-1.0)
        y = load(y_ref, idx)
        store(o_ref, idx, x + 1, mask=mask)
        store(p_ref, idx, y)

    s = jax.ShapeDtypeStruct((10,), jnp.float32)
    return call(k, [s, s], grid=(3,))(normal(10), normal(10))


@program
def load_store_2d(jax, jnp, pl, pltpu, call):
    from jax._src.pallas import primitives as jp

    load, store, swap = (
        (jp.load, jp.store, jp.swap) if jax.__name__ == "jax" else (pl.load, pl.store, pl.swap)
    )

    def k(x_ref, o_ref, q_ref):
        i = pl.program_id(0)
        three, five, two = jnp.int32(3), jnp.int32(5), jnp.int32(2)
        r = load(x_ref, (i, pl.ds(i * 3, 3)))
        store(o_ref, (i, pl.ds(0, 3)), r)
        b = load(x_ref, (pl.ds(i * 2, 2), slice(None)), mask=jnp.arange(7)[None, :] < 5, other=9.0)
        store(o_ref, (pl.ds(three, 2), slice(None)), b)
        q_ref[i] = swap(o_ref, (five, two), jnp.float32(7.0) + i)
        o_ref[6, jnp.arange(3) * 2] = load(x_ref, (jnp.arange(3), jnp.arange(3)))

    return call(
        k,
        [jax.ShapeDtypeStruct((7, 7), jnp.float32), jax.ShapeDtypeStruct((3,), jnp.float32)],
        grid=(3,),
    )(normal(6, 7))


@program
def atomics(jax, jnp, pl, pltpu, call):
    t = triton(jax)

    def k(x_ref, _, s_ref, m_ref, n_ref, old_ref):
        i = pl.program_id(0)
        zero = jnp.int32(0)
        t.atomic_add(s_ref, (zero,), x_ref[i])
        t.atomic_max(m_ref, (zero,), x_ref[i])
        n_ref[0] = t.atomic_add(m_ref, (zero,), x_ref[i])
        old_ref[i] = n_ref[0]
        t.atomic_min(m_ref, (zero + 1,), x_ref[i])

    s = jax.ShapeDtypeStruct
    return call(
        k,
        [s((1,), jnp.int32), s((2,), jnp.int32), s((1,), jnp.int32), s((8,), jnp.int32)],
        grid=(8,),
        input_output_aliases={1: 0},
    )(np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32), jnp.zeros(1, jnp.int32))


@program
def histogram(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        def body(i, _):
            b = x_ref[i]
            o_ref[b] += 1
            return _

        jax.lax.fori_loop(0, x_ref.shape[0], body, None)

    return call(
        k,
        jax.ShapeDtypeStruct((5,), jnp.int32),
        grid=(4,),
        in_specs=[pl.BlockSpec((5,), lambda i: (i,))],
        out_specs=pl.BlockSpec((5,), lambda i: (0,)),
    )(np.random.default_rng(3).integers(0, 5, 20).astype(np.int32))


@program
def grad_through(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = jnp.tanh(x_ref[...]) ** 2

    b = pl.BlockSpec((4,), lambda i: (i,))
    f = call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(2,), in_specs=[b], out_specs=b)
    if jax.__name__ == "jax":

        def f(x):
            return jnp.tanh(x) ** 2

    return jax.grad(lambda x: f(x).sum())(normal(8)), jax.jit(jax.hessian(lambda x: f(x).sum()))(
        normal(8)
    )


@program
def cond_switch(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        i = pl.program_id(0)
        o_ref[...] = jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x_ref[...])
        v = jax.lax.cond(i > 0, lambda x: x * 2, lambda x: x, x_ref[0])
        o_ref[1] = v

    b = pl.BlockSpec((4,), lambda i: (i,))
    return call(k, jax.ShapeDtypeStruct((12,), jnp.float32), grid=(3,), in_specs=[b], out_specs=b)(
        normal(12)
    )


@program
def bools_ints(jax, jnp, pl, pltpu, call):
    def k(m_ref, x_ref, o_ref, p_ref):
        o_ref[...] = jnp.where(m_ref[...], x_ref[...], -x_ref[...])
        p_ref[...] = m_ref[...] ^ (x_ref[...] > 0)

    b = pl.BlockSpec((3, 4), lambda i, j: (i, j))
    s = jax.ShapeDtypeStruct
    return call(
        k,
        [s((7, 9), jnp.int8), s((7, 9), jnp.bool_)],
        grid=(3, 3),
        in_specs=[b, b],
        out_specs=[b, b],
    )(normal(7, 9) > 0, (normal(7, 9) * 50).astype(np.int8))


@program
def program_show(jax, jnp, pl, pltpu, call):
    out = []
    for shape, block, grid, imap in [
        ((8, 6), (2, 3), (4, 2), lambda i, j: (i, j)),
        ((7, 5), (2, 3), (4, 2), lambda i, j: (i, j)),
        ((1, 2), (2, 3), (1, 1), lambda i, j: (i, j)),
        ((8, 6), (2, 3), (4, 2, 10), lambda i, j, k: (i, j)),
        ((4, 4), None, (2, 3), None),
        ((4, 4), (4, 4), (2, 3), None),
        ((8, 6), (pl.Element(2), pl.Element(3)), (4, 2), lambda i, j: (2 * i, 3 * j)),
        (
            (7, 7),
            (pl.Element(2, (1, 0)), pl.Element(3, (2, 0))),
            (4, 3),
            lambda i, j: (2 * i, 3 * j),
        ),
    ]:

        def k(o_ref, grid=grid):
            axes = 0
            for axis in range(len(grid)):
                axes += pl.program_id(axis) * 10 ** (len(grid) - 1 - axis)
            o_ref[...] = jnp.full(o_ref.shape, axes)

        out.append(
            call(
                k,
                jax.ShapeDtypeStruct(shape, np.int32),
                grid=grid,
                in_specs=[],
                out_specs=pl.BlockSpec(block, imap),
            )()
        )
    return out


@program
def nested_calls(jax, jnp, pl, pltpu, call):
    def inner(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(0)

    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    b = pl.BlockSpec((4,), lambda i: (i,))
    s = jax.ShapeDtypeStruct((8,), jnp.float32)
    f = call(inner, s, grid=(2,), in_specs=[b], out_specs=b)
    g = call(k, s, grid=(2,), in_specs=[b], out_specs=b)

    def body(c, _):
        return g(f(c)) * 0.5, c.sum()

    return jax.lax.scan(body, normal(8), None, length=3), jax.jit(lambda x: f(g(x)))(normal(8))


@program
def donated_in_loop(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        i = pl.program_id(0)
        o_ref[i] = x_ref[i] + o_ref[jnp.maximum(i - 1, 0)]

    return call(k, jax.ShapeDtypeStruct((6,), jnp.float32), grid=(6,), input_output_aliases={0: 0})(
        normal(6)
    )


@program
def tree_out_single(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...].sum()

    return call(k, out_shape=jax.ShapeDtypeStruct((), jnp.float32))(normal(6)), call(
        lambda a, b: b.__setitem__(..., a[...]),
        out_shape=(jax.ShapeDtypeStruct((6,), jnp.float32),),
    )(normal(6))
