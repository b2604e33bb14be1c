"""What all tests of this folder have."""

from __future__ import annotations

import pytest

from fnarray.compile.cuda import vendor


@pytest.fixture(autouse=True)
def without_cupy(monkeypatch):
    """Programs have the same text whether CuPy is installed or not; tests of it say so."""
    monkeypatch.setattr(vendor, "installed", lambda: False)
