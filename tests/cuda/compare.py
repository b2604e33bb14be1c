"""Programs that run twice: by the processor's target, and by the kernels for a GPU read there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from fnarray.compile import pipeline
from fnarray.compile.cpu.target import CPU
from fnarray.compile.cuda.lower import lower
from fnarray.compile.cuda.processor import ONE_THREAD
from fnarray.compile.target import Target
from fnarray.core.graph import ClosedGraph

#: Operations whose results are theirs up to what an algorithm chooses: the order of values, and the
#: phases of vectors. `test_factors` says what holds of them.
CHOSEN = {"eig", "schur"}
#: What sums in another order may differ by, in units of the last place of the largest element.
SUMS = 64


@dataclass
class Report:
    """What was found.

    Attributes
    ----------
    programs, kernels : int
    steps : Counter
        What the driver took itself, by primitive.
    differences : list of str
    exact : bool
        Whether bits must agree, and not only numbers.
    """

    programs: int = 0
    kernels: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    exact: bool = False


class Both:
    """An executable that runs on both targets, reports differences, and gives the CPU's results."""

    def __init__(self, cpu: pipeline.Executable, other: pipeline.Executable, report: Report):
        self.cpu, self.other, self.report = cpu, other, report

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cpu, name)

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Run both."""
        report = self.report
        report.programs += 1
        report.kernels += len(self.other.source.kernels)
        report.steps.update(n.eqn.primitive.name for n in self.other.source.steps)
        copies = [a.copy() for a in arrays]
        want = self.cpu.run(*arrays)
        try:
            got = self.other.run(*copies)
        except Exception as error:
            report.differences.append(f"{type(error).__name__}: {error}\n{self.other.as_text()}")
            return want
        for a, b in zip(arrays, copies, strict=True):
            if not same(a, b):
                report.differences.append(f"an input was changed\n{self.other.as_text()}")
        free = chosen(self.cpu.graph)
        for k, (w, g) in enumerate(zip(want, got, strict=True)):
            if k in free and (w.shape, w.dtype) == (g.shape, g.dtype):
                continue
            if (
                w.shape != g.shape
                or w.dtype != g.dtype
                or not (same(w, g) or (not report.exact and close(w, g)))
            ):
                text = f"result {k}:\n{w}\n{g}\n{self.other.as_text()}"
                report.differences.append(text)
        return want

    def load(self) -> Callable[..., Any]:
        """Build both, at the first run."""
        return self.run


@contextmanager
def both(report: Report, target: Target = ONE_THREAD) -> Generator[None]:
    """Run compiled programs by both targets."""
    compile_graph = pipeline.compile_graph

    def compiled(
        graph: ClosedGraph, wanted: Target | None = None, given: Any = (), *, shown: bool = False
    ) -> Any:
        cpu = compile_graph(graph, wanted or CPU, given, shown=shown)
        if wanted is not None:
            return cpu
        try:
            other = compile_graph(graph, target)
            if target is ONE_THREAD:  # beside the results: LLVM's text, the hardware's functions
                for kernel in other.source.kernels:
                    lower("k", kernel.source)
        except Exception as error:  # callers take refusals for both targets' own
            report.differences.append(f"only the processor takes it: {error!r}\n{graph}")
            return cpu
        return Both(cpu, other, report)

    with mock.patch.object(pipeline, "compile_graph", compiled):
        yield


def chosen(graph: ClosedGraph) -> set[int]:
    """Return which results are straight those of operations that choose."""
    made = {v for e in graph.jaxpr.eqns if e.primitive.name in CHOSEN for v in e.outvars}
    return {k for k, v in enumerate(graph.jaxpr.outvars) if v in made}


def same(want: np.ndarray, got: np.ndarray) -> bool:
    """Whether arrays are equal, NaN in the same places."""
    if want.dtype.kind in "biu":
        return bool(np.array_equal(want, got))
    return bool(((want == got) | ((want != want) & (got != got))).all())


def close(want: np.ndarray, got: np.ndarray) -> bool:
    """Whether arrays agree but for the order of sums."""
    if want.dtype.kind in "biu":
        return False
    half = want.dtype.itemsize == 2 and want.dtype.kind in "fV"
    eps = 2.0**-8 if want.dtype.name == "bfloat16" else np.finfo(want.dtype).eps
    if half:
        want, got = want.astype(np.float32), got.astype(np.float32)
    with np.errstate(all="ignore"):
        size = np.abs(want[np.isfinite(want)]).max(initial=0)
        room = (1 if half else SUMS) * max(eps * size, np.finfo(want.dtype).tiny)
        return bool(np.allclose(want, got, rtol=0, atol=room, equal_nan=True))


def numbers() -> tuple[np.ndarray, np.ndarray]:
    """Return float32 of many sizes, special ones among them, and as many others."""
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 88.0, 3e38, 1e-45, -1e-30]
    x = np.concatenate([special, *(rng.uniform(-s, s, 2000) for s in (1e-3, 1, 4, 12, 200))])
    return x.astype(np.float32), np.roll(x, 1000).astype(np.float32)


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """Return by how many units in the last place numbers are off, those that are finite."""
    rounded = want.astype(np.float32)
    equal = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    far = abs(got.astype(np.float64) - want) / np.spacing(np.maximum(abs(rounded), 1e-37))
    return float(np.where(equal, 0, far).max())
