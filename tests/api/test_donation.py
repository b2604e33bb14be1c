"""Arrays that are given up: donated to compiled functions, or deleted."""

from __future__ import annotations

import copy
import gc
import re
import warnings

import jax
import numpy as np
import pytest

import fnarray


def _facts(lib):
    jnp, told = lib.numpy, []
    x, y, z, kept = jnp.arange(4.0), jnp.ones(4), jnp.ones(4), jnp.zeros(3)
    lib.jit(lambda x: x + 1, donate_argnums=0)(x)
    lib.jit(lambda x, y: x.sum() + y, donate_argnums=0)(z, kept)  # no result is like it
    lib.jit(lambda a, tree: a + tree["y"], donate_argnames="tree")(z, tree={"y": y})
    told += [a.is_deleted() for a in (x, y, z, kept)]
    kinds, words = (RuntimeError,), r"Array has been deleted with shape=float32\[4\]"
    if lib is jax:  # in PJRT's words where its cache has a compiled call for such arguments
        kinds, words = (RuntimeError, ValueError), rf"{words}|Buffer has been deleted"
    for use in (
        lambda: x + 1, lambda: np.asarray(x), lambda: repr(x), lambda: x[0], lambda: float(x.sum()),
        lambda: lib.jit(lambda a: a * 2)(x), lambda: lib.grad(lambda a: a.sum())(x),
        lambda: jnp.stack([x, x]), lambda: lib.lax.scan(lambda c, r: (c + r, r), 0.0, x),
        lambda: lib.vmap(lambda r: r + 1)(x), lambda: lib.jit(lambda: x + 1)(),
    ):  # fmt: skip
        with pytest.raises(kinds, match=words):
            use()
        told.append(x.shape == (4,) and x.dtype == jnp.float32)
    z.delete()
    z.delete()
    return [*told, z.is_deleted()]


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_what_is_given_up_says_so():
    """Donated arrays are deleted where a result is like them; reading one raises, as in JAX."""
    assert _facts(fnarray) == _facts(jax)


@pytest.mark.parametrize(
    ("of", "sizes"),
    [
        (lambda jnp: lambda x: x[:1] + 1, (3,)),
        (lambda jnp: lambda x: x.sum(), (3,)),
        (lambda jnp: lambda x: x.astype(jnp.int32), (3,)),
        (lambda jnp: lambda x: x.reshape(3, 1) + 0.5, (3,)),
        (lambda jnp: lambda x, y: y + 0.5, (3, 4)),
        (lambda jnp: lambda x, y: (x + 1,), (3, 3)),
        (lambda jnp: lambda x, y: (x + y,), (3, 3)),
        (lambda jnp: lambda x, y: (x + y[:3],), (3, 5)),
        (lambda jnp: lambda x, y: (x + 1, y.astype(jnp.int32)), (3, 2)),
    ],
)
def test_donated_in_vain(of, sizes):
    """One call of a signature warns of what stays, and JAX of the same; so is what is deleted."""
    facts = []
    for lib in (fnarray, jax):
        compiled = lib.jit(of(lib.numpy), donate_argnums=tuple(range(len(sizes))))
        for _ in range(2):
            args = [lib.numpy.arange(float(n)) for n in sizes]
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                compiled(*args)
            kinds = re.findall(r"not usable: (.*?\])[.,]", " ".join(str(w.message) for w in told))
            facts.append((kinds, [x.is_deleted() for x in args]))
    assert facts[:2] == facts[2:]


def test_copies_stay():
    """What is copied explicitly stays when the copy is donated, or the other way around."""
    jnp = fnarray.numpy
    for copied in (
        jnp.array, jnp.copy, lambda x: x.copy(), lambda x: jnp.asarray(x, copy=True),
        lambda x: x.astype(x.dtype, copy=True), lambda x: jnp.array(x, x.dtype), copy.copy,
    ):  # fmt: skip
        x = jnp.arange(3.0)
        fnarray.jit(lambda x: x + 1, donate_argnums=0)(copied(x))
        np.testing.assert_array_equal(x, [0, 1, 2])
        kept = copied(x)
        x.delete()
        np.testing.assert_array_equal(kept, [0, 1, 2])


def test_others_are_not_touched():
    """A view of a donated array, the array of NumPy it was made of, and a result, stay."""
    source = np.arange(4, dtype=np.float32)
    x = fnarray.numpy.asarray(source)
    part, rows = x[1:], x.reshape(2, 2)
    same = fnarray.jit(lambda x: x, donate_argnums=0)(x)
    np.testing.assert_array_equal(part, [1, 2, 3])
    np.testing.assert_array_equal(rows, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(same, source)
    traced = fnarray.jit(lambda x: fnarray.jit(lambda y: y + 1, donate_argnums=0)(x) + x)
    np.testing.assert_array_equal(traced(same), 2 * source + 1)
    assert not same.is_deleted()


def test_a_donated_array_that_is_placed():
    """So it is for arrays on a mesh."""
    mesh = fnarray.make_mesh((1,), ("i",))
    where = fnarray.sharding.NamedSharding(mesh, fnarray.P("i"))
    x = fnarray.device_put(fnarray.numpy.arange(4.0), where)
    fnarray.jit(lambda x: x + 1, donate_argnums=0, in_shardings=where, out_shardings=where)(x)
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="has been deleted"):
        x + 1
    assert (x.sharding, x.shape) == (where, (4,))


def test_arrays_that_live_are_listed():
    """`live_arrays` finds the arrays that are held, and no deleted one."""
    x, y = fnarray.numpy.arange(3.0), fnarray.numpy.arange(4.0)
    y.delete()
    gc.collect()
    listed = fnarray.live_arrays("cpu")
    assert any(a is x for a in listed)
    assert not any(a is y for a in listed)


def test_contexts_and_settings_of_tracing():
    """A user's context is part of what is compiled; no_tracing lets only what was traced run."""
    context, seen = fnarray.make_user_context(0), []
    f = fnarray.jit(lambda x: (seen.append(context.value), x + 1)[1], effects="off")
    for value in (1, 1, 2):
        with context(value):
            f(1.0)
    f(1.0)
    assert seen == [1, 2, 0]
    with fnarray.no_tracing():
        assert float(f(2.0)) == 3.0
        with pytest.raises(RuntimeError, match="would be traced"):
            f(np.ones(3, np.float32))
    assert [str(s) for s in fnarray.memory.Space] == [str(s) for s in jax.memory.Space]
    assert float(fnarray.device_put(1.0, fnarray.memory.Space.Host)) == 1.0


def test_what_is_donated_in_vain_is_told_of_an_impure_function():
    """The warning's trace of it is checked as the call's was, which is not at all."""
    read = {"offset": 1.0}
    rows = fnarray.numpy.zeros(2)  # which the graph takes before the arguments

    def total(x):
        return x.sum() + read["offset"] + rows[0]

    read["offset"] = 2.0
    with pytest.warns(UserWarning, match=r"not usable: .*float32\[3\]"):
        out = fnarray.jit(total, donate_argnums=0, effects="off")(fnarray.numpy.ones(3))
    assert out == 5
