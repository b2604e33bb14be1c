"""Sphinx extension: a page of every program in ``gallery/``, with the picture it draws.

Programs run when the site is built, each one that has changed since its picture was made: its
``main`` compares what it finds with a reference and returns a Matplotlib figure. Colours of text
and axes are a grey that is read on white and on black.
"""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from sphinx.application import Sphinx
from sphinx.util import logging

from fnarray.config import SETTINGS, config

GREY = "#808080"
STYLE = {
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY,
    "xtick.color": GREY, "ytick.color": GREY, "legend.facecolor": "none",
    "legend.edgecolor": GREY, "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip
_logger = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", _build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _build(app: Sphinx) -> None:
    build(Path(app.srcdir) / "gallery")


def build(folder: Path) -> list[Path]:
    """Draw the pictures and write the pages of a folder of programs; return the pictures."""
    made = folder / "made"
    made.mkdir(exist_ok=True)
    programs = sorted(folder.glob("*.py"))
    pictures = [made / f"{path.stem}.png" for path in programs]
    stale = [
        (path, picture)
        for path, picture in zip(programs, pictures, strict=True)
        if not picture.exists() or picture.stat().st_mtime < path.stat().st_mtime
    ]
    if stale:
        _logger.info("gallery: %s", " ".join(path.stem for path, _ in stale))
        # In a process of their own: Sphinx forks later, and programs start threads. In one: each
        # would import Matplotlib, SciPy and fnarray, half of what a program takes.
        command = [sys.executable, __file__, *(name for pair in stale for name in pair)]
        subprocess.run(command, check=True)
    for path in programs:
        _write(made / f"{path.stem}.rst", _page(path))
    _write(made / "index.rst", _index(programs))
    return pictures


def draw(path: Path, picture: Path) -> None:
    """Run a program and keep the figure that its ``main`` returns.

    Raises
    ------
    RuntimeError
        The program fails, or changes a setting that the next one would run under.
    """
    before = _settings()
    with mpl.rc_context(STYLE):
        try:
            figure = runpy.run_path(str(path))["main"]()
        except Exception as error:
            raise RuntimeError(f"gallery: {path.name} failed: {error}") from error
        for axes in figure.axes:
            named = (axes.get_xlabel() and axes.get_ylabel()) if axes.axison else axes.get_title()
            if not named:
                raise ValueError(
                    f"gallery: {path.name}: a picture does not say what it shows. Name both axes, "
                    "or give it a title if it has none."
                )
        figure.set_layout_engine("tight")
        figure.savefig(picture, dpi=110)
    plt.close(figure)
    if _settings() != before:
        raise RuntimeError(
            f"gallery: {path.name} leaves a setting changed, under which the next program would "
            "run. Change it in a with block: `with fnarray.enable_x64(True):`."
        )


def _settings() -> dict[str, Any]:
    return {name: getattr(config, name) for name in SETTINGS}


def said(path: Path) -> tuple[str, str]:
    """Return the title of a program and what its docstring says after it."""
    title, _, text = (ast.get_docstring(_parsed(path)) or "").partition("\n")
    return title.rstrip("."), text.strip()


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _page(path: Path) -> str:
    title, text = said(path)
    return (
        f"{title}\n{'=' * len(title)}\n\n{text}\n\n"
        f".. image:: {path.stem}.png\n   :alt: {title}\n\n"
        f".. literalinclude:: ../{path.name}\n   :language: python\n"
        f"   :lines: {_parsed(path).body[1].lineno}-\n"
    )


def _index(programs: list[Path]) -> str:
    cells = "\n".join(
        f"   .. figure:: {path.stem}.png\n      :target: {path.stem}.html\n"
        f"      :alt: {said(path)[0]}\n\n      {said(path)[0]}\n"
        for path in programs
    )
    listed = "".join(f"   {path.stem}\n" for path in programs)
    return (
        "Gallery\n=======\n\nWhole programs. Each ran when this page was made, and compared what "
        "it found with SciPy, scikit-learn or NumPy, or with a law that must hold.\n\n"
        f".. container:: gallery\n\n{cells}\n.. toctree::\n   :hidden:\n\n{listed}"
    )


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for program, drawn in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        draw(Path(program), Path(drawn))
