"""What a report says of a program is so."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

from . import programs


@pytest.fixture(scope="module")
def attention():
    q = jnp.ones((256, 64))
    return fa.explain(programs.attention)(q, q, q)


def test_operations_know_lines_and_kernels(attention):
    """Each operation has the line that asked for it, and is in a kernel or a step."""
    facts = attention.facts
    names = [o.name for o in facts.operations]
    assert names.count("dot_general") == 2
    (exp,) = (o for o in facts.operations if o.name == "exp")
    assert exp.place.function == "softmax"
    assert exp.place.scope == "weights"
    held = {n for k in facts.kernels for n in k.operations}
    assert held == set(range(len(names)))
    assert [k.is_step for k in facts.kernels] == [True, False, True]


def test_emitted_lines_know_their_operations(attention):
    """The line that calls exp is for exp, the one that divides is for div."""
    facts = attention.facts
    kernel = facts.kernels[1].text
    assert len(kernel.lines) == len(kernel.operations)
    for line, numbers in zip(kernel.lines, kernel.operations, strict=True):
        names = {facts.operations[n].name for n in numbers}
        if "vm.exp(" in line:
            assert names == {"exp"}
        if re.search(r"= sc\.div\(", line):
            assert names == {"div"}


def test_counts_and_times(attention):
    """Products count two for each term; kernels were timed, and none took longer than a run."""
    facts = attention.facts
    step = facts.kernels[0]
    assert step.flops == 2 * 256 * 256 * 64
    assert all(k.seconds is not None and k.seconds > 0 and k.bound for k in facts.kernels)
    assert facts.machine is not None
    assert min(*facts.machine.bandwidth, *facts.machine.flops, facts.machine.product) > 0
    assert dict(facts.stages).keys() >= {"simplify", "schedule", "emit", "build"}
    assert all(k.made in ("native", "numba", "disk") for k in facts.kernels if not k.is_step)


def test_equal_kernels_are_timed_apart():
    """Two kernels of one text are one piece of code, and each has its time."""

    def twice(x):
        for _ in range(250):
            x = jnp.sin(jnp.tanh(x)) * x
        return x

    facts = fa.explain(twice)(jnp.ones(64)).facts
    assert len(facts.kernels) > 1
    assert all(k.seconds for k in facts.kernels)


def test_an_equal_function_is_another():
    """Two functions of one graph are one program, and each report has the lines of its function."""

    def first(x):
        return jnp.sin(x) * 2.5

    def second(x):
        with fa.named_scope("inner"):
            return jnp.sin(x) * 2.5

    fa.jit(first)(jnp.ones(64))
    for f, scope in ((first, ""), (second, "inner"), (first, "")):
        facts = fa.explain(f)(jnp.ones(64)).facts
        assert {o.place.function.rsplit(".", 1)[-1] for o in facts.operations} == {f.__name__}
        assert {o.place.scope for o in facts.operations} == {scope}
        assert facts.kernels[0].summary.endswith(f.__name__)


def test_reasons_are_the_schedulers(attention):
    """Why a product is no kernel, and why the exponential is not written into its readers."""
    told = " ".join(why for k in attention.facts.kernels for _, why in k.reasons)
    assert "left to a routine of its own" in told
    assert "read more than once" in told


def test_buffers_and_copies():
    """An update of an argument copies it, says so, and the peak counts all that is alive."""
    facts = fa.explain(programs.updated)(jnp.ones(1000), 3).facts
    assert any("copies what it updates" in why for _, why in facts.copies)
    kinds = {b.kind for b in facts.buffers}
    assert {"argument", "result", "workspace"} <= kinds
    assert facts.peak >= 3 * 4000


def updates(x, i):
    """Two updates of an array that nobody else reads, one of the caller's."""
    y = x * 2.0
    y = y.at[i].set(1.0)
    y = y.at[i + 1].add(3.0)
    return y, x.at[0].set(5.0)


