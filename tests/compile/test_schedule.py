"""What is fused, what stays in registers, what is updated in place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cpu.target import CPU
from fnarray.config import enable_x64

from . import functions as f
from .helpers import code, compiled, loops, run

RNG = np.random.default_rng(0)


def test_softmax_is_one_outer_loop_of_three() -> None:
    """Maximum, exponential with sum, and quotient share the loop over rows; one row is kept."""
    x = RNG.normal(size=(40, 25)).astype(np.float32)
    executable = compiled(f.softmax, x)
    text = code(executable)
    assert loops(text) == 4
    assert "w0" in text
    assert text.count("vm.exp") == 1
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(executable.run(x)[0], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_layer_norm_needs_no_row_buffer() -> None:
    """Cheap differences are computed again rather than kept."""
    x = RNG.normal(size=(30, 50)).astype(np.float32)
    executable = compiled(f.layer_norm, x)
    assert "w0" not in code(executable)
    d = x - x.mean(1, keepdims=True)
    want = d / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(executable.run(x)[0], want, rtol=1e-4, atol=1e-5)


def test_an_elementwise_chain_is_one_flat_loop() -> None:
    """Any rank of a contiguous array is traversed by one counter, each value computed once."""
    x = RNG.normal(size=(4, 5, 6)).astype(np.float32)
    text = code(compiled(f.polynomial, x))
    assert loops(text) == 1
    assert text.count("vm.exp") == 1


@pytest.mark.parametrize("several", [8, 40])
def test_sums_take_dear_values_in_the_loop_that_makes_them(several) -> None:
    """Weights that several sums take are never arrays, however many, nor is what they are of."""

    def averaged(x):
        total, weights = 0.0, 0.0
        for k in range(several):
            y = x[k : k + 90]
            w = jnp.exp(-((y - x[:90]) ** 2) - 0.1 * k)
            total, weights = total + w * y, weights + w
        return total / weights

    text = fnarray.jit(averaged).lower(jnp.ones(150)).as_text(dialect="numba")
    assert (loops(text), text.count("vm.exp"), text.count("out0[")) == (1, several, 1)
    assert not re.search(r"\bw0|out1", text)


def test_an_axis_of_one_is_read_at_zero_whatever_the_indices() -> None:
    """A column gathered by an index array is what its own loop has in a register."""
    x = np.arange(8, dtype=np.uint8).reshape(8, 1)

    def widened(x):
        padded = jnp.pad(x, ((1, 0), (2, 1)), mode="edge") % 7
        row = lax.dynamic_slice(padded, (8, 1), (1, 4))
        return (row % 5).at[:, -2:].min(2)

    np.testing.assert_array_equal(fnarray.jit(widened)(x), [[0, 0, 0, 0]])
    np.testing.assert_array_equal(fnarray.jit(widened)(x + 3), [[3, 3, 2, 2]])


def test_rows_that_are_read_across_are_read_in_strips() -> None:
    """Whatever their sizes and whatever else the loop reads; small arrays are as they are."""
    x = RNG.normal(size=(256, 512)).astype(np.float32)

    def turned(x):
        return x.T * 2 + 1

    def both(x):
        return x.transpose(2, 0, 1) - x[:, 1].T[:, :, None]

    assert loops(code(compiled(turned, x))) == 3
    assert loops(code(compiled(turned, x[:, :10]))) == 2  # 10 kB
    np.testing.assert_array_equal(run(turned, x)[0], x.T * 2 + 1)
    for rows in (17, 50, 63, 241, 250):  # the last strip begins in the one before it
        part = x[:rows]
        assert loops(code(compiled(turned, part))) == 3
        np.testing.assert_array_equal(run(turned, part)[0], part.T * 2 + 1)
    y = RNG.normal(size=(48, 32, 80)).astype(np.float32)
    np.testing.assert_array_equal(run(both, y)[0], both(y))


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, 8), (np.float64, 9), (np.float64, 16)])
def test_short_rows_of_large_arrays_are_read_in_strips(dtype, width) -> None:
    """From half a strip's width on, if the nearest caches do not hold the array."""
    with enable_x64(dtype is np.float64):
        for rows, turns in ((25_001, 3), (999, 2)):
            x = RNG.normal(size=(rows, width)).astype(dtype)
            assert loops(code(compiled(lambda x: x.T * 2 + 1, x))) == turns
            np.testing.assert_array_equal(run(lambda x: x.T * 2 + 1, x)[0], x.T * 2 + 1)


