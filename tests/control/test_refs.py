"""Refs: what a program reads and writes is what JAX's reads and writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

import fnarray
from fnarray.errors import UnexpectedTracerError, WriteEffectError

X = np.arange(6, dtype=np.float32)
X.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Row:
    """A program, written once for both packages."""

    name: str
    program: Callable[[Any], Any]


def _eager(jax):
    ref = jax.new_ref(jax.numpy.asarray(X))
    ref[0] = 5.0
    ref[1:3] = jax.numpy.ones(2)
    ref[jax.numpy.array([4, 5])] = jax.numpy.array([7.0, 8.0])
    ref[3] += 2.0
    before = ref[...]
    ref[...] += 1.0
    old = jax.ref.swap(ref, 0, 9.0)
    jax.ref.addupdate(ref, 1, 0.5)
    ref.addupdate(1.5, 2)
    return before, old, ref[1:4], jax.ref.get(ref, 5), jax.freeze(ref)


def _argument(jax):
    ref = jax.new_ref(jax.numpy.asarray(X))

    @jax.jit
    def step(ref, x):
        ref[0] = x
        ref[...] += 1.0
        return ref[1:].sum()

    return step(ref, 2.0), step(ref, 3.0), ref[...]


def _closed_over(jax):
    ref = jax.new_ref(jax.numpy.asarray(X))

    @jax.jit
    def step(i):
        ref[i] *= 2.0
        return ref[...].sum()

    @jax.jit
    def outer(i):
        return step(i) + step(i + 1)

    return step(1), outer(2), ref[...]


def _tree(jax):
    state = {"a": jax.new_ref(jax.numpy.asarray(X)), "n": jax.new_ref(jax.numpy.int32(0))}

    @jax.jit
    def step(state_refs):
        state_refs["a"][2] = 0.0
        state_refs["n"][...] += 1

    step(state)
    step(state)
    return state["a"][...], state["n"][...]


def _inside(jax):
    def f(x):
        ref = jax.new_ref(x)
        jax.lax.fori_loop(0, 3, lambda i, _: ref.addupdate(ref[i + 1], i), None)
        return jax.freeze(ref)

    x = jax.numpy.asarray(X)
    jac = jax.jacrev(f)(x)
    return jax.jit(f)(x), jac, jax.vmap(f)(jax.numpy.stack([x, x + 1])), jax.jit(jax.jacrev(f))(x)


def _scan(jax):
    ref = jax.new_ref(jax.numpy.zeros(6))
    log = jax.new_ref(jax.numpy.zeros(()))

    def turn(c, x):
        ref[0] = x
        log[...] += c * ref[1]
        ref[1] += 1.0
        return c + x, ref[0]

    out = jax.lax.scan(turn, 0.0, jax.numpy.asarray(X))
    back = jax.jit(lambda: jax.lax.scan(turn, 1.0, jax.numpy.asarray(X), reverse=True))()
    return out, back, ref[...], log[...]


def _scan_rows(jax):
    rows, total = jax.new_ref(jax.numpy.asarray(X)), jax.new_ref(jax.numpy.float32(0))

    def turn(c, x_ref):
        total[...] += x_ref[...]
        x_ref[...] = c
        return c + 1, None

    return jax.lax.scan(turn, jax.numpy.float32(10), rows)[0], rows[...], total[...]


def _while(jax):
    ref = jax.new_ref(jax.numpy.asarray(X))

    @jax.jit
    def f(n):
        def body(i, _):
            ref[i] += 1.0

        jax.lax.fori_loop(0, n, body, None)
        return jax.lax.while_loop(lambda i: i < n, lambda i: (ref.addupdate(1.0, 5), i + 1)[1], 0)

    return f(4), ref[...]


def _map(jax):
    ref = jax.new_ref(jax.numpy.float32(0))
    out = jax.lax.map(lambda x: (ref.addupdate(x, ...), ref[...])[1], jax.numpy.asarray(X))
    return out, ref[...]


def _cond(jax):
    a, b = jax.new_ref(jax.numpy.float32(1)), jax.new_ref(jax.numpy.float32(2))

    def first(ref):
        a[...] = 5.0
        return ref[...]

    def second(ref):
        ref[...] += a[...]
        return a[...]

    def choose(p):
        return jax.lax.cond(p, first, second, b)

    out = [choose(False), choose(True), jax.jit(choose)(False)]
    which = jax.lax.switch(1, [lambda ref: ref[...], lambda ref: ref[...] * 2], a)
    return out, which, a[...], b[...]


def _vmap(jax):
    grid = jax.new_ref(jax.numpy.zeros((3, 4)))
    jax.vmap(lambda i, ref: ref.addupdate(1.0, i))(jax.numpy.arange(3), grid)
    jax.vmap(lambda i, ref: ref.addupdate(2.0, i), in_axes=(0, 1))(
        jax.numpy.arange(3)[:1].repeat(4), grid
    )
    look = jax.new_ref(jax.numpy.asarray(X))
    read = jax.jit(jax.vmap(lambda i: look[i]))(jax.numpy.arange(6)[::-1])

    def own(x):
        ref = jax.new_ref(jax.numpy.zeros(2))
        ref[0] = x
        return ref[...]

    return grid[...], read, jax.vmap(own)(jax.numpy.asarray(X))


def _grad(jax):
    seen = jax.new_ref(jax.numpy.float32(0))

    def f(x, out_ref):
        out_ref[...] = jax.lax.stop_gradient(x) * 2
        ref = jax.new_ref(x)
        ref[...] = ref[...] * ref[...] * seen[...]
        return ref[...]

    seen[...] = jax.numpy.float32(3)
    out = jax.new_ref(jax.numpy.float32(0))
    return jax.grad(f)(2.0, out), out[...], jax.jit(jax.value_and_grad(f))(3.0, out), out[...]


def _grad_of_scan(jax):
    def f(x):
        ref = jax.new_ref(jax.numpy.zeros(4))

        def turn(c, i):
            ref[i] = jax.numpy.sin(c)
            return c * 1.1, ref[i]

        c, ys = jax.lax.scan(turn, x, jax.numpy.arange(4))
        return ref[...].sum() + c + ys.sum()

    return jax.grad(f)(2.0), jax.jvp(f, (2.0,), (1.0,)), jax.jit(jax.grad(f))(2.0)


def _plumbing(jax):
    @jax.custom_vjp
    def tap(x, ref):
        return x

    tap.defvjp(lambda x, ref: (x, ref), lambda ref, g: (ref.__setitem__(..., g), (g, None))[1])
    ref = jax.new_ref(jax.numpy.float32(0))
    first = jax.grad(lambda x: jax.numpy.sin(tap(x, ref)) * 2)(1.0), ref[...]
    second = jax.jit(jax.grad(lambda x: jax.numpy.sin(tap(x, ref)) * 3))(1.0), ref[...]
    return first, second


def _checkpoint(jax):
    ref = jax.new_ref(jax.numpy.asarray(X))
    return jax.grad(jax.checkpoint(lambda x: jax.numpy.sin(x) * ref[3]))(2.0)


ROWS = [
    Row(f.__name__[1:], f)
    for f in (
        _eager, _argument, _closed_over, _tree, _inside, _scan, _scan_rows, _while, _map, _cond,
        _vmap, _grad, _grad_of_scan, _plumbing, _checkpoint,
    )
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_gives_what_jax_gives(row):
    """Values, shapes and dtypes of a program with Refs are JAX's."""
    got, want = jax.tree.leaves(row.program(fnarray)), jax.tree.leaves(row.program(jax))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=2e-6, atol=1e-6)


