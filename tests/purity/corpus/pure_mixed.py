"""Combinations that look suspicious and are not."""

import collections
import functools
import itertools
import math
import operator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import fnarray.numpy as jnp
from fnarray import jit, lax, nn, random
from jax import custom_jvp, grad, value_and_grad, vmap
from jax import tree_util as tree

B1, B2 = 0.9, 0.999
SIZES = (4, 8, 2)
print_ = functools.partial(operator.add, 1)


class AdamState(NamedTuple):
    mu: Any
    nu: Any
    count: Any


@jit
def adam(params, grads, state):
    mu = tree.tree_map(lambda m, g: B1 * m + (1 - B1) * g, state.mu, grads)
    nu = tree.tree_map(lambda v, g: B2 * v + (1 - B2) * g * g, state.nu, grads)
    count = state.count + 1
    scale = jnp.sqrt(1 - B2**count) / (1 - B1**count)
    new = tree.tree_map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, mu, nu)
    return new, AdamState(mu, nu, count)


@jit
def mlp(params, x):
    *hidden, last = params
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def mse(params, batch):
    x, y = batch
    return jnp.mean((mlp(params, x) - y) ** 2)


@jit
def train_step(params, batch, rate):
    loss, grads = value_and_grad(mse)(params, batch)
    return tree.tree_map(lambda p, g: p - rate * g, params, grads), loss


@jit
def init(key):
    params = []
    for n, m in zip(SIZES[:-1], SIZES[1:], strict=True):
        key, sub = random.split(key)
        params.append({"w": random.normal(sub, (n, m)) / math.sqrt(n), "b": jnp.zeros(m)})
    return params


@jit
def attention(q, k, v, mask=None):
    scores = jnp.einsum("qd,kd->qk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return nn.softmax(scores, axis=-1) @ v


@jit
def rnn(params, xs):
    def cell(h, x):
        h = jnp.tanh(x @ params["wx"] + h @ params["wh"])
        return h, h

    return lax.scan(cell, params["h0"], xs)


@jit
def newton(x0):
    def f(x):
        return x**2 - 2.0

    def step(i, x):
        return x - f(x) / grad(f)(x)

    return lax.fori_loop(0, 10, step, x0)


@jit
def euler(y, ts):
    def rhs(y, t):
        return -y * t

    out = [y]
    for t0, t1 in itertools.pairwise(range(4)):
        y = y + (t1 - t0) * rhs(y, t0)
        out.append(y)
    return jnp.stack(out)


@jit
def power_iteration(a):
    def cond(carry):
        _, _, i = carry
        return i < 10

    def body(carry):
        v, _, i = carry
        w = a @ v
        return w / jnp.linalg.norm(w), w, i + 1

    v = jnp.ones(a.shape[0])
    return lax.while_loop(cond, body, (v, v, 0))


@jit
def histogram(x):
    edges = np.linspace(0.0, 1.0, 5)
    counts = []
    for lo, hi in zip(edges[:-1], edges[1:], strict=True):
        counts.append(jnp.sum((x >= lo) & (x < hi)))
    return jnp.stack(counts)


@jit
def kalman(state, z):
    mean, cov = state
    gain = cov / (cov + 1.0)
    mean = mean + gain * (z - mean)
    cov = (1 - gain) * cov
    return mean, cov


@jit
def pairwise(xs, ys):
    return vmap(lambda x: vmap(lambda y: jnp.sum((x - y) ** 2))(ys))(xs)


@jit
def group(items):
    groups = collections.defaultdict(list)
    order = []
    for name, value in items.items():
        head = name.partition("/")[0]
        if head not in groups:
            order.append(head)
        groups[head].append(value)
    return {name: sum(groups[name]) for name in order}


@jit
def flatten(tree_):
    leaves = []

    def visit(node, path=()):
        if isinstance(node, dict):
            for k in sorted(node):
                visit(node[k], (*path, k))
        else:
            leaves.append((path, node))

    visit(tree_)
    return dict(leaves)


@jit
def merge(a, b):
    out = {**a}
    for k, v in b.items():
        out[k] = out[k] + v if k in out else v
    return out


@jit
def polynomial(coefficients, x):
    return functools.reduce(lambda acc, c: acc * x + c, coefficients)


@jit
def memoised(x):
    cache = {}

    def fib(n):
        if n < 2:
            return x
        if n not in cache:
            cache[n] = fib(n - 1) + fib(n - 2)
        return cache[n]

    return fib(8)


@jit
def pipeline(x, stages=(jnp.sin, jnp.cos)):
    for stage in stages:
        x = stage(x)
    return x


@dataclass(frozen=True)
class Linear:
    w: Any
    b: Any
    names: tuple = ()
    extra: Any = field(default=None)

    def __call__(self, x):
        return x @ self.w + self.b

    @classmethod
    def zeros(cls, n, m):
        return cls(jnp.zeros((n, m)), jnp.zeros(m))

    @functools.cached_property
    def size(self):
        return self.w.size


linear = Linear.zeros(2, 3)


@jit
def m_linear(x):
    return linear(x) * linear.size


@jit
def m_construct(x):
    return Linear.zeros(2, 3)(x)


class Stack:
    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)

    def pop(self):
        return self._items.pop()

    def __len__(self):
        return len(self._items)


