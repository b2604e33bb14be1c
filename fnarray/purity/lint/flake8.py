"""The linter as a flake8 plugin: ``flake8 --select FNA``.

Helpers in other files of the project are followed; their findings are left to the run over those
files, since flake8 reports one file at a time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ._version import version
from .config import Settings, find_pyproject, load
from .linter import lint
from .source import SourceFile, parse


class Plugin:
    """A tree plugin in flake8's sense."""

    name: ClassVar[str] = "fnarray"
    version: ClassVar[str] = version()
    _settings: ClassVar[dict[Path, Settings]] = {}

    def __init__(self, tree: ast.Module, filename: str, lines: list[str]) -> None:
        self.filename = filename
        self.lines = lines

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """Yield ``(line, column, text, type)``; flake8's columns count from zero."""
        source: SourceFile = parse(self.filename, "".join(self.lines))
        if source.tree is None:
            return  # flake8 reports syntax errors itself
        for finding in lint([source], self.settings()).findings:
            if finding.file == self.filename:
                text = f"{finding.code} {finding.said}. {finding.repair}"
                yield finding.line, finding.column - 1, text, type(self)

    def settings(self) -> Settings:
        """Return the project's settings: those of ``[tool.fnarray.lint]``."""
        folder = Path(self.filename).resolve().parent
        if folder not in self._settings:
            self._settings[folder] = load(find_pyproject(folder))
        return self._settings[folder]
