"""Kernels of one program are compiled on threads: the same code, and nothing is left behind."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from llvmlite.binding import ffi

import fnarray as fa
import fnarray.numpy as fnp
from fnarray.compile import pipeline
from fnarray.compile.cache import store
from fnarray.compile.cpu import build, launch, together
from fnarray.compile.cpu.build import KernelSource, kernel_name
from fnarray.compile.cpu.native import compiler, llvm, machine
from fnarray.compile.cpu.native.types import Fallback
from fnarray.config import config, scoped

SCALE = "def kernel(x, out):\n    for i in range(x.shape[0]):\n        out[i] = {}\n"
KINDS = ("f32[1]", "f32[1]")
X = np.linspace(-1, 1, 67, dtype=np.float32)


def scaled(k):
    return KernelSource(SCALE.format(f"x[i] * f32({k})"), KINDS)


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """Nothing in memory or on disk; the native compiler, and four threads on any machine."""
    build.forget()
    before = config.cache_dir, config.compiler
    config.update("cache_dir", str(tmp_path / "store"))
    config.update("compiler", "auto")
    monkeypatch.setattr(launch, "_cores", 4)
    yield
    config.update("cache_dir", before[0])
    config.update("compiler", before[1])
    assert not [t for t in threading.enumerate() if t.name.startswith("fnarray compiler")]
    assert not machine._inside


@pytest.fixture
def meeting(monkeypatch):
    """Let LLVM begin only once two threads are there; who was is in the list."""
    plain, both, who = compiler.emitted, threading.Barrier(2), []

    def emitted(*args, **kwargs):
        who.append(threading.current_thread().name)
        both.wait(30)
        return plain(*args, **kwargs)

    build.load(scaled(0.5))  # with what calls it, which is compiled by whoever needs it first
    monkeypatch.setattr(compiler, "emitted", emitted)
    return who


def test_two_kernels_are_in_llvm_at_once(meeting):
    """Both are compiled, by two threads that are there at the same time, in the caller's order."""
    told = []
    kernels = build.load_all([scaled(2), scaled(3), scaled(2)], told.append)
    assert len(set(meeting)) == 2
    assert told == [1, 2]
    for kernel, k in zip(kernels, (2, 3, 2), strict=True):
        out = np.empty_like(X)
        kernel(X, out)
        np.testing.assert_array_equal(out, X * np.float32(k))


def test_a_setting_of_the_caller_holds_on_its_threads(meeting, caplog):
    """What is scoped in the thread that calls is so where its kernels are compiled."""
    with scoped("log_compiles", True), caplog.at_level(logging.WARNING, "fnarray.compile"):
        build.load_all([scaled(2), scaled(3)], lambda n: None)
    assert sum("compiled k_" in record.message for record in caplog.records) == 2


def test_threads_write_the_code_that_one_writes():
    """Object code does not depend on which thread wrote it, or on what others were doing."""
    sources = [scaled(k) for k in range(40)]
    with scoped("num_threads", 1):
        build.load_all(sources, lambda n: None)
    alone = [store.get(kernel_name(s)) for s in sources]
    store.clear()
    build.forget()
    build.load_all(sources, lambda n: None)
    assert [store.get(kernel_name(s)) for s in sources] == alone


def test_what_is_there_starts_no_thread(monkeypatch):
    """One kernel, kernels in memory, and kernels on disk are the caller's own to get."""
    sources = [scaled(k) for k in range(3)]
    build.load_all(sources, lambda n: None)
    monkeypatch.setattr(together, "share", None)
    for forget in (lambda: None, build.forget):
        forget()
        assert len(build.load_all(sources, lambda n: None)) == 3
    build.load_all([scaled(9)], lambda n: None)


def test_an_error_on_a_thread_is_the_callers():
    """The first error ends all, with its note; what was compiled before it stays."""
    good, bad = scaled(2), KernelSource("def kernel(x):\n    x[0] = 'a word'\n", ("f32[1]",))
    with scoped("compiler", "native"), pytest.raises(NotImplementedError) as caught:
        build.load_all([good, bad, *map(scaled, range(3, 60))], lambda n: None)
    assert "while compiling" in caught.value.__notes__[0]
    (kernel,) = build.load_all([good], lambda n: None)
    out = np.empty_like(X)
    kernel(X, out)
    np.testing.assert_array_equal(out, X * 2)


def test_threads_that_cannot_be_started_are_not_needed(monkeypatch):
    """Where the system gives no thread, the caller compiles all."""

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert len(build.load_all([scaled(2), scaled(3)], lambda n: None)) == 2


