"""Effects by roundabout ways: through caches, protocols, class bodies, tools for debugging."""

import argparse
import builtins
import contextlib
import cProfile
import ctypes
import dataclasses
import decimal
import enum
import functools
import pdb
import random
import secrets
import sys
import traceback
import types
import uuid
from collections import defaultdict
from functools import cached_property, lru_cache, singledispatch

import numpy as np

import fnarray.numpy as jnp
from fnarray import jit

log = []
table = {"a": []}
steps = iter([1.0, 2.0])
out = np.zeros(())
nested = [[1.0], [2.0]]
pool = defaultdict(list)


@lru_cache
def remembered(y):
    return jnp.ones(3) * y


class Lazy:
    def __init__(self):
        self.parts = [1.0]

    @cached_property
    def total(self):
        return jnp.sum(jnp.ones(3))


lazy = Lazy()


@jit
def e_lru_cache(x):
    return x * remembered(2)  # !


@jit
def e_lru_cache_inside(x):
    @lru_cache
    def local(n):
        log.append(n)  # !
        return x * n

    return local(2)


@jit
def e_cached_property(x):
    return x * lazy.total  # !


def push(items, **_):
    items.append(1.0)  # ! e_stars e_max_key


@jit
def e_stars(x):
    push(**{"items": log})
    return x


@jit
def e_max_key(x):
    push(max(nested, key=len))  # !
    return x


@jit
def e_max_append(x):
    max(nested, key=len).append(1.0)  # !
    return x


@jit
def e_extend(x):
    local = []
    local.extend(steps)  # !
    return x * local[0]


@jit
def e_join(x):
    label = "".join(log.append(c) or c for c in "ab")  # !
    return x * len(label)


@jit
def e_join_iterator(x):
    return x * len(",".join(str(s) for s in steps))  # !


@jit
def e_positional_out(x):
    np.multiply(2.0, 3.0, out)  # !
    return x


@jit
def e_unary_out(x):
    np.sin(2.0, out)  # !
    return x


@jit
def e_dot_out(x):
    np.dot(np.ones(1), np.ones(1), out)  # !
    return x


@jit
def e_class_body(x):
    class Local:
        log.append(1)  # !

    return x


@jit
def e_class_body_print(x):
    class Local:
        for _ in range(2):
            print("made")  # !

    return x


def register(cls):
    log.append(cls)  # ! e_class_decorator
    return cls


@jit
def e_class_decorator(x):
    @register
    class Local:
        pass

    return x


class Registering:
    def __init_subclass__(cls):
        log.append(cls)  # ! e_init_subclass


@jit
def e_init_subclass(x):
    class Local(Registering):
        pass

    return x


class Counted:
    def __new__(cls):
        log.append(1)  # ! e_new
        return object.__new__(cls)

    def __init__(self):
        self.k = 2.0


@jit
def e_new(x):
    return x * Counted().k


class Setting:
    @property
    def k(self):
        return 2.0

    @k.setter
    def k(self, value):
        log.append(value)  # ! e_setter


@jit
def e_setter(x):
    made = Setting()
    made.k = 3.0
    return x


@singledispatch
def shown(value):
    return value


@shown.register(int)
def _(value):
    log.append(value)  # ! e_singledispatch
    return value


@jit
def e_singledispatch(x):
    return x * shown(2)


class Watched:
    def __setattr__(self, name, value):
        log.append(name)  # ! e_setattr
        object.__setattr__(self, name, value)


@jit
def e_setattr(x):
    made = Watched()
    made.k = 2.0
    return x * made.k


class Row(list):
    def __setitem__(self, key, value):
        log.append(key)  # ! e_setitem
        super().__setitem__(key, value)


@jit
def e_setitem(x):
    row = Row([1.0])
    row[0] = 2.0
    return x * row[0]


class Context:
    def __enter__(self):
        log.append(1)  # ! e_with
        return self

    def __exit__(self, *args):
        pass


@jit
def e_with(x):
    with Context():
        return x


