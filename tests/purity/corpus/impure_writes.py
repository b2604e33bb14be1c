"""Functions that write to something that outlives the call."""

import dataclasses
import heapq
import operator
from collections import Counter, defaultdict, deque

import numpy as np

import fnarray.numpy as jnp
from fnarray import jit, lax

history = []
cache = {}
seen = set()
queue = deque(maxlen=4)
counts = Counter()
by_name = defaultdict(list)
totals = np.zeros(4)
buffer = bytearray(8)
heap = []
step_count = 0
best_loss = float("inf")


class Tracker:
    """Holds what it is told."""

    latest = None
    values = []

    def __init__(self):
        self.count = 0
        self.items = []


tracker = Tracker()


@jit
def w_append(x):
    history.append(x)  # !
    return x * 2


@jit
def w_extend(x):
    history.extend([x, x + 1])  # !
    return x


@jit
def w_insert(x):
    y = jnp.sin(x)
    history.insert(0, y)  # !
    return y


@jit
def w_pop(x):
    last = history.pop()  # !
    return x + last


@jit
def w_clear(x):
    history.clear()  # !
    return x


@jit
def w_sort(x):
    history.sort()  # !
    return x


@jit
def w_reverse(x):
    history.reverse()  # !
    return x


@jit
def w_remove(x):
    if x.ndim == 1:
        history.remove(3)  # !
    return x


@jit
def w_list_item(x):
    history[0] = x  # !
    return x


@jit
def w_list_slice(x):
    history[:] = [x]  # !
    return x


@jit
def w_list_del(x):
    del history[0]  # !
    return x


@jit
def w_list_item_aug(x):
    history[-1] += x  # !
    return x


@jit
def w_dict_item(x):
    cache["x"] = x  # !
    return x


@jit
def w_dict_update(x):
    cache.update(x=x)  # !
    return x


@jit
def w_dict_setdefault(x):
    return cache.setdefault("x", x)  # !


@jit
def w_dict_del(x):
    del cache["x"]  # !
    return x


@jit
def w_dict_pop(x):
    cache.pop("x", None)  # !
    return x


@jit
def w_dict_or(x):
    global cache
    cache |= {"x": x}  # !
    return x


@jit
def w_nested_dict(x):
    cache["layers"]["w"] = x  # !
    return x


@jit
def w_set_add(x):
    seen.add(x.shape)  # !
    return x


@jit
def w_set_discard(x):
    seen.discard(x.shape)  # !
    return x


@jit
def w_deque(x):
    queue.appendleft(x)  # !
    return x


@jit
def w_counter(x):
    counts["calls"] += 1  # !
    return x


@jit
def w_defaultdict(x):
    by_name["x"].append(x)  # !
    return x


@jit
def w_bytearray(x):
    buffer[0] = 1  # !
    return x


@jit
def w_heap(x):
    heapq.heappush(heap, 3)  # !
    return x


@jit
def w_global(x):
    global step_count
    step_count = 1  # !
    return x


@jit
def w_global_aug(x):
    global step_count
    step_count += 1  # !
    return x


@jit
def w_global_for(x):
    global step_count
    for step_count in range(3):  # !
        x = x + 1
    return x


@jit
def w_global_walrus(x):
    global best_loss
    if (best_loss := 1.0) > 0:  # !
        return x
    return x + 1


@jit
def w_global_tuple(x):
    global step_count, best_loss
    (
        step_count,  # !
        best_loss,  # !
    ) = 1, 2.0
    return x


@jit
def w_global_import(x):
    global math
    import math  # !

    return x


@jit
def w_global_del(x):
    global step_count
    del step_count  # !
    return x


@jit
def w_globals_item(x):
    globals()["step_count"] = 3  # !
    return x


@jit
def w_globals_update(x):
    globals().update(step_count=3)  # !
    return x


@jit
def w_setattr(x):
    setattr(tracker, "latest", x)  # !
    return x


