"""Nothing goes stale: whatever is changed, the next call sees it, or the first was refused."""

from __future__ import annotations

import builtins
import csv
import decimal
import fractions
import functools
import gc
import itertools
import json
import locale
import logging
import math
import operator
import os
import socket
import subprocess
import sys
import time
import types
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.core import lazy
from fnarray.core.callables import instance_dict
from fnarray.errors import EffectError

from . import stale
from .stale import Row, lost

MODULES = [import_module(f"{stale.__name__}.{m.name}") for m in iter_modules(stale.__path__)]

ROWS: dict[str, Row] = {
    f"{module.__name__.rpartition('.')[2]}: {name}": row
    for module in MODULES
    for name, row in module.ROWS.items()
}
X = jnp.float32(1.5)


def module_of(row: Row, folder, number: int) -> types.ModuleType:
    """Import a row's module, from a file as a user's is."""
    path = folder / f"stale_{number}.py"
    path.write_text(row.source())
    made = types.ModuleType(path.stem)
    made.__file__ = str(path)
    sys.modules[path.stem] = made
    exec(compile(path.read_text(), path, "exec", dont_inherit=True), made.__dict__)
    return made


def _set_zone(zone):
    os.environ.pop("TZ", None) if zone is None else os.environ.update(TZ=zone)
    time.tzset()


#: What rows change of the process: how it is asked for, and how it is set.
STATES = (
    (lambda: os.environ.get("TZ"), _set_zone),
    (os.getcwd, os.chdir),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    (gc.get_threshold, lambda sizes: gc.set_threshold(*sizes)),
    (socket.getdefaulttimeout, socket.setdefaulttimeout),
    (csv.field_size_limit, csv.field_size_limit),
    (lambda: logging.root.manager.disable, logging.disable),
    (lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)),
    (lambda: decimal.getcontext().copy(), decimal.setcontext),
    (np.geterr, lambda kinds: np.seterr(**kinds)),
    (np.getbufsize, np.setbufsize),
    (np.get_printoptions, lambda options: np.set_printoptions(**options)),
    (lambda: fnarray.config.num_threads, lambda n: fnarray.config.update("num_threads", n)),
    (lambda: fnarray.config.verify, lambda on: fnarray.config.update("verify", on)),
)


@pytest.fixture(autouse=True)
def modules_as_they_were():
    """Take back what a row does to modules that the whole process uses."""
    used = (builtins, math, operator, functools, itertools, json, np, np.linalg, jnp)
    # Loaded on first use: what was not there is not taken back.
    assert all(callable(f) for f in (jnp.sin, jnp.tan, jnp.exp))
    before = [dict(instance_dict(module)) for module in used]
    handed = set(lazy._handed_out)
    imported, states = set(sys.modules), [ask() for ask, _ in STATES]
    yield
    for (ask, change), state in zip(STATES, states, strict=True):
        if ask() != state:
            change(state)
    for name in set(sys.modules) - imported:
        if vars(sys.modules[name]).get("__spec__") is None:  # made by a row: its answers are odd
            del sys.modules[name]
    for module, values in zip(used, before, strict=True):
        for name, value in values.items():
            if instance_dict(module).get(name) is not value:
                setattr(module, name, value)
    lazy._handed_out &= handed
    if hasattr(fractions.Fraction, "zz_ten"):  # set by a row
        del fractions.Fraction.zz_ten


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return where the modules of this file are written."""
    return tmp_path_factory.mktemp("stale")


def result(program):
    """Return what a call gives, or the findings for which it is refused."""
    try:
        return np.asarray(program(X))
    except EffectError as error:
        return [f.code for f in error.findings]


@pytest.mark.parametrize("name", lost.KEPT)
def test_what_cannot_change_goes_the_same_ways(name, folder):
    """Whatever way a function goes that nobody is seen to call: what it reads decides."""
    setup, reads = lost.KEPT[name]
    row, number = Row(lost.FIXED + setup, reads, ""), len(ROWS) + list(lost.KEPT).index(name)
    assert fnarray.purity.check(module_of(row, folder, number).f) == []


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_a_change_is_seen(name, recorded, folder):
    """The new value, or a finding at the first call or the next: never the old value.

    Nor where the program was found on disk: then it was not traced, and is guarded otherwise.
    """
    row, number = ROWS[name], list(ROWS).index(name)
    # Where graphs are verified, as in all other tests, nothing is recorded.
    fnarray.config.update("verify", not recorded)
    if recorded and isinstance(result(fnarray.jit(module_of(row, folder, number).f)), list):
        return
    made = module_of(row, folder, number)
    before = result(made.f)
    program = fnarray.jit(made.f)
    first = result(program)
    if isinstance(first, list):
        assert first
        return
    np.testing.assert_allclose(first, before, rtol=1e-6)
    exec(made.CHANGE, made.__dict__)
    after = result(made.f)
    assert not np.array_equal(before, after), "the change changes nothing"
    seen = result(program)
    if isinstance(seen, list):
        assert seen
    else:
        np.testing.assert_allclose(seen, after, rtol=1e-6)


#: Rows that a process runs before, or after, their change, over one disk cache.
SAMPLE = [name for name in ROWS if name.startswith("names:")][::6] + [
    name for name in ROWS if not name.startswith("names:")
][::24]
RUN = """
import sys, runpy, types, json
import numpy as np
import fnarray, fnarray.numpy as jnp
from fnarray.api.recorded import Recorder
from fnarray.errors import EffectError
found = Recorder.found
def counted(self):
    program = found(self)
    out[path].append(program is not None)
    return program
Recorder.found = counted
changed, out = sys.argv[1] == "1", {}
for path in sys.argv[2:]:
    made = types.ModuleType(path); made.__file__ = path; sys.modules[path] = made
    exec(compile(open(path).read(), path, "exec"), made.__dict__)
    if changed:
        exec(made.CHANGE, made.__dict__)
    try:
        x = jnp.float32(1.5)
        out[path] = []
        ours, plain = np.asarray(fnarray.jit(made.f)(x)), np.asarray(made.f(x))
        out[path] = [ours.tolist(), plain.tolist(), any(out[path])]
    except EffectError:
        out[path] = "refused"
print(json.dumps(out))
"""


def test_a_change_is_seen_by_another_process(folder, cache_dir):
    """The cache on disk is warm from before the change: it gives back no old value."""
    paths = []
    for name in SAMPLE:
        path = folder / f"other_{list(ROWS).index(name)}.py"
        path.write_text(ROWS[name].source())
        paths.append(str(path))

    def run(changed):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", RUN, changed, *paths],
            check=True, capture_output=True, text=True, env=os.environ | {"FNARRAY_VERIFY": "0"},
        )  # fmt: skip
        return json.loads(done.stdout)

    before, again, after = run("0"), run("0"), run("1")
    seen = [path for path in paths if "refused" not in (before[path], after[path])]
    assert len(seen) >= 10
    assert sum(again[path][2] for path in seen) >= 10, "few are found on disk"
    for path in seen:
        for compiled, plain, _ in (before[path], again[path], after[path]):
            np.testing.assert_allclose(compiled, plain, rtol=1e-6)
        assert before[path][:2] != after[path][:2]


def test_there_are_enough_of_them():
    """The suite covers all kinds of things that can be captured."""
    assert len(ROWS) >= 1000
