"""The programs whose emitted text is compared: of the tests, of the benchmarks, and larger ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import fnarray
import fnarray.lax as lax
from fnarray.config import enable_x64, scoped
from tests.ops.opcase import is_wide
from tests.ops.test_ops import CASES
from tests.property.programs import Program, arguments, programs

from .large import PROGRAMS
from benchmarks import cases, derivatives

RANDOM = 200

Named = Iterator[tuple[str, str]]


def text_of(f: Callable[..., Any], *args: Any) -> str:
    """Return what is emitted for a function; for one that is refused, the kind of error."""
    try:
        return fnarray.jit(f).lower(*args).as_text(dialect="numba")
    except Exception as error:
        return type(error).__name__


def operations() -> Named:
    """One program for each operation's case and dtypes."""
    for k, case in enumerate(CASES):
        for signature in case.signatures():
            with enable_x64(is_wide(signature)):
                args = case.args(signature)
                yield f"op {k} {case.name} {'-'.join(signature)}", text_of(case.face(lax), *args)


def random_programs(first: int = 0, count: int = RANDOM) -> Named:
    """Random programs, their gradients and batches; another ``first`` seed gives others."""
    found: list[tuple[Program, int]] = []

    @seed(first)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(max_steps=10), st.integers(0, 3))
    def collect(program: Program, number: int) -> None:
        found.append((program, number))

    collect()
    for k, (program, number) in enumerate(found):
        args = arguments(program, number)
        yield f"random {k}", text_of(partial(program, lax), *args)
        if k % 3 == 0 and program.reversible:

            def loss(*xs: Any, program: Program = program) -> Any:
                return sum(fnarray.numpy.sum(x * x) for x in program(lax, *xs))

            yield f"random {k} grad", text_of(fnarray.grad(loss), *args)
        if k % 3 == 1:
            rows = [fnarray.numpy.stack([a, a + 1, a - 1]) for a in args]
            yield f"random {k} vmap", text_of(fnarray.vmap(partial(program, lax)), *rows)


def benchmarks() -> Named:
    """The measured programs."""
    texts: list[str] = []

    def record(m: Any, f: Callable[..., Any], *args: Any) -> Callable[[], None]:
        texts.append(text_of(f, *args))
        return lambda: None

    with (
        mock.patch.object(cases, "compiled", record),
        mock.patch.object(derivatives, "compiled", record),
    ):
        for name, case in sorted(cases.CASES.items()):
            if case.kind in ("steady", "burst"):
                case.build(fnarray)
                for k, text in enumerate(texts):
                    yield f"benchmark {name} {k}", text
                texts.clear()


def larger() -> Named:
    """Programs above the thresholds: threads, library products, copies, long kernels."""
    for name, build in sorted(PROGRAMS.items()):
        f, args = build()
        yield f"large {name}", text_of(f, *args)


def texts() -> Named:
    """Every program's name and emitted text."""
    with scoped("effects", "off"):
        yield from operations()
        yield from random_programs()
        yield from benchmarks()
        yield from larger()
