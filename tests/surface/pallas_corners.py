"""Corners of programs with Pallas kernels; see `pallas_programs`."""

from __future__ import annotations

import numpy as np

from .pallas_programs import normal, program


@program
def ref_reshape(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref.reshape(4, 8)[1]

    return call(k, jax.ShapeDtypeStruct((8,), jnp.float32))(normal(32))


@program
def ref_bitcast(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref.bitcast(jnp.int32)[...]

    return call(k, jax.ShapeDtypeStruct((8, 8), jnp.int32))(normal(8, 8))


@program
def strided(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(0, 4, stride=2), :] + x_ref[pl.ds(1, 4, 2), :]

    return call(k, jax.ShapeDtypeStruct((4, 8), jnp.float32))(normal(8, 8))


@program
def scratch_dict(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, *, acc, n):
        acc[...] = x_ref[...] * 2
        n[0] = 3
        o_ref[...] = acc[...] + n[0]

    return call(
        k,
        jax.ShapeDtypeStruct((8, 8), jnp.float32),
        scratch_shapes={"acc": pltpu.VMEM((8, 8), jnp.float32), "n": pltpu.SMEM((1,), jnp.int32)},
    )(normal(8, 8))


@program
def checkpointed(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = jnp.sin(x_ref[...])

    b = pl.BlockSpec((4,), lambda i: (i,))
    f = call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(2,), in_specs=[b], out_specs=b)
    y, jv = (
        jax.linearize(f, jnp.asarray(normal(8)))
        if jax.__name__ != "jax"
        else jax.linearize(jnp.sin, jnp.asarray(normal(8)))
    )
    return y, jv(jnp.ones(8)), jax.eval_shape(f, jax.ShapeDtypeStruct((8,), jnp.float32)).shape


@program
def x64(jax, jnp, pl, pltpu, call):
    with jax.enable_x64(True):

        def k(x_ref, o_ref, i_ref):
            i = pl.program_id(0)
            o_ref[...] = x_ref[...] * 2 + i
            i_ref[...] = jnp.full(i_ref.shape, i * 2)

        b = pl.BlockSpec((4,), lambda i: (i,))
        x = np.random.default_rng(0).normal(size=8)
        return call(
            k,
            [jax.ShapeDtypeStruct((8,), jnp.float64), jax.ShapeDtypeStruct((8,), jnp.int32)],
            grid=(2,),
            in_specs=[b],
            out_specs=[b, b],
        )(x)


@program
def sharded(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(0)

    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    P = jax.P if hasattr(jax, "P") else jax.sharding.PartitionSpec
    b = pl.BlockSpec((4,), lambda i: (i,))

    def f(x):
        return call(
            k, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(2,), in_specs=[b], out_specs=b
        )(x)

    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False))(
        normal(8)
    )


@program
def zero_grid(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    b = pl.BlockSpec((4,), lambda i: (i,))
    return call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(0,), in_specs=[b], out_specs=b)(
        normal(8)
    )


@program
def set_weak(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, p_ref):
        o_ref[...] = jnp.zeros((4,), jnp.bfloat16)
        o_ref[0] = 2.0
        o_ref[1] = x_ref[0].astype(jnp.bfloat16) * 3
        p_ref[...] = jnp.zeros_like(p_ref)
        p_ref[1] = 7
        p_ref[2] += 1

    o = call(k, [jax.ShapeDtypeStruct((4,), jnp.bfloat16), jax.ShapeDtypeStruct((4,), jnp.int8)])(
        normal(4)
    )
    return o[0].astype(jnp.float32), o[1]


@program
def signal(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, sem):
        pl.semaphore_signal(sem, 2)
        pl.semaphore_wait(sem, 1)
        o_ref[0] = pl.semaphore_read(sem)

    return call(
        k, jax.ShapeDtypeStruct((1,), jnp.int32), scratch_shapes=[pltpu.SemaphoreType.REGULAR]
    )(normal(4))


@program
def cost(jax, jnp, pl, pltpu, call):
    c = pl.estimate_cost(lambda x, y: jnp.exp(x @ y), jnp.ones((8, 16)), jnp.ones((16, 4)))
    return c.flops, c.transcendentals, c.bytes_accessed


@program
def ref_iter(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, o_ref):
        x, y = x_ref[:], y_ref[:]
        o_ref[:] = x + y
        pl.debug_print("x {}", x[0])

    return call(k, jax.ShapeDtypeStruct((8,), jnp.int32))(
        np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32)
    )


