"""What is compiled ahead, and where its arguments and results are."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray.experimental.layout import Format, Layout
from fnarray.sharding import AxisType, NamedSharding, SingleDeviceSharding

P = fnarray.P
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def mesh():
    return fnarray.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def test_said_by_jit(mesh):
    """A program that was told of shardings tells them, and its results are there."""
    ins, outs = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))
    lowered = fnarray.jit(lambda x: x * 2, in_shardings=ins, out_shardings=outs).lower(X)
    compiled = lowered.compile()
    assert compiled.input_shardings == ((ins,), {})
    assert compiled.output_shardings == outs
    assert compiled.output_formats == Format(Layout((0, 1), ()), outs)
    result = compiled(X)
    assert result.sharding == outs
    np.testing.assert_array_equal(result, 2 * X)


def test_said_of_nothing():
    """Without a mesh arguments and results are on the first device, the last axis fastest."""
    compiled = fnarray.jit(lambda tree, n: {"y": tree["x"].T * n}, static_argnums=1)
    compiled = compiled.lower({"x": X}, 2).compile()
    here = SingleDeviceSharding(fnarray.devices()[0])
    assert compiled.input_shardings == (({"x": here},), {})
    assert compiled.output_formats == {"y": Format(Layout((0, 1), ()), here)}
    assert compiled.input_formats == (({"x": Format(Layout((0, 1), ()), here)},), {})
    np.testing.assert_array_equal(compiled({"x": X})["y"], 2 * X.T)


def test_formats_say_places(mesh):
    """A format stands for its sharding; a layout that arrays do not have is refused."""
    where = NamedSharding(mesh, P("x"))
    given = Format(Layout((0, 1)), where)
    assert fnarray.device_put(X, given).sharding == where
    assert fnarray.jit(lambda x: x, in_shardings=given, out_shardings=given)(X).sharding == where
    auto = Format(Layout.AUTO)
    lowered = fnarray.jit(lambda x: x + 1, in_shardings=auto, out_shardings=auto).lower(X)
    np.testing.assert_array_equal(lowered.compile()(X), X + 1)
    with pytest.raises(NotImplementedError, match="Transpose the array"):
        fnarray.device_put(X, Format(Layout((1, 0)), where))
