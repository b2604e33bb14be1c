"""Printed graphs: the text equals JAX's for the same program, character for character."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core as jcore

import fnarray
from fnarray.core.avals import ShapedArray
from fnarray.core.graph import ClosedGraph, Eqn, Graph, Literal, Var
from fnarray.core.pretty import Break, Group, Indent, Note, graph_text, hiding, layout
from fnarray.core.primitive import Missing, Primitive
from fnarray.core.source import Source

# --- from JAX's object to ours --------------------------------------------------------------------


def contraction(params):
    (lhs, rhs), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    shown = {k: v for k, v in params.items() if v is not None and k != "out_sharding"}
    pairs = ([*lhs], [*rhs]), ([*lhs_batch], [*rhs_batch])
    return shown | {"dimension_numbers": pairs}


def custom_jvp(params):
    name = params["call_jaxpr"].jaxpr.debug_name
    return hiding(num_consts=0)(params) | {"name": name}


SHOWN = {
    "broadcast_in_dim": hiding("shape", "sharding", broadcast_dimensions=()),
    "convert_element_type": hiding("sharding"),
    "mul": hiding(out_dtype=None),
    "dot_general": contraction,
    "jit": lambda params: {p: params[p] for p in ("name", "jaxpr")},
    "custom_jvp_call": custom_jvp,
    "custom_vjp_call": custom_jvp,
} | dict.fromkeys(
    ("exp", "log", "log1p", "tanh", "logistic", "sin", "cos", "tan", "sqrt", "rsqrt"),
    hiding(accuracy=None),
)


@functools.cache
def primitive(name):
    """Return a record that has no rules but that of printing."""
    slots = ("aval", "eval", "form", "jvp", "transpose", "batch")
    nothing = dict.fromkeys(slots, Missing("it is only printed"))
    return Primitive(name, **nothing, print_params=SHOWN.get(name))


class Converter:
    """JAX's jaxpr as our Graph: a Var per Var, a Graph per Jaxpr, params as they are."""

    def __init__(self):
        self.made = {}

    def aval(self, aval):
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type)

    def atom(self, atom):
        if isinstance(atom, jcore.Literal):
            return Literal(atom.val, self.aval(atom.aval))
        return self.made.setdefault(atom, Var(self.aval(atom.aval)))

    def atoms(self, atoms):
        return tuple(map(self.atom, atoms))

    def graph(self, jaxpr):
        if jaxpr not in self.made:
            self.made[jaxpr] = Graph(
                self.atoms(jaxpr.constvars),
                self.atoms(jaxpr.invars),
                tuple(map(self.eqn, jaxpr.eqns)),
                self.atoms(jaxpr.outvars),
                jaxpr.debug_info.func_name,
            )
        return self.made[jaxpr]

    def eqn(self, eqn):
        params = {key: self.param(value) for key, value in eqn.params.items()}
        # What a printed custom rule shows are the names of the functions behind these thunks.
        params.pop("out_trees", None)
        for ours, theirs in {
            "jvp": "jvp_jaxpr_fun",
            "fwd": "fwd_jaxpr_thunk",
            "bwd": "bwd",
        }.items():
            if theirs in params and eqn.primitive.name.startswith("custom_"):
                params[ours] = params.pop(theirs).debug_info.func_name
        return Eqn(
            primitive(eqn.primitive.name), self.atoms(eqn.invars), self.atoms(eqn.outvars), params
        )

    def param(self, value):
        if isinstance(value, jcore.Jaxpr):
            return self.graph(value)
        if isinstance(value, jcore.ClosedJaxpr):
            return ClosedGraph(self.graph(value.jaxpr), tuple(value.consts))
        if isinstance(value, tuple):
            make = getattr(type(value), "_make", tuple)  # a namedtuple stays one
            return make(map(self.param, value))
        return value


# --- the programs ---------------------------------------------------------------------------------

V = np.arange(4, dtype=np.float32)
M = np.arange(12, dtype=np.float32).reshape(3, 4)
I3 = np.array([2, 0, 1], np.int32)


@jax.jit
def both(a, b):
    return a + b, a * b


@jax.jit
def long(x):
    for _ in range(6):
        x = jnp.sin(x) * 2
    return x


@jax.custom_jvp
def cube(x):
    return x * x * x


@cube.defjvp
def _cube_jvp(xs, ts):
    return cube(xs[0]), 3 * xs[0] ** 2 * ts[0]


@jax.custom_vjp
def halved(x):
    return x / 2


halved.defvjp(lambda x: (halved(x), None), lambda _, ct: (ct,))


def many(n):
    def program(x):
        for _ in range(n):
            x = x + 1.0
        return x

    return program


def wide(*xs):
    return tuple(x + x for x in xs)


