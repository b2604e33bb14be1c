"""Time of transformed functions: compiled, and without compilation."""

from __future__ import annotations

import fnarray as fa

from . import derivatives  # noqa: F401 - registers its cases
from .bench_steady import Steady, blocked
from .cases import CASES


class Loops(Steady):
    """Decides which residuals a loop keeps, and how lanes of loops are grouped."""

    params = (
        "grad_hodgkin_huxley_10k",
        "grad_tanh_recurrence_10k",
        "grad_lotka_volterra_1k",
        "vmap_newton_20k_lanes",
        "vmap_collatz_20k_lanes",
    )

    def time_call(self, case):
        blocked(self.call)


class Models(Steady):
    """Decides how products and kernels share the cores, and what is fused between them."""

    params = (
        "mlp_sgd_step",
        "logistic_value_and_grad",
        "per_example_gradients",
        "hessian_rosenbrock_100",
    )

    def time_call(self, case):
        blocked(self.call)


class Eager(Steady):
    """Decides the cost of a rule: tracers, tapes and their transposition, op by op."""

    params = ("eager_grad_20_ops",)

    def time_call(self, case):
        self.call()


class Transform:
    """Decides the cost of tracing and transforming large graphs."""

    def setup(self):
        self.prepare = CASES["transform_grad_500_ops"].build(fa)
        self.prepare()()

    def time_grad_500_ops(self):
        self.prepare()()
