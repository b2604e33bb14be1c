"""Effects through views of arrays, metaclasses, hooks of classes, elements that are compared."""

import dataclasses
import functools
import gc
import inspect
import os
import pathlib
import struct
import sys
import threading
import time

import numpy as np

from fnarray import jit

log = []
buffer = bytearray(8)
out = np.zeros(2)
letters = iter("ab")


@jit
def t_view_asarray(x):
    np.asarray(out)[0] = 1  # !
    return x


@jit
def t_view_reshape(x):
    out.reshape(2, 1)[0] = 1  # !
    return x


@jit
def t_view_ravel(x):
    flat = np.ravel(out)
    flat[0] = 1  # !
    return x


@jit
def t_view_in_place(x):
    flat = out.view()
    flat += 1  # !
    return x


@jit
def t_fill_by_class(x):
    np.ndarray.fill(out, 1)  # !
    return x


@jit
def t_shuffle(x):
    np.random.default_rng(0).shuffle(out)  # !
    return x


class Plain:
    pass


@jit
def t_type_setattr(x):
    type.__setattr__(Plain, "k", x)  # !
    return x


@jit
def t_join(x):
    return x * len("".join(letters))  # !


class Noisy:
    def __hash__(self):
        log.append(1)  # ! t_hash_of_key
        return 1

    def __lt__(self, other):
        log.append(1)  # ! t_sorted
        return True

    def __iter__(self):
        log.append(1)  # ! t_unpacked
        return iter([1, 2])

    def __getattr__(self, name):
        log.append(name)  # ! t_getattr
        return 1


@jit
def t_hash_of_key(x):
    return {Noisy(): x}


@jit
def t_sorted(x):
    sorted([Noisy(), Noisy()])
    return x


@jit
def t_unpacked(x):
    a, b = Noisy()
    return x * a * b


@jit
def t_getattr(x):
    return x * Noisy().anything


class Meta(type):
    def __new__(mcs, *args):
        log.append(1)  # ! t_metaclass_of_inner
        return type.__new__(mcs, *args)


@jit
def t_metaclass_of_inner(x):
    class Made(metaclass=Meta):
        pass

    return x


class Named:
    def __set_name__(self, owner, name):
        log.append(name)  # ! t_set_name


@jit
def t_set_name(x):
    class Made:
        part = Named()

    return x


@jit
def t_map_class(x):
    class Note:
        def __init__(self, value):
            log.append(value)  # !

    list(map(Note, [x]))
    return x


@jit
def t_gc(x):
    gc.disable()  # !
    return x


@jit
def t_path(x):
    (pathlib.Path("a") / "b").write_text("c")  # !
    return x


@jit
def t_working_directory(x):
    return x * len(os.path.abspath("a"))  # !  # noqa: PTH100


@jit
def t_threads(x):
    return x * threading.active_count()  # !


@jit
def t_hash_of_texts(x):
    return x * hash(("a", 1))  # !


@jit
def t_default_of_next(x):
    return x * next(iter([]), log)[0]  # !


@dataclasses.dataclass
class Timed:
    since: float = dataclasses.field(default_factory=time.time)


@dataclasses.dataclass
class Counted(Timed):
    number: int = dataclasses.field(default_factory=lambda: log.append(1) or 0)  # ! t_factory


@jit
def t_factory_known(x):
    return x * Timed().since  # !


@jit
def t_factory(x):
    return x * Counted(1.0).number


class Closing:
    def __del__(self):
        log.append(1)  # ! t_del


@jit
def t_del(x):
    Closing()
    return x


@functools.lru_cache
def remembered(n):
    return n


@jit
def t_cache_clear(x):
    remembered.cache_clear()  # !
    return x * remembered(2)


@jit
def t_stack(x):
    return x * len(inspect.stack())  # !


@jit
def t_caller(x):
    return x * sys._getframe(1).f_lineno  # !


@jit
def t_default_iterator(x, numbers=iter((1.0, 2.0))):
    return x * next(numbers)  # !


@jit
def t_pack(x):
    struct.pack_into("d", buffer, 0, 1.0)  # !
    return x


class Guarded:
    def __init__(self):
        self.held = 0.0

    @property
    def value(self):
        return 1.0

    @value.setter
    def value(self, new):
        self.held = new  # ! t_setter

    @property
    def quiet(self):
        return 1.0

    @quiet.setter
    def quiet(self, new):
        pass


guarded = Guarded()


@jit
def t_setter(x):
    guarded.value = 2.0
    guarded.quiet = 3.0
    return x
