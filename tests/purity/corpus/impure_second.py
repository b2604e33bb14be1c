"""A second round of effects, in programs that somebody could have written for real."""

import asyncio
import collections
import contextlib
import csv
import ctypes
import datetime
import enum
import functools
import gc
import glob
import heapq
import io
import itertools
import json
import logging
import operator
import os
import pathlib
import pickle
import platform
import pprint
import queue
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
import uuid
import warnings
import weakref
from collections import defaultdict
from contextvars import ContextVar
from datetime import date, datetime as moment
from functools import cached_property, lru_cache, singledispatch
from os import getenv
from pathlib import Path
from random import random as chance
from typing import ClassVar

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import lax

STATE = {"step": 0}
GRID = [[0.0, 1.0], [2.0, 3.0]]
buffers = {"m": np.zeros(3), "v": np.zeros(3)}
events = []
metrics = defaultdict(list)
best_loss = float("inf")
worst_loss = float("-inf")
debug = False
beta1, beta2 = 0.9, 0.999
batches = ({"x": 1.0} for _ in range(3))
reader = csv.reader(["1,2", "3,4"])
enumerated = enumerate([1.0, 2.0])
zipped = zip([1.0], [2.0], strict=True)
filtered = filter(None, [1.0])
mapped = map(float, ["1"])
pairs = itertools.pairwise([1.0, 2.0, 3.0])
cycle = itertools.cycle([1.0, -1.0])
file = io.StringIO("1 2 3")
lock = threading.Lock()
tasks = queue.Queue()
here = Path(__file__)
context = ContextVar("context", default=1.0)
seed_rng = np.random.RandomState(0)
py_rng = random.Random(0)
out = np.empty(3)
log = logging.getLogger("train")
push = events.append
record = functools.partial(events.append)
local = threading.local()
weights_by_name = weakref.WeakValueDictionary()
heap = []


class Mode(enum.Enum):
    TRAIN = "train"


class Base:
    registry: ClassVar[dict] = {}
    verbose = True

    def __init_subclass__(cls):
        cls.registry[cls.__name__] = cls

    def log(self, x):
        print(x)  # ! s_inherited
        return x


class Child(Base):
    def run(self, x):
        return self.log(x) + 1

    def sup(self, x):
        return super().log(x)


class Slots:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 2.0


class Lazy:
    def __init__(self):
        self.values = []

    @cached_property
    def table(self):
        self.values.append(1)  # ! s_cached_property
        return 2.0

    def __call__(self, x):
        return x * len(self.values)  # ! s_callable

    def __add__(self, other):
        self.values.append(other)
        return other

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


class Descriptor:
    def __get__(self, obj, owner):
        return 3.0


class Holder:
    value = Descriptor()


class Optimizer:
    def __init__(self, lr):
        self.lr = lr
        self.state = {}
        self.steps = 0

    def update(self, g):
        self.steps += 1  # ! s_optimizer s_update
        self.state["m"] = g  # ! s_optimizer s_update
        return -self.lr * g  # ! s_optimizer s_update


child = Child()
slots = Slots()
lazy = Lazy()
optimizer = Optimizer(0.1)

TRACED = {
    "s_inherited": (child.run, ()),
    "s_update": (optimizer.update, ()),
    "s_callable": (lazy, ()),
}


@fnarray.jit
def s_optimizer(params, g):
    return params + optimizer.update(g)


@fnarray.jit
def s_cached_property(x):
    return x * lazy.table


@fnarray.jit
def s_slots(x):
    return x * slots.scale  # !


@fnarray.jit
def s_state_dict(x):
    STATE["step"] += 1  # !
    return x


@fnarray.jit
def s_grid(x):
    return x * GRID[0][1]  # !


@fnarray.jit
def s_grid_write(x):
    GRID[1][0] = 5.0  # !
    return x


@fnarray.jit
def s_buffers(g):
    buffers["m"] *= 0.9  # !
    buffers["m"] += 0.1  # !
    return g