def names_that_collide(x):
    named = [("f", jnp.sin), ("f", jnp.cos), ("f1", jnp.tan), ("b", jnp.exp)]
    for name, fun in named:
        call = functools.partial(fun)
        call.__name__ = name
        call = jax.jit(call)
        x = call(call(x))
    return x


def softmax(x):
    e = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def mlp(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return x


def power(x, steps=4):
    return lax.fori_loop(0, steps, lambda i, c: c * x + i, x)


def double_while(x):
    inner = lambda c: lax.while_loop(lambda d: d < 3.0, lambda d: d + c, 0.0)  # noqa: E731
    return lax.while_loop(lambda c: c < x, lambda c: c + inner(c), 1.0)


def scan_with_captured(x):
    return lax.scan(lambda c, y: (c @ M.T @ M + V, y * c.sum()), x, V)


def drop_first_of_inner(x):
    @jax.jit
    def inner(y):
        s = jnp.sin(y)
        return s, s * 2.0

    return inner(x)[1]


PROGRAMS = {
    "one equation": (jnp.sin, 1.0),
    "two equations": (lambda x: jnp.sin(jnp.cos(x)), 1.0),
    "identity": (lambda x: x, V),
    "no outputs": (lambda x: (), V),
    "no inputs": (lambda: 3,),
    "no inputs and no outputs": (lambda: (),),
    "an output twice": (lambda x: (x, x), V),
    "literal outputs": (lambda x: (x, 1.0, np.inf, -np.inf, np.nan, True, 2, -3), V),
    "float literals": (lambda x: (x * 0.1, x + 1e20, x - 1e-7, x / 3.5e-30, x * -0.0), V),
    "weak scalars": (lambda x, n: (x * 3, n * 2.5, n + 1), 1.0, 2),
    "int literals": (lambda x: (x * 2147483647, x - 5, x // 7), np.int32(1)),
    "small ints": (lambda x: (x * 3, x << 2, ~x), np.arange(3, dtype=np.uint8)),
    "bfloat16": (lambda x: x * 1.5 + 1, jnp.ones(2, jnp.bfloat16)),
    "float16": (lambda x: x * 0.1, np.ones(2, np.float16)),
    "complex": (lambda x: (x * (1 + 2j), x + 1j, x.real), np.ones(2, np.complex64)),
    "booleans": (lambda x: (x & True, ~x, jnp.logical_or(x, False)), np.array([True])),
    "array constants": (lambda x: x @ M + V, np.ones(3, np.float32)),
    "constants of a held graph": (lambda x: jax.jit(lambda y: y + V)(x), V),
    "unused result": (lambda x: lax.top_k(x, 2)[0], V),
    "unused chain": (lambda x: (jnp.sin(jnp.cos(x)), x)[1], V),
    "unused in a jit": (jax.jit(lambda x: (jnp.sin(jnp.cos(x)), x)[1]), V),
    "jit": (jax.jit(lambda x: x + 1), V),
    "jit, one result unused": (lambda x, y: both(x, y)[0], V, V),
    "jit, a dropped result read within": (drop_first_of_inner, V),
    "jit, operands swapped": (lambda x, y: both(both(y, x)[1], 3.0), V, V),
    "jit, one operand twice": (lambda x: both(x, x), V),
    "jit of jit": (jax.jit(lambda x: jax.jit(jnp.sin)(x) + both(x, x)[1]), V),
    "jit shared": (lambda x: both(*both(x, x)), V),
    "jit too long to spell out": (long, V),
    "two shared of one name": (lambda x, y: (long(long(x)), long(y)), V, M),
    "jit of a lambda shared": ((lambda g: lambda x: g(g(x)))(jax.jit(lambda a: a + 1)), V),
    "shared, with names that collide": (names_that_collide, V),
    "jit returning its operand": (lambda x: jax.jit(lambda a: (a, a + 1, a))(x), V),
    "where": (lambda x: jnp.where(x > 0, x, 0), V),
    "clip": (lambda x: jnp.clip(x, 0, 1), V),
    "softmax": (softmax, M),
    "layers": (mlp, [(M.T, M[0, :3]), (M[:, :3], M[0, :3])], np.ones((5, 4), np.float32)),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x) * V)), V),
    "gradient of layers": (
        jax.grad(lambda p, x: mlp(p, x).sum()),
        [(M.T, M[0, :3])],
        np.ones((5, 4), np.float32),
    ),
    "hessian": (jax.hessian(lambda x: jnp.prod(jnp.sin(x))), V),
    "batched": (jax.vmap(lambda x, y: jnp.dot(x, y)), M, M),
    "cond": (lambda x: lax.cond(x > 0, lambda y: y + 1, jnp.sin, x), 1.0),
    "cond with captured": (lambda x, y: lax.cond(x > 0, lambda: y + V, lambda: y * x), 1.0, V),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x), 1, V),
    "branches of constants": (lambda x: lax.cond(x > 0, lambda: 1.0, lambda: 2.0), 1.0),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), 1.0, x), V),
    "scan reversed": (
        lambda x: lax.scan(lambda c, y: (c + y, None), 1.0, x, reverse=True, unroll=2),
        V,
    ),
    "scan with captured": (scan_with_captured, V),
    "gradient of scan": (jax.grad(lambda x: lax.scan(lambda c, y: (c * y, c), 1.0, x)[0]), V),
    "while": (lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x), 1.0),
    "while of several": (
        lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * x), (0, x)),
        V,
    ),
    "while of while": (double_while, 9.0),
    "fori with literal bounds": (power, V),
    "fori with traced bounds": (power, V, 3),
    "gradient of fori": (jax.grad(lambda x: power(x).sum()), V),
    "custom jvp": (lambda x: cube(x) + 1, V),
    "gradient of custom jvp": (jax.grad(cube), 1.0),
    "relu": (jax.nn.relu, V),
    "custom vjp": (lambda x: halved(x) * 2, V),
    "checkpoint": (lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x), V),
    "gradient of checkpoint": (jax.grad(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))), 1.0),
    "dtype params": (lambda x: (x.astype(jnp.int32), lax.iota(jnp.uint8, 3), x.argmax()), V),
    "broadcasts": (lambda x: (jnp.zeros((3, 4)), jnp.broadcast_to(x, (3, 4)), x[:, None]), V),
    "shapes": (lambda x: (x.T, x.reshape(-1), x[::2], x[:, ::-1], jnp.squeeze(x[:1])), M),
    "pad": (lambda x: lax.pad(x, 0.0, ((1, 2, 0),)), V),
    "gather and its enum": (lambda x, i: x[i], V, I3),
    "scatter and its body": (lambda x, i: x.at[i].add(2.0), V, I3),
    "dynamic slices": (lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)), V, 1),
    "reductions": (lambda x: (x.sum(), x.max(0), x.any(), x.prod(axis=(0, 1))), M),
    "reduce with a function": (lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * a, (0,)), V),
    "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"), V),
    "convolution": (lambda x: lax.conv(x, x, (1, 1), "SAME"), np.ones((1, 1, 3, 3), np.float32)),
    "matrix products": (lambda x: (x @ x.T, jnp.einsum("ij,kj->ik", x, x)), M),
    "sort and cumulate": (lambda x: (jnp.sort(x), jnp.cumsum(x), jnp.argsort(x)), V),
    "linear algebra": (lambda x: jnp.linalg.solve(x, x), np.eye(3, dtype=np.float32)),
    "named axis": (jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i"), V),
    "more than 26 variables": (many(60), V),
    "more than 26 inputs": (wide, *[V] * 30),
    "more than 702 variables": (many(800), 1.0),
    "a long row of scalars": (lambda *xs: sum(xs), *[1.0] * 100),
    "a name of Greek letters": (jax.jit(eval("lambda λ: λ + 1")), V),
}


