"""Effects as libraries hand them on: state behind decorators, records, descriptors, registries, modes."""

import abc
import atexit
import calendar
import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import heapq
import inspect
import itertools
import logging
import operator
import os
import random as pyrandom
import sys
import threading
import time
import types
import weakref
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from functools import partial, partialmethod, reduce, singledispatchmethod, wraps

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, random, tree, vmap

log = logging.getLogger(__name__)
history = []
counts = Counter()
totals = defaultdict(float)
registry = {}
recent = deque(maxlen=3)
chained = ChainMap({}, {})
state = types.SimpleNamespace(step=0, seen=[])
user_dict = UserDict()
user_list = UserList()
nested = {"a": {"b": []}}
by_name = weakref.WeakValueDictionary()
var = contextvars.ContextVar("var", default=0.0)
token_box = [None]
local = threading.local()
numbers = itertools.count()
lines = iter(["1", "2"])
buffer = np.zeros(4)
matrix = np.zeros((2, 2))
grid = memoryview(bytearray(8))
steps = 0
flag = False
flag = True


def counted(fun):
    calls = 0

    @wraps(fun)
    def inner(*args, **kwargs):
        nonlocal calls
        calls += 1  # ! d_counted
        return fun(*args, **kwargs)

    return inner


@jit
@counted
def d_counted(x):
    return x * 2


def recorded(into):
    def decorate(fun):
        @wraps(fun)
        def inner(x):
            into.setdefault(fun.__name__, []).append(x)
            return fun(x)

        return inner

    return decorate


class Counted:
    """A decorator that counts on itself."""

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self.fun, self.n = fun, 0

    def __call__(self, *args):
        self.n += 1  # ! d_class_decorator
        return self.fun(*args)


@Counted
def tripled(x):
    return x * 3


@jit
def d_class_decorator(x):
    return tripled(x)


class Cell:
    def __init__(self):
        self.value = 0.0
        self.items = []

    def __iadd__(self, other):
        self.items.append(other)  # ! o_iadd
        return self

    def __lshift__(self, other):
        self.value = other  # ! o_shift
        return self

    def __call__(self, x):
        self.items += [x]  # ! o_call
        return x

    def __setitem__(self, key, value):
        self.items.append((key, value))  # ! o_setitem

    def __enter__(self):
        self.items.append("in")  # ! o_with
        return self

    def __exit__(self, *exc):
        self.items.append("out")  # ! o_with

    def __contains__(self, x):
        self.items.append(x)
        return True

    def __len__(self):
        self.items.append(0)  # ! o_len
        return 1

    def __format__(self, spec):
        self.items.append(spec)  # ! o_format
        return ""

    def __iter__(self):
        self.items.append(1)  # ! o_iter
        return iter((1.0,))

    def __hash__(self):
        self.items.append(2)  # ! o_hash
        return 1

    def __eq__(self, other):
        return self is other

    @property
    def latest(self):
        self.value = self.value + 1
        return self.value

    @latest.setter
    def latest(self, value):
        self.items.append(value)  # ! o_setter

    @classmethod
    def made(cls):
        cls.instances = 1  # ! o_classmethod
        return 1.0

    @staticmethod
    def noted(x):
        history.append(x)  # ! o_staticmethod
        return x

    @contextlib.contextmanager
    def open(self):
        self.value = 1.0  # ! o_context
        yield self
        self.value = 0.0  # ! o_context

    def keep(self, x, *, where):
        where.append(x)
        return x

    kept = partialmethod(keep, where=history)

    @singledispatchmethod
    def take(self, x):
        self.items.append(x)
        return x


cell = Cell()


@jit
def o_iadd(x):
    global cell  # noqa: PLW0602
    c = cell  # !
    c += x
    return x


@jit
def o_shift(x):
    cell << x  # !
    return x


@jit
def o_call(x):
    return cell(x)


@jit
def o_setitem(x):
    cell["k"] = x
    return x


@jit
def o_with(x):
    with cell:
        return x


@jit
def o_len(x):
    return x * len(cell)  # !


@jit
def o_format(x):
    name = f"{cell:>3}"  # !
    return x * len(name)


@jit
def o_iter(x):
    return sum(c * x for c in cell)  # !


@jit
def o_hash(x):
    return x * {cell: 1.0}[cell]  # !


@jit
def o_setter(x):
    cell.latest = x
    return x


@jit
def o_classmethod(x):
    return x * Cell.made()


@jit
def o_staticmethod(x):
    return Cell.noted(x)


