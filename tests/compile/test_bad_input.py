"""Programs too large, interrupted compilations, processors that LLVM does not know."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fnarray as fa
from fnarray.compile import pipeline, room
from fnarray.compile.cache import store
from fnarray.compile.cpu import build
from fnarray.compile.cpu.native import compiler, llvm, load, machine
from fnarray.compile.cpu.processor import processor
from fnarray.compile.emit.bodies import Bodies
from fnarray.compile.emit.values import Values
from fnarray.compile.emit.writer import Writer
from fnarray.config import config
from fnarray.errors import FnarrayError, ProgramSizeError

pytestmark = pytest.mark.cpu
X = np.ones(3, np.float32)


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    """Start each test with nothing in memory and nothing on disk, and the native compiler."""
    before = config.cache_dir, config.compiler
    config.update("cache_dir", str(tmp_path))
    config.update("compiler", "auto")
    build.forget()
    pipeline._executables.clear()
    yield
    config.update("cache_dir", before[0])
    config.update("compiler", before[1])


def unrolled(x):
    def body(c, _):
        for k in range(100):
            c = c * 0.5 + k
        return c, None

    return fa.lax.scan(body, x, None, length=4)[0]


def test_a_program_too_large_names_its_largest_part(monkeypatch):
    """The error says what is large, where it stands, and what to write instead."""
    monkeypatch.setattr(room, "SMALL", 50)
    monkeypatch.setattr(room, "available", lambda: 1_000_000)
    with pytest.raises(ProgramSizeError) as caught:
        fa.jit(unrolled)(X)
    text = str(caught.value)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, FnarrayError)
    for part in ("the body of the scan at", "200 operations", "test_bad_input.py", "lax.scan"):
        assert part in text, text


def test_memory_that_runs_out_names_the_largest_part(monkeypatch):
    """Where no estimate foresaw it, planning ends in the same error, and the collector goes on."""

    def schedule(*args):
        raise MemoryError

    monkeypatch.setattr(pipeline, "schedule", schedule)
    with pytest.raises(ProgramSizeError) as caught:
        fa.jit(lambda x: unrolled(x) + 1)(X)
    text = str(caught.value)
    for part in ("the body of the scan at", "200 operations", "test_bad_input.py", "lax.scan"):
        assert part in text, text
    assert gc.isenabled()


def test_a_limit_of_address_space_is_asked_after(monkeypatch):
    """LLVM ends a process that has none left (``ulimit -v``): an error comes before, not for all.

    Kernels that are there need no compiler; where there is room for one thread, no other is begun.
    """
    x, f = np.ones(300, np.float32), lambda x: fa.numpy.sum(fa.lax.sin(x) * 3) + x
    wanted = fa.jit(f)(x)
    pipeline._executables.clear()
    monkeypatch.setattr(room, "_limit", lambda: 10_000_000)
    np.testing.assert_array_equal(fa.jit(f)(x), wanted)
    with pytest.raises(ProgramSizeError) as caught:
        fa.jit(lambda x: unrolled(x) - 1)(X)
    for part in ("the body of the scan at", "200 operations", "address space", "lax.scan"):
        assert part in str(caught.value), caught.value
    monkeypatch.setattr(room, "_limit", lambda: 250_000_000)
    monkeypatch.setattr(threading.Thread, "start", None)
    assert np.isfinite(fa.jit(lambda x: fa.numpy.sum(fa.lax.cos(x)) + fa.lax.exp(x))(x)).all()


def test_kernels_share_what_is_written_into_them():
    """One dictionary of the whole program stands for all kernels: each had a copy of its own."""

    def f(x):
        for _ in range(400):
            x = x * 0.5 + fa.lax.sin(x)
        return x

    plan = pipeline.compile_graph(fa.jit(f).trace(X).jaxpr).plan
    bodies = [region.body for region in plan.regions]
    assert len(bodies) > 2
    values = []
    for body in bodies:
        values.append(Values(Writer(), plan.limits))
        Bodies(values[-1]).emit(replace(body, items=()), {})
    assert all(v.outer is body.inlined for v, body in zip(values, bodies, strict=True))
    assert not any(v.inlined for v in values)


def test_a_program_that_fits_is_compiled(monkeypatch):
    """The memory there is decides, not the size alone; where it is unknown, nothing is refused."""
    monkeypatch.setattr(room, "SMALL", 50)
    for free in (10**9, None):
        monkeypatch.setattr(room, "available", lambda free=free: free)
        assert fa.jit(lambda x: unrolled(x))(X).shape == (3,)


def test_available_memory():
    """The system says how much there is, and a limit of the process lowers it."""
    code = (
        "import resource; from fnarray.compile.room import available; print(available());"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, resource.RLIM_INFINITY));"
        "print(available())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, limited = map(int, done.stdout.split())
    assert 0 <= limited < 2**30
    assert first >= limited


PEAK = """
import resource
import numpy as np, fnarray as fa, fnarray.numpy as fnp
x = fnp.asarray(np.ones(1000, np.float32))
fa.jit(lambda x: x + 1)(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def f(x):
    y = x
    for k in range(1000):
        y = fnp.tanh(y) * (0.5 + k / 1000) + x
    return y
fa.jit(f)(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_memory_of_3000_operations(tmp_path):
    """Compiling them adds less than 300 MB at the peak."""
    env = {**os.environ, "FNARRAY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PEAK], env=env, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 300


@pytest.mark.parametrize("where", ["emitted", "address_of", "put"])
def test_an_interrupted_compilation_leaves_nothing(monkeypatch, tmp_path, where):
    """Interrupted while LLVM works, before code is loaded, or at its file: the next call works."""
    owner = {"put": store, "address_of": load, "emitted": compiler}[where]
    plain, calls = getattr(owner, where), []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return plain(*args, **kwargs)

    load._trampoline()
    monkeypatch.setattr(owner, where, interrupted)
    f = fa.jit(lambda x: x * 7 - 1)
    with pytest.raises(KeyboardInterrupt):
        f(X)
    assert not [p for p in Path(tmp_path).rglob("*") if p.is_file() and p.suffix == ".tmp"]
    np.testing.assert_array_equal(f(X), X * 7 - 1)
    build.forget()
    np.testing.assert_array_equal(fa.jit(lambda x: x * 7 - 1)(X), X * 7 - 1)


@pytest.fixture
def unknown(monkeypatch):
    """Let LLVM know nothing of the processor but what the test says."""

    def say(name, features):
        monkeypatch.setattr(llvm, "host_name", lambda: name)
        monkeypatch.setattr(llvm, "host_features", lambda: features)
        processor.cache_clear()

    yield say
    monkeypatch.undo()
    processor.cache_clear()


@pytest.mark.parametrize(
    ("features", "told"), [("", "cannot tell"), ("+sse2", "features it reports")]
)
def test_an_unknown_processor_gets_a_baseline(unknown, features, told, capfd):
    """Its code runs, LLVM has nothing to complain of, and the report says so."""
    unknown("generic", features)
    compiled = fa.jit(lambda x: fa.numpy.exp(x) * 3).lower(X).compile()
    np.testing.assert_allclose(compiled(X), np.exp(X) * 3, rtol=1e-6)
    assert told in pipeline.compile_graph(fa.make_jaxpr(lambda x: x + 1)(X)).plan_text
    assert not machine.wide_vectors()
    assert capfd.readouterr().err == ""


def test_a_known_processor_is_not_told():
    """The report says nothing where there is nothing to say."""
    text = pipeline.compile_graph(fa.make_jaxpr(lambda x: x + 1)(X)).plan_text
    assert ("processor:" in text) == bool(processor().note)


def nested(x, levels):
    """Give a chain of branches, each in the one before it."""
    if not levels:
        return fa.lax.sin(x)
    return fa.lax.cond(x.sum() > levels, lambda x: nested(x * 1.01, levels - 1), lambda x: x, x)


def test_branches_nested_too_deep_say_where():
    """Python's parser takes 100 levels, of which a chain of 80 branches leaves enough."""
    assert fa.jit(lambda x: nested(x, 80)).lower(X).as_text().count("if ") >= 80
    with pytest.raises(ProgramSizeError, match=r"91 deep at test_bad_input\.py:\d+: .*lax\.switch"):
        fa.jit(lambda x: nested(x, 95)).lower(X).compile()
