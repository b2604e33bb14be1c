"""Effects as somebody would write them who has read nothing but what is forbidden."""

import builtins
import collections
import contextlib
import copy
import dataclasses
import datetime as dt
import functools
import itertools as it
import logging
import math
import operator as op
import os
import random as rnd
import sys
import time
import types
import uuid
from collections import ChainMap, Counter, UserDict, UserList, defaultdict, deque
from time import perf_counter as clock

import numpy as np
from numpy.random import default_rng, normal

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, vmap

history = []
cache = {}
flags = {"debug": False}
seen = set()
queue = deque(maxlen=3)
learning_rate = 0.1
threshold: float = 0.5
name = "model"
shape = (2, 3)
counts = Counter()
nested = {"a": {"b": [1, 2]}}
matrix = np.eye(3)
stream = iter([1.0, 2.0])
lines = (float(x) for x in ["1", "2"])
ticket = it.count()
rng = default_rng(0)
logger = logging.getLogger(__name__)
LIMITS = [0, 1]
OPTIONS = {"a": 1}
TABLE = np.arange(3.0)
user_list = UserList([1.0])
chain = ChainMap({"a": 1.0}, {})
space = types.SimpleNamespace(scale=2.0)
add_to_history = history.append


class Trainer:
    total = 0
    losses = []

    def __init__(self):
        self.lr = 0.1
        self.history = []
        self._cache = {}
        self.opt = types.SimpleNamespace(momentum=0.9)

    def step(self, x):
        return x - self.lr * x  # ! f_method

    def record(self, x):
        self.history.append(x)  # ! f_record f_record_helper
        return x

    def bump(self, x):
        type(self).total += 1  # ! f_bump
        return x

    @property
    def rate(self):
        print("rate")  # ! f_property
        return 0.1

    def __getitem__(self, k):
        return self._cache[k]

    def deep(self, x):
        return x * self.opt.momentum  # ! f_deep

    def __enter__(self):
        self.history.append(1)  # ! f_context
        return self

    def __exit__(self, *exc):
        return False

    @classmethod
    def count(cls, x):
        cls.losses.append(x)  # ! f_classmethod
        return x


trainer = Trainer()

TRACED = {
    "f_method": (trainer.step, ()),
    "f_record": (trainer.record, ()),
    "f_bump": (trainer.bump, ()),
    "f_deep": (trainer.deep, ()),
    "f_classmethod": (Trainer.count, ()),
    "f_partial_dict": (functools.partial(lambda p, x: p["w"] * x, {"w": 1.0}), ()),  # ! f_partial_dict
    "f_partial_append": (functools.partial(lambda log, x: log.append(x) or x, history), ()),  # ! f_partial_append
}


@jit
def f_record_helper(x):
    return trainer.record(x) * 2


@jit
def f_property(x):
    return x * trainer.rate


@jit
def f_context(x):
    with trainer:
        return x * 2


@jit
def f_bound_append(x):
    add_to_history(x)  # !
    return x


@jit
def f_walrus_next(x):
    while (item := next(stream, None)) is not None:  # !
        x = x + item
    return x


@jit
def f_for_generator(x):
    for line in lines:  # !
        x = x + line
    return x


@jit
def f_zip_stream(x):
    return [a + b for a, b in zip([x, x], stream)]  # !


@jit
def f_ticket(x):
    return x + next(ticket)  # !


@jit
def f_islice(x):
    return x + sum(it.islice(stream, 2))  # !


@jit
def f_comprehension_append(x):
    [history.append(v) for v in (x, x)]  # !
    return x


@jit
def f_ternary(x):
    seen.add(1) if x.ndim else None  # !
    return x


@jit
def f_short_circuit(x):
    x.ndim and cache.update(a=x)  # !
    return x


@jit
def f_defaultdict(x):
    groups = nested["a"]
    groups["c"] = x  # !
    return x


@jit
def f_alias_chain(x):
    a = cache
    b = a
    b["x"] = x  # !
    return x


