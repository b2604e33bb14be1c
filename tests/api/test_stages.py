"""Ahead-of-time stages, graphs on request, and the functions about arrays and devices."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import ShapeDtypeStruct, lax, stages, tree
from fnarray.core.array import asarray

X = np.arange(4, dtype=np.float32)


def fun(t, n=2):
    return {"y": lax.mul(t["x"], t["x"]), "n": lax.add(t["k"], n)}


ARG = {"x": X, "k": 3}
SPEC = {"x": ShapeDtypeStruct((4,), np.float32), "k": 3}


# ---- stages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("arg", [ARG, SPEC], ids=["arrays", "structs"])
def test_stages_tell_their_signature(arg, jax):
    """Traced, lowered and compiled stages tell structures, avals and results as JAX's do."""
    theirs = {"x": jax.ShapeDtypeStruct((4,), np.float32), "k": 3}
    ours, want = (
        fnarray.jit(fun).lower(arg),
        jax.jit(lambda t: {"y": t["x"], "n": t["k"]}).lower(theirs),
    )
    for stage in (fnarray.jit(fun).trace(arg), ours, ours.compile()):
        assert str(stage.in_tree) == str(want.in_tree)
        assert str(stage.out_tree) == str(want.out_tree)
        assert str(stage.out_info["y"]) == str(want.out_info["y"])
        assert [str(a) for a in tree.leaves(stage.in_avals)] == ["~int32[]", "float32[4]"]
        (info,), kwargs = stage.args_info
        assert (info["x"].shape, info["x"].dtype, info["x"].donated) == ((4,), np.float32, False)
        assert kwargs == {}


@pytest.mark.parametrize(
    "options",
    [
        {"donate_argnames": "a"},
        {"donate_argnames": ("b", "c"), "static_argnames": "n"},
        {"donate_argnums": 2, "static_argnums": 1},
        {"donate_argnums": (0, 2), "donate_argnames": "c", "static_argnums": 1},
    ],
    ids=str,
)
def test_donated_arguments_are_told_as_by_jax(options, jax):
    """By position, counted with static ones, and by name; leaves are counted."""

    def f(a, n, b, *, c):
        return {k: v * n for k, v in a.items()}, b, c

    for args, kwargs in (
        (({"p": X, "q": X}, 2, X), {"c": X}),
        (({"p": X},), {"n": 2, "b": X, "c": X}),
    ):
        ours = fnarray.jit(f, **options).trace(*args, **kwargs)
        theirs = jax.jit(f, **options).trace(*args, **kwargs)
        assert ours.donate_argnums == theirs.donate_argnums
        told, expected = ours.args_info, theirs.lower().args_info
        assert [i.donated for i in tree.leaves(told)] == [
            i.donated for i in jax.tree.leaves(expected)
        ]
        assert str(tree.structure(told)) == str(jax.tree.structure(expected))


def test_donated_arguments_are_told():
    """Donation is shown, and the argument is gone; the others stay."""
    x = asarray(X)
    jitted = fnarray.jit(lambda x, y: lax.add(x, y), donate_argnums=1)
    assert jitted.lower(x, x).donate_argnums == (1,)
    y = x.copy()
    jitted(x, y)
    assert (x.is_deleted(), y.is_deleted()) == (False, True)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_texts():
    """A lowered function shows its source, its graph, its schedule, and rejects other dialects."""
    lowered = fnarray.jit(fun).lower(ARG)
    assert "def k_" in lowered.as_text()
    assert lowered.as_text("numba") == lowered.as_text()
    assert lowered.as_text("jaxpr").startswith("{ lambda")
    assert "mul" in lowered.as_text("plan")
    with pytest.raises(ValueError, match="dialect 'hlo'"):
        lowered.as_text("hlo")


def test_compiled_runs_and_costs():
    """A compiled function runs on its signature, and estimates work and memory."""
    compiled = fnarray.jit(fun).lower(ARG).compile()
    out = compiled(ARG)
    np.testing.assert_array_equal(np.asarray(out["y"]), X * X)
    assert int(out["n"]) == 5
    assert compiled.cost_analysis()["flops"] > 0
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (20, 20)
    assert isinstance(compiled, stages.Compiled)
    assert isinstance(fnarray.jit(fun), stages.Wrapped)


