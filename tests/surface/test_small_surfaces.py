"""Small public modules beside JAX's and SciPy's: trees as vectors, segments, images, grids."""

from __future__ import annotations

import importlib
from functools import partial

import numpy as np
import pytest

import fnarray
import fnarray.scipy.cluster.vq
from fnarray import numpy as jnp
from fnarray import ops
from fnarray.errors import ConcretizationTypeError
from fnarray.flatten_util import ravel_pytree
from fnarray.scipy import integrate, interpolate, ndimage

RNG = np.random.default_rng(11)


def close(got, want, tol=1e-5):
    """Assert equal shapes, dtypes and, nearly, values."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(
        np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=tol, atol=tol
    )


MODULES = """
    flatten_util ops dlpack typing nn.initializers scipy.signal scipy.optimize scipy.integrate
    scipy.ndimage scipy.cluster.vq scipy.sparse.linalg scipy.interpolate
"""


@pytest.mark.parametrize("name", MODULES.split())
def test_public_names(name, jax):
    """Every public function of JAX's module is here."""
    theirs, ours = (importlib.import_module(f"{m}.{name}") for m in ("jax", "fnarray"))
    public = {n for n in dir(theirs) if n[0] != "_" and callable(getattr(theirs, n))}
    assert public <= set(dir(ours)) | set(ours.__all__)


# ---- trees as vectors ----------------------------------------------------------------------------

TREES = {
    "one dtype": {"a": np.ones((2, 3), "f4"), "b": [np.arange(2, dtype="f4")]},
    "two dtypes": (np.arange(3), np.ones(2, "f4")),
    "scalars": {"a": 1.5, "b": 2},
    "none": [],
}


@pytest.mark.parametrize("name", TREES)
def test_ravel_pytree(jax, name):
    """Vector and dtype are JAX's, and the way back gives the tree."""
    import jax.flatten_util

    vector, unravel = ravel_pytree(TREES[name])
    want, back = jax.flatten_util.ravel_pytree(TREES[name])
    close(vector, want)
    ours, theirs = fnarray.tree.leaves(unravel(vector)), jax.tree.leaves(back(want))
    for x, y in zip(ours, theirs, strict=True):
        close(x, y)
    assert unravel == ravel_pytree(TREES[name])[1]
    assert hash(unravel) == hash(ravel_pytree(TREES[name])[1])


def test_ravel_pytree_is_transformed():
    """It is differentiated, compiled and mapped like any function of arrays."""
    tree = {"w": jnp.ones((2, 2)), "b": jnp.arange(2.0)}
    vector, unravel = ravel_pytree(tree)
    loss = lambda v: (unravel(v)["w"] @ unravel(v)["b"]).sum()  # noqa: E731
    np.testing.assert_array_equal(fnarray.jit(fnarray.grad(loss))(vector), [2, 2, 0, 1, 0, 1])
    rows = fnarray.vmap(lambda t: ravel_pytree(t)[0])({"w": jnp.ones((3, 2, 2)), "b": jnp.ones(3)})
    assert rows.shape == (3, 5)
    with pytest.raises(ValueError, match=r"\(6,\)"):
        unravel(vector[:-1])
    with pytest.raises(TypeError, match="int32"):
        unravel(vector.astype(int))


# ---- segments ------------------------------------------------------------------------------------

IDS = np.array([0, 2, -1, 2, 5, 0])
SEGMENTS = [
    ({}, "int32"),
    ({"num_segments": 4}, "float32"),
    ({"num_segments": 4}, "uint8"),
    ({"num_segments": 4, "mode": "clip"}, "float32"),
    ({"bucket_size": 2}, "float32"),
    ({"num_segments": 0}, "float32"),
    ({"num_segments": 4}, "bool"),
    ({"num_segments": 3}, "bfloat16"),
]


@pytest.mark.parametrize(("settings", "dtype"), SEGMENTS)
@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_segments(jax, name, settings, dtype):
    """Values and refusals are JAX's: rows of ids outside are left out."""
    import jax.ops

    results = []
    for np_, module in ((jax.numpy, jax.ops), (jnp, ops)):
        data = np_.asarray(np.arange(12).reshape(6, 2), dtype)
        try:
            results.append(getattr(module, name)(data, IDS, **settings))
        except TypeError as error:
            results.append(type(error))
    if isinstance(results[0], type):
        assert results[0] is results[1] is TypeError
    else:
        close(results[1], results[0])


def test_segments_are_transformed(jax):
    """Gradients, compiled, are JAX's; the number of segments must then be given."""
    import jax.ops

    data = RNG.standard_normal((6, 2)).astype("f4")
    for name in ("segment_sum", "segment_max"):

        def loss(x, ids, segment):
            return (segment(x, ids, 3) ** 2)[:1].sum()

        ours, theirs = (partial(loss, segment=getattr(m, name)) for m in (ops, jax.ops))
        close(fnarray.jit(fnarray.grad(ours))(data, IDS), jax.grad(theirs)(data, IDS))
    with pytest.raises(ConcretizationTypeError, match="num_segments"):
        fnarray.jit(ops.segment_sum)(data, IDS)
    assert ops.segment_sum(1.0, IDS, 3).tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (([1.0, 2.0], IDS), TypeError, "list"),
        ((np.ones(2), np.ones(2)), TypeError, "integers"),
        ((np.ones(3), np.ones(2, int)), ValueError, "first axes"),
        ((np.ones(2), np.ones(2, int), -1), ValueError, "non-negative"),
        ((np.ones(0), np.ones(0, int)), ValueError, "no segment ids"),
    ],
)
def test_segments_errors(args, error, text):
    """What has no segments is refused by name."""
    with pytest.raises(error, match=text):
        ops.segment_sum(*args)