@program
def keys(jax, jnp, pl, pltpu, call):
    def k(key_ref, o_ref):
        o_ref[...] = jax.random.uniform(
            jax.random.wrap_key_data(key_ref[...]), o_ref.shape, jnp.float32
        )

    return call(k, jax.ShapeDtypeStruct((8,), jnp.float32))(np.array([0, 5], np.uint32))


@program
def oob_refs(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, p_ref, q_ref):
        i = pl.program_id(0)
        o_ref[i] = x_ref[i + 6]
        p_ref[i + 6] = x_ref[i]
        q_ref[pl.ds(i * 4, 4)] = x_ref[pl.ds(i * 4, 4)]

    s = jax.ShapeDtypeStruct
    return call(k, [s((4,), jnp.float32), s((8,), jnp.float32), s((6,), jnp.float32)], grid=(4,))(
        normal(8)
    )


@program
def oob_arrays(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, p_ref):
        i = pl.program_id(0)
        at = i * 4 + jnp.arange(4)
        o_ref[i] = x_ref[at]
        p_ref[at] = jnp.ones(4, jnp.float32) * i

    s = jax.ShapeDtypeStruct
    return call(k, [s((3, 4), jnp.float32), s((10,), jnp.float32)], grid=(3,))(normal(10))


@program
def likes(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        z = jnp.zeros_like(x_ref) + jnp.ones_like(x_ref) + jnp.full_like(o_ref, 2)
        assert (jnp.shape(x_ref), x_ref.size, len(x_ref)) == ((4, 8), 32, 4)
        o_ref[...] = z + x_ref[-1, :][None] + x_ref[:, 2][:, None] + x_ref[jnp.arange(4) // 2, :]
        v = x_ref.at[1:3]
        o_ref[0] += jnp.zeros_like(v[0])
        o_ref[:, pl.program_id(0)] = x_ref[:, 1 + pl.program_id(0)]
        o_ref[pl.ds(2, 1), :] = x_ref[pl.ds(pl.program_id(0), 1), :]
        o_ref[3, 3:5] = v[0, pl.ds(2, 2)]

    return call(k, jax.ShapeDtypeStruct((4, 8), jnp.float32), grid=(1,))(normal(4, 8))


@program
def mem_spaces(jax, jnp, pl, pltpu, call):
    def k(s_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * s_ref[0, 0]

    return call(
        k,
        out_shape=jax.ShapeDtypeStruct((8, 8), jnp.float32),
        grid=(2,),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec(
                (4, 8), lambda i: (i, 0), memory_space=pltpu.VMEM, pipeline_mode=pl.Buffered(2)
            ),
        ],
        out_specs=pl.BlockSpec((4, 8), lambda i: (i, 0), memory_space=pltpu.VMEM),
        name="scaled",
        cost_estimate=pl.CostEstimate(flops=1, transcendentals=0, bytes_accessed=2),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(np.full((1, 1), 3, "f"), normal(8, 8))


@program
def causal_flash(jax, jnp, pl, pltpu, call):
    bq = bk = 8

    def k(q_ref, k_ref, v_ref, o_ref, m_ref, l_ref, acc_ref):
        qi, ki = pl.program_id(1), pl.program_id(2)

        @pl.when(ki == 0)
        def _():
            m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
            l_ref[...] = jnp.zeros_like(l_ref)
            acc_ref[...] = jnp.zeros_like(acc_ref)

        @pl.when(ki <= qi)
        def _():
            s = jax.lax.dot_general(
                q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
            )
            rows = qi * bq + jax.lax.broadcasted_iota(jnp.int32, s.shape, 0)
            cols = ki * bk + jax.lax.broadcasted_iota(jnp.int32, s.shape, 1)
            s = jnp.where(rows >= cols, s, -1e30)
            m_prev = m_ref[...]
            m_new = jnp.maximum(m_prev, s.max(-1, keepdims=True))
            p = jnp.exp(s - m_new)
            a = jnp.exp(m_prev - m_new)
            l_ref[...] = l_ref[...] * a + p.sum(-1, keepdims=True)
            acc_ref[...] = acc_ref[...] * a + p @ v_ref[...]
            m_ref[...] = m_new

        @pl.when(ki == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = acc_ref[...] / l_ref[...]

    q = pl.BlockSpec((None, bq, 4), lambda b, i, j: (b, i, 0))
    kv = pl.BlockSpec((None, bk, 4), lambda b, i, j: (b, j, 0))
    return call(
        k,
        jax.ShapeDtypeStruct((2, 24, 4), jnp.float32),
        grid=(2, 3, 3),
        in_specs=[q, kv, kv],
        out_specs=q,
        scratch_shapes=[
            pltpu.VMEM((bq, 1), jnp.float32),
            pltpu.VMEM((bq, 1), jnp.float32),
            pltpu.VMEM((bq, 4), jnp.float32),
        ],
    )(normal(2, 24, 4), normal(2, 24, 4)[::-1], normal(24, 2, 4).reshape(2, 24, 4))


@program
def reduce_sum(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return call(
        k,
        jax.ShapeDtypeStruct((8, 8), jnp.float32),
        grid=(2, 3),
        in_specs=[pl.BlockSpec((None, 4, 8), lambda j, i: (i, j, 0))],
        out_specs=pl.BlockSpec((4, 8), lambda j, i: (j, 0)),
    )(normal(3, 8, 8))


@program
def conv_halo(jax, jnp, pl, pltpu, call):
    def k(a_ref, b_ref, c_ref, o_ref):
        x = jnp.concatenate([a_ref[...], b_ref[...], c_ref[...]])
        o_ref[...] = x[3:7] + x[4:8] + x[5:9]

    x = np.pad(normal(16), 4)

    def sp(d):
        return pl.BlockSpec((4,), lambda i: (i + d,))

    return call(
        k,
        jax.ShapeDtypeStruct((16,), jnp.float32),
        grid=(4,),
        in_specs=[sp(0), sp(1), sp(2)],
        out_specs=pl.BlockSpec((4,), lambda i: (i,)),
    )(x, x, x)


@program
def jvp_grid(jax, jnp, pl, pltpu, call):
    def k(x_ref, w_ref, o_ref):
        o_ref[...] = jnp.tanh(x_ref[...] @ w_ref[...]) * 2

    f = call(
        k,
        jax.ShapeDtypeStruct((8, 4), jnp.float32),
        grid=(2,),
        in_specs=[pl.BlockSpec((4, 6), lambda i: (i, 0)), pl.BlockSpec((6, 4), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((4, 4), lambda i: (i, 0)),
    )
    return jax.jit(lambda *a: jax.jvp(f, a[:2], a[2:]))(
        normal(8, 6), normal(6, 4), normal(8, 6)[::-1], normal(6, 4)[::-1]
    )


@program
def vmap_out(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, acc):
        acc[...] = x_ref[...] * 2
        o_ref[...] = acc[...] + pl.program_id(0)

    f = call(
        k,
        jax.ShapeDtypeStruct((8,), jnp.float32),
        grid=(2,),
        in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
        out_specs=pl.BlockSpec((4,), lambda i: (i,)),
        scratch_shapes=[pltpu.VMEM((4,), jnp.float32)],
    )
    return jax.vmap(f, out_axes=1)(normal(3, 8)), jax.jit(jax.vmap(lambda x: f(x).sum()))(
        normal(3, 8)
    )


@program
def complex_index_maps(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return call(
        k,
        jax.ShapeDtypeStruct((16, 4), jnp.float32),
        grid=(4, 2),
        in_specs=[
            pl.BlockSpec((4, 2), lambda i, j: (jnp.where(j == 0, i, 3 - i), jax.lax.rem(i + j, 2)))
        ],
        out_specs=pl.BlockSpec((4, 2), lambda i, j: (i, j)),
    )(normal(16, 4))
