"""Functions that act on the world, depend on it, or hide what they do."""

import builtins
import datetime as dt
import importlib
import io
import itertools
import logging
import os
import pprint
import random
import secrets
import socket
import subprocess
import sys
import time
import uuid
import warnings
from datetime import datetime
from os import environ, getenv
from pathlib import Path
from random import gauss
from sys import stdout
from time import perf_counter, sleep

import numpy as np
import numpy.random as npr
from numpy.random import default_rng

import fnarray.numpy as jnp
from fnarray import jit, lax

logger = logging.getLogger(__name__)
rng = np.random.default_rng(0)
py_rng = random.Random(1)
legacy = np.random.RandomState(0)
batches = iter([1.0, 2.0])
pairs = zip([1, 2], [3, 4], strict=False)
ticks = itertools.count()
cycle = itertools.cycle([1, 2])
squares = (v * v for v in range(9))
out_stream = sys.stderr


@jit
def o_print(x):
    print(x)  # !
    return x


@jit
def o_print_fstring(x):
    print(f"{x.shape=}")  # !
    return x


@jit
def o_print_file(x):
    print("hi", file=sys.stderr)  # !
    return x


@jit
def o_print_alias(x):
    show = print
    show(x)  # !
    return x


@jit
def o_print_builtins(x):
    builtins.print(x)  # !
    return x


@jit
def o_print_map(x):
    list(map(print, range(3)))  # !
    return x


@jit
def o_pprint(x):
    pprint.pprint({"x": x})  # !
    return x


@jit
def o_print_lambda(x):
    return (lambda v: (print(v), v)[1])(x)  # !


@jit
def o_print_or(x):
    return x or print("nothing")  # !


@jit
def o_input(x):
    return x * float(input("scale? "))  # !


@jit
def o_open(x):
    with open("data.txt") as file:  # !
        return x * float(file.read())


@jit
def o_open_write(x):
    open("log.txt", "a").write("step")  # !
    return x


@jit
def o_path(x):
    return x * float(Path("scale.txt").read_text())  # !


@jit
def o_np_load(x):
    return x * np.load("w.npy")  # !


@jit
def o_np_save(x):
    np.save("w.npy", x)  # !
    return x


@jit
def o_logging(x):
    logging.info("step %s", x)  # !
    return x


@jit
def o_logger(x):
    logger.debug("step")  # !
    return x


@jit
def o_get_logger(x):
    logging.getLogger("a").warning("slow")  # !
    return x


@jit
def o_stdout(x):
    sys.stdout.write("x")  # !
    return x


@jit
def o_stdout_from(x):
    stdout.flush()  # !
    return x


@jit
def o_stream(x):
    out_stream.write("x")  # !
    return x


@jit
def o_environ(x):
    return x * float(os.environ["SCALE"])  # !


@jit
def o_environ_get(x):
    return x * float(environ.get("SCALE", 1))  # !


@jit
def o_getenv(x):
    return x * float(getenv("SCALE", "1"))  # !


@jit
def o_environ_write(x):
    os.environ["STEP"] = "1"  # !
    return x


@jit
def o_subprocess(x):
    subprocess.run(["true"], check=True)  # !
    return x


@jit
def o_system(x):
    os.system("true")  # !
    return x


@jit
def o_socket(x):
    socket.create_connection(("localhost", 80))  # !
    return x


@jit
def o_sleep(x):
    time.sleep(0.1)  # !
    return x


@jit
def o_sleep_from(x):
    sleep(0.1)  # !
    return x


@jit
def o_time(x):
    return x + time.time()  # !


@jit
def o_perf_counter(x):
    start = perf_counter()  # !
    y = x * 2
    return y, start


@jit
def o_monotonic(x):
    return x * time.monotonic_ns()  # !


@jit
def o_now(x):
    return x * datetime.now().year  # !


@jit
def o_today(x):
    return x * dt.date.today().day  # !


@jit
def o_utcnow(x):
    return x * dt.datetime.utcnow().hour  # !


@jit
def o_random(x):
    return x + random.random()  # !


@jit
def o_random_from(x):
    return x + gauss(0.0, 1.0)  # !


@jit
def o_random_choice(x):
    return x * random.choice([1, 2])  # !


@jit
def o_random_seed(x):
    random.seed(0)  # !
    return x


@jit
def o_numpy_random(x):
    return x + np.random.normal(size=3)  # !


@jit
def o_numpy_random_alias(x):
    return x + npr.uniform()  # !


@jit
def o_numpy_seed(x):
    np.random.seed(0)  # !
    return x


