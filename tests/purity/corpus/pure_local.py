"""Functions with local state of every kind, and nothing else."""

import contextlib
import copy
import functools
import heapq
import io
import itertools
import operator
import sys
import warnings
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from numpy.random import PCG64, Generator, RandomState

import fnarray.numpy as jnp
from fnarray import jit, lax
from jax import grad, vmap


@jit
def p_list(x):
    out = []
    for i in range(3):
        out.append(x * i)
    return jnp.stack(out)


@jit
def p_list_ops(x):
    items = [x]
    items.extend([x + 1, x + 2])
    items.insert(0, x - 1)
    last = items.pop()
    items.reverse()
    items[0] = last
    items[1] += last
    del items[0]
    items += [last]
    return items


@jit
def p_dict(x):
    out = {}
    out["a"] = x
    out.update(b=x + 1)
    out.setdefault("c", x)
    out.pop("a")
    del out["b"]
    out |= {"d": x}
    return out


@jit
def p_set(x):
    seen = set()
    for axis in range(x.ndim):
        seen.add(axis % 2)
    seen.discard(0)
    return x * len(seen)


@jit
def p_set_iteration(x):
    for axis in {0, 1}:
        x = x + axis
    return x


@jit
def p_deque(x):
    window = deque(maxlen=3)
    for i in range(5):
        window.append(x * i)
        if len(window) > 2:
            window.popleft()
    return sum(window)


@jit
def p_counter(x):
    counts = Counter(x.shape)
    counts[1] += 1
    return x * counts[1]


@jit
def p_defaultdict(x):
    groups = defaultdict(list)
    for i in range(4):
        groups[i % 2].append(x * i)
    return dict(groups)


@jit
def p_heap(x):
    heap = []
    for size in x.shape:
        heapq.heappush(heap, size)
    return x * heapq.heappop(heap)


@jit
def p_numpy_local(x):
    mask = np.zeros((3, 3))
    mask[0, 1] = 1.0
    mask[2] += 2.0
    mask.fill(3.0)
    np.add(mask, 1.0, out=mask)
    np.fill_diagonal(mask, 0.0)
    return x * mask


@jit
def p_numpy_aug(x):
    w = np.arange(3)
    w += 1
    w *= 2
    return x * w


@jit
def p_iterator(x):
    it = iter([x, x + 1])
    first = next(it)
    for rest in it:
        first = first + rest
    return first


@jit
def p_generator(x):
    gen = (x * i for i in range(3))
    return next(gen) + sum(gen)


@jit
def p_inner_generator(x):
    def steps():
        for i in range(3):
            yield x * i

    return sum(steps())


@jit
def p_count(x):
    ticks = itertools.count()
    for _ in range(3):
        x = x + next(ticks)
    return x


@jit
def p_zip(x):
    pairs = zip([x, x], range(2), strict=True)
    return sum(a * b for a, b in pairs)


@jit
def p_chain(x):
    return sum(itertools.chain([x], [x + 1]))


@jit
def p_closure_append(x):
    out = []

    def emit(v):
        out.append(v)

    for i in range(3):
        emit(x * i)
    return out


@jit
def p_closure_nonlocal(x):
    total = 0.0

    def add(v):
        nonlocal total
        total = total + v

    for i in range(3):
        add(x * i)
    return total


def fill(out, x):
    out.append(x)
    out.append(x + 1)
    return out


@jit
def p_helper_list(x):
    return fill([], x)


def store(table, key, value):
    table[key] = value


@jit
def p_helper_dict(x):
    table = {}
    for i in range(3):
        store(table, i, x * i)
    return table


def normalise(buffer):
    buffer /= 2.0
    buffer[0] = 0.0


@jit
def p_helper_numpy(x):
    w = np.ones(3)
    normalise(w)
    return x * w


class Accumulator:
    def __init__(self):
        self.items = []
        self.total = 0.0

    def add(self, x):
        self.items.append(x)
        self.total = self.total + x
        return self

    @property
    def mean(self):
        return self.total / len(self.items)


@jit
def p_object(x):
    acc = Accumulator()
    acc.add(x)
    acc.add(x + 1).add(x + 2)
    acc.total += 1.0
    acc.extra = x
    return acc.total, acc.mean


@jit
def p_local_class(x):
    class Box:
        def __init__(self, v):
            self.v = v

        def bump(self):
            self.v = self.v + 1

    box = Box(x)
    box.bump()
    setattr(box, "w", x)
    return box.v


@dataclass
class Mutable:
    count: int = 0
    values: list = None


@jit
def p_local_dataclass(x):
    state = Mutable()
    state.count += 1
    state.values = [x]
    state.values.append(x)
    return x * state.count