@jit
def f_tuple_alias(x):
    log, out = history, []
    out.append(x)
    log.append(x)  # !
    return out


@jit
def f_getattr_append(x):
    getattr(history, "append")(x)  # !
    return x


@jit
def f_methodcaller(x):
    op.methodcaller("append", x)(history)  # !
    return x


@jit
def f_map_append(x):
    list(map(history.append, [x, x]))  # !
    return x


@jit
def f_unpack_target(x):
    cache["a"], y = x, x * 2  # !
    return y


@jit
def f_for_target(x):
    for cache["i"] in range(3):  # !
        x = x + 1
    return x


@jit
def f_with_target(x):
    with contextlib.nullcontext(x) as cache["c"]:  # !
        return x


@jit
def f_del(x):
    del cache["x"]  # !
    return x


@jit
def f_slice(x):
    history[:] = [x]  # !
    return x


@jit
def f_iadd(x):
    global history
    history += [x]  # !
    return x


@jit
def f_counter(x):
    counts["calls"] += 1  # !
    return x


@jit
def f_deque(x):
    queue.appendleft(x)  # !
    return x


@jit
def f_user_list(x):
    user_list.append(x)  # !
    return x


@jit
def f_chain(x):
    return x * chain["a"]  # !


@jit
def f_namespace(x):
    return x * space.scale  # !


@jit
def f_namespace_write(x):
    space.scale = 3.0  # !
    return x


@jit
def f_function_attribute(x):
    f_helper.calls += 1  # !
    return f_helper(x)


def f_helper(x):
    return x


@jit
def f_module_attribute(x):
    math.tau = 6.0  # !
    return x


@jit
def f_builtins(x):
    builtins.answer = 42  # !
    return x


@jit
def f_globals(x):
    globals()["learning_rate"] = 0.2  # !
    return x


@jit
def f_vars(x):
    vars(space)["scale"] = 1.0  # !
    return x


@jit
def f_dunder_dict(x):
    trainer.__dict__["lr"] = 0.5  # !
    return x


@jit
def f_setattr(x):
    setattr(trainer, "lr", 0.2)  # !
    return x


@jit
def f_object_setattr(x):
    object.__setattr__(trainer, "lr", 0.2)  # !
    return x


@jit
def f_annotated_scalar(x):
    return x > threshold  # !


@jit
def f_scalar_in_branch(x):
    if x.ndim == 0:
        return x * learning_rate  # !
    return x


@jit
def f_string(x):
    return {name: x}  # !


@jit
def f_tuple(x):
    return jnp.zeros(shape) + x  # !


@jit
def f_flag(x):
    if flags["debug"]:  # !
        return -x
    return x


@jit
def f_fstring(x):
    label = f"{learning_rate}"  # !
    return {label: x}


@jit
def f_default_scalar(x, lr=learning_rate):
    def inner(y):
        return y * learning_rate  # !

    return inner(x) * lr


@jit
def f_upper_list(x):
    return x * LIMITS[1]  # !


@jit
def f_upper_dict(x):
    return x * OPTIONS.get("a", 1)  # !


@jit
def f_matrix(x):
    return matrix @ x  # !


@jit
def f_matrix_write(x):
    matrix[0, 0] = 2.0  # !
    return x


@jit
def f_matrix_out(x):
    np.add(matrix, 1, out=matrix)  # !
    return x


@jit
def f_matrix_fill(x):
    matrix.fill(0)  # !
    return x


@jit
def f_matrix_iadd(x):
    m = matrix
    m += 1  # !
    return x


@jit
def f_view_write(x):
    row = matrix[0]
    row[1] = 5.0  # !
    return x


@jit
def f_argument_pop(params, x):
    params.pop("unused", None)  # !
    return x


@jit
def f_argument_nested(params, x):
    params["layer"]["w"] = x  # !
    return params


@jit
def f_argument_alias(params, x):
    layer = params["layer"]
    layer.update(w=x)  # !
    return params


