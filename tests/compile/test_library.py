"""Functions that kernels call: compiled once for all of them, the bits of the pasted text."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from fnarray.compile.cache import store
from fnarray.compile.cpu import build
from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.cpu.native import kernel, load, machine, shared, statements
from fnarray.compile.cpu.native.widen import widened
from fnarray.config import config
from tests.compilers.compare import Report, both

pytestmark = pytest.mark.cpu
TEXT = "def kernel(x, out):\n    for i in range(x.size):\n        t0 = x[i]\n"


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """Start each test with nothing in memory and nothing on disk."""
    before = config.cache_dir, config.compiler
    config.update("cache_dir", str(tmp_path / "store"))
    config.update("compiler", "native")
    monkeypatch.setattr(load, "_addresses", {})
    monkeypatch.setattr(load, "_codes", {})
    build.forget()
    yield tmp_path / "store"
    config.update("cache_dir", before[0])
    config.update("compiler", before[1])


@pytest.fixture
def texts(monkeypatch):
    """What is handed to LLVM."""
    seen, compiled = [], machine.compiled
    monkeypatch.setattr(
        machine, "compiled", lambda text, *a, **k: (seen.append(text), compiled(text, *a, **k))[1]
    )
    return seen


def source(function: str, turns: int = shared.USES, dtype: str = "f32", shift: float = 0.5):
    steps = [f"        t{k + 1} = vm.{function}(t{k}) + {dtype}({shift})\n" for k in range(turns)]
    text = f"{TEXT}{''.join(steps)}        out[i] = t{turns}\n"
    return KernelSource(text, (f"{dtype}[1]", f"{dtype}[1]"))


def run(src: KernelSource, size: int = 37) -> np.ndarray:
    dtype = np.dtype(f"f{int(src.signature[0][1:3]) // 8}")
    out = np.zeros(size, dtype)
    build.load(src)(np.linspace(0.1, 3, size).astype(dtype), out)
    return out


def defining(texts, kind: str) -> int:
    """How many modules are those of the library."""
    return len([x for x in texts if re.search(f"define (<[0-9]+ x )?{kind}>? @{load.LIBRARY}", x)])


def test_kernels_share_what_they_call(texts):
    """The second kernel that calls a function compiles it no more, in this process or another."""
    run(source("tanh"))
    # That of vectors: that of numbers is one number of it, where only a loop's rest calls it.
    assert defining(texts, "float") == 1
    run(source("tanh", shift=0.25))
    assert defining(texts, "float") == 1
    load._addresses.clear()
    load._codes.clear()
    run(source("tanh", shift=0.75))
    assert defining(texts, "float") == 1
    run(source("exp"))
    run(source("tanh", dtype="f64"))
    assert (defining(texts, "float"), defining(texts, "double")) == (2, 1)


def test_a_kernel_of_the_cache_finds_what_it_calls(texts):
    """In another process, where nothing is compiled."""
    src = source("tanh")
    want = run(src)
    for table in (load._addresses, load._codes):
        table.clear()
    build.forget()
    done, found = len(texts), build.stats["disk"]
    np.testing.assert_array_equal(run(src), want)
    assert (len(texts), build.stats["disk"]) == (done, found + 1)


@pytest.mark.parametrize("damage", [b"", b"\x7fELF\x02\x01 no code", None])
def test_what_a_kernel_calls_is_lost(fresh, damage):
    """Removed or damaged: the kernel and what it calls are compiled again."""
    src = source("tanh")
    want = run(src)
    names = set(load._codes)
    for key in (name.removeprefix(load.LIBRARY) for name in names):
        if damage is None:
            (path,) = fresh.glob(f"{key}*")
            path.unlink()
        else:
            store.put(key, damage)
    load._addresses.clear()
    load._codes.clear()
    build.forget()
    compiled = build.stats["compiled"]
    np.testing.assert_array_equal(run(src), want)
    assert build.stats["compiled"] == compiled + 1
    assert load._codes.keys() == names


def test_another_directory_has_it_as_well(tmp_path):
    """Where the cache is another one since, it gets what its kernels call."""
    run(source("tanh"))
    config.update("cache_dir", str(tmp_path / "other"))
    src = source("tanh", shift=0.25)
    want = run(src)
    load._addresses.clear()
    load._codes.clear()
    build.forget()
    compiled = build.stats["compiled"]
    np.testing.assert_array_equal(run(src), want)
    assert build.stats["compiled"] == compiled


PROGRAM = """
import sys
import numpy as np
import fnarray, fnarray.numpy as fnp
def f(x):
    return fnp.tanh(fnp.tanh(fnp.tanh(x) + 1) * 2)