def test_what_a_last_strip_computes_twice_is_not_put_over_its_operand() -> None:
    """A loop's carry is added to once a turn, in elements of two strips as well."""
    x = RNG.integers(0, 9, (90, 70)).astype(np.float32)

    def added(x):
        return lax.fori_loop(0, 3, lambda _, total: total + x.T, jnp.zeros((70, 90)))

    np.testing.assert_array_equal(run(added, x)[0], 3 * x.T)


@pytest.mark.parametrize("width", [32, 33])
def test_runs_of_a_reshape_are_loops(width) -> None:
    """A reshape of a transpose, and a tile, are read along memory, without a quotient."""
    x = RNG.normal(size=(8, 20, width)).astype(np.float32)

    def together(x):
        return x.transpose(1, 0, 2).reshape(20, -1) * 2

    def tiled(x):
        return jnp.tile(x[0], (2, 5)) + 1

    def short(x):
        return x[:, :, :8].transpose(1, 0, 2).reshape(20, -1) * 2

    for f_, count in ((together, 3), (tiled, 3)):
        text = code(compiled(f_, x))
        assert loops(text) == count, text
        assert "//" not in text.partition("for ")[2].replace("# ", "")
    assert "//" in code(compiled(short, x))  # a loop of eight is worth no cut
    np.testing.assert_array_equal(run(together, x)[0], together(x))
    np.testing.assert_array_equal(run(tiled, x)[0], np.tile(x[0], (2, 5)) + np.float32(1))
    np.testing.assert_array_equal(run(short, x)[0], short(x))


@pytest.mark.parametrize("qubit", range(6))
def test_pieces_that_are_laid_out_are_few_loops(qubit) -> None:
    """Axes on either side of the one that is turned run as one loop each: of a gate on qubits."""

    def gate(m, s, c):
        s = m.moveaxis(s, qubit, 0)
        return m.moveaxis(m.stack([c * s[0] - s[1], s[0] + c * s[1]]), 0, qubit)

    s, c = RNG.normal(size=(2,) * 6).astype(np.float32), np.array(0.75, np.float32)
    executable = compiled(lambda s, c: gate(jnp, s, c), s, c)
    assert loops(code(executable)) <= 2 * 2 + 3
    np.testing.assert_allclose(executable.run(s, c)[0], gate(np, s, c), rtol=1e-6)


def test_pieces_keep_a_loop_for_each_axis_where_they_must() -> None:
    """Strides, turned operands, and places that are values: each element goes where it belongs."""
    x = RNG.normal(size=(3, 4, 5)).astype(np.float32)

    def laid(m, x):
        place = m.arange(20, dtype=np.float32).reshape(4, 5)
        return m.concatenate([x[:, ::-1, ::2] + place[:, :3], x.transpose(2, 1, 0)[1:4]], 2)

    executable = compiled(lambda x: laid(jnp, x), x)
    np.testing.assert_array_equal(executable.run(x)[0], laid(np, x))


SHORT = {
    "cross": (lambda m, x: m.cross(x, x[::-1] + 1), 1),
    "stack": (lambda m, x: m.stack([x, x * 2], -1), 1),
    "unlike": (lambda m, x: m.concatenate([x[:, 1:], x.sum(1)[:, None], x * x], 1), 1),
    "among others": (lambda m, x: m.stack([m.stack([x, x + 1], 2), m.stack([x, -x], 2)], 1), 4),
    "long": (lambda m, x: m.concatenate([x, m.tile(x, 3)], 1), 2),
}