@dataclass(frozen=True)
class Frozen:
    w: float = 1.0

    def apply(self, x):
        return x * self.w


@jit
def p_replace(x):
    f = Frozen()
    return replace(f, w=2.0).apply(x)


@jit
def p_comprehension(x):
    return [x * i for i in range(3)], {i: x for i in range(2)}, {i for i in range(2)}


@jit
def p_walrus(x):
    if (n := x.ndim) > 1:
        return x * n
    return x


@jit
def p_aug(x):
    x += 1
    x *= 2
    x -= 3
    return x


@jit
def p_at(x):
    x = x.at[0].set(1.0)
    x = x.at[1:].add(2.0)
    return x.at[-1].multiply(3.0)


@jit
def p_rebind_argument(params, g):
    params = {**params, "w": params["w"] - g}
    params["b"] = g
    return params


@jit
def p_copy_argument(params, g):
    new = dict(params)
    new["w"] = g
    new.update(b=g)
    return new


@jit
def p_copy_method(params, g):
    new = params.copy()
    new["w"] = g
    return new


@jit
def p_deepcopy(params, g):
    new = copy.deepcopy(params)
    new["head"]["w"] = g
    return new


@jit
def p_list_of_argument(batch, x):
    items = list(batch)
    items.append(x)
    return items


@jit
def p_try(x):
    try:
        y = x.reshape(3)
    except ValueError as error:
        raise TypeError(f"bad shape {x.shape}") from error
    return y


@jit
def p_raise(x):
    if x.ndim != 1:
        raise ValueError(f"need a vector, got {x.shape}")
    assert x.size > 0, f"empty: {x}"
    return x


@jit
def p_match(x):
    match x.shape:
        case ():
            return x
        case (n,):
            return x * n
        case (n, *rest):
            return x * n * len(rest)


@jit
def p_match_dict(params):
    match params:
        case {"w": w, **rest}:
            return w, rest
        case _:
            return params


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@jit
def p_recursion(x):
    return x * factorial(5)


@jit
def p_recursive_tree(tree):
    def walk(node):
        if isinstance(node, dict):
            return {k: walk(v) for k, v in node.items()}
        return node * 2

    return walk(tree)


@jit
def p_string_io(x):
    buffer = io.StringIO()
    buffer.write("shape ")
    print(x.shape, file=buffer)
    return x * len(buffer.getvalue())


@jit
def p_seeded(x):
    rng = np.random.default_rng(42)
    return x + rng.normal(size=3)


@jit
def p_seeded_state(x):
    rng = np.random.RandomState(seed=1)
    return x + rng.randn(3)


@jit
def p_warn(x):
    if x.ndim > 2:
        warnings.warn("slow for many dimensions", stacklevel=2)
    return x


@jit
def p_errstate(x):
    with np.errstate(divide="ignore"):
        w = np.log(np.arange(3))
    return x + w


@jit
def p_suppress(x):
    with contextlib.suppress(ValueError):
        x = x.reshape(2, 2)
    return x


@jit
def p_version(x):
    if sys.version_info >= (3, 11):
        return x
    return x + 1


@jit
def p_name(x):
    return x if __name__ else -x


@jit
def p_partial(x):
    add = partial(operator.add, 1.0)
    return add(x)


@jit
def p_reduce(x):
    return reduce(operator.mul, [x, x, x])


@jit
def p_map_lambda(x):
    return list(map(lambda v: v * 2, [x, x + 1]))


@jit
def p_sorted_key(x):
    return sorted(x.shape, key=lambda n: -n), x


@jit
def p_scan(x):
    def body(carry, v):
        out = []
        out.append(v)
        return carry + v, out[0]

    return lax.scan(body, 0.0, x)


@jit
def p_fori(x):
    scale = {"k": 2.0}
    layers = [1.0, 2.0]

    def body(i, acc):
        for w in layers:
            acc = acc + w * scale["k"]
        return acc

    return lax.fori_loop(0, 3, body, x)


@jit
def p_cond(x):
    bias = x + 1
    return lax.cond(x.ndim > 0, lambda v: v + bias, lambda v: v - bias, x)


@jit
def p_while(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))


@jit
def p_switch(i, x):
    branches = [lambda v: v, lambda v: v * 2]
    return lax.switch(i, branches, x)


@jit
def p_grad_local(params, x):
    batch = {"x": x}

    def loss(p):
        return jnp.sum(p["w"] * batch["x"])

    return grad(loss)(params)


@jit
def p_vmap(x):
    w = [1.0, 2.0]
    return vmap(lambda v: v * w[0])(x)


@jit
def p_nested_jit(x):
    @jit
    def inner(v):
        state = []
        state.append(v)
        return state[0]

    return inner(x)


@jit
def p_args(*xs):
    out = []
    for x in xs:
        out.append(x * 2)
    return out


