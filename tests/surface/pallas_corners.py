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