@pytest.mark.parametrize("name", SHORT)
def test_short_rows_are_laid_out_at_once(name) -> None:
    """The columns of rows that several pieces make up share their loops; long rows do not."""
    fun, count = SHORT[name]
    x = RNG.normal(size=(20, 3)).astype(np.float32)
    executable = compiled(lambda x: fun(jnp, x), x)
    np.testing.assert_allclose(executable.run(x)[0], fun(np, x), rtol=1e-6, atol=1e-6)
    assert loops(code(executable)) <= count + 2


@pytest.mark.parametrize("fold", [jnp.sum, jnp.max, jnp.argmax, jnp.linalg.norm])
def test_runs_of_what_is_folded_as_one_vector_are_loops(fold) -> None:
    """A sum over all rows of a box, as one vector, has a loop for rows and one along them."""
    x = RNG.normal(size=(21, 35)).astype(np.float32)

    def within(x):
        return fold(jnp.ravel(x[1:-1, 2:] * x[2:, 1:-1]))

    text = code(compiled(within, x))
    assert loops(text) >= 2
    assert " // " not in text or fold is jnp.argmax  # which reads it in one loop
    # Terms of both signs may nearly cancel: a sum is right to their size, 380.
    for x_ in (x, -x, np.full_like(x, np.nan), np.where(x > 2, np.inf, x)):
        want = within(jnp.asarray(x_))
        np.testing.assert_allclose(run(within, x_)[0], want, rtol=2e-6, atol=5e-5)