def _made(jax):
    return jax.new_ref(jax.numpy.asarray(X))


def _to_one_place(jax):
    ref = _made(jax)
    jax.vmap(lambda x: ref.__setitem__(0, x))(jax.numpy.ones(3))


def _differentiated(jax):
    ref = _made(jax)
    jax.grad(lambda x: (ref.__setitem__(0, x), x)[1])(1.0)


def _differentiated_argument(jax):
    jax.grad(lambda x, out_ref: (out_ref.__setitem__(0, x), x)[1])(1.0, _made(jax))


ERRORS = {
    "twice": lambda jax: (lambda r: jax.jit(lambda a, b: a[...] + b[...])(r, r))(_made(jax)),
    "captured-and-given": lambda jax: (lambda r: jax.jit(lambda a: a[0] + r[0])(r))(_made(jax)),
    "returned": lambda jax: jax.jit(lambda x: jax.new_ref(x))(1.0),
    "returned-argument": lambda jax: jax.jit(lambda r: r)(_made(jax)),
    "carried": lambda jax: jax.lax.scan(lambda c, x: (c, None), _made(jax), X),
    "branch": lambda jax: jax.lax.cond(True, lambda r: r, lambda r: r, _made(jax)),
    "dtype": lambda jax: _made(jax).__setitem__(0, 3),
    "shape": lambda jax: _made(jax).__setitem__(..., 3.0),
    "bounds": lambda jax: _made(jax)[6],
    "arithmetic": lambda jax: _made(jax) + 1,
    "operand": lambda jax: jax.numpy.sin(_made(jax)),
    "number": lambda jax: float(jax.new_ref(1.0)),
    "list": lambda jax: jax.new_ref([1.0]),
    "vmap": _to_one_place,
    "grad": _differentiated,
    "grad-argument": _differentiated_argument,
}


