"""The native compiler: the bits of Numba's, on its own, and a reason where it gives up."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import os
import pickle
import platform
import re
import subprocess
import sys
import threading

import llvmlite.binding as llvmlite
import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu import build
from fnarray.compile.cpu.build import KernelSource, load
from fnarray.compile.cpu.native import blas, elf, kernel, machine
from fnarray.compile.cpu.native import load as loading
from fnarray.compile.cpu.native.elf import Object
from fnarray.compile.cpu.native.types import Fallback
from fnarray.config import config
from tests.compilers.compare import Report, both, compare

pytestmark = pytest.mark.cpu
#: Every so many programs of the corpus are compared here; `python -m tests.compilers` takes all.
EVERY = 53


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    """Start each test with nothing in memory and nothing on disk."""
    before = config.cache_dir, config.compiler
    config.update("cache_dir", str(tmp_path / "store"))
    build.forget()
    yield tmp_path / "store"
    config.update("cache_dir", before[0])
    config.update("compiler", before[1])


def source(text: str, *signature: str) -> KernelSource:
    return KernelSource(text, signature)


def test_same_bits_as_numba():
    """Kernels of the corpus give the same bits by both compilers, and few are left to Numba."""
    report = compare(EVERY)
    assert not report.differences, report.differences[0]
    assert len(report.kernels) >= 30
    assert len(report.fallbacks) <= 0.02 * len(report.kernels), report.reasons()


OPERATORS = ("+", "-", "*", "//", "%", "/", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=")
INTEGERS = ("i32", "i64", "u8", "u32", "u64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    """Operators on integers have Numba's meaning: at the ends of the range, by zero, by -1."""
    lines = "".join(f"        out{k}[i] = x[i] {op} y[i]\n" for k, op in enumerate(OPERATORS))
    names = ", ".join(f"out{k}" for k in range(len(OPERATORS)))
    text = f"def kernel(x, y, {names}):\n    for i in range(x.size):\n{lines}"
    kinds = ["f64" if op == "/" else "b1" if op[0] in "<>=!" else dtype for op in OPERATORS]
    report = Report()
    src = source(text, f"{dtype}[1]", f"{dtype}[1]", *(f"{k}[1]" for k in kinds))
    run = both(report, src)
    kind = np.dtype(f"{dtype[0]}{int(dtype[1:]) // 8}")
    info = np.iinfo(kind)
    values = [0, 1, 2, 7, info.max // 3, info.max, *((-1, -7, info.min) if info.min else ())]
    x, y = (g.ravel() for g in np.meshgrid(*[np.array(values, kind)] * 2))
    outs = [np.zeros(x.size, "f8" if k == "f64" else "?" if k == "b1" else kind) for k in kinds]
    run(x.copy(), y.copy(), *outs)
    assert not report.fallbacks
    assert not report.differences, report.differences[0]


def test_control_flow():
    """Loops that end early, go on, count by steps, return, and variables that change type."""
    text = """
def kernel(x, out, n):
    total, k = 0, 0
    for i in range(n - 1, -1, -2):
        if x[u(i)] < 0:
            continue
        if x[u(i)] > 90:
            break
        total += x[u(i)]
        k = i
    while True:
        k += 3
        if k > 20 or x[u(k % n)] == 7:
            break
    a, b = total, k
    a, b = b, a
    out[0] = a
    out[1] = b
    out[2] = total if k > 3 and x[0] > 0 else -k
    for j in range(2, n, 3):
        out[u(j + 1)] = j
"""
    report = Report()
    run = both(report, source(text, "f64[1]", "f64[1]", "i64"))
    for seed in range(5):
        x = np.random.default_rng(seed).uniform(-20, 100, 17)
        run(x, np.zeros(30), 17)
    assert not report.fallbacks
    assert not report.differences, report.differences[0]


@pytest.mark.parametrize(
    ("text", "signature", "reason"),
    [
        ("def kernel(x):\n    x[0] = 'word'\n", ("f32[1]",), "type str"),
        ("def kernel(x):\n    x[0, 1] = 1\n", ("f32[2]",), "tuple"),
        ("def kernel(x):\n    x[0] = np.median(x)\n", ("f32[1]",), "median"),
        ("def kernel(x):\n    x[0] = missing\n", ("f32[1]",), "missing"),
        ("def kernel(x):\n    with x:\n        pass\n", ("f32[1]",), "With"),
        ("def kernel(a, x):\n    x[0] = a\n", ("c64", "c64[1]"), "complex"),
    ],
)
def test_what_it_does_not_know_has_a_reason(text, signature, reason):
    """Text outside the subset is refused with what it holds, and an error says what to set."""
    src = KernelSource(text, signature)
    with pytest.raises(Fallback, match=reason):
        kernel.lower("k", src, None)
    config.update("compiler", "native")
    with pytest.raises(NotImplementedError, match="compiler to 'auto'"):
        load(src)


def test_fallbacks_are_counted():
    """What is left to Numba runs, and its reason is counted."""
    build.fallbacks.clear()
    config.update("compiler", "auto")
    src = source("def kernel(x, out):\n    out[0] = np.median(x)\n", "f64[1]", "f64[1]")
    out = np.zeros(1)
    load(src)(np.array([3.0, 1.0, 2.0]), out)
    assert out[0] == 2
    assert list(build.fallbacks) == ["call of median"]


def test_arguments():
    """Numbers come as Python's or NumPy's; anything else is an error, and nothing runs."""
    src = source(
        "def kernel(a, b, c, x, out):\n    out[0] = a + b\n    out[1] = x.size\n"
        "    out[2] = 1.0 if c else 0.0\n",
        "f32", "i64", "b1", "i8[3]", "f64[1]",
    )  # fmt: skip
    config.update("compiler", "native")
    call, out = load(src), np.zeros(3)
    call(np.float32(0.5), np.int32(-3), np.True_, np.zeros((2, 3, 5), np.int8), out)
    np.testing.assert_array_equal(out, [-2.5, 30, 1])
    call(1, 2, False, np.zeros((0, 3, 5), np.int8), out)
    np.testing.assert_array_equal(out, [3, 0, 0])
    x = np.zeros((1, 1, 1), np.int8)
    for bad in ((1, 2, 0, x), ("1", 2, 0, x, out), (1, 2.5, 0, x, out), (1, 2, 0, [x], out)):
        with pytest.raises(TypeError):
            call(*bad)
    np.testing.assert_array_equal(out, [3, 0, 0])


def test_the_gil_is_free():
    """Another thread runs while a kernel does."""
    config.update("compiler", "native")
    src = source(
        "def kernel(out, n):\n    x = out[0]\n    for i in range(n):\n"
        "        x = sc.add(sc.mul(x, x), i)\n    out[0] = x\n",
        "i64[1]", "i64",
    )  # fmt: skip
    thread = threading.Thread(target=load(src), args=(np.ones(1, np.int64), 200_000_000))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
    assert turns > 1000


def test_damaged_object_code_is_refused():
    """Whatever bytes come in place of object code, reading its symbols ends in one error."""
    code = machine.compiled("define void @f(ptr %x) {\nret void\n}\n")
    assert Object(code).wanted() == []
    for k in (6, 40, 63, 64, len(code) // 2, len(code) - 1):
        with pytest.raises((ValueError, Fallback)):
            Object(code[:k])
    for k in range(40, 64):
        spoiled = code[:k] + bytes([code[k] ^ 0xFF]) + code[k + 1 :]
        try:
            Object(spoiled)
        except (ValueError, Fallback):
            continue


TEXT = """
@table = internal constant [4 x i64] [i64 7, i64 11, i64 13, i64 17], align 32
declare i64 @PyLong_AsLong(ptr)
declare ptr @PyLong_FromLong(i64)
define ptr @f(ptr %x) {
%n = call i64 @PyLong_AsLong(ptr %x)
%at = getelementptr i64, ptr @table, i64 %n
%value = load i64, ptr %at
%more = call i64 @g(i64 %value)
%out = call ptr @PyLong_FromLong(i64 %more)
ret ptr %out
}
define internal i64 @g(i64 %x) noinline {
%y = add i64 %x, 1
ret i64 %y
}
"""


def find(name):
    return elf.in_process(name)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the loader knows one processor")
def test_object_code_is_placed_without_llvm():
    """Constants, functions of its own and of the process are where placed code looks for them."""
    code = machine.compiled(TEXT)
    at = elf.place(code, "f", find)
    call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(at)
    assert [call(k) for k in range(4)] == [8, 12, 14, 18]
    with pytest.raises(ValueError, match="without h"):
        elf.place(code, "h", find)
    with pytest.raises(elf.Unknown, match="PyLong"):
        elf.place(code, "f", lambda name: None)
    with pytest.raises(elf.Unknown, match="written"):
        elf.place(machine.compiled(TEXT.replace("internal constant", "global")), "f", find)


def test_damaged_object_code_is_never_placed_outside_its_memory(monkeypatch):
    """Any byte changed: it is refused, left to LLVM, or placed within its own pages; never run."""
    code = machine.compiled(TEXT)
    asked = []
    pages = elf.pages
    monkeypatch.setattr(elf, "pages", lambda size: asked.append(size) or pages(size))
    for k in range(len(code)):
        for flip in (0x01, 0x80, 0xFF):
            with contextlib.suppress(ValueError, Fallback, elf.Unknown, OSError):
                elf.place(code[:k] + bytes([code[k] ^ flip]) + code[k + 1 :], "f", find)
        with contextlib.suppress(ValueError, Fallback, elf.Unknown):
            elf.place(code[:k], "f", find)
    assert max(asked) <= 2 * len(code)  # it lives as long as the process: 32 GB were asked for once


def test_memory_is_written_or_run_never_both():
    """Placed code can be run and not written, as hardened systems ask."""
    at = elf.place(machine.compiled(TEXT), "f", find)
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        spans = [line.split()[:2] for line in maps]
    (rights,) = (
        r for span, r in spans if int(span.split("-")[0], 16) <= at < int(span.split("-")[1], 16)
    )
    assert rights == "r-xp"


PRODUCT = """
def kernel(a_, b_, out_, batch, m, k, n, left, right):
    a = flat(a_)
    b = flat(b_)
    out = flat(out_)
    fk.gemm.batched(a, b, out, batch, m, k, n, left, right)
"""
#: Batch, rows, terms and columns: vectors, matrices, and each of them empty.
SIZES = (
    (1, 1, 1, 1), (2, 1, 5, 1), (3, 1, 7, 9), (2, 8, 7, 1), (2, 33, 17, 40), (1, 128, 200, 64),
    (1, 32, 128, 513), (2, 60, 300, 193), (1, 4, 9000, 70), (1, 1, 9000, 200),
    (0, 3, 3, 3), (2, 0, 3, 3), (2, 3, 0, 3), (2, 3, 3, 0), (1, 1, 0, 1),
)  # fmt: skip
KINDS = {"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}


def numbers(dtype, *shape):
    """Draw normal numbers, complex ones where the dtype is."""
    rng = np.random.default_rng(shape)
    parts = rng.standard_normal((2, *shape)) * [[1], [dtype[0] == "c"]]
    return (parts[0] + 1j * parts[1]).astype(dtype) if dtype[0] == "c" else parts[0].astype(dtype)


@pytest.mark.parametrize(
    "code", ["f32", "c128", *(pytest.param(x, marks=pytest.mark.slow) for x in ("f64", "c64"))]
)
def test_products_are_those_of_numba(code):
    """BLAS is called as Numba calls it: the same routine for vectors and matrices of any size."""
    report, dtype = Report(), KINDS[code]
    run = both(report, source(PRODUCT, *[f"{code}[3]"] * 3, *["i64"] * 6))
    for (batch, m, k, n), left, right in itertools.product(SIZES, (0, 1), (0, 1)):
        shapes = (batch, *(k, m)[:: 2 * left - 1]), (batch, *(n, k)[:: 2 * right - 1])
        a, b = (numbers(dtype, math.prod(shape)).reshape(shape) for shape in shapes)
        out = np.empty((batch, m, n), dtype)
        run(a, b, out, batch, m, k, n, left, right)
        rows, columns = (x.swapaxes(1, 2) if turned else x for x, turned in ((a, left), (b, right)))
        np.testing.assert_allclose(out, rows @ columns, rtol=2e-4, atol=2e-4)
    assert not report.fallbacks
    assert not report.differences, report.differences[0]


@pytest.mark.parametrize("dtype", KINDS.values())
@pytest.mark.parametrize("terms", ["ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "bij,bkj->bik"])
def test_products_in_loops(dtype, terms):
    """Operands transposed or in batches, in a scan, are left to nobody, with Numba's bits."""
    n = 32
    shape = (2, n, n) if "b" in terms else (n, n)
    xs = numbers(dtype, 5 * math.prod(shape)).reshape(5, *shape) / n
    first = numbers(dtype, math.prod(shape)).reshape(shape)

    def chain(first, xs):
        def step(x, y):
            x = fnp.einsum(terms, x, y) + y
            a, b, c = fnp.exp(x), fnp.exp(-y), fnp.exp(x * y)  # one function, called
            return x, a * b + c

        return lax.scan(step, first, xs)[1]

    build.fallbacks.clear()
    results = []
    for compiler in ("native", "numba"):
        config.update("compiler", compiler)
        results.append(np.asarray(fnarray.jit(chain)(first, xs)))
        build.forget()
    assert not build.fallbacks
    np.testing.assert_array_equal(*results)


def test_products_are_code_of_their_own():
    """Kernels call a product, and skip LLVM's passes beside it; in loops it is written out."""
    add = "    for i in range(n):\n        out[i] = out[i] + x\n"
    head, kinds = PRODUCT.replace("right)", "right, x)", 1), (*["i64"] * 6, "f32")
    alone = source(head + add, *["f32[3]"] * 3, *kinds)
    module = kernel.written("k", alone, 512)
    assert module.straight
    assert len(module.library) == 1
    call, text = head.splitlines()[-1], "\n".join(head.splitlines()[:-1])
    for beside in (f"{text}\n    for _ in range(2):\n    {call}\n", head):
        of = "f32" if beside != head else "i64"  # whose products are loops
        assert not kernel.written("k", source(beside, *[f"{of}[3]"] * 3, *kinds), 512).library


@pytest.mark.parametrize("given", [None, "26"])
def test_a_library_that_is_loaded_leaves_the_environment(monkeypatch, given):
    """OpenBLAS is told how long its threads stay awake, unless the user has said it."""
    name = "OPENBLAS_THREAD_TIMEOUT"
    monkeypatch.setenv(name, given) if given else monkeypatch.delenv(name, raising=False)
    seen = []
    monkeypatch.setattr(blas.ctypes, "CDLL", lambda path: seen.append(os.environ.get(name)))
    blas._library.__wrapped__()
    assert seen == [given or "20"]
    assert os.environ.get(name) == given


def test_products_by_the_way_that_scipy_documents(monkeypatch):
    """Where SciPy's library has other names, the routines are those of its module, as Numba's."""
    src = source(PRODUCT, *["c128[3]"] * 3, *["i64"] * 6)
    assert blas.address("fnarray_zgemm")
    assert not blas.address("fnarray_zheev")
    monkeypatch.setattr(blas, "of_wheel", lambda routine: None)
    config.update("compiler", "native")
    call = load(src)
    for batch, m, k, n in SIZES[:5]:
        a, b = numbers("c16", batch * m * k), numbers("c16", batch * k * n)
        a, b, out = a.reshape(batch, m, k), b.reshape(batch, k, n), np.zeros((batch, m, n), "c16")
        call(a, b, out, batch, m, k, n, 0, 0)
        np.testing.assert_allclose(out, a @ b)


def test_products_without_blas_are_left_to_numba(monkeypatch):
    """A process without the routines says so; a cached kernel that wants them is refused."""
    src = source(PRODUCT, *["c64[3]"] * 3, *["i64"] * 6)
    code = kernel.compile_kernel("k", src)
    monkeypatch.setattr(blas, "address", lambda symbol: None)
    for held in ("_addresses", "_codes"):  # as in another process
        monkeypatch.setattr(loading, held, {})
    known = llvmlite.address_of_symbol
    monkeypatch.setattr(
        llvmlite, "address_of_symbol", lambda x: None if x.startswith("fnarray") else known(x)
    )
    with pytest.raises(LookupError, match=loading.LIBRARY):
        loading.rebuild("k", src.signature, code)
    with pytest.raises(Fallback, match="fnarray_c"):
        kernel.compile_kernel("k", src)


def test_products_beyond_the_integers_of_blas_are_refused():
    """More rows than BLAS can count are an error that says so, before anything is allocated."""
    shapes = [fnarray.ShapeDtypeStruct(s, np.float32) for s in ((2**31, 8), (4, 8, 8))]

    def chain(x, ys):
        # The driver would turn a loop of such products that wait for each other (`is_step`).
        return lax.scan(lambda c, y: (c, x @ y), (), ys)[1]

    with pytest.raises(fnarray.errors.UnsupportedOnTarget, match="2147483647"):
        fnarray.jit(chain).lower(*shapes).compile()


PROGRAM_OF_PRODUCTS = """
import sys
import numpy as np
import fnarray, fnarray.numpy as fnp
@fnarray.jit
def f(x, ys):
    return fnarray.lax.scan(lambda x, y: (fnp.tanh(x @ y), x @ y.T), x, ys)
n = 80
x, ys = np.eye(n, dtype=np.float32), np.full((3, n, n), 0.01, np.float32)
for _ in range(2):
    last, rows = f(x, ys)
want = x
for y, row in zip(ys, rows):
    np.testing.assert_allclose(row, want @ y.T, rtol=1e-5)
    want = np.tanh(want @ y)
np.testing.assert_allclose(last, want, rtol=1e-5)
from fnarray.compile.cpu.build import stats
assert stats[sys.argv[1]] > 0, stats
assert not {"numba", "scipy.special"} & set(sys.modules)
from fnarray.threads.onethread import one_thread
with one_thread:
    from threadpoolctl import threadpool_info
    held = {one["filepath"]: one["num_threads"] for one in threadpool_info()}
assert any("scipy" in path for path in held) and set(held.values()) == {1}, held
"""


def test_products_in_every_process(tmp_path):
    """Object code with products finds them in another process, held to one thread as NumPy's."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env |= {"FNARRAY_COMPILER": "native", "FNARRAY_CACHE_DIR": str(tmp_path / "cache")}
    for way in ("compiled", "disk"):
        subprocess.run(
            [sys.executable, "-c", PROGRAM_OF_PRODUCTS, way], env=env, check=True, timeout=600
        )


PROGRAM = """
import sys
import numpy as np
import fnarray, fnarray.numpy as fnp
def f(x):
    return fnp.tanh(x) * 2 + fnp.cumsum(fnp.sort(x)), fnp.exp(1j * x)
x = np.arange(6, dtype=np.float32)
want = np.tanh(x) * 2 + np.cumsum(x), np.exp(1j * x)
for got, right in zip(fnarray.jit(f)(x), want):
    np.testing.assert_allclose(got, right, rtol=1e-5)
from fnarray.compile.cpu.build import stats
assert stats[sys.argv[1]] > 0, stats
assert "numba" not in sys.modules
"""


def test_no_numba_cold_or_warm(tmp_path):
    """A process that compiles, and one that finds all it needs on disk, never import Numba."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env |= {"FNARRAY_COMPILER": "native", "FNARRAY_CACHE_DIR": str(tmp_path / "cache")}
    for way in ("compiled", "disk"):
        subprocess.run([sys.executable, "-c", PROGRAM, way], env=env, check=True, timeout=600)


def test_same_text_in_every_process(tmp_path):
    """Lowering depends on the text alone: two hash seeds give the same LLVM."""
    code = (
        "import pickle, sys\n"
        "from fnarray.compile.cpu.native import kernel\n"
        "from fnarray.compile.cpu.build import KernelSource\n"
        f"src = KernelSource({TWO_FUNCTIONS!r}, ('f32[1]', 'f32[1]', 'i64'))\n"
        "sys.stdout.buffer.write(pickle.dumps(kernel.lower('k', src, 512)))\n"
    )
    texts = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}
        out = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
        texts.append(pickle.loads(out.stdout))
    assert texts[0] == texts[1]


TWO_FUNCTIONS = """
def kernel(x, out, n):
    for i in range(n):
        t0 = vm.tanh(x[i])
        t1 = vm.tanh(t0)
        t2 = vm.tanh(t1)
        t3 = vm.exp(t2)
        out[i] = t3 + vm.log(t0)
"""


FEW_TURNS = """
def kernel(x, y, out, n):
    for i in range(n):
        for j in range(7):
            t0 = x[u(9 * i + j + 1)]
            t1 = y[u(9 * i + j)]
            out[u(9 * i + j + 2)] = sc.div(t0, t1)
"""


def is_masked(text: str) -> bool:
    """Whether a loop is ordered to be vectors with a mask."""
    hint = re.search(r"^(!\d+) = .*predicate\.enable", text, re.MULTILINE)
    return hint is not None and any(
        f"{hint[1]}}}" in x for x in text.splitlines() if "distinct" in x
    )


def test_few_turns_are_a_masked_vector_with_the_same_bits():
    """Where the machine has masks; what lies beside a row is not touched."""
    src = source(FEW_TURNS, "f64[1]", "f64[1]", "f64[1]", "i64")
    assert is_masked(kernel.lower("k", src, 512))
    assert not is_masked(kernel.lower("k", src, None))
    two = source(FEW_TURNS.replace("range(7)", "range(2)"), *src.signature)
    assert "llvm.loop" not in kernel.lower("k", two, 512)
    report = Report()
    numbers = np.arange(1.0, 91.0)
    for turns in (5, 6, 7, 8, 9, 11, 15):
        run = both(report, source(FEW_TURNS.replace("range(7)", f"range({turns})"), *src.signature))
        run(numbers, numbers[::-1].copy(), np.zeros(90), 8)
    assert not report.differences, report.differences[0]


APART = """
def kernel(x, out, n):
    for i in range(n):
        for j in range(6):
            t0 = vm.tanh(x[u(6 * i + j)])
            out[u(24 * i + 4 * j + 1)] = t0
"""


def test_few_turns_of_dear_functions_are_masked_wherever_they_store():
    """Stores apart from each other cost less than functions one by one."""
    src = source(APART, "f64[1]", "f64[1]", "i64")
    assert is_masked(kernel.lower("k", src, 512))
    assert not is_masked(
        kernel.lower("k", source(APART.replace("vm.tanh", ""), *src.signature), 512)
    )
    report = Report()
    both(report, src)(np.linspace(-3.0, 3.0, 48), np.zeros(192), 8)
    assert not report.differences, report.differences[0]


def test_called_functions_give_the_same_bits():
    """A function written once and called, in vectors and one by one, is the text it replaces."""
    src = source(TWO_FUNCTIONS, "f32[1]", "f32[1]", "i64")
    assert "vector-function-abi-variant" in kernel.lower("k", src, 512)
    report = Report()
    run = both(report, src)
    for n in (0, 1, 15, 16, 17, 1000):
        run(np.linspace(-3, 3, 1000, dtype=np.float32), np.zeros(1000, np.float32), n)
    assert not report.differences, report.differences[0]


AFTER = """
import ctypes, gc
from fnarray.compile.cpu.native import call
made = call.builtin("fnarray_made", 0)
vars(call).clear()  # as the interpreter does when it ends
gc.collect()
junk = [ctypes.create_string_buffer(bytes([255]) * 31) for _ in range(20_000)]
gc.collect()
assert made.__name__ == "fnarray_made", made.__name__
"""


def test_a_function_outlives_the_module_that_made_it():
    """What Python reads of a function of ours is there for as long as the collector may look."""
    subprocess.run([sys.executable, "-c", AFTER], check=True, timeout=600)


@pytest.mark.parametrize("compiler", ["native", "numba"])
def test_singular_complex_systems_raise_nothing(compiler):
    """Numba's complex numbers raise where they are divided by zero; and roots have their room."""
    config.update("compiler", compiler)
    a, b = np.zeros((4, 4), np.complex64), np.ones((4, 2), np.complex64)
    x, triangular, factor, root = fnarray.jit(
        lambda a, b: (
            fnp.linalg.solve(a, b),
            fnarray.scipy.linalg.solve_triangular(a, b),
            fnp.linalg.cholesky(a),
            fnarray.scipy.linalg.sqrtm(a + 4 * fnp.eye(4)),
        )
    )(a, b)
    assert not np.isfinite(x).any()
    assert not np.isfinite(triangular).any()
    assert np.isnan(np.asarray(factor)[np.tril_indices(4)]).all()
    np.testing.assert_allclose(root, 2 * np.eye(4), atol=1e-6)
