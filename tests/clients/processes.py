"""Programs run twice, each in a process of its own: under fnarray, and under the real JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments, outside of this checkout's folder."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def results(program: Path, folder: Path, under: str) -> dict[str, np.ndarray]:
    """Return what a program writes to the file given, under ``"fnarray"`` or ``"jax"``."""
    out = folder / f"{program.stem}-{under}.npz"
    before = ["-m", "fnarray", "run"] if under == "fnarray" else []
    done = run([*before, str(program), str(out)], folder)
    if done.returncode:
        raise RuntimeError(f"{program.name} under {under}:\n{done.stderr}")
    with np.load(out) as file:
        return dict(file)


def differences(
    found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], rtol: float, atol: float
) -> list[str]:
    """Say which results are not those wanted: names, shapes, dtypes, values."""
    bad = [f"{name}: only one has it" for name in sorted(found.keys() ^ wanted.keys())]
    for name in sorted(found.keys() & wanted.keys()):
        a, b = found[name], wanted[name]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            bad.append(f"{name}: {a.dtype}{a.shape}, wanted {b.dtype}{b.shape}")
        elif a.dtype.kind in "fc" and not name.startswith("exact_"):
            if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
                worst = np.nanmax(np.abs(a - b))
                bad.append(f"{name}: off by up to {worst:.3g} of {np.nanmax(np.abs(b)):.3g}")
        elif not np.array_equal(a, b):
            bad.append(f"{name}: differs in {np.sum(a != b)} of {a.size} elements")
    return bad
