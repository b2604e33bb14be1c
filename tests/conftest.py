"""Settings every test runs under: a cache of its own, verified graphs, JAX on the CPU as oracle."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

# Set at import, before any test module imports fnarray: configuration reads the environment once.
# One directory per worker and session: tests share compiled kernels, never with the user's cache,
# and subprocesses that a test starts inherit it.
_CACHE = tempfile.mkdtemp(prefix="fnarray-test-")
os.environ["FNARRAY_CACHE_DIR"] = _CACHE
os.environ["FNARRAY_VERIFY"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"


def pytest_unconfigure(config):
    """Remove this worker's cache."""
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