def test_cost_counts_products_and_sums():
    """A multiply-add is two operations, as in JAX, and the turns of a loop count."""
    a, b = np.ones((8, 16), np.float32), np.ones((16, 4), np.float32)

    def flops(f, *args):
        return fnarray.jit(f).lower(*args).compile().cost_analysis()["flops"]

    assert flops(lambda a, b: a @ b, a, b) == 2 * 8 * 16 * 4
    assert flops(lambda a, b: a @ b + 1, a, b) == 2 * 8 * 16 * 4 + 8 * 4
    assert flops(lambda a: a @ a, np.ones((64, 64), np.float32)) == 2 * 64**3
    image, kernel = np.ones((1, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    assert flops(lambda x, k: lax.conv(x, k, (1, 1), "VALID"), image, kernel) == 2 * 144 * 27
    assert flops(lambda a: lax.transpose(a, (1, 0)), a) == 0
    turns = flops(lambda x: lax.fori_loop(0, 10, lambda i, c: c * 2 + 1, x), X)
    assert 80 <= turns <= 90


def test_compiled_rejects_other_signatures():
    """Another structure, shape, dtype, or a tracer is a TypeError that shows both."""
    compiled = fnarray.jit(lambda x: lax.neg(x)).lower(X).compile()
    for arg, says in [((X,), "structure"), (X[:2], r"float32\[4\].*float32\[2\]"), (1, "int32")]:
        with pytest.raises(TypeError, match=f"(?s){says}"):
            compiled(arg)
    with pytest.raises(TypeError, match="while tracing"):
        fnarray.jit(lambda x: compiled(x))(X)


def test_static_arguments_are_part_of_a_stage():
    """A compiled function is called without the arguments that were static."""
    jitted = fnarray.jit(lambda x, n: lax.mul(x, float(n)), static_argnums=1)
    np.testing.assert_array_equal(np.asarray(jitted.lower(X, 3).compile()(X)), X * 3)


# ---- graphs --------------------------------------------------------------------------------------


def test_make_jaxpr_options(jax):
    """Static arguments, stand-ins and ``return_shape`` work as in JAX, and print the same."""

    def program(lax):
        return lambda x, n: {"a": lax.mul(x, float(n)), "b": (x, 1)}

    ours = fnarray.make_jaxpr(program(lax), static_argnums=1, return_shape=True)
    theirs = jax.make_jaxpr(program(jax.lax), static_argnums=1, return_shape=True)
    graph, shape = ours(ShapeDtypeStruct((2,), np.float32), 3)
    want, want_shape = theirs(jax.ShapeDtypeStruct((2,), np.float32), 3)
    assert str(graph) == str(want)
    assert str(shape) == str(want_shape)
    with pytest.raises(TypeError, match="callable"):
        fnarray.make_jaxpr(3)


def test_make_jaxpr_hoists_captured_arrays(jax):
    """Arrays that are captured show before the semicolon, with their values in ``consts``."""
    c = np.arange(3, dtype=np.float32)
    c.flags.writeable = False
    graph = fnarray.make_jaxpr(lambda x: lax.add(x, asarray(c)))(c)
    assert str(graph) == str(jax.make_jaxpr(lambda x: jax.lax.add(x, jax.numpy.asarray(c)))(c))
    np.testing.assert_array_equal(np.asarray(graph.consts[0]), c)


def test_eval_shape(jax):
    """Shapes come from tracing alone: no data is needed, none is computed."""
    huge = ShapeDtypeStruct((10**6, 10**6), np.float32)
    got = fnarray.eval_shape(lambda t: {"s": lax.mul(t, t), "n": 1}, huge)
    want = jax.eval_shape(
        lambda t: {"s": t * t, "n": 1}, jax.ShapeDtypeStruct((10**6, 10**6), np.float32)
    )
    assert {k: str(v) for k, v in got.items()} == {k: str(v) for k, v in want.items()}
    assert str(fnarray.jit(lambda t: t).eval_shape(huge)) == str(huge)


def test_stand_ins_as_constants():
    """A function closed over a stand-in has shapes and a graph, and cannot be run."""
    one, none = fnarray.ShapeDtypeStruct((2,), np.float32), fnarray.ShapeDtypeStruct((), np.int32)
    got = fnarray.eval_shape(lambda x: (one, none, lax.neg(x)), X)
    assert got[:2] == (one, none)
    assert str(fnarray.make_jaxpr(lambda: one)()) == "{ lambda a:f32[2]; . let  in (a,) }"
    with pytest.raises(TypeError, match="does not have a value"):
        fnarray.jit(lambda: one)()


def test_compile_time_evaluation():
    """Inside ensure_compile_time_eval operations on values give values, in a traced function.

    Those on tracers are traced.
    """

    @fnarray.jit
    def traced(x):
        with fnarray.ensure_compile_time_eval():
            n = int(lax.add(1, 1))
            x = lax.add(x, 0.0)
        return lax.mul(x, float(n))

    np.testing.assert_array_equal(np.asarray(traced(X)), X * 2)


def test_names():
    """Scopes and named calls change nothing but must be given strings."""
    with fnarray.named_scope("here"):
        y = fnarray.named_call(lax.neg, name="minus")(X)
    np.testing.assert_array_equal(np.asarray(y), -X)
    with pytest.raises(TypeError, match="string"), fnarray.named_scope(3):
        pass


def test_typeof(jax):
    """The type of a value prints as JAX's does."""
    for x in (X, 1, 2.0, np.int8(3)):
        assert str(fnarray.typeof(x)) == str(jax.typeof(x))


# ---- arrays and devices --------------------------------------------------------------------------


def test_device_put_and_get():
    """Trees of numbers become trees of arrays, and back of NumPy arrays; tracers stay tracers."""
    put = fnarray.device_put({"a": X, "b": [1, 2.0]}, fnarray.devices()[0])
    assert all(isinstance(x, fnarray.Array) for x in tree.leaves(put))
    got = fnarray.device_get(put)
    assert all(isinstance(x, np.ndarray) for x in tree.leaves(got))
    assert fnarray.block_until_ready(put) is put
    np.testing.assert_array_equal(np.asarray(fnarray.jit(fnarray.device_put)(X)), X)
    np.testing.assert_array_equal(np.asarray(fnarray.jit(fnarray.device_get)(X)), X)
    with pytest.raises(ValueError, match="device"):
        fnarray.device_put(X, "cpu")
    with pytest.raises(TypeError):
        fnarray.device_put("abc")


def test_devices(jax):
    """CPU devices are numbered, print as in JAX, and other platforms are an error."""
    first, theirs = fnarray.devices()[0], jax.devices()[0]
    assert (str(first), repr(first)) == (str(theirs), repr(theirs))
    for name in ("platform", "id", "device_kind", "process_index"):
        assert getattr(first, name) == getattr(theirs, name)
    assert fnarray.devices() == fnarray.local_devices() == fnarray.devices("cpu")
    assert fnarray.device_count() == fnarray.local_device_count() == len(fnarray.devices())
    assert (fnarray.default_backend(), fnarray.process_index()) == ("cpu", 0)
    assert fnarray.process_count() == len(fnarray.process_indices()) == 1
    with pytest.raises(RuntimeError, match="tpu"):
        fnarray.devices("tpu")
    with pytest.raises(ValueError, match="process_index 3"):
        fnarray.local_devices(3)


def test_stages_say_what_they_are():
    """Name and signature of the function, at each stage."""

    def scaled(x, *, by):
        return x * by

    traced = fnarray.jit(scaled).trace(X.reshape(2, 2), by=1)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile()):
        kind = type(stage).__name__
        assert repr(stage) == f"<{kind}: scaled(float32[2,2], ~int32[]) -> float32[2,2]>"
