"""A report in a real browser: marks, zoom, folds, keys, sizes and colours."""

from __future__ import annotations

from pathlib import Path

import pytest

import fnarray as fa
import fnarray.numpy as jnp

from ..browsing import MARKS, SHOTS, Page, browser  # noqa: F401 - a fixture
from . import programs

pytestmark = MARKS


@pytest.fixture(scope="module")
def page(browser):  # noqa: F811
    return Page(browser)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Reports as files: of attention, of a gradient through a scan, of a function that fails."""
    folder = tmp_path_factory.mktemp("reports")
    q = jnp.ones((256, 64))
    args = jnp.ones((8, 16)), jnp.ones((100, 8)), jnp.ones((100, 16))
    made = {
        "attention": fa.explain(programs.attention)(q, q, q),
        "gradient": fa.explain(fa.grad(programs.loss))(*args),
        "failed": fa.explain(programs.branches)(jnp.ones(3)),
    }
    made["difference"] = fa.explain.diff(
        made["attention"], fa.explain(programs.attention)(*[jnp.ones((64, 64))] * 3)
    )
    return {name: report.save(folder / f"{name}.html") for name, report in made.items()}


def marked(page, pane):
    return page.run(f"document.querySelectorAll('#{pane} .on').length")


def test_a_click_marks_what_belongs_together(page, saved):
    """Of a line, a node, an emitted line and a kernel: all panes show what it became."""
    page.open(saved["attention"])
    for selector in (
        "#source .l[data-n]",
        "#graph .op",
        "#emitted .l[data-n]:nth-child(5)",
        "tr[data-n]:nth-child(3)",
    ):
        page.click(selector)
        panes = [marked(page, pane) for pane in ("source", "graph")]
        assert all(panes), (selector, panes)
        page.key("Escape")
        assert page.run("document.querySelectorAll('.on').length") == 0


def test_a_line_marks_its_own_operations_and_no_others(page, saved):
    """``e = jnp.exp(z)`` is one operation and one call in the kernel."""
    page.open(saved["attention"])
    text = "[...document.querySelectorAll('#source .l')].find(e => e.textContent.includes('exp'))"
    page.run(f"{text}.id = 'exp'")
    page.click("#exp")
    names = page.run("[...document.querySelectorAll('#graph .on text')].map(e => e.textContent)")
    assert names == ["exp", "f32[256,256]"]
    lines = page.run("[...document.querySelectorAll('#emitted .l.on')].map(e => e.textContent)")
    assert any("vm.exp(" in line for line in lines)
    assert not any("sc.maximum" in line for line in lines)


def test_the_graph_zooms_and_folds_open(page, saved):
    """The wheel, keys and buttons zoom; a fold opens into its own drawing, and goes back."""
    page.open(saved["gradient"])
    box = "document.querySelector('.drawing:not([hidden]) svg').getAttribute('viewBox').split(' ')"
    before = float(page.run(f"{box}[2]"))
    page.wheel("#graph svg", -200)
    page.click("[data-zoom=in]")
    assert float(page.run(f"{box}[2]")) < before
    page.click("[data-zoom=fit]")
    assert float(page.run(f"{box}[2]")) == pytest.approx(before)
    page.click("#graph .fold", twice=True)
    assert "scan" in page.run("document.querySelector('.drawing:not([hidden]) b').textContent")
    page.run("document.querySelector('#graph').focus()")
    page.key("Backspace")
    assert page.run("document.querySelector('.drawing:not([hidden])').id") == "g0"


def test_the_keyboard_does_what_the_mouse_does(page, saved):
    """Each pane is a stop; arrows move, Enter marks, signs zoom, o opens."""
    page.open(saved["gradient"])
    page.run("document.querySelector('#source').focus()")
    page.key("ArrowDown")
    page.key("Enter")
    assert marked(page, "source")
    assert marked(page, "graph")
    page.key("Escape")
    page.run("document.querySelector('#graph').focus()")
    before = page.run("document.querySelector('#g0 svg').getAttribute('viewBox')")
    page.key("+")
    assert page.run("document.querySelector('#g0 svg').getAttribute('viewBox')") != before
    for _ in range(30):
        page.key("ArrowDown")
        if page.run("document.querySelector('.here').matches('.fold')"):
            break
    page.key("o")
    assert page.run("document.querySelector('#g0').hidden")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("name", ["attention", "gradient", "failed", "difference"])
def test_pages_fit_and_can_be_read(page, saved, name, width, dark):
    """Nothing is wider than the window, text contrasts, and nothing is asked for or complained."""
    page.errors.clear()
    page.requests.clear()
    page.open(saved[name], width, 900, dark=dark)
    assert page.run("document.documentElement.scrollWidth") <= width
    ink, paper = page.run(
        "(() => { const s = getComputedStyle(document.body);"
        "const numbers = c => c.match(/\\d+/g).slice(0, 3).map(Number);"
        "return [numbers(s.color), numbers(s.backgroundColor)] })()"
    )
    assert abs(sum(ink) - sum(paper)) > 500
    assert (sum(paper) < 200) == dark
    if SHOTS:
        page.screenshot(Path(SHOTS) / f"{name}-{width}-{'dark' if dark else 'light'}.png")
    assert page.errors == []
    assert [r for r in page.requests if not r.startswith(("file:", "data:"))] == []


def test_a_notebook_shows_it(page, tmp_path, saved):
    """A cell's output is a frame that holds the page."""
    report = fa.explain(programs.softmax)(jnp.ones((8, 8)))
    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><body>{report._repr_html_()}</body>", encoding="utf-8")
    page.errors.clear()
    page.open(path)
    assert page.run("document.querySelector('iframe').srcdoc.includes('Your source')")
    assert page.errors == []