x = np.linspace(-1, 1, 50, dtype=np.float32)
np.testing.assert_allclose(fnarray.jit(f)(x), np.tanh(np.tanh(np.tanh(x) + 1) * 2), rtol=1e-5)
from fnarray.compile.cpu.build import stats
assert stats[sys.argv[1]] > 0, stats
"""


def test_processes_share_what_kernels_call(tmp_path):
    """A second process computes with what the first one compiled."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FNARRAY_COMPILER": "native"}
    env["FNARRAY_CACHE_DIR"] = str(tmp_path / "cache")
    for way in ("compiled", "disk"):
        subprocess.run([sys.executable, "-c", PROGRAM, way], env=env, check=True, timeout=600)


FUNCTIONS = ("tanh", "exp", "log", "sin", "cos", "expm1", "log1p", "atan", "sinh", "cbrt", "erf")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_bits_are_those_of_the_pasted_text(function, dtype):
    """By Numba, which pastes: at the length of vectors, around it, and for what is no number."""
    report = Report()
    src = source(function, dtype=dtype)
    run = both(report, src)
    kind = np.dtype(f"f{int(dtype[1:]) // 8}")
    random = np.random.default_rng(0)
    for n in (1, 7, 8, 16, 33):
        run(random.normal(0, 3, n).astype(kind), np.zeros(n, kind))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, -1e30, 1e-40, 700.0, -745.0, 88.8, 1e5]
    with np.errstate(over="ignore"):
        numbers = np.array(special * 3).astype(kind)
    run(numbers, np.zeros_like(numbers))
    assert not report.differences, report.differences[0]
    assert not report.fallbacks


def test_straight_text_is_widened():
    """Types, constants and functions become those of vectors; names stay."""
    text = "%t$0 = call float @llvm.fma.f32(float 0x3FF0000000000000, float %a0, float 2.0)"
    wide, declared = widened(text + "\n%t$1 = fcmp olt float %t$0, -2.0\nret i1 %t$1", 4)
    vector = "<4 x float>"
    one, two = f"{vector} splat (float 0x3FF0000000000000)", "splat (float 2.0)"
    assert [line.replace(" ", "") for line in wide.splitlines()] == [
        line.replace(" ", "")
        for line in (
            f"%t$0 = call {vector} @llvm.fma.v4f32({one}, {vector} %a0, {vector} {two})",
            f"%t$1 = fcmp olt {vector} %t$0, splat (float -2.0)",
            "ret <4 x i1> %t$1",
        )
    ]
    assert declared == {"llvm.fma.v4f32": (vector, (vector,) * 3)}


@pytest.mark.parametrize(
    "line",
    [
        "%t$0 = load float, ptr %a0",
        "%t$0 = getelementptr [3 x float], ptr @table, i64 0, i64 %a0",
        "%t$0 = call float @sinf(float %a0)",
        "%t$0 = call i32 @llvm.ctlz.i32(i32 %a0, i1 false)",
        "%t$0 = frem float %a0, 2.0",
    ],
)
def test_what_is_not_numbers_alone_stays_a_loop(line):
    """Memory, other functions, and instructions that no machine has for vectors."""
    assert widened(line, 8) is None


def test_the_page_shows_what_is_called():
    """The assembly of a kernel includes that of the functions that it calls."""
    assert load.LIBRARY in kernel.assembly_of("k", source("tanh"))


SOLVE = "def kernel(a, b, out, w):\n    fk.linalg.linear_solve(a, b, out, 1, {n}, 1)\n"


def test_what_solves_equations_is_compiled_once_for_each_size():
    """Kernels of one size call the same code, others another; in loops it is written out."""

    def called(text: str) -> dict[str, shared.Shared]:
        return dict(kernel.written("k", KernelSource(text, ("f32[1]",) * 4), None).library)

    three, beside, thirty = (
        called(SOLVE.format(n=n) + more)
        for n, more in ((3, ""), (3, "    w[0] = out[1]\n"), (30, ""))
    )
    assert three == beside
    assert not three.keys() & thirty.keys()
    assert [x.light for x in (*three.values(), *thirty.values())] == [True, False]
    head, call = SOLVE.format(n=3).splitlines()
    assert not called(f"{head}\n    for _ in range(2):\n    {call}\n")


def test_a_kernel_of_calls_alone_has_nothing_to_improve():
    """It goes to code generation as it is; one that computes beside a call does not."""
    alone, beside = (
        kernel.written("k", KernelSource(SOLVE.format(n=3) + more, ("f32[1]",) * 4), None)
        for more in ("", "    w[0] = out[1] + out[2]\n")
    )
    assert (alone.straight, beside.straight) == (True, False)


def test_few_arguments_are_unpacked_where_the_text_is():
    """The kernel is one function then; where nothing is vectors for sure, it stays two."""
    text = kernel.written("k", source("tanh"), 256).text()
    assert re.findall(r"^define .*@(k[.\w]*)\(", text, re.MULTILINE) == ["k"]
    text = kernel.written("k", KernelSource(SCALARS, ("f32[1]",) * 2), 256).text()
    assert re.findall(r"^define .*@(k[.\w]*)\(", text, re.MULTILINE) == ["k.text", "k"]