@pytest.mark.parametrize("name", ERRORS)
def test_refuses_what_jax_refuses(name):
    """What JAX refuses raises the same kind of error; all but a few of JAX's have a class."""
    with pytest.raises(Exception) as wanted:
        ERRORS[name](jax)
    kind = ValueError if wanted.type is Exception else wanted.type
    with pytest.raises(kind) as got:
        ERRORS[name](fnarray)
    words = "mutable array reference", "Ref dtype", "array reference of type"
    for text in words:
        assert (text in str(wanted.value)) <= (text in str(got.value)), got.value


def _frozen(lib):
    ref = _made(lib)
    before = lib.freeze(ref)
    ref[0] = 7.0
    return before, ref[...], lib.freeze(ref), lib.jit(lambda: ref[...] + 1)()


def test_a_frozen_ref_lives_on_where_nothing_is_traced():
    """As in JAX it can be used, and what freeze gave stays what it is; a traced one is gone."""
    for g, w in zip(_frozen(fnarray), _frozen(jax), strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))

    uses = (lambda r: r[...], lambda r: r.__setitem__(0, 1.0), fnarray.freeze)
    for use in uses:

        def f(x, use=use):
            ref = fnarray.new_ref(x)
            fnarray.freeze(ref)
            assert "frozen" in repr(ref)
            return use(ref)

        with pytest.raises(ValueError, match="after freeze"):
            fnarray.jit(f)(np.ones(3, np.float32))


def test_a_ref_of_a_trace_does_not_outlive_it():
    """A Ref that a traced function kept somewhere says where it was made."""
    kept = []
    fnarray.jit(lambda x: kept.append(fnarray.new_ref(x)), effects="off")(1.0)
    with pytest.raises(UnexpectedTracerError, match=r"test_refs\.py"):
        kept[0][...]


def test_arrays_never_change():
    """An array read from a Ref, written to one, or made one, keeps its elements."""
    x = fnarray.numpy.asarray(X)
    ref = fnarray.new_ref(x)
    before = ref[...]
    add = fnarray.jit(lambda: ref.addupdate(1.0, 0))
    result = fnarray.jit(lambda: (ref.addupdate(1.0, 0), ref[...])[1])
    ref[1] = 100.0
    add()
    after = result()
    ref[2] = 50.0
    add()
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(before, X)
    np.testing.assert_array_equal(after, [2, 100, 2, 3, 4, 5])
    np.testing.assert_array_equal(ref[...], [3, 100, 50, 3, 4, 5])


