"""Classes of benchmarks: they measure what they say, and asv finds them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray.compile.cpu import build
from fnarray.config import config
from fnarray.testing.asv import benchmark

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "examples" / "asv_project"


def make_step(x):
    """A step."""
    return jnp.tanh(x) + 1


def test_what_is_measured():
    """A first call compiles, a steady one does not; sizes are those of the program."""
    kind = benchmark(make_step, lambda: (jnp.ones(1000),))
    assert (kind.__name__, kind.__doc__, kind.__module__) == ("MakeStep", "A step.", __name__)
    bench, kept = kind(), config.cache_dir
    bench.setup()
    try:
        before = build.stats["compiled"]
        bench.time_first_call()
        assert build.stats["compiled"] == before + 1
        bench.time_steady()
        bench.peakmem_call()
        assert build.stats["compiled"] == before + 1
        assert bench.track_equations() == 2
        assert bench.track_kernels() == 1
        assert bench.track_peak_bytes() == 8000
    finally:
        bench.teardown()
    assert config.cache_dir == kept


def test_a_steady_call_is_warm():
    """The one after `setup` is not the second of all: asv times one call for each `setup`."""
    calls = []

    def counted(x):
        calls.append(x)
        return x

    counted.lower = None  # taken as it is
    bench = benchmark(counted, lambda: (1,))()
    bench.setup()
    warm = len(calls)
    bench.time_steady()
    bench.teardown()
    assert warm > 10
    assert len(calls) == warm + 1


def test_names_of_classes():
    """One that is given is taken; where none can be made the error asks for one."""
    made = fa.jit(fa.grad(lambda x: (x**2).sum()))
    assert benchmark(made, tuple, name="Slope").__name__ == "Slope"
    with pytest.raises(ValueError, match="pass name="):
        benchmark(lambda x: x, tuple)
    with pytest.raises(TypeError, match="arguments must be callable"):
        benchmark(make_step, (1,))


@pytest.mark.slow
def test_asv_finds_them(tmp_path):
    """In the example's project, by asv's own check."""
    script = Path(sys.executable).with_name("asv")
    env = {"PATH": str(script.parent), "HOME": str(tmp_path)}
    command = [str(script), "machine", "--yes"]
    subprocess.run(command, cwd=PROJECT, env=env, check=True, capture_output=True)
    command = [str(script), "check", "--python=same"]
    done = subprocess.run(
        command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "No problems found" in done.stdout


def test_the_site_asks_for_nothing_from_elsewhere():
    """What asv's page loads from other hosts is in the table, and the page then loads that."""
    spec = importlib.util.spec_from_file_location("offline", ROOT / "asv_bench/offline.py")
    offline = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(offline)
    page = Path(pytest.importorskip("asv").__file__).parent / "www/index.html"
    text, wanted = offline.rewritten(page.read_text(encoding="utf-8"))
    assert sorted(wanted) == sorted(offline.FILES)
    assert not re.search(r"<(script|link)[^>]*https?:", text)
    assert all(f'"vendor/{name}"' in text for name in wanted)
    with pytest.raises(SystemExit, match="not in the table"):
        offline.rewritten('<script src="https://example.org/other.js"></script>')
