"""Kernels: compiled to the right types, loaded from disk to the same results, isolated."""

from __future__ import annotations

import linecache
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fnarray.compile.cache import store
from fnarray.compile.cache.key import object_name
from fnarray.compile.cpu import build, jit
from fnarray.compile.cpu.build import KernelSource, kernel_name, load, stats
from fnarray.compile.cpu.namespace import CODES, python_function
from fnarray.compile.cpu.native import machine
from fnarray.compile.cpu.native.call import TRAMPOLINE
from fnarray.config import config
from fnarray.config import log_compiles as logging_compiles

AXPY = """
def kernel(a, x, y, out, start, stop):
    xs = x[start:stop]
    ys = y[start:stop]
    outs = out[start:stop]
    for i in range(stop - start):
        outs[i] = a * xs[i] + ys[i]
"""
AXPY_TYPES = ("f32", "f32[1]", "f32[1]", "f32[1]", "i64", "i64")
DTYPES = tuple(CODES)


def numpy_dtype(code):
    return np.dtype("?" if code == "b1" else f"{code[0]}{int(code[1:]) // 8}")


@pytest.fixture(autouse=True, params=["auto", "numba"])
def fresh(tmp_path, request):
    """Start each test with nothing in memory and nothing on disk, by either compiler."""
    before = config.cache_dir, config.compiler
    config.update("cache_dir", str(tmp_path / "store"))
    config.update("compiler", request.param)
    build.forget()
    yield tmp_path / "store"
    config.update("cache_dir", before[0])
    config.update("compiler", before[1])


def axpy(offset=0):
    """Return a kernel unlike any other offset's."""
    text = AXPY if offset == 0 else AXPY.replace("ys[i]\n", f"ys[i] + f32({offset})\n")
    return KernelSource(text, AXPY_TYPES)


def check(kernel, offset=0):
    """Compare with NumPy on part of an array; the rest must stay as it was."""
    x, y = np.random.default_rng(0).random((2, 37), dtype=np.float32)
    out = np.full(37, np.nan, np.float32)
    assert kernel(np.float32(1.5), x, y, out, 3, 30) is None
    want = np.float32(1.5) * x + y + np.float32(offset)
    np.testing.assert_allclose(out[3:30], want[3:30], rtol=1e-6)
    assert np.isnan(out[:3]).all()
    assert np.isnan(out[30:]).all()


def counted(src):
    """Load, and say which way the kernel came."""
    before = dict(stats)
    kernel = load(src)
    (way,) = (w for w in ("memory", "disk", "compiled") if stats[w] != before[w])
    return kernel, way


def test_memory_disk_compiled(fresh):
    """A kernel is compiled once, then found in memory, then, by a new start, on disk."""
    for way in ("compiled", "memory", "memory"):
        kernel, got = counted(axpy())
        assert got == way
        check(kernel)
    build.forget()
    kernel, got = counted(axpy())
    assert got == "disk"
    check(kernel)
    assert stats["compile_seconds"] > 0
    ours = {kernel_name(axpy()) + suffix for suffix in (".bin", ".py")}
    # What calls native kernels is an entry too, made by the first process that needs it.
    assert {p.name for p in fresh.iterdir()} - {object_name(TRAMPOLINE) + ".bin"} == ours


@pytest.mark.parametrize("code", DTYPES)
def test_every_dtype(code):
    """Scalars and arrays of every dtype go in and out unchanged, compiled and from disk."""
    src = KernelSource(
        "def kernel(a, x, out):\n    out[0] = a\n    out[1] = x[1]\n    out[2] = x[0]\n",
        (code, f"{code}[1]", f"{code}[1]"),
    )
    dtype = numpy_dtype(code)
    x = np.array([0, 1], dtype) if code == "b1" else np.array([3, 2], dtype)
    if code[0] in "iu":
        x[0] = np.iinfo(dtype).max
    for _ in range(2):
        out = np.zeros(3, dtype)
        load(src)(x[0], x, out)
        np.testing.assert_array_equal(out, [x[0], x[1], x[0]], strict=False)
        build.forget()


