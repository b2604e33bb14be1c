"""Writes through views, by keywords, by what functions have for defaults, by metaclasses."""

import bisect
import random
import threading

import numpy as np

from fnarray import jit

grid = np.ones((3, 3))
other = np.zeros((3, 3))
letters = [1, 2]
calls = []
guard = threading.RLock()
slots = threading.Semaphore()


def helper(x, seen=[], *, notes=[]):  # noqa: B006 - what is written into
    """Return what it is given."""
    return x


class Meta(type):
    """Asked for classes, and of them."""

    def __call__(cls, *args):
        calls.append(args)  # ! t_class_called
        return super().__call__(*args)

    def __instancecheck__(cls, obj):
        calls.append(obj)  # ! t_is_instance t_matched
        return True

    def __subclasscheck__(cls, obj):
        calls.append(obj)  # ! t_is_subclass
        return True

    def __getitem__(cls, i):
        calls.append(i)  # ! t_class_item
        return 1.0

    def __len__(cls):
        calls.append(1)  # ! t_class_length
        return 2

    def __add__(cls, other):
        calls.append(1)  # ! t_class_added
        return other


class Made(metaclass=Meta):
    """Of a class that answers."""


class Below(Made):
    """Has its metaclass from above."""


class Single(type):
    """Keeps one object of each class."""

    _kept = {}  # noqa: RUF012 - what is written into

    def __call__(cls):
        if cls not in cls._kept:  # ! t_singleton
            cls._kept[cls] = super().__call__()  # ! t_singleton
        return cls._kept[cls]  # ! t_singleton


class Settings(metaclass=Single):
    """Made once."""

    SCALE = 2.0


@jit
def t_nditer(x):
    for item in np.nditer(grid, op_flags=["readwrite"]):
        item[...] = 2 * item  # !
    return x


@jit
def t_nditer_with(x):
    with np.nditer(grid, op_flags=["readwrite"]) as items:
        for item in items:
            item[...] = 2  # !
    return x


@jit
def t_nditer_of_two(x):
    for a, b in np.nditer([grid, other], op_flags=[["readwrite"], ["readonly"]]):
        a[...] = b  # !
    return x


@jit
def t_copyto_by_name(x):
    np.copyto(dst=grid, src=0)  # !
    return x


@jit
def t_place_by_name(x):
    np.place(arr=grid, mask=other > 0, vals=[1])  # !
    return x


@jit
def t_shuffle_by_name(x):
    np.random.default_rng(0).shuffle(x=grid)  # !
    return x


@jit
def t_insort_by_name(x):
    bisect.insort(a=letters, x=2)  # !
    return x


@jit
def t_random_shuffle_by_name(x):
    random.Random(0).shuffle(x=letters)  # !
    return x


@jit
def t_masked(x):
    np.ma.array(grid)[0] = 1  # !
    return x


@jit
def t_required(x):
    np.require(grid)[0] = 1  # !
    return x


@jit
def t_not_copied(x):
    np.array(grid, copy=False)[0] = 1  # !
    return x


@jit
def t_split(x):
    np.array_split(grid, 3)[0][...] = 1  # !
    return x


@jit
def t_strided(x):
    np.lib.stride_tricks.as_strided(grid)[0] = 1  # !
    return x


@jit
def t_real_part(x):
    np.real(grid)[...] = 1  # !
    return x


@jit
def t_power_at(x):
    np.power.at(grid, 0, 2)  # !
    return x


@jit
def t_defaults(x):
    helper.__defaults__[0].append(x)  # !
    return x


@jit
def t_keyword_defaults(x):
    helper.__kwdefaults__["notes"].append(x)  # !
    return x


@jit
def t_class_called(x):
    Made()
    return x


@jit
def t_is_instance(x):
    return x if isinstance(x, Made) else 2 * x


@jit
def t_is_subclass(x):
    return x if issubclass(int, Made) else 2 * x


@jit
def t_matched(x):
    match x:
        case Made():
            return x
    return 2 * x


@jit
def t_class_item(x):
    return x * Made[0]


@jit
def t_class_length(x):
    return x * len(Below)


@jit
def t_class_added(x):
    return Made + x


@jit
def t_singleton(x):
    return x * Settings().SCALE


@jit
def t_taken(x):
    guard.acquire()  # !
    y = 2 * x
    guard.release()  # !
    return y


@jit
def t_slot_taken(x):
    slots.acquire()  # !
    return 2 * x
