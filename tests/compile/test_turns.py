"""Which loops the native compiler orders to be vectorised, and that LLVM can obey."""

from __future__ import annotations

import ast
import ctypes
import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.cpu.native import compiler, kernel, load, machine, turns
from fnarray.compile.cpu.native.statements import Statements
from tests.compilers.compare import Report, both

SIGNATURE = ("f32[1]", "f32[1]", "f32[1]", "i64")
LONG = "".join(f"        t{k + 1} = (t{k} * t0)\n" for k in range(1, 50))

#: A body of ``for i in range(SIZE)``, the size, and what its loop is told, as words of metadata.
BODIES = {
    "elementwise": ("        out[i] = (x[i] + y[i])\n", "n", {"width", "one"}),
    "shifted": ("        out[i] = (x[u(i + 1)] + y[0])\n", "n", {"width", "one"}),
    "copied": ("        t0 = x[i]\n        out[i] = t0\n", "n", set()),
    "few copied": ("        out[i] = x[u(i + 1)]\n", "10", set()),
    "strided": ("        out[i] = x[u(2 * i)]\n", "n", set()),
    "gathered": ("        t0 = y[i]\n        out[i] = x[u(i64(t0))]\n", "n", set()),
    "scattered": ("        t0 = y[i]\n        out[u(i64(t0))] = x[i]\n", "n", set()),
    "read elsewhere": ("        out[i] = (x[i] + out[u(i + 1)])\n", "n", set()),
    "carried": ("        c = (c * x[i])\n        out[i] = c\n", "n", set()),
    "added up": ("        c = sc.radd(c, x[i])\n", "n", set()),
    "least so far": ("        c = sc.minimum(c, x[i])\n        out[i] = c\n", "n", set()),
    "a long sum": (
        f"        t0 = y[i]\n        t1 = x[i]\n{LONG}        c = sc.radd(c, t50)\n",
        "n",
        {"width", "two"},
    ),
    "a sum read again": (
        f"        t0 = y[i]\n        t1 = c\n{LONG}        c = sc.radd(c, t50)\n",
        "n",
        set(),
    ),
    "few": ("        out[i] = (x[i] + y[i])\n", "10", {"width", "one", "masks"}),
    "few over what was there": ("        out[i] = sc.radd(out[i], x[i])\n", "10", set()),
    "few exponentials": (
        "        c = sc.radd(c, vm.exp(x[i]))\n",
        "10",
        {"width", "one", "masks"},
    ),
    "few quotients of every third": (
        "        out[i] = sc.div(x[u(3 * i)], y[i])\n",
        "11",
        {"width", "one", "masks"},
    ),
    "few quotients of more that lie apart": (
        "        out[i] = sc.div(x[u(3 * i)], y[u(3 * i)])\n",
        "6",
        set(),
    ),
    "few sums of every third": ("        out[i] = (x[u(3 * i)] + y[i])\n", "11", set()),
    "few added up": ("        c = sc.radd(c, x[i])\n", "10", set()),
    "in parts": ("        out[i] = (x[i] + y[i])\n", "60", {"width", "one"}),
    "neighbours in parts": ("        out[i] = (x[i] + x[u(i + 1)])\n", "58", set()),
    "two arrays in parts": (
        "        t0 = x[i]\n        out[i] = t0\n        y[i] = x[u(i + 1)]\n",
        "50",
        {"width"},
    ),
    "known and added up": ("        c = sc.radd(c, x[i])\n", "60", set()),
    "very few": ("        out[i] = (x[i] + y[i])\n", "3", set()),
}
WORDS = {
    "vectorize.width": "width",
    'interleave.count", i32 1': "one",
    'interleave.count", i32 2': "two",
    "vectorize.predicate": "masks",
}


def source(body: str, size: str, head: str = "") -> KernelSource:
    text = (
        f"def kernel(x, y, out, n):\n{head}    c = f32(1.0)\n    for i in range({size}):\n{body}"
        "    out[0] = (out[0] + c)\n"
    )
    return KernelSource(text, SIGNATURE)


