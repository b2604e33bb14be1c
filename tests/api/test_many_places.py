"""Places beyond what 32 bits count are an error, never a negative number."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax

MANY = fnarray.ShapeDtypeStruct((2**31 + 1,), np.int8)
FUNCTIONS = {
    "argmax": fnp.argmax,
    "argmin": fnp.argmin,
    "nanargmax": lambda x: fnp.nanargmax(x.astype(np.float16)),
    "argmax of a column": lambda x: fnp.argmax(x[:, None], 0),
    "argsort": fnp.argsort,
    "flatnonzero": lambda x: fnp.flatnonzero(x, size=2),
    "unravel_index": lambda x: fnp.unravel_index(fnp.arange(3), x.shape),
    "lax.argmax": lambda x: lax.argmax(x, 0, np.int32),
    "vmap": lambda x: fnarray.vmap(fnp.argmin)(x[None]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_more_places_than_are_counted_are_an_error(name):
    """It names the remedy, with which all is as ever, and the last counted length passes."""
    with pytest.raises(ValueError, match="enable_x64"):
        fnarray.eval_shape(FUNCTIONS[name], MANY)
    fnarray.eval_shape(FUNCTIONS[name], fnarray.ShapeDtypeStruct((2**31 - 1,), np.int8))
    with fnarray.enable_x64(True):
        wide = {"lax.argmax": fnp.argmax}.get(name, FUNCTIONS[name])
        found = fnarray.tree.leaves(fnarray.eval_shape(wide, MANY))
        assert {x.dtype for x in found} == {np.dtype(np.int64)}


def test_narrow_indices_are_checked():
    """256 elements have places that a byte counts, 257 have not."""
    x = np.arange(257, dtype=np.float32)
    assert int(lax.argmax(x[:256], 0, np.uint8)) == 255
    with pytest.raises(ValueError, match="uint8"):
        lax.argmax(x, 0, np.uint8)
    assert int(fnp.ravel_multi_index((7, 2), (2**20, 2**20), mode="clip")) == 7 * 2**20 + 2
