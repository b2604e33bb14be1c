"""Exported programs: what they compute, what they refuse, and that their bytes are data."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from collections import namedtuple
from hashlib import sha256

import jax
import numpy as np
import pytest
from jax import export as jax_export

import fnarray
from fnarray import export
from fnarray import numpy as jnp
from fnarray.errors import InconclusiveDimensionOperation

X = np.arange(6, dtype=np.float32)
X.flags.writeable = False


def _again(exported, **options):
    return export.deserialize(exported.serialize(**options))


def _both(f, *args):
    """Return the values of a program, as exported and as read back from its bytes."""
    exported = export.export(fnarray.jit(f))(*args)
    return exported.call(*args), _again(exported).call(*args)


def _loop(x):
    def turn(c, v):
        inner = fnarray.lax.cond(v > 2, lambda v: v * 2, lambda v: v - 1, v)
        return c + inner, fnarray.lax.fori_loop(0, 3, lambda i, a: a + inner, c)

    return fnarray.lax.scan(turn, jnp.float32(0), x)


PROGRAMS = {
    "elementwise": lambda x: {"s": jnp.sin(x) + 1, "n": (x.sum(), None)},
    "indexing": lambda x: x[jnp.array([3, 0])] + x.at[1].set(7.0)[::-2][:2],
    "loops": _loop,
    "linear algebra": lambda x: jnp.linalg.solve(jnp.diag(x + 1), x),
    "random": lambda x: x + fnarray.random.normal(fnarray.random.key(3), x.shape),
    "types": lambda x: (x.astype(jnp.bfloat16), x > 2, x.astype(int), x + 1j, x * jnp.inf),
    "captured": lambda x: x * jnp.asarray(X),
    "relu": lambda x: fnarray.nn.relu(x - 2) + fnarray.nn.logsumexp(x),
    "sort": lambda x: jnp.sort(-x),
    "fft": lambda x: jnp.fft.rfft(x),
    "vmap": lambda x: fnarray.vmap(lambda v: jnp.outer(x, x)[1] * v)(x),
    "grad": lambda x: fnarray.grad(lambda x: fnarray.nn.softplus(x).sum())(x),
    "nested": lambda x: fnarray.jit(lambda x: fnarray.checkpoint(jnp.sin)(x) * 2)(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_computes_what_was_exported(name):
    """A program gives what its function gives, and so does the one that is read back."""
    f = PROGRAMS[name]
    wanted = fnarray.jit(f)(X)
    for got in _both(f, X):
        assert fnarray.tree.structure(got) == fnarray.tree.structure(wanted)
        for g, w in zip(fnarray.tree.leaves(got), fnarray.tree.leaves(wanted), strict=True):
            assert (g.dtype, g.weak_type) == (w.dtype, w.weak_type)
            np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def test_says_what_it_takes_and_gives():
    """Structures, avals and names are those of the function, and survive."""
    f = fnarray.jit(lambda x, *, y: {"a": x + y, "b": [x.sum()]})
    exported = export.export(f)(X, y=2.0)
    for one in (exported, _again(exported)):
        assert one.fun_name == "<lambda>"
        assert one.platforms == ("cpu",)
        assert one.in_tree == fnarray.tree.structure(((0,), {"y": 0}))
        assert one.out_tree == fnarray.tree.structure({"a": 0, "b": [0]})
        assert (
            str(one.in_avals) == "(ShapedArray(float32[6]), ShapedArray(float32[], weak_type=True))"
        )
        assert [a.shape for a in one.out_avals] == [(6,), ()]
        assert one.calling_convention_version == export.maximum_supported_calling_convention_version
    assert exported.serialize() == _again(exported).serialize()


def test_another_process_reads_it(tmp_path):
    """Bytes are all that a process needs that never saw the function."""
    f = fnarray.jit(lambda x, key: _loop(x)[0] + fnarray.random.uniform(key))
    key = fnarray.random.key(0)
    exported = export.export(f)(X, key)
    path = tmp_path / "program"
    path.write_bytes(exported.serialize())
    code = (
        "import sys, fnarray, numpy as np; from fnarray import export\n"
        "p = export.deserialize(open(sys.argv[1], 'rb').read())\n"
        "print(repr(float(p.call(np.arange(6, dtype=np.float32), fnarray.random.key(0)))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == float(f(X, key))


def test_operations_that_a_process_has_not_used_yet(tmp_path):
    """A program reads back whose operations are of modules that nobody has imported there."""
    import fnarray.scipy.linalg
    import fnarray.scipy.special

    f = fnarray.jit(lambda x: fnarray.scipy.linalg.expm(x).sum() + fnarray.scipy.special.wofz(x[0]))
    x = np.eye(2, dtype=np.complex64)
    path = tmp_path / "program"
    path.write_bytes(export.export(f)(x).serialize())
    code = (
        "import sys, numpy as np; from fnarray import export\n"
        "p = export.deserialize(open(sys.argv[1], 'rb').read())\n"
        "print(p.call(np.eye(2, dtype=np.complex64)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(f(x).tolist())


# ---- symbolic sizes ------------------------------------------------------------------------------

SYMBOLIC = {
    "sum": ("b, 4", lambda np, x: (x.sum(0), x * 2, x.reshape(-1), x.shape[0] * x.mean())),
    "concatenate": ("b", lambda np, x: np.concatenate([x, x, x[:1]])),
    "arange": ("b", lambda np, x: np.arange(x.shape[0]) + x),
    "product": ("b, c", lambda np, x: (x @ x.T, x.T @ x, x.reshape(-1).sum())),
    "softmax": ("b, 3", lambda np, x: np.exp(x - x.max(1, keepdims=True)) / x.shape[1]),
    "slices": ("b", lambda np, x: (x[1:], x[::2], x[: x.shape[0] // 2], np.pad(x, 2))),
    "eye": ("b", lambda np, x: np.eye(x.shape[0]) + np.tri(x.shape[0]) * x),
    "cumulative": ("b, 2", lambda np, x: (np.cumsum(x, 0), np.sort(x, 0), np.argmax(x, 0))),
    "normalize": ("b, c", lambda np, x: (x - x.mean(0)) / (x.std(0) + 1)),
    "twice": ("2*b", lambda np, x: x.reshape(2, -1).sum(0)),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_one_program_for_all_sizes(name):
    """A program with symbolic sizes gives, at each, what JAX's function gives; 1 is a size."""
    spec, f = SYMBOLIC[name]
    shape = export.symbolic_shape(spec)
    exported = export.export(fnarray.jit(lambda x: f(jnp, x)))(
        fnarray.ShapeDtypeStruct(shape, np.float32)
    )
    like = jax_export.export(jax.jit(lambda x: f(jax.numpy, x)))(
        jax.ShapeDtypeStruct(jax_export.symbolic_shape(spec), np.float32)
    )
    assert str(exported.in_avals) == str(like.in_avals)
    got = fnarray.tree.leaves(exported.out_tree.unflatten([str(a) for a in exported.out_avals]))
    assert [g.replace(" ", "") for g in got] == [str(a).replace(" ", "") for a in like.out_avals]
    read = _again(exported)
    for b, c in ((1, 2), (2, 1), (3, 5), (8, 4), (200, 7)):
        sizes = tuple(export.symbolic_shape(str(d)) and _value(d, {"b": b, "c": c}) for d in shape)
        x = np.random.default_rng(b).normal(size=sizes).astype(np.float32)
        wanted = jax.tree.leaves(f(jax.numpy, jax.numpy.asarray(x)))
        for one in (exported, read):
            for g, w in zip(fnarray.tree.leaves(one.call(x)), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-5, atol=2e-5)


