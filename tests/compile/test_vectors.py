"""Innermost loops along memory are written as vectors: the bits of Numba's, and what stays."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.cpu.native import kernel
from fnarray.compile.cpu.native.reader import read_kernel
from fnarray.compile.cpu.native.turns import MANY
from tests.compilers.compare import Report, both

pytestmark = pytest.mark.cpu
HEAD = "def kernel(x, y, u, b, out, n, c):\n    for i in range(n):\n"
KINDS = ("f32[1]", "f32[1]", "i64[1]", "b1[1]", "f32[1]", "i64", "f32")
#: Bodies that are vectors: their statements.
FIT = {
    "chain": ("t = x[i] * y[i] + f32(0.5)", "out[i] = sc.maximum(t, y[i]) / (t + c)"),
    "beside": ("out[i] = x[i + 2] - x[i + n] * f32(3.0) + x[n + i + 1]",),
    "round": ("out[i] = x[(n + 3) % n + i] - x[n // 2 % 7 + i] * x[3 - 40 % n // 9 % 3 + i]",),
    "bools": ("b[i] = (x[i] < y[i]) & b[i]",),
    "integers": ("u[i] = (u[i] + 3) * u[i]",),
    "in place": ("x[i] = x[i] * c", "out[i] = y[i] - c"),
    "called": ("t = vm.tanh(vm.tanh(vm.tanh(x[i] * c)))", "out[i] = t * y[i]"),
    "pasted": ("out[i] = vm.exp(x[i])",),
    "constant": ("out[i] = f32(2.0)",),
    "choices": ("t = x[i]", "s = c if t < y[i] else t", "out[i] = (t if b[i] else c) * s"),
    "long": ("t0 = x[i]", *(f"t{k + 1} = t{k} * y[i] + c" for k in range(25)), "out[i] = t25"),
    "special": ("out[i] = fk.special.digamma(x[i]) * c",),
}
#: Bodies of folds, in any order: what is kept, and the statements.
FOLDS = {
    "sum": ("f32(1.0)", ("a = sc.radd(a, x[i] * y[i])",)),
    "product": ("f32(1.0)", ("a = sc.rmul(a, f32(1.0) + y[i] * f32(0.001))",)),
    "of three": ("f32(0.0)", ("a = sc.radd(a, out[i] * y[i] * x[i])",)),
    "of integers": ("u[0]", ("a = sc.radd(a, u[i])",)),
    "two": ("f32(0.0)", ("b0 = sc.radd(b0, x[i])", "a = sc.radd(a, y[i])", "out[i] = x[i] - c")),
    "long": (
        "f32(0.5)",
        ("t0 = y[i]", *(f"t{k + 1} = t{k} * y[i] + c" for k in range(25)), "a = sc.radd(a, t25)"),
    ),
}
#: Bodies that are not: of numbers that count, strides, branches that read, and those by which LLVM
#: learns of a function's text.
UNFIT = {
    "counts": ("out[i] = x[i] * f32(i)",),
    "one": ("out[i] = x[i] * y[0]",),
    "strided": ("out[i] = x[2 * i]",),
    "backward": ("out[i] = x[n - i]",),
    "choice": ("t = vm.exp(x[i])", "out[i] = t if b[i] else c"),
    "choice of ways": ("out[i] = y[i] if b[i] else c",),
    "gathered": ("out[i] = x[u[i]]",),
}


def source(body) -> KernelSource:
    lines = "".join(f"        {line}\n" for line in body)
    return KernelSource(HEAD + lines, KINDS)


def compared(src: KernelSource, sizes=(0, 1, 15, 16, 17, 64, 100), odd=np.nan) -> None:
    report = Report()
    run = both(report, src)
    random = np.random.default_rng(0)
    for n in sizes:
        x, y, out = random.normal(size=(3, 8 * n + 8)).astype(np.float32)
        x[::7], y[::5] = odd, -0.0
        u, b = random.integers(0, 3, n + 8), random.normal(size=n + 8) > 0
        run(x, y, u, b, out, n, np.float32(0.75))
    assert not report.differences, report.differences[0]
    assert not report.fallbacks


@pytest.mark.parametrize("name", FIT)
def test_bodies_as_vectors(name):
    """Numba's bits at lengths around that of a vector; LLVM's passes have nothing to do."""
    src = source(FIT[name])
    module = kernel.written("k", src, 512)
    assert module.straight
    assert re.search(r"load <|masked\.(load|store)", module.text())
    assert module.lanes in (8, 16)
    compared(src)


@pytest.mark.parametrize("width", [512, None])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_as_vectors(name, width):
    """Several vectors a turn, whole ones and what remains, give the sum that Numba's code gives."""
    start, body = FOLDS[name]
    lines = "".join(f"        {line}\n" for line in body)
    text = (
        "def kernel(x, y, u, b, out, n, c):\n"
        f"    b0 = c\n    a = {start}\n"
        f"    for i in range(n):\n{lines}"
        "    out[n] = f32(a) + b0\n"
    )
    src = KernelSource(text, KINDS)
    assert kernel.written("k", src, width).straight
    if width == 512:
        for odd in (np.nan, 2.0):  # a sum with a NaN is NaN, however wrong
            compared(src, (0, 1, 15, 16, 17, 64, 100, 129), odd)


