"""Settings of the linter: the table ``[tool.fnarray.lint]``, overlaid by the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

from ._glob import matches

#: What is read from standard input is called, unless it is given a name.
STDIN = "<stdin>"
FORMATS = ("full", "concise", "json", "github", "sarif", "junit")

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv", "__pycache__", "__pypackages__",
    "_build", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip


class UsageError(ValueError):
    """Settings or arguments that cannot be used; the command line exits with 2."""


class Options(NamedTuple):
    """What is checked, where, and how it is shown: each field but ``root`` is an option.

    Codes are given whole (``FNA101``), by prefix (``FNA1``), by name (``global-write``), or as
    ``ALL``; the longest matching prefix decides, and ``ignore`` wins a tie. ``presumed`` adds what
    would be wrong where JAX traces under a condition that the text does not show (`lint.proof`).
    """

    root: Path
    select: tuple[str, ...] = ("ALL",)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    src: tuple[str, ...] = (".", "src")
    transforms: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    impure: tuple[str, ...] = ()
    max_unrolled: int = 100
    presumed: bool = False
    baseline: str | None = None
    format: str = "full"


class Settings(Options):
    """The options, and what they say of a rule and of a file."""

    def __new__(cls, root: Path | None = None, *others: Any, **named: Any) -> Settings:
        """Return the options that are given, below a folder: the current one by itself."""
        return super().__new__(cls, Path.cwd() if root is None else root, *others, **named)

    def __hash__(self) -> int:
        return id(self)

    @cached_property
    def _levels(self) -> dict[str, bool]:
        return {}

    def enabled(self, code: str, name: str) -> bool:
        """Say whether the rule with this code is on, files aside."""
        known = self._levels
        if code not in known:
            on = max(_reach(s, code, name) for s in (*self.select, *self.extend_select, ""))
            off = max((_reach(s, code, name) for s in self.ignore), default=-1)
            known[code] = on > 0 and on > off
        return known[code]

    def ignored_in(self, path: str, code: str, name: str) -> bool:
        """Say whether ``per-file-ignores`` silences a rule in one file."""
        if not self.per_file_ignores:
            return False
        short = relative(path, self.root)
        return any(
            matches(short, pattern) and any(_reach(c, code, name) > 0 for c in codes)
            for pattern, codes in self.per_file_ignores.items()
        )

    def excluded(self, path: Path) -> bool:
        """Say whether discovery leaves a file or folder out."""
        short = relative(path, self.root)
        return any(matches(short, pattern) for pattern in (*self.exclude, *self.extend_exclude))


def relative(path: str | PurePath, root: Path) -> str:
    """Return ``path`` as seen from ``root``, with forward slashes; unchanged when outside."""
    return _relative(str(path), str(root), os.getcwd())  # noqa: PTH109 - for each file


@lru_cache(maxsize=10_000)
def _relative(path: str, root: str, here: str) -> str:
    if path == STDIN:
        return path
    inside, whole = f"{_real(root).rstrip(os.sep)}{os.sep}", real_path(os.path.join(here, path))  # noqa: PTH118
    if whole.startswith(inside):
        return whole.removeprefix(inside).replace(os.sep, "/")
    return "." if whole == _real(root) else Path(path).as_posix()


def real_path(path: str) -> str:
    """Return a path without links; a folder is looked through once, part by part."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - for each file, twice
    if os.path.islink(path) or os.pardir in path:  # noqa: PTH114
        return os.path.realpath(path)
    return os.path.join(_real(folder), name)  # noqa: PTH118


@lru_cache(maxsize=10_000)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def _reach(selector: str, code: str, name: str) -> int:
    """Return how exactly a selector names a rule: 0 not at all, more for a longer prefix."""
    if selector == "ALL":
        return 1
    if selector == name:
        return len(code) + 2
    return len(selector) + 1 if selector and code.startswith(selector) else 0


# --- reading -------------------------------------------------------------------------------------


def find_pyproject(start: Path) -> Path | None:
    """Return the nearest ``pyproject.toml`` at or above ``start`` that has the linter's table."""
    start = start.resolve()
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        path = folder / "pyproject.toml"
        # Parsers of TOML take a tenth of a short run, and most projects have nothing for this one.
        if path.is_file() and b"fnarray" in path.read_bytes() and _table(path) is not None:
            return path
    return None


@lru_cache(maxsize=64)
def _table(path: Path) -> dict[str, Any] | None:
    import tomllib

    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    if path.name != "pyproject.toml" and "tool" not in data:
        return data
    found: Any = data.get("tool", {}).get("fnarray", {}).get("lint")
    if found is not None and not isinstance(found, dict):
        raise UsageError(f"{path}: tool.fnarray.lint must be a table, got {found!r}.")
    return cast("dict[str, Any] | None", found)


def load(path: Path | None, known: Iterable[tuple[str, str]] = ()) -> Settings:
    """Read settings from a file, or return the defaults when there is none.

    Raises
    ------
    UsageError
        For a file that cannot be read, an unknown option, a value of the wrong type, or a code
        that names no rule.
    """
    if path is None:
        return Settings()
    try:
        table = _table(path.resolve()) or {}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}.") from error
    base = Settings(root=path.resolve().parent)
    values = {k.replace("-", "_"): _value(path, k, value) for k, value in table.items()}
    settings = base._replace(**values)
    check_codes(settings, known, str(path))
    return settings


def _value(path: Path, key: str, value: Any) -> Any:
    options = {name.replace("_", "-") for name in Options._fields} - {"root"}
    where = f"{path}: tool.fnarray.lint.{key}"
    if key not in options:
        raise UsageError(f"{where}: unknown option; known are {', '.join(sorted(options))}.")
    match key:
        case "max-unrolled":
            good = isinstance(value, int) and not isinstance(value, bool) and value > 0
            expected = "a positive integer"
        case "presumed":
            good, expected = isinstance(value, bool), "true or false"
        case "baseline" | "format":
            good = isinstance(value, str) and (key != "format" or value in FORMATS)
            expected = "a path" if key == "baseline" else f"one of {', '.join(FORMATS)}"
        case "per-file-ignores":
            good = isinstance(value, dict) and all(map(_is_list, _values(value)))
            expected = "a table from pattern to list of codes"
            if good:
                value = {k: tuple(v) for k, v in cast("dict[str, list[str]]", value).items()}
        case _:
            good, expected = _is_list(value), "a list of strings"
            value = tuple(value) if good else value
    if not good:
        raise UsageError(f"{where}: expected {expected}, got {value!r}.")
    return cast("Any", value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in _items(value))


#: TOML's lists and tables may hold anything.
_items: Callable[[Any], Iterable[Any]] = list.__iter__  # pyright: ignore
_values: Callable[[Any], Iterable[Any]] = dict.values  # pyright: ignore


def check_codes(settings: Settings, known: Iterable[tuple[str, str]], where: str) -> None:
    """Raise `UsageError` when a selector names no rule."""
    rules = tuple(known)
    if not rules:
        return
    listed = [("select", c) for c in settings.select]
    listed += [("extend-select", c) for c in settings.extend_select]
    listed += [("ignore", c) for c in settings.ignore]
    listed += [("per-file-ignores", c) for cs in settings.per_file_ignores.values() for c in cs]
    for option, selector in listed:
        if not any(_reach(selector, code, name) for code, name in rules):
            raise UsageError(
                f"{where}: {option}: {selector!r} names no rule; "
                "`fnarray rule` lists the codes, `FNA1` selects a group, `ALL` everything."
            )