def _value(d, sizes):
    from fnarray.core.dims import value

    return value(d, sizes)


def test_symbolic_programs_are_transformed():
    """They are staged, differentiated and batched at the sizes of the call."""
    exported = export.export(fnarray.jit(lambda x: (fnarray.nn.relu(x) ** 2).sum()))(
        fnarray.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32)
    )
    x = X - 2.0
    wanted = 2 * np.maximum(x, 0)
    np.testing.assert_allclose(fnarray.grad(exported.call)(x), wanted)
    np.testing.assert_allclose(fnarray.jit(fnarray.grad(exported.call))(x), wanted)
    np.testing.assert_allclose(fnarray.grad(_again(exported, vjp_order=1).call)(x), wanted)
    rows = np.stack([x, x + 1])
    np.testing.assert_allclose(fnarray.vmap(exported.call)(rows), (np.maximum(rows, 0) ** 2).sum(1))


def _export(spec, f, **options):
    shape = export.symbolic_shape(spec, **options)
    return export.export(fnarray.jit(f))(fnarray.ShapeDtypeStruct(shape, np.float32))


def test_a_size_cannot_be_asked():
    """A function that does one thing or another by a symbolic size is refused."""
    with pytest.raises(InconclusiveDimensionOperation, match=r"'b' > '5'.*test_export"):
        _export("b", lambda x: x if x.shape[0] > 5 else x + 1)
    _export("b", lambda x: x if x.shape[0] > 5 else x + 1, constraints=["b >= 6"])
    with pytest.raises(InconclusiveDimensionOperation, match="depends on its symbolic sizes"):
        _export("b", lambda x: x if (x * 2).shape[0] % 2 else x + 1)
    with pytest.raises(InconclusiveDimensionOperation, match="depends on its symbolic sizes"):
        _export("b", lambda x: x + np.arange(x.shape[0], dtype=np.float32) ** 0.5)


