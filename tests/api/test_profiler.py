"""Profiles: what a trace holds, its format, and that nothing is left when it has ended."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading

import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import profiler
from fnarray.api.jit import PjitFunction
from fnarray.api.stages import Compiled
from fnarray.core import hooks


def taken(folder):
    """The events of the one profile in a folder."""
    (path,) = folder.glob("*.trace.json")
    return json.loads(path.read_text())


def check_format(document):
    """The trace event format: complete events and metadata, as Chrome and Perfetto read them.

    See "Trace Event Format" (Nick Duca and Dan Sinclair): the object format, phases X and M.
    """
    assert set(document) >= {"traceEvents"}
    assert document.get("displayTimeUnit") in ("ms", "ns")
    threads = set()
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        assert isinstance(event.get("args", {}), dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            threads.add(event["tid"])
            continue
        assert event["ph"] == "X"
        assert isinstance(event["cat"], str)
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert all(type(v) in (int, float, str) for v in event["args"].values())
        assert event["tid"] in threads


def check_nested(document):
    """Spans of a thread lie in or beside each other, as viewers draw them."""
    by_thread = {}
    for e in document["traceEvents"]:
        if e["ph"] == "X":
            by_thread.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
    for spans in by_thread.values():
        open_until = []
        for begin, end in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_until and open_until[-1] <= begin + 0.01:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 0.01
            open_until.append(end)


def test_a_profile_holds_calls_compilation_and_kernels(tmp_path):
    """In the format, nested, with labels; a function compiled before is seen, too."""

    @fa.jit
    def known(x):
        return jnp.tanh(x).sum() + 1

    @fa.jit
    def new(x):
        return jnp.sort(jnp.sin(x) * 3)

    x = jnp.ones(1000)
    known(x)
    with profiler.trace(tmp_path):
        for k in range(2):
            with profiler.StepTraceAnnotation("step", step_num=k):
                known(x)
                new(x)
    document = taken(tmp_path)
    check_format(document)
    check_nested(document)
    found = {}
    for e in document["traceEvents"]:
        if e["ph"] == "X":
            found.setdefault(e["cat"], []).append(e)
    assert [e["args"] for e in found["annotation"]] == [{"step_num": 0}, {"step_num": 1}]
    assert len(found["call"]) == 4
    assert found.keys() >= {"trace", "simplify", "schedule", "emit", "build", "kernel", "library"}
    assert any("sort in " in e["name"] for e in found["library"])
    assert any("tanh" in e["name"] or "reduce_sum" in e["name"] for e in found["kernel"])


def test_nothing_is_left_behind(tmp_path):
    """After a profile calls are made of what they were made of before, also after an error."""
    plain = PjitFunction.__call__, Compiled.__call__, Compiled.call
    f = fa.jit(lambda x: jnp.exp(x) + 2)
    f(jnp.ones(3))
    before = {m: dict(m.__globals__) for m in hooks.drivers}

    def fail():
        with profiler.trace(tmp_path):
            assert PjitFunction.__call__ is not plain[0]
            f(jnp.ones(3))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert (PjitFunction.__call__, Compiled.__call__, Compiled.call) == plain
    assert not hooks.listeners
    assert not hooks.binders
    for main, names in before.items():
        assert all(main.__globals__[k] is v for k, v in names.items() if k.startswith("kernel"))
    check_format(taken(tmp_path))


def test_kernels_of_several_threads(tmp_path):
    """Each thread's calls are on a line of its own, which has its name."""
    f = fa.jit(lambda x: jnp.cos(x) * 2)
    x = jnp.ones(10)
    f(x)
    with profiler.trace(tmp_path):
        thread = threading.Thread(target=f, args=(x,), name="mine")
        thread.start()
        thread.join()
        f(x)
    document = taken(tmp_path)
    named = {e["args"]["name"]: e["tid"] for e in document["traceEvents"] if e["ph"] == "M"}
    tids = {e["tid"] for e in document["traceEvents"] if e.get("cat") == "kernel"}
    assert named["mine"] in tids
    assert len(tids) == 2


def test_annotated_functions_keep_what_they_are(tmp_path):
    """A label changes neither name, result nor error; traced inside, it is a scope."""

    @profiler.annotate_function
    def doubled(x):
        """Twice."""
        return x * 2

    named = profiler.annotate_function(doubled, name="other", size=3)
    assert doubled.__name__ == "doubled"
    assert doubled.__doc__ == "Twice."
    with profiler.trace(tmp_path):
        assert named(4) == 8
    labels = {e["name"]: e.get("args") for e in taken(tmp_path)["traceEvents"] if e["ph"] == "X"}
    assert labels["other"] == {"size": 3}
    jaxpr = fa.make_jaxpr(named)(jnp.ones(3))
    assert jaxpr.eqns[0].source.scope == "other/" + doubled.__wrapped__.__qualname__