def test_folds_of_any_length():
    """Sums of bodies of each length, 5 to 40 instructions, begin what remains where vectors end."""
    for terms in range(1, 18):
        body = " * ".join(["x[i]", *(["y[i]"] * (terms % 3)), *(["c"] * terms)])
        text = (
            "def kernel(x, y, u, b, out, n, c):\n"
            "    a = f32(0.0)\n"
            "    for i in range(n):\n"
            f"        a = sc.radd(a, {body})\n"
            "    out[0] = a\n"
        )
        module = kernel.written("k", KernelSource(text, KINDS), 512)
        (step,) = re.findall(r"\.end = and i64 %n, -(\d+)", module.text())
        assert int(step) & (int(step) - 1) == 0, (terms, step)


@pytest.mark.parametrize("name", UNFIT)
def test_bodies_that_stay(name):
    """What is not a vector of numbers side by side is left to LLVM."""
    src = source(UNFIT[name])
    assert not kernel.written("k", src, 512).straight
    compared(src)


def test_one_loop_that_stays_leaves_all():
    """A kernel is improved by LLVM as a whole, or not at all."""
    fit, unfit = source(FIT["chain"]).text, source(UNFIT["counts"]).text
    src = KernelSource(fit + unfit.partition("\n")[2], KINDS)
    module = kernel.written("k", src, 512)
    assert not module.straight
    assert "load <" not in module.text()
    compared(src)


def test_loops_around_loops():
    """Rows: what does not change in the inner loop is computed, and spread, as it is."""
    text = (
        "def kernel(x, y, u, b, out, n, c):\n"
        "    for j in range(3):\n"
        "        t = y[j] * c\n"
        "        for i in range(n):\n"
        "            out[j * n + i] = x[j * n + i] * t\n"
    )
    src = KernelSource(text, KINDS)
    assert kernel.written("k", src, 512).straight
    compared(src)


def test_long_rows_are_whole_vectors():
    """Inside of a loop no turn has a mask; at the top every turn of a long body has."""
    body = FIT["long"]
    top = source(body)
    lines = "".join(f"            {line}\n" for line in body).replace("[i]", "[j * n + i]")
    rows = HEAD.replace("    for", "    for j in range(3):\n        for") + lines
    assert "masked.load" in kernel.written("k", top, 512).text()
    module = kernel.written("k", KernelSource(rows, KINDS), 512)
    assert module.straight
    assert "masked.load" not in module.text()