def lower(body: str, size: str, width: int | None = 512, head: str = "") -> str:
    """Return LLVM text in which all loops are left to LLVM."""
    with mock.patch.object(Statements, "straighten", return_value=False):
        return kernel.lower("k", source(body, size, head), width)


def told(text: str) -> set[str]:
    """Words of what the loops of a module are told, but that they stay loops."""
    nodes = dict(re.findall(r"^!(\d+) = (.*)$", text, re.M))
    loops = re.findall(r"^br .*!llvm\.loop !(\d+)$", text, re.M)
    hints = {nodes[k] for loop in loops for k in re.findall(r"!(\d+)", nodes[loop]) if k != loop}
    return {word for key, word in WORDS.items() if any(key in hint for hint in hints)}


@pytest.mark.parametrize("name", BODIES)
def test_orders(name):
    """A loop is ordered where its turns are surely independent and lie along memory."""
    body, size, expected = BODIES[name]
    assert told(lower(body, size)) == expected


@pytest.mark.parametrize("name", BODIES)
def test_llvm_obeys(name, capfd):
    """No order is one that LLVM cannot follow, which it would tell the user."""
    body, size, _ = BODIES[name]
    machine.assembly(lower(body, size))
    assert capfd.readouterr() == ("", "")


APART, IN_PLACE = "        out[i] = (x[i] + y[i])\n", "        out[i] = (out[i] + y[i])\n"


@pytest.mark.parametrize(
    ("body", "size", "spans"),
    [
        (APART, 19, [(0, 16), (15, 19)]),
        (APART, 23, [(0, 16), (15, 23)]),
        (APART, 60, [(0, 48), (44, 60)]),
        (IN_PLACE, 19, [(0, 16), (16, 19)]),
        (IN_PLACE, 60, [(0, 48), (48, 56), (56, 60)]),
    ],
)
def test_loops_of_known_turns_are_in_parts(body, size, spans):
    """Whole vectors come first; then the last turns, or narrower ones where none may come twice."""
    text = kernel.lower("k", source(body, str(size)), 512)
    found = re.findall(r"= phi i64 \[ (\d+), .*?icmp slt i64 \S+, (\d+)\n", text, re.S)
    assert found == [(str(a), str(b)) for a, b in spans]


def test_masks_are_for_avx_512_alone():
    """Elsewhere masked stores are slow, and few turns are written out."""
    body, size, _ = BODIES["few"]
    assert "masks" not in told(lower(body, size, None))


def test_loops_around_loops_stay():
    """What holds a loop of unknown length is not written out, however few its turns."""
    body = "        for j in range(n):\n            out[u(n * i + j)] = x[j] + y[j]\n"
    text = lower(body, "3")
    assert len(re.findall(r"!llvm\.loop", text.partition("!0 =")[0])) == 2


@pytest.mark.parametrize(
    ("count", "outer", "stays"),
    [(20, "6", True), (20, "n", False), (3, "6", False)],
)
def test_nests_of_few_turns_stay_in_long_kernels(count, outer, stays, capfd):
    """Where there are many they are met once each, however they nest: their code has one turn."""
    nest = "        for j in range(3):\n            out[u(3 * i + 2 * j)] = (x[u(2 * j)] * y[{}])\n"
    loops = f"    for i in range({outer}):\n".join(["", *[nest.format(k) for k in range(count)]])
    text = "def kernel(x, y, out, n):\n" + loops
    own = kernel.lower("k", KernelSource(text, SIGNATURE), 512)
    assert ("unroll.disable" in own) is stays
    code = machine.assembly(own)
    assert len(re.findall("mulss", code)) <= 3 * count or not stays
    assert capfd.readouterr() == ("", "")


