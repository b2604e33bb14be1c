"""A report as one page of HTML: no script, style or picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from .model import Excerpt, Facts, Kernel, Text
from .svg import buffer_chart, drawings, ranges
from .words import (
    all_operations,
    count,
    grouped,
    made,
    number,
    offence,
    operations,
    roofline,
    seconds,
    size,
    vectors,
)

#: Lines of emitted text that a page shows at most; the rest is told, and where to find it.
MOST_LINES = 12_000
_HERE = Path(__file__)


def page(facts: Facts) -> str:
    """Return the page of a program."""
    if facts.failure is not None:
        body = _failure(facts)
    else:
        body = (
            f"{_figures(facts)}<main>"
            f'<section class="pane" id="source" tabindex="0" aria-label="source">'
            f"<h2>Your source</h2>{_source(facts)}</section>"
            f'<section class="pane" id="graph" tabindex="0" aria-label="graph">'
            f"<h2>Graph</h2>{_zoom()}{drawings(facts)}</section>"
            f'<section class="pane" id="emitted" tabindex="0" aria-label="emitted source">'
            f"<h2>Emitted</h2>{_emitted(facts)}</section></main>{_tables(facts)}"
        )
    return document(facts.name, f"<h1><code>{escape(facts.name)}</code></h1>{body}")


def document(title: str, body: str) -> str:
    """Return a page with a report's style and script."""
    style = _HERE.with_name("page.css").read_text(encoding="utf-8")
    script = _HERE.with_name("page.js").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}: fnarray</title><style>{style}</style></head>"
        f"<body>{body}<script>{script}</script></body></html>\n"
    )


def framed(html: str) -> str:
    """Return a page for a notebook's cell: in a frame, so that styles do not meet."""
    return (
        '<iframe style="width:100%;height:44rem;border:1px solid #8886;border-radius:6px" '
        f'sandbox="allow-scripts" srcdoc="{escape(html, quote=True)}"></iframe>'
    )


# ---- parts ---------------------------------------------------------------------------------------


def _figures(facts: Facts) -> str:
    steps = sum(k.is_step for k in facts.kernels)
    stages = sum(s for _, s in facts.stages)
    run = seconds(facts.seconds) if facts.seconds is not None else f"not run: {facts.not_run}"
    rows = [
        ("arguments", facts.signature or "none"),
        ("equations", f"{facts.equations:,}, {len(facts.operations):,} once simplified"),
        ("runs as", f"{count(len(facts.kernels) - steps, 'kernel')}, {count(steps, 'step')}"),
        ("operations", all_operations(facts)),
        ("memory traffic", size(facts.moved)),
        ("peak of arrays", size(facts.peak)),
        ("a run", run),
        ("compiling", seconds(stages)),
    ]
    cells = "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in rows)
    return f'<dl class="figures">{cells}</dl>'


def _lines(
    excerpt: Excerpt, by_line: dict[tuple[str, int], list[int]], bad: int = 0, above: str = ""
) -> str:
    """Return the lines of an excerpt, headed by its file unless the one above is of that too."""
    out: list[str] = []
    for number_, text in enumerate(excerpt.lines, excerpt.number):
        found = by_line.get((excerpt.file, number_), [])
        kind = "l bad" if number_ == bad else "l"
        out.append(f'<div class="{kind}"{_data(found)}><i>{number_}</i>{escape(text) or " "}</div>')
    name = Path(excerpt.file).name if excerpt.file != above else "⋯"
    return f'<h3 title="{escape(excerpt.file, True)}">{escape(name)}</h3><pre>{"".join(out)}</pre>'


def _source(facts: Facts) -> str:
    by_line: dict[tuple[str, int], list[int]] = {}
    for op in facts.operations:
        by_line.setdefault((op.place.file, op.place.line), []).append(op.number)
    if not facts.excerpts:
        return "<p>The function has no source that can be read.</p>"
    above = ["", *(e.file for e in facts.excerpts)]
    shown = zip(facts.excerpts, above, strict=False)
    return "".join(_lines(e, by_line, above=file) for e, file in shown)


def _zoom() -> str:
    return (
        '<div class="zoom"><button data-zoom="in" title="+">+</button>'
        '<button data-zoom="out" title="-">−</button>'
        '<button data-zoom="fit" title="0">fit</button></div>'
    )


def _emitted(facts: Facts) -> str:
    out: list[str] = []
    room = MOST_LINES
    for kernel in facts.kernels:
        if kernel.is_step or not room:
            continue
        shown, room = min(len(kernel.text.lines), room), max(room - len(kernel.text.lines), 0)
        out.append(
            f'<h3 data-n="{ranges(kernel.operations)}">{escape(kernel.label)} '
            f"<span>{escape(kernel.summary)}</span></h3>{_text(kernel.text, shown)}"
        )
    if not room:
        out.append("<p>The rest is in <code>lowered.as_text()</code>.</p>")
    out.append(f"<h3>driver</h3>{_text(facts.driver, MOST_LINES)}")
    return "".join(out)


def _text(text: Text, most: int) -> str:
    numbers: Sequence[tuple[int, ...]] = text.operations or [()] * len(text.lines)
    rows = zip(text.lines[:most], numbers[:most], strict=True)
    return f"<pre>{''.join(_emitted_line(line, found) for line, found in rows)}</pre>"


