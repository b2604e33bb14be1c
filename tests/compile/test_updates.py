"""Updates of every element, and of one: no copy of the others is made for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnarray
from fnarray import lax

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
Y = X[::-1].copy()
I = np.asarray(2, np.int32)  # noqa: E741 - an index


def text(fun: Any, *args: np.ndarray) -> str:
    return fnarray.jit(fun).lower(*args).compile().as_text() or ""


def run(fun: Any, *args: np.ndarray) -> np.ndarray:
    return np.asarray(fnarray.jit(fun)(*args))


WHOLE: dict[str, tuple[Any, Any]] = {
    "set": (lambda x, y: x.at[:].set(y * 2), Y * 2),
    "set by axis": (lambda x, y: x.at[:, :].set(y * 2), Y * 2),
    "slice": (lambda x, y: lax.dynamic_update_slice(x, y * 2, (0, 0)), Y * 2),
    "add": (lambda x, y: x.at[...].add(y), X + Y),
    "max": (lambda x, y: x.at[0:3].max(y), np.maximum(X, Y)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_update_of_all_is_a_map(name: str) -> None:
    fun, want = WHOLE[name]
    np.testing.assert_array_equal(run(fun, X, Y), want)
    assert text(fun, X, Y).count("for ") == 1


def test_an_update_in_another_order_is_none() -> None:
    turned = run(lambda x, y: x.at[::-1].set(y), X, Y)
    np.testing.assert_array_equal(turned, X)


def test_one_element_is_divided_alone() -> None:
    def turn(i: Any, x: Any) -> Any:
        return x.at[i, 1].divide(x[0, 0] + 1)

    def fun(x: Any, i: Any) -> Any:
        return lax.fori_loop(0, i, turn, x)

    want = X.copy()
    for k in range(int(I)):
        want[k, 1] /= want[0, 0] + 1
    np.testing.assert_array_equal(run(fun, X, I), want)
    assert text(fun, X, I).count("for ") <= 2  # the copy of the argument, and the turns


def test_elements_divided_twice_are_divided_by_the_product() -> None:
    fun = lambda x: x.at[np.array([1, 1]), 2].divide(np.float32(3))  # noqa: E731
    want = X.copy()
    want[1, 2] /= np.float32(9)
    np.testing.assert_array_equal(run(fun, X), want)


def test_powers_that_are_numbers_are_products_and_roots() -> None:
    """No logarithm is taken of them; each result is the power in float64, rounded once."""
    x = np.concatenate([np.linspace(-2, 9, 40), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]])
    x = x.astype(np.float32)
    powers = [-3, -2.5, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 2.5, 3, 4]

    def fun(x: Any) -> Any:
        given = fnarray.numpy.asarray(np.float32(2))
        return [x ** float(p) for p in powers], fnarray.numpy.power(x, given)

    assert "vm.pow(" not in text(fun, x)
    found, square = fnarray.jit(fun)(x)
    np.testing.assert_array_equal(square, x * x)
    with np.errstate(all="ignore"):
        for power, got in zip(powers, found, strict=True):
            # As an array: NumPy takes the root of minus infinity for its power by the number 0.5.
            want = np.power(x.astype(np.float64), np.full(x.shape, power, np.float64))
            np.testing.assert_array_equal(got, want.astype(np.float32), err_msg=str(power))


ROWS = np.array([3, -1, 0, 9, 3, 2, 0], np.int32)
TERMS = np.linspace(-1, 1, 7 * 24, dtype=np.float32).reshape(7, 4, 6)


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("what", ["add", "set", "max"])
def test_rows_are_tested_once(what: str, mode: str) -> None:
    """Whether a row has a place is asked outside of the loops over it, and answered as ever."""

    def fun(x: Any, rows: Any, terms: Any) -> Any:
        return getattr(x.at[rows], what)(terms, mode=mode)

    x = np.zeros((4, 4, 6), np.float32)
    want = x.copy()
    for row, term in zip(ROWS, TERMS, strict=True):
        at = row + 4 if row < 0 else row
        if at < 4 or mode == "clip":
            old = want[min(at, 3)]
            want[min(at, 3)] = {"add": old + term, "set": term, "max": np.maximum(old, term)}[what]
    np.testing.assert_allclose(run(fun, x, ROWS, TERMS), want, rtol=1e-6)
    lines = text(fun, x, ROWS, TERMS).splitlines()
    for test in (k for k, line in enumerate(lines) if line.lstrip().startswith("if u(")):
        assert "for " in lines[test + 1]


def test_windows_are_tested_where_their_places_differ() -> None:
    """What lies over an edge is left out element by element: each axis has a test of its own."""
    numbers = lax.ScatterDimensionNumbers((1,), (), (0,))
    at = np.array([[0], [3]], np.int32)
    terms = np.ones((2, 3), np.float32)

    def fun(x: Any, at: Any, terms: Any) -> Any:
        return lax.scatter_add(x, at, terms, numbers, mode="drop")

    np.testing.assert_array_equal(run(fun, X[0], at, terms), X[0] + [1, 1, 1, 0])


def test_places_of_several_updates_are_told_once() -> None:
    """From the end or out of reach too; values are computed where they are added."""
    rows = np.asarray([0, 0, -1, 2, 7, -9, 2, 1, 1, 1] * 30, np.int32)
    v = np.arange(300, dtype=np.float32)

    def twice(rows: Any, v: Any) -> Any:
        a = fnarray.numpy.zeros(4).at[rows].add(v * 2 + 1)
        return a + fnarray.numpy.ones(4).at[rows].add(v * 2 + 1) * a

    inside = (rows >= -4) & (rows < 4)
    sums = np.bincount(rows[inside] % 4, (v * 2 + 1)[inside], 4)
    np.testing.assert_allclose(run(twice, rows, v), sums + (1 + sums) * sums, rtol=1e-6)
    assert text(twice, rows, v).count("if t") == 1  # one place from the end