def test_updates_in_place_are_told_apart_from_copies():
    """Each update is one or the other, and a copy has one reason, which is so."""
    facts = fa.explain(updates)(jnp.ones(1000), 3).facts
    names = [facts.operations[n].name for n in facts.in_place]
    assert names == ["scatter", "scatter-add"]
    ((number, why),) = facts.copies
    assert facts.operations[number].place.line == facts.operations[facts.in_place[1]].place.line + 1
    assert "the caller's" in why
    text = fa.explain(updates)(jnp.ones(1000), 3).text(100)
    assert f"in place: scatter at {facts.operations[facts.in_place[0]].place}" in text


def test_the_longest_branch_counts():
    """Of a cond that adds once or four times: four additions an element, not five."""

    def chosen(x, b):
        return lax.cond(b, lambda x: x + 1, lambda x: (((x * 2) * x) + x) * 3, x)

    facts = fa.explain(chosen)(jnp.ones(1000), True).facts
    assert 4000 <= sum(k.flops for k in facts.kernels) < 5000


def test_a_busy_machine_is_measured_again(monkeypatch, tmp_path):
    """A kernel that beats the rates has them measured again, once; the better ones are kept."""
    from fnarray.report import measure
    from fnarray.report.model import Machine

    rates = iter([Machine("", 1, (1.0, 1.0), (2.0, 2.0), (9.0, 9.0), 1.0),
                  Machine("", 1, (3.0, 1.0), (1.0, 4.0), (1.0, 1.0), 5.0)])  # fmt: skip
    monkeypatch.setattr(measure, "_measured", lambda *_: next(rates))
    monkeypatch.setattr(measure.store, "info", lambda: SimpleNamespace(directory=tmp_path))
    monkeypatch.setattr(measure, "_beaten", [])
    first = measure.machine()
    assert measure.machine().flops == first.flops
    better = measure.machine(beaten=True)
    assert (better.bandwidth, better.cache) == ((3.0, 1.0), (2.0, 4.0))
    assert (better.flops, better.product) == ((9.0, 9.0), 5.0)
    assert measure.machine(beaten=True) == better


def test_guards_are_told():
    """What a function reads from outside is listed with what it stands for."""
    facts = fa.explain(programs.attention)(*[jnp.ones((4, 4))] * 3).facts
    names = {name for _, name, _ in facts.guards}
    assert any(name.startswith("softmax of") for name in names)
    assert ("name", "jnp of tests.report.programs", "module fnarray.numpy") in facts.guards


def test_vectors_are_found_in_the_assembly():
    """A sum of floats runs on vectors, a recurrence on scalars."""

    def step(c, x):
        return lax.cond(x > c, lambda: x, lambda: c * 0.5), None

    wide = fa.explain(lambda x: jnp.tanh(x) + 1)(jnp.ones(4096)).facts.kernels[0]
    narrow = fa.explain(lambda x: lax.scan(step, 0.0, x)[0])(jnp.ones(100)).facts.kernels[0]
    assert wide.vector_bits is not None
    assert narrow.vector_bits is not None
    assert wide.vector_bits >= 128 > narrow.vector_bits


def test_stand_ins_are_not_run():
    """A description of arguments gives a report without times, and so does an effect."""
    spec = fa.ShapeDtypeStruct((8, 8), np.float32)
    facts = fa.explain(programs.softmax)(spec).facts
    assert facts.seconds is None
    assert "stand-ins" in facts.not_run
    calls = []

    def told(x):
        fa.debug.callback(calls.append, 1)
        return x + 1

    assert "effects" in fa.explain(fa.jit(told, effects="off"))(jnp.ones(3)).facts.not_run
    assert calls == []


def test_lowered_reports_too():
    """``lower(x).report()`` runs nothing, ``report(x)`` does."""
    lowered = fa.jit(programs.softmax).lower(jnp.ones((8, 8)))
    assert lowered.report().facts.seconds is None
    assert lowered.report(jnp.ones((8, 8))).facts.seconds > 0


