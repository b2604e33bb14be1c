"""Parts of arrays that are cut are read and written where they are; nobody gets the whole.

Programs are partitioned as for workers, and run here, one lane of a vmap for each device.
"""

import itertools

import jax
import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.core.graph import eval_graph
from fnarray.core.trace import bind
from fnarray.distributed import along
from fnarray.distributed.partition import partition

RNG = np.random.default_rng(3)
X = RNG.standard_normal((16, 8)).astype(np.float32)
X[3, 1] = -0.0
AT = np.array([[5, -1], [0, 9]], np.int32)
DEVICES = 4

READS = {
    "element": lambda x, np_, lax: x[0, 0],
    "row": lambda x, np_, lax: x[-1],
    "rows": lambda x, np_, lax: x[1:15:2],
    "half": lambda x, np_, lax: x[:8],
    "tail": lambda x, np_, lax: x[1:],
    "both": lambda x, np_, lax: x[2:9, 1:3],
    "columns": lambda x, np_, lax: x[:, 1:3],
    "at": lambda x, np_, lax: x[np_.argmax(x[:, 0])],
    "window": lambda x, np_, lax: lax.dynamic_slice(x, (np_.argmax(x[:, 1]), 1), (3, 2)),
    "past the end": lambda x, np_, lax: lax.dynamic_slice_in_dim(x, np_.argmax(x[:, 1]) + 15, 3),
    "list": lambda x, np_, lax: x[np_.array([5, 0, 5, -1])],
    "pairs": lambda x, np_, lax: x[np_.array([5, 0]), np_.array([1, -1])],
    "columns by list": lambda x, np_, lax: x[:, np_.array([3, 0])],
    "clipped": lambda x, np_, lax: np_.take(x, AT + 9, axis=0, mode="clip"),
    "filled": lambda x, np_, lax: np_.take(x, AT + 9, axis=0, mode="fill"),
    "wrapped": lambda x, np_, lax: np_.take(x, AT + 9, axis=0, mode="wrap"),
    "unsigned": lambda x, np_, lax: x[np_.array([5, 0], np_.uint8)],
    "argmax": lambda x, np_, lax: (np_.argmax(x), np_.argmax(x, axis=0), np_.argmin(x, axis=1)),
    "product": lambda x, np_, lax: (np_.prod(x), np_.prod(x, axis=0)),
    "any": lambda x, np_, lax: (np_.any(x > 1), np_.all(x > -9, axis=0), np_.any(x > 1, axis=1)),
}


def _groups(x, np_):
    """A number for each row, of which some are of no group."""
    return (4 * abs(x[:, 0])).astype(np_.int32)


def _window(x, lax, start):
    """Rows added from a start on, of which none is where one is outside."""
    numbers = lax.ScatterDimensionNumbers((0, 1), (), (0,))
    return lax.scatter_add(x, np.array([start]), x[:4] + 1, numbers, mode="drop")


WRITES = {
    "set": lambda x, np_, lax: x.at[3].set(x[0]),
    "set many": lambda x, np_, lax: x.at[np_.array([1, 6, 1])].add(x[:3]),
    "set one": lambda x, np_, lax: x.at[2, 1].multiply(3),
    "set outside": lambda x, np_, lax: x.at[np_.array([2, 20])].set(x[:2], mode="drop"),
    "set column": lambda x, np_, lax: x.at[:, 1].set(x[:, 0]),
    "set rows": lambda x, np_, lax: lax.dynamic_update_slice(
        x, x[:3, :2], (np_.argmax(x[:, 1]), 1)
    ),
    "set columns": lambda x, np_, lax: lax.dynamic_update_slice(
        x, x[:, :2], (0, np_.argmax(x[:, 1]))
    ),
    "running": lambda x, np_, lax: (np_.cumsum(x, 0), np_.cumprod(x, 0), np_.cumsum(x, 1)),
    "back": lambda x, np_, lax: (lax.cummax(x, 0, reverse=True), lax.cumsum(x, 0, reverse=True)),
    "least": lambda x, np_, lax: lax.cummin(x, 0),
}
FLOATS = {
    "logarithm": lambda x, np_, lax: lax.cumlogsumexp(x, 0),
    "nan": lambda x, np_, lax: np_.argmax(x.at[9, 2].set(np.nan).at[11, 2].set(np.nan), 0),
    "statistics": lambda x, np_, lax: (x.mean(), x.std(0), x.var()),
    "by group": lambda x, np_, lax: (
        np_.zeros((4, 8), np_.float32).at[_groups(x, np_)].add(x),
        np_.zeros((4, 8), np_.float32).at[_groups(x, np_)].max(x),
        np_.ones((4, 8), np_.float32).at[_groups(x, np_)].subtract(x),
    ),
    "counts": lambda x, np_, lax: np_.bincount((3 * abs(x)).astype(np_.int32).ravel(), length=9),
    "set window": lambda x, np_, lax: (
        x.at[3:7].set(1.5).sum(0),
        x.at[9:11, 2:5].multiply(-2).sum(1),
        _window(x, lax, 12).sum(0),
        _window(x, lax, 13).sum(0),
        _window(x, lax, -1).sum(0),
    ),
}
ALONG = {
    "sort": lambda x, np_, lax: (np_.sort(x, 0), np_.sort(x, 1), np_.argsort(-x, 1)),
    "ties": lambda x, np_, lax: lax.sort(
        ((2 * x).astype(np_.int32), x, x > 0), dimension=0, num_keys=1
    ),
    "order": lambda x, np_, lax: np_.argsort((2 * x).astype(np_.int32), axis=0),
    "line": lambda x, np_, lax: (
        np_.sort(x.ravel()),
        np_.argsort((3 * x).astype(np_.int32).ravel()),
        np_.median(x),
    ),
    "nans": lambda x, np_, lax: np_.sort(np_.where(x > 1, np_.nan, x * 0).ravel()),
    "greatest": lambda x, np_, lax: (lax.top_k(x, 2), lax.top_k(x.T, 3)),
    "flip": lambda x, np_, lax: (np_.flip(x), np_.flip(x, 0), x[::-1, 1:3], np_.rot90(x)),
    "pad": lambda x, np_, lax: (np_.pad(x, ((1, 2), (0, 0))), np_.pad(x, ((0, 0), (2, 0)))),
    "tile": lambda x, np_, lax: (np_.tile(x, (2, 1)), np_.tile(x, (1, 3))),
    "join": lambda x, np_, lax: (np_.concatenate([x, x], 0), np_.hstack([x, x + 1])),
    "transform": lambda x, np_, lax: (np_.fft.fft(x, axis=0).real, np_.fft.rfft(x).real),
    "by row": lambda x, np_, lax: (
        np_.take_along_axis(x, np_.argsort(x, 0)[:4], 0),
        np_.take_along_axis(x, AT[:1] % 8, 1),
    ),
    "table": lambda x, np_, lax: np_.digitize(x, np_.array([-1.0, 0.0, 0.5])),
    "repeated": lambda x, np_, lax: x[:, 0, None] + x[0, None],
    "one of many": lambda x, np_, lax: (x[..., None] > np_.arange(3)).astype(np_.float32),
    "matrices": lambda x, np_, lax: np_.linalg.solve(
        x.reshape(8, 4, 4) + 9 * np_.eye(4), x.reshape(8, 4, 4)
    ),
    "windows": lambda x, np_, lax: lax.reduce_window(x, -np_.inf, lax.max, (2, 1), (1, 1), "VALID"),
    "images": lambda x, np_, lax: lax.conv(
        x.reshape(8, 2, 8, 1), x[:3, :4].reshape(3, 2, 2, 1), (1, 1), "SAME"
    ),
}
DTYPES = {"float": X, "int": (10 * X).astype(np.int32), "bool": X > 0.5}


