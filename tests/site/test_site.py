"""The documentation in a real browser: start page, reference, search, gallery.

The site must have been built: ``python -m sphinx -W -n docs docs/_build``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ..browsing import MARKS, SHOTS, browser  # noqa: F401 - a fixture

SITE = Path(__file__).parents[2] / "docs/_build"
VIEWS = [(400, "light"), (400, "dark"), (1600, "light"), (1600, "dark")]
PAGES = {
    "start": "index.html",
    "reference": "reference/api/fnarray.numpy.reductions.html",
    "operations": "reference/api/operations.html",
    "errors": "reference/errors.html",
    "gallery": "gallery/made/index.html",
    "program": "gallery/made/mcmc.html",
}

pytestmark = MARKS


@pytest.fixture
def visit(browser):  # noqa: F811
    """Return a function that opens a page; what it complains of and asks for fails the test."""
    contexts, faults = [], []

    def go(path, width=1600, scheme="light"):
        size = {"width": width, "height": 1000}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda m: m.type == "error" and faults.append(m.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda r: r.url.startswith("http") and faults.append(r.url))
        page.goto(f"{SITE.as_uri()}/{path}")
        return page

    yield go
    for context in contexts:
        context.close()
    assert faults == []


def luminance(page, what):
    """Brightness, from 0 to 1, of a colour that the page computes for its body."""
    text = page.evaluate(f"getComputedStyle(document.body).{what}")
    return sum(map(float, text[text.index("(") + 1 : -1].split(",")[:3])) / 765


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_readable(visit, name, width, scheme):
    """Nothing is wider than the window, pictures are there, and text stands out, day and night."""
    page = visit(PAGES[name], width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 100)")
    ground, ink = luminance(page, "backgroundColor"), luminance(page, "color")
    assert (ground < 0.2) == (scheme == "dark")
    assert abs(ground - ink) > 0.5
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png")


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("einsum", "fnarray.numpy.einsum"),
        ("value_and_grad", "fnarray.value_and_grad"),
        ("TracerBoolConversionError", "fnarray.errors.TracerBoolConversionError"),
    ],
)
def test_search_works_without_a_network(visit, words, first):
    """A name finds its entry, and a click leads to it."""
    page = visit("index.html")
    page.fill("input[name=q]", words)
    page.press("input[name=q]", "Enter")
    found = page.locator("#search-results li a").first
    found.wait_for()
    texts = page.locator("#search-results li a").all_inner_texts()
    assert first in texts
    page.locator("#search-results li a", has_text=first).first.click()
    page.wait_for_load_state()
    assert page.url.endswith(f"#{first}")
    assert page.evaluate(f"document.getElementById({first!r}) !== null")


def test_the_reference_is_reached_from_the_start(visit):
    """Start, reference, every public name, a module, a name."""
    page = visit("index.html")
    for words in ("reference", "Every public name", "fnarray.numpy"):
        page.locator("article").get_by_role("link", name=words, exact=True).first.click()
    page.locator("article").get_by_role("link", name="einsum", exact=True).first.click()
    assert page.url.endswith("#fnarray.numpy.einsum")
    assert "Einstein" in page.inner_text("article h1")


def test_the_gallery_leads_to_programs(visit):
    """Twelve pictures or more; a click shows the program."""
    page = visit("gallery/made/index.html")
    assert page.locator(".gallery figure img").count() >= 12
    page.locator(".gallery figure a.image-reference").nth(3).click()
    program = page.locator("article .highlight-python")
    program.first.wait_for()
    assert program.count() == 1
