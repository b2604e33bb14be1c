"""Drawings of a report: the graph, fold by fold, and the buffers over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .folding import Group, folded
from .layout import HEIGHT, drawn
from .model import Buffer, Facts, Operation
from .words import count, size

#: Width of a letter, and boxes for what comes from outside of a drawing at most.
_LETTER, _OUTSIDE = 7.0, 24


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text, runs of them as ``3-9``."""
    out: list[list[int]] = []
    for n in sorted(numbers):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def drawings(facts: Facts) -> str:
    """Return the drawings of a program's graph, the outermost one first."""
    found: list[str] = []
    _draw(folded(facts.name, facts.operations), (), facts, found)
    return "\n".join(found)


def _draw(group: Group, path: tuple[Group, ...], facts: Facts, found: list[str]) -> None:
    operations = facts.operations
    home = {}
    for k, item in enumerate(group.items):
        inside = item.operations if isinstance(item, Group) else (item,)
        home.update(dict.fromkeys(inside, k))
        home.update((n, k) for i in inside for n in operations[i].body)
    edges: dict[tuple[int, int], None] = {}
    outside: dict[int, int] = {}
    for k, item in enumerate(group.items):
        for n in item.operations if isinstance(item, Group) else (item,):
            for source in operations[n].reads:
                if source in home and home[source] != k:
                    edges[home[source], k] = None
                elif source not in home and len(outside) < _OUTSIDE:
                    key = outside.setdefault(source, len(group.items) + len(outside))
                    edges[key, k] = None
    labels = {k: _label_outside(source, facts) for source, k in outside.items()}
    labels |= {k: _label(item, operations) for k, item in enumerate(group.items)}
    widths = {k: max(len(a) + 2, len(b)) * _LETTER + 16 for k, (a, b) in labels.items()}
    drawing = drawn(widths, list(edges))
    parts: list[str] = []
    for source, target, points in drawing.lines:
        kind = "thin" if source >= len(group.items) else ""
        parts.append(f'<path class="e {kind}" d="{_curve(points)}" data-e="{source} {target}"/>')
    sources = {k: source for source, k in outside.items()}
    for k, (x, y) in drawing.centres.items():
        item = group.items[k] if k < len(group.items) else sources[k]
        parts.append(_box(item, k, x, y, widths[k], labels[k], facts, given=k in sources))
    number = group.number
    trail = "".join(
        f'<button class="up" data-open="{g.number}">{escape(g.label)}</button> › ' for g in path
    )
    hidden = " hidden" if path else ""
    w, h = max(drawing.width, 60), max(drawing.height, 60)
    found.append(
        f'<figure class="drawing" id="g{number}"{hidden}><figcaption>{trail}<b>'
        f"{escape(group.label)}</b> <span>{count(len(group.operations), 'operation')}</span>"
        f'</figcaption><svg viewBox="0 0 {w:.0f} {h:.0f}" data-w="{w:.0f}" data-h="{h:.0f}" '
        f'role="group" aria-label="graph of {escape(group.label, True)}">{"".join(parts)}</svg>'
        "</figure>"
    )
    for item in group.items:
        if isinstance(item, Group):
            _draw(item, (*path, group), facts, found)


def _label(item: int | Group, operations: Sequence[Operation]) -> tuple[str, str]:
    if isinstance(item, Group):
        label = item.label if len(item.label) <= 34 else f"{item.label[:33]}…"
        return label, f"{count(len(item.operations), 'operation')} ⊞"
    op = operations[item]
    return op.name, op.result


def _label_outside(source: int, facts: Facts) -> tuple[str, str]:
    if source < 0:
        name, _, what = facts.arguments[-1 - source].rpartition(": ")
        return name, what
    op = facts.operations[source]
    return f"↑ {op.name}", op.result