@fnarray.jit
def s_buffers_read(g):
    return g + buffers["v"].sum()  # !


@fnarray.jit
def s_metrics(x):
    metrics["loss"].append(x)  # !
    return x


@fnarray.jit
def s_best(x):
    global best_loss
    best_loss = jnp.minimum(best_loss, x)  # !
    return x


@fnarray.jit
def s_best_read(x):
    return jnp.minimum(worst_loss, x)  # !


@fnarray.jit
def s_debug(x):
    if debug:  # !
        return -x
    return x


@fnarray.jit
def s_betas(m, g):
    return beta1 * m + (1 - beta1) * g  # !


@fnarray.jit
def s_generator(x):
    return x + next(batches)["x"]  # !


@fnarray.jit
def s_reader(x):
    rows = [float(a) for a, b in reader]  # !
    return x + rows[0]


@fnarray.jit
def s_enumerated(x):
    for i, v in enumerated:  # !
        x = x + i * v
    return x


@fnarray.jit
def s_zipped(x):
    (a, b), *_ = zipped  # !
    return x + a + b


@fnarray.jit
def s_filtered(x):
    return x + sum(filtered)  # !


@fnarray.jit
def s_mapped(x):
    return x + max(mapped)  # !


@fnarray.jit
def s_pairs(x):
    return x + len(list(pairs))  # !


@fnarray.jit
def s_cycle(x):
    sign = next(cycle)  # !
    return x * sign


@fnarray.jit
def s_takewhile(x):
    return x + sum(itertools.takewhile(lambda v: v > 0, cycle))  # !


@fnarray.jit
def s_star_iterator(x):
    values = [*batches]  # !
    return x + len(values)


@fnarray.jit
def s_in_iterator(x):
    return x if 1.0 in mapped else -x  # !


@fnarray.jit
def s_dict_of_iterator(x):
    return dict(zip("ab", cycle, strict=False)), x  # !


@fnarray.jit
def s_file(x):
    return x + float(file.read(1))  # !


@fnarray.jit
def s_path(x):
    return x + float(here.read_text())  # !


@fnarray.jit
def s_path_made(x):
    return x + float(Path("x").read_text())  # !


@fnarray.jit
def s_pathlib(x):
    return x if pathlib.Path("x").exists() else -x  # !


@fnarray.jit
def s_glob(x):
    return x + len(glob.glob("*.txt"))  # !


@fnarray.jit
def s_json(x):
    with open("c.json") as f:  # !
        scale = json.load(f)["scale"]  # !
    return x * scale


@fnarray.jit
def s_pickle(x):
    pickle.dump(1, file)  # !
    return x


@fnarray.jit
def s_np_save(x):
    np.save("x.npy", np.zeros(3))  # !
    return x


@fnarray.jit
def s_shutil(x):
    shutil.rmtree("tmp")  # !
    return x


@fnarray.jit
def s_tempfile(x):
    with tempfile.TemporaryDirectory():  # !
        return x


@fnarray.jit
def s_getenv(x):
    return x * float(getenv("S", "1"))  # !


@fnarray.jit
def s_environ_item(x):
    os.environ["S"] = "1"  # !
    return x


@fnarray.jit
def s_argv(x):
    return x * len(sys.argv)  # !


@fnarray.jit
def s_stderr(x):
    print("x", file=sys.stderr)  # !
    return x


@fnarray.jit
def s_flush(x):
    sys.stdout.flush()  # !
    return x


@fnarray.jit
def s_pprint(x):
    pprint.pprint({"x": x})  # !
    return x


@fnarray.jit
def s_traceback(x):
    traceback.print_stack()  # !
    return x


@fnarray.jit
def s_subprocess(x):
    subprocess.run(["ls"], check=True)  # !
    return x


@fnarray.jit
def s_socket(x):
    socket.create_connection(("a", 1))  # !
    return x


@fnarray.jit
def s_url(x):
    urllib.request.urlopen("http://a")  # !
    return x