# ---- images, grids, codes, integrals -------------------------------------------------------------

IMAGE = RNG.standard_normal((4, 5)).astype("f4")
PLACES = RNG.uniform(-7, 10, (2, 30)).astype("f4")


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror", "reflect", "wrap"])
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(jax, order, mode):
    """Values are JAX's within and without, of floats and of integers."""
    from jax.scipy.ndimage import map_coordinates

    for image in (IMAGE, (10 * IMAGE).astype("i4")):
        want = map_coordinates(image, list(PLACES), order, mode, 2.0)
        close(ndimage.map_coordinates(image, list(PLACES), order, mode, 2.0), want)


def test_map_coordinates_errors():
    """Other orders, modes and numbers of coordinates are refused."""
    for args in ((list(PLACES), 3), (list(PLACES), 1, "grid")):
        with pytest.raises(NotImplementedError, match="map_coordinates"):
            ndimage.map_coordinates(IMAGE, *args)
    with pytest.raises(ValueError, match="map_coordinates"):
        ndimage.map_coordinates(IMAGE, [PLACES[0]], 1)


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, -1.0, None])
def test_grid_interpolation(jax, method, fill):
    """Values are JAX's within and outside; an interpolator may be an argument of jit."""
    from jax.scipy.interpolate import RegularGridInterpolator

    grid = (np.array([0.0, 1.0, 2.5, 4.0], "f4"), np.linspace(-1, 3, 5, dtype="f4"))
    values = np.stack([IMAGE, 2 * IMAGE], -1)
    points = RNG.uniform(-0.5, 3.2, (7, 3, 2)).astype("f4")
    want = RegularGridInterpolator(grid, values, method, fill_value=fill)(points)
    ours = interpolate.RegularGridInterpolator(grid, values, method, fill_value=fill)
    close(ours(points), want, 1e-4)
    close(fnarray.jit(lambda f, x: f(x))(ours, points), want, 1e-4)


def test_grid_interpolation_errors():
    """Grids that do not fit the values are refused."""
    make = interpolate.RegularGridInterpolator
    for call in (
        lambda: make((np.arange(3.0),), IMAGE),
        lambda: make((np.arange(4.0),) * 3, IMAGE),
        lambda: make((np.arange(4.0),), IMAGE, "cubic"),
        lambda: make((np.arange(4.0),), IMAGE, bounds_error=True),
        lambda: make((np.arange(4.0),), IMAGE)(np.ones((2, 3))),
    ):
        with pytest.raises(ValueError, match=r"point|method|bounds_error"):
            call()


def test_vector_quantisation(jax):
    """Codes and distances are JAX's."""
    from jax.scipy.cluster.vq import vq

    for obs, book in ((IMAGE, IMAGE[1:] + 0.1), (IMAGE[0], IMAGE[1])):
        for got, want in zip(fnarray.scipy.cluster.vq.vq(obs, book), vq(obs, book), strict=True):
            close(got, want)
    with pytest.raises(ValueError, match="rank"):
        fnarray.scipy.cluster.vq.vq(IMAGE, IMAGE[0])


def test_trapezoid():
    """Values are NumPy's."""
    x = np.cumsum(RNG.random(5)).astype("f4")
    np.testing.assert_allclose(integrate.trapezoid(IMAGE, x), np.trapezoid(IMAGE, x), rtol=1e-5)
    want = np.trapezoid(IMAGE, dx=0.5, axis=0)
    np.testing.assert_allclose(integrate.trapezoid(IMAGE, dx=0.5, axis=0), want, rtol=1e-5)
    for y in ([], [3.0], [3.0, 4.0], [3.0, np.inf, 1.0], [np.inf, 3.0, 1.0]):
        np.testing.assert_allclose(integrate.trapezoid(np.float32(y)), np.trapezoid(y))


def test_dlpack():
    """NumPy's dtypes are handed over; arrays come back equal."""
    assert fnarray.dlpack.is_supported_dtype("float32")
    assert not fnarray.dlpack.is_supported_dtype("bfloat16")
    np.testing.assert_array_equal(fnarray.dlpack.from_dlpack(IMAGE), IMAGE)


def test_array_like_holds_what_functions_take():
    """``ArrayLike`` may be asked of values; lists are none."""
    assert all(isinstance(x, fnarray.typing.ArrayLike) for x in (1, 2.0, IMAGE, jnp.ones(2)))
    assert not isinstance([1], fnarray.typing.ArrayLike)


@pytest.mark.parametrize("x", [1, 2.0, True, np.ones(2), "int16", float, np.uint8, [1], None])
def test_dtype(jax, x):
    """Dtypes, and refusals, are JAX's."""
    results = []
    for lax in (jax.lax, fnarray.lax):
        try:
            results.append(lax.dtype(x))
        except (TypeError, ValueError) as error:
            results.append(type(error))
    assert results[0] == results[1]


def test_broadcast_like():
    """Shapes broadcast as NumPy's; others are refused."""
    like = jnp.ones((2, 3))
    for shape in ((), (3,), (2, 1), (2, 3)):
        x = RNG.random(shape).astype("f4")
        np.testing.assert_array_equal(
            fnarray.lax.broadcast_like(x, like), np.broadcast_to(x, (2, 3))
        )
    with pytest.raises(ValueError, match="broadcast_like"):
        fnarray.lax.broadcast_like(like, like[0])
    assert fnarray.lax.shape_as_value((2, 3)).tolist() == [2, 3]