@jit
def w_object_setattr(x):
    object.__setattr__(tracker, "latest", x)  # !
    return x


@jit
def w_attribute(x):
    tracker.latest = x  # !
    return x


@jit
def w_attribute_aug(x):
    tracker.count += 1  # !
    return x


@jit
def w_attribute_del(x):
    del tracker.latest  # !
    return x


@jit
def w_attribute_list(x):
    tracker.items.append(x)  # !
    return x


@jit
def w_class_attribute(x):
    Tracker.latest = x  # !
    return x


@jit
def w_class_list(x):
    Tracker.values.append(x)  # !
    return x


@jit
def w_module_attribute(x):
    np.my_state = x  # !
    return x


@jit
def w_vars(x):
    vars(tracker)["latest"] = x  # !
    return x


@jit
def w_dunder_dict(x):
    tracker.__dict__["latest"] = x  # !
    return x


@jit
def w_numpy_item(x):
    totals[0] = 1.0  # !
    return x


@jit
def w_numpy_slice_aug(x):
    totals[1:3] += 1.0  # !
    return x


@jit
def w_numpy_fill(x):
    totals.fill(0.0)  # !
    return x


@jit
def w_numpy_out(x):
    np.add(1.0, 2.0, out=totals)  # !
    return x


@jit
def w_numpy_add_at(x):
    np.add.at(totals, 0, 1.0)  # !
    return x


@jit
def w_numpy_copyto(x):
    np.copyto(totals, 1.0)  # !
    return x


@jit
def w_numpy_alias_aug(x):
    mine = totals
    mine += 1.0  # !
    return x


@jit
def w_numpy_sort(x):
    totals.sort()  # !
    return x


@jit
def w_operator_setitem(x):
    operator.setitem(cache, "x", x)  # !
    return x


@jit
def w_operator_delitem(x):
    operator.delitem(cache, "x")  # !
    return x


@jit
def w_alias_method(x):
    put = history.append
    put(x)  # !
    return x


@jit
def w_alias_list(x):
    log = history
    log.append(x)  # !
    return x


@jit
def w_alias_walrus(x):
    (log := history).append(x)  # !
    return x


@jit
def w_alias_branch(x):
    log = history if x.ndim else []
    log.append(x)  # !
    return x


@jit
def w_alias_tuple(x):
    local, log = [], history
    local.append(x)
    log.append(x)  # !
    return x


@jit
def w_unbound_method(x):
    list.append(history, x)  # !
    return x


@jit
def w_comprehension(x):
    [history.append(v) for v in range(3)]  # !
    return x


@jit
def w_map_lambda(x):
    list(map(lambda v: history.append(v), range(3)))  # !
    return x


@jit
def w_map_method(x):
    list(map(history.append, range(3)))  # !
    return x


@jit
def w_conditional(x):
    x.ndim == 1 and history.append(x)  # !
    return x


def remember(value, log):
    log.append(value)  # ! w_helper


@jit
def w_helper(x):
    remember(x, history)
    return x


def note(value):
    history.append(value)  # ! w_deep_helper


def middle(value):
    note(value)
    return value + 1


@jit
def w_deep_helper(x):
    return middle(middle(x))


def logged(fun):
    def wrapper(*args):
        history.append(args)  # ! w_decorated
        return fun(*args)

    return wrapper


@jit
@logged
def w_decorated(x):
    return x * 2


@jit
def w_default(x, log=[]):  # noqa: B006
    log.append(x)  # !
    return x


@jit
def w_inner(x):
    def inner(y):
        history.append(y)  # !
        return y

    return inner(x)


@jit
def w_inner_lambda(x):
    put = lambda y: cache.update(y=y)  # !  # noqa: E731
    put(x)
    return x


@jit
def w_try(x):
    try:
        y = jnp.log(x)
    finally:
        history.append("done")  # !
    return y


@jit
def w_match(x):
    match x.ndim:
        case 0:
            return x
        case _:
            history.append(x)  # !
            return x


