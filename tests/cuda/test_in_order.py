"""Updates that meet in one place are made in order, where that is asked for or must be."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.config import scoped
from fnarray.ops.window import select_and_scatter_add

from .compare import Report, both
from .test_on_processor import TARGETS

INDICES = np.array([3, 1, 3, 3, 40, 1, -1, 3, 0, 6], np.int32)
#: Their sum depends on the order.
UPDATES = np.array([1e8, 3, -1e8, 1, 5, 1e-3, 7, 1e8, 2, -1e8], np.float32)
ROWS = np.outer(UPDATES, np.array([1, -2, 3], np.float32))

PROGRAMS = {
    "add": lambda x, i, u: x.at[i].add(u),
    "set": lambda x, i, u: x.at[i].set(u),
    "multiply": lambda x, i, u: x.at[i].multiply(u),
    "clip": lambda x, i, u: x.at[i].add(u, mode="clip"),
    "apply": lambda x, i, u: x.at[i].apply(lambda y: y * 2 + 1),
    "gradient": lambda x, i, u: fnarray.grad(lambda x: (x[i] * u).sum())(x),
    "computed": lambda x, i, u: (x * 2).at[i + 1].add(jnp.tanh(u)),
}


def agree(f, lanes, *args):
    """Compare with the processor's result, bit for bit."""
    report = Report(exact=True)
    with both(report, TARGETS[lanes]), scoped("effects", "off"), scoped("cuda_fma", False):
        fnarray.jit(lambda *xs: f(*xs))(*args)
    assert report.programs
    assert not report.differences, report.differences[0]


@pytest.mark.parametrize("lanes", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_are_made_in_order(name: str, lanes: str) -> None:
    """Sums of floats, and which value stays, are the processor's with any number of threads."""
    x = np.arange(8, dtype=np.float32)
    with scoped("gpu_deterministic_ops", True):
        agree(PROGRAMS[name], lanes, x, INDICES, UPDATES)
        if name not in ("apply", "gradient"):
            agree(PROGRAMS[name], lanes, np.ones((8, 3), np.float32), INDICES, ROWS)


@pytest.mark.parametrize("lanes", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint16", "complex64"])
def test_elements_that_nothing_exchanges_are_updated_in_order(dtype: str, lanes: str) -> None:
    """Halves, bytes and complex numbers, which no atomic operation covers."""
    x, u = jnp.ones(8, dtype), jnp.asarray(UPDATES % 100).astype(dtype)
    agree(lambda x, i, u: x.at[i].add(u), lanes, np.asarray(x), INDICES, np.asarray(u))


def pooled(x, g):
    """Return the cotangent of a maximum over windows that overlap."""
    most = fnarray.vjp(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (5,), (1,), "SAME"), x)[1]
    return most(g)[0]


def of_bytes(x, g):
    """Add what windows of three choose, which are two apart."""
    return select_and_scatter_add(g, x, lax.ge_p, (1, 3), (1, 2), ((0, 0), (0, 0)))


@pytest.mark.parametrize("lanes", TARGETS)
def test_windows_that_choose_one_element_are_added_in_order(lanes: str) -> None:
    """On request, and of bytes always; halves are added up in float32."""
    x = np.array([0, 3, 1, 2, 9, 5, 0, 1, 4, 4], np.float32)
    with scoped("gpu_deterministic_ops", True):
        for dtype in ("float32", "bfloat16"):
            agree(pooled, lanes, x.astype(dtype), UPDATES.astype(dtype))
    for dtype in ("int8", "uint16"):
        numbers = np.arange(100, 124).reshape(2, 12).astype(dtype)
        agree(of_bytes, lanes, numbers % 7, numbers[:, :5])


def text(f, *args) -> str:
    """Return what is emitted for a GPU."""
    with scoped("effects", "off"):
        return fnarray.jit(f).lower(*args).as_text(dialect="cuda")


def test_only_what_meets_is_ordered() -> None:
    """Exchanges are gone on request; updates that are apart need neither."""
    x, f = np.zeros(8, np.float32), PROGRAMS["add"]
    assert "atomic_add" in text(f, x, INDICES, UPDATES)
    with scoped("gpu_deterministic_ops", True):
        ordered = text(f, x, INDICES, UPDATES)
        one = text(lambda x, i: x.at[i].add(1.0), x, 3)
    assert "atomic_add" not in ordered
    assert "low0 <= at0 and at0 < high0" in ordered
    promised = text(lambda x, i, u: x.at[i].add(u, unique_indices=True), x, INDICES, UPDATES)
    with scoped("gpu_deterministic_ops", True):
        assert "scatter_in_order" in text(pooled, x, x)
    assert "scatter_in_order" not in text(pooled, x, x)
    for apart in (one, promised):
        assert "atomic_add" not in apart
        assert "share0" not in apart