def test_names_that_one_suite_assigns_again():
    """A number that is set anew in each turn is no variable, one that goes through turns is."""
    text = (
        "def kernel(x, y, u, b, out, n, c):\n"
        "    for i in range(n):\n"
        "        a = c\n"
        "        t = x[i]\n"
        "        a = sc.radd(a, t)\n"
        "        out[i] = a\n"
    )
    src = KernelSource(text, KINDS)
    assert kernel.written("k", src, 512).straight
    compared(src)
    for stays in (
        text.replace("        a = c\n", "        out[i] = a\n").replace(":\n", ":\n    a = c\n", 1),
        text.replace("        a = c", "        if t > c:\n            a = c"),
        f"{text}    out[0] = a\n",
    ):
        assert "a" in read_kernel(stays, {}).slots


def test_loops_that_share_names():
    """What two loops compute before their turns, of one array and number, has a name in each."""
    loop = "    for i in range(n):\n        out[i] = x[i + n] * c + x[n + i] - x[n + i + 2]\n"
    other = loop.replace("for i", "for j").replace("[i", "[j").replace("+ i", "+ j")
    text = f"def kernel(x, y, u, b, out, n, c):\n{loop}{other}"
    src = KernelSource(text, KINDS)
    assert kernel.written("k", src, 512).straight
    compared(src)


def test_functions_in_double_precision_are_of_narrow_vectors():
    """A special function of single precision is computed in double: four numbers are a register."""
    text = kernel.written("k", source(FIT["special"]), 256).text()
    assert "<4 x double>" in text
    assert "<8 x double>" not in text


def test_a_vast_body_is_written_once():
    """Its last turn is part of a vector, on processors for which that is no instruction too."""
    text = kernel.written("k", source(["out[i] = fk.special.zeta_32(x[i], y[i])"]), 256).text()
    assert text.count("llvm.masked.store.v4f32") == 2  # which declares it
    assert text.count("fptrunc <4 x double>") == 1
    assert text.count("@llvm.floor.f64(") == 1  # as here: no number is computed alone


def test_narrow_vectors():
    """Machines without 512 bits take half as many numbers at a time."""
    module = kernel.written("k", source(FIT["chain"]), None)
    assert module.straight
    assert f"load <{module.lanes} x float>" in module.text()


#: Loops of eight turns in a recurrence, which read elements that lie apart: one vector each.
AT_ONCE = {
    "column": "vm.log(y[u(n * i + 1)])",
    "clamped column": "vm.exp(x[u(n * i + min(max(t, 0), n - 1))])",
    "backward": "vm.tanh(x[u(8 - i)]) + y[i]",
    "the same for all": "vm.exp(y[u(3 * i)]) * x[u(n)] + f32(n)",
    "product of indices": "vm.exp(y[u((i + 1) * 3 + t)])",
    "bits": "vm.exp(y[u(3 * i)]) * f32(b[u(2 * i)] & (y[i] < c))",
    "looked up": "vm.log(x[u(k[u(2 * i)])])",
}
#: What stays a loop: a turn that reads what another wrote, and the turn as a number.
TURN_BY_TURN = {
    "another turn's": "vm.log(w[u(7 - i)]) + y[u(2 * i)]",
    "turn": "vm.log(y[u(2 * i)]) * f32(i)",
}


def recurrence(value: str) -> KernelSource:
    text = (
        "def kernel(x, y, k, b, out, n, c):\n"
        "    mode = fk.rounding.flush_subnormal()\n"
        "    w = out\n"
        "    for t in range(3):\n"
        "        for i in range(8):\n"
        f"            w[u(i)] = {value}\n"
        "        for j in range(9):\n"
        "            y[u(j)] = out[u(j)] * c\n"
        "    fk.rounding.restore(mode)\n"
    )
    return KernelSource(text, KINDS)


def test_what_is_kept_on_the_stack_is_aligned():
    """The stack moves at the entry alone, and begins at a cache line, whoever calls."""
    entry, *rest = kernel.written("k", recurrence(AT_ONCE["column"]), 512).text().split("\nbr ")
    assert "alloca" in entry
    assert not any("alloca" in block for block in rest)
    attributes = [x for x in rest[-1].splitlines() if x.startswith("attributes #")][:2]
    assert all("alignstack=64" in x for x in attributes)


