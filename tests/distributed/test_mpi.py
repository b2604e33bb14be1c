"""Workers that mpiexec started, where there is one: the same programs, the same bits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fnarray import distributed

PROGRAM = Path(__file__).with_name("mpi_program.py")
pytest.importorskip("mpi4py")
needs_mpiexec = pytest.mark.skipif(shutil.which("mpiexec") is None, reason="there is no mpiexec")


def started(count, program):
    """What a program prints, started by mpiexec: as root, with more processes than cores."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    more = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    return subprocess.run(
        ["mpiexec", "-n", str(count), sys.executable, *program],
        env={**os.environ, **allowed, **more}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


@needs_mpiexec
def test_programs_under_mpiexec():
    """Collectives, small and large, loops and moves between three workers go over MPI alone."""
    done = started(4, [PROGRAM])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "7 ['Records']"


@needs_mpiexec
def test_a_single_process():
    """One process alone has no workers: the error says how to start."""
    done = started(1, ["-c", "from fnarray import distributed; distributed.mpi()"])
    assert done.returncode != 0
    assert "this is the only process" in done.stderr
    assert "mpiexec -n 5" in done.stderr


def test_without_mpi4py(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ModuleNotFoundError, match="pip install mpi4py"):
        distributed.mpi()