@jit
def p_kwargs(**xs):
    xs["extra"] = 1.0
    return {k: v * 2 for k, v in xs.items()}


@jit
def p_items(params):
    return {k: v * 2 for k, v in params.items()}


@jit
def p_unpack(pair):
    (a, b), *rest = pair
    return a + b, rest


@jit
def p_enumerate(xs):
    out = {}
    for i, v in enumerate(xs):
        out[i] = v
    return out


@jit
def p_wraps(x):
    def twice(f):
        @functools.wraps(f)
        def wrapped(v):
            return f(f(v))

        return wrapped

    return twice(lambda v: v + 1)(x)


@jit
def p_return_closure_result(x):
    def counter():
        n = 0

        def tick():
            nonlocal n
            n += 1
            return n

        return tick

    tick = counter()
    return x * tick() * tick()


@jit
def p_operator_local(x):
    table = {}
    operator.setitem(table, "x", x)
    return table["x"]


@jit
def p_alias_local(x):
    out = []
    put = out.append
    put(x)
    put(x + 1)
    return out


@jit
def p_nested_local(x):
    grid = [[0.0] * 3 for _ in range(3)]
    grid[0][1] = x
    grid[2].append(x)
    return grid[0][1]


@jit
def p_dict_of_lists(x):
    out = {"a": [], "b": []}
    out["a"].append(x)
    out["b"].extend([x, x])
    return out


@jit
def p_type_checks(x):
    if isinstance(x, (list, tuple)):
        return [v * 2 for v in x]
    if callable(x) or hasattr(x, "items"):
        return x
    return x * 2


@jit
def p_slices(x):
    half = slice(None, x.shape[0] // 2)
    return x[half], x[..., None], x[::-1]


@jit
def p_hash_number(x):
    return x * (hash((1, 2)) % 3)


@jit
def p_del_local(x):
    y = x + 1
    z = y * 2
    del y
    return z


@jit
def p_method_chain(x):
    return x.reshape(-1).sum().astype(float)


@jit
def p_update_method(tx, grads, state, params):
    updates, state = tx.update(grads, state, params)
    return updates, state


@jit
def p_sort_method(x):
    y = x.sort()
    return y.copy()


@contextlib.contextmanager
def scope(name):
    yield name


@jit
def p_context_manager(x):
    with scope("dense") as name:
        return x * len(name)


@jit
def p_while_local(x):
    stack = [x]
    out = []
    while stack:
        node = stack.pop()
        out.append(node)
        if len(out) < 3:
            stack.append(node + 1)
    return out


@jit
def p_globals_shadow(x):
    history = []
    history.append(x)
    print_ = history.append
    print_(x)
    return history


@jit
def p_default_none(x, log=None):
    log = [] if log is None else list(log)
    log.append(x)
    return log


def tree_add(a, b):
    if isinstance(a, dict):
        return {k: tree_add(a[k], b[k]) for k in a}
    return a + b


@jit
def p_tree_helper(a, b):
    return tree_add(a, b)


class Builder:
    def __init__(self, log):
        self.log = log

    def note(self, x):
        self.log.append(x)


@jit
def p_object_with_local_list(x):
    log = []
    builder = Builder(log)
    builder.note(x)
    builder.note(x + 1)
    return log


def make_over_number():
    scale = 2.0
    return jit(lambda x: x * scale)


def make_over_array():
    w = jnp.ones(3)
    return jit(lambda x: x * w)


def make_over_function():
    def inner(x):
        return x + 1

    @jit
    def apply(x):
        return inner(inner(x))

    return apply


def make_loop_called():
    f = None
    for k in range(3):
        f = (lambda k: jit(lambda x: x * k))(k)
    return f


def make_loop_default():
    fs = []
    for k in range(3):
        fs.append(jit(lambda x, k=k: x * k))
    return fs[1]


def make_partial():
    def scale(k, x):
        return x * k

    return jit(partial(scale, 2.0))


def make_tuple():
    shape = (2, 3)
    return jit(lambda x: jnp.reshape(x, shape))


@jit
def seeded_by_name(x):
    return x + RandomState(3).normal(size=3) + Generator(PCG64(3)).normal(size=3)


@jit
def scalar_types(x):
    if jnp.int32(3).dtype != jnp.int32:
        return x
    return jnp.float32(x).reshape(-1) + jnp.int32(3).reshape(1)


class Bound:
    rate = 2.0

    def scaled(self, x):
        return x * self.rate


class Heir(Bound):
    def raised(self, x):
        return x + super().rate


bound, heir = Bound(), Heir()


@jit
def attributes_that_a_class_binds_once(x):
    return bound.scaled(x) * heir.raised(x) * heir.rate + bound.rate
