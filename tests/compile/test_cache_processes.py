"""The cache among processes: at once, killed half-way, without rights, room or luck."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

# What every process below starts with; `use(i)` compiles or loads kernel i and checks its result.
PRELUDE = """
import os, sys, warnings
import numpy as np
from fnarray.compile.cpu import build
from fnarray.compile.cpu.build import KernelSource, kernel_name, load, stats
from fnarray.compile.cache import store
from fnarray.config import config

def src(i):
    text = f"def kernel(x, out):\\n    for i in range(len(x)):\\n        out[i] = x[i] + {i}\\n"
    return KernelSource(text, ("f64[1]", "f64[1]"))

def use(i):
    x, out = np.arange(100.0), np.zeros(100)
    load(src(i))(x, out)
    assert (out == x + i).all(), (i, out)
"""


def start(code, cache, *args, **env):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    env["FNARRAY_CACHE_DIR"] = str(cache)
    # Python 3.12 warns of a fork among threads, which is what one test is about.
    flags = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    command = [sys.executable, *flags, "-c", PRELUDE + code, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True)


def finish(process, code=0):
    out, err = process.communicate(timeout=600)
    assert process.returncode == code, err
    return out


def run(code, cache, *args, **env):
    return finish(start(code, cache, *args, **env))


def files_of_kernels(cache):
    """List the files of kernels; what calls native kernels is an entry too, without a text."""
    return [p for p in cache.iterdir() if p.with_suffix(".py").exists()]


def test_eight_processes_at_once(tmp_path):
    """Processes that compile equal and different kernels together all get theirs, whole."""
    cache = tmp_path / "cache"
    # Some start from the shared kernel, some from their own, so that writers meet.
    code = "n = int(sys.argv[1])\nfor i in ((0, n), (n, 0))[n % 2]: use(i)"
    for process in [start(code, cache, n) for n in range(1, 9)]:
        finish(process)
    assert {p.suffix for p in cache.iterdir()} == {".bin", ".py"}
    assert len(files_of_kernels(cache)) == 2 * 9
    run(
        "for i in range(9): use(i)\nassert stats['disk'] == 9 and not stats['compiled'], stats",
        cache,
    )


def test_writers_readers_and_evictions(tmp_path):
    """While processes write, read and evict in a small cache, what is read is what was written."""
    code = """
config.update("cache_size_limit", 200_000)
found = 0
for i in range(400):
    key = f"k_{i * i % 29:04x}"  # squares come back soon: a cyclic order would miss every time
    want = (key * 2000).encode()[: 20_000 - len(key)]
    got = store.get(key)
    assert got is None or got == want
    found += got is not None
    store.put(key, want)
assert found and store.info().bytes < 1_000_000
"""
    for process in [start(code, tmp_path / "cache") for _ in range(4)]:
        finish(process)


def test_killed_while_writing(tmp_path):
    """A process killed before its rename leaves no entry; the leftover is swept when old."""
    cache = tmp_path / "cache"
    code = """
from pathlib import Path
Path.replace = lambda self, target: os.kill(os.getpid(), 9)
use(1)
"""
    finish(start(code, cache), -signal.SIGKILL)
    (left,) = cache.iterdir()
    assert left.name.startswith(".fnarray-tmp-")
    os.utime(left, (time.time() - 7200,) * 2)
    run("use(1); assert stats['compiled'] == 1", cache)
    assert sorted(path.suffix for path in files_of_kernels(cache)) == [".bin", ".py"]


def test_killed_at_any_moment(tmp_path):
    """Whenever a writer dies, a reader finds a whole entry or none."""
    cache = tmp_path / "cache"
    code = """
i = 0
while True:
    i += 1
    store.put(f"k_{i % 5:02}", bytes([i % 251]) * 3_000_000)
    print(i, flush=True)
"""
    writers = [start(code, cache) for _ in range(2)]
    for last, writer in zip((3, 20), writers, strict=True):
        while int(writer.stdout.readline()) < last:
            pass
        writer.kill()
        finish(writer, -signal.SIGKILL)
    check = """
whole = [store.get(f"k_{i:02}") for i in range(5)]
assert all(w is None or w == w[:1] * 3_000_000 for w in whole)
assert any(whole)
"""
    run(check, cache)


@pytest.mark.parametrize("compiler", ["native", "numba"])
def test_damaged_object_code(tmp_path, monkeypatch, compiler):
    """A damaged kernel is compiled again by the next process, and mended for the one after."""
    monkeypatch.setenv("FNARRAY_COMPILER", compiler)
    cache = tmp_path / "cache"
    run("use(1)", cache)
    (path,) = (p for p in files_of_kernels(cache) if p.suffix == ".bin")
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 4
    for bad in (good[: len(good) // 2], flipped, b"\x7fELF"):
        path.write_bytes(bad)
        run("use(1); assert stats['compiled'] == 1, stats", cache)
    run("use(1); assert stats['disk'] == 1, stats", cache)


def test_compilers_share_a_directory_and_no_kernel(tmp_path):
    """What one compiler made no process takes up that asks for another, in whichever order."""
    cache = tmp_path / "cache"
    code = """
