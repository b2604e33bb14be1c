"""Programs with Pallas kernels: each is run under JAX's interpreter and here, with its modules."""

from __future__ import annotations

import functools

import numpy as np

PROGRAMS = {}


def program(f):
    """Register a program."""
    PROGRAMS[f.__name__] = f
    return f


def normal(*shape):
    """Return numbers that depend on the shape alone."""
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(np.float32)


@program
def add(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    return call(k, jax.ShapeDtypeStruct((8,), jnp.float32))(normal(8), normal(8))


@program
def overhang(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, s_ref):
        o_ref[...] = x_ref[...] * 2
        s_ref[...] = jnp.isnan(x_ref[...]).astype(jnp.int32)

    x = normal(10, 7)
    b = pl.BlockSpec((4, 4), lambda i, j: (i, j))
    return call(
        k,
        [jax.ShapeDtypeStruct((10, 7), jnp.float32), jax.ShapeDtypeStruct((12, 8), jnp.int32)],
        grid=(3, 2),
        in_specs=[b],
        out_specs=[b, b],
    )(x)


@program
def order(jax, jnp, pl, pltpu, call):
    def k(o_ref, n_ref):
        i, j, m = (pl.program_id(a) for a in range(3))
        n = n_ref[0]
        o_ref[i, j, m] = n
        n_ref[0] = n + 1

    return call(
        k,
        (jax.ShapeDtypeStruct((2, 3, 4), jnp.int32), jax.ShapeDtypeStruct((1,), jnp.int32)),
        grid=(2, 3, 4),
        input_output_aliases={},
    )()


@program
def accumulate(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, z_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            z_ref[...] = jnp.zeros_like(z_ref)

        z_ref[...] += x_ref[...] @ y_ref[...]

    x, y = normal(16, 24), normal(24, 8)
    return call(
        k,
        jax.ShapeDtypeStruct((16, 8), jnp.float32),
        grid=(2, 2, 3),
        in_specs=[
            pl.BlockSpec((8, 8), lambda i, j, k: (i, k)),
            pl.BlockSpec((8, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((8, 4), lambda i, j, k: (i, j)),
    )(x, y)


@program
def scratch(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, z_ref, acc_ref, *, nsteps):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == nsteps - 1)
        def _():
            z_ref[...] = acc_ref[...].astype(z_ref.dtype)

    x, y = jnp.asarray(normal(16, 24), jnp.bfloat16), jnp.asarray(normal(24, 8), jnp.bfloat16)
    return call(
        functools.partial(k, nsteps=3),
        jax.ShapeDtypeStruct((16, 8), jnp.bfloat16),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            grid=(2, 2, 3),
            in_specs=[
                pl.BlockSpec((8, 8), lambda i, j, k: (i, k)),
                pl.BlockSpec((8, 4), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((8, 4), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((8, 4), jnp.float32)],
        ),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
    )(x, y).astype(jnp.float32)


@program
def uninit(jax, jnp, pl, pltpu, call):
    def k(x_ref, a, b, c, d):
        a[0] = x_ref[0]

    s = jax.ShapeDtypeStruct
    return call(
        k, [s((3,), jnp.float32), s((2,), jnp.int32), s((2,), jnp.bool_), s((2,), jnp.uint8)]
    )(normal(3))


@program
def prefetch(jax, jnp, pl, pltpu, call):
    def k(idx_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + idx_ref[pl.program_id(0)]

    idx = np.array([2, 0, 3, 1], np.int32)
    return call(
        k,
        jax.ShapeDtypeStruct((4, 8), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((1, 8), lambda i, idx: (idx[i], 0))],
            out_specs=pl.BlockSpec((1, 8), lambda i, idx: (i, 0)),
        ),
    )(idx, normal(4, 8))


@program
def prefetch_dynamic_slice(jax, jnp, pl, pltpu, call):
    def k(idx_ref, x_ref, o_ref):
        del idx_ref
        o_ref[...] = x_ref[...]

    def block_idx(i, j, block_idx_ref):
        return block_idx_ref[0], block_idx_ref[1]

    return call(
        k,
        jax.ShapeDtypeStruct((8, 8), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1, 1),
            in_specs=[pl.BlockSpec((8, 8), block_idx)],
            out_specs=pl.BlockSpec((8, 8), lambda *_: (0, 0)),
        ),
    )(np.array([2, 1], np.int32), normal(32, 16))


@program
def squeezed(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        assert x_ref.shape == o_ref.shape == (4,)
        o_ref[...] = jnp.sin(x_ref[...])

    return call(
        k,
        jax.ShapeDtypeStruct((3, 8), jnp.float32),
        grid=(3, 2),
        in_specs=[pl.BlockSpec((None, 4), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((pl.squeezed, pl.Blocked(4)), lambda i, j: (i, j)),
    )(normal(3, 8))


@program
def element(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[0:8] + x_ref[1:9] + x_ref[2:10]

    return call(
        k,
        jax.ShapeDtypeStruct((16,), jnp.float32),
        grid=(2,),
        in_specs=[pl.BlockSpec((pl.Element(10),), lambda i: (i * 8,))],
        out_specs=pl.BlockSpec((8,), lambda i: (i,)),
    )(normal(18))


@program
def element_padded(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        x = jnp.where(jnp.isnan(x_ref[...]), 0, x_ref[...])
        o_ref[...] = x[0:8] + x[1:9] + x[2:10]

    return call(
        k,
        jax.ShapeDtypeStruct((16,), jnp.float32),
        grid=(2,),
        in_specs=[pl.BlockSpec((pl.Element(10, (1, 1)),), lambda i: (i * 8,))],
        out_specs=pl.BlockSpec((8,), lambda i: (i,)),
    )(normal(16))


@program
def loops(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, n_ref):
        pid = pl.program_id(0)

        def body(i, acc):
            return acc + x_ref[pl.ds(i * 4, 4), :] * (pid + 1)

        o_ref[...] = jax.lax.fori_loop(0, 4, body, jnp.zeros((4, 8), jnp.float32))

        def cond(s):
            return s[0] < 3 + pid

        def wbody(s):
            n_ref[s[0]] = s[1]
            return s[0] + 1, s[1] * 2

        jax.lax.while_loop(cond, wbody, (0, 1))

        def sbody(c, _):
            o_ref[0, :] += c
            return c + 1.0, None

        jax.lax.scan(sbody, 1.0, None, length=3)

    return call(
        k,
        [jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.int32)],
        grid=(2,),
        in_specs=[pl.BlockSpec((16, 8), lambda i: (i, 0))],
        out_specs=[pl.BlockSpec((4, 8), lambda i: (i, 0)), pl.BlockSpec((8,), lambda i: (0,))],
    )(normal(32, 8))


@program
def aliases(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, o_ref):
        o_ref[0] = o_ref[0] + y_ref[0]

    return call(k, jax.ShapeDtypeStruct((4,), jnp.float32), grid=(2,), input_output_aliases={0: 0})(
        normal(4), normal(1)
    )


@program
def vmapped(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...] * pl.program_id(0)

    b = pl.BlockSpec((4,), lambda i: (i,))
    f = call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(2,), in_specs=[b, b], out_specs=b)
    return (
        jax.vmap(f, in_axes=(0, None))(normal(3, 8), normal(8)),
        jax.vmap(f, in_axes=(1, 0))(normal(8, 3), normal(3, 8)),
        jax.vmap(jax.vmap(f))(normal(2, 3, 8), normal(2, 3, 8)),
    )


@program
def jvps(jax, jnp, pl, pltpu, call):
    def k(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.sin(x_ref[...]) * y_ref[...]

    b = pl.BlockSpec((4,), lambda i: (i,))
    f = call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(2,), in_specs=[b, b], out_specs=b)
    return jax.jvp(f, (normal(8), normal(8)), (normal(8), normal(8)))


@program
def custom(jax, jnp, pl, pltpu, call):
    def fk(x_ref, o_ref):
        o_ref[...] = jnp.exp(x_ref[...])

    def bk(y_ref, g_ref, o_ref):
        o_ref[...] = y_ref[...] * g_ref[...]

    s = jax.ShapeDtypeStruct((8,), jnp.float32)

    @jax.custom_vjp
    def exp(x):
        return call(fk, s)(x)

    def fwd(x):
        y = exp(x)
        return y, y

    def bwd(y, g):
        return (call(bk, s)(y, g),)

    exp.defvjp(fwd, bwd)
    return jax.grad(lambda x: (exp(x) ** 2).sum())(normal(8)), jax.jit(
        jax.vmap(jax.grad(lambda x: exp(x)[0]))
    )(normal(3, 8))


@program
def dtypes(jax, jnp, pl, pltpu, call):
    def k(x_ref, m_ref, a, b, c):
        x = x_ref[...]
        a[...] = (x * m_ref[...]).astype(jnp.bfloat16)
        b[...] = x > 0
        c[...] = x.astype(jnp.int32)

    s = jax.ShapeDtypeStruct
    o = call(k, [s((8,), jnp.bfloat16), s((8,), jnp.bool_), s((8,), jnp.int32)])(
        normal(8) * 3, jnp.arange(8) % 2 == 0
    )
    return o[0].astype(jnp.float32), o[1], o[2]


@program
def run_scoped(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        def inner(a_ref, *, b_ref):
            a_ref[...] = x_ref[...] * 2
            b_ref[0] = 5
            o_ref[...] = a_ref[...] + b_ref[0]
            return a_ref[...] + 1

        r = pl.run_scoped(inner, pltpu.VMEM((4,), jnp.float32), b_ref=pltpu.SMEM((1,), jnp.int32))
        o_ref[...] += r

    return call(k, jax.ShapeDtypeStruct((4,), jnp.float32))(normal(4))


@program
def pytrees(jax, jnp, pl, pltpu, call):
    def k(p, x_ref, o):
        o["y"][...] = p["w"][...] * x_ref[...] + p["b"][0]
        o["z"][...] = -x_ref[...]

    b = pl.BlockSpec((4,), lambda i: (i,))
    w = pl.BlockSpec((1,), lambda i: (0,))
    s = jax.ShapeDtypeStruct((8,), jnp.float32)
    return call(
        k, {"y": s, "z": s}, grid=(2,), in_specs=({"w": b, "b": w}, b), out_specs={"y": b, "z": b}
    )({"w": normal(8), "b": normal(1)}, normal(8))


@program
def dynamic_grid(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    b = pl.BlockSpec((4,), lambda i: (i,))

    @jax.jit
    def f(n, x):
        return call(
            k, jax.ShapeDtypeStruct((16,), jnp.float32), grid=(n,), in_specs=[b], out_specs=b
        )(x)

    return f(jnp.int32(3), normal(16))


@program
def ref_at(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        v = x_ref.at[pl.ds(2, 4)]
        o_ref.at[1][...] = v[...].sum(0)
        o_ref[0] = v[1]
        o_ref[2:4, pl.ds(0, 2)] = v[0:2, 0:2]
        o_ref[2:4, 2:] = jnp.zeros((2, 2), jnp.float32)

    return call(k, jax.ShapeDtypeStruct((4, 4), jnp.float32))(normal(8, 4))


@program
def scalars_broadcast(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[0] = jnp.float32(3.0)
        o_ref[1] = x_ref[1] + 2.0
        o_ref[2] = 1.5

    return call(k, jax.ShapeDtypeStruct((3,), jnp.float32))(normal(3))


@program
def dma(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref, scratch, sem):
        c = pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], scratch, sem)
        c.start()
        c.wait()
        scratch[...] = scratch[...] * 2
        pltpu.sync_copy(scratch, o_ref)

    return call(
        k,
        jax.ShapeDtypeStruct((4, 8), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.VMEM((4, 8), jnp.float32), pltpu.SemaphoreType.DMA],
    )(normal(8, 8))


@program
def out_of_range_maps(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return call(
        k,
        jax.ShapeDtypeStruct((8,), jnp.float32),
        grid=(2,),
        in_specs=[pl.BlockSpec((4,), lambda i: (i + 1,))],
        out_specs=pl.BlockSpec((4,), lambda i: (i,)),
    )(normal(8))


@program
def when_else(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        i = pl.program_id(0)

        @pl.when(i % 2 == 0)
        def _even():
            o_ref[...] = x_ref[...] * 10

        @pl.when(i % 2 == 1)
        def _odd():
            o_ref[...] = -x_ref[...]

    b = pl.BlockSpec((2,), lambda i: (i,))
    return call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=4, in_specs=[b], out_specs=b)(
        normal(8)
    )


@program
def jitted_helper(jax, jnp, pl, pltpu, call):
    @jax.jit
    def helper(x, i):
        return x * (i + 1) + pl.num_programs(0)

    def k(x_ref, o_ref):
        o_ref[...] = helper(x_ref[...], pl.program_id(0))

    out = []
    for n in (2, 4):
        b = pl.BlockSpec((8 // n,), lambda i: (i,))
        out.append(
            call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(n,), in_specs=[b], out_specs=b)(
                normal(8)
            )
        )
    return out


@program
def input_written(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        x_ref[...] = x_ref[...] + 1
        o_ref[...] = x_ref[...]

    return call(
        k,
        jax.ShapeDtypeStruct((3, 4), jnp.float32),
        grid=(3,),
        in_specs=[pl.BlockSpec((4,), lambda i: (0,))],
        out_specs=pl.BlockSpec((None, 4), lambda i: (i, 0)),
    )(normal(4))


@program
def helpers(jax, jnp, pl, pltpu, call):
    def k(x_ref, o_ref):
        @pl.loop(0, 6, step=2)
        def _(i):
            o_ref[i] = x_ref[i] * i

        @pl.loop(pl.program_id(0), 6, step=3)
        def _(i):
            o_ref[i] = 7.0

        o_ref[7] = pl.reciprocal(x_ref[7])
        o_ref[6] = 0.0

    return (
        call(k, jax.ShapeDtypeStruct((8,), jnp.float32), grid=(1,))(normal(8)),
        pl.cdiv(9, 2),
        pl.cdiv(jnp.int32(9), 2),
        pl.next_power_of_2(9),
        pl.align_to(9, 4),
        pl.strides_from_shape((2, 3, 4)),
    )