def test_refs_exchanged_are_exchanged():
    """Two Refs that swap values in a program lie in each other's memory afterwards."""
    a, b = fnarray.new_ref(fnarray.numpy.zeros(3)), fnarray.new_ref(fnarray.numpy.ones(3))

    @fnarray.jit
    def swap():
        a[...], b[...] = b[...], a[...]

    for _ in range(3):
        swap()
    a[0] = 7.0
    np.testing.assert_array_equal(a[...], [7, 1, 1])
    np.testing.assert_array_equal(b[...], [0, 0, 0])


def test_a_program_writes_in_place():
    """A compiled write to a large Ref, and a loop of them, allocate nothing of its size."""
    ref = fnarray.new_ref(fnarray.numpy.zeros(4_000_000))
    ref[0] = 1.0

    @fnarray.jit
    def step(i):
        ref[i] += 1.0

    @fnarray.jit
    def loop(n):
        def body(i, _):
            ref[i] += 1.0

        fnarray.lax.fori_loop(0, n, body, None)

    @fnarray.jit
    def whole():
        ref[...] *= 2.0

    address = ref.buffer().ctypes.data
    for run in (lambda: step(3), lambda: loop(50), whole):
        run()
        assert ref.buffer().ctypes.data == address
    assert float(ref[3]) == 4.0
    assert float(ref[0]) == 4.0


def test_threads_have_their_own_traces():
    """A Ref of outside is read in the trace of the thread that asks."""
    ref, found = fnarray.new_ref(fnarray.numpy.ones(3)), []

    def work(k):
        found.append(float(fnarray.jit(lambda x: x + ref[0])(float(k))))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [1, 2, 3, 4]


def test_parts_are_read_and_written():
    """``ref.at[i]`` is a part of a Ref, to be read, written and taken parts of."""
    ref = fnarray.new_ref(fnarray.numpy.zeros((3, 4)))
    row = ref.at[1]
    row[2] = 5.0
    ref.at[0].at[1:3][...] = fnarray.numpy.ones(2)

    @fnarray.jit
    def step(i):
        ref.at[2].at[i][...] += 1.0

    step(3)
    want = np.zeros((3, 4), np.float32)
    want[1, 2], want[0, 1:3], want[2, 3] = 5, 1, 1
    np.testing.assert_array_equal(ref[...], want)
    assert (row.shape, row.dtype, row.ndim) == ((4,), np.float32, 1)
    np.testing.assert_array_equal(row[...], want[1])


def test_writing_an_array_stays_an_error():
    """Only what is known to be a Ref may be written; an array handed in may not."""

    def f(x):
        x[0] = 1.0

    with pytest.raises(WriteEffectError, match="FNA106"):
        fnarray.jit(f)(X)
    fnarray.jit(f)(_made(fnarray))
    with pytest.raises(TypeError, match="immutable"):
        fnarray.jit(lambda x_ref: x_ref.__setitem__(0, 1.0))(X)


class _Counter:
    """An object with a state."""

    def __init__(self):
        self.n = fnarray.new_ref(0)

    def count(self):
        self.n[...] += 1
        return self.n[...]


def test_an_object_may_hold_refs():
    """A method that writes to a Ref of its object is staged; another Ref in its place is seen."""
    counter = _Counter()
    count = fnarray.jit(counter.count)
    assert [int(count()), int(count()), int(counter.count())] == [1, 2, 3]
    counter.n = fnarray.new_ref(10)
    assert int(count()) == 11


def test_refs_are_refused_where_no_value_can_be_handed_in():
    """A function that is traced for its graph alone says that it takes no Refs."""
    ref = _made(fnarray)
    f = fnarray.custom_jvp(lambda x: x * ref[1])
    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(NotImplementedError, match="Pass its value"):
        fnarray.jit(f)(2.0)