def test_a_function_that_cannot_be_traced(tmp_path):
    """The report is of the error, at its line; of an effect as well."""
    report = fa.explain(programs.branches)(jnp.ones(3))
    failure = report.facts.failure
    assert failure.kind == "TracerBoolConversionError"
    bad = report.facts.excerpts[0].lines[failure.place.line - report.facts.excerpts[0].number]
    assert bad.strip() == "if y.sum() > 0:"
    assert 'class="l bad"' in report.save(tmp_path / "failed.html").read_text()
    assert "if y.sum() > 0" in report.text()
    seen = []

    def impure(x):
        seen.append(x)
        return x

    report = fa.explain(impure)(jnp.ones(3))
    assert report.facts.failure.kind == "WriteEffectError"
    assert "seen.append" in report.text()


def test_a_function_without_source():
    """Its report says that there is none, and has all the rest."""
    space = {}
    exec("def f(x):\n    return x * 2 + 1\n", space)
    report = fa.explain(fa.jit(space["f"], effects="off"))(jnp.ones(3))
    assert report.facts.failure is None
    assert "no source that can be read" in report.html
    assert [o.name for o in report.facts.operations] == ["mul", "add"]


def test_pages_stand_alone(attention):
    """Nothing is loaded from anywhere."""
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:)", attention.html)
    assert "url(" not in attention.html
    assert "@import" not in attention.html