#: What a row of so many elements is folded from, and how wide the vectors are that do it.
FOLDS = {
    "sum of 9": ("sc.radd(c, x[u(9 * i + j)])", 9, 8),
    "sum of 12": ("sc.radd(c, x[u(12 * i + j)])", 12, 4),
    "maximum of 16": ("sc.maximum(c, x[u(16 * i + j)])", 16, 8),
    "rows from the last": ("sc.radd(c, (x[u(j + n - 12 * i)] * y[j]))", 12, 4),
    "sum of 8": ("sc.radd(c, x[u(8 * i + j)])", 8, 0),
    "sum of 17": ("sc.radd(c, x[u(17 * i + j)])", 17, 0),
    "along columns": ("sc.radd(c, x[u(n * j + i)])", 12, 0),
    "in order": ("(c + x[u(12 * i + j)])", 12, 0),
    "of a function": ("sc.maximum(c, vm.exp(x[u(12 * i + j)]))", 12, 0),
}


@pytest.mark.parametrize("name", FOLDS)
def test_rows_longer_than_llvm_shuffles_are_vectors_of_their_own(name, capfd):
    """LLVM folds each, where it would else gather the elements of many rows; and it can."""
    fold, size, width = FOLDS[name]
    text = (
        f"def kernel(x, y, out, n):\n    for i in range(n):\n        c = f32(0.0)\n"
        f"        for j in range({size}):\n            c = {fold}\n        out[i] = c\n"
    )
    with mock.patch.object(Statements, "straighten", return_value=False):
        own = kernel.lower("k", KernelSource(text, SIGNATURE), 512)
    assert ("vectorize.enable" in own) is (width > 0)
    assert (f'vectorize.width", i32 {width}}}' in own) is (width > 0)
    machine.assembly(own)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("size", [9, 12, 16])
def test_folds_of_rows_find_what_is_no_number(size):
    """A maximum is NumPy's to the bit, a sum to a rounding, in rows of vectors and what is left."""
    x = np.random.default_rng(0).normal(size=(70, size)).astype(np.float32)
    x[3, size - 1] = x[4, 0] = np.nan
    most, total = fnarray.jit(lambda x: (x.max(1), (x * x).sum(1)))(x)
    np.testing.assert_array_equal(most, x.max(1))
    np.testing.assert_allclose(total, (x.astype(float) ** 2).sum(1), rtol=1e-5)


def test_a_recurrence_of_least_values_stays_a_loop():
    """In a sequential kernel, where LLVM would write it out with jumps that data decide."""
    body, size, _ = BODIES["least so far"]
    flush = "    mode = fk.rounding.flush_subnormal()\n"
    assert "unroll.disable" in kernel.lower("k", source(body, size, flush), 512)
    assert "unroll.disable" not in kernel.lower("k", source(BODIES["carried"][0], size, flush), 512)


#: Bodies of stencils, and how many of their places are read by pointers of their own.
PLACES = {
    "neighbours": ("(x[i] + x[u(i + 1)]) + x[u(i + 2)]", 2),
    "of two arrays": ("(x[i] + x[u(i + 1)]) + (y[u(i + 2)] + y[i])", 2),
    "other rows": ("(x[i] + x[u((n + i))]) + x[u(((n + i) + 1))]", 1),
    "the same place": ("x[i] + x[i]", 0),
    "written": ("out[i] + x[i]", 0),
    "written elsewhere": ("out[u(i + 1)] + out[i]", 0),
}