def on_blocks(program, x, axis):
    """A program's results put together of those of devices, and its graph on blocks."""
    closed = fa.make_jaxpr(lambda x: program(x, jnp, lax))(x)
    spec = tuple(("i",) if d == axis else () for d in range(2))
    graph, consts, specs = partition(closed, (spec,), (("i", DEVICES),))
    blocks = np.stack(np.split(x, DEVICES, axis))
    run = lambda block: eval_graph(graph.jaxpr, graph.consts, [*consts, block], bind)  # noqa: E731
    outs = fa.vmap(run, axis_name="i", axis_size=DEVICES)(blocks)
    whole = []
    for out, spec in zip(outs, specs, strict=True):
        cut = [d for d, names in enumerate(spec) if names]
        if not cut:
            for other in out[1:]:
                np.testing.assert_array_equal(other, out[0])
        whole.append(np.concatenate(list(out), cut[0]) if cut else np.asarray(out[0]))
    return whole, graph


@pytest.mark.parametrize("count", range(1, 12))
def test_pairs_that_meet_sort(count):
    """What sorts all sequences of zeros and ones sorts everything; nobody is in two pairs."""
    x = np.array(list(itertools.product((0, 1), repeat=count)))
    for pairs in along._rounds(count):
        assert len({k for pair in pairs for k in pair}) == 2 * len(pairs)
        for a, b in pairs:
            x[:, a], x[:, b] = np.minimum(x[:, a], x[:, b]), np.maximum(x[:, a], x[:, b])
    assert (np.diff(x, axis=1) >= 0).all()


def sizes(graph):
    """Elements of what equations make; what is repeated, or counted, is an index, and no memory."""
    eqns = [e for e in graph.jaxpr.eqns if e.primitive.name not in ("broadcast_in_dim", "iota")]
    return [v.aval.size for eqn in eqns for v in eqn.outvars]


CASES = [
    *((READS[name], DTYPES[k]) for name in READS for k in ("float", "bool")),
    *((WRITES[name], x) for name in WRITES for x in (DTYPES["float"], DTYPES["int"])),
    *((program, X) for program in (FLOATS | ALONG).values()),
]
IDS = [
    *(f"{name}-{dtype}" for name in READS for dtype in ("float", "bool")),
    *(f"{name}-{dtype}" for name in WRITES for dtype in ("float", "int")),
    *FLOATS,
    *ALONG,
]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("program", "x"), CASES, ids=IDS)
def test_parts_are_those_of_the_whole(program, x, axis):
    """The results are JAX's on the whole array, and no device makes more than these or a block."""
    expected = jax.tree.leaves(program(jax.numpy.asarray(x), jax.numpy, jax.lax))
    found, graph = on_blocks(program, x, axis)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    found_by_all = DEVICES if program in (READS["argmax"], READS["product"]) else 1
    most = max(x.size // DEVICES, *(found_by_all * y.size for y in expected))
    assert max(sizes(graph)) <= most
