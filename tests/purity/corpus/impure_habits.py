"""What people write around a traced function, and what of it outlives the call or is read late."""

import asyncio
import atexit
import dataclasses
import datetime
import enum
import functools
import gc
import io
import itertools
import json
import logging
import os
import pathlib
import pickle
import queue
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter, defaultdict, deque

import numpy as np

import fnarray.numpy as jnp
from fnarray import grad, jit, lax, vmap

logger = logging.getLogger(__name__)
history = []
metrics = defaultdict(list)
counts = Counter()
window = deque(maxlen=3)
seen = set()
settings = {"rate": 0.1, "nested": {"gain": 2.0}}
layers = [2.0, 3.0]
counter = itertools.count()
rng = np.random.default_rng()
py_rng = random.Random()
lock = threading.Lock()
jobs = queue.Queue()
buffer = io.StringIO()
local = threading.local()
local.gain = 1.0
best = None
step_number = 0
step_number = 1
grid = np.zeros(3)
REGISTRY = {}


class Trainer:
    """Holds what it has learned, as objects do."""

    instances = 0

    def __init__(self):
        self.loss = []
        self.steps = 0
        self.rate = 0.1
        self.cache = {}

    def record(self, value):
        self.loss.append(value)  # ! i_method_that_records
        return value

    @property
    def current(self):
        self.steps += 1  # ! i_property_that_counts
        return 1.0

    def __call__(self, x):
        self.cache[x.shape] = x  # ! i_callable_object_with_a_cache
        return x

    def __enter__(self):
        self.steps = 0  # ! i_context_manager_of_their_own
        return self

    def __exit__(self, *_):
        return None

    def __iadd__(self, other):
        self.steps = other  # ! i_in_place_operator
        return self

    def __setitem__(self, key, value):
        self.cache[key] = value  # ! i_item_of_an_object

    @classmethod
    def count(cls):
        cls.instances += 1  # ! i_class_attribute
        return cls.instances  # ! i_class_attribute


@dataclasses.dataclass
class Settings:
    rate: float = 0.1
    tags: list = dataclasses.field(default_factory=list)


class Mode(enum.Enum):
    TRAIN = 1

    def note(self):
        REGISTRY[self] = True  # ! i_member_that_notes


trainer, options = Trainer(), Settings()


def timed(fun):
    @functools.wraps(fun)
    def wrapper(*args):
        start = time.perf_counter()  # ! i_decorator_that_times
        result = fun(*args)
        history.append(start)  # ! i_decorator_that_times
        return result

    return wrapper


def memoized(fun):
    known = {}

    @functools.wraps(fun)
    def wrapper(x):
        if "y" not in known:  # ! i_decorator_that_remembers
            known["y"] = fun(x)  # ! i_decorator_that_remembers
        return known["y"]  # ! i_decorator_that_remembers

    return wrapper


@jit
def i_append(x):
    history.append(x)  # !
    return x


@jit
def i_defaultdict(x):
    metrics["loss"].append(x)  # !
    return x


@jit
def i_counter(x):
    counts["calls"] += 1  # !
    return x


@jit
def i_counter_update(x):
    counts.update(["calls"])  # !
    return x


@jit
def i_window(x):
    window.appendleft(x)  # !
    return x


@jit
def i_set(x):
    seen.add(x.shape)  # !
    return x


@jit
def i_setdefault(x):
    return settings.setdefault("scale", x)  # !


@jit
def i_nested(x):
    settings["nested"]["gain"] = x  # !
    return x


@jit
def i_merge(x):
    global settings
    settings |= {"x": 1.0}  # !
    return x


@jit
def i_best_so_far(x):
    global best
    best = x if best is None else jnp.minimum(best, x)  # !
    return x


@jit
def i_step_number(x):
    return x * 0.9**step_number  # !


@jit
def i_list_of_numbers(x):
    for layer in layers:  # !
        x = layer * x
    return x


@jit
def i_unpacked_settings(x):
    return dict(**settings)["rate"] * x  # !


@jit
def i_method_that_records(x):
    return trainer.record(x)


@jit
def i_property_that_counts(x):
    return x * trainer.current


@jit
def i_callable_object_with_a_cache(x):
    return trainer(x)


@jit
def i_context_manager_of_their_own(x):
    with trainer:
        return x


@jit
def i_in_place_operator(x):
    mine = trainer  # !
    mine += 3
    return x


@jit
def i_item_of_an_object(x):
    trainer["a"] = x
    return x


@jit
def i_class_attribute(x):
    return x * Trainer.count()


@jit
def i_attribute_read(x):
    return x * trainer.rate  # !


@jit
def i_mutable_dataclass(x):
    return x * options.rate  # !