@fnarray.jit
def s_logging(x):
    logging.warning("x %s", x)  # !
    return x


@fnarray.jit
def s_log_local(x):
    log2 = logging.getLogger("a")
    log2.debug("x")  # !
    return x


@fnarray.jit
def s_breakpoint(x):
    breakpoint()  # !  # noqa: T100
    return x


@fnarray.jit
def s_input(x):
    return x + float(input())  # !


@fnarray.jit
def s_thread(x):
    threading.Thread(target=print).start()  # !
    return x


@fnarray.jit
def s_gc(x):
    gc.collect()  # !
    return x


@fnarray.jit
def s_asyncio(x):
    asyncio.run(asyncio.sleep(0))  # !
    return x


@fnarray.jit
def s_ctypes(x):
    ctypes.CDLL(None)  # !
    return x


@fnarray.jit
def s_warn_filter(x):
    warnings.simplefilter("ignore")  # !
    return x


@fnarray.jit
def s_exit(x):
    sys.exit(1)  # !
    return x


@fnarray.jit
def s_chance(x):
    return x if chance() > 0.5 else -x  # !


@fnarray.jit
def s_choice(x):
    return x * random.choice([1.0, 2.0])  # !


@fnarray.jit
def s_seed(x):
    random.seed(0)  # !
    np.random.seed(0)  # !
    return x


@fnarray.jit
def s_np_random(x):
    return x + np.random.rand(3)  # !


@fnarray.jit
def s_np_choice(x):
    noise = np.random.choice
    return x + noise(3)  # !


@fnarray.jit
def s_seed_rng(x):
    return x + seed_rng.randn()  # !


@fnarray.jit
def s_py_rng(x):
    return x + py_rng.random()  # !


@fnarray.jit
def s_fresh_random(x):
    r = random.Random()  # !
    return x + r.random()


@fnarray.jit
def s_secrets(x):
    return x + secrets.randbelow(3)  # !


@fnarray.jit
def s_uuid(x):
    return x, str(uuid.uuid1())  # !


@fnarray.jit
def s_monotonic(x):
    return x + time.monotonic_ns() % 2  # !


@fnarray.jit
def s_strftime(x):
    return {time.strftime("%H"): x}  # !


@fnarray.jit
def s_today(x):
    return x + date.today().day  # !


@fnarray.jit
def s_utcnow(x):
    return x + moment.now(datetime.UTC).minute  # !


@fnarray.jit
def s_platform(x):
    return x if platform.node() == "a" else -x  # !


@fnarray.jit
def s_pid(x):
    return x + os.getpid()  # !


@fnarray.jit
def s_id_cache(x):
    key = id(x)  # !
    return x + key


@fnarray.jit
def s_hash_repr(x):
    return x + hash(repr(x.dtype)) % 3  # !


@fnarray.jit
def s_queue(x):
    tasks.put(x)  # !
    return x


@fnarray.jit
def s_context_variable(x):
    return x * context.get()  # !


@fnarray.jit
def s_thread_local(x):
    local.value = x  # !
    return x


@fnarray.jit
def s_weak(x):
    weights_by_name["x"] = x  # !
    return x


@fnarray.jit
def s_heap(x):
    heapq.heappush(heap, x)  # !
    return x


@fnarray.jit
def s_setitem(x):
    operator.setitem(STATE, "x", x)  # !
    return x


@fnarray.jit
def s_iadd_operator(x):
    operator.iadd(events, [x])  # !
    return x


@fnarray.jit
def s_dict_method(x):
    dict.update(STATE, x=x)  # !
    return x


@fnarray.jit
def s_list_method(x):
    list.append(events, x)  # !
    return x


@fnarray.jit
def s_np_at(x):
    np.add.at(out, [0], 1.0)  # !
    return x


@fnarray.jit
def s_np_copyto(x):
    np.copyto(out, 1.0)  # !
    return x


