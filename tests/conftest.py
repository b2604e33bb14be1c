"""Settings every test runs under: a cache of its own, verified graphs, JAX on the CPU as oracle.

And each test's tier: `null` (traces, transforms, emits text; imports no Numba) or `cpu`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from . import sampled

# Set at import, before any test module imports fnarray: configuration reads the environment once.
# One directory per session, made before the workers start: tests share compiled kernels, never with
# the user's cache, and subprocesses that a test starts inherit it.
_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if not _WORKER:
    os.environ["FNARRAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="fnarray-test-")
_CACHE = os.environ["FNARRAY_CACHE_DIR"]
os.environ["FNARRAY_VERIFY"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_TRACEBACK_FILTERING"] = "off"  # all frames, where the oracle fails and we do
os.environ["FNARRAY_TRACEBACK_FILTERING"] = "off"
os.environ["FNARRAY_PLATFORMS"] = "cpu,gpu"  # what asks for a GPU names it
# The oracle's programs run once: to optimise them takes a quarter of the time of compiling them.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Nor does one wait for its loops to be written by MLIR, in several modules: 168 programs of
# `test_image` took 20.6 s of the processor, 10.3 without the first and 8.6 without either. XLA ends
# the process where it does not know a flag: from jaxlib 0.11 on there are no older emitters.
_FLAGS = ["--xla_cpu_parallel_codegen_split_count=1"]
with contextlib.suppress(PackageNotFoundError):  # who runs `-m gpu` need not have it
    if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
        _FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(_FLAGS))


#: Modules and folders whose tests are of the null tier, but for those marked `cpu`.
NULL = """
    api/test_custom_surface.py api/test_transformed_jaxprs.py architecture compile/test_cache.py
    compile/test_reader.py compile/test_sizes.py compile/test_writer.py control/test_errors.py core
    ops/test_derivatives_contract.py
    ops/test_derivatives_numpy.py ops/test_derivatives_shape.py purity/test_guards.py
    purity/test_lint_cache.py purity/test_lint_cli.py purity/test_lint_corpus.py
    purity/test_lint_faults.py purity/test_lint_formats.py
    purity/test_lint_programs.py purity/test_lint_resolve.py purity/test_lint_tracing.py
    purity/test_lint_verify.py purity/test_nodes.py purity/test_live.py purity/test_live_corpus.py
    purity/test_live_leaks.py purity/test_live_transforms.py purity/test_messages.py
    purity/test_rules.py purity/test_ways.py
    surface/test_numpy_methods.py
"""
#: Modules and folders of the tests of some marks: with ``-m null``, say, nothing else is collected.
#: What others import takes a minute, and who has a GPU need not have it.
_PLACES = {
    mark: [Path(__file__).parent / name for name in names.split()]
    for mark, names in {
        "null": NULL,
        "gpu": "cuda/test_gpu.py",
        "browser": "report/test_browser.py site/test_site.py",
    }.items()
}


def _is_null(path):
    return any(place == path or place in path.parents for place in _PLACES["null"])


def pytest_sessionstart(session):
    """End at once where ``-m gpu`` finds no GPU: who asks is told why, and not by each test."""
    if session.config.option.markexpr != "gpu" or _WORKER:
        return
    try:
        importlib.import_module("fnarray").devices("gpu")
    except RuntimeError as error:
        pytest.exit(f"-m gpu needs a GPU. {error}", returncode=1)


def pytest_ignore_collect(collection_path, config):
    """Leave out what holds no test of the mark that is asked for."""
    asked = _PLACES.get(config.option.markexpr, ())
    around = any(
        place == collection_path
        or place in collection_path.parents
        or collection_path in place.parents
        for place in asked
    )
    return True if asked and not around else None


#: What takes longest, so that no worker is left alone with it at the end.
_LONG = {"test_native", "test_ops", "test_recorded", "test_image", "test_random"}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give each test one tier, its module's where it says nothing; order long files first."""
    _give_tiers(items)
    sampled.mark(items)
    result = yield  # the order is shuffled here
    # Workers of a cluster take a twentieth of a core each while they wait: theirs come last.
    items.sort(
        key=lambda item: (item.path.stem not in _LONG, item.path.parent.name == "distributed")
    )
    return result


def _give_tiers(items):
    for item in items:
        own = {mark.name for mark in item.iter_markers()} & {"null", "cpu", "cuda"}
        if not own:
            item.add_marker("null" if _is_null(item.path) else "cpu")
        elif len(own) > 1 or ("null" in own and not _is_null(item.path)):
            raise pytest.UsageError(
                f"{item.nodeid} is marked {' and '.join(sorted(own))}; a test is of one tier, and "
                "modules of the null tier are listed in tests/conftest.py."
            )


def pytest_collection_finish(session):
    """With ``-m null`` collecting imports no Numba."""
    if session.config.option.markexpr == "null" and "numba" in sys.modules:
        raise pytest.UsageError("a module of the null tier imports Numba (tests/conftest.py, NULL)")


# What is frozen below counts no more among what is old, so that a quarter of it is soon new: full
# searches took 95 of the suite's 2,000 s of the processor.
gc.set_threshold(2000, 10, 200)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Leave what a file made to no further search for garbage: workers hold gigabytes of programs.

    Looking through all of it took 16 % of the null tier's time.
    """
    if nextitem is None or item.path != nextitem.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _tier(request):
    """Fail the test of the null tier that is the first to import Numba, unasked."""
    before = "numba" in sys.modules or os.environ.get("FNARRAY_COMPILER") == "numba"
    yield
    if request.node.get_closest_marker("null") and not before and "numba" in sys.modules:
        pytest.fail("imports Numba: mark this test `cpu`, or its module (tests/conftest.py, NULL)")


def pytest_unconfigure(config):
    """Remove the session's cache."""
    if not _WORKER:
        shutil.rmtree(_CACHE, ignore_errors=True)


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    """Give an empty cache directory to the subprocesses of one test."""
    path = tmp_path / "cache"
    monkeypatch.setenv("FNARRAY_CACHE_DIR", str(path))
    return path


@pytest.fixture
def x64():
    """Run one test with 64-bit defaults."""
    from fnarray.config import enable_x64

    with enable_x64(True):
        yield


@pytest.fixture(scope="session")
def jax():
    """Import the oracle once, and only for tests that ask for it."""
    import jax

    return jax
