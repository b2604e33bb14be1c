"""Libraries written for JAX: a program of each, run under fnarray and under JAX, and compared.

They need the extra ``clients``, and four minutes: ``pytest -m clients``, before every release.
"""

from __future__ import annotations

import pytest

from .processes import HERE, differences, results

PROGRAMS = sorted((HERE / "programs").glob("*_client.py"))


@pytest.mark.clients
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem.removesuffix("_client"))
def test_program(program, tmp_path):
    """A library trains, samples, solves or fits the same, and draws the same numbers."""
    found, wanted = (results(program, tmp_path, under) for under in ("fnarray", "jax"))
    assert not differences(found, wanted, rtol=1e-4, atol=1e-4)
