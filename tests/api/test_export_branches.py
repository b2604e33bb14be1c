"""A function that branches on a symbolic size is refused, wherever it has the size from."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import export, lax
from fnarray.errors import InconclusiveDimensionOperation

# The sizes that a function is traced at are far below.
MANY = 5000

BRANCHES = {
    "argument": lambda x: x * 2 if x.shape[0] > MANY else x,
    "result": lambda x: x * 2 if (x + 1).shape[0] > MANY else x,
    "sum": lambda x: x * 2 if x.shape[0] + 1 > MANY else x,
    "multiple": lambda x: x * 2 if 3 * x.shape[0] >= 3 * MANY else x,
    "quotient": lambda x: x * 2 if x.shape[0] / 2 > MANY else x,
    "length": lambda x: x * 2 if len(x) > MANY else x,
    "size": lambda x: x * 2 if x.size > MANY else x,
    "int": lambda x: x * 2 if int(x.shape[0]) > MANY else x,
    "join": lambda x: x * 2 if jnp.concatenate([x, x]).shape[0] > MANY else x,
    "largest": lambda x: jnp.zeros(max(x.shape[0], MANY)).sum() + x,
    "any": lambda x: x if all(n < MANY for n in (x * 1).shape) else x * 2,
    "compiled": lambda x: fnarray.jit(lambda y: y * 2 if (y + 1).shape[0] > MANY else y)(x),
    "mapped": lambda x: fnarray.vmap(lambda r: r * 2 if r.shape[0] > MANY else r)(x[None]),
    "loop": lambda x: lax.scan(
        lambda c, _: (c * 2 if c.shape[0] > MANY else c, None), x, None, length=2
    )[0],
    "derivative": lambda x: fnarray.grad(lambda y: (y * 2 if (y + 1).shape[0] > MANY else y).sum())(
        x
    ),
}


def exported(f, shape="b", constraints=()):
    """Export a function of an array of symbolic sizes."""
    sizes = export.symbolic_shape(shape, constraints=constraints)
    return export.export(fnarray.jit(f))(fnarray.ShapeDtypeStruct(sizes, np.float32))


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_sizes_decide_are_refused(name):
    """No size that was tried lies beyond the branch; it is found nevertheless, and refused."""
    with pytest.raises(InconclusiveDimensionOperation, match=r"inconclusive|requires a constant"):
        exported(BRANCHES[name])


def test_branches_that_hold_for_all_sizes_are_taken():
    """What the constraints decide is decided, and a program for all sizes is right beyond."""
    wide = exported(lambda x: x * 2 if (x + 1).shape[0] > 5 else x, constraints=["b >= 6"])
    many = exported(lambda x: x * 2 if x.sum(1).shape[0] >= 2 else x, "2*b, c")
    for program, x in ((wide, np.ones(7000, np.float32)), (many, np.ones((6000, 2), np.float32))):
        np.testing.assert_array_equal(program.call(x), 2 * x)


COMPUTED = {
    "mean": lambda x: x.sum() / x.shape[0],
    "half": lambda x: x[: x.shape[0] // 2],
    "places": lambda x: x + jnp.arange((x * 1).shape[0]),
    "padded": lambda x: jnp.pad(x, (1, 2))[1:],
    "column": lambda x: x.reshape(-1, 1) @ jnp.ones((1, 3)),
    "outer": lambda x: jnp.einsum("i,j->ij", x, x).sum(0),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_sizes_are_computed_with(name):
    """Arithmetic with sizes, of arguments and of results, is no branch."""
    program = exported(COMPUTED[name])
    for n in (4, 7):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_allclose(program.call(x), COMPUTED[name](jnp.asarray(x)), rtol=1e-6)


BESIDE_NUMBERS = {
    "array after": lambda x: x.shape[0] - np.arange(5, dtype=np.int32),
    "array before": lambda x: np.arange(5, dtype=np.int32) * (x.shape[0] + 1),
    "quotient of an array": lambda x: np.arange(5, dtype=np.float32) / x.shape[0],
    "scalar": lambda x: np.float32(2) * x.shape[0],
    "float": lambda x: x.shape[0] * 2.5 - 1.0,
    "half": lambda x: x.shape[0] / np.float32(2),
    "inverse": lambda x: 2 / x.shape[0],
    "remainder": lambda x: x.shape[0] % np.int32(3),
}


@pytest.mark.parametrize("name", BESIDE_NUMBERS)
def test_sizes_beside_numbers_of_numpy_are_arrays(name):
    """NumPy, at each size, is the oracle: one program computes with the size it is called at."""
    program = exported(BESIDE_NUMBERS[name])
    for n in (1, 4, 300):
        want = BESIDE_NUMBERS[name](np.ones(n, np.float32))
        np.testing.assert_allclose(program.call(np.ones(n, np.float32)), want, rtol=1e-6)