@fnarray.jit
def s_np_out(x):
    np.multiply(2.0, 3.0, out=out)  # !
    return x


@fnarray.jit
def s_np_out_position(x):
    np.add(1.0, 2.0, out)  # !
    return x


@fnarray.jit
def s_push(x):
    push(x)  # !
    return x


@fnarray.jit
def s_record(x):
    record(x)  # !
    return x


@fnarray.jit
def s_dispatch(x):
    actions = {"a": events.append, "b": print}
    actions["a"](x)  # !
    return x


@fnarray.jit
def s_conditional_target(x, first=True):
    target = events if first else heap
    target.append(x)  # !
    return x


@fnarray.jit
def s_or_default(x, log=None):
    log = log or events
    log.append(x)  # !
    return x


@fnarray.jit
def s_dict_get(x):
    bucket = metrics.get("a")  # !
    bucket.append(x)  # !
    return x


@fnarray.jit
def s_loop_over_containers(x):
    for container in (events, heap):
        container.append(x)  # !
    return x


@fnarray.jit
def s_values_clear(x):
    for array in buffers.values():  # !
        array[:] = 0  # !
    return x


@fnarray.jit
def s_items_write(x):
    for key, _ in metrics.items():  # !
        metrics[key] = []  # !
    return x


@fnarray.jit
def s_nested_function_global(x):
    def inner():
        global debug
        debug = True  # !

    inner()
    return x


@fnarray.jit
def s_nested_twice(x):
    def a(v):
        def b(w):
            events.append(w)  # !
            return w

        return b(v)

    return a(x)


def with_callback(f, x, on_done):
    y = f(x)
    on_done(y)  # ! s_passed_builtin
    return y


@fnarray.jit
def s_passed_callback(x):
    return with_callback(jnp.sin, x, lambda y: events.append(y))  # !


@fnarray.jit
def s_passed_builtin(x):
    return with_callback(jnp.sin, x, events.append)


@fnarray.jit
def s_sorted_key(x):
    sorted([2, 1], key=lambda v: events.append(v) or v)  # !
    return x


@fnarray.jit
def s_exit_stack(x):
    with contextlib.ExitStack() as stack:
        stack.callback(events.append, 1)  # !
        return x


@fnarray.jit
def s_redirect(x):
    with contextlib.redirect_stdout(file):  # !
        print(x)  # !
    return x


@fnarray.jit
def s_lock(x):
    with lock:
        events.append(x)  # !
    return x


def audited(kind):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            events.append((kind, args))  # ! s_audited
            return f(*args, **kwargs)

        return wrapper

    return decorate


@fnarray.jit
@audited("f")
def s_audited(x):
    return x * 2


class Counted:
    def __init__(self, f):
        self.f = f
        self.calls = 0

    def __call__(self, x):
        self.calls += 1  # ! s_counted
        return self.f(x)


@Counted
def counted_helper(x):
    return x * 2


@fnarray.jit
def s_counted(x):
    return counted_helper(x)


@lru_cache(maxsize=None)
def cached_print(x):
    print(x)  # ! s_lru
    return 1


@fnarray.jit
def s_lru(x):
    return x * cached_print(1)


@singledispatch
def dispatched(x):
    print(x)  # ! s_single
    return x


@fnarray.jit
def s_single(x):
    return dispatched(x)


@fnarray.jit
def s_default_mutable(x, seen=[]):  # noqa: B006
    seen.append(x)  # !
    return x


@fnarray.jit
def s_keyword_default(x, *, table={}):  # noqa: B006
    return x * table.get("a", 1.0)  # !


@fnarray.jit
def s_kwargs_iterator(x, *, source):
    return x + next(source)  # !


@fnarray.jit
def s_argument_send(gen, x):
    return gen.send(x)  # !


@fnarray.jit
def s_argument_setdefault(d, x):
    d.setdefault("a", []).append(x)  # !
    return d


@fnarray.jit
def s_argument_delete(d):
    del d["a"]  # !
    return d