@pytest.mark.parametrize("name", [*AT_ONCE, *TURN_BY_TURN])
def test_few_turns_at_once(name):
    """Numba's bits; what LLVM would compute number by number is a vector of eight."""
    src = recurrence((AT_ONCE | TURN_BY_TURN)[name])
    wide = "<8 x float>" in kernel.written("k", src, 512).text()
    assert wide == (name in AT_ONCE)
    compared(src, (8, 16, 17, 40))


#: What a row of few numbers does in a long kernel: statements, and what the rows' loop ends with.
ROWS = {
    "chain": ("out[{m} * i + j] = x[8 * i + j + 2] * c + y[{m} * i + j]", ""),
    "choice": ("t = x[{m} * i + j]", "out[{m} * i + j] = c if t < c else t", ""),
    "sum": ("a = sc.radd(a, x[{m} * i + j] * y[8 * i + j])", "out[i] = a"),
    "product": ("a = sc.rmul(a, x[{m} * i + j])", "out[i] = a"),
}


def rows(name: str, m: int, others: int) -> KernelSource:
    """Return a kernel of rows of m numbers, and of other loops."""
    *body, end = ROWS[name]
    lines = ["def kernel(x, y, u, b, out, n, c):", "    for i in range(n):", "        a = c"]
    lines += [f"        for j in range({m}):", *(f"            {x.format(m=m)}" for x in body)]
    lines += [f"        {end or 'pass'}"]
    for k in range(others):
        lines += [f"    for k{k} in range(n):", f"        out[k{k}] = out[k{k}] + c * y[k{k}]"]
    return KernelSource("\n".join(lines) + "\n", KINDS)


@pytest.mark.parametrize("name", ROWS)
def test_few_turns_in_long_kernels_are_one_vector(name):
    """Numba's bits, sums in whatever order; in kernels of few loops LLVM writes such a loop out."""
    for m in (1, 3, 4, 8):
        src = rows(name, m, MANY)
        module = kernel.written("k", src, 512)
        assert module.straight
        assert f"<{m} x float>" in module.text()
    compared(rows(name, 8, MANY), (0, 1, 5, 16))
    compared(rows(name, 3, MANY), (0, 1, 5, 16))
    assert "<0 x" not in kernel.written("k", rows(name, 0, MANY), 512).text()
    assert not kernel.written("k", rows(name, 4, MANY - 1), 512).straight


#: Rows, in loops inside of others, whose last vector is a part of one: statements, what ends a row.
PARTED = {
    "sum": (("a = sc.radd(a, x[n * j + i] * y[i])",), "out[j] = a"),
    "two sums": (("b0 = sc.radd(b0, x[n * j + i])", "a = sc.radd(a, y[i] * c)"), "out[j] = a + b0"),
    "function": (("out[n * j + i] = vm.exp(x[n * j + i] * c)",), "pass"),
    "in place": (("out[n * j + i] = vm.tanh(out[n * j + i]) + y[i]",), "pass"),
    "function and sum": (
        ("t = vm.exp(x[n * j + i] * c)", "a = sc.radd(a, t)", "out[n * j + i] = t * b0"),
        "y[j] = a",
    ),
}


def parted(name: str, *, again: bool) -> KernelSource:
    """Return a kernel of three rows of n numbers, in a recurrence or not."""
    body, end = PARTED[name]
    head, _, _ = HEAD.partition("    for")
    lines = ["    for s in range(2):"] if again else ["    for s in range(1):"]
    lines += ["        for j in range(3):", "            a = c", "            b0 = c"]
    lines += ["            for i in range(n):", *(f"                {x}" for x in body)]
    lines.append(f"            {end}")
    if again:
        lines = [
            "    mode = fk.rounding.flush_subnormal()",
            *lines,
            "    fk.rounding.restore(mode)",
        ]
    return KernelSource(head + "\n".join(lines) + "\n", KINDS)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", PARTED)
