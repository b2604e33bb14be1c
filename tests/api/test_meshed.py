"""Programs on a mesh of eight devices, against JAX: values, types, and how results are cut."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fnarray
from fnarray.config import effects, scoped

from .meshed_cases import KEPT, outcome, read
from .meshed_programs import CASES

WANTED = read(KEPT)


@pytest.fixture(autouse=True)
def eight_devices():
    """Give every test eight devices; what is noted while tracing is no matter here."""
    with scoped("num_cpu_devices", 8), effects("off"):
        yield


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("wrong")])
def test_as_jax(name):
    """Values, types as they print, and specs are JAX's."""
    texts, said, values = outcome(fnarray, name)
    want_texts, want_said, want_values = WANTED[name]
    assert texts == want_texts
    assert said == want_said
    for got, want in zip(values, want_values, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("wrong")])
def test_what_is_wrong(name):
    """What JAX refuses is refused, by an error of the same name, which says where."""
    error = outcome(fnarray, name)
    assert isinstance(error, Exception)
    assert WANTED[name][0] in [c.__name__ for c in type(error).__mro__], error
    assert "/tests/api/meshed_" in str(error)


@pytest.mark.slow
def test_what_is_kept_is_what_jax_gives(tmp_path):
    """The file that the others compare with is the installed JAX's."""
    path, root = tmp_path / "found.npz", str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "tests.api.meshed_cases", str(path)]
    subprocess.run(command, check=True, cwd=root, env={**os.environ, "PYTHONPATH": root})
    found = read(path)
    assert found.keys() == WANTED.keys()
    for name, entry in found.items():
        assert entry[:2] == WANTED[name][:2], name
        for got, want in zip(
            *(e[2] if len(e) > 2 else [] for e in (entry, WANTED[name])), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
