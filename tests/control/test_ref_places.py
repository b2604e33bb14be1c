"""Places of Refs: indices that repeat, slices with traced starts, what is out of range, parts."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray

X = np.arange(6, dtype=np.float32)
TWICE = np.array([1, 1, 3, 1])


def _refs(lib):
    return lib.new_ref(lib.numpy.asarray(X)), lib.new_ref(lib.numpy.arange(24.0).reshape(4, 6))


def _repeated(lib):
    ref, _ = _refs(lib)
    one = lib.numpy.ones(4)
    lib.ref.addupdate(ref, TWICE, one)
    ref.addupdate(one, lib.numpy.asarray(TWICE))
    lib.jit(lambda r, i: lib.ref.addupdate(r, i, one))(ref, TWICE)
    ref[TWICE] += one
    return ref[...], lib.ref.swap(ref, TWICE, lib.numpy.arange(4.0)), ref[...]


def _repeated_in_loops(lib):
    ref, _ = _refs(lib)

    @lib.jit
    def run(v):
        def outer(c, k):
            def inner(j, c):
                lib.ref.addupdate(ref, (lib.numpy.asarray(TWICE) + j) % 6, v * c)
                return c + ref[k]

            return lib.lax.fori_loop(0, 3, inner, c), ref[0]

        return lib.lax.scan(outer, 1.0, lib.numpy.arange(4))

    return run(lib.numpy.arange(4.0) / 8), ref[...]


def _gradients(lib):
    def f(x, v):
        ref = lib.new_ref(x)

        def turn(i, _):
            lib.ref.addupdate(ref, lib.numpy.asarray(TWICE), v * v * i)
            lib.ref.addupdate(ref, lib.ds(i, 2), ref[lib.ds(i + 1, 2)] ** 2)

        lib.lax.fori_loop(0, 3, turn, None)
        return (ref[TWICE] * v).sum() + (ref[...] ** 3).sum()

    at = lib.numpy.asarray(X) / 4, lib.numpy.arange(4.0) / 3
    grad = lib.grad(f, (0, 1))
    return grad(*at), lib.jit(grad)(*at), lib.jvp(f, at, at)


def _rows(lib):
    _, ref = _refs(lib)
    where = lib.numpy.array([[0, 0], [1, 2], [3, 3], [5, 5]])
    lib.vmap(lambda row, i: lib.ref.addupdate(row, i, lib.numpy.ones(2)))(ref, where)
    return ref[...]


def _several(lib):
    ref = lib.new_ref(lib.numpy.zeros((3, 4, 5)))
    i, j = lib.numpy.array([0, 0, 2]), lib.numpy.array([1, 1, 3])
    lib.ref.addupdate(ref, (i, j), lib.numpy.ones((3, 5)))
    lib.ref.addupdate(ref, (i, slice(None), j), lib.numpy.ones((3, 4)))
    lib.ref.addupdate(ref, (0, slice(1, 3), j), lib.numpy.ones((3, 2)))
    ref[2, :, j] = lib.numpy.full((3, 4), 7.0)
    return ref[...], ref[i, :, j], ref[0, :, j]


def _windows(lib):
    ref, grid = _refs(lib)

    @lib.jit
    def run(i):
        grid[lib.ds(i, 2), 1] = lib.numpy.ones(2)
        grid[lib.ds(i, 2)] += 1.0
        lib.ref.addupdate(grid, (lib.ds(i, 2), slice(1, 3)), lib.numpy.full((2, 2), 5.0))
        ref[lib.ds(i, 3)] = ref[lib.ds(i + 1, 3)]
        return grid[lib.ds(i, 2), lib.ds(0, 2)], grid[..., lib.ds(i, 3)]

    ref[lib.ds(1, 2, 3)] = lib.numpy.ones(2)
    return run(1), run(-1), run(9), ref[lib.ds(0, 3, 2)], ref[lib.ds(4, 2)], ref[...], grid[...]


def _outside(lib):
    ref, grid = _refs(lib)
    some = lib.numpy.array([1, 9, -1])

    @lib.jit
    def run(i):
        read = ref[i], grid[1, i], grid[i, 2:4], ref[some]
        ref[i] = 7.0
        lib.ref.addupdate(ref, i, 2.0)
        ref[some] = lib.numpy.ones(3)
        lib.ref.addupdate(ref, some, lib.numpy.ones(3))
        grid[i, 2:4] = lib.numpy.zeros(2)
        return read

    return run(9), run(-1), run(2), ref[...], grid[...]


def _arrays(lib):
    x, grid = lib.numpy.arange(6.0), lib.numpy.arange(24.0).reshape(4, 6)
    where, i = lib.numpy.array([0, 2]), lib.numpy.int32(4)

    def reads(i):
        ds = lib.ds
        return (
            x[ds(4, 5)], x[ds(-2, 2)], x[ds(i, 5)], x[ds(i, 3, 2)], grid[where, ds(i, 2)],
            grid[..., ds(i, 1)], grid[None, ds(i, 2)], grid[ds(1, 2), None], grid[i, ds(i, 2)],
            grid.at[ds(i - 1, 2)].get(mode="fill"), x[ds(2, 0)], x[ds(3)], x[ds(None)],
            x.at[ds(i, 5)].set(0.0), x.at[ds(i - 3, 2)].add(lib.numpy.ones(2)),
            grid.at[where, ds(i, 2)].set(-1.0), grid.at[1, ds(i, 2)].multiply(2.0),
            x.at[ds(-2, 2)].set(9.0),
        )  # fmt: skip

    return reads(i), lib.jit(reads)(i), lib.grad(lambda y: (y[lib.ds(i, 2)] ** 2).sum())(x)


PROGRAMS = [
    _repeated, _repeated_in_loops, _gradients, _rows, _several, _windows, _outside, _arrays,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__[1:])
def test_gives_what_jax_gives(program):
    """Values, shapes and dtypes are JAX's, eagerly and compiled."""
    got, want = jax.tree.leaves(program(fnarray)), jax.tree.leaves(program(jax))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=4e-6, atol=1e-6)