@fnarray.jit
def s_argument_list(xs):
    xs.append(1.0)  # !
    return xs


@fnarray.jit
def s_argument_sort(xs):
    xs.sort()  # !
    return xs


@fnarray.jit
def s_argument_reverse(xs):
    for group in xs:
        group.reverse()  # !
    return xs


@fnarray.jit
def s_argument_set(obj, x):
    setattr(obj, "cache", x)  # !
    return obj


@fnarray.jit
def s_argument_unpack(batch):
    inputs, labels = batch
    inputs["n"] = labels  # !
    return inputs


@fnarray.jit
def s_argument_comprehension(params):
    [p.update(a=1) for p in params]  # !
    return params


@fnarray.jit
def s_argument_walrus(params):
    (layer := params["a"])["w"] = 1.0  # !
    return layer


@fnarray.jit
def s_argument_match(params):
    match params:
        case {"a": dict(inner)}:
            inner["z"] = 1.0  # !
    return params


@fnarray.jit
def s_fori_list(x):
    trail = []

    def body(i, v):
        trail.append(i)  # !
        return v * 2

    return lax.fori_loop(0, 3, body, x)


@fnarray.jit
def s_fori_lambda(x):
    trail = {}
    return lax.fori_loop(0, 3, lambda i, v: trail.setdefault("v", v), x)  # !


@fnarray.jit
def s_switch(x):
    chosen = []
    branches = [lambda v: v, lambda v: chosen.append(v) or v]  # !
    return lax.switch(1, branches, x)


@fnarray.jit
def s_switch_comprehension(x):
    log2 = []
    return lax.switch(1, [lambda v, k=k: (log2.append(k), v)[1] for k in range(3)], x)  # !


@fnarray.jit
def s_scan_partial(xs):
    acc = []

    def body(store, c, x):
        store.append(x)  # !
        return c + x, c

    return lax.scan(functools.partial(body, acc), 0.0, xs)


@fnarray.jit
def s_scan_method(xs):
    class Body:
        def __init__(self):
            self.n = 0

        def __call__(self, c, x):
            self.n += 1  # !
            return c + x, c

    return lax.scan(Body(), 0.0, xs)


@fnarray.jit
def s_while_array(x):
    steps = np.zeros(1)

    def body(v):
        steps[0] += 1  # !
        return v * 2

    return lax.while_loop(lambda v: v < 10, body, x)


@fnarray.jit
def s_associative(xs):
    calls = []
    return lax.associative_scan(lambda a, b: (calls.append(1), a + b)[1], xs)  # !


@fnarray.jit
def s_map_nonlocal(xs):
    last = None

    def one(x):
        nonlocal last
        last = x  # !
        return x

    lax.map(one, xs)
    return last


@fnarray.jit
def s_inner_jit_append(x):
    seen = []

    @fnarray.jit
    def inner(y):
        seen.append(y)  # !
        return y

    return inner(x)


@fnarray.jit
def s_inner_call_form(x):
    seen = []

    def inner(y):
        seen.append(y)  # !
        return y

    return fnarray.jit(inner)(x)


@fnarray.jit
def s_body_helper(xs):
    seen = []

    def note(v):
        seen.append(v)  # !

    def body(c, x):
        note(x)
        return c + x, c

    return lax.scan(body, 0.0, xs)


def make_bound_method():
    opt = Optimizer(0.1)

    def step(x):
        return x * opt.lr  # !

    return step


def make_rebound_after():
    scale = 1.0

    def f(x):
        return x * scale  # !

    def reset():
        nonlocal scale
        scale = 2.0

    reset()
    return f


def make_generator_cell():
    source = (v for v in range(3))

    def f(x):
        for v in source:  # !
            x = x + v
        return x

    return f


def restart():
    """Rebind what the functions above read: bound once, it would be final, and no effect."""
    global worst_loss, beta1, out
    worst_loss, beta1, out = 0.0, 0.5, np.ones(3)