def test_a_full_disk_leaves_nothing(tmp_path):
    """A page that cannot be written whole is not written, and what was there stays."""
    path = tmp_path / "page.html"
    path.write_text("before")
    code = (
        "import resource, sys, fnarray as fa, fnarray.numpy as jnp\n"
        "report = fa.explain(jnp.tanh)(fa.ShapeDtypeStruct((3,), 'float32'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "report.save(sys.argv[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert "cannot be written, and nothing was" in done.stderr, done.stderr
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)


def test_devices_and_links_stay_what_they_are(tmp_path):
    """A full device says so, a pipe gets the page, a link leads to it; none becomes a file."""
    report = fa.explain(lambda x: x + undefined)(1.0)  # noqa: F821 - cannot be traced
    full, pipe, link, page = (tmp_path / name for name in ("full", "pipe", "link", "page"))
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="cannot be written: No space left on device"):
        report.save(full)
    assert full.is_char_device()
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as readers:
        read = readers.submit(pipe.read_text)
        report.save(pipe)
        assert read.result() == report.html
    assert pipe.is_fifo()
    link.symlink_to(page)
    for _ in range(2):  # a link to what is not there yet, too
        report.save(link)
        assert link.is_symlink()
        assert page.read_text() == report.html
    page.chmod(0o640)  # who may read it is nothing that a page decides
    report.save(page)
    assert page.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["full", "link", "page", "pipe"]


def test_what_cannot_even_be_wrapped_gets_a_report():
    """A generator function, which `jit` refuses before it has arguments."""

    def rows(x):
        yield x

    report = fa.explain(rows)(jnp.ones(3))
    assert "IteratorEffectError" in report.text(120)
    assert "yield" in report.html


def test_rates_that_cannot_be_kept_leave_nothing(monkeypatch, tmp_path):
    """They are measured again by the next process."""
    from fnarray.report import measure

    def fails(self, target):
        raise OSError(28, "No space left on device")

    rates = measure.Machine("it", 1, (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), 1.0)
    monkeypatch.setattr(measure, "_measured", lambda *_: rates)
    monkeypatch.setattr(measure.store, "info", lambda: SimpleNamespace(directory=str(tmp_path)))
    with monkeypatch.context() as m:
        m.setattr(Path, "replace", fails)
        assert measure.machine() is rates
    assert not list(tmp_path.iterdir())
    assert measure.machine() is rates
    assert measure.machine() is not rates  # read


@pytest.mark.slow
def test_five_thousand_equations():
    """They are folded by scope, in a page under 5 MB; a text says once what is said often."""
    report = fa.explain(programs.layered)(fa.ShapeDtypeStruct((100,), np.float32))
    assert report.facts.equations == 5000
    assert report.facts.seconds is None
    html = report.html
    assert len(html.encode()) < 5_000_000
    first = html[html.index('id="g0"') : html.index('id="g1"')]
    assert first.count('class="op') <= 80
    assert "layer24" in first
    said = report.text(100)
    assert len(said.splitlines()) < 60
    assert re.search(r"kernel0-\d+ +tanh in layered", said)
    assert re.search(r"read more than once\s+\([\d,]+ times\)", said)


def test_folds():
    """A level shows no more boxes than can be read, and every operation is in one leaf."""
    from fnarray.report.folding import MOST, Group, folded
    from fnarray.report.model import Operation, Place

    operations = [
        Operation(n, "sin", "f32[]", Place("a.py", n % 7, "f", f"layer{n // 300}"), (n - 1,))
        for n in range(3000)
    ]
    top = folded("f", operations)
    leaves = []

    def walk(group):
        assert len(group.items) <= MOST
        for item in group.items:
            if isinstance(item, Group):
                walk(item)
            else:
                leaves.append(item)

    walk(top)
    assert leaves == list(range(3000))
    assert [g.label for g in top.items] == [f"layer{k}" for k in range(10)]


def test_drawings_have_no_boxes_on_each_other():
    """Boxes of a layer are apart, and lines go down."""
    from fnarray.report.layout import drawn

    edges = [(0, 2), (1, 2), (2, 3), (2, 4), (0, 5), (3, 5), (4, 5), (1, 5)]
    drawing = drawn(dict.fromkeys(range(6), 80.0), edges)
    rows = {}
    for x, y in drawing.centres.values():
        rows.setdefault(y, []).append(x)
    for row in rows.values():
        row.sort()
        assert all(b - a >= 80 for a, b in pairwise(row))
    for source, target, points in drawing.lines:
        assert drawing.centres[source][1] < drawing.centres[target][1]
        assert [y for _, y in points] == sorted(y for _, y in points)


def test_differences(attention):
    """What changed between two reports, in figures, operations, kernels and text."""
    other = fa.explain(programs.attention)(*[jnp.ones((64, 64))] * 3)
    difference = fa.explain.diff(attention, other)
    figures = {row[0]: row for row in difference.figures}
    assert figures["equations"][3] == "1.00"
    assert ("exp f32[256,256]", 1, 0) in difference.operations
    assert any(line.startswith("-") for line in difference.lines)
    same = fa.explain.diff(attention, attention)
    assert (same.operations, same.kernels, same.lines) == ([], [], [])
    with pytest.raises(TypeError, match="second argument must be a report"):
        fa.explain.diff(attention, 3)


def test_what_is_no_function():
    """An array is not explained."""
    with pytest.raises(TypeError, match="explain: expected a function"):
        fa.explain(3)


def test_loops_in_lanes_are_of_the_line_that_asked():
    """A `while_loop` under `vmap` is made anew for its target, and not at explain's line."""

    def count(x):
        return lax.while_loop(lambda c: c < x, lambda c: c + 1.0, 0.0)

    facts = fa.explain(fa.vmap(count))(jnp.arange(4.0)).facts
    (select,) = (o for o in facts.operations if o.name == "select_n")
    assert select.place.function.endswith("count")


def test_scopes_are_those_around_calls_loops_and_transforms():
    """What is in a call or a loop is in the blocks around it too, and under its transforms."""

    def inner(x):
        with fa.named_scope("inner"):
            return jnp.sin(x) * 2

    def fun(x):
        def body(c, a):
            with fa.named_scope("body"):
                return c * jnp.cos(a), None

        with fa.named_scope("outer"):
            return fa.lax.scan(body, jnp.float32(1), fa.jit(inner)(x))[0]

    def scopes(f):
        with fa.named_scope("of whoever looks"):
            return {o.place.scope for o in fa.explain(f)(jnp.ones(64)).facts.operations}

    blocks = {"outer", "outer/inner", "outer/body"}
    assert scopes(fun) == blocks
    ahead, back = (
        {s.replace("outer", t) for s in blocks} for t in ("jvp(outer)", "transpose(jvp(outer))")
    )
    assert ahead | back >= scopes(fa.grad(fun)) >= ahead
