"""Sphinx extension: the tree of pages that stands beside every page, drawn once; ends of blocks.

The theme asks Sphinx for the whole tree anew for each page, which with 320 pages is two thirds of
the time of a build. The trees differ in where links start, and in the entries that are open.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from bs4 import BeautifulSoup
from docutils import nodes
from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment.adapters.toctree import global_toctree_for_doc

_MARK = re.compile(r' (?:data-entry="(\d+)"|entry-(\d+)|href="(?!#)(.*?)")')


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension: before the theme draws, and after it."""
    app.connect("doctree-read", _close)
    app.connect("html-page-context", _spare, priority=400)
    app.connect("html-page-context", _give, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _close(app: Sphinx, doctree: nodes.document) -> None:
    """Drop the blank line by which doctest knows that a block of output ends."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if text.endswith("\n"):
            block.rawsource = text.rstrip("\n")
            block.children = []
            block += nodes.Text(block.rawsource)


def _spare(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    context["toctree"] = lambda **options: ""


def _give(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if isinstance(app.builder, StandaloneHTMLBuilder):
        context["furo_navigation_tree"] = tree(app.builder, app.builder.get_target_uri(page))


def tree(builder: StandaloneHTMLBuilder, address: str) -> str:
    """Return the tree as it stands beside the page of an address."""
    text, above = _drawn(builder)
    *open_, own = above.get(address, [""])

    def filled(mark: re.Match[str]) -> str:
        box, entry, link = mark.groups()
        if box:
            return ' checked=""' if box == own or box in open_ else ""
        if entry:
            return " current current-page" if entry == own else " current" * (entry in open_)
        return ' href="#"' if link == address else f' href="{"../" * address.count("/")}{link}"'

    return _MARK.sub(filled, text)


@cache
def _drawn(builder: StandaloneHTMLBuilder) -> tuple[str, dict[str, list[str]]]:
    """Return the tree with marks, and the numbers of the entries on the way to each address."""
    toctree = global_toctree_for_doc(
        builder.env, builder.config.root_doc, builder, tags=builder.tags,
        collapse=False, titles_only=True, maxdepth=-1, includehidden=True,
    )  # fmt: skip
    html = get_navigation_tree(builder.render_partial(toctree)["fragment"])
    soup = BeautifulSoup(html, "html.parser")
    above = {}
    for number, entry in enumerate(soup.find_all("li")):
        entry["data-number"] = str(number)
        entry["class"].append(f"entry-{number}")
        if box := entry.find("input", recursive=False):
            box["data-entry"] = str(number)
        way = [li["data-number"] for li in (entry, *entry.find_parents("li"))]
        above[entry.find("a")["href"]] = way[::-1]
    for entry in soup.find_all("li"):
        del entry["data-number"]
    return str(soup), above