@jit
def o_context(x):
    with cell.open():  # !
        return x


# ---- containers of modules, by roundabout ways ---------------------------------------------------


@jit
def c_get_then_append(x):
    nested.get("a")["b"].append(x)  # !
    return x


@jit
def c_alias_of_alias(x):
    a = nested
    b = a["a"]
    c = b["b"]
    c.extend([x])  # !
    return x


@jit
def c_unpacked_alias(x):
    first, second = history, recent
    first.append(x)  # !
    second.appendleft(x)  # !
    return x


@jit
def c_conditional_alias(x):
    target = history if x.ndim else recent
    target.append(x)  # !
    return x


@jit
def c_through_a_loop(x):
    for one in (history, recent):
        one.append(x)  # !
    return x


@jit
def c_through_a_dict(x):
    {"h": history}["h"].append(x)  # !
    return x


@jit
def c_through_zip(x):
    for one, value in zip([history, user_list], [x, x]):
        one.append(value)  # !
    return x


@jit
def c_through_star(x):
    head, *rest = [history, x, x]
    head.extend(rest)  # !
    return x


@jit
def c_default_dict(x):
    totals["loss"] += x  # !
    return x


@jit
def c_counter(x):
    counts.update(["call"])  # !
    return x


@jit
def c_chain(x):
    chained["x"] = x  # !
    return x


@jit
def c_user_dict(x):
    user_dict["x"] = x  # !
    return x


@jit
def c_or_equals(x):
    d = registry
    d |= {"x": x}  # !
    return x


@jit
def c_slice_assignment(x):
    history[:] = [x]  # !
    return x


@jit
def c_deleted_slice(x):
    del history[:]  # !
    return x


@jit
def c_star_target(x):
    (registry["x"], *history[:]) = x, x  # !
    return x


@jit
def c_for_target(x):
    for registry["i"] in range(3):  # !
        pass
    return x


@jit
def c_with_target(x):
    with contextlib.nullcontext(x) as registry["w"]:  # !
        return x


@jit
def c_walrus_global(x):
    return sum((history.append(v), v)[1] for v in (x, x))  # !


@jit
def c_sorted_key(x):
    return sorted([1.0, 2.0], key=lambda v: history.append(v) or v)[0] * x  # !


@jit
def c_map_for_effect(x):
    list(map(history.append, [x, x]))  # !
    return x


@jit
def c_any_for_effect(x):
    any(history.append(v) for v in [x])  # !
    return x


@jit
def c_operator_setitem(x):
    operator.setitem(registry, "x", x)  # !
    return x


@jit
def c_methodcaller(x):
    operator.methodcaller("append", x)(history)  # !
    return x


@jit
def c_partial_of_append(x):
    note = partial(history.append, x)
    note()  # !
    return x


@jit
def c_unbound(x):
    list.append(history, x)  # !
    return x


@jit
def c_getattr_append(x):
    getattr(history, "append")(x)  # !
    return x


@jit
def c_heap(x):
    heapq.heappush(history, 1.0)  # !
    return x


@jit
def c_numpy_out(x):
    np.add(buffer, 1.0, out=buffer)  # !
    return x


@jit
def c_numpy_view(x):
    row = matrix[0]
    row += 1.0  # !
    return x


@jit
def c_numpy_flat(x):
    matrix.flat[0] = 1.0  # !
    return x


@jit
def c_numpy_slice_of_transpose(x):
    matrix.T[0, :] = 2.0  # !
    return x


@jit
def c_memoryview(x):
    grid[0] = 1  # !
    return x


# ---- state of objects, processes -----------------------------------------------------------------


@jit
def s_namespace(x):
    state.step += 1  # !
    return x


@jit
def s_namespace_list(x):
    state.seen.append(x)  # !
    return x


@jit
def s_setattr(x):
    setattr(state, "last", x)  # !
    return x


@jit
def s_vars(x):
    vars(state)["last"] = x  # !
    return x


@jit
def s_dict_update(x):
    state.__dict__.update(last=x)  # !
    return x


@jit
def s_function_attribute(x):
    s_namespace.last = 1  # !
    return x


@jit
def s_class_attribute(x):
    Cell.shared = x  # !
    return x


@jit
def s_type_of(x):
    type(cell).shared = x  # !
    return x


@jit
def s_module_imported(x):
    import math

    math.ten = x  # !
    return x


@jit
def s_global(x):
    global steps
    steps += 1  # !
    return x