def test_wrong_use(tmp_path):
    """Two profiles at a time, one that was not begun, a label that is no text."""
    with pytest.raises(RuntimeError, match="no profile was started"):
        profiler.stop_trace()
    with profiler.trace(tmp_path), pytest.raises(RuntimeError, match="is being taken already"):
        profiler.start_trace(tmp_path)
    with pytest.raises(TypeError, match="a label must be a string"):
        profiler.TraceAnnotation(3)
    with pytest.raises(RuntimeError, match="no profile is being taken"):
        profiler.summary()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        profiler.start_trace(tmp_path / "file")
    with profiler.trace(tmp_path / "new" / "folder"):
        pass
    with pytest.warns(UserWarning, match="nothing listens at port 9999"):
        profiler.start_server(9999)
    with pytest.raises(ValueError, match="Only one profiler server"):
        profiler.start_server(9999)
    profiler.stop_server()
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()


def test_programs_found_on_disk_say_what_they_do(tmp_path):
    """A second process, which neither traces nor plans, labels kernels as the first does."""
    script = tmp_path / "script.py"
    script.write_text(
        "import fnarray as fa, fnarray.numpy as jnp\n"
        "def f(x):\n"
        "    return jnp.sin(x) * 3.25\n"
        "with fa.profiler.trace('profiles'):\n"
        "    fa.jit(f)(jnp.ones(64))\n"
    )
    for _ in range(2):
        # Without FNARRAY_VERIFY, under which all is traced.
        env = {"PATH": "", "FNARRAY_CACHE_DIR": str(tmp_path / "cache")}
        subprocess.run([sys.executable, script], cwd=tmp_path, env=env, check=True)
    first, second = (
        [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]
        for file in sorted((tmp_path / "profiles").iterdir(), key=lambda f: f.stat().st_mtime_ns)
    )
    assert any(e["cat"] == "trace" for e in first)
    assert not any(e["cat"] == "trace" for e in second)
    kernels = [{e["name"] for e in events if e["cat"] == "kernel"} for events in (first, second)]
    assert kernels[0] == kernels[1]
    assert all(name.endswith(" mul in f") for name in kernels[1])


def test_a_profile_that_cannot_be_written_is_kept(tmp_path):
    """Until it has been written elsewhere, or another one begins."""
    f = fa.jit(lambda x: x * 3)
    refused = pytest.raises(OSError, match="kept for another stop_trace")
    with refused, profiler.trace(tmp_path / "gone"):
        f(jnp.ones(3))
        (tmp_path / "gone").rmdir()
    file = profiler.stop_trace(tmp_path / "other")
    assert file.parent == tmp_path / "other"
    names = {e["name"] for e in json.loads(file.read_text())["traceEvents"]}
    assert any("<lambda>" in name for name in names), names
    with pytest.raises(RuntimeError, match="no profile was started"):
        profiler.stop_trace()


def test_a_summary_is_printed_at_exit():
    """By the environment; nothing of it otherwise."""
    code = "import fnarray as fa, fnarray.numpy as jnp; fa.jit(lambda x: x + 1)(jnp.ones(3))"
    told = {}
    for value in ("off", "summary"):
        env = {**os.environ, "FNARRAY_PROFILE": value}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        told[value] = done.stderr
    assert told["off"] == ""
    assert "fnarray profile" in told["summary"]
    assert "kernel" in told["summary"]


def test_the_summary_can_be_switched(tmp_path):
    """On and off while the process runs, around a trace of its own."""
    plain = PjitFunction.__call__
    f = fa.jit(lambda x: x - 1)
    fa.config.update("profile", "summary")
    try:
        f(jnp.ones(3))
        with profiler.trace(tmp_path):
            f(jnp.ones(3))
        f(jnp.ones(3))
        assert "call" in profiler.summary()
    finally:
        fa.config.update("profile", "off")
    assert PjitFunction.__call__ is plain
    calls = [e for e in taken(tmp_path)["traceEvents"] if e.get("cat") == "call"]
    assert len(calls) == 1


def _fields(data):
    """The fields of a protocol buffer: numbers, and what has a length."""
    found, at = [], 0

    def number():
        nonlocal at
        total = shift = 0
        while True:
            byte, at = data[at], at + 1
            total, shift = total + (byte % 128 << shift), shift + 7
            if byte < 128:
                return total

    while at < len(data):
        field, kind = divmod(number(), 8)
        value = number()
        if kind == 2:
            value, at = data[at : at + value], at + value
        found.append((field, value))
    return found


def test_memory_profile_counts_arrays_and_their_bytes(tmp_path):
    """A profile for pprof has a sample for each type: the number of arrays, and their bytes."""
    held = [jnp.zeros((3, 211), jnp.int16) for _ in range(5)]
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    top = _fields(gzip.decompress((tmp_path / "memory.prof").read_bytes()))
    texts = [v.decode() for k, v in top if k == 6]
    assert texts[0] == ""
    names = {dict(_fields(v))[1]: texts[dict(_fields(v))[2]] for k, v in top if k == 5}
    samples = [_fields(v) for k, v in top if k == 2]
    counts = {names[dict(s)[1]]: tuple(v for k, v in s if k == 2) for s in samples}
    assert counts["int16[3,211]"] == (5, 5 * held[0].nbytes)
    units = [tuple(texts[n] for _, n in _fields(v)) for k, v in top if k == 1]
    assert units == [("allocations", "count"), ("space", "bytes")]
    with pytest.raises(RuntimeError, match="garbage"):
        profiler.device_memory_profile("garbage")
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"memory profile .* cannot be written: No space left"):
        profiler.save_device_memory_profile(full)
    assert full.is_char_device()