@jit
def f_argument_attribute(state, x):
    state.step += 1  # !
    return state


@jit
def f_argument_array(x):
    x[0] = 1.0  # !
    return x


@jit
def f_argument_aug(x):
    x[1:] += 1.0  # !
    return x


@jit
def f_argument_kwargs(x, **kw):
    kw["nested"]["z"] = x  # !
    return x


@jit
def f_argument_star(*xs):
    xs[0]["a"] = 1  # !
    return xs


def add_bias(params, b):
    params["b"] = b  # ! f_argument_helper
    return params


@jit
def f_argument_helper(params, b):
    return add_bias(params, b)


@jit
def f_print_lambda(x):
    show = lambda v: print(v)  # !  # noqa: E731
    show(x)
    return x


@jit
def f_print_alias(x):
    say = print
    say(x)  # !
    return x


@jit
def f_print_partial(x):
    functools.partial(print, "x =")(x)  # !
    return x


@jit
def f_stdout(x):
    sys.stdout.write("x")  # !
    return x


@jit
def f_logger(x):
    logger.info("x")  # !
    return x


@jit
def f_open_with(x):
    with open("log.txt", "a") as file:  # !
        file.write("x")
    return x


@jit
def f_environ(x):
    return x * float(os.environ.get("SCALE", 1))  # !


@jit
def f_sleep(x):
    time.sleep(0.1)  # !
    return x


@jit
def f_clock(x):
    start = clock()  # !
    return x + start


@jit
def f_now(x):
    return x + dt.datetime.now().hour  # !


@jit
def f_uuid(x):
    return {uuid.uuid4().hex: x}  # !


@jit
def f_random(x):
    return x + rnd.gauss(0, 1)  # !


@jit
def f_normal(x):
    return x + normal()  # !


@jit
def f_rng(x):
    return x + rng.normal()  # !


@jit
def f_fresh_rng(x):
    return x + default_rng().normal()  # !


@jit
def f_id(x):
    return x + id(x) % 7  # !


@jit
def f_hash(x):
    return x + hash("seed") % 7  # !


@jit
def f_hash_name(x):
    return x + hash(str(x.shape)) % 7  # !


@jit
def f_exec(x):
    exec("x = x + 1")  # !
    return x


@jit
def f_import(x):
    m = __import__("math")  # !
    return x * m.pi


def memoize(f):
    store = {}

    @functools.wraps(f)
    def wrapper(x):
        store["last"] = x  # ! f_memoized
        return f(x)

    return wrapper


@jit
@memoize
def f_memoized(x):
    return x * 2


def timed(f):
    @functools.wraps(f)
    def wrapper(*args):
        start = time.time()  # ! f_timed
        out = f(*args)
        return out, start

    return wrapper


@jit
@timed
def f_timed(x):
    return x * 2


@contextlib.contextmanager
def tracking(label):
    history.append(label)  # ! f_contextmanager
    yield
    history.pop()  # ! f_contextmanager


@jit
def f_contextmanager(x):
    with tracking("f"):
        return x * 2


@jit
def f_scan_append(xs):
    out = []

    def body(c, x):
        out.append(c)  # !
        return c + x, None

    c, _ = lax.scan(body, 0.0, xs)
    return c


@jit
def f_cond_nonlocal(x):
    taken = 0

    def yes(y):
        nonlocal taken
        taken = 1  # !
        return y

    return lax.cond(x > 0, yes, lambda y: y, x)


@jit
def f_while_dict(x):
    info = {}

    def body(v):
        info["last"] = v  # !
        return v + 1

    return lax.while_loop(lambda v: v < 10, body, x)


@jit
def f_grad_append(x):
    values = []
    return grad(lambda y: values.append(y) or y * y)(x)  # !


@jit
def f_vmap_attribute(x):
    box = Trainer()

    def one(v):
        box.last = v  # !
        return v

    return vmap(one)(x)


