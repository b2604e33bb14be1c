"""Refs where arrays are asked for: refused by name, with JAX's class of error."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp


@pytest.mark.parametrize(
    "make",
    [
        jnp.array,
        jnp.asarray,
        np.asarray,
        fnarray.jacfwd(lambda r: r[...] * 2),
        fnarray.jacrev(lambda r: r[...] * 2),
        fnarray.hessian(lambda r: r[...].sum()),
        fnarray.pmap(lambda r: r[...] * 2),
    ],
)
def test_refs_are_no_arrays(make):
    """What needs an array says that it was given a Ref, and how its value is read."""
    with pytest.raises(ValueError, match=r"Ref.*ref\[\.\.\.\]"):
        make(fnarray.new_ref(jnp.ones((1, 3))))


def test_fill_values_are_known_numbers():
    """They are part of what is compiled: a traced one is refused with where it is from."""
    at = lambda x, v: x.at[jnp.array([7])].get(mode="fill", fill_value=v)  # noqa: E731
    with pytest.raises(fnarray.errors.ConcretizationTypeError, match=r"fill_value.*argument v"):
        fnarray.jit(at)(jnp.arange(3.0), 2.0)
    with pytest.raises(TypeError, match="must be a number"):
        at(jnp.arange(3.0), "a")
    assert at(jnp.arange(3.0), np.float32(4)) == 4


def test_orders_that_need_a_layout():
    """Arrays have none: orders that ask for it are refused as JAX refuses them."""
    with pytest.raises(NotImplementedError, match="order 'K'"):
        jnp.ravel(jnp.ones((2, 2)), order="K")


def test_errors_name_what_was_called():
    """`lpmn` and `lpmn_values` check alike, each in its name."""
    for f, more in ((fnarray.scipy.special.lpmn, ()), (fnarray.scipy.special.lpmn_values, (True,))):
        with pytest.raises(ValueError, match=rf"{f.__name__}: z must have one axis"):
            f(2, 2, jnp.ones((3, 2)), *more)