def test_sizes_that_do_not_fit():
    """Each error says which size of which argument is wrong."""
    shape = export.symbolic_shape("b, c", constraints=["b >= 2"])
    f = fnarray.jit(lambda x, y: x @ y)
    exported = export.export(f)(
        fnarray.ShapeDtypeStruct(shape, np.float32),
        fnarray.ShapeDtypeStruct(shape[::-1], np.float32),
    )
    for one in (exported, _again(exported)):
        with pytest.raises(ValueError, match=r"args\[1\].shape\[0\] \(= 4\).*'c' \(= 3\)"):
            one.call(np.ones((2, 3), np.float32), np.ones((4, 2), np.float32))
        with pytest.raises(ValueError, match="b >= 2 does not hold"):
            one.call(np.ones((1, 3), np.float32), np.ones((3, 1), np.float32))
        with pytest.raises(ValueError, match="Rank mismatch"):
            one.call(X, X)
    other = export.symbolic_shape("b")
    with pytest.raises(ValueError, match="mixing of symbolic scopes"):
        export.export(f)(
            fnarray.ShapeDtypeStruct(shape, np.float32),
            fnarray.ShapeDtypeStruct((shape[1], *other), np.float32),
        )


def test_sizes_that_no_shape_tells_are_refused():
    """A size that stands in no shape but as a square is named when the function is exported."""
    for module, lib in ((export, fnarray), (jax_export, jax)):
        (a,) = module.symbolic_shape("a")
        with pytest.raises(ValueError, match=r"a\^2"):
            module.export(lib.jit(lambda x: x * 2))(lib.ShapeDtypeStruct((a * a,), np.float32))
    two = _export("2*b + 1, c + b", lambda x: x.sum(0))
    np.testing.assert_array_equal(two.call(np.ones((7, 4), np.float32)), np.full(4, 7.0))


def test_sizes_are_the_larger_and_smaller_of_others():
    """``max`` and ``min`` are read, and known if constraints tell; programs take no such array."""
    b, larger, half, rest = export.symbolic_shape("(b, max(b, 3), floordiv(b, 2), mod(b, 2))")
    assert divmod(b, 2) == (half, rest)
    assert [str(d) for d in export.symbolic_shape("max(c, 1), min(2*c, c), max(c, 2)")] == [
        "c",
        "c",
        "max(c, 2)",
    ]
    struct = fnarray.ShapeDtypeStruct((larger,), "float32")
    with pytest.raises(NotImplementedError, match=r"of size max\(b, 3\)"):
        export.export(fnarray.jit(jnp.sin))(struct)


EQUALITIES = (
    ("a, b, c, d", ("a * b == c + d",), "2*b*a, a*b*b, a*a*b, a*b + 3*a*b*c, a"),
    ("a, b, c", ("floordiv(a, b) == c",), "2*(a//b), a//b*b, a%b"),
    ("a, b", ("4*a == b",), "4*a, 8*a, 6*a, 2*a, 4*a*a"),
    ("a, b", ("mod(a, 2) == 0",), "a%2, (a+1)%2, a - a%2"),
    ("a, b", ("a*b == 6",), "a*b, 2*a*b"),
    ("a, b", ("a >= b + 8",), "a-b>=8, a>=9, 2*a>=2*b"),
)


