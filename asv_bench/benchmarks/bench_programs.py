"""Time of whole programs, of the kinds that others write: first calls and later ones."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import fnarray as fa

from .bench_steady import warmed
from .process import environment

# asv imports this package alone; the programs are one beside it.
sys.path.append(str(Path(__file__).parents[1]))
from programs import PROGRAMS
from programs.process import blocked, first_call, prepared


class Programs:
    """Decides what is fused, unrolled, stored and left to a library in programs as they are."""

    param_names = ("program",)
    params = tuple(PROGRAMS)

    def setup(self, program):
        self.call = prepared("fnarray", program, "small", "value")
        warmed(lambda: blocked(fa, self.call()))

    def time_call(self, program):
        blocked(fa, self.call())


class Gradients(Programs):
    """Decides which residuals are kept, and how cotangents of slices are added up."""

    params = tuple(name for name, program in PROGRAMS.items() if program.grad)

    def setup(self, program):
        self.call = prepared("fnarray", program, "small", "gradient")
        warmed(lambda: blocked(fa, self.call()))


class FirstProgram:
    """Decides how long a new process with empty caches may take for a program it has not seen."""

    param_names = ("program",)
    params = ("equation_of_state", "isoneutral_mixing", "lu_by_rows", "mlp_gradient", "hessian")
    timeout = 120

    def setup(self, program):
        self.cache = tempfile.mkdtemp(prefix="fnarray-bench-")

    def teardown(self, program):
        shutil.rmtree(self.cache)

    def track_seconds(self, program):
        """Report the processor's seconds of the first call."""
        env = environment(self.cache)
        return first_call(env, "cpu", "fnarray", program, "small", "value")

    track_seconds.unit = "seconds"
