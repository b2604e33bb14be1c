"""`eval_shape` of symbolic sizes: results' sizes are formulas of them."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import ShapeDtypeStruct, export, lax
from fnarray.core.dims import value
from fnarray.errors import InconclusiveDimensionOperation

FUNCTIONS = {
    "matmul": (lambda x, b: x @ np.ones((3, 4), np.float32)),
    "reshape": (lambda x, b: x.reshape(-1)),
    "flatten": (lambda x, b: x.reshape(x.shape[0], -1)),
    "concatenate": (lambda x, b: (np if b else jnp).concatenate([x, x], 0)),
    "sums": (lambda x, b: (x.sum(), x.sum(0), x.mean(1))),
    "steps": (lambda x, b: x[1::2]),
    "pad": (lambda x, b: (np if b else jnp).pad(x, ((1, 2), (0, 0)))),
    "repeat": (lambda x, b: (np if b else jnp).repeat(x, 3, axis=0)),
    "outer": (lambda x, b: x[:, None, :] + x[None]),
    "arange": (lambda x, b: (np if b else jnp).ones((x.shape[0] * 2 + 1, 5), "float32")),
    "branch": (lambda x, b: x if x.shape[0] > 1 else x.sum()),
    "none": (lambda x, b: {"a": None, "b": (x,)}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_formulas_give_numpys_shapes(name):
    """A formula at a size is the shape of NumPy's result for an array of that size."""
    fun = FUNCTIONS[name]
    (b,) = export.symbolic_shape("b", constraints=["b >= 2"])
    for f in (lambda x: fun(x, False), fnarray.jit(lambda x: fun(x, False))):
        found = fnarray.eval_shape(f, ShapeDtypeStruct((b, 3), jnp.float32))
        for n in (2, 7, 30):
            wanted = fun(np.ones((n, 3), np.float32), True)
            assert fnarray.tree.structure(found) == fnarray.tree.structure(wanted)
            for s, w in zip(fnarray.tree.leaves(found), fnarray.tree.leaves(wanted), strict=True):
                shape = tuple(value(d, {"b": n}) for d in s.shape)
                assert (shape, s.dtype) == (np.shape(w), np.asarray(w).dtype)


def test_loops_transforms_and_keys():
    """What the function does with its arguments makes no difference: it is traced."""
    b, c = export.symbolic_shape("b, c")
    x = ShapeDtypeStruct((b, c), jnp.float32)

    def shape(f, *args):
        return str(fnarray.tree.map(lambda s: s.shape, fnarray.eval_shape(f, *args)))

    assert shape(fnarray.grad(lambda x: (x**2).sum()), x) == "(b, c)"
    assert shape(fnarray.vmap(lambda r: r.sum()), x) == "(b,)"
    assert shape(lambda x: lax.scan(lambda s, r: (s + r, r.max()), x[0], x), x) == "((c,), (b,))"
    assert shape(lambda x: lax.associative_scan(jnp.add, x), x) == "(b, c)"
    assert shape(lambda x: x @ x.T, x) == "(b, b)"
    key = fnarray.eval_shape(fnarray.random.key, 0)
    assert shape(lambda k, x: fnarray.random.normal(k, x.shape), key, x) == "(b, c)"
    (k,) = fnarray.tree.leaves(fnarray.eval_shape(lambda k, x: k, key, x))
    assert k.dtype == key.dtype


def test_what_is_no_formula():
    """A branch on a size, or a size that no formula gives, is refused, as in an export."""
    (b,) = export.symbolic_shape("b")
    x = ShapeDtypeStruct((b,), jnp.float32)
    with pytest.raises(InconclusiveDimensionOperation, match="'b' > '5' is inconclusive"):
        fnarray.eval_shape(lambda x: x if x.shape[0] > 5 else x.sum(), x)
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        fnarray.eval_shape(lambda x: jnp.ones(len(x)), x)
    (c,) = export.symbolic_shape("c")
    with pytest.raises(ValueError, match="scope"):
        fnarray.eval_shape(jnp.add, x, ShapeDtypeStruct((c,), jnp.float32))


def test_sizes_within_say_what_they_are():
    """`is_symbolic_dim` of a size is so for whoever is traced: libraries check shapes by it."""
    (b,) = export.symbolic_shape("b")

    def f(x):
        sizes = (*x.shape, x.shape[0] * 2 + 1, x[:2].size)
        return jnp.ones([1 + export.is_symbolic_dim(d) for d in sizes])

    assert fnarray.eval_shape(f, ShapeDtypeStruct((b, 3), jnp.float32)).shape == (2, 1, 2, 1)
