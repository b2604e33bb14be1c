"""Partial sums as types: what devices have, and add up when it is asked for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import P, lax
from fnarray.errors import ShardingTypeError
from fnarray.runtime.device import devices
from fnarray.sharding import AxisType, NamedSharding, reshard, set_mesh

U, R = P(unreduced={"x"}), P(reduced={"x"})
A = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
B = np.cos(np.arange(8, dtype=np.float32)).reshape(4, 2)
W = np.sin(np.arange(12, dtype=np.float32)).reshape(4, 3)
X = np.cos(np.arange(16, dtype=np.float32)).reshape(4, 4)


@pytest.fixture(autouse=True)
def mesh():
    """Set a mesh of two devices along x, and two along y."""
    if len(devices()) < 4:
        fnarray.config.update("num_cpu_devices", 8)
    grid = fnarray.make_mesh((2, 2), ("x", "y"), devices=devices()[:4])
    with set_mesh(grid):
        yield grid


def typed(x) -> str:
    return fnarray.typeof(x).str_short(True)


def product():
    """Return A @ B, of which devices along x have partial sums."""
    a = fnarray.device_put(A, P(None, "x"))
    b = fnarray.device_put(B, P("x"))
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))


def test_a_product_over_a_cut_axis_may_be_left_in_partial_sums():
    """Its type says so, its parts add up to it, and resharding brings it together."""
    c = product()
    assert typed(c) == "f32[3,2]{U:x}"
    assert c.sharding.spec == P(None, None, unreduced={"x"})
    assert not c.is_fully_replicated
    parts = [s.data for s in c.addressable_shards if s.device in (devices()[0], devices()[2])]
    np.testing.assert_allclose(np.sum([np.asarray(p) for p in parts], 0), A @ B, rtol=1e-6)
    whole = reshard(c, P())
    assert typed(whole) == "f32[3,2]"
    np.testing.assert_allclose(whole, A @ B, rtol=1e-6)
    assert typed(fnarray.jit(lambda c: c + c)(c)) == "f32[3,2]{U:x}"
    assert pickle.loads(pickle.dumps(fnarray.typeof(c))) is fnarray.typeof(c)


def test_linear_operations_keep_partial_sums():
    """Sums, moves and choices are partial sums again; of both operands, or it is an error."""
    c = product()
    for f, times in (
        (lambda c: c + c, 2),
        (lambda c: c.T.T, 1),
        (lambda c: c[None][0], 1),
        (lambda c: jnp.concatenate([c, c])[:3], 1),
        (lambda c: jnp.where(jnp.asarray(A[:, :2] > 0.3), c, c), 1),
        (lambda c: c.astype(np.float16).astype(np.float32), 1),
        (lambda c: lax.scan(lambda k, _: (k + c, None), c, None, length=2)[0], 3),
        (lambda c: c * reshard(jnp.full((3, 2), 2.0), R), 2),
    ):
        for g in (f, fnarray.jit(f)):
            out = g(c)
            assert typed(out) == "f32[3,2]{U:x}"
            np.testing.assert_allclose(reshard(out, P()), times * (A @ B), rtol=2e-3)
    for f, error, text in (
        (lambda c: c + A[:, :2], ShardingTypeError, "need communication"),
        (lambda c: c * c, ShardingTypeError, "not linear"),
        (lambda c: c @ jnp.asarray(B.T[:, :3]), ShardingTypeError, "cannot be unreduced"),
        (lambda c: c * A[:, :2], ShardingTypeError, "should be reduced"),
        (jnp.cos, NotImplementedError, "unreduced rule for cos"),
        (lambda c: c.max(), NotImplementedError, "unreduced rule for reduce_max"),
    ):
        for g in (f, fnarray.jit(f)):
            with pytest.raises(error, match=text):
                g(c)


def test_what_is_reduced_computes_as_what_is_whole():
    """Types keep the word; operands must be reduced alike, and are not asked in products."""
    r = reshard(W, R)
    assert typed(r) == "f32[4,3]{R:x}"
    for f in (jnp.tanh, lambda r: r + r, lambda r: 2 * r - 1, lambda r: r.T.T):
        assert typed(f(r)) == "f32[4,3]{R:x}"
        np.testing.assert_allclose(f(r), f(W), rtol=1e-6)
    assert typed(r @ r.T) == "f32[4,4]"
    assert typed(fnarray.device_put(X, P("x")) @ r) == "f32[4@x,3]"
    with pytest.raises(ShardingTypeError, match="cannot be replicated"):
        r + jnp.asarray(W)
    with pytest.raises(ShardingTypeError, match="cannot be sharded"):
        r + fnarray.device_put(W, P("x"))
    with pytest.raises(ShardingTypeError, match="across the same mesh axes"):
        r + reshard(W, P(reduced={"y"}))


def test_cotangents_of_reduced_are_unreduced():
    """They are those of a program without the words, and the other way round too."""
    x, w = fnarray.device_put(X, P("x")), jnp.asarray(W)

    def loss(w, x):
        return ((x @ w) ** 2).sum()

    def cast(w, x):
        return loss(reshard(w, R), x)

    def fan_out(w, x):
        return (x @ w).sum() + jnp.sin(x @ w).sum()

    expected = fnarray.grad(loss)(w, x)
    for g in (fnarray.grad(loss), fnarray.jit(fnarray.grad(loss))):
        got = g(reshard(w, R), x)
        assert typed(got) == "f32[4,3]{U:x}"
        np.testing.assert_allclose(reshard(got, P()), expected, rtol=1e-5)
    text = str(fnarray.make_jaxpr(fnarray.grad(lambda w: fan_out(reshard(w, R), x)))(w))
    assert "{U:x} = add_any" in text
    assert text.rindex("reshard") > text.rindex("add_any")
    got = fnarray.grad(cast)(w, x)
    assert typed(got) == "f32[4,3]"
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    back = fnarray.grad(lambda c: (reshard(c, P()) ** 2).sum())(product())
    assert typed(back) == "f32[3,2]{R:x}"
    np.testing.assert_allclose(back, 2 * A @ B, rtol=1e-5)


def test_what_extensions_call_types_of_cotangents():
    """`to_ct_aval` exchanges the words; `float0` has none, and zeros that nothing reaches do."""
    import fnarray.extend.core

    r = fnarray.typeof(reshard(W, R))
    assert r.to_ct_aval().str_short(True) == "f32[4,3]{U:x}"
    assert r.update(dtype=np.int32).to_ct_aval().dtype == fnarray.dtypes.float0
    unused = fnarray.grad(lambda r: 0.0 * jnp.ones(()))(reshard(W, R))
    assert typed(unused) == "f32[4,3]{U:x}"


def test_gradients_are_added_up_over_turns_of_a_loop():
    """A carry of partial sums, gradients through a scan in the body, is brought together once."""
    w = jnp.stack([jnp.asarray(X) / 4] * 3)
    xs = fnarray.device_put(np.ones((5, 2, 4), np.float32), P(None, "x"))

    def loss(ws, batch):
        return (lax.scan(lambda x, w: (jnp.tanh(x @ w), None), batch, ws)[0] ** 2).sum()

    @fnarray.jit
    def step(ws, xs):
        def turn(total, batch):
            found = fnarray.grad(loss)(ws, batch)
            assert fnarray.typeof(found).sharding.spec.unreduced == {"x"}
            return total + found, None

        zeros = reshard(jnp.zeros_like(ws), U)
        return reshard(lax.scan(turn, zeros, xs)[0], P())

    expected = sum(fnarray.grad(loss)(w, jnp.ones((2, 4))) for _ in range(5))
    np.testing.assert_allclose(step(reshard(w, R), xs), expected, rtol=1e-5)


def mapped(f, ins, outs, **more):
    return fnarray.shard_map(f, in_specs=ins, out_specs=outs, **more)


def test_blocks_that_vary_are_cast_to_partial_sums():
    """What a program on devices leaves unreduced is summed where it is asked for."""
    a, b = fnarray.device_put(A, P(None, "x")), fnarray.device_put(B, P("x"))
    for f in (lambda a, b: lax.pcast(a @ b, "x", to="unreduced"), lambda a, b: a @ b):
        partial = mapped(f, (P(None, "x"), P("x")), U)
        c = partial(a, b)
        assert typed(c) == "f32[3,2]{U:x}"
        np.testing.assert_allclose(reshard(c, P()), A @ B, rtol=1e-6)

        def loss(a, b, partial=partial):
            return (reshard(partial(a, b), P()) ** 2).sum()

        for g in (fnarray.grad(loss, (0, 1)), fnarray.jit(fnarray.grad(loss, (0, 1)))):
            da, db = g(a, b)
            assert (typed(da), typed(db)) == ("f32[3,4@x]", "f32[4@x,2]")
            np.testing.assert_allclose(da, 2 * A @ B @ B.T, rtol=1e-5)
            np.testing.assert_allclose(db, 2 * A.T @ A @ B, rtol=1e-5)


@pytest.mark.parametrize("check_vma", [True, False])
def test_partial_sums_go_into_programs_on_devices(check_vma):
    """Blocks add up to what was given, whether or not types say it, forwards and backwards."""
    c = product()
    total = mapped(lambda c: lax.psum(c, "x") ** 2, U, P(), check_vma=check_vma)
    same = mapped(lambda c: c + c, U, U, check_vma=check_vma)
    np.testing.assert_allclose(total(c), (A @ B) ** 2, rtol=1e-5)
    assert typed(same(c)) == "f32[3,2]{U:x}"
    np.testing.assert_allclose(reshard(same(c), P()), 2 * A @ B, rtol=1e-5)
    found = fnarray.grad(lambda c: total(c).sum())(c)
    assert typed(found) == "f32[3,2]{R:x}"
    np.testing.assert_allclose(found, 2 * A @ B, rtol=1e-5)
    found = fnarray.jit(fnarray.grad(lambda c: (reshard(same(c), P()) ** 2).sum()))(c)
    np.testing.assert_allclose(found, 8 * A @ B, rtol=1e-5)
    with pytest.raises(ValueError, match="unreduced and reduced along the axes"):
        mapped(lambda c: c, P(), P())(c)


@pytest.mark.parametrize("check_vma", [True, False])
def test_weights_that_are_reduced_have_unreduced_gradients(check_vma):
    """Of a layer written for devices, they are those of the layer on the whole batch."""
    x, w = fnarray.device_put(X, P("x")), reshard(W, R)
    layer = mapped(lambda x, w: jnp.tanh(x @ w), (P("x"), R), P("x"), check_vma=check_vma)
    for g in (fnarray.grad(lambda w: (layer(x, w) ** 2).sum()),):
        for found in (g(w), fnarray.jit(g)(w)):
            assert typed(found) == "f32[4,3]{U:x}"
            y = np.tanh(X @ W)
            np.testing.assert_allclose(
                reshard(found, P()), X.T @ (2 * y * (1 - y**2)), rtol=1e-4, atol=1e-6
            )
    if check_vma:
        inside = mapped(lambda w: fnarray.grad(lambda r: (r**2).sum())(w), R, U)
        with pytest.raises(ValueError, match="reduced"):  # it is whole on each: no partial sum
            mapped(lambda w: w * 2, P(), U)(jnp.asarray(W))
        np.testing.assert_allclose(reshard(inside(w), P()), 2 * 2 * W, rtol=1e-5)


def test_casts_along_axes_of_devices():
    """Each is free, and undone by the one that costs: a sum over devices."""
    w, r, c = jnp.asarray(W), reshard(W, R), product()
    cast = mapped(lambda w: lax.pcast(w, "x", to="reduced") * 3, P(), R)
    assert typed(cast(w)) == "f32[4,3]{R:x}"
    found = fnarray.grad(lambda w: (reshard(cast(w), P()) ** 2).sum())(w)
    assert typed(found) == "f32[4,3]"
    np.testing.assert_allclose(found, 18 * W, rtol=1e-5)
    rows = mapped(lambda r: lax.pcast(r, "x", to="varying"), R, P("x"))
    np.testing.assert_array_equal(rows(r), np.concatenate([W, W]))
    scaled = mapped(lambda r: r * lax.axis_index("x"), R, P("x"))
    np.testing.assert_array_equal(scaled(r), np.concatenate([0 * W, W]))
    np.testing.assert_allclose(
        reshard(fnarray.grad(lambda r: (scaled(r) ** 2).sum())(r), P()), 2 * W, rtol=1e-5
    )
    for f, given, spec in (
        (lambda c: lax.pcast(c, "x", to="varying"), c, U),
        (lambda w: lax.pcast(w, "x", to="unreduced"), w, P()),
        (lambda r: lax.pcast(r, "x", to="reduced"), r, R),
        (lambda r: lax.psum(r, "x"), r, R),
        (lambda c: lax.all_gather(c, "x"), c, U),
        (lambda c: lax.pcast(c, "x", to="elsewhere"), c, U),
    ):
        with pytest.raises(ValueError, match=r"pcast|unreduced or reduced"):
            mapped(f, spec, P("x"))(given)


def test_gathered_and_scattered_sums():
    """A gather whose result is reduced, and scattered sums, are each other's transposes."""
    x = fnarray.device_put(X, P("x"))
    whole = mapped(lambda x: lax.all_gather(x, "x", tiled=True, to="reduced"), P("x"), R)
    assert typed(whole(x)) == "f32[4,4]{R:x}"
    np.testing.assert_array_equal(whole(x), X)
    found = fnarray.grad(lambda x: (reshard(whole(x), P()) ** 2).sum())(x)
    assert typed(found) == "f32[4@x,4]"
    np.testing.assert_allclose(found, 2 * X, rtol=1e-5)
    u = reshard(X, U)
    shared = mapped(lambda u: lax.psum_scatter(u, "x", tiled=True) ** 2, U, P("x"))
    np.testing.assert_allclose(shared(u), X**2, rtol=1e-5)
    found = fnarray.grad(lambda u: shared(u).sum())(u)
    assert typed(found) == "f32[4,4]{R:x}"
    np.testing.assert_allclose(found, 2 * X, rtol=1e-5)