@pytest.mark.parametrize("name", PLACES)
def test_neighbours_are_read_again_in_a_recurrence(name):
    """Each further place of a row has its pointer, as LLVM hands on from turn to turn else."""
    spelled, count = PLACES[name]
    flush = "    mode = fk.rounding.flush_subnormal()\n"
    text = lower(f"        out[i] = ({spelled})\n", "n", None, flush)
    assert text.count('call ptr asm "", "=r,0"') == count
    assert "call ptr asm" not in lower(f"        out[i] = ({spelled})\n", "n", None)


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["of two arrays", "other rows"])
def test_neighbours_have_numbas_bits(name):
    """Of rows that are no whole vectors, too."""
    flush = "    mode = fk.rounding.flush_subnormal()\n"
    report = Report()
    body = f"        out[i] = ({PLACES[name][0]})\n    fk.rounding.restore(mode)\n"
    run = both(report, source(body, "n", flush))
    for n in (1, 15, 100):
        x = np.linspace(0.5, 1.5, 300, dtype=np.float32)
        run(x, np.arange(300, dtype=np.float32) / 300, np.ones(300, np.float32), n)
    assert not report.differences, report.differences[0]


@pytest.mark.cpu
@pytest.mark.parametrize("name", sorted(set(BODIES) - {"scattered"}))
def test_same_bits_as_numba(name):
    """However a loop is vectorised, its elements have Numba's bits; sums may be reordered."""
    body, size, _ = BODIES[name]
    report = Report()
    run = both(report, source(body, size))
    for n in (1, 15, 16, 17, 100):
        x = np.linspace(0.5, 1.5, 300, dtype=np.float32)
        run(x, np.arange(300, dtype=np.float32) / 300, np.ones(300, np.float32), n)
    assert not report.differences, report.differences[0]


#: Turns of an innermost loop of a recurrence, and whether they choose numbers one after another.
CHOICES = {
    "greatest so far": ("        c = sc.maximum(c, x[i])\n        out[i] = c\n", True),
    "a choice": ("        t0 = (x[i] if x[i] < c else c)\n        c = t0\n", True),
    "a function": ("        c = vm.tanh((c + x[i]))\n", True),
    "a few in a turn": (
        "        t0 = x[i]\n        t0 = sc.maximum(t0, y[i])\n        out[i] = t0\n",
        True,
    ),
    "in some turns": (
        "        if x[i] < y[i]:\n            out[i] = sc.minimum(x[i], y[i])\n",
        True,
    ),
    "arithmetic": ("        c = (c * x[i])\n", False),
    "a sum": ("        c = sc.radd(c, sc.maximum(x[i], y[i]))\n", False),
    "vectors": ("        out[i] = sc.maximum(x[i], y[i])\n", False),
    "a greatest": ("        c = sc.maximum(c, x[i])\n", False),
}
FEATURES = "+avx2,+fma,-avx512f"


@pytest.mark.parametrize("choice", CHOICES)
def test_choices_one_after_another_use_no_masks(choice):
    """A kernel of them is compiled for a processor without; no other one is."""
    body, waits = CHOICES[choice]
    src = source(body, "n")
    flushing = src.text.replace("n):\n", "n):\n    mode = fk.rounding.flush_subnormal()\n", 1)
    for text in (src.text, flushing):
        module = kernel.written("k", KernelSource(text, SIGNATURE), None, FEATURES)
        assert (f'"target-features"="{FEATURES}"' in module.text()) == waits


def test_long_work_on_vectors_keeps_its_masks():
    """A few choices beside functions of whole arrays are not worth half of the registers."""
    functions = "".join(f"        t{k + 1} = vm.exp(t{k})\n" for k in range(4))
    head = (
        "    mode = fk.rounding.flush_subnormal()\n    for i in range(n):\n"
        f"        t0 = x[i]\n{functions}        out[i] = t4\n"
    )
    src = source(CHOICES["greatest so far"][0], "n", head)
    assert "target-features" not in kernel.written("k", src, None, FEATURES).text()


def test_what_a_greatest_is_computed_of_is_in_vectors():
    """The scores of a causal mask, their greatest and the exponentials: one statement waits."""
    masked = (
        "        t{0} = (x[i] / y[0])\n        t{1} = (n >= i)\n"
        "        t{2} = (t{0} if t{1} else f32(-1.0))\n"
    )
    greatest = f"{masked.format(0, 1, 2)}        c = sc.maximum(c, t2)\n"
    head = f"    c = f32(0.0)\n    for i in range(n):\n{greatest}"
    src = source(f"{masked.format(3, 4, 5)}        out[i] = vm.exp((t5 - c))\n", "n", head)
    assert "target-features" not in kernel.written("k", src, None, FEATURES).text()


