"""Arrays said to be cut over devices, the mesh about a program, and arrays made of parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.config import scoped
from fnarray.memory import Space
from fnarray.runtime.device import devices
from fnarray.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
    auto_axes,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    reshard,
    set_mesh,
    use_abstract_mesh,
)

P = fnarray.P
X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def mesh():
    """Return a mesh of two devices."""
    if len(devices()) < 2:
        fnarray.config.update("num_cpu_devices", 8)
    return fnarray.make_mesh((2,), ("rows",), (AxisType.Auto,), devices=devices()[:2])


def test_the_mesh_about_a_program(mesh):
    """A mesh holds within `with`, nested, and from `set_mesh` on; specs name its axes."""
    assert get_mesh().empty
    assert get_abstract_mesh().empty
    with set_mesh(mesh) as entered:
        assert entered is mesh is get_mesh()
        assert get_abstract_mesh() == AbstractMesh((2,), ("rows",))
        with use_abstract_mesh(AbstractMesh((4,), ("columns",))):
            assert get_abstract_mesh().axis_names == ("columns",)
        put = fnarray.device_put(X, P("rows"))
        assert put.sharding == NamedSharding(mesh, P("rows"))
    assert get_mesh().empty
    with pytest.raises(ValueError, match="Enter one"):
        reshard(jnp.asarray(X), P("rows"))
    with pytest.raises(ValueError, match="expected a Mesh"):
        set_mesh(3)


def test_kinds_of_axes(mesh):
    """Meshes know who cuts along their axes, show it, and differ by it."""
    explicit = Mesh(mesh.devices, ("rows",), (AxisType.Explicit,))
    assert str(explicit) == "Mesh('rows': 2, axis_types=(Explicit,))"
    assert explicit != mesh
    assert mesh.axis_types == (AxisType.Auto,)
    with pytest.raises(ValueError, match="axis_types"):
        Mesh(mesh.devices, ("rows",), (AxisType.Auto, AxisType.Auto))
    with pytest.raises(ValueError, match="no mesh about the program"):
        auto_axes(lambda x: x + 1, out_sharding=P())(1)
    with set_mesh(explicit):
        assert auto_axes(lambda x: x + 1, out_sharding=P())(1) == 2


def test_results_are_where_they_are_asked_for(mesh):
    """jit's results, and constrained ones, have the sharding that was given."""
    rows = NamedSharding(mesh, P("rows"))
    double = fnarray.jit(lambda x: {"a": 2 * x, "b": x.sum()}, out_shardings={"a": rows, "b": None})
    out = double(X)
    assert out["a"].sharding == rows
    np.testing.assert_array_equal(out["a"], 2 * X)
    np.testing.assert_array_equal(out["a"].addressable_shards[1].data, 2 * X[2:])
    constrained = fnarray.jit(lambda x: fnarray.lax.with_sharding_constraint(x * 2, rows))
    np.testing.assert_array_equal(constrained(X), 2 * X)
    assert fnarray.lax.with_sharding_constraint(jnp.asarray(X), rows).sharding == rows


def test_nothing_is_no_result(mesh):
    """`None` among shardings stands for a tree of results, and among results for none."""
    rows = NamedSharding(mesh, P("rows"))

    def f(x):
        return None, 2 * x, {"a": None, "b": x.sum()}

    nothing, double, rest = fnarray.jit(f, out_shardings=(None, rows, None))(X)
    assert nothing is rest["a"] is None
    assert double.sharding == rows
    np.testing.assert_allclose(rest["b"], X.sum(), rtol=1e-6)


def test_what_a_mesh_says_of_its_devices(mesh):
    """A mesh without devices says the kind of those it had, and equals one without."""
    kind = "device_kind=cpu, num_cores=None, platform=cpu"
    bare, types = AbstractMesh((2,), ("rows",)), "axis_types=(Auto,)"
    assert str(mesh.abstract_mesh) == f"AbstractMesh('rows': 2, {types}, {kind})"
    assert repr(mesh.abstract_mesh.update(axis_names=("x",))) == (
        f"AbstractMesh('x': 2, {types}, {kind})"
    )
    assert repr(mesh.abstract_mesh.abstract_device) == f"AbstractDevice({kind})"
    assert repr(bare) == f"AbstractMesh('rows': 2, {types})"
    assert mesh.abstract_mesh == bare
    assert hash(mesh.abstract_mesh) == hash(bare)
    assert pickle.loads(pickle.dumps(mesh.abstract_mesh)).abstract_device.platform == "cpu"
    with set_mesh(mesh):
        assert kind in repr(get_abstract_mesh())