@pytest.mark.parametrize("rank", range(5))
def test_every_rank(rank):
    """Arrays of any rank are indexed as NumPy does."""
    at = ", ".join(["1"] * rank) or "()"
    src = KernelSource(f"def kernel(x, out):\n    out[{at}] = x[{at}]\n", (f"f64[{rank}]",) * 2)
    x, out = np.random.default_rng(0).random((2,) * rank), np.zeros((2,) * rank)
    load(src)(np.asarray(x), out)
    at = (1,) * rank
    assert out[at] == np.asarray(x)[at]
    assert np.count_nonzero(out) == 1


def test_namespace():
    """Kernel text reaches NumPy, math, the constants, dtypes and helpers by their short names."""
    text = (
        "def kernel(x, out):\n    v = flat(x)\n    out[0] = math.sqrt(v[u(3)])\n    out[1] = inf\n"
        "    out[2] = nan\n    out[3] = f64(i32(np.floor(v[1] + 0.5)))\n"
    )
    out = np.zeros(4)
    load(KernelSource(text, ("f64[2]", "f64[1]")))(np.array([[1.0, 2.0], [3.0, 16.0]]), out)
    np.testing.assert_array_equal(out, [4, np.inf, np.nan, 2])


def test_ieee_division():
    """Dividing by zero gives infinities and NaN, as NumPy does, and raises nothing."""
    src = KernelSource("def kernel(x, y):\n    y[0] = x[0] / x[1]\n", ("f32[1]", "f32[1]"))
    for top, want in ((1, np.inf), (-1, -np.inf), (0, np.nan)):
        out = np.zeros(1, np.float32)
        load(src)(np.array([top, 0], np.float32), out)
        np.testing.assert_array_equal(out, want)


def test_source_is_a_file_to_read(fresh):
    """The text on disk defines the function under its content name, with a header."""
    kernel, name = load(axpy()), kernel_name(axpy())
    text = (fresh / f"{name}.py").read_text()
    assert text == build.source(axpy())
    assert text.startswith(f"# {name}(f32, f32[1], f32[1], f32[1], i64, i64)\n# fnarray ")
    assert f"def {name}(a, x, y, out, start, stop):" in text
    assert kernel.__name__ == name


def test_memory_only_source_can_be_shown(request):
    """Where nothing can be written, tracebacks still find the text."""
    before = config.cache_size_limit
    request.addfinalizer(lambda: config.update("cache_size_limit", before))
    config.update("cache_size_limit", 0)
    check(load(axpy()))
    name = kernel_name(axpy())
    assert f"def {name}(" in "".join(linecache.getlines(f"<fnarray {name}>"))
    linecache.checkcache()
    assert linecache.getlines(f"<fnarray {name}>")


@pytest.mark.parametrize(
    ("text", "signature", "match"),
    [
        ("def other(x): ...", ("f32[1]",), "def kernel"),
        ("def kernel(x): ...\ndef kernel(x): ...\n", ("f32[1]",), "got 2"),
        ("def kernel(x): ...", ("f16[1]",), r"got 'f16\[1\]'"),
        ("def kernel(x): ...", ("f32[1][2]",), "codes such as"),
        ("def kernel(x): ...", ("",), "codes such as"),
    ],
)
def test_wrong_sources_are_explained(text, signature, match):
    """A malformed source names what was expected and what came."""
    with pytest.raises(ValueError, match=match):
        load(KernelSource(text, signature))


def test_rejected_text_names_its_file(fresh):
    """What Numba refuses is reported with the file that holds the text, each time."""
    from numba.core.errors import TypingError

    src = KernelSource("def kernel(x):\n    x[0] = 'word'\n", ("f32[1]",))
    for _ in range(2):
        with pytest.raises(TypingError) as caught:
            load(src)
        (note,) = caught.value.__notes__
        path = Path(note.split()[2].rstrip(","))
        assert "'word'" in path.read_text()


def test_threads_compile_once():
    """Eight threads that ask for one kernel at once share one compilation."""
    before, barrier = stats["compiled"], threading.Barrier(8)

    def ask(_):
        barrier.wait()
        return load(axpy())

    with ThreadPoolExecutor(8) as pool:
        kernels = list(pool.map(ask, range(8)))
    assert stats["compiled"] == before + 1
    assert len(set(map(id, kernels))) == 1
    check(kernels[0])