class Adding:
    def __add__(self, other):
        log.append(other)  # ! e_operator
        return other

    def __iter__(self):
        log.append(0)  # ! e_iter
        return iter([1.0])

    def __bool__(self):
        log.append(0)  # ! e_truth
        return True


@jit
def e_operator(x):
    return Adding() + x


@jit
def e_iter(x):
    for step in Adding():
        x = x * step
    return x


@jit
def e_truth(x):
    return x if Adding() else -x


@jit
def e_pdb(x):
    pdb.set_trace()  # !  # noqa: T100
    return x


@jit
def e_breakpoint(x):
    breakpoint()  # !  # noqa: T100
    return x


@jit
def e_profile(x):
    profile = cProfile.Profile()  # !
    profile.enable()
    return x


@jit
def e_traceback(x):
    traceback.print_stack()  # !
    return x


@jit
def e_traceback_list(x):
    traceback.print_list([])  # !
    return x


@jit
def e_decimal(x):
    decimal.getcontext().prec = 3  # !
    return x


@jit
def e_decimal_read(x):
    return x * decimal.getcontext().prec  # !


@jit
def e_now(x):
    return x * np.datetime64("now").astype(int)  # !


@jit
def e_today(x):
    return x * np.datetime64("today", "D").astype(int)  # !


@jit
def e_generator(x):
    return x * np.random.Generator(np.random.PCG64()).normal()  # !


@jit
def e_generator_mersenne(x):
    return x * np.random.Generator(np.random.MT19937()).normal()  # !


@jit
def e_seed_sequence(x):
    return x * np.random.SeedSequence().entropy  # !


@jit
def e_system_random(x):
    return x * random.SystemRandom().random()  # !


@jit
def e_secrets(x):
    return x * secrets.randbelow(3)  # !


@jit
def e_uuid(x):
    return x * uuid.uuid4().int  # !


@jit
def e_arguments(x):
    return x * argparse.ArgumentParser().parse_args().lr  # !


@jit
def e_hash_parameter(x, tag="a"):
    return x * (hash(tag) % 7)  # !


@jit
def e_hash_annotated(x, tag: str):
    return x * (hash(tag) % 7)  # !


@jit
def e_displayhook(x):
    sys.displayhook(x)  # !
    return x


@jit
def e_builtins_print(x):
    builtins.print(x)  # !
    return x


@jit
def e_partialmethod(x):
    append = functools.partial(log.append, x)
    append()  # !
    return x


@jit
def e_setdefault(x):
    pool["a"].append(x)  # !
    return x


@jit
def e_nested_alias(x):
    first, _ = nested
    first.append(1.0)  # !
    return x


@jit
def e_walrus_alias(x):
    if items := table["a"]:  # !
        items.append(x)  # !
    return x


@jit
def e_setattr_module(x):
    types.seen = x  # !
    return x


@dataclasses.dataclass(frozen=True)
class Noted:
    k: float = 2.0

    def __enter__(self):
        log.append("in")  # ! e_frozen_manager e_frozen_manager_in_a_stack
        return self.k

    def __exit__(self, *raised):
        pass


noted = Noted()


@jit
def e_frozen_manager(x):
    with noted as k:
        return x * k


@jit
def e_frozen_manager_in_a_stack(x):
    with contextlib.ExitStack() as stack:
        return x * stack.enter_context(noted)


@jit
def e_out_in_a_tuple(x):
    np.add(out, 1.0, out=(out,))  # !
    return x


class Mode(enum.Enum):
    FAST = 1
    SLOW = (2, 3)

    def noted(self):
        log.append(self)  # ! e_method_of_a_member e_method_of_a_tuple_member
        return 2.0


@jit
def e_method_of_a_member(x):
    return x * Mode.FAST.noted()


@jit
def e_method_of_a_tuple_member(x):
    return x * Mode.SLOW.noted()


numbers = (ctypes.c_double * 2)()


@jit
def e_item_of_a_ctypes_array(x):
    numbers[0] = 1.0  # !
    return x
