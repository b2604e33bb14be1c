"""Arrays begin with a line of the caches, whoever makes them, and hold what they should."""

from math import prod

import numpy as np
import pytest

import fnarray
from fnarray import numpy as jnp
from fnarray.core.lines import LARGE, LINE, OFTEN, PAGE, aligned, copied, rows

KINDS = (np.bool_, np.int8, np.uint16, np.float32, np.float64, np.complex64, np.complex128)


def begin(x):
    return np.asarray(x).ctypes.data % LINE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (7, 5), (33, 17, 3)])
def test_an_array_is_an_array(shape, kind):
    x = aligned(shape, np.dtype(kind), prod(shape) * np.dtype(kind).itemsize)
    assert begin(x) == 0
    assert x.shape == shape
    assert x.dtype == kind
    assert x.flags.c_contiguous
    assert x.flags.writeable
    assert x.flags.aligned
    x[...] = np.ones(shape, kind)
    assert x.all()


@pytest.mark.parametrize("quarter", range(5))
def test_it_begins_with_a_quarter_of_a_page(quarter):
    x = aligned((100,), np.dtype(np.float32), 400, quarter)
    assert np.asarray(x).ctypes.data % PAGE == quarter % 4 * 1024


@pytest.mark.parametrize("count", [0, 1, 8])
@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 1500])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_meet(count, length, kind):
    made = rows(count, length, kind)
    assert len(made) == count
    for k, x in enumerate(made):
        assert x.shape == (length,)
        assert x.dtype == kind
        assert x.flags.c_contiguous
        alone = count == 1 and x.nbytes < LINE
        assert length == 0 or alone or begin(x) == 0
        x[...] = k % 2
    assert all((x == k % 2).all() for k, x in enumerate(made))


@pytest.mark.parametrize("n", [1, OFTEN // 4 - 1, OFTEN // 4, OFTEN])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_copy_is_equal_in_any_layout(n, order):
    x = np.arange(3 * n, dtype=np.float64).reshape(3, n, order=order)[:, ::-1]
    got = copied(x, np.dtype(np.float32))
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, x)
    np.testing.assert_array_equal(got, x.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_and_results_begin_with_a_line(dtype):
    x = jnp.asarray(np.ones(LARGE // 4, dtype))
    assert begin(x) == 0
    assert begin(fnarray.jit(lambda x: x + 1)(x)) == 0
    a = jnp.asarray(np.ones((200, 200), dtype))
    assert begin(fnarray.jit(lambda a: a @ a)(a)) == 0


def test_what_a_loop_carries_begins_with_one_sooner():
    x = jnp.asarray(np.ones(OFTEN // 4, np.float32))
    turned = fnarray.jit(lambda x: fnarray.lax.fori_loop(0, 3, lambda _, x: x * 2, x))
    assert begin(turned(x)) == 0
    np.testing.assert_array_equal(turned(x), np.full(OFTEN // 4, 8, np.float32))


def test_results_outlive_the_program_and_each_other():
    step = fnarray.jit(lambda x: x + 1)
    x = jnp.zeros((LARGE // 4,), np.float32)
    results = [x := step(x) for _ in range(5)]
    assert [float(r[-1]) for r in results] == [1, 2, 3, 4, 5]
    view = np.asarray(results.pop())
    del results, x
    assert (view == 5).all()
