"""Compiled loops, shared by the tests of this folder."""

from __future__ import annotations

import pytest

from . import loops


@pytest.fixture(scope="session")
def compiled():
    """Give ``compiled(fn, arity)``: a compiled loop that maps `fn` over arrays into `out`."""
    return loops.compiled
