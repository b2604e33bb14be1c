"""Effects as users write them: counters, heaps, views, aliases, methods, iterators, the world outside."""

import atexit
import bisect
import builtins
import collections
import contextlib
import copy
import csv
import ctypes
import dataclasses
import functools
import gc
import heapq
import io
import itertools
import json
import logging
import os
import pathlib
import pickle
import queue
import random as pyrandom
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import uuid
import weakref
from collections import Counter, defaultdict, deque

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, tree, vmap

log = []
stats = Counter()
hist = defaultdict(list)
cache = {}
heap = []
dq = deque(maxlen=5)
lock = threading.Lock()
tls = threading.local()
tls.v = 1.0
seen = set()
arr = np.zeros(3)
it = iter(range(100))
counter = itertools.count()
ns = types.SimpleNamespace(v=1.0)
wk = weakref.WeakValueDictionary()
q = queue.Queue()
buf = io.StringIO()
rng = np.random.default_rng(0)
mv = memoryview(bytearray(4))
by = bytearray(4)
logger = logging.getLogger(__name__)


class Model:
    calls = 0
    registry = {}

    def __init__(self):
        self.w = 1.0
        self.history = []

    def forward(self, x):
        self.calls += 1
        return x * self.w

    @classmethod
    def reg(cls, x):
        cls.registry["x"] = x
        return x

    @property
    def stat(self):
        self.history.append(1)
        return 1.0

    def __call__(self, x):
        self.last = x
        return x

    def __enter__(self):
        self.history.append("in")
        return self

    def __exit__(self, *a):
        pass

    def __iadd__(self, x):
        self.history += [x]
        return self

    def __setitem__(self, k, v):
        self.history.append(v)

    def __getitem__(self, k):
        return self.history[k]


model = Model()


@jit
def u_counter(x):
    stats["calls"] += 1  # !
    return x


@jit
def u_counter_update(x):
    stats.update(["a"])  # !
    return x


@jit
def u_defaultdict_read(x):
    hist["new"]  # !
    return x


@jit
def u_defaultdict(x):
    hist["a"].append(x)  # !
    return x


@jit
def u_setdefault(x):
    return cache.setdefault("x", x)  # !


@jit
def u_heap(x):
    heapq.heappush(heap, 1)  # !
    return x


@jit
def u_bisect(x):
    bisect.insort(heap, 2)  # !
    return x


@jit
def u_deque(x):
    dq.appendleft(x)  # !
    return x


@jit
def u_set(x):
    seen.add(x.shape)  # !
    return x


@jit
def u_np_out(x):
    np.add(arr, 1, out=arr)  # !
    return x


@jit
def u_np_slice(x):
    arr[:] = 0  # !
    return x


@jit
def u_np_view(x):
    a = arr[1:]
    a += 1  # !
    return x


@jit
def u_np_flat(x):
    arr.flat[0] = 1  # !
    return x


@jit
def u_np_method(x):
    arr.sort()  # !
    return x


@jit
def u_next(x):
    return x * next(it)  # !


@jit
def u_zip(x):
    return [x * i for i, _ in zip(it, range(3))]  # !


@jit
def u_count(x):
    return x + next(counter)  # !


@jit
def u_ns(x):
    ns.v = x  # !
    return x


@jit
def u_ns_del(x):
    del ns.v  # !
    return x


@jit
def u_setattr(x):
    setattr(model, "w", x)  # !
    return x


@jit
def u_dict_attr(x):
    model.__dict__["w"] = x  # !
    return x


@jit
def u_vars(x):
    vars(model).update(w=x)  # !
    return x


@jit
def u_tls(x):
    return x * tls.v  # !


@jit
def u_queue(x):
    q.put(x)  # !
    return x


@jit
def u_buf(x):
    buf.write("x")  # !
    return x


@jit
def u_print_file(x):
    print("x", file=buf)  # !
    return x


@jit
def u_stdout(x):
    sys.stdout.write("x")  # !
    return x


@jit
def u_rng(x):
    return x * rng.normal()  # !


@jit
def u_pyrandom(x):
    return x * pyrandom.choice([1, 2])  # !


@jit
def u_shuffle(x):
    l = [1, 2]
    pyrandom.shuffle(l)  # !
    return x * l[0]


@jit
def u_uuid(x):
    return x * (uuid.uuid4().int % 3)  # !


@jit
def u_time(x):
    t = time.perf_counter
    return x * t()  # !