def test_results_are_partial_sums_of_what_is_cut():
    """A product, or a sum, over an axis that is not cut leaves nothing to be summed."""
    with pytest.raises(ShardingTypeError, match="unreduced axes should be"):
        jnp.dot(jnp.asarray(W).T, jnp.asarray(W), out_sharding=U)
    assert typed(jnp.zeros(3, out_sharding=U)) == "f32[3]{U:x}"


def test_arrays_of_parts_that_are_partial_sums(mesh):
    """Parts count once for each device along their axes, and replicas not again."""
    where = NamedSharding(mesh, U)
    parts = [fnarray.device_put(X * (k + 1), d) for k, d in enumerate(mesh.devices.flat)]
    whole = fnarray.make_array_from_single_device_arrays((4, 4), where, parts)
    assert typed(whole) == "f32[4,4]{U:x}"
    np.testing.assert_allclose(reshard(whole, P()), X * (1 + 3), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="no index"):
        fnarray.make_array_from_callback((4, 4), where, lambda index: X[index])


def test_axes_of_partial_sums_are_explicit_axes_of_the_mesh(mesh):
    """Others are refused, as are programs on some of the axes."""
    for spec, text in ((P(unreduced={"z"}), "not found"), (P(reduced={"z"}), "not found")):
        with pytest.raises(ValueError, match=text):
            reshard(W, spec)
    auto = fnarray.make_mesh((2,), ("x",), (AxisType.Auto,), devices=devices()[:2])
    with pytest.raises(ValueError, match="of type `Explicit`"):
        NamedSharding(auto, U)
    assert P("y", unreduced={"x"}).to_ct_spec() == P("y", reduced={"x"})
    with pytest.raises(NotImplementedError, match="all axes of the mesh"):
        mapped(lambda r: r, R, R, axis_names={"x"})(reshard(W, R))