def _box(
    item: int | Group,
    key: int,
    x: float,
    y: float,
    width: float,
    label: tuple[str, str],
    facts: Facts,
    *,
    given: bool,
) -> str:
    kind, data, title = "op", "", " ".join(label)
    if isinstance(item, Group):
        kind, data = "op fold", f' data-n="{ranges(item.operations)}" data-open="{item.number}"'
    elif item < 0:
        kind = "arg"
    else:
        op = facts.operations[item]
        title = f"{op.name} {op.result} at {op.place} in {op.place.function}"
        data = f' data-n="{item}"'
        kind = "arg" if given else ("op out" if item in facts.results else "op")
    left = x - width / 2
    return (
        f'<g class="{kind}" data-k="{key}"{data} transform="translate({left:.0f} {y:.0f})">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{width:.0f}" height="{HEIGHT:.0f}" rx="6"/>'
        f'<text x="{width / 2:.0f}" y="15">{escape(label[0])}</text>'
        f'<text class="s" x="{width / 2:.0f}" y="29">{escape(label[1])}</text></g>'
    )


def _curve(points: Sequence[tuple[float, float]]) -> str:
    (x0, y0), *rest = points
    out = [f"M{x0:.0f} {y0:.0f}"]
    for x, y in rest:
        middle = (y0 + y) / 2
        out.append(f"C{x0:.0f} {middle:.0f} {x:.0f} {middle:.0f} {x:.0f} {y:.0f}")
        x0, y0 = x, y
    return "".join(out)


# ---- buffers -------------------------------------------------------------------------------------

#: Rows of the chart of buffers at most: the largest.
_ROWS = 60


def buffer_chart(facts: Facts) -> str:
    """Return a chart of which array is alive during which kernel, and of the bytes in all."""
    steps = max(len(facts.regions), 1)
    rows = sorted(facts.buffers, key=lambda b: -b.size)[:_ROWS]
    rows.sort(key=lambda b: (b.first, b.last))
    left, right, line, top = 190.0, 860.0, 18.0, 96.0
    step = (right - left) / steps
    alive = [sum(b.size for b in facts.buffers if b.first <= k <= b.last) for k in range(steps)]
    most = max(*alive, 1)
    parts = [f'<text x="8" y="20">alive, of {size(facts.peak)}</text>']
    for k, n in enumerate(alive):
        high = 70 * n / most
        parts.append(
            f'<rect class="sum" x="{left + k * step:.1f}" y="{80 - high:.1f}" '
            f'width="{max(step - 1, 0.5):.1f}" height="{high:.1f}"><title>{escape(_at(facts, k))}: '
            f"{size(n)}</title></rect>"
        )
    for r, b in enumerate(rows):
        parts.append(_row(b, top + r * line, left, step))
    height = top + len(rows) * line + 8
    more = len(facts.buffers) - len(rows)
    note = f"<p>and {count(more, 'smaller array')}</p>" if more else ""
    return (
        '<div class="wide"><svg class="buffers" role="img" '
        f'viewBox="0 0 {right + 12:.0f} {height:.0f}" '
        f'aria-label="arrays over time">{"".join(parts)}</svg></div>{note}'
    )


def _at(facts: Facts, k: int) -> str:
    return facts.regions[k].label if k < len(facts.regions) else "all along"


def _row(b: Buffer, y: float, left: float, step: float) -> str:
    data = f' data-n="{b.operation}"' if b.operation >= 0 else ""
    note = f", {b.note}" if b.note else ""
    name = b.name if len(b.name) <= 24 else f"{b.name[:23]}…"
    mark = " ↻" if "in place" in b.note else ""
    return (
        f'<g class="buffer"{data}><title>{escape(f"{b.name}: {b.what}, {b.kind}{note}")}</title>'
        f'<text x="8" y="{y + 11:.0f}">{escape(name)} <tspan class="s">{size(b.size)}{mark}</tspan>'
        f'</text><rect class="{b.kind}" x="{left + b.first * step:.1f}" y="{y:.0f}" '
        f'width="{max((b.last - b.first + 1) * step - 1, 1):.1f}" height="13" rx="2"/></g>'
    )