def test_stages_take_refs():
    """A program that is compiled ahead writes to the Refs that it is called with."""
    ref = _made(fnarray)
    compiled = fnarray.jit(lambda ref, x: ref.addupdate(x, 0)).lower(ref, 1.0).compile()
    compiled(ref, 2.0)
    assert float(ref[0]) == 2.0
    assert str(fnarray.typeof(ref)) == "Ref{float32[6]}"
    assert fnarray.eval_shape(lambda ref: ref[0], ref).shape == ()


def _steps(lib, where, number):
    """Return writes to two references, and a read, by what they do."""
    a, b, where_else = number % 2, (number // 2) % 2, where[::-1]
    return {
        "element": lambda r: r[a].__setitem__(2, r[b][4]),
        "scale": lambda r: r[a].__setitem__(..., r[a][...] * 0.5 + r[b][...]),
        "shift": lambda r: r[a].__setitem__(slice(1, None), r[a][:-1]),
        "back": lambda r: r[a].__setitem__(slice(None, -1), r[b][1:]),
        "reverse": lambda r: r[a].__setitem__(..., r[a][::-1]),
        "copy": lambda r: r[a].__setitem__(..., r[b][...]),
        "take": lambda r: r[a].__setitem__(where, r[b][where_else]),
        "sum": lambda r: r[a].__setitem__(0, r[b][...].sum()),
        "add": lambda r: r[a].__setitem__(slice(2, 5), r[a][2:5] + r[b][0:3]),
    }


@pytest.mark.parametrize("seed", range(40))
def test_writes_in_place_keep_their_order(seed):
    """Whatever is read and written, in any order, is what NumPy's arrays, copied, give."""
    rng = np.random.default_rng(seed)
    where = np.array([5, 1, 3])
    plan = []
    for _ in range(int(rng.integers(2, 8))):
        steps = _steps(np, where, int(rng.integers(4)))
        plan.append(steps[sorted(steps)[int(rng.integers(len(steps)))]])

    def run(r, keep):
        read = []
        for step in plan:
            step(r)
            read.append(keep(r[seed % 2][...]))
        return read[:: 1 + seed % 3]

    refs = [fnarray.new_ref(fnarray.numpy.asarray(X) + k) for k in range(2)]
    plain = [_Copied(X + k) for k in range(2)]
    jitted = fnarray.jit(lambda: run(refs, lambda x: x), effects="off")
    before = [ref[...] for ref in refs]
    first, second = jitted(), jitted()
    for got in (first, second):
        for g, w in zip(got, run(plain, np.copy), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-5)
    for ref, want, old, k in zip(refs, plain, before, range(2), strict=True):
        np.testing.assert_allclose(ref[...], want.data, rtol=1e-5)
        np.testing.assert_array_equal(old, X + k)


class _Copied:
    """A NumPy array whose reads are copies."""

    def __init__(self, data):
        self.data = data.copy()

    def __getitem__(self, index):
        return self.data[index].copy()

    def __setitem__(self, index, value):
        self.data[index] = value


def test_map_in_batches_takes_rows_in_order():
    """`lax.map` with a batch size reads and writes Refs of outside row after row."""
    ref = fnarray.new_ref(fnarray.numpy.arange(5.0))
    read = fnarray.lax.map(lambda i: ref[i] * 2, fnarray.numpy.arange(5), batch_size=2)
    np.testing.assert_array_equal(read, [0, 2, 4, 6, 8])

    def running(i):
        ref[0] = ref[0] + i
        return ref[0]

    sums = fnarray.lax.map(running, fnarray.numpy.arange(5), batch_size=3)
    np.testing.assert_array_equal(sums, [0, 1, 3, 6, 10])


def test_a_body_hands_its_refs_on():
    """An array where a loop's body took a Ref is another type."""
    ref = fnarray.new_ref(0.0)
    with pytest.raises(TypeError, match=r"Ref\{float32\[\]\}.*hand the Ref itself on"):
        fnarray.lax.scan(lambda c, _: (c[...] + 1, None), ref, None, length=1)