SCALARS = "def kernel(x, out):\n    for i in range(x.size):\n        out[0] = x[i] - out[0]\n"


def test_texts_that_another_process_wrote_are_read(monkeypatch, fresh):
    """Functions of their own are looked up by what they are of; other kinds are written anew."""
    texts, written = [], []
    define = statements.define

    def counted(module, function, args):
        written.append(function.__name__)
        return define(module, function, args)

    monkeypatch.setattr(statements, "define", counted)
    for kind in ("f32[1]", "f32[1]", "f64[1]"):
        monkeypatch.setattr(shared, "_alone", {})  # as in another process
        src = KernelSource(SOLVE.format(n=3), (kind,) * 4)
        found = kernel.written("k", src, None)
        texts.append((found.text(), found.library))
    assert texts[0] == texts[1] != texts[2]
    assert written.count("linear_solve") == 2
    assert len(list(fresh.glob("t_*.bin"))) == 2
    store.clear()
    assert not list(fresh.glob("t_*"))


def test_functions_of_one_name_are_told_apart_by_what_they_close_over():
    """Radices of both precisions are one text of sources; what has no name is not kept."""

    def made(closed):
        def inner(x):
            return closed, x

        return inner

    for one, other in ((2, 3), (np.float32, np.float64), (made(2), made(3)), ((1, 2), (1, 3))):
        assert shared._place((made(one), None)) == shared._place((made(one), None)) != ""
        assert shared._place((made(one), None)) != shared._place((made(other), None))
    assert shared._place((made(object()), None)) == ""


def test_what_solves_equations_alone_has_numbas_bits():
    """The solution is NumPy's, and both compilers have the same bits."""
    n = 3
    a = np.random.default_rng(n).standard_normal((n, n)).astype("f") + 3 * np.eye(n, dtype="f")
    b, out = np.ones(n, "f"), np.zeros(n, "f")
    report = Report()
    src = KernelSource(SOLVE.format(n=n), ("f32[1]",) * 4)
    both(report, src)(a.ravel(), b, out, np.zeros(1, "f"))
    assert not report.fallbacks
    assert not report.differences, report.differences[0]
    np.testing.assert_allclose(out, np.linalg.solve(a, b), rtol=1e-5)


TWO = """def kernel(a, b, one, two, three):
    fk.linalg.triangular_solve(a, b, one, 1, 3, 2, True, True, False, False, False)
    fk.linalg.triangular_solve(a, b, two, 1, 3, 2, True, True, True, False, False)
    fk.linalg.triangular_solve(a, b, three, 1, 2, 3, True, True, True, False, False)
"""


def test_one_kernel_solves_systems_of_several_sizes():
    """What is compiled for one size, or one way round, is not called for another."""
    a = np.tril(np.random.default_rng(0).standard_normal((3, 3)) + 3 * np.eye(3)).astype("f")
    b = np.arange(6, dtype="f") + 1
    one, two, three = np.zeros((3, 6), "f")
    report = Report()
    both(report, KernelSource(TWO, ("f32[1]",) * 5))(a.ravel(), b, one, two, three)
    assert not report.fallbacks
    assert not report.differences, report.differences[0]
    small = np.tril(a.ravel()[:4].reshape(2, 2))
    for found, matrix in ((one, a), (two, a.T), (three, small.T)):
        want = np.linalg.solve(matrix, b.reshape(len(matrix), -1))
        np.testing.assert_allclose(found, want.ravel(), rtol=1e-5)


ROUND = """def kernel(x, y, out, n0, n1, m):
    for i in range(n0):
        for j in range(n1):
            a = x[u(n1 * ((i - m) % n0) + j)] + y[u(n1 * ((i - m) % n0) + j)]
            out[u(n1 * i + j)] = a + x[u(n1 * i + (j % m))]
"""


def test_what_a_block_computes_of_indices_is_computed_once():
    """A row round an edge is one remainder; where its loop ends is no zero, another divisor may be.

    Remainders are Python's, whatever the signs, with Numba's bits.
    """
    src = KernelSource(ROUND, ("f32[1]",) * 3 + ("i64",) * 3)
    text = kernel.lower("k", src, None)
    assert text.count("srem i64") == 2
    assert len(re.findall(r"icmp eq i64 %n0, 0", text)) == 0
    assert len(re.findall(r"icmp eq i64 %m, 0", text)) == 1
    report = Report()
    run = both(report, src)
    x, y = np.arange(24, dtype="f"), np.arange(24, dtype="f") ** 2
    for m in (1, 3, 11):
        out = np.zeros(24, "f")
        run(x, y, out, 4, 6, m)
        rows = (np.arange(4) - m) % 4
        want = (x + y).reshape(4, 6)[rows] + x.reshape(4, 6)[:, np.arange(6) % m]
        np.testing.assert_array_equal(out.reshape(4, 6), want)
    assert not report.differences, report.differences[0]
    assert not report.fallbacks
