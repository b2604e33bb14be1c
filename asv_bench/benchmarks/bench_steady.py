"""Time of a repeated call, after everything is compiled."""

from __future__ import annotations

import time

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

from .cases import CASES


def blocked(call):
    """Wait for the last array of the result: all of them, for a serial CPU."""
    result = call()
    while not hasattr(result, "block_until_ready"):
        result = list(result.values() if isinstance(result, dict) else result)[-1]
    result.block_until_ready()


#: Seconds of calls before those that are timed. asv sets up before each call that it times, and the
#: first ones after that are cold: one of 3 us took 20 to 180, and one of the first 100 took 8.
WARM = 0.05


def warmed(call):
    """Call, and wait, until calls take what they take from then on: at least twice."""
    call()
    begin = time.perf_counter()
    while True:
        call()
        if time.perf_counter() > begin + WARM:
            return


class Fastest:
    """A clock for asv on which a sample takes what the fastest burst of calls in this process took.

    A core whose other half is busy takes 1.7 times as long for seconds on end, and the processor's
    clock counts it: of ten bursts of 100 calls the median was from 2.7 to 5.4 us a call in eight
    processes, the least of thousands from 2.16 to 2.24.
    """

    def __init__(self):
        self._now = 0.0
        self._least = float("inf")

    def __call__(self):
        return self._now

    def burst(self, call, seconds):
        """Call a hundred times, again and again for some seconds, and go on by the fastest."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            begin = time.process_time()
            for _ in range(100):
                call()
            self._least = min(self._least, time.process_time() - begin)
        self._now += self._least


class Steady:
    """Set up one case for each value of ``params``."""

    param_names = ("case",)
    params: tuple[str, ...] = ()

    def setup(self, case):
        self.call = CASES[case].build(fa)
        warmed(lambda: blocked(self.call))


class Calls(Steady):
    """Decides what the dispatcher may do per call: each lookup added shows here first."""

    params = ("call_scalar", "call_40_leaves", "eager_add_16", "eager_sin_16", "eager_sum_16")
    timer = Fastest()
    repeat = (20, 20, 20.0)

    def time_100_calls(self, case):
        self.timer.burst(self.call, 0.2)


class WholeArrays(Steady):
    """Decides fusion, vector math and the threshold above which kernels use threads."""

    params = (
        "selu_1m",
        "gelu_1m",
        "black_scholes_1m",
        "trig_log_1m",
        "softmax_4000x256",
        "layer_norm_4000x256",
        "column_stats_20000x64",
    )

    def time_call(self, case):
        blocked(self.call)


class Sequential(Steady):
    """Decides how loop bodies keep carries in registers and arrays in place."""

    params = (
        "scan_scalar_100k",
        "rk4_lotka_volterra_10k",
        "stencil_256_100_steps",
        "edit_distance_500",
        "bubble_sort_500",
        "garch_10k",
    )

    def time_call(self, case):
        blocked(self.call)


class Watched:
    """Decides into how many parts `progress` cuts a loop: with it, and without."""

    param_names = ("watched",)
    params = (False, True)

    def setup(self, watched):
        def body(carry, x):
            for _ in range(8):
                carry = jnp.sin(carry) * 0.9 + x
            return carry, carry

        body = fa.progress()(body) if watched else body
        loop = fa.jit(lambda carry, xs: lax.scan(body, carry, xs))
        args = jnp.ones(1024), jnp.ones(1000)
        self.call = lambda: loop(*args)
        warmed(lambda: blocked(self.call))

    def time_scan_that_stacks_4_mb(self, watched):
        blocked(self.call)