def test_threads_compile_different_kernels():
    """Threads that compile different kernels at once each get their own."""
    with ThreadPoolExecutor(4) as pool:
        kernels = list(pool.map(load, map(axpy, range(1, 5))))
    for offset, kernel in enumerate(kernels, 1):
        check(kernel, offset)


def missing_symbol(good):
    if good.startswith(build.OBJECT):
        return machine.compiled(
            "declare void @no_such_function()\n"
            f"define void @{kernel_name(axpy())}(ptr %frame) {{\n"
            "call void @no_such_function()\nret void\n}\n"
        )
    external, state = jit.serialize.loads(good)
    return jit.serialize.dumps(([*external, "no_such_function"], state))


@pytest.mark.parametrize(
    "spoil",
    [lambda good: b"", lambda good: b"noise", lambda good: good[:-9], missing_symbol],
    ids=["empty", "noise", "cut", "missing symbol"],
)
def test_unusable_payload_is_compiled_again(spoil, caplog):
    """An entry that is intact but cannot be loaded is replaced by a new compilation."""
    load(axpy())
    name = kernel_name(axpy())
    store.put(name, spoil(store.get(name)))
    build.forget()
    kernel, way = counted(axpy())
    assert way == "compiled"
    assert "compiled again" in caplog.text
    check(kernel)
    build.forget()
    assert counted(axpy())[1] == "disk"


def test_flipped_bits_are_compiled_again(fresh):
    """Damage anywhere in the object code costs a compilation, never a wrong kernel."""
    load(axpy())
    path = fresh / f"{kernel_name(axpy())}.bin"
    good = path.read_bytes()
    for part in (0.01, 0.5, 0.9):
        bad = bytearray(good)
        bad[int(part * len(bad))] ^= 1
        path.write_bytes(bad)
        build.forget()
        kernel, way = counted(axpy())
        assert way == "compiled"
        check(kernel)


def test_helpers_stay_private():
    """Nothing but the kernel and its wrapper can be seen, or replaced, by other kernels."""
    text = "def kernel(x, out):\n    out[0] = np.median(x)\n    out[1] = np.sort(x)[0]\n"
    src = KernelSource(text, ("f64[1]", "f64[1]"))
    function = python_function("kernel", src.text, "<test>")
    library = jit.compile_kernel(function, src.signature).library
    visible = [f.name for f in library.get_defined_functions() if f.linkage.name != "internal"]
    assert len(visible) == 2, visible
    out = np.zeros(2)
    load(src)(np.array([3.0, 1.0, 2.0]), out)
    np.testing.assert_array_equal(out, [2, 1])


def test_elementwise_kernel_is_vectorised():
    """A straight loop becomes vector instructions."""
    function = python_function("kernel", AXPY, "<test>")
    assembly = jit.compile_kernel(function, AXPY_TYPES).library.get_llvm_str()
    assert "x float>" in assembly


def test_log(caplog):
    """Compilations are logged, loudly when asked."""
    with logging_compiles(True), caplog.at_level(logging.WARNING, "fnarray.compile"):
        load(axpy())
    assert f"compiled {kernel_name(axpy())}" in caplog.text


def test_without_the_jit(fresh):
    """``NUMBA_DISABLE_JIT=1`` runs the text as Python, and leaves no object code."""
    code = (
        "import types, numpy as np\nfrom fnarray.compile.cpu.build import *\n"
        f"k = load(KernelSource({AXPY!r}, {AXPY_TYPES!r}))\n"
        "x = np.arange(4, dtype='f'); out = np.zeros(4, 'f')\n"
        "k(np.float32(2), x, x, out, 0, 4)\n"
        "assert isinstance(k, types.FunctionType) and (out == 3 * x).all()\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env |= {"NUMBA_DISABLE_JIT": "1", "FNARRAY_CACHE_DIR": str(fresh)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=600)
    assert [path.suffix for path in fresh.iterdir()] == [".py"]
