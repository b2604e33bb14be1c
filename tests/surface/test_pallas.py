"""Pallas: kernels give what JAX's interpreter gives, as loops that are compiled."""

from __future__ import annotations

import functools

import jax
import jax.numpy
import numpy as np
import pytest
from jax.experimental import pallas as jax_pallas
from jax.experimental.pallas import tpu as jax_tpu

import fnarray
import fnarray.numpy as jnp
from fnarray.config import scoped
from fnarray.experimental import pallas as pl
from fnarray.experimental.pallas import mosaic_gpu, triton
from fnarray.experimental.pallas import tpu as pltpu

from . import pallas_corners, pallas_kernels  # noqa: F401 - which add their programs
from .pallas_programs import PROGRAMS

INTERPRETED = functools.partial(jax_pallas.pallas_call, interpret=True)
EIGHT = fnarray.ShapeDtypeStruct((8,), jnp.float32)
HALF = pl.BlockSpec((4,), lambda i: (i,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_jax_gives(name):
    """Numbers, dtypes, shapes and what lies beyond the ends are the interpreter's."""
    program = PROGRAMS[name]
    wanted = jax.tree.leaves(program(jax, jax.numpy, jax_pallas, jax_tpu, INTERPRETED))
    found = fnarray.tree.leaves(program(fnarray, jnp, pl, pltpu, pl.pallas_call))
    assert [np.asarray(x).dtype for x in found] == [np.asarray(x).dtype for x in wanted]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-5)


def copy(x_ref, o_ref):
    """Copy a block."""
    o_ref[...] = x_ref[...]


def returns(x_ref, o_ref):
    """Return what is to be written."""
    return x_ref[...]


def asks(x_ref, o_ref):
    """Ask for an axis that the grid has not."""
    o_ref[...] = x_ref[...] * pl.program_id(1)


def few(x_ref):
    """Take too few Refs."""


X = np.arange(8, dtype=np.float32)


def call(kernel=copy, **settings):
    """Call a kernel on eight numbers."""
    given = {"out_shape": EIGHT, "grid": (2,), "in_specs": [HALF], "out_specs": HALF}
    return pl.pallas_call(kernel, **(given | settings))(X)


@pytest.mark.parametrize(
    ("error", "text", "settings"),
    [
        (ValueError, "args\\[0\\].*same number of dimensions.*\\(8,\\)",
         {"in_specs": [pl.BlockSpec((4, 4), lambda i: (i, 0))]}),
        (TypeError, "args\\[0\\] is called with the 1 indices.*Give it a parameter for each",
         {"in_specs": [pl.BlockSpec((4,), lambda i, j: (i,))]}),
        (ValueError, "outputs must return 1 values.*returning 2",
         {"out_specs": pl.BlockSpec((4,), lambda i: (i, 0))}),
        (ValueError, "args\\[0\\] must return integer scalars.*float32",
         {"in_specs": [pl.BlockSpec((4,), lambda i: (i * 1.0,))]}),
        (ValueError, "returns \\(.*should return None.*o_ref\\[...\\]", {"kernel": returns}),
        (TypeError, "few .* is called with 2 Refs.*Give it a parameter for each", {"kernel": few}),
        (ValueError, "Pytree for `in_specs`", {"in_specs": [HALF, HALF]}),
        (ValueError, "Pytree for `out_specs`", {"out_specs": [HALF]}),
        (ValueError, "Invalid out_shape type.*ShapeDtypeStruct", {"out_shape": 3}),
        (ValueError, "output index 1 outside the range", {"input_output_aliases": {0: 1}}),
        (ValueError, "float32\\[8\\] and an output int32\\[8\\]",
         {"input_output_aliases": {0: 0},
          "out_shape": fnarray.ShapeDtypeStruct((8,), jnp.int32)}),
        (ValueError, "axis 1 is out of range of the grid of asks", {"kernel": asks}),
        (ValueError, "`grid_spec` is specified, and so is `grid`", {"grid_spec": pl.GridSpec()}),
        (ValueError, "Grid must be", {"grid": (1.5,)}),
        (ValueError, "Unsupported block dimension", {"in_specs": [pl.BlockSpec(("a",), None)]}),
        (TypeError, "in_specs\\[0\\] must be a BlockSpec", {"in_specs": [3]}),
        (TypeError, "kernel must be callable", {"kernel": None}),
        (TypeError, "scratch_shapes has 3", {"scratch_shapes": [3]}),
        (ValueError, "Invalid shape for `swap`.*\\(4,\\).*\\(8,\\)",
         {"in_specs": pl.no_block_spec}),
        (NotImplementedError, "whose elements lie anywhere",
         {"in_specs": [pl.BlockSpec((pl.Indirect(4),), lambda i: (i,))]}),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(error, text, settings):
    """Each names the argument, or the kernel, what it got, and what to do."""
    with pytest.raises(error, match=text):
        call(**settings)


def test_a_spec_takes_the_shape_first():
    """The order of JAX's first versions is refused."""
    with pytest.raises(TypeError, match="The shape comes first"):
        pl.BlockSpec(lambda i: (i,), (4,))


def test_ids_are_asked_in_kernels():
    """Outside of one there is no grid."""
    for ask in (pl.program_id, pl.num_programs):
        with pytest.raises(ValueError, match="outside of a kernel"):
            ask(0)


def test_ids_in_loops_and_functions_of_kernels():
    """A jitted function is traced for each grid that it is called in, and loops know theirs."""

    @fnarray.jit
    def helper(x):
        return x * (pl.program_id(0) + 1) + pl.num_programs(0)

    def kernel(x_ref, o_ref):
        def body(i, total):
            return total + helper(x_ref[...]) * pl.program_id(0)

        o_ref[...] = fnarray.lax.fori_loop(0, 3, body, jnp.zeros_like(o_ref))

    for n in (1, 2, 4, 2):
        block = pl.BlockSpec((8 // n,), lambda i: (i,))
        found = call(kernel, grid=(n,), in_specs=[block], out_specs=block)
        i = np.repeat(np.arange(n), 8 // n)
        np.testing.assert_allclose(found, 3 * i * (X * (i + 1) + n), rtol=1e-6)


def test_a_call_is_a_loop_and_its_results_lie_where_they_lie():
    """What is emitted is one kernel, in which no array is copied."""

    def kernel(x_ref, o_ref):
        i = pl.program_id(0)
        o_ref[i] = jnp.sin(x_ref[i])

    n = 1000
    shape = fnarray.ShapeDtypeStruct((n,), jnp.float32)
    f = fnarray.jit(pl.pallas_call(kernel, shape, grid=(n,)))
    text = f.lower(np.zeros(n, np.float32)).as_text(dialect="numba")
    assert text.count("def k_") == 1
    assert text.count("for s0 in range(") == 1
    assert "w0" not in text


def test_gradients_of_kernels():
    """Reverse mode goes through a grid, blocks that are added to and scratch memory."""

    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = jnp.tanh(acc_ref[...])

    f = pl.pallas_call(
        kernel,
        fnarray.ShapeDtypeStruct((4, 3), jnp.float32),
        grid=(2, 3),
        in_specs=[
            pl.BlockSpec((2, 2), lambda i, k: (i, k)),
            pl.BlockSpec((2, 3), lambda i, k: (k, 0)),
        ],
        out_specs=pl.BlockSpec((2, 3), lambda i, k: (i, 0)),
        scratch_shapes=[pltpu.VMEM((2, 3), jnp.float32)],
    )
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s).astype(np.float32) for s in ((4, 6), (6, 3)))
    found = fnarray.grad(lambda x, y: (f(x, y) ** 2).sum(), (0, 1))(x, y)
    wanted = fnarray.grad(lambda x, y: (jnp.tanh(x @ y) ** 2).sum(), (0, 1))(x, y)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_views_of_refs():
    """What is written to a Ref in another shape, order or dtype lies where it is seen."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        o_ref.reshape(8, 4)[2] = jnp.zeros(4, jnp.float32)
        o_ref.at[1].reshape((2, 4))[0, 1] = 5.0
        o_ref.transpose()[3, 2] = 7.0
        o_ref.transpose((1, 0)).at[0].addupdate(jnp.ones(4), ...)
        bits = o_ref.reshape(32).bitcast(jnp.int32)
        bits[31] = bits[31] | np.int32(-(2**31))
        assert (bits.shape, bits.dtype, bits.ndim) == ((32,), jnp.int32, 1)

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    found = pl.pallas_call(kernel, fnarray.ShapeDtypeStruct(x.shape, x.dtype))(x)
    x.reshape(8, 4)[2] = 0
    x[1, 1], x[2, 3] = 5, 7
    x.T[0] += 1
    x[3, 7] *= -1
    np.testing.assert_array_equal(found, x)
    with pytest.raises(NotImplementedError, match="different widths"):
        fnarray.new_ref(x).bitcast(jnp.int8)


def test_kernels_on_the_devices_of_a_mesh():
    """Each runs on its part, types of what varies included; a cut argument is refused."""

    def kernel(x_ref, o_ref, acc_ref):
        acc_ref[...] = x_ref[...] * fnarray.lax.axis_index("d")
        o_ref[...] = acc_ref[...] + pl.program_id(0)

    def f(x):
        shape = fnarray.ShapeDtypeStruct(x.shape, x.dtype)
        memory = [pltpu.VMEM((4,), jnp.float32)]
        return pl.pallas_call(
            kernel, shape, grid=(2,), in_specs=[HALF], out_specs=HALF, scratch_shapes=memory
        )(x)

    with scoped("num_cpu_devices", 2):
        x, spec = np.arange(16, dtype=np.float32), fnarray.P("d")
        mesh = fnarray.make_mesh((2,), ("d",))
        with fnarray.set_mesh(mesh):
            cut = fnarray.device_put(x, spec)
            found = fnarray.jit(fnarray.shard_map(f, in_specs=spec, out_specs=spec))(cut)
            with pytest.raises(ValueError, match=r"argument 0, float32.*shard_map"):
                call_on = pl.pallas_call(copy, fnarray.ShapeDtypeStruct((16,), jnp.float32))
                call_on(cut)
    i = np.arange(16)
    np.testing.assert_array_equal(found, x * (i // 8) + i % 8 // 4)


def test_names_that_are_not_there_say_why():
    """Each with what to use in its place."""
    for module, name, text in (
        (pl, "core_map", "pallas_call"),
        (pltpu, "prng_seed", "fnarray.random"),
        (pltpu, "make_async_remote_copy", "shard_map"),
        (triton, "elementwise_inline_asm", "fnarray.numpy"),
        (mosaic_gpu, "wgmma", "pallas_call"),
    ):
        with pytest.raises(AttributeError, match=text):
            getattr(module, name)


def test_every_name_of_jaxs_is_there_or_says_why():
    """So it is of the package and of what it has for TPUs and Triton."""
    from jax.experimental.pallas import triton as jax_triton

    for theirs, ours in ((jax_pallas, pl), (jax_tpu, pltpu), (jax_triton, triton)):
        names = {name for name in dir(theirs) if not name.startswith("_")}
        reasons = ours.__getattr__.reasons
        assert {n for n in names if not hasattr(ours, n) and n not in reasons} <= {"annotations"}