def test_arrays_of_parts(mesh):
    """A callback, the devices' arrays, or this process make an array."""
    rows = NamedSharding(mesh, P("rows"))
    asked = []

    def part(index):
        asked.append(index)
        return X[index]

    assert str(get_mesh()) == "Mesh()"
    made = fnarray.make_array_from_callback((4, 2), rows, part)
    assert made.sharding == rows
    assert len(asked) == 2
    np.testing.assert_array_equal(made, X)
    parts = [s.data for s in made.addressable_shards]
    again = fnarray.make_array_from_single_device_arrays((4, 2), rows, parts[::-1])
    np.testing.assert_array_equal(again, X)
    whole = NamedSharding(mesh, P())
    unlike = [fnarray.device_put(np.float32([k]), d) for k, d in enumerate(devices()[:2])]
    first = fnarray.make_array_from_single_device_arrays((1,), whole, unlike)
    np.testing.assert_array_equal(first, [0.0])  # of copies that differ, the first device's
    local = fnarray.make_array_from_process_local_data(rows, X, (4, 2))
    assert local.sharding == rows
    assert make_single_device_sharding(devices()[0]).device_set == {devices()[0]}
    with pytest.raises(ValueError, match="must have shape"):
        fnarray.make_array_from_callback((4, 2), rows, lambda index: np.zeros(3))
    with pytest.raises(ValueError, match="a part for each"):
        fnarray.make_array_from_single_device_arrays((4, 2), rows, parts[:1])
    with pytest.raises(ValueError, match="from distinct devices"):
        fnarray.make_array_from_single_device_arrays((4, 2), rows, parts[:1] * 2)
    with pytest.raises(ValueError, match="dtype=int32 must be that of the parts"):
        fnarray.make_array_from_callback((4, 2), rows, lambda index: X[index], "int32")


def test_memories_are_names(mesh):
    """Shardings, and arrays put there, keep the name of a kind of memory; there is one."""
    rows = NamedSharding(mesh, P("rows"))
    host = rows.with_memory_kind("pinned_host")
    assert (host.memory_kind, host == rows, host.is_equivalent_to(rows, 2)) == (
        "pinned_host",
        False,
        False,
    )
    there = fnarray.device_put(X, host)
    assert there.sharding == pickle.loads(pickle.dumps(host)) == host
    assert fnarray.device_put(there, rows).sharding == rows
    assert fnarray.device_put(there, Space.Device).sharding == rows
    np.testing.assert_array_equal(there + 1, X + 1)
    one = SingleDeviceSharding(devices()[1], memory_kind="pinned_host")
    assert fnarray.device_put(X, one).sharding.memory_kind == "pinned_host"
    with pytest.raises(ValueError, match="memory of kind 'drawer'"):
        NamedSharding(mesh, P("rows"), memory_kind="drawer")


def test_made_where_they_are_asked_for(mesh):
    """Every maker of arrays heeds ``device=``, and what types say of them is read."""
    rows = NamedSharding(mesh, P("rows"))
    makers = {
        "eye": lambda: jnp.eye(4, device=rows),
        "linspace": lambda: jnp.linspace(0, 1, 4, device=rows),
        "spacing": lambda: jnp.linspace(0, 1, 4, retstep=True, device=rows)[0],
        "empty_like": lambda: jnp.empty_like(X, device=rows),
        "astype": lambda: jnp.astype(X, int, device=rows),
        "asarray": lambda: jnp.asarray(X, device=rows),
    }
    assert {name: make().sharding for name, make in makers.items()} == dict.fromkeys(makers, rows)
    cut = fnarray.make_mesh((2,), ("rows",), devices=devices()[:2])
    with set_mesh(cut):
        struct = fnarray.eval_shape(lambda x: 2 * x, reshard(X, P("rows")))
        assert str(fnarray.typeof(struct)) == "float32[4@rows,2]"
    with pytest.raises(ValueError, match="set_mesh can only be used outside"):
        fnarray.jit(lambda x: set_mesh(cut) and x)(1)


# ---- what is said of arrays ----------------------------------------------------------------------


def test_specs_meshes_and_shardings_as_values():
    """Specs, meshes and shardings compare, print, and change as JAX's."""
    grid = Mesh(np.array(devices()[:1] * 2).reshape(2, 1), ("x", "y"))
    assert P(("x",)) == P("x") != P("x", None) != ("x", None)
    assert [repr(P()), repr(P("x")), repr(P("x", None))] == ["P()", "P('x',)", "P('x', None)"]
    assert P("x") + P("y") == P("x", "y")
    named = NamedSharding(grid, P("x"))
    assert named == NamedSharding(grid, P("x")) != NamedSharding(grid, P("x", None))
    assert named.is_equivalent_to(NamedSharding(grid, P("x", None)), 2)
    assert not named.is_equivalent_to(named.update(spec=P("y", "x")), 2)
    assert named.replicated_axes == {"y"}
    assert grid.abstract_mesh == AbstractMesh((2, 1), ("x", "y"))
    manual = grid.abstract_mesh.update_axis_types({"x": AxisType.Manual})
    assert (manual.manual_axes, manual.auto_axes) == (("x",), ("y",))
    with pytest.raises(ValueError, match="duplicate entries"):
        NamedSharding(grid, P("x", "x"))
    with pytest.raises(ValueError, match="of type `Explicit`"):
        NamedSharding(grid, P(unreduced={"x"}))