@pytest.mark.parametrize("axes", [(2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
def test_loops_that_are_not_read_along_go_around_strips(axes) -> None:
    """What a strip's rows are read along is the loop around the strip, whichever axis it is."""
    x = RNG.normal(size=(64, 96, 80)).astype(np.float32)

    def moved(x):
        return x.transpose(axes) * 2

    text = code(compiled(moved, x))
    *_, along, inside = re.findall(r"for (\w+) in", text)
    (read,) = re.findall(r"x0\[u\((.*)\)\]", text)
    assert {along, inside} <= set(re.findall(r"\w+", read))
    assert re.search(rf"(^|\+ ){along}( \+|$)", read)
    np.testing.assert_array_equal(run(moved, x)[0], moved(x))


def test_independent_outputs_share_a_loop() -> None:
    """Two results over the same space come from one pass."""
    x = RNG.normal(size=(33,)).astype(np.float32)
    executable = compiled(f.two_outputs, x)
    assert loops(code(executable)) == 1
    s, c = executable.run(x)
    np.testing.assert_allclose(s, np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(c, np.cos(x), rtol=1e-6)


def test_an_expensive_value_read_at_two_places_is_computed_once() -> None:
    """A neighbour's exponential is loaded, not computed again."""
    x = RNG.normal(size=(50,)).astype(np.float32)
    executable = compiled(f.shifted_difference, x)
    assert code(executable).count("vm.exp") == 1
    np.testing.assert_allclose(executable.run(x)[0], np.diff(np.exp(x)), rtol=1e-4, atol=1e-6)


ROOTS = {
    "a row that divides rows": lambda m, x: x / m.sqrt(1 + x[0]),
    "windows": lambda m, x: sum(m.sqrt(x).ravel()[k : k + 1100] for k in range(20)),
}


@pytest.mark.parametrize("name", ROOTS)
def test_roots_that_many_places_read_are_computed_once(name) -> None:
    """Whether one loop reads each of them many times, or many do."""
    x = RNG.uniform(1, 2, size=(40, 30)).astype(np.float32)
    of = ROOTS[name]
    text = fnarray.jit(lambda x: of(jnp, x)).lower(x).as_text()
    (line,) = [line for line in text.splitlines() if "sc.sqrt" in line]
    assert re.match(" {8}t", line)  # inside of one loop
    np.testing.assert_allclose(fnarray.jit(lambda x: of(jnp, x))(x), of(np, x), rtol=1e-6)


def test_reindexing_is_index_arithmetic() -> None:
    """Transpose and reversal make no copy."""
    x = RNG.normal(size=(7, 9)).astype(np.float32)
    executable = compiled(f.transposed_sum, x)
    assert "w0" not in code(executable)
    np.testing.assert_array_equal(executable.run(x)[0], x.T[::-1] + np.float32(1))


@pytest.mark.parametrize("fun", [f.polynomial, f.softmax, f.layer_norm, f.transposed_sum])
def test_another_size_runs_the_same_kernel(fun) -> None:
    """Sizes are arguments: a new size emits the same text, so nothing is compiled."""
    small = RNG.normal(size=(140, 125)).astype(np.float32)
    large = RNG.normal(size=(177, 131)).astype(np.float32)
    first, second = compiled(fun, small), compiled(fun, large)
    assert [k.name for k in first.kernels] == [k.name for k in second.kernels]


def test_nested_loops_update_in_place() -> None:
    """Sorting by swaps copies the array once, before the loops."""
    x = RNG.normal(size=(60,)).astype(np.float32)
    executable = compiled(f.bubble_sort, x)
    assert loops(code(executable)) == 1
    np.testing.assert_array_equal(executable.run(x)[0], np.sort(x))


def test_masked_carries_are_each_updated_in_place() -> None:
    """A carry takes its own storage, whichever other carries its new value reads at one place."""

    def turn(i, c):
        x, y, n = c
        inside = lax.lt(lax.add(lax.mul(x, x), lax.mul(y, y)), np.float32(4))
        n = lax.select(inside, lax.broadcast(i, n.shape), n)
        return lax.select(inside, lax.sub(lax.mul(x, x), y), x), lax.neg(y), n

    x, y = RNG.normal(size=(2, 40)).astype(np.float32)
    start = x, y, np.zeros(40, np.int32)
    executable = compiled(lambda *c: lax.fori_loop(0, 5, turn, c), *start)
    assert "q0" not in code(executable)
    n = start[2]
    for i in range(5):
        inside = x * x + y * y < 4
        x, y, n = np.where(inside, x * x - y, x), -y, np.where(inside, i, n)
    for got, want in zip(executable.run(*start), (x, y, n), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_an_update_that_reads_what_it_overwrites_is_computed_beforehand() -> None:
    """A stencil in a loop uses the old values throughout an iteration."""
    x = RNG.normal(size=(50,)).astype(np.float32)
    want = x.copy()
    for _ in range(10):
        want[1:-1] = (want[:-2] + want[2:]) * np.float32(0.5)
    np.testing.assert_allclose(run(f.jacobi, x)[0], want, rtol=1e-5, atol=1e-6)


def test_small_state_lives_in_registers() -> None:
    """A vector of two elements carried by a scan needs no memory of its own."""
    angles = RNG.normal(size=(100,)).astype(np.float32)
    executable = compiled(f.rotation, angles)
    assert "w0" not in code(executable)
    total = np.cumsum(angles.astype(np.float64))
    want = np.stack([np.cos(total), np.sin(total)], 1)
    np.testing.assert_allclose(executable.run(angles)[1], want, rtol=1e-4, atol=1e-4)


BOX = np.zeros((9, 8, 7), np.float32)
UPDATES = {
    "set": lambda x: lax.mul(x, np.float32(2)).at[1:-1, 2:-2, :].set(1.0),
    "add": lambda x: lax.mul(x, np.float32(2)).at[1:-1, 2:-2, :].add(x[2:, 4:, :]),
    "row": lambda x: lax.mul(x, np.float32(2)).at[3].set(x[2]),
    "element": lambda x: lax.mul(x, np.float32(2)).at[3, -1, 0].multiply(x[0, 0, 0]),
    "steps": lambda x: lax.mul(x, np.float32(2)).at[::2, ::-3].set(x[:5, :3]),
    "range": lambda x: lax.mul(x, np.float32(2)).at[jnp.arange(3) * 2 + 1].set(x[:3]),
    "clipped": lambda x: lax.dynamic_update_slice(lax.mul(x, np.float32(2)), x[:2], (99, 0, 0)),
    "gathered": lambda x: x[jnp.arange(3) * 2 + 1] + x[jnp.array(4)],
}


@pytest.mark.parametrize("name", UPDATES)
def test_places_that_are_known_are_neither_stored_nor_tested(name: str) -> None:
    """No index vector is written, nothing is compared, and the array is not copied."""
    text = code(compiled(UPDATES[name], BOX))
    assert not [word for word in ("if ", "w0[", "i64(", "i32(", "min(") if word in text], text
    assert loops(text) <= 4


def test_updates_that_touch_nothing_are_nothing() -> None:
    """Boxes that are empty, or outside where such are dropped."""
    text = code(compiled(lambda x: lax.mul(x, np.float32(2)).at[9:].set(1.0).at[99].add(1.0), BOX))
    assert text == code(compiled(lambda x: lax.mul(x, np.float32(2)), BOX))


def test_what_has_no_element_asks_for_nothing() -> None:
    """A reduction whose only reader is empty is not computed, over an axis of 1 either."""
    for width in (1, 2):
        x = RNG.normal(size=(2, 3, width)).astype(np.float32)
        executable = compiled(lambda x: lax.exp(x.sum(1)[:, x.shape[2] :]), x)
        assert "sc.radd" not in code(executable)
        assert executable.run(x)[0].shape == (2, 0)


def test_borders_are_written_in_one_pass_each_way() -> None:
    """Periodic boundaries: rows share a loop, and so do columns; corners are those of columns."""
    x = RNG.normal(size=(20, 30)).astype(np.float32)

    def periodic(x):
        x = lax.mul(x, np.float32(2))
        x = x.at[0].set(x[-2])
        x = x.at[-1].set(x[1])
        x = x.at[:, 0].set(x[:, -2])
        return x.at[:, -1].set(x[:, 1])

    executable = compiled(periodic, x)
    assert loops(code(executable)) <= 5
    assert "w0[" not in code(executable)
    want = 2 * x
    want[0], want[-1] = want[-2], want[1]
    want[:, 0], want[:, -1] = want[:, -2], want[:, 1]
    np.testing.assert_array_equal(executable.run(x)[0], want)


def test_updates_of_one_box_are_stored_once() -> None:
    """What a sum in steps makes is known by name until the last."""
    x = RNG.normal(size=(6, 50)).astype(np.float32)

    def summed(x):
        y = lax.mul(x, np.float32(0))
        for k in range(4):
            y = y.at[:, 1:-1].add(x[:, 1:-1] * k)
        return y

    assert code(compiled(summed, x)).count("out0[") == 3


def test_zeros_under_an_update_are_written_in_place() -> None:
    """Several updates of the same zeros begin with zeros of their own, not with copies."""
    x = RNG.normal(size=(6, 50)).astype(np.float32)

    def several(x):
        zeros = jnp.zeros_like(x)
        return [zeros.at[:, k:].set(x[:, k:]) for k in range(1, 4)]

    text = code(compiled(several, x))
    assert text.count("= 0.0") + text.count("= c0") >= 3
    assert "w0" not in text


def test_inputs_are_not_written_to() -> None:
    """An update of an argument leaves the argument as it was."""
    x = np.arange(10, dtype=np.float32)

    def update(x):
        return lax.dynamic_update_slice(x, lax.neg(lax.slice(x, (0,), (3,))), (4,))

    before = x.copy()
    out = run(update, x)[0]
    np.testing.assert_array_equal(x, before)
    assert out[4] == 0
    assert out[6] == -2


def test_a_result_that_is_an_argument_is_a_copy() -> None:
    """Changing a NumPy argument afterwards does not change the result."""
    x = np.arange(5, dtype=np.float32)
    (out,) = run(lambda x: x, x)
    x[0] = 9
    assert out[0] == 0


HEAD = """
import numpy as np
from tests.compile import functions as f
from tests.compile.helpers import compiled
x = np.linspace(0, 1, 120, dtype=np.float32).reshape(8, 15)
"""
PRINT_TEXT = """
for fun in (f.softmax, f.layer_norm, f.polynomial, f.two_outputs):
    print(compiled(fun, x).as_text())
print(compiled(f.bubble_sort, x[0]).as_text())
"""
PRINT_VALUES = """
for fun in (f.softmax, f.layer_norm, f.polynomial, f.two_outputs):
    print(*compiled(fun, x).run(x)[0].ravel())
print(*compiled(f.bubble_sort, x[0]).run(x[0])[0])
"""


def output(script: str, **environment: str) -> str:
    """Run a script in a new process; return what it prints."""
    env = {**os.environ, **environment}
    command = [sys.executable, "-c", HEAD + script]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def test_emission_is_deterministic() -> None:
    """The same graph gives the same text under another hash seed, in another process."""
    first, second = (output(PRINT_TEXT, PYTHONHASHSEED=seed) for seed in "01")
    assert first == second
    assert "def k_" in first


def test_emitted_kernels_run_as_plain_python() -> None:
    """With the JIT off the same source gives the same numbers."""
    values = [
        np.array(output(PRINT_VALUES, NUMBA_DISABLE_JIT=flag).split(), float) for flag in "01"
    ]
    assert len(values[0]) == 4 * 120 + 15
    np.testing.assert_allclose(values[0], values[1], rtol=1e-5, atol=1e-5)


def test_scalar_products_too_large_for_loops_run_inside_bodies() -> None:
    """A library product whose result is a scalar works in every kind of body."""
    x = RNG.normal(size=(40_000,)).astype(np.float32) / np.float32(200)
    square = float(np.dot(x.astype(np.float64), x))

    def fori(x):
        return lax.fori_loop(0, 3, lambda i, c: c + lax.dot(x, x), np.float32(0))

    def scan(x):
        return lax.scan(lambda c, _: (c + lax.dot(x, x), c), np.float32(1), None, length=3)

    def turns(x):
        return lax.while_loop(
            lambda c: lax.dot(x, x) + c < np.float32(20 * square),
            lambda c: c * np.float32(2) + lax.dot(x, x),
            np.float32(0),
        )

    def branch(x):
        return lax.cond(x[0] < x[0] + 1, lambda x: lax.dot(x, x), lambda x: x[0], x)

    np.testing.assert_allclose(run(fori, x)[0], 3 * square, rtol=1e-4)
    np.testing.assert_allclose(run(scan, x)[0], 1 + 3 * square, rtol=1e-4)
    np.testing.assert_allclose(run(turns, x)[0], 31 * square, rtol=1e-4)
    np.testing.assert_allclose(run(branch, x)[0], square, rtol=1e-4)


def test_lanes_turn_as_the_target_chooses() -> None:
    """One loop in lanes: groups with a remainder, all together, or a loop for each lane."""
    x = np.arange(1, 301).astype(np.int32)

    def doubled(x):
        return fnarray.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2, 1))(x)

    want = 1 << np.ceil(np.log2(x)).astype(int)
    plans = {}
    for width in (1, 128, 100, 300, 1000):
        target = replace(CPU, limits=replace(CPU.limits, lanes=width))
        executable = compiled(doubled, x, target=target)
        np.testing.assert_array_equal(executable.run(x)[0], want)
        plans[width] = executable.plan_text
    assert "i32[300] = scan" in plans[1]
    assert "i32[3,128] = scan" in plans[128]
    assert "filled" in plans[128]
    assert "i32[3,100] = scan" in plans[100]
    assert "filled" not in plans[100]
    assert "scan" not in plans[300]
    assert plans[300] == plans[1000]


def test_what_lanes_share_is_not_repeated() -> None:
    """A start that is the same for all lanes is no array of copies."""
    x = np.arange(1, 301).astype(np.int32)

    def turns(x):
        return fnarray.vmap(
            lambda n: lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] + 1, c[1] * 2), (0, 1))[0]
        )(x)

    executable = compiled(turns, x)
    assert executable.plan_text.count("filled") == 1
    np.testing.assert_array_equal(executable.run(x)[0], np.ceil(np.log2(x)))
