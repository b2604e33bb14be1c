"""Cost of beginning: first calls, fresh processes, imports, memory."""

from __future__ import annotations

import shutil
import tempfile

import fnarray as fa

from .cases import CASES
from .process import environment, spawn


class FirstCalls:
    """Decides how much the compiler may think, and whether to evaluate while it does."""

    param_names = ("case",)
    params = ("first_call_10_ops", "second_size_10_ops")
    # One call a sample and a new setup before it: what is timed happens once to each function.
    number = 1
    warmup_time = 0

    def setup(self, case):
        prepare = CASES[case].build(fa)
        prepare()().block_until_ready()  # the process's first compilation imports Numba
        self.call = prepare()

    def time_call(self, case):
        self.call().block_until_ready()


class FreshProcess:
    """Decides what a cache entry holds, and what may be imported to use it."""

    number = 1
    warmup_time = 0
    timeout = 120

    def setup(self):
        self.cache = tempfile.mkdtemp(prefix="fnarray-bench-")
        self.env = environment(self.cache)
        spawn("fnarray", "warm_process", self.env)

    def teardown(self):
        shutil.rmtree(self.cache)

    def time_warm_disk(self):
        spawn("fnarray", "warm_process", self.env)

    def track_peak_bytes(self):
        """Report the memory ten fused operations on 100 MB add; decides buffer planning."""
        return spawn("fnarray", "memory_chain_100mb", self.env)[1]

    track_peak_bytes.unit = "bytes"


class Import:
    """Decides what the root package may load: NumPy and the tracer, no compiler."""

    def timeraw_import(self):
        """Return the source asv times in a new interpreter."""
        return "import fnarray"
