"""Sphinx extension: a page of every public module, made of its docstrings when the site is built.

Examples that are not in a docstring are in ``reference/examples``, a file for each module, and
parameters that always mean the same in ``reference/parameters.txt``.

Pages are written to ``reference/api``, which git ignores. A module of many names has a page for
each of the modules that its names are written in, which are its chapters.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import parameters
import prompts
import surfaces
import tables
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring
from surfaces import Name

#: More names than this, and a module's chapters are pages.
MANY = 90
#: Where a word in a docstring is looked for, after its own module.
SEARCHED = (
    "fnarray", "fnarray.numpy", "fnarray.lax", "fnarray.errors", "fnarray.config",
    "fnarray.random", "fnarray.tree_util", "fnarray.nn", "fnarray.core",
)  # fmt: skip
_EXAMPLES = """
Examples begin with these lines, and are run when this package is tested:

.. code-block:: pycon

"""
_DIRECTIVES = {"class": "class", "exception": "exception", "function": "function", "data": "data"}
_NAPOLEON = Config(napoleon_use_param=False, napoleon_use_rtype=False)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_pages)
    app.add_role("any-public", _role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write the pages, those alone that changed: Sphinx reads the rest from its cache."""
    folder = Path(app.srcdir) / "reference/api"
    folder.mkdir(parents=True, exist_ok=True)
    pages = dict(every_page()) | {"settings": tables.settings(), "operations": tables.operations()}
    for stale in set(folder.iterdir()) - {folder / f"{name}.rst" for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# ---- pages --------------------------------------------------------------------------------------


def every_page() -> Iterator[tuple[str, str]]:
    """Yield the pages by their names: the index, modules, chapters of the large ones."""
    yield "index", _index()
    for module in surfaces.modules():
        yield from _pages_of(module)


def _index() -> str:
    rows = "\n".join(
        f"   * - :doc:`{module} <{module}>`\n     - {_prose(surfaces.lead(text))}"
        for module in surfaces.modules()
        for text in [surfaces.docstring(module)]
    )
    listed = "".join(f"   {module}\n" for module in surfaces.modules() if module.count(".") < 2)
    return (
        f"{_title('Every public name')}"
        "A page for each module, written from its docstrings when this site is built.\n\n"
        f".. list-table::\n   :widths: 1 2\n\n{rows}\n\n"
        f".. toctree::\n   :hidden:\n\n{listed}"
    )


def _pages_of(module: str) -> Iterator[tuple[str, str]]:
    names = [name for name in surfaces.names(module) if name.kind != "module"]
    head = f"{_title(module)}.. currentmodule:: {module}\n\n{_text(surfaces.docstring(module))}\n\n"
    if prompts.blocks(module):
        head += f"{_EXAMPLES}{_indented(prompts.assumed(module))}\n\n"
    below = [name.full for name in surfaces.names(module) if name.kind == "module"]
    below = [full for full in below if full in surfaces.modules()]
    if below:
        head += "Modules below: " + ", ".join(f":doc:`{full} <{full}>`" for full in below) + ".\n\n"
        if module != "fnarray":  # those are in the index
            head += ".. toctree::\n   :hidden:\n\n" + "".join(f"   {full}\n" for full in below)
            head += "\n"
    if module in surfaces.TABLES:
        words = ", ".join(f"``{name.name}``" for name in names)
        yield module, f"{head}{words}.\n"
        return
    chapters = _chapters(names)
    if len(names) <= MANY:
        body = "".join(
            (_heading(title) if len(chapters) > 1 else "") + _summary(rows) + _entries(rows)
            for title, rows in chapters
        )
        yield module, head + body
        return
    listed = ""
    for title, rows in chapters:
        page = f"{module}.{_slug(rows)}"
        if page in surfaces.modules():  # a chapter, written in a private module of that name
            page = f"{page}-of-{module}"
        about = (
            f"{_title(title)}.. currentmodule:: {module}\n\nPart of :doc:`{module} <{module}>`.\n\n"
        )
        yield page, about + _summary(rows) + _entries(rows)
        head += _heading(title) + _summary(rows)
        listed += f"   {page}\n"
    yield module, f"{head}\n.. toctree::\n   :hidden:\n\n{listed}"


def _chapters(names: list[Name]) -> list[tuple[str, list[Name]]]:
    """Group names by the module they are written in, whose first sentence is the title."""
    groups: dict[str, list[Name]] = {}
    for name in names:
        groups.setdefault(name.home, []).append(name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [(_chapter_title(home), rows) for home, rows in ordered]


def _chapter_title(home: str) -> str:
    sentence = surfaces.lead(surfaces.docstring(home)).replace("``", "").replace("`", "")
    return re.split(r"[.;:]( |$)", sentence)[0] or home


def _slug(rows: list[Name]) -> str:
    return rows[0].home.rsplit(".", 1)[-1].strip("_")


# ---- names --------------------------------------------------------------------------------------


def _summary(names: list[Name]) -> str:
    rows = "".join(
        f"   * - :py:obj:`{name.name} <{name.full}>`\n     - {_prose(surfaces.lead(name.doc))}\n"
        for name in names
    )
    return f".. list-table::\n   :widths: 1 3\n\n{rows}\n"


def _entries(names: list[Name]) -> str:
    return "".join(_entry(name) for name in names)


def _entry(name: Name) -> str:
    shown = surfaces.signature(name.value) if name.kind in ("function", "class") else ""
    lines = [f".. py:{_DIRECTIVES[name.kind]}:: {name.name}{shown}", f"   :module: {name.module}"]
    if name.kind == "data":
        lines += _value(name.value)
    body = _text(parameters.described(name))
    if example := prompts.found(name):
        body += f"\n\n.. rubric:: Example\n\n{example[1]}"
    if name.kind == "class" and name.ours:
        body += "\n\n" + "\n".join(_members(name.value))
    body += f"\n\n{_elsewhere(name)}"
    return "\n".join([*lines, "", _indented(body), "", ""])


def _value(value: Any) -> list[str]:
    text = repr(value)
    known = isinstance(value, int | float | str | None) and len(text) < 60
    return [f"   :value: {text}"] if known else []


def _members(cls: type) -> Iterator[str]:
    """Yield entries of the public methods and properties that a class itself documents."""
    for key in sorted(vars(cls)):
        member = inspect.getattr_static(cls, key)
        member = getattr(member, "__func__", member)
        text = inspect.getdoc(member) if callable(member) or isinstance(member, property) else None
        if key.startswith("_") or not text or isinstance(member, type):
            continue
        kind = "property" if isinstance(member, property) else "method"
        body = _text(text)
        if example := prompts.of_method(cls, key):
            body += f"\n\n.. rubric:: Example\n\n{example}"
        shown = "" if kind == "property" else _without_self(surfaces.signature(member))
        yield f".. py:{kind}:: {key}{shown}\n\n{_indented(body)}\n"


def _without_self(text: str) -> str:
    return re.sub(r"^\((self|cls)(, /)?(, )?", "(", text)


def _elsewhere(name: Name) -> str:
    parts = [f"`{label} <{url}>`__" for label, url in surfaces.links(name)]
    parts = [f"See also {' and '.join(parts)}."] if parts else []
    if name.full.startswith("fnarray.errors."):
        parts.append("The program that raises it, and one that does not: :doc:`/reference/errors`.")
    if place := name.place:
        parts.append(f"Source: ``{place[0]}``, line {place[1]}.")
    return ".. rst-class:: elsewhere\n\n" + " ".join(parts) if parts else ""


# ---- text ---------------------------------------------------------------------------------------


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _heading(text: str) -> str:
    return f"{text}\n{'-' * len(text)}\n\n"


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" if line else "" for line in text.splitlines())


class _Docstring(NumpyDocstring):
    """Sections of types and texts as lists: words are links only where they name something."""

    def _parse_raises_section(self, section: str) -> list[str]:
        rows = self._consume_fields(parse_type=False, prefer_type=True)
        marked = [("", re.sub(r"[\w.]+", r"`\g<0>`", kind), text) for _, kind, text in rows]
        return self._format_fields("Raises", marked)

    def _parse_attributes_section(self, section: str) -> list[str]:
        return self._format_fields("Attributes", self._consume_fields())


def _text(doc: str) -> str:
    """Return a docstring as reStructuredText."""
    return str(_Docstring(_escaped(doc), _NAPOLEON))


def _prose(sentence: str) -> str:
    return _escaped(sentence) or "\\ "


_CODE = re.compile(r"(``.*?``|`[^`]*`__?|:[\w:+-]+:`[^`]*`|`[^`]*`)", re.DOTALL)


def _escaped(doc: str) -> str:
    """Escape what docstrings mean as it stands: stars, bars and names that end in underscores."""
    blocks = re.split(r"(\n\s*\n)", doc)
    indent = None  # of a literal block
    for i, block in enumerate(blocks):
        if not block.strip():
            continue
        deep = len(block) - len(block.lstrip())
        if indent is not None and deep > indent:
            continue
        indent = deep if block.rstrip().endswith("::") else None
        if block.lstrip().startswith(">>>"):
            continue
        parts = _CODE.split(block)
        parts[::2] = [_plain(part) for part in parts[::2]]
        blocks[i] = "".join(parts)
    return "".join(blocks)


def _plain(text: str) -> str:
    text = re.sub(r"(?m)([*|])(?!\s*$)|\*", lambda m: "\\" + m[0], text)
    return re.sub(r"(\w)_(?=\W|$)", r"\1\\_", text)


def _role(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Any = (),
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """A word in backticks: a link where it is a public name, and code where it is not."""
    literal = nodes.literal(text, text, classes=["xref", "py", "py-obj"])
    env = inliner.document.settings.env
    target = _target(text.removesuffix("()"), env.ref_context.get("py:module", ""))
    if target is None:
        return [nodes.literal(text, text)], []
    xref = pending_xref(
        rawtext, literal, refdomain="py", reftype="obj", reftarget=target, refexplicit=True,
        refdoc=env.docname, refwarn=True,
    )  # fmt: skip
    return [xref], []


_known: set[str] = set()


def _target(text: str, module: str) -> str | None:
    if not _known:
        _known.update(name.full for name in surfaces.every_name())
    for place in (module, *SEARCHED):
        if f"{place}.{text}" in _known:
            return f"{place}.{text}"
    return next((full for full in (text, f"fnarray.{text}") if full in _known), None)