@jit
def o_unseeded(x):
    gen = np.random.default_rng()  # !
    return x + gen.normal()


@jit
def o_unseeded_from(x):
    return x + default_rng(None).normal()  # !


@jit
def o_captured_rng(x):
    return x + rng.normal()  # !


@jit
def o_captured_py_rng(x):
    return x + py_rng.random()  # !


@jit
def o_captured_legacy(x):
    noise = legacy.randn(3)  # !
    return x + noise


@jit
def o_rng_alias(x):
    draw = rng.normal
    return x + draw()  # !


def noisy(x, gen):
    return x + gen.normal()  # ! o_rng_helper


@jit
def o_rng_helper(x):
    return noisy(x, rng)


@jit
def o_rng_default(x, gen=rng):
    return x + gen.normal()  # !


@jit
def o_uuid(x):
    return x, uuid.uuid4().int  # !


@jit
def o_secrets(x):
    return x + secrets.randbelow(3)  # !


@jit
def o_urandom(x):
    return x + len(os.urandom(3))  # !


@jit
def o_id(x):
    return x + id(x) % 3  # !


@jit
def o_hash(x):
    return x + hash("name") % 3  # !


@jit
def o_hash_fstring(x):
    return x + hash(f"{x.ndim}") % 3  # !


@jit
def o_next(x):
    return x + next(batches)  # !


@jit
def o_next_default(x):
    return x + next(batches, 0.0)  # !


@jit
def o_for_iterator(x):
    for b in batches:  # !
        x = x + b
    return x


@jit
def o_list_iterator(x):
    return x + sum(list(squares))  # !


@jit
def o_comprehension_iterator(x):
    return [x * s for s in squares]  # !


@jit
def o_zip_captured(x):
    for a, b in pairs:  # !
        x = x + a * b
    return x


@jit
def o_count(x):
    return x + next(ticks)  # !


@jit
def o_cycle(x):
    return x + cycle.__next__()  # !


@jit
def o_zip_iterator(x):
    return [a * b for a, b in zip(x, ticks, strict=False)]  # !


@jit
def o_next_argument(stream, x):
    return x + next(stream)  # !


def draw(source):
    return next(source)  # ! o_next_helper


@jit
def o_next_helper(x):
    return x + draw(batches)


@jit
def o_body_next(x):
    return lax.fori_loop(0, 3, lambda i, v: v + next(batches), x)  # !


@jit
def o_body_local_iterator(x):
    local = iter([1.0, 2.0])
    return lax.fori_loop(0, 2, lambda i, v: v + next(local), x)  # !


@jit
def o_exec(x):
    exec("y = 1")  # !
    return x


@jit
def o_eval(x):
    return eval("x * 2")  # !


@jit
def o_compile(x):
    code = compile("1 + 1", "<s>", "eval")  # !
    return x, code


@jit
def o_import(x):
    return x * __import__("math").pi  # !


@jit
def o_import_module(x):
    return x * importlib.import_module("math").pi  # !


@jit
def o_filter_warnings(x):
    warnings.simplefilter("ignore")  # !
    return x


@jit
def o_string_io_outside(x):
    io.open("f")  # !
    return x


def report(x):
    print("value", x)  # ! o_helper_print o_method_print o_tree_print


@jit
def o_helper_print(x):
    report(x)
    return x


class Layer:
    def __call__(self, x):
        report(x)
        return x


o_method_print = jit(Layer())


@jit
def o_tree_print(x):
    return sorted([x], key=lambda v: report(v))


@jit
def o_cond_print(x):
    return lax.cond(x.ndim > 0, lambda v: (print(v), v)[1], lambda v: v, x)  # !


@jit
def o_scan_random(x):
    def body(carry, v):
        return carry + random.random(), v  # !

    return lax.scan(body, 0.0, x)


@jit
def o_two(x):
    print(x)  # !
    y = jnp.sin(x)
    logger.info("sin")  # !
    return y


def spell(x):  # ! o_generator
    for i in range(3):
        yield x * i


async def fetch(x):  # ! o_coroutine
    return x


TRACED = {"o_generator": (spell, 0), "o_coroutine": (fetch, 0)}


def make_iterator():
    source = iter([1.0, 2.0])
    return jit(lambda x: x + next(source))  # !


def make_generator():
    def stream():
        yield 1.0

    items = stream()

    @jit
    def step(x):
        for item in items:  # !
            x = x + item
        return x

    return step


def make_rng():
    gen = np.random.default_rng(3)
    return jit(lambda x: x + gen.uniform())  # !
