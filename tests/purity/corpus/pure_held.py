"""What is left as it was found: locks that a block takes and gives back; views that are read."""

import copy
import dataclasses
import functools
import json
import threading
import typing

import numpy as np

from fnarray import jit

GRID = np.ones((3, 3))
SETTINGS = {"rate": 2.0, "sizes": [1.0]}
lock = threading.Lock()
again = threading.RLock()
slots = threading.Semaphore(2)


@dataclasses.dataclass
class Options:
    """Which may change, where a copy does not."""

    rate: float = 2.0


class Meta(type):
    """Asked for its classes."""

    def __call__(cls, *args):
        return super().__call__(*args)

    def __len__(cls):
        return 2

    def doubled(cls, x):
        return 2 * x


class Made(metaclass=Meta):
    """Of a class that answers."""

    SCALE = 2.0


@jit
def t_lock(x):
    with lock:
        return 2 * x


@jit
def t_locks(x):
    with again, slots:
        y = 2 * x
    return y


@jit
def t_own_lock(x):
    mine = threading.Lock()
    mine.acquire()
    y = 2 * x
    mine.release()
    return y


@jit
def t_nditer_read(x):
    total = 0.0
    for item in np.nditer(GRID):
        total = total + float(item)
    return x * total


@jit
def t_nditer_own(x):
    out = np.zeros((3, 3))
    for item in np.nditer(out, op_flags=["readwrite"]):
        item[...] = 2
    return x * out


@jit
def t_split_read(x):
    return x * np.array_split(GRID, 3)[0].sum() * np.real(GRID).mean()


@jit
def t_copyto_own(x):
    out = np.empty((3, 3))
    np.copyto(dst=out, src=GRID)
    return x * out


@jit
def t_class_made(x):
    return x * Made().SCALE * len(Made)


@functools.lru_cache
def nodes(n):
    """What is computed on the host, once for each size."""
    return np.polynomial.hermite.hermgauss(n)


@jit
def t_cache_of_a_default(x, n=4):
    points, weights = nodes(n)
    return (weights * (x + points)).sum()


def make_copied():
    own = copy.deepcopy(SETTINGS)
    return lambda x: x * own["rate"] * own["sizes"][0]


def make_copied_and_written():
    own = SETTINGS.copy()
    own["rate"] = 3.0
    return lambda x: x * own["rate"]


def make_of_fields():
    own = dataclasses.asdict(Options())
    return lambda x: x * own["rate"]


def make_of_text():
    own = json.loads('{"rate": 2.0}')
    return lambda x: x * own["rate"]


def make_of_hints():
    hints = typing.get_type_hints(Options)
    return lambda x: x * len(hints)
