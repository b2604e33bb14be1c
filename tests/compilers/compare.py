"""Kernels that run twice, by Numba's code and by the native compiler's, and report differences."""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import fnarray
from fnarray.compile import pipeline
from fnarray.compile.cpu import build
from fnarray.compile.cpu.build import KernelSource, kernel_name
from fnarray.compile.cpu.namespace import spell
from fnarray.compile.cpu.native import kernel as native
from fnarray.compile.cpu.native.load import rebuild
from fnarray.compile.cpu.native.types import Fallback
from fnarray.compile.target import one_by_one

# The corpus takes in the benchmarks, a package beside this one.
sys.path.append(str(Path(__file__).parents[2] / "asv_bench"))
from tests.replay import corpus

#: What reassociated sums may differ by, in units of the last place of the largest element.
SUMS = 64


@dataclass
class Report:
    """What was found.

    Attributes
    ----------
    kernels : dict
        By name, the program that each kernel was first met in.
    fallbacks : dict
        By name, why a kernel is left to Numba.
    differences : list of str
    reordered : set of str
        Kernels whose sums were added in another order.
    """

    kernels: dict[str, str] = field(default_factory=dict)
    fallbacks: dict[str, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    reordered: set[str] = field(default_factory=set)
    program: str = ""

    def reasons(self) -> Counter[str]:
        """Count the reasons for which kernels are left to Numba."""
        return Counter(self.fallbacks.values())


one = threading.Lock()


def both(report: Report, src: KernelSource) -> Callable[..., None]:
    """Return a kernel that runs by both compilers, and reports where results differ."""
    name = kernel_name(src)
    text = spell(name, src)
    by_numba, _ = build._by_numba(name, src, text, f"<{name}>")
    report.kernels.setdefault(name, report.program)
    try:
        ours = rebuild(name, src.signature, native.compile_kernel(name, src))
    except Fallback as reason:
        report.fallbacks[name] = str(reason)
        return by_numba
    sums = "sc.radd" in src.text or "sc.rmul" in src.text
    # What a kernel leaves in its own arrays is not read again: one may keep there what it likes.
    params = src.text.partition("(")[2].partition(")")[0].split(", ")
    scratch = [re.fullmatch(r"w\d+", param) for param in params]

    def run(*args: Any) -> None:
        with one:  # chunks of one array run on several threads, and each copies it whole
            turn(*args)

    def turn(*args: Any) -> None:
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        ours(*copies)
        by_numba(*args)
        for k, (want, got) in enumerate(zip(args, copies, strict=True)):
            if not isinstance(want, np.ndarray) or scratch[k] or same(want, got):
                continue
            if sums and close(want, got):
                report.reordered.add(name)
            else:
                worst = f"{report.program}: {name}, argument {k}\n{want}\n{got}\n{text}"
                report.differences.append(worst)

    return run


def same(want: np.ndarray, got: np.ndarray) -> bool:
    """Whether arrays have the same bits, but that one NaN is as good as another."""
    if want.dtype.kind in "biu":
        return bool((want == got).all())
    real = [x.view(x.real.dtype) if x.dtype.kind == "c" else x for x in (want, got)]
    bits = [np.atleast_1d(x).view(f"u{x.dtype.itemsize}") for x in real]
    with np.errstate(invalid="ignore"):  # rows that no chunk has written yet may signal
        nans = [np.isnan(np.atleast_1d(x).astype(float)) for x in real]
    return bool(((bits[0] == bits[1]) | (nans[0] & nans[1])).all())


def close(want: np.ndarray, got: np.ndarray) -> bool:
    """Whether arrays agree but for the order of sums."""
    if want.dtype.kind in "biu":
        return False
    with np.errstate(all="ignore"):
        size = np.abs(want[np.isfinite(want)]).max(initial=0)
        room = SUMS * max(np.finfo(want.dtype).eps * size, np.finfo(want.dtype).tiny)
        return bool(np.allclose(want, got, rtol=0, atol=room, equal_nan=True))


def compare(every: int = 1, report: Report | None = None) -> Report:
    """Run the programs of the corpus, each ``every``-th, with both compilers."""
    fnarray.clear_caches()  # a program in memory would ask for no kernel
    report = report or Report()
    loaded: dict[KernelSource, Callable[..., None]] = {}
    bind = pipeline.Executable._bind

    def load(src: KernelSource) -> Callable[..., None]:
        if src not in loaded:
            loaded[src] = both(report, src)
        return loaded[src]

    def binding(executable: pipeline.Executable) -> Any:
        executable.target = replace(executable.target, build=one_by_one(load))
        return bind(executable)

    count = iter(range(1 << 30))

    def run(f: Callable[..., Any], *args: Any) -> str:
        report.program = getattr(f, "__name__", str(f))
        if next(count) % every == 0:
            try:
                fnarray.jit(f)(*args)
            except (TypeError, ValueError, NotImplementedError, fnarray.errors.FnarrayError):
                return "error"
        return ""

    with (
        mock.patch.object(pipeline.Executable, "_bind", binding),
        mock.patch.object(corpus, "text_of", run),
    ):
        for report.program, _ in corpus.texts():
            pass
    return report
