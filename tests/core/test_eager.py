"""Eager calls: a replay gives what the function gives, for as long as that follows from the key."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.core import memo, stretches
from fnarray.core.array import asarray, aval_of
from fnarray.core.eager import elementwise, replayed


def counted(f):
    """Return a function and the list of its runs."""
    runs = []

    def run(*args, **settings):
        runs.append(args)
        return f(*args, **settings)

    return run, runs


@pytest.fixture(autouse=True)
def _empty_memo():
    fnarray.clear_caches()


@pytest.fixture
def x():
    return asarray(np.array([1.0, -2.0, 3.0], np.float32))


def test_called_recorded_replayed(x):
    """The first call runs the function, the second records it too, later ones do not run it."""
    f, runs = counted(lambda a: lax.mul(lax.add(a, a), a))
    face = replayed(f)
    outs = [np.asarray(face(x)) for _ in range(5)]
    assert len(runs) == 3  # the second call runs it once more on tracers
    assert all(np.array_equal(out, [2, 8, 18]) for out in outs)


def test_signature_tells_settings_apart(x):
    """Settings equal in Python, 1, 1.0 and True, or 0.0 and -0.0, are of different signatures."""
    face = replayed(lambda a, s: lax.mul(a, lax.full_like(a, repr(s) == "True" or s)))
    for _ in range(3):
        assert np.array_equal(face(x, 2), [2, -4, 6])
    given = [1, True, 1.0, 0.0, -0.0]
    shown = replayed(lambda a, s: lax.add(a, lax.full_like(a, len(repr(s)))))
    for _ in range(3):
        assert [float(shown(x, s)[0]) - 1 for s in given] == [len(repr(s)) for s in given]
    for _ in range(3):
        assert jnp.sum(x, axis=0) == 2
        with pytest.raises(TypeError):
            jnp.sum(x, axis=0.0)


def test_avals_weak_types_and_configuration_are_of_the_signature():
    """The same call of another shape, weak type or setting of x64 is another."""
    for _ in range(3):
        assert jnp.add(jnp.asarray(2), 3).weak_type
        assert not jnp.add(jnp.asarray(2, jnp.int32), 3).weak_type
        assert jnp.mean(jnp.arange(4)).dtype == np.float32
        with fnarray.enable_x64(True):
            assert jnp.mean(jnp.arange(4)).dtype == np.float64
            assert (jnp.arange(3) * 2.5).dtype == np.float64
        assert (jnp.arange(3) * 2.5).dtype == np.float32


def test_numbers_that_do_not_fit_run_the_function():
    """A Python number outside the dtype that it enters at is left to the function."""
    x = asarray(np.array([1, 2], np.int8))
    for _ in range(3):
        assert np.array_equal(x + 1, [2, 3])
    assert np.array_equal(x + 300, np.array([1, 2], np.int8) + np.int64(300).astype(np.int8))
    for _ in range(3):
        with pytest.raises(OverflowError):
            x + 2**40
    y = asarray(np.array([1.0], np.float32))
    assert np.isnan([float((y * float("nan"))[0]) for _ in range(4)]).all()


def test_errors_and_warnings_come_with_every_call(x):
    """What raises or warns the first time does so again."""
    for _ in range(3):
        with pytest.raises(ValueError, match="stack"):
            jnp.stack([x, x[:2]])
        with pytest.warns(RuntimeWarning, match="overflow"):
            jnp.clip(x, -1.0, 1e300)
    square = jnp.ones((3, 3))
    with fnarray.numpy_rank_promotion("warn"):
        for _ in range(3):
            with pytest.warns(UserWarning, match="automatic rank promotion"):
                jnp.add(square, x)


def test_replays_are_quiet():
    """No floating-point warning of NumPy's reaches the caller."""
    x = asarray(np.array([0.0, -1.0, 3e38], np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (jnp.log, jnp.std, lambda a: a / 0, lambda a: jnp.dot(a, a), lambda a: a // 0.0):
            for _ in range(3):
                f(x)


@pytest.mark.parametrize(("setting", "bad"), [("debug_nans", -1.0), ("debug_infs", 0.0)])
def test_debug_nans_and_infs_are_asked_at_each_call(setting, bad):
    """A function replayed before is checked once the setting is on, and free of it afterwards."""
    x = asarray(np.array([bad], np.float32))
    for _ in range(3):
        assert not np.isfinite(jnp.log(x)).any()
    with getattr(fnarray, setting)(True):
        for _ in range(3):
            with pytest.raises(FloatingPointError, match=rf"{setting[6:9]}.*in log"):
                jnp.log(x)
    assert not np.isfinite(jnp.log(x)).any()


def test_debug_infs_asks_who_made_the_infinity():
    """Functions that fill with infinities, and results of what has one, are let pass."""
    x = asarray(np.array([1.0, np.nan, np.inf], np.float32))
    with fnarray.debug_infs(True):
        assert np.isinf(np.asarray(2 * x)).sum() == 1
        assert jnp.nanmax(x[:2]) == jnp.nanmin(x[:2]) == 1
        assert jnp.hypot(x[:1], x[:1]).shape == (1,)
        with pytest.raises(FloatingPointError, match=r"inf.* in div"):
            x[:1] / 0


def test_results_alias_no_writable_array():
    """Writing to an array of the caller's changes no result, nor does a result change a record."""
    a = np.ones(4, np.float32)
    outs = [jnp.reshape(a, (2, 2)) for _ in range(3)] + [jnp.add(a, 0) for _ in range(3)]
    a[:] = 7
    assert all((np.asarray(out) == 1).all() for out in outs)
    first, *others = [jnp.linspace(0, 1, 5) for _ in range(4)]
    assert not any(
        np.shares_memory(np.asarray(p), np.asarray(q)) for p in others for q in others if p is not q
    )
    assert all(np.array_equal(first, out) for out in others)


def test_numpy_scalars_and_arrays_are_arrays(x):
    """NumPy's own operands count as arrays, strongly typed."""
    for _ in range(3):
        assert (x * np.float32(2)).dtype == np.float32
        assert (jnp.arange(3) * np.float32(2)).dtype == np.float32
        assert np.array_equal(jnp.floor_divide(x, np.array([2, 2, 2])), [0, -1, 1])


def test_functions_of_values_are_called_each_time(x):
    """What cannot be recorded, as its result's shape follows from values, is run."""
    for k in range(4):
        assert len(jnp.where(asarray(np.arange(4) > k))[0]) == 3 - k
    f, runs = counted(lambda a: lax.neg(a) if float(a[0]) > 0 else a)
    face = replayed(f)
    for _ in range(4):
        assert face(x)[0] == -1
    assert len(runs) == 5


def test_places_out_of_range_are_not_replayed():
    """Reading by NumPy gives way to the function where an index is out of range."""
    x, inside = jnp.arange(4.0), asarray(np.array([0, -1]))
    for _ in range(4):
        assert np.array_equal(x[inside], [0, 3])
        assert np.array_equal(jnp.take(x, inside), [0, 3])
    outside = asarray(np.array([9, -9]))
    for _ in range(4):
        assert np.array_equal(x[outside], [3, 0])
        assert np.isnan(jnp.take(x, outside)).all()
        assert np.array_equal(jnp.take(x, outside, mode="clip"), [3, 0])
        assert np.array_equal(jnp.take(x, inside, mode="clip"), [0, 0])


def test_traced_calls_are_recorded_not_replayed(x):
    """Under a trace the function itself runs, however often it was replayed before."""
    for _ in range(4):
        jnp.mean(x)
    assert "div" in str(fnarray.make_jaxpr(jnp.mean)(x))
    assert np.allclose(fnarray.grad(jnp.mean)(x), 1 / 3)


def test_derivatives_of_ones_own_are_replayed(x):
    """A function with a derivative of its own is the operations in it, twice if called twice."""

    @fnarray.custom_jvp
    def f(a, b):
        return lax.mul(a, b), b

    @f.defjvp
    def _(primals, tangents):
        raise AssertionError("nothing is differentiated")

    def g(a):
        c, d = f(a, lax.add(a, a))
        return [f(c, d)[0], *f(d, lax.add(c, c))]

    counted_g, runs = counted(g)
    face, v = replayed(counted_g), np.asarray(x)
    for _ in range(30):
        assert all(map(np.array_equal, face(x), [4 * v**3, 8 * v**3, 4 * v**2]))
    assert len(runs) == 3


def test_memo_is_bounded_and_cleared(x, monkeypatch):
    """It never grows past its bound, and ``clear_caches`` empties it."""
    monkeypatch.setattr(memo, "_MOST", 16)
    for n in range(40):
        assert jnp.clip(x, -float(n), 1.0).shape == (3,)
    assert 0 < len(memo._memo) <= 16
    fnarray.clear_caches()
    assert not memo._memo


def test_threads_share_the_memo(x):
    """Threads that record and replay the same functions get the same results."""
    face = elementwise(lambda *args: list(map(aval_of, args)))(
        lambda a, b, /: lax.add(a, lax.mul(a, b))
    )
    found = []

    def work():
        for n in range(200):
            if n % 50 == 0:
                fnarray.clear_caches()
            found.append(bool(np.array_equal(face(x, x), [2, 2, 12])))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 800
    assert all(found)


@pytest.mark.parametrize("shape", [(7, 5), (200, 150)], ids=["few", "many"])
def test_replays_repeat_elements_and_let_go_of_values(shape):
    """What is repeated, read twice or given back is what it is when each operation is called."""

    def f(a, b):
        row = lax.broadcast_in_dim(b, a.shape, (1,))
        again = lax.broadcast_in_dim(b, a.shape, (1,))
        both = lax.mul(row, again)
        less = lax.sub(a, row)
        column = lax.broadcast_in_dim(lax.reduce_sum(less, (1,)), a.shape, (0,))
        whole = lax.concatenate([lax.add(less, column), both], 0)
        return less, lax.mul(less, less), column, whole, b

    draw = np.random.default_rng(0).random
    args = [asarray(draw(n, np.float32)) for n in (shape, shape[1:])]
    face, want = replayed(f), f(*args)
    for _ in range(4):
        for got, x in zip(face(*args), want, strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(x))


# ---- many elements -------------------------------------------------------------------------------

MANY = 70_000
#: Places of which some repeat.
LAST = np.arange(26, dtype=np.int32)[::-1] % 7


def _bits(x):
    return np.asarray(x).tobytes()


@pytest.mark.parametrize(
    "f",
    [
        jnp.std, lambda x: jnp.var(jnp.reshape(x, (-1, 7)), axis=1), fnarray.nn.softplus,
        fnarray.nn.softmax, lax.erf, lax.nextafter, jnp.logaddexp, jnp.modf,
        lambda x: jnp.abs(lax.complex(x, x)),
    ],
)  # fmt: skip
def test_many_elements_give_the_bits_of_a_compiled_call(f):
    """On many elements each call, the first one too, gives what the function gives compiled."""
    draw = np.random.default_rng(0).normal
    count = 2 if f in (lax.nextafter, jnp.logaddexp) else 1
    args = [asarray(draw(size=MANY).astype(np.float32)) for _ in range(count)]
    want = listed(fnarray.jit(f)(*args))
    for _ in range(4):
        assert list(map(_bits, listed(f(*args)))) == list(map(_bits, want))


def listed(out):
    """Return a result as a list of arrays."""
    return list(out) if isinstance(out, tuple) else [out]


def test_many_elements_against_numpy():
    """Functions of many elements give what NumPy gives in double precision, at every call."""
    x = np.random.default_rng(0).normal(size=(300, 250)).astype(np.float32)
    wide = x.astype(np.float64)
    a = asarray(x)
    for _ in range(4):
        np.testing.assert_allclose(jnp.std(a, axis=1), wide.std(1), rtol=3e-7)
        np.testing.assert_allclose(jnp.sum(a, axis=0), wide.sum(0), rtol=1e-6, atol=1e-5)
        np.testing.assert_array_equal(jnp.clip(a, -1, 1), np.clip(x, -1, 1))
        np.testing.assert_array_equal(jnp.where(a > 0, a, 0), np.where(x > 0, x, 0))
        np.testing.assert_array_equal(jnp.flip(a), x[::-1, ::-1])
        np.testing.assert_array_equal(
            a.ravel().at[:5].add(1), np.r_[x.ravel()[:5] + 1, x.ravel()[5:]]
        )
        np.testing.assert_array_equal(a * 2.5, x * np.float32(2.5))
        with pytest.raises(ValueError, match=r"ax[ie]s"):
            jnp.sum(a, axis=2)


def test_many_elements_where_nothing_may_be_compiled():
    """Under ``disable_jit`` and where results are looked at, operations run one by one."""
    x = asarray(np.full(MANY, -1.0, np.float32))
    with fnarray.disable_jit():
        assert float(jnp.std(x)) == 0
    with fnarray.debug_nans(True), pytest.raises(FloatingPointError, match="sqrt"):
        jnp.std(x) + jnp.sqrt(x)


def test_what_only_moves_large_arrays_is_not_copied():
    """A reshaped array lies in the memory of its operand, however often it is asked for."""
    x = asarray(np.zeros((300, 250), np.float32))
    for _ in range(4):
        assert np.shares_memory(jnp.squeeze(jnp.reshape(x, (1, -1)))._data, x._data)


# ---- what is called often ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_calls_give_the_same_bits_however_often(dtype):
    """What is compiled because it is called often gives the bits of NumPy's operations."""
    draw = np.random.default_rng(0).normal(size=24) * 50
    x = asarray(np.r_[draw, 0, 0].astype(dtype))
    y = asarray(np.r_[draw[::-1], 0, 1].astype(dtype))
    for f in (
        lambda: jnp.isclose(x, y), lambda: jnp.nan_to_num(x / y), lambda: jnp.gradient(x),
        lambda: jnp.hypot(x, y), lambda: fnarray.nn.hard_silu(x), lambda: jnp.resize(x, 31),
        lambda: jnp.heaviside(x, y), lambda: jnp.divmod(x, y), lambda: jnp.diag(x[:4], 1),
        lambda: fnarray.nn.hard_swish(x), lambda: fnarray.scipy.special.gammasgn(x),
        lambda: jnp.sinc(x), lambda: jnp.put_along_axis(x, LAST, y, 0, inplace=False),
        lambda: jnp.setxor1d(x, y, size=40),
    ):  # fmt: skip
        first = listed(f())
        assert all(
            np.array_equal(a, b, equal_nan=True)
            for _ in range(30)
            for a, b in zip(first, listed(f()), strict=True)
        )


CALLS = [
    lambda x, a: jnp.sum(x),
    lambda x, a: jnp.sum(a, 0),
    lambda x, a: jnp.sum(a, 1, keepdims=True),
    lambda x, a: jnp.mean(a),
    lambda x, a: jnp.std(x),
    lambda x, a: jnp.nanstd(a, 1),
    lambda x, a: jnp.cov(a),
    lambda x, a: jnp.corrcoef(a),
    lambda x, a: jnp.unwrap(x),
    lambda x, a: jnp.average(x, weights=x),
    lambda x, a: fnarray.nn.log_softmax(x),
    lambda x, a: fnarray.nn.silu(x),
    lambda x, a: fnarray.nn.glu(a, 0),
    lambda x, a: lax.cumsum(x) * x - x,
    lambda x, a: lax.cumsum(a, 1, reverse=True),
    lambda x, a: jnp.trapezoid(x),
    lambda x, a: fnarray.nn.standardize(a),
    lambda x, a: fnarray.scipy.special.logsumexp(a, 1),
    lambda x, a: fnarray.scipy.stats.sem(a),
    lambda x, a: fnarray.scipy.stats.norm.cdf(x, 0.5),
    lambda x, a: fnarray.scipy.linalg.expm(jnp.outer(a[:, 0], a[:, 0])),
    lambda x, a: jnp.polysub(x, a[1]),
    lambda x, a: fnarray.scipy.stats.uniform.cdf(x, 0, 2),
]


@pytest.mark.parametrize("n", [1, 5, 16, 27, 70])
def test_sums_and_what_numpy_rounds_give_the_same_bits_however_often(n, monkeypatch):
    """Sums are compiled in NumPy's order, and what is between NumPy's own functions is, too."""
    monkeypatch.setattr(stretches, "_VERY_OFTEN", 5)
    draw = np.random.default_rng(n).normal(size=(4, n)).astype(np.float32)
    special = np.array([np.nan, -0.0, np.inf, 1e-40, -np.inf] * n, np.float32)[:n]
    for values in (draw, np.where(draw > 1, np.nan, draw), np.stack([special] * 4), -0.0 * draw):
        x, a = asarray(values[0]), asarray(values.astype(np.float32))
        for f in CALLS:
            first = listed(f(x, a))
            for _ in range(24):
                last = listed(f(x, a))
            assert all(map(_alike, first, last))


def _alike(x, y):
    """Whether all is equal, signs of zeros too; what the bits of a NaN are says nothing."""
    nan = np.isnan(x)
    return np.array_equal(x, y, equal_nan=True) and np.array_equal(
        np.signbit(x) | nan, np.signbit(y) | nan
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 24])
def test_decompositions_give_the_same_bits_however_often(n):
    """What LAPACK alone computes is LAPACK's, to the bit, when it is compiled."""
    a = asarray(np.random.default_rng(n).normal(size=(n, n)).astype(np.float32))
    for f in (
        lambda: jnp.linalg.eigh(a), lambda: jnp.linalg.svd(a), lambda: lax.linalg.schur(a),
        lambda: jnp.linalg.eigvalsh(a), lambda: lax.linalg.svd(a, compute_uv=False),
        lambda: lax.linalg.tridiagonal(a), lambda: jnp.linalg.pinv(a), lambda: jnp.linalg.cond(a),
    ):  # fmt: skip
        first = fnarray.tree.leaves(f())
        assert all(
            _bits(x) == _bits(y)
            for _ in range(24)
            for x, y in zip(first, fnarray.tree.leaves(f()), strict=True)
        )


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [
        ((128, 128), (128, 128), "f4"), ((160, 130), (130, 170), "f4"), ((300, 300), (300,), "f4"),
        ((300,), (300, 300), "f4"), ((3, 128), (128, 3), "f4"), ((128, 128), (128, 128), "c8"),
        ((300, 300), (300, 20), "c8"), ((0, 5), (5, 0), "f4"), ((400, 0), (0, 400), "f4"),
        ((70000, 1), (1, 2), "f4"),
    ],
)  # fmt: skip
def test_products_give_the_same_bits_however_often(left, right, dtype):
    """Large ones are programs from the first call on, alone and among other operations."""
    draw = np.random.default_rng(0).normal
    a, b = (asarray(draw(size=shape).astype(dtype)) for shape in (left, right))
    for f in (
        lambda: a @ b, lambda: jnp.dot(a, b), lambda: jnp.tensordot(a, b, 1),
        lambda: jnp.matmul(a, b, preferred_element_type=dtype),
    ):  # fmt: skip
        first = f()
        assert all(_bits(first) == _bits(f()) for _ in range(24))
        want = np.tensordot(np.asarray(a, "c16"), np.asarray(b, "c16"), 1)
        np.testing.assert_allclose(first, want, 1e-4, 1e-3)


def test_numpy_operands_are_replayed_and_may_change():
    """An array of NumPy's is read anew by every call, and the call is replayed all the same."""
    f, runs = counted(lambda a, b: lax.mul(lax.add(a, b), b))
    face, given = replayed(f), np.array([1.0, 2.0, 3.0], np.float32)
    for k in range(6):
        given[0] = k
        assert np.array_equal(face(given, asarray(np.ones(3, np.float32))), given + 1)
    assert len(runs) == 3


def test_common_divisors_of_the_least_integers():
    """Every call gives one answer, for the number without a magnitude too."""
    least = np.iinfo(np.int32).min
    x, y = (asarray(np.array(v, np.int32)) for v in ([12, least, -9, 0], [18, 0, 6, 0]))
    for _ in range(4):
        assert np.array_equal(jnp.gcd(x, y)[np.array([0, 2, 3])], [6, 3, 0])
        assert int(jnp.gcd(x, y)[1]) == int(jnp.gcd(x[1:2], y[1:2])[0])
        assert np.array_equal(jnp.lcm(x[2:], y[2:]), [18, 0])