class Recorder:
    def __enter__(self):
        history.append("enter")  # ! w_with
        return self

    def __exit__(self, *error):
        return None


@jit
def w_with(x):
    with Recorder():
        return x * 2


class Model:
    def __init__(self):
        self.calls = 0

    def step(self, x):
        self.calls += 1  # ! w_method
        return x

    @property
    def doubled(self):
        history.append(2)  # ! w_property
        return 2.0

    def __call__(self, x):
        self.last = x  # ! w_callable
        return x


model = Model()
w_method = jit(model.step)
w_callable = jit(model)


@jit
def w_property(x):
    return x * model.doubled


@jit
def w_argument_item(params, g):
    params["w"] = params["w"] - g  # !
    return params


@jit
def w_argument_append(batch, x):
    batch.append(x)  # !
    return batch


@jit
def w_argument_attribute(state, x):
    state.step = state.step + 1  # !
    return state


@jit
def w_argument_pop(params):
    w = params.pop("w")  # !
    return w


@jit
def w_argument_del(params):
    del params["w"]  # !
    return params


@jit
def w_argument_nested(params, x):
    params["dense"]["w"] = x  # !
    return params


@jit
def w_argument_loop(layers):
    for layer in layers:
        layer["w"] = layer["w"] * 0.9  # !
    return layers


@jit
def w_argument_items(params):
    for _, layer in params.items():
        layer.update(scale=1.0)  # !
    return params


@jit
def w_argument_alias(params, x):
    target = params["head"]
    target["w"] = x  # !
    return params


@jit
def w_argument_shallow(params, x):
    new = dict(params)
    new["head"]["w"] = x  # !
    return new


@jit
def w_argument_list_aug(batch, x):
    batch += [x]  # !
    return batch


@jit
def w_array_item(x, i):
    x[i] = 0.0  # !
    return x


@jit
def w_array_slice(x):
    x[1:, 0] = 1.0  # !
    return x


@jit
def w_array_aug(x):
    x[0] += 1.0  # !
    return x


@jit
def w_array_result(x):
    y = jnp.zeros(3)
    y[0] = x  # !
    return y


@jit
def w_array_mask(x):
    x[x < 0] = 0.0  # !
    return x


@jit
def w_kwargs(x, **state):
    state["inner"]["w"] = x  # !
    return state


def scale_in_place(params, k):
    for name in params:
        params[name] = params[name] * k  # ! w_argument_helper
    return params


@jit
def w_argument_helper(params):
    return scale_in_place(params, 0.5)


@jit
def w_body_append(x):
    seen_here = []

    def body(i, acc):
        seen_here.append(acc)  # !
        return acc + x

    return lax.fori_loop(0, 3, body, 0.0)


@jit
def w_body_nonlocal(x):
    total = 0.0

    def body(carry, v):
        nonlocal total
        total = total + v  # !
        return carry, v

    lax.scan(body, 0.0, x)
    return total


@jit
def w_cond_dict(x):
    found = {}

    def yes(v):
        found["yes"] = v  # !
        return v

    return lax.cond(True, yes, lambda v: v, x)


@jit
def w_while_global(x):
    def body(v):
        history.append(v)  # !
        return v + 1

    return lax.while_loop(lambda v: v < 3, body, x)


@jit
def w_scan_lambda(x):
    out = []
    return lax.scan(lambda c, v: (c, out.append(v)), 0.0, x)  # !


def make_nonlocal():
    calls = 0

    @jit
    def step(x):
        nonlocal calls
        calls += 1  # !
        return x

    return step


def make_captured_list():
    log = []

    def record(x):
        log.append(x)  # !
        return x

    return jit(record)


def make_captured_object():
    box = Tracker()
    return jit(lambda x: setattr(box, "latest", x))  # !


@dataclasses.dataclass
class State:
    """Counts."""

    count: int = 0

    def bump(self):
        self.count += 1  # ! w_dataclass_method


state = State()


@jit
def w_dataclass_method(x):
    state.bump()
    return x
