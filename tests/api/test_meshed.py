"""Programs on a mesh of eight devices, against JAX: values, types, and how results are cut."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fnarray
from fnarray.config import effects, scoped

from .meshed_cases import CASES, outcome


@pytest.fixture(scope="module")
def jax_on_eight(tmp_path_factory):
    """JAX's results by program, from a process of its own, which has eight devices."""
    path = tmp_path_factory.mktemp("meshed") / "results.pkl"
    command = [sys.executable, "-m", "tests.api.meshed_cases", str(path)]
    root = str(Path(__file__).parents[2])
    subprocess.run(command, check=True, cwd=root, env={**os.environ, "PYTHONPATH": root})
    return pickle.loads(path.read_bytes())


@pytest.fixture(autouse=True)
def eight_devices():
    """Give every test eight devices; what is noted while tracing is no matter here."""
    with scoped("num_cpu_devices", 8), effects("off"):
        yield


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("wrong")])
def test_as_jax(name, jax_on_eight):
    """Values, types as they print, and specs are JAX's."""
    texts, said, values = outcome(fnarray, name)
    want_texts, want_said, want_values = jax_on_eight[name]
    assert texts == want_texts
    assert said == want_said
    for got, want in zip(values, want_values, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("wrong")])
def test_what_is_wrong(name, jax_on_eight):
    """What JAX refuses is refused, by an error of the same name, which says where."""
    error = outcome(fnarray, name)
    assert isinstance(error, Exception)
    assert jax_on_eight[name][0] in [c.__name__ for c in type(error).__mro__], error
    assert "meshed_cases.py" in str(error)