@jit
def i_dataclass_set(x):
    options.rate = 0.2  # !
    return x


@jit
def i_dataclass_list(x):
    options.tags.append(x)  # !
    return x


@jit
def i_member_that_notes(x):
    Mode.TRAIN.note()
    return x


@jit
@timed
def i_decorator_that_times(x):
    return x


@jit
@memoized
def i_decorator_that_remembers(x):
    return x


@jit
def i_counting(x):
    return x * next(counter)  # !


@jit
def i_numpy_generator(x):
    return x + rng.normal()  # !


@jit
def i_python_generator(x):
    return x + py_rng.random()  # !


@jit
def i_fresh_generator(x):
    return x + np.random.default_rng().normal()  # !


@jit
def i_shuffled(x):
    order = [0, 1, 2]
    random.shuffle(order)  # !
    return x * order[0]


@jit
def i_choice(x):
    return x * random.choice([1.0, 2.0])  # !


@jit
def i_token(x):
    return x * len(secrets.token_hex(4))  # !


@jit
def i_identifier(x):
    return x * (uuid.uuid4().int % 2)  # !


@jit
def i_time(x):
    start = time.time()  # !
    return x * start


@jit
def i_today(x):
    return x * datetime.datetime.now().year  # !


@jit
def i_print(x):
    print("x =", x)  # !
    return x


@jit
def i_print_to_a_buffer(x):
    print(x, file=buffer)  # !
    return x


@jit
def i_logger(x):
    logger.info("x %s", x)  # !
    return x


@jit
def i_saved(x):
    np.save("x.npy", np.ones(3))  # !
    return x


@jit
def i_path(x):
    return x * float(pathlib.Path("rate.txt").read_text())  # !


@jit
def i_json(x):
    with open("rate.json") as file:  # !
        return x * json.load(file)["rate"]  # !


@jit
def i_pickled(x):
    with tempfile.TemporaryFile() as file:  # !
        pickle.dump(1.0, file)  # !
    return x


@jit
def i_environment(x):
    return x * float(os.environ.get("RATE", "1"))  # !


@jit
def i_arguments(x):
    return x * len(sys.argv)  # !


@jit
def i_process(x):
    subprocess.run(["true"], check=False)  # !
    return x


@jit
def i_queue(x):
    jobs.put(x)  # !
    return x


@jit
def i_thread(x):
    threading.Thread(target=history.clear).start()  # !
    return x


@jit
def i_thread_local(x):
    return x * local.gain  # !


@jit
def i_sleep(x):
    time.sleep(0)  # !
    return x


@jit
def i_collected(x):
    gc.collect()  # !
    return x


@jit
def i_registered(x):
    atexit.register(history.clear)  # !
    return x


@jit
def i_array_in_place(x):
    grid[1:] += 1.0  # !
    return x


@jit
def i_array_out(x):
    np.add(1.0, grid, out=grid)  # !
    return x


@jit
def i_argument(p):
    p["w"] = p["w"] - 0.1  # !
    return p


@jit
def i_argument_popped(p):
    return p.pop("w") * 2  # !


@jit
def i_item(x):
    x[0] = 1.0  # !
    return x


@jit
def i_leak_from_a_loop(x):
    kept = []

    def body(carry, _):
        kept.append(carry)  # !
        return carry * 2, None

    lax.scan(body, x, None, length=3)
    return kept[0]


@jit
def i_leak_from_a_gradient(x):
    parts = {}

    def loss(y):
        parts["y"] = y * 2  # !
        return jnp.sum(y**2)

    return grad(loss)(x) + parts["y"]


@jit
def i_leak_from_a_map(x):
    total = 0.0

    def each(y):
        nonlocal total
        total = total + y  # !
        return y

    return vmap(each)(jnp.ones(3)) * x + total


@jit
def i_comprehension_for_its_effect(x):
    [history.append(i * x) for i in range(3)]  # !
    return x


@jit
def i_map_for_its_effect(x):
    list(map(history.append, [x]))  # !
    return x


@jit
def i_walrus_of_a_pop(x):
    while layers and (layer := layers.pop()):  # !
        x = x * layer
    return x


@jit
def i_lambda_default(x, log=history):
    log.append(x)  # !
    return x


@jit
def i_setattr_loop(x):
    for name in ("a", "b"):
        setattr(trainer, name, x)  # !
    return x


@jit
def i_evaluated(x):
    return eval("x * 2")  # !


@jit
def i_executed(x):
    exec("y = 1")  # !
    return x


@jit
def i_imported_by_name(x):
    module = __import__("math")  # !
    return x * module.pi


def make_coroutine():
    @jit
    async def inner(x):  # !
        await asyncio.sleep(0)  # !
        return x

    return inner
