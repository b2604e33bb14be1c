"""What evaluators come down to where avals are known gives their bits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fnarray.core.array import asarray
from fnarray.core.avals import ShapedArray
from fnarray.core.graph import eval_graph
from fnarray.core.record import known_of, spelled_of
from fnarray.core.trace import bind
from fnarray.ops._convolve import ConvDimensionNumbers, _conv_eval
from fnarray.ops.contract import _dot_general_eval
from fnarray.ops.gather import GatherDimensionNumbers, GatherScatterMode
from fnarray.ops.gather import _eval as _gather_eval
from fnarray.ops.linalg_factor import _lu_eval, _permutation
from fnarray.ops.linalg_solve import _linear_eval, _triangular_eval
from fnarray.ops.scatter import _eval as _scatter_eval
from fnarray.ops.shape import _broadcast_eval

#: Those of reductions are made by a function.
FOLDS = [f for f in known_of if f.__qualname__.startswith("_folded")]
SHAPES = [(1,), (16,), (40000,), (4, 4), (33, 5), (32, 7), (1, 9), (7, 1), (200, 200), (3, 4, 5)]


def check(evaluate, *xs, **params):
    """Return whether an evaluator comes down to something, whose bits are compared."""
    known = known_of[evaluate](*[ShapedArray(x.shape, x.dtype) for x in xs], **params)
    if known is None:
        return False
    outs, wanted = known(*xs), evaluate(*xs, **params)
    several = type(wanted) is tuple
    for got, want in zip(outs if several else [outs], wanted if several else [wanted], strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        assert got.tobytes() == np.asarray(want).tobytes()
    return True


def drawn(shape, dtype):
    """Return numbers of a dtype, NaN, infinity and -0 among those of floats."""
    x = (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)
    if np.dtype(dtype).kind == "f" and x.size > 20:
        x.flat[3], x.flat[11], x.flat[17] = -0.0, np.inf, np.nan
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32, bool])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape, dtype):
    """One call of NumPy's folds as the evaluator does, along each axis and along all."""
    x, taken = drawn(shape, dtype), 0
    along = {(k,) for k in range(x.ndim)} | {tuple(range(x.ndim)), tuple(range(1, x.ndim))} - {()}
    with np.errstate(all="ignore"):
        for fold in FOLDS:
            for axes in along:
                try:
                    fold(x, axes=axes)
                except TypeError:  # bits of floats
                    continue
                taken += check(fold, x, axes=axes)
    assert taken


@pytest.mark.parametrize("n", [*range(1, 26), 31, 32, 40, 63, 64, 65])
def test_sums_are_spelled_in_order(n):
    """A sum spelled out, addition by addition, has NumPy's bits: of NaN, -0 and tiny ones."""
    draw, taken = np.random.default_rng(n), 0
    (total,) = [f for f in FOLDS if f in spelled_of]
    for shape, axes in [((n,), (0,)), ((3, n), (1,)), ((n, 3), (0,)), ((2, n, 3), (1,)),
                        ((n, 2), (0, 1)), ((2, 3, n), (2,)), ((2, n, 3), (1, 2))]:  # fmt: skip
        graph = spelled_of[total](ShapedArray(shape, np.dtype(np.float32)), axes=axes)
        if graph is None:
            continue
        taken += 1
        for k in range(4):
            x = draw.standard_normal(shape) * 10.0 ** draw.integers(-3, 4, shape)
            x = drawn(shape, np.float32) if k == 1 else x.astype(np.float32)
            x = [x, x, np.full_like(x, -0.0), np.full_like(x, 1e-40)][k]
            with np.errstate(all="ignore"):
                (got,) = (np.asarray(y) for y in eval_graph(graph.jaxpr, (), [asarray(x)], bind))
                want = np.asarray(total(x, axes=axes))
            assert got.shape == want.shape
            assert (
                np.where(np.isnan(got), 0, got).tobytes()
                == np.where(np.isnan(want), 0, want).astype(np.float32).tobytes()
            )
    assert taken or n in (1, 65)


def test_products():
    """Products of few numbers are NumPy's; of many, of integers and of others they are not."""
    draw = np.random.default_rng(1).standard_normal
    params = {"precision": None, "preferred_element_type": None}
    for a, b in [((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 3)), ((3, 5), (5, 7)), ((1, 1), (1, 1))]:
        numbers = (((len(a) - 1,), (0,)), ((), ()))
        for dtype in (np.float32, np.complex64):
            x, y = (draw(s).astype(dtype) for s in (a, b))
            assert check(_dot_general_eval, x, y, dimension_numbers=numbers, **params)
    numbers = (((0,), (0,)), ((), ()))
    for n, dtype in ((4096, np.float32), (5, np.int32), (5, np.float16)):
        x = np.ones(n, dtype)
        assert not check(_dot_general_eval, x, x, dimension_numbers=numbers, **params)