# The signal may come as Python has opened a file and nobody has it yet: it says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_ends_the_threads_first(monkeypatch):
    """Interrupted while threads compile, the call ends when they have; the next one works."""
    plain, caller, begun = compiler.emitted, threading.get_ident(), []
    interrupted = threading.Event()

    def interrupt(*_):
        interrupted.set()
        raise KeyboardInterrupt

    def emitted(*args, **kwargs):
        begun.append(threading.get_ident())
        if len(begun) == 2:
            signal.pthread_kill(caller, signal.SIGUSR1)
        if threading.get_ident() != caller:
            interrupted.wait(60)
        return plain(*args, **kwargs)

    build.load(scaled(0.5))
    monkeypatch.setattr(compiler, "emitted", emitted)
    sources = [scaled(k) for k in range(200)]
    before = signal.signal(signal.SIGUSR1, interrupt)  # workers of pytest's ignore SIGINT
    try:
        with pytest.raises(KeyboardInterrupt):
            build.load_all(sources, lambda n: None)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(begun) < 200
    assert not list(store.directory().glob("*.tmp"))
    assert len(build.load_all(sources, lambda n: None)) == 200


def test_functions_take_what_llvmlite_declares():
    """Each parameter and result is of the type that llvmlite gives it, where it gives one."""
    letters = {kind: letter for letter, kind in llvm.TYPES.items()}

    def letter(kind):
        opaque = issubclass(kind, ctypes._Pointer) and kind is not llvm.TYPES["o"]
        return "p" if opaque else letters[kind]

    for name, (result, takes, _) in llvm.FUNCTIONS.items():
        declared = getattr(ffi.lib, f"LLVMPY_{name}")
        if declared.argtypes is not None:
            assert "".join(map(letter, declared.argtypes)) == takes, name
        if declared.restype not in (None, ctypes.c_int):  # that is ctypes' own, of what is void
            assert letter(declared.restype) == result, name


def test_another_llvmlite_is_asked_first(monkeypatch):
    """Where its functions are ours it compiles; others, or with other arguments, are not called."""
    monkeypatch.setattr(llvm, "KNOWN", ("0.0.",))
    do = llvm.functions.__wrapped__()
    do["ContextDispose"](do["ContextCreate"]())
    for functions in ({"NoSuch": ("", "", False)}, {"ParseAssembly": ("p", "psoo", True)}):
        monkeypatch.setattr(llvm, "FUNCTIONS", functions)
        with pytest.raises(Fallback, match="an llvmlite"):
            llvm.functions.__wrapped__()


def test_refused_text_is_said_and_disposed_of():
    """LLVM's own words come with the refusal."""
    with pytest.raises(Fallback, match="expected"):
        machine.compiled("define nonsense")


FORKS = """
import os, sys, threading
import numpy as np
from fnarray.compile.cpu import build, launch
from fnarray.compile.cpu.build import KernelSource
launch._cores = 4
def source(k):
    head = "def kernel(x, out):\\n    for i in range(x.shape[0]):\\n"
    body = f"        out[i] = x[i] * f32({k}) + vm.tanh(x[i])\\n"
    return KernelSource(head + body, ("f32[1]", "f32[1]"))
def work(first, count):
    kernels = build.load_all([source(first + k) for k in range(count)], lambda n: None)
    x, out = np.ones(9, np.float32), np.empty(9, np.float32)
    for k, kernel in enumerate(kernels):
        kernel(x, out)
        assert np.allclose(out, first + k + np.tanh(1)), (first + k, out)
work(500, 2)  # a child that is forked in the middle of an import waits for it for ever
ended = threading.Event()
def spin():
    while not ended.is_set():
        [{"a": [k]} for k in range(1000)]
def compiling():
    try:
        work(0, 60)
    finally:
        ended.set()
threads = [threading.Thread(target=spin), threading.Thread(target=compiling)]
for t in threads:
    t.start()
forked = 0
while not ended.is_set() and forked < 12:
    child = os.fork()
    if not child:
        try:
            work(1000, 3)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    forked += 1
    assert os.waitpid(child, 0)[1] == 0
for t in threads:
    t.join()
print(forked)
"""


def test_forks_and_threads_of_python_while_kernels_are_compiled(tmp_path):
    """Children that are forked in the middle compile too; the parent's kernels come out right."""
    env = {**os.environ, "FNARRAY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS],
        env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1


def test_a_child_loads_what_a_thread_was_loading(monkeypatch):
    """Forked while another thread makes a program's kernels, a child makes its own, and runs."""
    held, begun = threading.Event(), threading.Event()

    def later(sources, tell):
        begun.set()
        held.wait(60)
        return build.load_all(sources, tell)

    executable = pipeline.compile_graph(fa.make_jaxpr(lambda x: x * 3 + 1)(X))
    target = executable.target
    executable.target = replace(target, build=later)
    thread = threading.Thread(target=executable.load)
    thread.start()
    begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that threads are there is what this is about
        child = os.fork()
    if not child:
        signal.alarm(60)  # its default ends the process
        executable.target = target
        os._exit(not np.array_equal(executable.run(X)[0], X * 3 + 1))
    held.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_program_of_many_kernels():
    """Its results are those of NumPy, by threads and by one."""

    def f(x):
        for _ in range(12):
            x = fnp.tanh(x - fnp.mean(x, axis=0)) @ x.T
        return x

    a = np.random.default_rng(0).standard_normal((9, 9), np.float32) / 3
    want = a.astype(float)
    for _ in range(12):
        want = np.tanh(want - want.mean(0)) @ want.T
    np.testing.assert_allclose(fa.jit(f)(a), want, rtol=2e-4, atol=2e-5)
