"""A report for terminals."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text as Line

from .model import Facts, Kernel
from .words import (
    all_operations,
    count,
    grouped,
    made,
    offence,
    operations,
    roofline,
    seconds,
    size,
    vectors,
)

#: Width of the bars of the chart of arrays, and rows at most.
_BAR, _ROWS = 32, 24
#: Kernels that are told of, and reasons of each.
_KERNELS, _REASONS = 40, 6


def text(facts: Facts, width: int | None = None) -> str:
    """Return a report as plain text."""
    return plain(renderable(facts), width)


def plain(thing: Any, width: int | None = None) -> str:
    """Return what rich would print, without colours."""
    out = io.StringIO()
    Console(file=out, width=width or 100, color_system=None, legacy_windows=False).print(thing)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def renderable(facts: Facts) -> Any:
    """Return a report as rich prints it."""
    return Group(*_failure(facts) if facts.failure else _parts(facts))


def _failure(facts: Facts) -> Iterator[Any]:
    failure = facts.failure
    assert failure is not None
    yield Rule(f"{facts.name} cannot be compiled")
    yield Panel(Line(f"{offence(failure)}\n{failure.message}"), border_style="red")
    for excerpt in facts.excerpts:
        for k, line in enumerate(excerpt.lines, excerpt.number):
            bad = k == failure.place.line
            yield Line(f"{'>' if bad else ' '} {k:5} {line}", style="bold red" if bad else "")


def _parts(facts: Facts) -> Iterator[Any]:
    yield Rule(f"[bold]{escape(facts.name)}[/]({escape(facts.signature)})")
    run = seconds(facts.seconds) if facts.seconds is not None else f"not run: {facts.not_run}"
    yield Line(
        f"{count(facts.equations, 'equation')}, {len(facts.operations):,} once simplified; "
        f"{all_operations(facts)} operations, "
        f"{size(facts.moved)} moved, peak {size(facts.peak)}; "
        f"a run: {run}; compiling: {seconds(sum(s for _, s in facts.stages))}"
    )
    kernels = _alike(facts.kernels)
    yield _kernels(kernels[:_KERNELS])
    for kernel in kernels[:_KERNELS]:
        yield from _reasons(facts, kernel)
    if (more := len(kernels) - _KERNELS) > 0:
        yield Line(f"and {count(more, 'kernel')} more, which the page has")
    yield Rule("arrays")
    yield _buffers(facts)
    for _, what in grouped(facts, ((n, "") for n in facts.in_place)):
        yield Line(f"in place: {what}")
    for _, what in grouped(facts, facts.copies):
        yield Line(f"copy: {what}")
    if facts.stages:
        yield Rule("compiling")
        yield Line(", ".join(f"{name} {seconds(took)}" for name, took in facts.stages))
    yield Rule("guarded")
    guarded = [f"{name} = {value}" for _, name, value in facts.guards]
    yield Line("; ".join(guarded) or "it reads nothing from outside")


def _alike(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Return kernels with those that are one text, one after another, as one: their sum."""
    out: list[Kernel] = []
    for _, group in groupby(kernels, lambda k: k.label if k.is_step else k.name):
        first, *rest = alike = tuple(group)
        if rest:
            times, bounds = ([getattr(k, of) for k in alike] for of in ("seconds", "bound"))
            first = replace(
                first,
                label=f"{first.label}-{rest[-1].label.removeprefix('kernel')}",
                flops=sum(k.flops for k in alike),
                additions=sum(k.additions for k in alike),
                moved=sum(k.moved for k in alike),
                seconds=None if None in times else sum(times),
                bound=None if None in bounds else sum(bounds),
                reasons=tuple(reason for k in alike for reason in k.reasons),
            )
        out.append(first)
    return out


def _kernels(kernels: Iterable[Kernel]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("")
    table.add_column("computes", overflow="fold", min_width=12)
    for head in ("operations", "bytes", "vectors", "time", "roofline"):
        table.add_column(head, no_wrap=True)
    table.add_column("code", overflow="fold", min_width=8)
    for k in kernels:
        cells = (k.label, k.summary, operations(k), size(k.moved), vectors(k), seconds(k.seconds))
        table.add_row(*map(escape, (*cells, roofline(k), made(k))))
    return table


def _reasons(facts: Facts, kernel: Kernel) -> Iterator[Line]:
    reasons = grouped(facts, kernel.reasons)
    for _, what in reasons[:_REASONS]:
        yield Line(f"  {kernel.label}: {what}")
    if (more := len(reasons) - _REASONS) > 0:
        yield Line(f"  {kernel.label}: and {count(more, 'reason')} more")


def _buffers(facts: Facts) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("array", "", "bytes", "kind", "alive"):
        table.add_column(head, no_wrap=True)
    steps = max(len(facts.regions), 1)
    for b in sorted(facts.buffers, key=lambda b: -b.size)[:_ROWS]:
        first, last = (round(_BAR * x / steps) for x in (b.first, b.last + 1))
        bar = " " * first + "█" * max(last - first, 1)
        kind = f"{b.kind}, {b.note}" if b.note else b.kind
        table.add_row(escape(b.name), escape(b.what), size(b.size), kind, bar)
    return table