@pytest.mark.parametrize("n", [1, 2, 7, 24])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_small_systems(n, dtype):
    """One small system is solved, and factored, as one of a stack is: singular ones, too."""
    draw = np.random.default_rng(n).standard_normal
    a, b = draw((n, n)).astype(dtype), draw((n, 3)).astype(dtype)
    singular, broken = np.zeros_like(a), np.full_like(a, np.nan)
    for x in (a, np.asfortranarray(a).T.copy(), singular, broken):
        assert check(_lu_eval, x)
        with np.errstate(all="ignore"):
            assert check(_linear_eval, x, b)
    for flags in product((True, False), repeat=5):
        names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
        params = dict(zip(names, flags, strict=True))
        assert check(_triangular_eval, a, b if flags[0] else b.T.copy(), **params)
    pivots = np.random.default_rng(0).integers(0, n, n).astype(np.int32)
    assert check(_permutation, pivots, permutation_size=n + 2)


@pytest.mark.parametrize("n", [1, 16, 40])
@pytest.mark.parametrize("k", [1, 5, 16])
def test_convolutions(n, k):
    """Short vectors meet in one product, as they do among all convolutions."""
    draw, order = np.random.default_rng(2).standard_normal, (0, 1, 2)
    params = {
        "dimension_numbers": ConvDimensionNumbers(order, order, order),
        "window_strides": (1,), "lhs_dilation": (1,), "rhs_dilation": (1,),
        "feature_group_count": 1, "batch_group_count": 1,
        "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    for dtype in (np.float32, np.float64, np.complex64):
        x, w = (draw((1, 1, m)).astype(dtype) for m in (n, k))
        assert check(_conv_eval, x, w, padding=((k - 1, k - 1),), **params)


def test_broadcasts():
    """Where nothing is repeated it is a reshape."""
    x = np.arange(6.0)
    assert check(_broadcast_eval, x, shape=(1, 6, 1), broadcast_dimensions=(1,))
    assert not check(_broadcast_eval, x, shape=(2, 6), broadcast_dimensions=(1,))


@pytest.mark.parametrize("mode", list(GatherScatterMode))
def test_gathers(mode):
    """Whole rows, columns, elements are read and replaced; of windows nothing is known."""
    draw, x, taken = np.random.default_rng(2), drawn((4, 3, 5), np.float32), 0
    for axes in [(0,), (2,), (1, 0), (2, 0), (0, 1, 2)]:
        sizes = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        for batch, low, high in [((), 0, 3), ((6,), 0, 3), ((2, 3), -2, 7)]:
            rank = len(batch) + x.ndim - len(axes)
            for offset in {tuple(range(len(batch), rank)), tuple(range(x.ndim - len(axes)))}:
                at = draw.integers(low, high, (*batch, len(axes)), dtype=np.int32)
                numbers = GatherDimensionNumbers(offset, tuple(sorted(axes)), axes)
                params = {"dimension_numbers": numbers, "slice_sizes": sizes, "mode": mode}
                taken += check(_gather_eval, x, at, **params, fill_value=7.5)
                new = np.asarray(_gather_eval(x, at, **params, fill_value=7.5))
                given = {"dimension_numbers": numbers.scatter(), "mode": mode}
                given |= {"update_jaxpr": None, "unique_indices": False}
                assert check(_scatter_eval, x, at, -new, **given)
    assert taken == 23
    at = draw.integers(-1, 6, (4, 3, 2, 1), dtype=np.int32)  # along an axis, the others together
    params = {"dimension_numbers": GatherDimensionNumbers((), (2,), (2,), (0, 1), (0, 1))}
    assert check(_gather_eval, x, at, **params, slice_sizes=(1, 1, 1), mode=mode, fill_value=0)
    assert check(_gather_eval, x, at % 5, **params, slice_sizes=(1,) * 3, mode=mode, fill_value=0)
    numbers = GatherDimensionNumbers((0, 1, 2), (), (0,))
    params = {"dimension_numbers": numbers, "slice_sizes": (2, 3, 5), "mode": mode}
    assert not check(_gather_eval, x, np.zeros(1, np.int32), **params, fill_value=None)
