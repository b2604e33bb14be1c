"""The calls of the kit: each is of one registered primitive, and takes what that takes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.numpy import array
from fnarray.ops.kit import calls

X = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
Z = X.astype(np.complex64)
MASK = X > 0
BITS = np.arange(4, dtype=np.uint32).reshape(2, 2)
DIMS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
ADDITION = fnarray.make_jaxpr(lax.add)(X[0, 0], X[0, 0])

#: By the name of the call: its primitive, operands beside which it runs, and the call.
TABLE = {
    "abs": ("abs", (X,), calls.abs),
    "add": ("add", (X, X), calls.add),
    "add_any": ("add_any", (X, X), calls.add_any),
    "argmax": ("argmax", (X,), lambda x: calls.argmax(x, 1)),
    "bitwise_and": ("and", (MASK, MASK), calls.bitwise_and),
    "bitwise_or": ("or", (MASK, MASK), calls.bitwise_or),
    "broadcast": ("broadcast_in_dim", (X,), lambda x: calls.broadcast(x, (3, 2, 2))),
    "broadcast_in_dim": (
        "broadcast_in_dim",
        (X,),
        lambda x: calls.broadcast_in_dim(x, (2, 3, 2), (0, 2)),
    ),
    "complex": ("complex", (X, X), calls.complex),
    "concatenate": ("concatenate", (X, X), lambda x, y: calls.concatenate((x, y), 0)),
    "conj": ("conj", (Z,), calls.conj),
    "convert": ("convert_element_type", (X,), lambda x: calls.convert(x, np.int32)),
    "convert_like": ("convert_element_type", (X, Z), calls.convert_like),
    "cumprod": ("cumprod", (X,), lambda x: calls.cumprod(x, 0, reverse=True)),
    "div": ("div", (X, X), calls.div),
    "eq": ("eq", (X, X), calls.eq),
    "exp": ("exp", (X,), calls.exp),
    "exp2": ("exp2", (X,), calls.exp2),
    "expand": ("broadcast_in_dim", (X,), lambda x: calls.expand(x, 1)),
    "full": ("broadcast_in_dim", (X,), lambda x: calls.full(x.aval, 2)),
    "ge": ("ge", (X, X), calls.ge),
    "gt": ("gt", (X, X), calls.gt),
    "imag": ("imag", (Z,), calls.imag),
    "iota": ("iota", (), lambda: calls.iota((2, 3), 1)),
    "le": ("le", (X, X), calls.le),
    "log": ("log", (X,), calls.log),
    "lt": ("lt", (X, X), calls.lt),
    "max": ("max", (X, X), calls.max),
    "moveaxis": ("transpose", (X,), lambda x: calls.moveaxis(x, 0, 1)),
    "mul": ("mul", (X, X), calls.mul),
    "ne": ("ne", (X, X), calls.ne),
    "neg": ("neg", (X,), calls.neg),
    "pad": ("pad", (X,), lambda x: calls.pad(x, 0, ((1, 0, 0), (0, 1, 1)))),
    "permute": ("transpose", (X,), lambda x: calls.permute(x, (1, 0))),
    "real": ("real", (Z,), calls.real),
    "reduce_max": ("reduce_max", (X,), lambda x: calls.reduce_max(x, (0,))),
    "reduce_min": ("reduce_min", (X,), lambda x: calls.reduce_min(x, (0,))),
    "reduce_or": ("reduce_or", (MASK,), lambda x: calls.reduce_or(x, (0,))),
    "reduce_prod": ("reduce_prod", (X,), lambda x: calls.reduce_prod(x, (0,))),
    "reduce_sum": ("reduce_sum", (X,), lambda x: calls.reduce_sum(x, (0,))),
    "reshape": ("reshape", (X,), lambda x: calls.reshape(x, (4,))),
    "rev": ("rev", (X,), lambda x: calls.rev(x, (0,))),
    "scatter_add": (
        "scatter-add",
        (X, np.array([[1], [0]], np.int32), X),
        lambda x, at, y: calls.scatter_add(
            x,
            at,
            y,
            dimension_numbers=DIMS,
            indices_are_sorted=False,
            mode=lax.GatherScatterMode.CLIP,
            unique_indices=True,
            update_jaxpr=ADDITION,
        ),
    ),
    "select": ("select_n", (MASK, X, X), calls.select),
    "select_n": ("select_n", (MASK, X, X), calls.select_n),
    "shift_left": ("shift_left", (BITS, BITS), calls.shift_left),
    "shift_right_logical": ("shift_right_logical", (BITS, BITS), calls.shift_right_logical),
    "sign": ("sign", (X,), calls.sign),
    "slice": ("slice", (X,), lambda x: calls.slice(x, (0, 1), (2, 2))),
    "sub": ("sub", (X, X), calls.sub),
    "triangular_solve": (
        "triangular_solve",
        (X, X),
        lambda a, b: calls.triangular_solve(a, b, left_side=True, lower=True),
    ),
}
#: What is no call: a constant is made, and nothing is applied.
CONSTANTS = {"const"}


def test_every_call_is_listed():
    """The table above names every function of the namespace, and none besides."""
    public = {
        name
        for name, value in inspect.getmembers(calls, inspect.isfunction)
        if value.__module__ == calls.__name__ and not name.startswith("_")
    }
    assert public == set(TABLE) | CONSTANTS


@pytest.mark.parametrize("name", sorted(TABLE))
def test_call_is_of_one_primitive(name):
    """A call runs, and is recorded as one equation, of the primitive it stands for."""
    prim, operands, call = TABLE[name]
    values = [array(x) for x in operands]
    call(*values)
    closed = fnarray.make_jaxpr(call)(*values)
    assert [eqn.primitive.name for eqn in closed.eqns] == [prim]
    (eqn,) = closed.eqns
    assert eqn.primitive is getattr(lax, f"{prim.replace('-', '_')}_p")


@pytest.mark.parametrize("name", ["add", "div", "max", "mul", "sub", "eq", "lt"])
def test_numbers_take_the_other_operands_type(name):
    """A Python number on either side has the array's dtype and weakness."""
    call = getattr(calls, name)
    half = array(X).astype(np.float16)
    one = lax.full_like(half, 1)
    for got, want in ((call(half, 1), call(half, one)), (call(1, half), call(one, half))):
        assert got.aval == want.aval
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