@pytest.mark.parametrize(("names", "constraints", "asked"), EQUALITIES)
def test_what_constraints_say_is_equal_stands_for_it(names, constraints, asked):
    """Sizes print, and compare, as JAX's do under the same constraints."""
    found = []
    for module in (export, jax_export):
        sizes = module.symbolic_shape(names, constraints=constraints)
        env = dict(zip(names.split(", "), sizes, strict=True))
        found.append([str(eval(x, env)) for x in asked.split(", ")])
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="Invalid equality constraint"):
        export.symbolic_shape("a, b", constraints=["a + b == 3"])


def test_specs_of_arguments():
    """Stand-ins with symbolic sizes are made by one text, or a tree of them."""
    args = (np.ones((2, 3)), {"a": np.ones(2)})
    for specs in ("b, ...", ("b, _", "b")):
        found = export.symbolic_args_specs(args, specs)
        assert str(found[0].shape) == "(b, 3)"
        assert str(found[1]["a"].shape) == "(b,)"
        assert export.is_symbolic_dim(found[1]["a"].shape[0])


# ---- derivatives ---------------------------------------------------------------------------------


def test_rules_of_derivatives_are_kept_if_asked():
    """Functions with derivatives of their own need vjp_order; others never do."""
    f = fnarray.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (f(*p), 10.0 * t[0]))
    exported = export.export(fnarray.jit(lambda x: f(x).sum()))(X)
    assert fnarray.grad(exported.call)(X)[0] == 10.0
    assert fnarray.grad(_again(exported, vjp_order=1).call)(X)[0] == 10.0
    with pytest.raises(ValueError, match="vjp_order=1"):
        fnarray.grad(_again(exported).call)(X)
    assert [e.has_vjp() for e in (exported, _again(exported), _again(exported, vjp_order=1))] == [
        True, False, True,
    ]  # fmt: skip
    plain = _again(export.export(fnarray.jit(lambda x: jnp.sin(x).sum()))(X))
    np.testing.assert_allclose(fnarray.hessian(plain.call)(X), np.diag(-np.sin(X)), atol=1e-6)


def test_the_vjp_is_a_program():
    """It takes arguments and cotangents, as leaves, and gives cotangents."""
    exported = export.export(fnarray.jit(lambda x, n: x * n))(X, np.int32(3))
    back = _again(exported, vjp_order=1).vjp()
    ct, none = back.call(X, np.int32(3), np.ones(6, np.float32))
    np.testing.assert_array_equal(ct, np.full(6, 3))
    assert none.dtype == bool


# ---- bytes ---------------------------------------------------------------------------------------


def test_damaged_bytes_are_refused():
    """No change of a byte, cut, or other file is read as a program."""
    good = bytes(export.export(fnarray.jit(lambda x: jnp.sin(x)))(X).serialize())
    rng = np.random.default_rng(0)
    bad = [b"", b"abc", good[:-1], good[:40], good + b"x", b"\x80\x04" + good, good[20:]]
    bad += [
        good[:k] + bytes([good[k] ^ (1 << int(rng.integers(8)))]) + good[k + 1 :]
        for k in rng.integers(0, len(good), 60)
    ]
    for blob in bad:
        with pytest.raises(ValueError, match="deserialize: "):
            export.deserialize(blob)
    with pytest.raises(TypeError, match="expected bytes"):
        export.deserialize("text")


def _forged(change):
    """Return bytes with a true digest whose program was changed."""
    good = bytes(export.export(fnarray.jit(lambda x: jnp.sin(x)))(X).serialize())
    data = json.loads(zlib.decompress(good[52:]))
    change(data)
    head, body = good[:20], zlib.compress(json.dumps(data).encode())
    return head + sha256(head + body).digest() + body


def _eqn(data):
    return data["data"]["graph"]["eqns"][0]