@jit
def m_stack(x):
    stack = Stack()
    stack.push(x)
    stack.push(x + 1)
    return stack.pop() + stack.pop() if len(stack) else x


class Graph:
    def __init__(self, nodes):
        self.nodes = {n: [] for n in nodes}

    def link(self, a, b):
        self.nodes[a].append(b)
        return self

    def order(self):
        seen, out = set(), []

        def visit(n):
            if n in seen:
                return
            seen.add(n)
            for m in self.nodes[n]:
                visit(m)
            out.append(n)

        for n in self.nodes:
            visit(n)
        return out


@jit
def m_graph(x):
    graph = Graph("abc").link("a", "b").link("b", "c")
    for _ in graph.order():
        x = x * 2
    return x


@custom_jvp
def safe_log(x):
    return jnp.log(x)


@jit
def m_custom(x):
    return safe_log(x) + 1


@jit
def m_while_iter(x):
    it = iter(range(3))
    while (i := next(it, None)) is not None:
        x = x + i
    return x


@jit
def m_double_nested(x):
    rows = [[] for _ in range(2)]
    for i, row in enumerate(rows):
        row.append(x * i)
        row[0] = row[0] + 1
    rows[0] += rows[1]
    return rows


@jit
def m_sets(x):
    dims = set(range(x.ndim)) | {0}
    dims -= {1}
    dims.update({2})
    return x, len(dims)


@jit
def m_bytes(x):
    raw = bytearray(b"ab")
    raw.append(1)
    raw[0] = 2
    return x * len(raw)


@jit
def m_numpy_static(x):
    index = np.arange(x.shape[0])
    index[0] = 1
    index = index[::-1].copy()
    index.sort()
    return x[index]


@jit
def m_string_building(x):
    parts = []
    for n in x.shape:
        parts.append(str(n))
    name = "x".join(parts)
    return x * len(name)


@jit
def m_lambda_table(x, kind="relu"):
    table = {"relu": lambda v: jnp.maximum(v, 0), "id": lambda v: v}
    return table[kind](x)


@jit
def m_scan_reads_outer(x, params):
    weights = [params["w"], params["w"] * 2]

    def body(c, v):
        return c + v * weights[0] + weights[1], c

    return lax.scan(body, 0.0, x)


@jit
def m_body_own_list(x):
    def body(i, v):
        parts = [v]
        parts.append(v + i)

        def add(w):
            parts.append(w)

        add(v)
        return sum(parts)

    return lax.fori_loop(0, 3, body, x)


@jit
def m_update_functional(opt, params, state, g):
    delta, state = opt.update(g, state)
    params = opt.apply(params, delta)
    return params, state


@jit
def m_at_update(cache, i, k):
    return cache.at[i].set(k), cache.at[:, i].add(k)


@jit
def m_dict_get_argument(params, name="w"):
    return params.get(name, 0.0) * params["b"] + len(params)


@jit
def m_pop_copy(params):
    rest = dict(params)
    w = rest.pop("w")
    rest["w2"] = w
    return rest


@jit
def m_sorted_items(params):
    return [v * 2 for _, v in sorted(params.items(), key=lambda kv: kv[0])]


@jit
def m_complex_default(x, axes=None, *, keepdims=False):
    axes = tuple(range(x.ndim)) if axes is None else axes
    return x.sum(axes, keepdims=keepdims)


@jit
def m_conditional_list(x, log=None):
    if log is None:
        log = []
    log = [*log, x]
    return log


@jit
def m_generator_helper(x):
    def windows(n):
        for i in range(n):
            yield x[i : i + 2]

    return [w.sum() for w in windows(3)]


@jit
def m_yield_from(x):
    def inner():
        yield x

    def outer():
        yield from inner()
        yield x + 1

    return list(outer())


@jit
def m_exception_flow(x):
    for n in (3, 2, 1):
        try:
            return x.reshape(n, -1)
        except (TypeError, ValueError):
            continue
    raise RuntimeError(f"cannot split {x.shape}")


@jit
def m_local_constant(x):
    rate = 0.1
    shape = (2, 3)
    for _ in range(3):
        rate *= 0.5
    return jnp.reshape(x, shape) * rate


@jit
def m_inner_default(x):
    rate = 0.5

    def scale(v, rate=rate):
        return v * rate

    return scale(x)


@jit
def m_partial_local(x):
    out = []
    emit = functools.partial(out.append)
    emit(x)
    return out


@jit
def m_compose(x):
    def compose(*fs):
        return functools.reduce(lambda f, g: lambda v: g(f(v)), fs)

    return compose(jnp.sin, lambda v: v + 1, jnp.cos)(x)


def make_adam_closure():
    lr = 0.1
    w = jnp.ones(3)

    def loss(p, x):
        return jnp.sum(p * w * x) * lr

    @jit
    def step(p, x):
        return p - lr * grad(loss)(p, x)

    return step


def make_factory():
    def make(n):
        def layer(x):
            return x * n

        return layer

    return jit(make(3))


def make_loop_immediate():
    results = None
    for k in (1.0, 2.0):
        results = jit(lambda x, k=k: x * k)
    return results
