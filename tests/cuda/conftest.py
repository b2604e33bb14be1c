"""What all tests of this folder have."""

from __future__ import annotations

import gc

import pytest

from fnarray.compile.cuda import cublas, vendor

from .machine import computing, forget, loaded


@pytest.fixture(autouse=True)
def without_libraries(monkeypatch):
    """Programs have the same text whether libraries are installed or not; tests of them say so."""
    monkeypatch.setattr(vendor, "installed", lambda: False)
    monkeypatch.setattr(cublas, "library", lambda: None)


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """Let collections look at what this module makes: all of a worker's takes a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The stub, under the driver's name: a process finds the first of that name, once loaded."""
    return loaded(tmp_path_factory.mktemp("stub"))


@pytest.fixture
def machine(library):
    """A machine with two GPUs whose kernels compute."""
    library.stub_set(2, 12040, 1 << 30)
    forget()
    with computing(library):
        yield library
    gc.collect()
    library.stub_set(1, 12040, 1 << 30)
    forget()