def _emitted_line(line: str, found: tuple[int, ...]) -> str:
    kind = "l note" if line.lstrip().startswith("#") else "l"
    return f'<div class="{kind}"{_data(found)}>{escape(line) or " "}</div>'


def _table(head: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    body = "".join(
        f"<tr{data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for data, cells in rows
    )
    cells = "".join(f"<th>{h}</th>" for h in head)
    return (
        f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _tables(facts: Facts) -> str:
    return (
        f"<section><h2>Kernels</h2>{_kernels(facts)}{_machine(facts)}</section>"
        f"<section><h2>Arrays</h2>{buffer_chart(facts)}{_copies(facts)}</section>"
        f"<section><h2>Compiling</h2>{_stages(facts)}</section>"
        f"<section><h2>Purity</h2>{_guards(facts)}</section>"
    )


def _kernels(facts: Facts) -> str:
    head = (
        "", "computes", "operations", "bytes", "vectors", "threads", "time", "of the roofline",
        "machine code", "not done, and why",
    )  # fmt: skip
    return _table(
        head,
        [
            (f' data-n="{ranges(k.operations)}" class="row"', _cells(facts, k))
            for k in facts.kernels
        ],
    )


def _cells(facts: Facts, k: Kernel) -> list[str]:
    fused = "" if k.is_step else f"<br><small>{count(len(k.operations), 'operation')} fused</small>"
    return [
        f"<code>{escape(k.label)}</code>",
        escape(k.summary) + fused,
        operations(k),
        size(k.moved),
        vectors(k),
        str(k.threads or "–"),
        seconds(k.seconds),
        roofline(k),
        made(k),
        _reasons(grouped(facts, k.reasons)),
    ]


def _reasons(reasons: Sequence[tuple[tuple[int, ...], str]]) -> str:
    if not reasons:
        return "–"
    return f"<details><summary>{count(len(reasons), 'reason')}</summary>{_told(reasons)}</details>"


def _told(notes: Sequence[tuple[tuple[int, ...], str]]) -> str:
    """Return sentences as a list, each marked with the operations it is about."""
    items = ""
    for numbers, text in notes[:200]:
        found = [n for n in numbers if n >= 0]
        items += f"<li{_data(found)}>{escape(text)}</li>"
    return f"<ul>{items}</ul>"


def _data(numbers: Sequence[int]) -> str:
    return f' data-n="{ranges(numbers)}"' if numbers else ""


def _machine(facts: Facts) -> str:
    m = facts.machine
    if m is None:
        return ""
    return (
        f"<p>The roofline of this machine ({escape(m.name)}, {count(m.threads, 'thread')}), "
        f"measured: {size(m.bandwidth[0])}/s from memory on one thread and "
        f"{size(m.bandwidth[1])}/s on all, {size(m.cache[0])}/s from a near cache, "
        f"{number(m.flops[0])} float32 operations/s on one thread, {number(m.product)} in "
        "products. A function such as exp counts as the additions that it takes as long as. "
        "A kernel whose operands lie in a nearer cache may beat it. None is given where operations "
        "are not all known: turns of a while loop, of which one is counted, and steps such as a "
        f"sort or a callback.{_shards(facts)}</p>"
    )


def _shards(facts: Facts) -> str:
    if len(facts.regions) == len(facts.kernels):
        return ""
    return (
        " What each of several devices runs is timed while the others run theirs, and the fastest "
        "is told; a collective's time has what it waits for the others."
    )


def _copies(facts: Facts) -> str:
    done = grouped(facts, ((n, "") for n in facts.in_place))
    updated = f"<h3>Updated in place</h3>{_told(done)}" if done else ""
    if not facts.copies:
        return f"{updated}<p>Nothing was copied that could have been updated in place.</p>"
    return f"{updated}<h3>Copies</h3>{_told(grouped(facts, facts.copies))}"


def _stages(facts: Facts) -> str:
    rows = [("", (escape(name), seconds(took))) for name, took in facts.stages]
    note = "" if facts.stages else "<p>It was compiled before.</p>"
    return _table(("stage", "time"), rows) + note


def _guards(facts: Facts) -> str:
    captured = ", ".join(facts.captured)
    told = f"<p>Captured arrays: {escape(captured)}.</p>" if captured else ""
    if not facts.guards:
        return f"{told}<p>It reads nothing from outside.</p>"
    rows = [("", tuple(map(escape, (name, value, kind)))) for kind, name, value in facts.guards]
    return (
        f"{told}<p>Should one of these be bound to something else, the next call traces anew.</p>"
        + _table(("name", "stands for", "kind"), rows)
    )


def _failure(facts: Facts) -> str:
    failure = facts.failure
    assert failure is not None
    source = "".join(
        _lines(e, {}, failure.place.line if e.file == failure.place.file else 0)
        for e in facts.excerpts
    )
    return (
        f'<section class="failed" role="alert"><h2>It cannot be compiled: '
        f"{escape(offence(failure))}</h2>"
        f"<pre>{escape(failure.message)}</pre></section>"
        f'<section class="pane" id="source">{source or "<p>There is no source.</p>"}</section>'
    )
