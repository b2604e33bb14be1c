"""What is left as it was found: locks that a block takes and gives back; views that are read."""

import threading

import numpy as np

from fnarray import jit

GRID = np.ones((3, 3))
lock = threading.Lock()
again = threading.RLock()
slots = threading.Semaphore(2)


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
