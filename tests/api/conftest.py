"""What tests of maps over devices share."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def oracle(tmp_path_factory):
    """JAX's results by case, from a process of its own, which has as many devices as examples."""
    path = tmp_path_factory.mktemp("maps") / "results.pkl"
    command = [sys.executable, "-m", "tests.api.mapped_cases", str(path)]
    root = str(Path(__file__).parents[2])
    subprocess.run(command, check=True, cwd=root, env={**os.environ, "PYTHONPATH": root})
    return pickle.loads(path.read_bytes())