@jit
def f_scan_iterator(xs):
    items = iter([1.0, 2.0, 3.0])
    return lax.scan(lambda c, x: (c + next(items), x), 0.0, xs)  # !


@jit
def f_map_counter(xs):
    n = [0]

    def one(x):
        n[0] += 1  # !
        return x * 2

    return lax.map(one, xs)


def make_counter():
    n = 0

    @jit
    def step(x):
        nonlocal n
        n += 1  # !
        return x + n

    return step


def make_late():
    fs = []
    for k in (1.0, 2.0):

        def f(x):
            return x * k  # !

        fs.append(f)
    return fs[0]


def make_sibling():
    scale = 1.0

    def set_scale(v):
        nonlocal scale
        scale = v

    def use(x):
        return x * scale  # !

    use.set = set_scale
    return use


def make_closure_iterator():
    source = iter(range(9))

    def f(x):
        return x + next(source)  # !

    return f


def make_closure_rng():
    gen = np.random.default_rng(3)
    return lambda x: x + gen.normal()  # !


@jit
def f_class_inside(x):
    class Local:
        def go(self, v):
            history.append(v)  # !
            return v

    return Local().go(x)


@jit
def f_recursive(x, n=3):
    def go(v, k):
        if k == 0:
            seen.add("end")  # !
            return v
        return go(v + 1, k - 1)

    return go(x, n)


@jit
def f_try_finally(x):
    try:
        y = x * 2
    finally:
        history.clear()  # !
    return y


@jit
def f_except(x):
    try:
        return x * 2
    except ValueError as error:
        history.append(error)  # !
        raise


@jit
def f_match(x):
    match x.shape:
        case ():
            cache["scalar"] = True  # !
        case _:
            pass
    return x


@jit
def f_assert(x):
    assert history, "empty"  # !
    return x


@jit
def f_copy_then_original(x):
    mine = copy.copy(nested)  # !
    mine["z"] = x
    mine["a"]["b"] = x  # !
    return x


@jit
def f_sorted_in_place(x):
    LIMITS.sort()  # !
    return x


@jit
def f_reduce(x):
    return functools.reduce(lambda a, b: (history.append(a), a + b)[1], [x, x])  # !


@jit
def f_lambda_default(x):
    g = lambda v, log=history: log.append(v)  # !  # noqa: E731
    g(x)
    return x


@dataclasses.dataclass
class Config:
    lr: float = 0.1


config = Config()


@jit
def f_dataclass(x):
    return x * config.lr  # !


class Registry(UserDict):
    pass


registry = Registry()


@jit
def f_user_dict(x):
    registry["x"] = x  # !
    return x


@jit
def f_defaultdict_global(x):
    table = defaultdict(list)
    table["a"].append(x)
    cache.setdefault("b", []).append(x)  # !
    return x


@jit
def f_collections(x):
    collections.deque.append(queue, x)  # !
    return x


@jit
def f_heap(x):
    import heapq  # noqa: PLC0415

    heapq.heappush(history, 1)  # !
    return x


@jit
def f_shuffle(x):
    rnd.shuffle(history)  # !
    return x


@jit
def f_attrgetter(x):
    return x * op.attrgetter("lr")(trainer)  # !


@jit
def f_itemgetter(x):
    return x * op.itemgetter("debug")(flags)  # !


def outermost(x):
    return middle(x) + 1


def middle(x):
    return innermost(x) * 2


def innermost(x):
    return x * learning_rate  # ! f_depth


@jit
def f_depth(x):
    return outermost(x)


@fnarray.jit
def f_nested_jit(x):
    @jit
    def inner(y):
        history.append(y)  # !
        return y

    return inner(x)


def anneal():
    """Rebind what the functions above read: bound once, it would be final, and no effect."""
    global learning_rate, threshold, name, shape, matrix
    learning_rate, threshold, name, shape, matrix = 0.2, 1.0, "other", (3, 2), np.ones((3, 3))