@jit
def u_env(x):
    return x * float(os.environ.get("A", 1))  # !


@jit
def u_open(x):
    with open("/tmp/x") as f:  # !
        return x * len(f.read())


@jit
def u_path(x):
    return x * len(pathlib.Path("/tmp/x").read_text())  # !


@jit
def u_np_load(x):
    return x * np.load("/tmp/x.npy")  # !


@jit
def u_json(x):
    return x * json.load(open("/tmp/x"))["a"]  # !


@jit
def u_pickle(x):
    pickle.dump(1, buf)  # !
    return x


@jit
def u_subprocess(x):
    subprocess.run(["ls"])  # !
    return x


@jit
def u_logger(x):
    logger.info("x %s", x)  # !
    return x


@jit
def u_exec(x):
    exec("log.append(1)")  # !
    return x


@jit
def u_lambda_default(x, acc=[]):
    acc.append(x)  # !
    return acc[0]  # !


@jit
def u_alias(x):
    a = b = log
    b.append(x)  # !
    return x


@jit
def u_tuple_alias(x):
    (a, b) = (log, cache)
    b["k"] = x  # !
    return x


@jit
def u_ternary(x):
    (log if x.ndim else heap).append(1)  # !
    return x


@jit
def u_loop_alias(x):
    for c in (log, heap):
        c.append(1)  # !
    return x


@jit
def u_comp(x):
    [log.append(v) for v in range(3)]  # !
    return x


@jit
def u_map(x):
    list(map(log.append, [1, 2]))  # !
    return x


@jit
def u_partial(x):
    functools.partial(log.append, 1)()  # !
    return x


@jit
def u_getattr(x):
    getattr(log, "append")(x)  # !
    return x


@jit
def u_walrus(x):
    (l := log).append(x)  # !
    return x


@jit
def u_star(x):
    def put(*ls):
        for l in ls:
            l.append(1)  # !

    put(log, heap)
    return x


@jit
def u_kw(x):
    def put(**d):
        d["a"].append(1)  # !

    put(a=log)
    return x


@jit
def u_scan_leak(xs):
    out = []

    def body(c, x):
        out.append(x)  # !
        return c, x

    lax.scan(body, 0.0, xs)
    return out[0]


@jit
def u_cond_nonlocal(x):
    best = x

    def yes(o):
        nonlocal best
        best = o  # !
        return o

    lax.cond(True, yes, lambda o: o, x)
    return best


@jit
def u_grad_leak(x):
    aux = {}

    def loss(w):
        aux["y"] = w * 2  # !
        return aux["y"].sum()

    g = grad(loss)(x)
    return g, aux["y"]


@jit
def u_vmap_leak(x):
    acc = []
    vmap(lambda a: acc.append(a) or a)(x)  # !
    return acc[0]


@jit
def u_arg_mut(d):
    d["a"] = 1  # !
    return d


@jit
def u_arg_pop(d):
    return d.pop("a")  # !


@jit
def u_arg_list(xs):
    xs.append(1)  # !
    return xs


@jit
def u_arg_aug(xs):
    xs += [1]  # !
    return xs


@jit
def u_arg_nested(p):
    p["layers"][0]["w"] = 1  # !
    return p


@jit
def u_arg_alias(p):
    q2 = p["a"]
    q2["w"] = 2  # !
    return p


@jit
def u_item(x):
    x[0] = 1  # !
    return x


@jit
def u_gen_outer(x):
    def gen():
        log.append(1)  # !
        yield x

    return sum(gen())


@jit
def u_finalizer(x):
    atexit.register(print, "bye")  # !
    return x


@jit
def u_builtins(x):
    builtins.foo = 1  # !
    return x


@jit
def u_sys_modules(x):
    sys.modules["foo"] = sys  # !
    return x


@jit
def u_tree_map_leak(x):
    tree.map(log.append, {"a": x})  # !
    return x


@jit
def u_sort_key(x):
    sorted([1, 2], key=lambda v: log.append(v) or v)  # !
    return x


@jit
def u_mv(x):
    mv[0] = 1  # !
    return x


@jit
def u_by(x):
    by.extend(b"a")  # !
    return x


@jit
def u_np_seed(x):
    np.random.seed(0)  # !
    return x


@jit
def u_redirect(x):
    with contextlib.redirect_stdout(buf):  # !
        print("x")  # !
    return x
