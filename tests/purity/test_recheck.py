"""``config.recheck``: a compiled program is traced again, and compared with what it was."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.config import config, effects, scoped
from fnarray.errors import ReadEffectError

X = jnp.float32(1.5)
table = {"k": 2.0}
weights = [np.ones(2, np.float32)]

#: What is changed unseen, with the check of effects off: function, change, what the error says.
UNSEEN = {
    "number": (lambda x: x * table["k"], lambda: table.update(k=3.0), "table"),
    "branch": (
        lambda x: x + 1 if table["k"] > 2.5 else x * 2, lambda: table.update(k=3.0), "table",
    ),
    "array": (lambda x: x * jnp.asarray(weights[0]), lambda: weights[0].fill(5.0), "weights"),
    "loop": (
        lambda x: lax.fori_loop(0, 2, lambda i, c: c * table["k"], x),
        lambda: table.update(k=3.0), "table",
    ),
    "inner jit": (
        (lambda g: lambda x: g(x) + table["k"])(fnarray.jit(lambda x: x * table["k"])),
        lambda: table.update(k=3.0), "table",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def restored():
    """Leave what the tests change as it was."""
    yield
    table.update(k=2.0)
    weights[0].fill(1.0)


@pytest.mark.cpu
@pytest.mark.parametrize("how", UNSEEN)
def test_a_change_is_an_error(how):
    """The error names the line and the name that changed; nothing is computed."""
    fun, change, name = UNSEEN[how]
    with effects("off"), scoped("recheck", "always"):
        program = fnarray.jit(fun)
        first = program(X)
        np.testing.assert_array_equal(program(X), first)
        change()
        with pytest.raises(ReadEffectError, match=rf"Changed since: .*{name}") as caught:
            program(X)
    assert "test_recheck.py" in str(caught.value)


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("how", "told"),
    [("number", "another number, 2.0, then 3.0"), ("array", "values: 1.0, then 5.0, at [0]")],
)
def test_the_numbers_are_told(how, told):
    """What a number, or an array's first value that differs, was and is: in code of a library,
    whose names nobody knows, that is what leads to it.
    """
    fun, change, _ = UNSEEN[how]
    with effects("off"), scoped("recheck", "always"):
        program = fnarray.jit(fun)
        program(X)
        change()
        with pytest.raises(ReadEffectError) as caught:
            program(X)
    assert told in str(caught.value)


@pytest.mark.cpu
def test_sampled_calls():
    """Calls 2, 4, 8, ... are traced again, and no others."""
    traces = []

    def f(x):
        traces.append(1)
        return x * 2

    with effects("off"), scoped("recheck", "sampled"):
        program = fnarray.jit(f)
        at = []
        for call in range(1, 18):
            before = len(traces)
            program(X)
            if len(traces) > before:
                at.append(call)
    assert at == [1, 2, 4, 8, 16]


@pytest.mark.cpu
def test_off_is_the_default_and_traces_once():
    """Without it a program is not traced again."""
    traces = []

    def f(x):
        traces.append(1)
        return x * 2

    assert config.recheck == "off"
    with effects("off"):
        program = fnarray.jit(f)
        for _ in range(5):
            program(X)
    assert len(traces) == 1


@pytest.mark.cpu
def test_what_a_guard_sees_is_traced_again():
    """A change that is seen is no error: the program is made anew."""
    held = np.full(1, 2.0, np.float32)

    def f(x):
        return x * held[0]

    with scoped("recheck", "always"):
        program = fnarray.jit(f)
        assert program(X) == 3.0
        held[0] = 4.0
        assert program(X) == 6.0


@pytest.mark.cpu
def test_containers_statics_and_structures():
    """Programs of every signature are compared with their own."""

    def f(tree, n, scale=1.0):
        return {"sum": (tree["a"] + tree["b"][0]) * n * scale}

    with scoped("recheck", "always"):
        program = fnarray.jit(f, static_argnums=1)
        for n in (2, 3, 2, 3):
            for tree in ({"a": X, "b": [X]}, {"a": jnp.ones(2), "b": [X]}):
                np.testing.assert_allclose(
                    program(tree, n)["sum"], (np.asarray(tree["a"]) + 1.5) * n
                )


#: How a compiled function is called from an eager transform, which keeps nothing itself.
CALLED = {
    "vmap": (fnarray.vmap, jnp.ones(3)),
    "grad": (fnarray.grad, X),
    "vmap of grad": (lambda f: fnarray.vmap(fnarray.grad(f)), jnp.ones(3)),
    "jvp": (lambda f: lambda x: fnarray.jvp(f, (x,), (x,))[1], X),
    "scan": (lambda f: lambda x: lax.scan(lambda c, y: (f(y), c), x, jnp.ones(2))[0], X),
}


@pytest.mark.cpu
@pytest.mark.parametrize("how", CALLED)
@pytest.mark.parametrize(("mode", "last"), [("always", 3), ("sampled", 4)])
def test_calls_in_transforms_are_compared(how, mode, last):
    """A graph that an eager transform takes from a compiled function is looked at, too."""
    transform, x = CALLED[how]
    with effects("off"), scoped("recheck", mode):
        program = transform(fnarray.jit(lambda x: x * x * table["k"]))
        np.testing.assert_array_equal(program(x), program(x))
        table.update(k=3.0)
        for _ in range(last - 3):
            program(x)
        with pytest.raises(ReadEffectError, match=r"Changed since: .*table"):
            program(x)


def test_the_environment():
    """``FNARRAY_RECHECK`` sets it for a process."""
    code = "from fnarray.config import config; print(config.recheck)"
    env = {**os.environ, "FNARRAY_RECHECK": "sampled"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "sampled"


# ---- compiled ahead of time, and mapped over devices ---------------------------------------------


@pytest.mark.cpu
@pytest.mark.parametrize("how", UNSEEN)
def test_a_program_compiled_ahead_is_compared(how):
    """``jit(f).lower(x).compile()`` never traces again, and says so once it should have."""
    fun, change, name = UNSEEN[how]
    with effects("off"), scoped("recheck", "always"):
        program = fnarray.jit(fun).lower(X).compile()
        first = program(X)
        np.testing.assert_array_equal(program(X), first)
        change()
        with pytest.raises(ReadEffectError, match=rf"Changed since: .*{name}"):
            program(X)


@pytest.mark.cpu
@pytest.mark.parametrize("in_axes", [0, 1])
def test_pmap_is_compared(in_axes):
    """On the short way to a program that is known, and where axes are moved."""
    with effects("off"), scoped("recheck", "always"):
        program = fnarray.pmap(lambda x: x * table["k"], in_axes=in_axes)
        rows = jnp.ones((1, 1))
        for _ in range(3):
            np.testing.assert_array_equal(program(rows), 2.0)
        table.update(k=3.0)
        with pytest.raises(ReadEffectError, match=r"Changed since: .*table"):
            program(rows)


@pytest.mark.cpu
def test_shard_map_is_compared():
    """As `pmap` is."""
    spec = fnarray.sharding.PartitionSpec("i")
    mesh = fnarray.make_mesh((1,), ("i",), (fnarray.sharding.AxisType.Auto,))
    with effects("off"), scoped("recheck", "always"):
        program = fnarray.shard_map(
            lambda x: x * table["k"], mesh=mesh, in_specs=spec, out_specs=spec
        )
        np.testing.assert_array_equal(program(jnp.ones(2)), 2.0)
        table.update(k=3.0)
        with pytest.raises(ReadEffectError, match=r"Changed since: .*table"):
            program(jnp.ones(2))


@pytest.mark.cpu
@pytest.mark.parametrize("make", [fnarray.jit, fnarray.pmap], ids=["jit", "pmap"])
def test_sampled_calls_of_mapped_functions(make):
    """Calls 2, 4, 8, ... are traced again, and no others."""
    traces = []

    def f(x):
        traces.append(1)
        return x * 2

    with effects("off"), scoped("recheck", "sampled"):
        program, at = make(f), []
        for call in range(1, 10):
            before = len(traces)
            program(jnp.ones((1, 2)))
            if len(traces) > before:
                at.append(call)
    assert at == [1, 2, 4, 8]


@pytest.mark.cpu
def test_a_function_is_rechecked_as_it_was_checked():
    """``jit(f, effects="off")`` is compared where the setting is another: no effect is found."""
    with scoped("recheck", "always"):
        program = fnarray.jit(lambda x: x * table["k"], effects="off")
        for _ in range(3):
            assert program(X) == 3.0
        ahead = program.lower(X).compile()
        for _ in range(3):
            assert ahead(X) == 3.0


@pytest.mark.cpu
def test_another_callback_is_told():
    """A host function that a name no longer stands for is part of the program."""
    host = [lambda x: x * np.float32(2.0)]

    def f(x):
        return fnarray.pure_callback(host[0], fnarray.ShapeDtypeStruct((), np.float32), x)

    with effects("off"), scoped("recheck", "always"):
        program = fnarray.jit(f)
        for _ in range(3):
            assert program(jnp.float32(1.5)) == 3.0
        host[0] = lambda x: x * np.float32(3.0)
        with pytest.raises(ReadEffectError, match="pure_callback"):
            program(jnp.float32(1.5))
