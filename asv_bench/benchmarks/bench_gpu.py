"""Programs on a GPU; skipped where there is none."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
gpu = importlib.import_module("gpu")


class OnGpu:
    """Workloads of `gpu.py`, a sixteenth of their size: is bandwidth what bounds them?"""

    params = tuple(gpu.ROWS)
    param_names = ("workload",)

    def setup(self, name: str) -> None:
        """Put the arguments there, and run once."""
        import fnarray

        try:
            where = fnarray.devices("gpu")[0]
        except RuntimeError as error:
            raise NotImplementedError from error  # asv's way to skip
        build, make = gpu.ROWS[name]
        self.f = fnarray.jit(build(fnarray))
        self.args = [fnarray.device_put(a, where) for a in make(16)]
        self.time_call(name)

    def time_call(self, name: str) -> Any:
        """A call, and its wait."""
        for leaf in gpu.leaves(self.f(*self.args)):
            leaf.block_until_ready()