FORGED = {
    "operation": lambda d: _eqn(d).__setitem__(0, "sine"),
    "class": lambda d: _eqn(d)[2].update(x=["value", "os", "system", "true"]),
    "function": lambda d: _eqn(d)[2].update(x=["value", "fnarray.api.jit", "jit", 1]),
    "kind": lambda d: _eqn(d)[2].update(x=["pickle", "gASVBAAA"]),
    "operand": lambda d: _eqn(d).__setitem__(1, [7]),
    "aval": lambda d: _eqn(d).__setitem__(3, [["aval", [5], "float32", False]]),
    "tree": lambda d: d.__setitem__("in_tree", ["node", "unknown", "", "*"]),
    "leaves": lambda d: d.__setitem__("out_tree", ["tuple"]),
    "missing": lambda d: d.pop("platforms"),
}


@pytest.mark.parametrize("name", FORGED)
def test_foreign_programs_are_refused(name):
    """What is no program of this package is an error when it is read; nothing in it runs."""
    with pytest.raises(ValueError, match="deserialize: "):
        export.deserialize(_forged(FORGED[name]))


def test_another_version_is_named():
    """Bytes of a version that is not read here say which it is."""
    good = bytes(export.export(fnarray.jit(jnp.sin))(X).serialize())
    with pytest.raises(ValueError, match="version 77, and this fnarray reads 1 to 1"):
        export.deserialize(good[:16] + struct.pack("<I", 77) + good[20:])


Point = namedtuple("Point", "a b")


class Box:
    """A node with metadata."""

    def __init__(self, a, tag):
        self.a, self.tag = a, tag


fnarray.tree_util.register_pytree_node(
    Box, lambda b: ((b.a,), b.tag), lambda tag, a: Box(a[0], tag)
)


def test_classes_are_written_as_registered():
    """Named tuples and classes in arguments and results need a name for the bytes."""
    f = fnarray.jit(lambda p, box: Point(p.a + box.a, Box(p.b, "out")))
    exported = export.export(f)(Point(1.0, 2.0), Box(3.0, "in"))
    assert exported.call(Point(1.0, 2.0), Box(3.0, "in")).a == 4.0
    with pytest.raises(ValueError, match="register_pytree_node_serialization"):
        exported.serialize()
    export.register_namedtuple_serialization(Point, serialized_name="tests.Point")
    export.register_pytree_node_serialization(
        Box,
        serialized_name="tests.Box",
        serialize_auxdata=str.encode,
        deserialize_auxdata=lambda b: b.decode(),
    )
    out = _again(exported).call(Point(1.0, 2.0), Box(3.0, "in"))
    assert (type(out), float(out.a), out.b.tag) == (Point, 4.0, "out")
    with pytest.raises(ValueError, match="structure"):
        _again(exported).call(Point(1.0, 2.0), Box(3.0, "other"))
    with pytest.raises(ValueError, match="Duplicate serialization registration"):
        export.register_namedtuple_serialization(Point, serialized_name="other")
    with pytest.raises(ValueError, match="no pytree node"):
        export.register_pytree_node_serialization(
            int, serialized_name="i", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )


def test_bad_input():
    """What cannot be exported, or called, says so."""
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(ValueError, match="unknown platform 'abacus'"):
        export.export(fnarray.jit(jnp.sin), platforms=["abacus"])
    exported = export.export(fnarray.jit(jnp.sin), platforms=["cuda"])(X)
    with pytest.raises(ValueError, match="exported for platforms"):
        exported.call(X)
    unchecked = [export.DisabledSafetyCheck.platform()]
    exported = export.export(fnarray.jit(jnp.sin), platforms=["tpu"], disabled_checks=unchecked)(X)
    np.testing.assert_allclose(_again(exported).call(X), np.sin(X), rtol=1e-6)
    exported = export.export(fnarray.jit(lambda x: fnarray.pure_callback(np.sin, x, x)))(X)
    np.testing.assert_allclose(exported.call(X), np.sin(X), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="callback"):
        exported.serialize()
    ref = fnarray.new_ref(1.0)
    with pytest.raises(NotImplementedError, match="takes Refs"):
        export.export(fnarray.jit(lambda: ref[...]))()
    exported = export.export(fnarray.jit(jnp.sin))(X)
    with pytest.raises(ValueError, match=r"Shape mismatch for args\[0\].shape\[0\]"):
        exported.call(X[:3])
    with pytest.raises(ValueError, match=r"Dtype mismatch for args\[0\]"):
        exported.call(X.astype(np.int32))
    with pytest.raises(ValueError, match="pytree structure"):
        exported.call(X, X)