REFUSED = {
    "shape": lambda lib, r: lib.ref.addupdate(r, slice(0, 2), 1.0),
    "shape-of-places": lambda lib, r: lib.ref.addupdate(r, TWICE, 1.0),
    "shape-of-all": lambda lib, r: lib.ref.addupdate(r, ..., 1.0),
    "dtype": lambda lib, r: lib.ref.addupdate(r, 0, lib.numpy.int32(1)),
    "slice-outside": lambda lib, r: r[lib.ds(4, 3)],
    "size": lambda lib, r: lib.jit(lambda i: r[lib.ds(i, 7)])(0),
    "stride": lambda lib, r: lib.ds(0, 2, -1),
    "array": lambda lib, r: lib.ref.get(lib.numpy.ones(3), 0),
    "written-array": lambda lib, r: lib.ref.set(lib.numpy.ones(3), 0, 1.0),
    "start": lambda lib, r: lib.numpy.ones(3)[lib.ds(0.5, 2)],
    "two-axes-too-many": lambda lib, r: r[lib.ds(0, 2), lib.ds(0, 2)],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_jax_refuses(name):
    """What does not fit raises, as in JAX, and by its kind of error."""
    with pytest.raises((TypeError, ValueError)):
        REFUSED[name](jax, _refs(jax)[0])
    with pytest.raises((TypeError, ValueError)):
        REFUSED[name](fnarray, _refs(fnarray)[0])


def test_parts_add_up():
    """What is added to a part of a part counts as often as its places are named."""
    ref = fnarray.new_ref(fnarray.numpy.zeros((3, 4)))
    want = np.zeros((3, 4), np.float32)
    ref.at[np.array([0, 0, 2])].addupdate(fnarray.numpy.ones(3), (slice(None), 1))
    np.add.at(want[:, 1], [0, 0, 2], 1)

    @fnarray.jit
    def step(i):
        fnarray.ref.addupdate(ref.at[i], np.array([3, 3]), fnarray.numpy.ones(2))
        return ref.at[i].swap(5.0, 0)

    assert float(step(1)) == 0.0
    want[1, 3], want[1, 0] = 2, 5
    np.testing.assert_array_equal(ref[...], want)


def test_a_slice_is_a_tree():
    """The start of a slice is an argument of compiled functions like any other."""
    x = fnarray.numpy.arange(6)
    read = fnarray.jit(lambda part: x[part])
    np.testing.assert_array_equal(read(fnarray.ds(fnarray.numpy.int32(2), 3)), [2, 3, 4])
    np.testing.assert_array_equal(read(fnarray.ds(1, 2, 2)), [1, 3])
    with pytest.raises(TypeError, match="must be known"):
        fnarray.jit(lambda n: x[fnarray.ds(0, n)])(2)


WRITES = {
    "add": lambda ref, i: fnarray.ref.addupdate(ref, TWICE + i, fnarray.numpy.ones(4)),
    "window": lambda ref, i: ref.__setitem__(fnarray.ds(i, 3), fnarray.numpy.ones(3)),
    "part": lambda ref, i: ref.at[10:].addupdate(1.0, i),
    "swap": lambda ref, i: ref.__setitem__(i, ref.swap(5.0, i + 1)),
}


@pytest.mark.parametrize("name", WRITES)
def test_compiled_writes_stay_where_they_are(name):
    """A compiled write, alone or in nested loops and branches, leaves a Ref where it lies."""
    ref = fnarray.new_ref(fnarray.numpy.zeros(100_000))
    ref[0] = 1.0
    write = WRITES[name]

    def nested(i):
        def outer(c, k):
            def inner(j, c):
                fnarray.lax.cond(c > 0, lambda: write(ref, k + j), lambda: None)
                return c + 1

            return fnarray.lax.fori_loop(0, 3, inner, c), None

        fnarray.lax.scan(outer, i, fnarray.numpy.arange(3))

    address = ref.unsafe_buffer_pointer()
    fnarray.jit(lambda i: write(ref, i))(3)
    fnarray.jit(nested)(4)
    assert ref.unsafe_buffer_pointer() == address