def test_what_is_left_of_rows_is_part_of_a_vector(name, again):
    """Numba's bits, sums in whatever order, at every rest; sums of a recurrence stay LLVM's."""
    src = parted(name, again=again)
    module = kernel.written("k", src, 512)
    left = again and name in ("sum", "two sums")
    assert ("masked.load" in module.text()) != left
    assert (module.straight or module.light) != again
    assert "masked.load" not in kernel.written("k", src, None).text()
    compared(src, (0, 1, 15, 16, 17, 31, 47, 64, 79), 0.5)


def test_rows_that_one_loop_keeps_from_vectors():
    """A loop that stays leaves other rows vectors, and all passes to LLVM."""
    src = parted("function", again=False)
    stays = "        for k in range(n):\n            out[k] = x[k] * f32(k)\n"
    src = KernelSource(src.text + stays, KINDS)
    module = kernel.written("k", src, 512)
    assert "masked.load" in module.text()
    assert not module.light
    compared(src)


def test_few_numbers_to_a_row_of_functions_stay_llvms():
    """Sums of them are vectors, unless functions are computed of these: of several rows at once."""
    for value, several in (("a * c", False), ("vm.tanh(a)", True)):
        text = (
            "def kernel(x, y, u, b, out, n, c):\n"
            "    for j in range(n):\n"
            "        a = c\n"
            "        for i in range(20):\n"
            "            a = sc.radd(a, x[i + j] * y[i])\n"
            f"        out[j] = {value}\n"
        )
        src = KernelSource(text, KINDS)
        assert ("masked.load" in kernel.written("k", src, 512).text()) != several
        compared(src, (0, 16, 40), 0.5)


#: Rows in loops inside of others, of nothing to add up: statements, and what the text of vectors
#: that are taken again holds.
AGAIN = {
    "edges": (("out[n * j + i] = x[n * j + i] * y[i] + c",), "head:"),
    "edges off": (("out[n * j + i] = x[n * j + i + 1] - x[n * j + i] * y[i + 2]",), "head:"),
    "two": (("t = x[n * j + i]", "b[i] = t < c", "out[n * j + i] = t - y[i]"), "head:"),
    "words": (("u[i] = i64(3)",), "head:"),
    "long": (
        (
            "t0 = x[n * j + i]",
            *(f"t{k + 1} = t{k} * y[i] + c" for k in range(25)),
            "out[n * j + i] = t25",
        ),
        "llvm.smin.i64",
    ),
    "in place": (("x[n * j + i] = x[n * j + i] * c",), "rest:"),
    "read too": (("out[n * j + i] = out[n * j + i + 1] * c",), ""),
}


@pytest.mark.parametrize("name", AGAIN)
def test_last_vectors_of_rows_are_computed_again(name):
    """Numba's bits at every rest; not where what is computed again would read what was written."""
    body, held = AGAIN[name]
    head, _, _ = HEAD.partition("    for")
    lines = ["    for j in range(3):", "        for i in range(n):"]
    src = KernelSource(
        "\n".join([head + lines[0], lines[1], *(f"            {x}" for x in body)]) + "\n", KINDS
    )
    for width in (512, None):
        text = kernel.written("k", src, width).text()
        assert held in text
        assert (".tail:" in text) == (held == "head:")
    compared(src, (0, 1, 7, 8, 15, 16, 17, 31, 33, 47, 64, 79), 0.5)


@pytest.mark.parametrize("function", [False, True])
def test_choices_are_forks_beside_functions_alone(function):
    """Behind a fork LLVM knows more of a function's operand; elsewhere it is in a vector's way."""
    chosen = "vm.exp(t)" if function else "t"
    body = ("t = x[3 * i]", "s = y[3 * i + 1] * c", f"t = {chosen}", "out[i] = s if t < s else t")
    src = source(body)
    assert ("alloca float" in kernel.written("k", src, 512).text()) == function
    compared(src, (0, 1, 15, 16, 33), 0.5)
