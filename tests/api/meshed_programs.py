"""Programs on a mesh of four by two devices, for JAX and fnarray alike: ``fun(module) -> tree``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

A = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
W = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
V = np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4)
PAIRS = [(0, 1), (1, 0), (2, 3), (3, 2)]
#: By name: the types of the mesh's axes, and the program.
CASES: dict[str, tuple[str, Any]] = {}


def on(kind: str) -> Any:
    """Enter a program in the table; it runs with a mesh whose axes are of a type about it."""

    def declare(fun: Any) -> Any:
        CASES[fun.__name__] = kind, fun
        return fun

    return declare


def mesh_of(m: Any, kind: str) -> Any:
    """Return the mesh."""
    types = (getattr(m.sharding.AxisType, kind),) * 2
    return m.make_mesh((4, 2), ("x", "y"), axis_types=types)


def cut(m: Any, array: Any, *spec: Any) -> Any:
    """Return an array that is cut, on the mesh about the program."""
    return m.device_put(array, m.P(*spec))


# ---- types ---------------------------------------------------------------------------------------


@on("Explicit")
def elementwise(m: Any) -> Any:
    """Operands that are not cut, or less, follow; so do scalars and rows."""
    np_, x, y, row = m.numpy, cut(m, A, "x", "y"), cut(m, A, "x"), cut(m, A[0], "y")
    return [np_.sin(x), x + y, x * row, 2 * x - A, np_.where(x > 0.5, y, 0.0), x.astype(np.int32)]


@on("Explicit")
def folds(m: Any) -> Any:
    """What is folded away is cut no more."""
    x = cut(m, A, "x", "y")
    return [
        x.sum(0), x.mean(1), x.max(), x.var(1, keepdims=True), m.numpy.argmin(x, 0),
        m.nn.softmax(x, axis=1), m.nn.logsumexp(x, axis=0), (x > 0).any(1), x.prod(1),
    ]  # fmt: skip


@on("Explicit")
def shapes(m: Any) -> Any:
    """Axes are moved, split, merged, added and dropped with their cuts."""
    x, y = cut(m, A, "x", "y"), cut(m, A, "x")
    return [
        x.T, x[None], x[:, None], x.reshape(4, 2, 4), y.reshape(32), y.reshape(8, 2, 2), y.ravel(),
        m.numpy.moveaxis(x[None], 0, 2), m.numpy.broadcast_to(y, (3, 8, 4)), y[:, 1], y[:, 1:3],
        m.numpy.stack([y, y]), m.numpy.concatenate([x, x], 1), m.numpy.flip(x, 0),
        m.numpy.pad(y, ((0, 0), (1, 2))), *m.numpy.split(y, 2, 1), m.numpy.tile(y, (1, 2)),
    ]  # fmt: skip


@on("Explicit")
def along_an_axis(m: Any) -> Any:
    """Sorting, sums on the way and the like run along axes that are whole."""
    y = cut(m, A, "x")
    return [
        m.numpy.sort(-y, 1), m.numpy.cumsum(y, 1), m.lax.top_k(y, 2), m.numpy.argsort(-y, 1),
        m.lax.cumlogsumexp(y, 1), m.numpy.linalg.norm(y, axis=1),
    ]  # fmt: skip


@on("Explicit")
def products(m: Any) -> Any:
    """Rows and columns keep their cuts; what is ambiguous is said."""
    x, y, w = cut(m, A, "x", "y"), cut(m, A, "x"), cut(m, W, None, "y")
    batch = cut(m, np.stack([A[:4]] * 4), "x")
    np_, P = m.numpy, m.P
    return [
        y @ w, x @ W, np_.dot(x, cut(m, W, "y"), out_sharding=P("x")), batch @ batch,
        np_.einsum("ij,kj->ik", x, x, out_sharding=P("x", "y")), np_.outer(row_of(m), A[0]),
        np_.matmul(x, cut(m, W, "y"), out_sharding=P("y", None)), np_.tensordot(y, w, 1),
        m.lax.dot_general(y, w, (((1,), (0,)), ((), ()))), np_.vdot(A, A),
    ]  # fmt: skip


def row_of(m: Any) -> Any:
    return cut(m, V[:, 0], "x")


@on("Explicit")
def elements_by_number(m: Any) -> Any:
    """Places are looked up where arrays are whole; elsewhere it is said how the result is cut."""
    y, table, P = cut(m, A, "x"), cut(m, A, None, "y"), m.P
    at, ids = np.array([1, 0, 3, 3]), cut(m, np.array([1, 0, 3, 3]), "x")
    return [
        table[at], y.at[at].get(out_sharding=P("y")), m.numpy.asarray(A).at[ids].get(
            out_sharding=P("x", None)), y.at[:, 1].set(2.0), table.at[1].add(1.0),
        m.lax.dynamic_slice(y, (0, 1), (8, 2)), m.lax.dynamic_update_slice(y, y[:, :2] * 2, (0, 1)),
    ]  # fmt: skip


@on("Explicit")
def made(m: Any) -> Any:
    """Arrays are made where they are asked for, or where another one is."""
    np_, P, x = m.numpy, m.P, cut(m, A, "x", "y")
    key = m.random.key(0)
    return [
        np_.zeros((8, 4), out_sharding=P("x")), np_.arange(8, out_sharding=P("y")),
        np_.full((8,), 2.0, out_sharding=P("x")), np_.zeros_like(x), np_.ones_like(x, int),
        np_.full_like(x, 3.0), m.random.normal(key, (8, 4), out_sharding=P("x", "y")),
        m.random.uniform(key, (8,), out_sharding=P("x")),
        np_.reshape(A, (4, 8), out_sharding=P("y")),
    ]  # fmt: skip


@on("Explicit")
def cut_otherwise(m: Any) -> Any:
    """Trees, prefixes, several axes for one."""
    P, tree = m.P, {"a": A, "b": (A, W)}
    return [
        m.reshard(tree, P("x")), m.reshard(tree, {"a": P("y"), "b": P(None, "y")}),
        m.reshard(A, P(("x", "y"))), m.device_put(tree, {"a": P(), "b": P("x")}),
        m.jit(lambda a: m.reshard(a * 2, P("y")))(cut(m, A, "x")),
        m.lax.with_sharding_constraint(cut(m, A, "x"), P("x", None)),
    ]  # fmt: skip


@on("Explicit")
def compiled(m: Any) -> Any:
    """Types go in and out of compiled functions, nested ones too."""
    x, w = cut(m, A, "x", "y"), cut(m, W, None, "y")
    inner = m.jit(lambda a: m.numpy.tanh(a).sum(1))
    f = m.jit(lambda a, b: {"p": a @ b, "s": inner(a), "a": a, "n": m.numpy.arange(3)})
    return [f(cut(m, A, "x"), w), f(cut(m, A, "x"), w), m.jit(inner)(x)]


@on("Explicit")
def placed_by_jit(m: Any) -> Any:
    """``in_shardings`` and ``out_shardings``: trees, prefixes, None."""
    P = m.P
    f = partial(m.jit, lambda a, b: {"s": a["w"] + b, "p": (b, b.sum())})
    ins, outs = ({"w": P("x")}, None), {"s": P("y"), "p": None}
    mesh = mesh_of(m, "Explicit")
    named = m.NamedSharding(mesh, P(None, "x"))
    return [
        f(in_shardings=ins, out_shardings=outs)({"w": A}, A),
        m.jit(lambda a: a, in_shardings=named)(A),
        f(out_shardings=P())({"w": A}, A), m.jit(lambda a: a, out_shardings=named)(A),
        m.jit(lambda a, n: a * n, in_shardings=named, static_argnums=1)(cut(m, A, None, "x"), 3),
    ]  # fmt: skip


@on("Explicit")
def loops(m: Any) -> Any:
    """Carries keep their types; rows lose an axis, which must be whole."""
    y, lax = cut(m, A, "x"), m.lax
    zero = m.numpy.zeros(8, out_sharding=m.P("x"))
    return [
        lax.scan(lambda c, r: (c + r, c * r), zero, y.T),
        lax.fori_loop(0, 3, lambda i, a: a * 2, y),
        lax.while_loop(lambda a: a.sum() < 100, lambda a: a * 2, y), lax.map(m.numpy.sin, y.T),
        lax.cond(y.sum() > 0, lambda a: a + 1, lambda a: a * 2, y),
        lax.switch(1, [lambda a: a, lambda a: a.T.T * 3], y),
        lax.associative_scan(m.numpy.add, y.T),
    ]  # fmt: skip


@on("Explicit")
def mapped(m: Any) -> Any:
    """Rows of what is cut are rows, under vmap."""
    x, y = cut(m, A, "x", "y"), cut(m, A, "x")
    return [
        m.vmap(lambda r: r.sum())(y), m.vmap(lambda r: r @ W)(y), m.vmap(m.numpy.sin, 1, 1)(x),
        m.vmap(lambda r, s: r * s, (0, None))(y, W[:, 0]),
        m.jit(m.vmap(m.grad(lambda r: (r**2).sum())))(x),
    ]  # fmt: skip


@on("Explicit")
def gradients(m: Any) -> Any:
    """Cotangents are cut as what they are of."""
    x, w, y = cut(m, A, "x"), cut(m, W, None, "y"), cut(m, A, "x", "y")
    whole = m.numpy.asarray(W)
    loss = lambda w, a: (m.numpy.tanh(a @ w) ** 2).sum()  # noqa: E731
    return [
        m.grad(loss)(w, x), m.grad(loss, (0, 1))(whole, x), m.jit(m.grad(loss))(w, x),
        m.grad(lambda a: (a * a.sum(0)).sum())(y), m.grad(lambda b: (x + b).sum())(whole[:, 0]),
        m.jvp(lambda a: m.numpy.sin(a).sum(1), (y,), (y,)),
        m.vjp(lambda a: a.reshape(32), x)[1](m.numpy.ones(32, out_sharding=m.P("x"))),
        m.grad(lambda a: (m.reshard(a, m.P("y")) ** 2).sum())(x),
        m.grad(lambda a: m.numpy.dot(a, w.T, out_sharding=m.P("x")).sum())(
            cut(m, np.concatenate([A, A], 1), "x", "y")),
        m.grad(lambda a: (m.checkpoint(lambda b: m.numpy.sin(m.numpy.cos(b)))(a)).sum())(y),
    ]  # fmt: skip


@on("Explicit")
def own_derivatives(m: Any) -> Any:
    """Functions with derivatives of their own."""

    @m.custom_vjp
    def f(a):
        return m.numpy.sin(a)

    f.defvjp(lambda a: (f(a), a), lambda a, ct: (ct * m.numpy.cos(a) * 2,))

    @m.custom_jvp
    def g(a):
        return a**2

    g.defjvp(lambda primals, tangents: (g(*primals), 3 * tangents[0] * primals[0]))
    x = cut(m, A, "x", "y")
    return [m.grad(lambda a: f(a).sum())(x), m.jit(m.grad(lambda a: g(f(a)).sum()))(x), f(x), g(x)]


@on("Explicit")
def two_layers_in_steps(m: Any) -> Any:
    """A network trained on rows spread over ``x``, its weights over ``y``."""
    params = {"a": cut(m, W, None, "y"), "b": cut(m, V, "y", None), "c": m.numpy.zeros(4)}

    def loss(p, x, y):
        h = m.nn.relu(x @ p["a"])
        out = m.numpy.dot(h, p["b"], out_sharding=m.P("x", None)) + p["c"]
        return m.numpy.mean((out - y) ** 2)

    @m.jit
    def step(p, x, y):
        value, grads = m.value_and_grad(loss)(p, x, y)
        return m.tree_util.tree_map(lambda w, g: w - 0.01 * g, p, grads), value

    x, y = cut(m, A, "x"), cut(m, V / 2, "x")
    for _ in range(3):
        params, value = step(params, x, y)
    return params, value


@on("Explicit")
def weights_cut_and_gathered(m: Any) -> Any:
    """Weights, and what an optimizer keeps of them, are cut over all devices (FSDP)."""
    P = m.P
    weights = [cut(m, W, None, ("x", "y")), cut(m, V, ("x", "y"), None)]
    moments = m.tree_util.tree_map(m.numpy.zeros_like, weights)

    def loss(ws, x):
        for w in ws:
            x = m.numpy.tanh(x @ m.reshard(w, P()))
        return (x**2).mean()

    @m.jit
    def step(ws, ms, x):
        grads = m.grad(loss)(ws, x)
        ms = m.tree_util.tree_map(lambda k, g: 0.9 * k + g, ms, grads)
        return m.tree_util.tree_map(lambda w, k: w - 0.1 * k, ws, ms), ms

    for _ in range(2):
        weights, moments = step(weights, moments, cut(m, A, ("x", "y")))
    return weights, moments


@on("Explicit")
def attention(m: Any) -> Any:
    """Heads are spread over ``y``, sequences over ``x``."""
    np_, P = m.numpy, m.P
    x = cut(m, np.stack([A] * 4), "x", None, None)
    ws = [cut(m, np.stack([W[:, k : k + 3]] * 2, 1), None, "y", None) for k in range(3)]

    @m.jit
    def f(x, wq, wk, wv):
        q, k, v = (np_.einsum("bsd,dhe->bshe", x, w) for w in (wq, wk, wv))
        scores = m.nn.softmax(np_.einsum("bqhe,bkhe->bhqk", q, k) / 2.0)
        out = np_.einsum("bhqk,bkhe->bqhe", scores, v)
        return np_.einsum("bqhe,dhe->bqd", out, wq, out_sharding=P("x", None, None))

    return f(x, *ws), m.grad(lambda *a: f(*a).sum(), 1)(x, *ws)


@on("Explicit")
def layers_in_a_scan(m: Any) -> Any:
    """Weights of layers, one above the other, and the gradient through the loop."""
    ws = cut(m, np.stack([W[:, :4]] * 3), None, None, "y")

    def f(ws, x):
        def layer(h, w):
            return m.numpy.tanh(m.reshard(h @ w, m.P("x", None))), None

        return m.lax.scan(layer, x, ws)[0]

    x = cut(m, A, "x")
    return m.jit(f)(ws, x), m.jit(m.grad(lambda *a: (f(*a) ** 2).sum()))(ws, x)


@on("Explicit")
def images(m: Any) -> Any:
    """A convolution over a batch that is cut."""
    x = cut(m, np.stack([A[None]] * 4), "x")
    k = m.numpy.asarray(W[:2, :2])[None, None]
    f = lambda k, x: m.lax.conv(x, k, (1, 1), "SAME")  # noqa: E731
    return f(k, x), m.grad(lambda *a: (f(*a) ** 2).sum())(k, x)


@on("Explicit")
def regions(m: Any) -> Any:
    """Parts in which types do not say how arrays are cut."""
    auto, P = m.sharding.auto_axes, m.P
    x, y = cut(m, A, "x"), cut(m, A, "y")
    f = auto(lambda a, b: m.numpy.sin(a) + b, out_sharding=P("x"))
    g = auto(lambda a: a.reshape(2, 16), axes="x", out_sharding=P(None, "y"))
    return [
        f(x, y), m.jit(f)(x, y), g(cut(m, A, "x")), m.grad(lambda a: f(a, y).sum())(x),
        auto(lambda a: {"s": a.sum(0), "a": a})(x, out_sharding={"s": P("y"), "a": P("x")}),
    ]  # fmt: skip


@on("Explicit")
def said_of_types(m: Any) -> Any:
    """What is traced knows how it is cut."""
    seen = []

    def f(a, b):
        seen.extend([str(m.typeof(a)), str(m.typeof(a @ b)), str(m.typeof(a).sharding.spec)])
        return a @ b

    m.jit(f)(cut(m, A, "x"), cut(m, W, None, "y"))
    shape = m.eval_shape(f, cut(m, A, "x"), cut(m, W, None, "y"))
    struct = m.ShapeDtypeStruct((8, 4), np.float32, sharding=m.P("y"))
    made = m.eval_shape(lambda a: a * 2, struct)
    return {
        "text": [*sorted(set(seen)), str(shape.sharding.spec), str(made.sharding.spec)],
        "arrays": [],
    }


# ---- axes of which the compiler decides ----------------------------------------------------------


@on("Auto")
def followed(m: Any) -> Any:
    """Results are cut as their operands are."""
    x, y = cut(m, A, "x", "y"), cut(m, A, "x")
    return [
        m.numpy.sin(x), y + 1, y.T, x.sum(0), y.sum(1), y @ W, x[:, 0], m.jit(lambda a: a * 2)(x),
        m.jit(lambda a: (a, a.sum(0), a.T))(y), m.numpy.concatenate([y, y], 1), x.reshape(4, 2, 4),
        m.numpy.sort(y, 1), m.vmap(lambda r: r * 2)(y), m.grad(lambda a: (a**2).sum())(x),
    ]  # fmt: skip


@on("Auto")
def constrained(m: Any) -> Any:
    """Words of a program about its results, in compiled code and out of it."""
    wsc, P = m.lax.with_sharding_constraint, m.P
    f = m.jit(lambda a: wsc(m.numpy.sin(a), P("x")))
    g = m.jit(lambda a: {"a": wsc(a * 2, P("x", "y")) + 1, "b": wsc((a, a), P("y"))[0]})
    return [wsc(A, P("x")), f(A), f(cut(m, A, "y")), g(A), m.jit(m.grad(lambda a: f(a).sum()))(A)]


@on("Auto")
def placed_by_jit_of_auto(m: Any) -> Any:
    """The same, where types say nothing."""
    P, f = m.P, m.jit
    return [
        f(lambda a: a * 2, in_shardings=P("x"))(A), f(lambda a: a * 2, out_shardings=P("x"))(A),
        f(lambda a, b: a @ b, in_shardings=(P("x", None), P(None, "y")))(A, W),
        f(lambda a: {"a": a, "b": a.sum()}, out_shardings={"a": P("y"), "b": P()})(A),
    ]  # fmt: skip


@on("Auto")
def data_parallel(m: Any) -> Any:
    """Rows over devices, weights whole: the compiler brings gradients together."""

    @m.jit
    def step(w, x, y):
        return w - 0.1 * m.grad(lambda w: ((x @ w - y) ** 2).mean())(w)

    w = m.device_put(W[:, :4], m.P())
    for _ in range(3):
        w = step(w, cut(m, A, "x"), cut(m, V, "x"))
    return w


@on("Auto")
def typed_regions(m: Any) -> Any:
    """Parts in which types do say it."""
    f = m.sharding.explicit_axes(lambda a: m.numpy.sin(a).sum(1), in_sharding=m.P("x"))
    return [f(A), m.jit(f)(A)]


# ---- blocks --------------------------------------------------------------------------------------


def over(m: Any, f: Any, ins: Any, outs: Any, **options: Any) -> Any:
    """Return a function of blocks, on the mesh about the program."""
    return m.shard_map(f, in_specs=ins, out_specs=outs, **options)


@on("Auto")
def varying(m: Any) -> Any:
    """Types say along which axes values differ."""
    seen = []

    def f(a, b):
        both, mean = a + b, m.lax.pmean(a, "x")
        here = m.lax.axis_index("y")
        seen.extend(str(m.typeof(v)) for v in (a, b, both, mean, here, m.lax.psum(both, "x")))
        return both * here + mean

    P = m.P
    out = over(m, f, (P("x"), P(None, "y")), P("x", "y"))(A, np.concatenate([A[:2, :]] * 2, 1))
    return {"text": seen, "arrays": out}


@on("Auto")
def derivatives_in_blocks(m: Any) -> Any:
    """What is the same on all devices has the derivative of all that they do with it."""
    P, lax, w = m.P, m.lax, W[:, 0]

    def inside(loss, *names, **options):
        outs = P(*names)
        return over(m, lambda a, w: m.grad(loss, 1)(a, w), (P("x"), P()), outs, **options)(A, w)

    def scanned(a, w):
        start = lax.pcast(m.numpy.float32(0), "x", to="varying")
        return lax.scan(lambda c, r: (c + (r @ w) ** 2, None), start, a)[0]

    return [
        inside(lambda a, w: (a @ w).sum()), inside(lambda a, w: lax.psum((a @ w).sum(), "x")),
        inside(lambda a, w: lax.pmean(m.numpy.tanh(a @ w).sum(), "x")), inside(scanned),
        inside(lambda a, w: (a + w).sum() + (w**2).sum()),
        inside(lambda a, w: (m.nn.relu(a @ w) ** 2).sum()),
        inside(lambda a, w: m.checkpoint(lambda b: (m.numpy.sin(b @ w)).sum())(a)),
        inside(lambda a, w: (a @ w).sum(), "x", check_vma=False),
        inside(lambda a, w: lax.psum((a @ w).sum(), "x"), "x", check_vma=False),
        inside(lambda a, w: lax.all_gather(a @ w, "x").sum()),
        inside(lambda a, w: (lax.ppermute(a * w, "x", PAIRS) ** 2).sum()),
        inside(lambda a, w: lax.cond(lax.psum(a.sum(), "x") > 0, lambda: (a @ w).sum(),
                                     lambda: (a @ (2 * w)).sum())),
    ]  # fmt: skip


@on("Auto")
def derivatives_of_blocks(m: Any) -> Any:
    """Derivatives from outside, of results that vary and that do not."""
    P, lax, w = m.P, m.lax, W[:, 0]
    f = over(m, lambda a, w: lax.psum((m.numpy.sin(a) @ w).sum(), "x"), (P("x"), P()), P())
    g = over(m, lambda a, w: m.numpy.tanh(a * w) * lax.axis_index("y"), (P("x"), P()), P("x", "y"))
    h = over(m, lambda a, w: lax.all_gather(a @ w, "x", tiled=True), (P("x"), P()), P("x"))
    loss = lambda f: lambda a, w: (f(a, w) ** 2).sum()  # noqa: E731
    return [
        m.grad(loss(f), (0, 1))(A, w), m.grad(loss(g), (0, 1))(A, w), m.grad(loss(h), (0, 1))(A, w),
        m.jit(m.grad(loss(f), 1))(A, w), m.vmap(f, (None, 0))(A, W[:, :3].T),
        m.jvp(f, (A, w), (A, w)), m.jit(f)(A, w), m.hessian(lambda w: f(A, w) ** 2)(w),
    ]  # fmt: skip


@on("Auto")
def data_parallel_by_hand(m: Any) -> Any:
    """Each device has its rows; gradients are summed by their types, or by hand."""
    P, lax = m.P, m.lax

    def step(w, x, y):
        return w - 0.1 * m.grad(lambda w: lax.pmean(((x @ w - y) ** 2).mean(), "x"))(w)

    def by_hand(w, x, y):
        own = m.grad(lambda w: ((x @ w - y) ** 2).mean())(lax.pcast(w, "x", to="varying"))
        return w - 0.1 * lax.pmean(own, "x")

    def run(step):
        f = m.jit(over(m, step, (P(), P("x"), P("x")), P()))
        w = W[:, :4]
        for _ in range(3):
            w = f(w, A, V)
        return w

    return run(step), run(by_hand)


@on("Auto")
def weights_gathered_by_hand(m: Any) -> Any:
    """Devices keep a part of the weights, and gather them for each product."""
    P, lax = m.P, m.lax

    def loss(w, x):
        h = m.numpy.tanh(x @ lax.all_gather(w, "x", tiled=True))
        return lax.psum((h**2).sum(), "x")

    f = over(m, m.grad(loss), (P("x"), P("x")), P("x"))
    return f(W, A), m.jit(f)(W, A)


@on("Auto")
def in_a_ring(m: Any) -> Any:
    """A product of matrices whose rows go round."""
    P, lax = m.P, m.lax
    ring = [(k, (k + 1) % 4) for k in range(4)]

    def f(a, b):
        def turn(k, state):
            out, b = state
            at = (lax.axis_index("x") - k) % 4
            block = lax.dynamic_slice(a, (0, at * 2), (a.shape[0], 2))
            return out + block @ b, lax.ppermute(b, "x", ring)

        zeros = lax.pcast(m.numpy.zeros((a.shape[0], b.shape[1]), np.float32), "x", to="varying")
        return lax.fori_loop(0, 4, turn, (zeros, b))[0]

    return over(m, f, (P("x"), P("x")), P("x"))(np.concatenate([A, V], 1), V)


@on("Explicit")
def some_axes_by_hand(m: Any) -> Any:
    """Some axes are the function's own; along the others its arrays are typed, or whole."""
    P, lax, seen = m.P, m.lax, []

    def f(a):
        seen.append(str(m.typeof(a)))
        return lax.psum(a, "x") * 2, a

    x = cut(m, A, "x", "y")
    one = m.shard_map(f, in_specs=P("x"), out_specs=(P(), P("x")), axis_names={"x"})
    inferred = m.shard_map(lambda a: a * 2, out_specs=P("x", "y"))
    nested = m.shard_map(
        m.shard_map(lambda a: a * 2 + lax.axis_index("y"), in_specs=P(None, "y"),
                    out_specs=P(None, "y"), axis_names={"y"}),
        in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip
    smap = m.smap(lambda a: a - lax.pmean(a, "x"), in_axes=0, out_axes=0, axis_name="x")
    out = [one(x), m.jit(one)(x), inferred(x), nested(x), smap(x), m.jit(smap)(x)]
    return {"text": sorted(set(seen)), "arrays": out}