@jit
def s_global_by_globals(x):
    globals()["steps"] = x  # !
    return x


@jit
def s_context_variable(x):
    token_box[0] = var.set(x)  # !
    return x


@jit
def s_thread_local(x):
    local.value = x  # !
    return x


@jit
def s_flag_bound_twice(x):
    return x if flag else -x  # !


@jit
def s_counter_drawn(x):
    return x * next(numbers)  # !


@jit
def s_iterator_in_zip(x):
    return sum(x * int(a) for a, _ in zip(lines, (1, 2)))  # !


@jit
def s_clock_in_a_default_call(x):
    started = time.perf_counter()  # !
    return x * started


@jit
def s_environment(x):
    return x * len(os.environ.get("HOME", ""))  # !


@jit
def s_random_choice(x):
    return x * pyrandom.choice([1.0, 2.0])  # !


@jit
def s_atexit(x):
    atexit.register(print, "bye")  # !
    return x


@jit
def s_print_in_a_lambda(x):
    tap = lambda v: (print(v), v)[1]  # !
    return tap(x)


@jit
def s_log_lazily(x):
    log.debug("x is %s", x)  # !
    return x


@jit
def s_stream(x):
    sys.stderr.write("here")  # !
    return x


@jit
def s_first_weekday(x):
    return x * calendar.firstweekday()  # !


@jit
def s_exec(x):
    scope = {"x": x}
    exec("y = x * steps", scope)  # !
    return scope["y"]


# ---- callbacks -----------------------------------------------------------------------------------


@jit
def t_scan_appends(x):
    seen = []

    def body(c, v):
        seen.append(v)  # !
        return c + v, None

    return lax.scan(body, x, jnp.ones(3))[0]


@jit
def t_cond_binds(x):
    kept = None

    def yes(v):
        nonlocal kept
        kept = v  # !
        return v

    return lax.cond(x > 0, yes, lambda v: -v, x)


@jit
def t_while_draws(x):
    draw = iter(range(10))
    return lax.while_loop(lambda v: v < 5, lambda v: v + next(draw) + 1, x)  # !


@jit
def t_vmap_fills(x):
    box = {}

    def one(v):
        box["v"] = v  # !
        return v

    return vmap(one)(x * jnp.ones(3)).sum()


@jit
def t_piecewise_notes(x):
    return jnp.piecewise(x * jnp.ones(2), [x > jnp.zeros(2)], [lambda v: (history.append(v), v)[1]])[0]  # !


@jit
def t_tree_map_notes(x):
    tree.map(lambda v: history.append(v), {"a": x})  # !
    return x


@jit
def t_reduce_notes(x):
    return reduce(lambda a, b: (history.append(a), a + b)[1], [x, x, x])  # !


class Tracker(abc.ABC):
    def __init_subclass__(cls, **kwargs):
        history.append(cls)  # ! t_subclass_registers


@jit
def t_subclass_registers(x):
    class Inner(Tracker):
        pass

    return x


@dataclasses.dataclass
class Kept:
    value: float

    def __post_init__(self):
        history.append(self.value)  # ! t_kept


@jit
def t_kept(x):
    return Kept(x).value


def recording(where):
    def decorate(f):
        def run(x):
            where.append(x)  # ! t_recorded_by_a_factory
            return f(x)

        return run

    return decorate


@jit
@recording(history)
def t_recorded_by_a_factory(x):
    return x * 2


class Stepping:
    def _step(self, x, where):
        where.append(x)  # ! t_partial_method
        return x

    step = functools.partialmethod(_step, where=history)


stepping = Stepping()


@jit
def t_partial_method(x):
    return stepping.step(x)


@jit
def t_module_by_its_name(x):
    sys.modules[__name__].last = x  # ! t_module_by_its_name
    return x


def generator():
    history.append(1)  # ! t_generator_body
    yield 1.0


@jit
def t_generator_body(x):
    return sum(v * x for v in generator())


def make_closure_over_a_list():
    seen = []

    def f(x):
        seen.append(x)  # ! make_closure_over_a_list
        return x * len(seen)  # ! make_closure_over_a_list

    return f


def make_closure_over_a_counter():
    box = [0]

    def bump():
        box[0] += 1  # ! make_closure_over_a_counter
        return box[0]  # ! make_closure_over_a_counter

    return lambda x: x * bump()


def make_config_changed_later():
    config = {"scale": 1.0}

    def f(x):
        return x * config["scale"]  # ! make_config_changed_later

    config["scale"] = 2.0
    return f