@pytest.mark.parametrize(
    ("features", "left"),
    [("+avx2,+avx512f,+avx512vl,+fma", "+avx2,+fma,-avx512f"), ("+avx2,+fma", ""), ("", "")],
)
def test_features_without_masks(features, left, monkeypatch):
    """They are the processor's, but for AVX-512; there are none where it has none."""
    known = replace(machine.processor(), features=features)
    monkeypatch.setattr(machine, "processor", lambda: known)
    assert machine.unmasked() == left


def test_kernels_without_masks_share_no_functions():
    """What takes vectors in AVX-512's registers is not called from where there are none."""
    turns = "".join(f"        c = sc.maximum(vm.tanh((c + {k}.0)), x[i])\n" for k in range(30))
    src = source(turns, "n")
    assert kernel.written("k", src, None).shared or kernel.written("k", src, None).library
    module = kernel.written("k", src, None, FEATURES)
    assert module.features
    assert not module.shared
    assert not module.library


def test_llvm_looks_for_no_better_addresses_where_loops_are_finished():
    """The counter of a finished loop is hidden; what it carries beside, and does, stays."""
    phi = "%s = phi i64 [ 1, %entry ], [ %t, %turn ]"
    text = f"""define i64 @f(i64 %n) {{
entry:
br label %turn
turn:
%i = phi i64 [ 0, %entry ], [ %next, %turn ]
{phi}
%t = mul i64 %s, 3
%next = add nuw nsw i64 %i, 1
%more = icmp slt i64 %next, %n
br i1 %more, label %turn, label %end
end:
ret i64 %t
}}
"""
    found = compiler.counted(text)
    head = found.partition("%t = mul")[0].partition("turn:\n")[2].splitlines()
    assert head[0].startswith("%i.count = phi i64 [ 0, %entry ]")
    assert head[1:] == [phi, '%i = call i64 asm "", "=r,0"(i64 %i.count)']
    assert compiler.counted(found.replace("add nuw", "add")) == found.replace("add nuw", "add")
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(
        load.made("fnarray_counted", text.replace("@f(", "@fnarray_counted("), straight=True)
    )
    assert function(4) == 3**4


def test_folded_bits_wait_for_no_turn():
    """Whether any, all or an odd number of some are is asked in whatever order, as a sum is."""
    text = """
def k(x, y, out, n):
    a = False
    for i in range(n):
        t = x[i]
        u = (t if t < y[i] else y[i])
        out[i] = u
        a = sc.{word}(a, (u != u))
    out[0] = (t if a else y[0])
"""
    for word, waiting in (("or_", False), ("and_", False), ("xor", False), ("sub", True)):
        body = ast.parse(text.format(word=word)).body[0].body
        assert turns.waits(body, frozenset("a")) is waiting, word


@pytest.mark.parametrize("n", [0, 1, 7, 33, 200])
@pytest.mark.parametrize("nan", [False, True])
def test_medians_of_what_is_drawn(n, nan):
    """Rows are drawn by a key, read where it says, and asked if there is a NaN among them."""
    x = np.linspace(-1, 1, 50, dtype=np.float32)
    x[7] = np.nan if nan else x[7]

    def run(x, seed):
        rows = fnarray.random.randint(fnarray.random.key(seed), (5, n), 0, 50)
        some = x[rows]
        bad = fnp.isnan(some)
        odd = fnp.sum(bad, 1) % 2 == 1
        any_ = fnp.any(bad, 1)
        return fnp.where(any_[:, None], fnp.nan, some), any_, fnp.all(~bad, 1), odd

    for got, want in zip(fnarray.jit(run)(x, 3), run(x, 3), strict=True):
        np.testing.assert_array_equal(got, want)