def _places(lib, module, kind):
    """Return what a program says of the places that it was exported for."""
    names = lib.sharding
    mesh = names.AbstractMesh((4, 2), ("a", "b"), (getattr(names.AxisType, kind),) * 2)
    where = names.NamedSharding(mesh, names.PartitionSpec(None, "a"))
    like = lib.ShapeDtypeStruct((3, 32), np.float32, sharding=where)
    made = module.export(lib.jit(lambda x, y: (x * 2, y)))(like, np.float32(1))
    said = (made.in_shardings_jax(mesh), made.out_shardings_jax(mesh))
    specs = [[None if s is None else tuple(s.spec) for s in one] for one in said]
    return made, (made.nr_devices, specs[0], specs[1][1])


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_programs_say_for_which_places_they_are(kind):
    """Devices and specs are JAX's, also of a program that was read back."""
    made, said = _places(fnarray, export, kind)
    assert said == _places(jax, jax_export, kind)[1]
    again, mesh = _again(made), fnarray.sharding.AbstractMesh((4, 2), ("a", "b"))
    assert again.nr_devices == 8
    assert again.in_shardings_jax(mesh)[0].spec == fnarray.P(None, "a")
    plain = export.export(fnarray.jit(jnp.sin))(X)
    assert plain.nr_devices == 1
    with pytest.raises(AttributeError, match=r"in_shardings_hlo.*XLA's.*in_shardings_jax"):
        _ = plain.in_shardings_hlo
    assert not hasattr(plain, "mlir_module")
    assert not hasattr(plain, "nothing")


def _said_by_jit(lib, module):
    """Return what programs say of the places that ``jit`` was given."""
    names = lib.sharding
    mesh = names.Mesh(lib.devices(), ("a",))
    row, whole = (names.NamedSharding(mesh, names.PartitionSpec(*s)) for s in (("a",), ()))
    two = lambda x, y: (x * 2, {"b": y["c"]})  # noqa: E731
    x = lib.numpy.arange(8.0)
    programs = [
        (lib.jit(lambda x: x * 2, in_shardings=row), (x,)),
        (lib.jit(lambda x: x * 2, in_shardings=(whole,), out_shardings=row), (x,)),
        (lib.jit(two, in_shardings=(row, None)), (x, {"c": x})),
        (
            lib.jit(two, in_shardings=(row, {"c": whole}), out_shardings=(whole, {"b": row})),
            (x, {"c": x}),
        ),
        (lib.jit(lambda n, x: x * n, static_argnums=0, in_shardings=row), (2, x)),
        (lib.jit(lambda x: x * 2), (x,)),
    ]
    for fun, args in programs:
        made = module.export(fun)(*args)
        said = made.in_shardings_jax(mesh), made.out_shardings_jax(mesh)
        yield made, [[s and tuple(s.spec) for s in one] for one in said]


def test_programs_say_what_jit_was_given():
    """``jit(in_shardings=, out_shardings=)`` is said, also that nothing is cut, and kept."""
    wanted = [said for _, said in _said_by_jit(jax, jax_export)]
    mesh = fnarray.sharding.Mesh(fnarray.devices(), ("a",))
    for (made, said), want in zip(_said_by_jit(fnarray, export), wanted, strict=True):
        assert said == want
        again = [s and tuple(s.spec) for s in _again(made).in_shardings_jax(mesh)]
        assert again == want[0]


def test_arrays_on_a_mesh_without_devices_are_exported():
    """Stand-ins on a mesh without devices do: the program is that for arrays of their types."""
    mesh = fnarray.sharding.AbstractMesh((4,), ("a",))
    where = fnarray.sharding.NamedSharding(mesh, fnarray.sharding.PartitionSpec("a"))
    like = fnarray.ShapeDtypeStruct((32,), np.float32, sharding=where)
    found = export.export(fnarray.jit(lambda x: x[::-1] * 2))(like).call(np.arange(32.0))
    np.testing.assert_array_equal(found, 2 * np.arange(32, dtype=np.float32)[::-1])
