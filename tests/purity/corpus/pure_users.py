"""Programs as users write them, of which nothing can go wrong."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import logging
import math
import operator
import typing
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import NamedTuple

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, random, tree, vmap

logger = logging.getLogger(__name__)
ACT = {"relu": lambda x: jnp.maximum(x, 0), "tanh": jnp.tanh}
LAYERS = (16, 8, 1)
weights_np = np.linspace(0, 1, 5)
eps = 1e-6
dtype = jnp.float32


class Params(NamedTuple):
    w: typing.Any
    b: typing.Any


@dataclasses.dataclass(frozen=True)
class Config:
    lr: float = 0.1
    dims: tuple = (2, 3)
    act: typing.Callable = jnp.tanh

    @property
    def scale(self):
        return self.lr * 2

    def apply(self, x):
        return self.act(x) * self.lr


cfg = Config()


class Mode(enum.Enum):
    TRAIN = "train"
    EVAL = "eval"

    @property
    def factor(self):
        return 1.0 if self is Mode.TRAIN else 0.5


@jit
def p_mlp(params, x):
    *hidden, last = params
    for w, b in hidden:
        x = jnp.tanh(x @ w + b)
    w, b = last
    return x @ w + b


@jit
def p_adam(state, g):
    m, v, t = state
    t = t + 1
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g**2
    return (m, v, t), m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + eps)


@jit
def p_dict_build(batch):
    out = {}
    for k in sorted(batch):
        out.setdefault(k[0], []).append(batch[k] * 2)
    return {k: jnp.stack(v) for k, v in out.items()}


@jit
def p_default_dict(xs):
    groups = defaultdict(list)
    for i, x in enumerate(xs):
        groups[i % 2].append(x)
    return {k: sum(v) for k, v in groups.items()}


@jit
def p_deque(x):
    q = deque([x], maxlen=3)
    for i in range(4):
        q.append(q[-1] * i)
        q.rotate(1)
    return sum(q)


@jit
def p_counter(x):
    c = Counter("aab")
    c.update("b")
    return x * c["a"] + c.total()


@jit
def p_cfg(x):
    return cfg.apply(x) * cfg.scale * cfg.dims[0]


@jit
def p_mode(x):
    return x * Mode.TRAIN.factor if Mode("train") is Mode.TRAIN else x


@functools.partial(jit, static_argnames=("mode", "n"))
def p_static(x, mode="a", n=3):
    if mode not in {"a", "b"}:
        raise ValueError(f"unknown {mode!r}; one of {sorted({'a', 'b'})}")
    match mode:
        case "a":
            return x * n
        case _:
            return x / n


@jit
def p_replace(p: Params):
    return p._replace(w=p.w * 2)._asdict()


@jit
def p_dc_replace(x):
    return dataclasses.replace(cfg, lr=0.5).apply(x)


@jit
def p_try(x):
    try:
        return x @ x
    except TypeError as error:
        raise ValueError(f"bad shape {x.shape}") from error


@jit
def p_walrus(x):
    if (n := x.ndim) > 1:
        x = x.reshape(-1)
    return x * n


@jit
def p_itertools(x):
    return sum(a * b * x for a, b in itertools.product(range(2), repeat=2))


@jit
def p_accumulate(xs):
    return list(itertools.accumulate(xs, operator.mul))


@jit
def p_closure_counter(x):
    count = 0

    def inc(y):
        nonlocal count
        count += 1
        return y + count

    return inc(inc(x))


@jit
def p_class_inside(x):
    class Acc:
        def __init__(self):
            self.items = []

        def add(self, v):
            self.items.append(v)
            return self

        @property
        def total(self):
            return sum(self.items)

    return Acc().add(x).add(x * 2).total


@jit
def p_scan(xs):
    def body(c, x):
        tmp = [c, x]
        tmp.append(c + x)
        return tmp[-1], {"a": tmp[0]}

    return lax.scan(body, 0.0, xs)


@jit
def p_while(x):
    def cond(s):
        i, _ = s
        return i < 10

    return lax.while_loop(cond, lambda s: (s[0] + 1, s[1] * 2), (0, x))


@jit
def p_cond(x):
    def yes(o):
        local = {"v": o}
        local["v"] = local["v"] * 2
        return local["v"]

    return lax.cond(x.sum() > 0, yes, lambda o: o, x)


@jit
def p_tree(params):
    leaves, treedef = tree.flatten(params)
    leaves = [leaf * 2 for leaf in leaves]
    return tree.unflatten(treedef, leaves)


@jit
def p_recursion(x, n=3):
    return x if n == 0 else p_recursion.__wrapped__(x * 2, n - 1)


def compose(*fs):
    return functools.reduce(lambda f, g: lambda x: g(f(x)), fs)


pipeline = compose(jnp.sin, jnp.cos, jnp.tanh)


@jit
def p_compose(x):
    return pipeline(x)


def dense(n, act=jnp.tanh, **options):
    scale = options.pop("scale", 1.0)

    def init(key):
        return random.normal(key, (n, n)) * scale

    def apply(w, x):
        return act(x @ w)

    return init, apply


init, apply = dense(3, scale=0.1)


@jit
def p_dense(key, x):
    return apply(init(key), x)


@jit
def p_np_table(x):
    table = np.zeros((3, 3))
    for i in range(3):
        table[i, i] = i
    np.fill_diagonal(table, 2.0)
    return x @ table


@jit
def p_np_global(x):
    return x * weights_np


@jit
def p_errstate(x):
    with np.errstate(all="ignore"):
        c = np.log(0.0)
    with contextlib.suppress(KeyError):
        x = x * {"a": 1}["a"]
    return jnp.where(x > c, x, 0)


@jit
def p_warn(x):
    if x.ndim > 5:
        warnings.warn("many axes", stacklevel=2)
    return x


@jit
def p_sorted(xs):
    order = sorted(range(len(xs)), key=lambda i: -i)
    pairs = list(zip(xs, order, strict=True))
    pairs.sort(key=lambda p: p[1])
    return [p[0] for p in pairs]


@jit
def p_keys(key):
    keys = random.split(key, 3)
    out = []
    for k in keys:
        k1, k2 = random.split(k)
        out.append(random.normal(k1) + random.uniform(k2))
    return jnp.stack(out)


@jit
def p_del(x):
    d = {"a": x, "b": x * 2}
    del d["a"]
    e = d.pop("b")
    d |= {"c": e}
    return d


@jit
def p_text(x):
    name = "_".join(str(s) for s in x.shape)
    parts = name.split("_")
    parts.reverse()
    return x * len("".join(parts))


@jit
def p_setattr_local(x):
    ns = type("NS", (), {})()
    setattr(ns, "v", x)
    ns.w = ns.v * 2
    return getattr(ns, "w")


@jit
def p_generator(x):
    def gen(n):
        for i in range(n):
            yield x * i

    g = gen(4)
    first = next(g)
    return first + sum(g)


@jit
def p_copy(params):
    new = copy.copy(params)
    new["w"] = params["w"] * 2
    deep = copy.deepcopy(new)
    deep["b"] = 0.0
    return deep


@jit
def p_grad_inside(x):
    def loss(w):
        return jnp.sum(w * x)

    g = grad(loss)(x)
    return vmap(lambda a: a * 2)(g)


@jit
def p_dispatch(x):
    table = {"relu": jnp.abs, "tanh": jnp.tanh}
    return table["relu"](x) + max(table, key=len).__len__()


@jit
def p_ordered(x):
    d = OrderedDict()
    d["x"] = x
    d["y"] = x * 2
    d.move_to_end("x")
    return list(d.values())


@jit
def p_matrix(x):
    rows = [[0.0] * 3 for _ in range(3)]
    for i, j in itertools.product(range(3), range(3)):
        rows[i][j] = x * (i + j)
    return jnp.array(rows)


@jit
def p_sentinel(x, y=None):
    y = x if y is None else y
    return x + y


@jit
def p_star(*xs, **kw):
    return sum(xs) * math.prod(kw.values()) if kw else sum(xs)


@jit
def p_memo_local(x):
    memo = {}

    def fib(n):
        if n not in memo:
            memo[n] = x if n < 2 else fib(n - 1) + fib(n - 2)
        return memo[n]

    return fib(6)