def test_words_of_partial_sums():
    """Specs hold them, compare, print and pickle by them, and refuse what contradicts itself."""
    said = P("x", unreduced={"y"})
    assert repr(said) == "P('x', unreduced={'y'})"
    assert repr(P(None, reduced={"b", "a"})) == "P(None, reduced={'a', 'b'})"
    assert said != P("x") == said.update(unreduced=frozenset())
    assert (said.unreduced, said.reduced, said.partitions) == ({"y"}, set(), ("x",))
    assert pickle.loads(pickle.dumps(said)) == said == P() + said
    assert said + P("z", unreduced={"w"}) == P("x", "z", unreduced={"y", "w"})
    for given, error, text in (
        ({"unreduced": {"x"}}, ValueError, "cannot overlap"),
        ({"unreduced": {"y"}, "reduced": {"y"}}, ValueError, "cannot overlap"),
        ({"unreduced": {None}}, ValueError, "cannot contain None"),
        ({"reduced": ["y"]}, TypeError, "must be a set of names"),
    ):
        with pytest.raises(error, match=text):
            P("x", **given)
    with pytest.raises(ValueError, match="dangerous"):
        tuple(said)


def test_arrays_on_one_device_stay_apart():
    """Results are where their operands are; those of two devices do not meet."""
    with scoped("num_cpu_devices", 4):
        one, other = (fnarray.device_put(X, d) for d in devices()[2:4])
        assert (one * 2).device == devices()[2]
        assert fnarray.jit(lambda a: a + 1)(one).device == devices()[2]
        assert one.committed
        assert not jnp.ones(3).committed
        for add in (lambda a, b: a + b, fnarray.jit(lambda a, b: a + b)):
            with pytest.raises(ValueError, match="incompatible devices"):
                add(one, other)


def test_each_signature_of_places_is_compiled_once(mesh):
    """Where arguments are is known to a compiled function, and not to others."""
    traced = []

    @fnarray.jit(effects="off")
    def double(x):
        traced.append(x.shape)
        return 2 * x

    rows, plain = NamedSharding(mesh, P("rows")), jnp.asarray(X)
    for _ in range(3):
        assert double(fnarray.device_put(X, rows)).sharding == rows
        assert double(plain).sharding.num_devices == 1
    assert len(traced) == 1  # along axes of type Auto types are the same
    assert double._cache_size() == 2


def test_pictures(mesh, capsys):
    """Which device has which part, as a picture; compiled programs tell it once."""
    cut = fnarray.device_put(X, NamedSharding(mesh, P("rows")))
    fnarray.debug.visualize_array_sharding(cut)
    assert capsys.readouterr().out.splitlines() == [
        "┌──────────┐",
        blank := "│          │", "│  CPU 0   │", blank, blank,
        "├──────────┤",
        blank, "│  CPU 1   │", blank, blank,
        "└──────────┘",
    ]  # fmt: skip
    # As wide beside their height as the array is; parts are no narrower than their text.
    fnarray.debug.visualize_sharding((8,), NamedSharding(mesh, P("rows")), scale=3)
    fnarray.debug.visualize_sharding((4, 2), NamedSharding(mesh, P(None, "rows")), min_width=1)
    assert capsys.readouterr().out.splitlines() == [
        "┌───────┬───────┐", "│ CPU 0 │ CPU 1 │", "└───────┴───────┘",
        "┌─────┬─────┐", *["│     │     │"] * 4, "│CPU 0│CPU 1│", *["│     │     │"] * 4,
        "└─────┴─────┘",
    ]  # fmt: skip
    told = []

    @fnarray.jit(effects="off")
    def f(x):
        fnarray.debug.inspect_array_sharding(x.T, callback=told.append)
        return x.sum()

    assert f(cut) == f(cut) == X.sum()
    assert told == [NamedSharding(mesh, P(None, "rows"))]
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        fnarray.debug.visualize_array_sharding(np.zeros((1, 1, 1)))


def test_what_is_compiled_knows_no_places(mesh):
    """Programs on a mesh have the text of those without one."""

    def f(x, w):
        return jnp.tanh(x @ w).sum(0)

    explicit = Mesh(mesh.devices, ("rows",), (AxisType.Explicit,))
    plain = fnarray.jit(f).lower(X, X.T).as_text()
    with set_mesh(explicit):
        cut = fnarray.device_put(X, P("rows"))
        lowered = fnarray.jit(f).lower(cut, jnp.asarray(X.T))
        assert "4@rows" in str(fnarray.make_jaxpr(f)(cut, X.T))
    assert lowered.as_text() == plain