@pytest.mark.parametrize("case", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("print_shapes", [True, False], ids=["shapes", "no shapes"])
def test_text_is_that_of_jax(case, print_shapes):
    """The text of a program is JAX's text of it."""
    program, *args = case
    jaxpr = jax.make_jaxpr(program)(*args).jaxpr
    graph = Converter().graph(jaxpr)
    want = jaxpr.pretty_print(print_shapes=print_shapes, use_color=False)
    assert graph_text(graph, print_shapes=print_shapes) == want


@pytest.mark.parametrize("width", [1, 30, 55, 120, 10**6])
def test_lines_break_where_jax_breaks_them(width):
    """At any width, lines end where JAX ends them."""
    program = jax.grad(lambda p, x: softmax(mlp(p, both(long(x), x)[0])).sum())
    jaxpr = jax.make_jaxpr(program)([(M.T, M[0, :3])], np.ones((5, 4), np.float32)).jaxpr
    want = jaxpr.pretty_print(use_color=False, width=width)
    assert graph_text(Converter().graph(jaxpr), width=width) == want


# --- params, notes, documents ---------------------------------------------------------------------

F32 = ShapedArray((), np.float32)


def one_equation(name="op", source=None, outvars=(), **params):
    rest = () if source is None else (source,)
    a = Var(F32)
    return Graph((), (a,), (Eqn(primitive(name), (a,), outvars, params, *rest),), outvars)


def test_equations_print_as_jax_prints_them():
    """Each by itself, its results named first; a weak number in as few digits as it was written."""

    def program(jax, np_):
        def f(x, y):
            turn = jax.lax.scan(lambda c, v: (c + v, c * 1e-3), 0.0, y)
            return turn, jax.jit(np_.tanh)(y), x > 1e-5, y * 0.1

        return f

    ours = fnarray.make_jaxpr(program(fnarray, fnarray.numpy))(1.0, np.ones(3, np.float32))
    theirs = jax.make_jaxpr(program(jax, jnp))(1.0, np.ones(3, np.float32))
    assert list(map(repr, ours.eqns)) == list(map(repr, theirs.eqns))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (np.dtype("float32"), "float32"),
        ((1, "a"), "(1, 'a')"),
        ((), "()"),
        (frozenset({"j", "i"}), "frozenset({'i', 'j'})"),
        (ShapedArray((2,), np.int32), "int32[2]"),
        (lambda: 0, "<function <lambda> at 0xXXXXXXXXXXXX>"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_params_print_as_str_without_addresses(value, text):
    """A param prints as its ``str``, sets in order and addresses blotted out."""
    assert graph_text(one_equation(p=value)) == f"{{ lambda ; a:f32[]. let op[p={text}] a in () }}"


def test_source_info_stands_in_one_column():
    """The user's lines stand beside the equations, and equations of unknown source have none."""
    b, c, d = Var(F32), Var(F32), Var(F32)
    sin, mul = primitive("sin"), primitive("mul")
    eqns = (
        Eqn(sin, (b,), (c,), {}, Source("f.py", 3, "f")),
        Eqn(mul, (c, b), (d,), {}, Source("f.py", 4, "f")),
        Eqn(sin, (d,), (Var(F32),), {}),
    )
    assert graph_text(Graph((), (b,), eqns, (d,)), source_info=True, width=40) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = sin a     # f.py:3 (f)\n"
        "    c:f32[] = mul b a   # f.py:4 (f)\n"
        "    _:f32[] = sin c\n"
        "  in (c,) }"
    )


def test_hiding_drops_params_always_or_at_a_value():
    """A rule made by ``hiding`` leaves out what it names, and the rest as it is."""
    rule = hiding("shape", axes=(), kind=None)
    assert rule({"shape": (2,), "axes": (), "kind": None}) == {}
    assert rule({"axes": (1,), "kind": 0, "n": None}) == {"axes": (1,), "kind": 0, "n": None}
    assert rule({"shape": (2,)}) == {}


def test_an_ill_formed_graph_prints():
    """A call with too few operands still has a text: errors about it show it."""
    a, out = Var(F32), Var(F32)
    callee = one_equation(outvars=(Var(F32),))
    eqn = Eqn(primitive("jit"), (), (out,), {"name": "f", "jaxpr": callee})
    assert "name=f" in graph_text(Graph((), (a,), (eqn,), (out,)))


def test_a_graph_held_along_many_paths_prints_fast():
    """Text and time grow with the number of graphs, not with the number of paths to them."""
    graph = one_equation(outvars=(Var(F32),))
    for _ in range(40):
        a, b, c = Var(F32), Var(F32), Var(F32)
        params = {"name": "f", "jaxpr": graph}
        jit = primitive("jit")
        graph = Graph((), (a,), (Eqn(jit, (a,), (b,), params), Eqn(jit, (b,), (c,), params)), (c,))
    assert graph_text(graph).count("let f") == 40


def test_groups_are_flat_where_they_fit():
    """A group breaks all its own breaks or none; a nested one decides for itself."""
    inner = Group(("[", Indent((Break(""), "a", Break(" "), "b")), Break(""), "]"))
    doc = Group(("x", Indent((Break(" "), inner, Note("why"))), Break("; "), "y"))
    assert layout(doc, 20) == "x [a b]; y # why"
    assert layout(doc, 8) == "x\n  [a b] # why\ny"
    assert layout(doc, 4) == "x\n  [\n    a\n    b\n  ]   # why\ny"


def _scoped(lib):
    def f(x):
        with lib.named_scope("outer"), lib.named_scope("inner"):
            y = lib.numpy.sin(x) * 2
        return lib.jit(lib.numpy.cos)(y) + 1

    one = lib.make_jaxpr(lib.named_scope("all")(f))(1.0)
    return one, lib.make_jaxpr(lib.vmap(f))(np.ones(3, np.float32))


def test_labels_are_shown_as_jax_shows_them():
    """``pretty_print(name_stack=True)`` puts the labels of scopes beside each equation."""
    for got, want in zip(_scoped(fnarray), _scoped(jax), strict=True):
        for options in ({"name_stack": True}, {"print_shapes": False}, {}):
            text = want.pretty_print(use_color=False, **options)
            assert got.pretty_print(use_color=False, **options) == text
            assert got.jaxpr.pretty_print(**options) == text
