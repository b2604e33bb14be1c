"""Pure functions as somebody would write them who trusts that local state is free."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import io
import itertools as it
import math
import operator as op
import sys
import types
import typing
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from math import pi, sqrt
from typing import Final, NamedTuple

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import debug, grad, jit, lax, tree, value_and_grad, vmap
from fnarray.purity import assume_pure

LEARNING_RATE = 0.1
SHAPE = (2, 3)
NAMES = ("w", "b")
MODE = "train"
NESTED = ((1, 2), ("a", None))
EMPTY = frozenset({"a", "b"})
momentum: Final = 0.9
decay: typing.Final[float] = 0.99
CONFIG = types.MappingProxyType({"scale": 2.0, "names": ("a", "b")})
FROZEN = np.arange(3.0)
FROZEN.flags.writeable = False
weights = jnp.ones(3)
bias = jnp.zeros(())
Point = namedtuple("Point", "x y")
origin = Point(0.0, 0.0)
infinity = math.inf
dtype = jnp.float32
sine = jnp.sin
halve = functools.partial(op.mul, 0.5)
quiet = contextlib.nullcontext


class Kind(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


kind = Kind.SUM


class Options(NamedTuple):
    rate: float = 0.5
    steps: int = 3


options = Options()


@dataclasses.dataclass(frozen=True)
class Layer:
    width: int = 3
    scale: float = 2.0
    inner: tuple = (1, 2)

    def __call__(self, x):
        return x * self.scale

    @property
    def doubled(self):
        return self.scale * 2

    @functools.cached_property
    def cached(self):
        return self.scale * 3

    @classmethod
    def make(cls, x):
        return cls(scale=2.0)(x)

    @staticmethod
    def plain(x):
        return x + 1


layer = Layer()
layers = (Layer(), Layer(scale=3.0))


class Model:
    RATE = 0.1
    NAMES = ("a", "b")

    def forward(self, params, x):
        return self.activate(params["w"] * x) * self.RATE

    def activate(self, x):
        return jnp.tanh(x)

    def build(self, x):
        parts = []
        for name in self.NAMES:
            parts.append((name, x))
        return dict(parts)


model = Model()

TRACED = {
    "g_method": (model.forward, ()),
    "g_build": (model.build, ()),
    "g_layer": (layer, ()),
    "g_partial": (functools.partial(model.build), ()),
    "g_lambda": (lambda x: x * LEARNING_RATE, ()),
    "g_numpy": (jnp.tanh, ()),
}


@jit
def g_constants(x):
    return x * LEARNING_RATE + momentum * decay + pi * sqrt(2) + len(NAMES) + math.e


@jit
def g_mapping(x):
    return x * CONFIG["scale"] + len(CONFIG["names"])


@jit
def g_frozen_array(x):
    return x + FROZEN


@jit
def g_arrays(x):
    return weights * x + bias


@jit
def g_namedtuple(x):
    return x + origin.x + options.rate * options.steps


@jit
def g_enum(x):
    return x.sum() if kind is Kind.SUM else x.mean()


@jit
def g_infinity(x):
    return jnp.where(x < math.inf, x, 0).astype(dtype)


@jit
def g_aliases(x):
    return sine(x) + halve(x)


@jit
def g_layers(x):
    for one in layers:
        x = one(x) + one.doubled + one.inner[0] + one.cached
    return Layer.make(x) + Layer.plain(x)


@jit
def g_replace(x):
    return dataclasses.replace(layer, scale=3.0)(x)


@jit
def g_list(xs):
    out = []
    for x in xs:
        out.append(x * 2)
    out.extend([1.0, 2.0])
    out[0] = out[1]
    out.sort(key=lambda v: 0)
    del out[-1]
    out += [3.0]
    return out


@jit
def g_dict(params):
    new = dict(params)
    new["z"] = 1.0
    new.update(y=2.0)
    fresh = {}
    fresh.setdefault("l", []).append(3.0)
    new.pop("z")
    for k, v in new.items():
        new[k] = v
    return new


@jit
def g_copy_argument(params):
    mine = params.copy()
    mine["w"] = 2.0
    other = {**params}
    other["w"] = 1.0
    third = list(params.values())
    third.append(1.0)
    return mine, other, third


@jit
def g_deepcopy(params):
    mine = copy.deepcopy(params)
    mine["layer"]["w"] = 1.0
    return mine


@jit
def g_tree_map(params, grads):
    return tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads)


@jit
def g_counter(x):
    counts = Counter(NAMES)
    counts["w"] += 1
    groups = defaultdict(list)
    groups["a"].append(x)
    order = OrderedDict()
    order["x"] = x
    order.move_to_end("x")
    window = deque(maxlen=2)
    window.append(x)
    window.popleft()
    return counts["w"] * x, groups["a"], order["x"]


@jit
def g_iterators(x):
    items = iter([x, x * 2, x * 3])
    first = next(items)
    rest = list(items)
    ticket = it.count()
    a, b = next(ticket), next(ticket)
    gen = (v * 2 for v in rest)
    return first + next(gen) + a + b + sum(gen)


@jit
def g_generator_function(x):
    def powers(y):
        for k in range(3):
            yield y**k

    return sum(powers(x)) + next(powers(x))


@jit
def g_itertools(xs):
    pairs = list(it.product(xs, repeat=2))
    grouped = [a * b for a, b in it.islice(pairs, 3)]
    return functools.reduce(op.add, it.chain(grouped, xs))


@jit
def g_zip(xs, ys):
    return [a * b for a, b in zip(xs, ys, strict=True)] + [i * v for i, v in enumerate(xs)]


@jit
def g_numpy_static(x):
    n = x.shape[0] if x.ndim else 1
    table = np.zeros((n, 2))
    table[0, 0] = 1.0
    table += 2
    np.add(table, 1, out=table)
    table.fill(3)
    np.fill_diagonal(table, 1.0)
    mask = np.triu(np.ones((n, n)), k=1)
    return x + table.sum() + mask.shape[0]


@jit
def g_rebinding(x, n=3):
    x += 1
    x *= 2
    for _ in range(n):
        x = x - 1
    x, y = x * 2, x
    if n > 2:
        y = -y
    return x + y


@jit
def g_at(x):
    return x.at[0].set(1.0).at[1:].add(2.0)


@jit
def g_match(x):
    match x.ndim:
        case 0:
            return x
        case 1 | 2:
            return x.sum()
        case n if n > 3:
            raise ValueError(f"too many axes: {n}")
    return x


@jit
def g_raise(x):
    if x.ndim > 5:
        raise ValueError(f"{x.shape} in {__name__}")
    assert x.ndim < 9, "too many"
    try:
        y = x["a"]
    except (TypeError, IndexError):
        y = x
    return y


@jit
def g_nonlocal(x):
    total, calls = 0.0, 0

    def add(v):
        nonlocal total, calls
        total = total + v
        calls += 1

    for _ in range(3):
        add(x)
    return total, calls


@jit
def g_closure_append(x):
    seen = []

    def visit(v):
        seen.append(v)
        return v * 2

    return [visit(x), visit(x)], seen


@jit
def g_recursion(x):
    def fact(n):
        return 1 if n == 0 else n * fact(n - 1)

    def walk(node, out):
        if isinstance(node, dict):
            for child in node.values():
                walk(child, out)
        else:
            out.append(node)
        return out

    return x * fact(4), walk({"a": {"b": x}}, [])


@jit
def g_memo(x):
    memo = {}

    def fib(n):
        if n not in memo:
            memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
        return memo[n]

    return x * fib(10)


def fill(out, key, value):
    out[key] = value
    return out


@jit
def g_helper_mutates_local(x):
    out = {}
    fill(out, "a", x)
    fill(out, "b", x * 2)
    rows = []
    collect(rows, x)
    return out, rows


def collect(rows, x):
    rows.append(x)
    rows.insert(0, x)


def normalise(x, eps=1e-6, axis=None):
    return x / (jnp.sqrt((x * x).sum(axis)) + eps)


@jit
def g_helpers(x):
    return normalise(x) + normalise(x, eps=LEARNING_RATE)


@jit
def g_class_inside(x):
    class Stack:
        def __init__(self):
            self.items = []
            self.size = 0

        def push(self, v):
            self.items.append(v)
            self.size += 1
            return self

        def __len__(self):
            return self.size

    return Stack().push(x).push(x * 2).items


class Accumulator:
    def __init__(self, start):
        self.total = start
        self.log = []

    def add(self, v):
        self.total = self.total + v
        self.log.append(v)
        return self

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, *exc):
        self.log.append("out")
        return False


@jit
def g_local_object(x):
    acc = Accumulator(0.0)
    acc.add(x).add(x)
    with acc as inside:
        inside.add(1.0)
    acc.extra = x
    setattr(acc, "more", x)
    return acc.total, acc.log[0], acc.extra


@jit
def g_context_manager(x):
    @contextlib.contextmanager
    def scope(value):
        stack.append(value)
        yield value * 2
        stack.pop()

    stack = []
    with scope(x) as y, quiet():
        return x + y


@jit
def g_warnings(x):
    warnings.warn("careful", stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("ignore", category=UserWarning)
    with np.errstate(divide="ignore"):
        scale = np.float32(1.0) / np.float32(2.0)
    return x * scale


@jit
def g_text(x):
    out = io.StringIO()
    out.write("a")
    print("local", file=out)
    label = f"{x.shape}-{MODE}".upper().replace("A", "B")
    return {label.strip(): x, out.getvalue(): x}


@jit
def g_seeded(x):
    rng = np.random.default_rng(42)
    noise = rng.normal(size=3)
    rng.shuffle(noise)
    return x + noise.sum()


@jit
def g_version(x):
    if sys.version_info >= (3, 11) and sys.maxsize > 2**32:
        return x * 2
    return x


@jit
def g_sets(x):
    for name in {"a", "b"} | EMPTY:
        if name in EMPTY:
            x = x + 1
    return x


@jit
def g_scan(xs):
    def body(carry, x):
        total, count = carry
        local = []
        local.append(x)
        return (total + local[0], count + 1), total

    return lax.scan(body, (0.0, 0), xs)


@jit
def g_loop_reads_local(params, x):
    table = {"k": x, "list": [x, x]}
    scale = params["w"]

    def body(i, c):
        return c + table["k"] * scale + params["b"] + table["list"][0]

    return lax.fori_loop(0, 3, body, x)


@jit
def g_grad_reads_batch(params, batch):
    def loss(p):
        predicted = p["w"] * batch["x"] + p["b"]
        return ((predicted - batch["y"]) ** 2).mean()

    value, g = value_and_grad(loss)(params)
    return {"loss": value, "grads": g}


@jit
def g_vmap(xs):
    scales = [1.0, 2.0]
    return [vmap(lambda v, s=s: v * s)(xs) for s in scales]


@jit
def g_late_but_called(x):
    for k in (1.0, 2.0):
        x = (lambda v: v * k)(x)
        x = lax.fori_loop(0, 2, lambda i, c: c + k, x)
    return x


@jit
def g_conds(x):
    best = x * 2
    return lax.cond(x > 0, lambda v: v + best, lambda v: v - best, x)


@jit
def g_while(x):
    limit = x + 10
    return lax.while_loop(lambda v: v < limit, lambda v: v * 2, x)


@jit
def g_walrus(xs):
    out = []
    if (n := len(xs)) > 1:
        out = [y for x in xs if (y := x * 2) is not None]
    return out, n


@jit
def g_debug(x):
    debug.print("x = {}", x)
    debug.callback(lambda v: print(v), x)
    return x


@assume_pure
def logged(x):
    print("called")
    return x


@jit
def g_assumed(x):
    return logged(x)


@jit
def g_sorted(xs):
    named = {"b": xs[0], "a": xs[1]}
    return [named[k] for k in sorted(named)] + list(reversed(xs))


@jit
def g_operator(x):
    table = [1, 2, 3]
    op.setitem(table, 0, 5)
    get = op.itemgetter(0)
    table = op.iadd(table, [4])
    return x * get(table) + op.attrgetter("ndim")(x)


@jit
def g_stack(tree_):
    stack, leaves = [tree_], []
    while stack:
        node = stack.pop()
        if isinstance(node, (list, tuple)):
            stack.extend(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
        else:
            leaves.append(node)
    return leaves


@jit
def g_star(*args, **kwargs):
    first, *rest = args
    rest.append(first)
    kwargs["extra"] = first
    return sum(rest), kwargs


@jit
def g_functools(x):
    @functools.lru_cache
    def square(n):
        return n * n

    add = functools.partial(lambda a, b: a + b, 1)
    return add(x) * square(3)


@jit
def g_decorated_inside(x):
    def twice(f):
        @functools.wraps(f)
        def wrapper(v):
            return f(f(v))

        return wrapper

    @twice
    def step(v):
        return v * 2

    return step(x)


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) * 2

    return wrapper


@jit
@doubled
def g_decorated(x):
    return x + 1


def make_closure():
    factor, offset = 2.0, jnp.ones(3)
    names = ("a", "b")

    def f(x):
        return {n: x * factor + offset for n in names}

    return f


def make_bound_late():
    fs = [lambda x, k=k: x * k for k in range(3)]
    return fs[1]


def make_factory():
    def outer(n):
        def inner(x):
            return x * n

        return inner

    return outer(3)


def make_jitted_closure():
    step = jit(lambda x: x * 2)

    def f(x):
        return step(x) + grad(lambda v: v * v)(1.0)

    return f


@jit
def g_argument_objects(state, x):
    if state is None:
        state = {}
    state = {**state, "n": x}
    return state


@jit
def g_collections(x):
    pair = collections.namedtuple("pair", "a b")  # noqa: PYI024
    p = pair(x, x)
    return p._replace(a=1.0)


@jit
def g_static_loops(x):
    n = sum(1 for _ in range(3))
    table = [[0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            table[i][j] = i * j
    flat = [v for row in table for v in row]
    return x * max(flat) + min(flat) + n + any(flat) + all(flat)


@jit
def g_global_function_table(x):
    table = {"sin": jnp.sin, "cos": jnp.cos}
    return table["sin"](x) + {"a": normalise}["a"](x)


@jit
def g_type(x):
    return x * len(type(x).__name__) + len(type(layer).__name__) + type(layer)()(x)


@jit
def g_conditional_local(x, flag=True):
    out = [] if flag else {}
    if isinstance(out, list):
        out.append(x)
    else:
        out["x"] = x
    return out


@fnarray.jit
def g_inner_jit(x):
    acc = []

    @jit
    def inner(y):
        local = [y]
        local.append(y)
        return local[0] + x

    acc.append(inner(x))
    return acc