import fnarray, fnarray.numpy as fnp
how = sys.argv[1]
x = np.linspace(0, 3, 50, dtype=np.float32)
f = fnarray.jit(lambda x: (fnp.sin(x) * 2).sum(), effects="off")
np.testing.assert_allclose(f(x), 2 * np.sin(x).sum(), rtol=1e-5)
use(1)
assert {m.how for m in build.made.values()} == {how}, build.made
"""
    for compiler, how in (
        ("numba", "numba"),
        ("auto", "native"),
        ("native", "native"),
        ("numba", "disk"),
        ("auto", "disk"),
    ):
        run(code, cache, how, FNARRAY_COMPILER=compiler)


def test_read_only_directory(tmp_path):
    """A directory that cannot be written is read, costs one warning, and breaks nothing."""
    cache = tmp_path / "cache"
    run("use(1)", cache)
    code = """
if os.geteuid() == 0:
    # Root writes where it likes; without its capabilities it obeys the mode like everyone.
    import ctypes
    version, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(version, none) == 0
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    use(1)
    assert stats["disk"] == 1, stats
    use(2)
    use(3)
assert [w.category.__name__ for w in caught] == ["CacheWarning"], caught
"""
    cache.chmod(0o500)
    try:
        run(code, cache)
    finally:
        cache.chmod(0o700)
    assert len(files_of_kernels(cache)) == 2


def test_full_disk(tmp_path):
    """Where the object code does not fit, the kernel runs all the same, after one warning."""
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    use(1)
    use(2)
assert [w.category.__name__ for w in caught] == ["CacheWarning"], caught
"""
    cache = tmp_path / "cache"
    run(code, cache)
    assert {path.suffix for path in cache.iterdir()} == {".py"}


def test_no_home(tmp_path):
    """Without any place for a cache kernels are compiled in memory, after one warning."""
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    use(1)
    use(2)
assert [w.category.__name__ for w in caught] == ["CacheWarning"], caught
"""
    run(code, "", HOME="/dev/null", XDG_CACHE_HOME="")


def test_fork(tmp_path):
    """A child forked while other threads compile can load, and compile for itself."""
    code = """
import threading
use(1)
threads = [threading.Thread(target=use, args=(i,)) for i in (2, 3, 4)]
for thread in threads: thread.start()
child = os.fork()
if child == 0:
    use(1); use(2); use(5)
    os._exit(0)
for thread in threads: thread.join()
assert os.waitpid(child, 0)[1] == 0
"""
    run(code, tmp_path / "cache")


HELPER = """
from numba import njit
from fnarray.compile.cpu import jit
from fnarray.compile.cpu.namespace import namespace

def helper(c):
    steps = [f"    if x[{i}] > {i}.5: s = np.sin(s * {i}) + np.log(s + {i}.5) * np.exp(s - {i})"
             for i in range(40)]  # too long to be inlined
    text = "\\n".join(["def helper(x):", "    s = x[0]", *steps, "    return s * 0.0 + c"])
    scope = {"np": np, "c": c, "__name__": "numba"}
    exec(text, scope)
    return njit(scope["helper"])

def compile_calling(c, name):
    calls = "".join(f"    out[{i}] = h(x[{i}:])\\n" for i in range(5))
    scope = {**namespace(), "h": helper(c)}
    exec(f"def {name}(x, out):\\n{calls}", scope)
    return jit.dump(jit.compile_kernel(scope[name], ("f64[1]", "f64[1]")))
"""


def test_equal_helper_names_from_two_processes(tmp_path):
    """Two processes give different helpers one symbol; a third that loads both keeps them apart.

    With Numba's own code library the second kernel runs the first one's helper.
    """
    write = """
from pathlib import Path
c, path = sys.argv[1:]
Path(path).write_bytes(compile_calling(int(c) + 0.5, f"k_{c}"))
"""
    for c in (3, 4):
        run(HELPER + write, tmp_path / "cache", c, tmp_path / str(c))
    read = """
from pathlib import Path
for c in (3, 4):
    out = np.zeros(5)
    jit.rebuild((Path(sys.argv[1]) / str(c)).read_bytes())(np.ones(60), out)
    assert (out == c + 0.5).all(), (c, out)
"""
    run(HELPER + read, tmp_path / "cache", tmp_path)


def test_cached_kernels_leave_other_numba_code_alone(tmp_path):
    """A helper inside a kernel from the disk never stands in for one of the user's Numba code.

    The loader lets weak definitions, as Numba's helpers are, give way to any earlier symbol of
    their name; names hold a counter that starts anew in each process.
    """
    write = """
from pathlib import Path
Path(sys.argv[1]).write_bytes(compile_calling(3.5, "k_3"))
"""
    run(HELPER + write, tmp_path / "cache", tmp_path / "k_3")
    read = """
from pathlib import Path
out = np.zeros(5)
jit.rebuild(Path(sys.argv[1]).read_bytes())(np.ones(60), out)
assert (out == 3.5).all(), out
for k in range(4):  # one of these meets the counter of the helper above
    h = helper(10.5 + k)
    @njit
    def user(x, out):
        for i in range(5):
            out[i] = h(x[i:])
    user(np.ones(60), out)
    assert (out == 10.5 + k).all(), (k, out)
"""
    run(HELPER + read, tmp_path / "cache", tmp_path / "k_3")
