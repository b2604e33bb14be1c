"""The laws of the house that a reader can check without tools: floors, file sizes, a light import.

Files longer than the size law allows, each with its reason: none.
"""

from __future__ import annotations

import ast
import configparser
import functools
import graphlib
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_LINES = 600
MAX_FUNCTION = 60
LONG_FILES = {
    "kernels/vmath/coefficients.py": "a table of numbers, written by a program",
    "tests/purity/corpus/impure_fresh.py": "a list of small functions",
    "tests/purity/corpus/impure_second.py": "a list of small functions",
    "tests/purity/corpus/pure_written.py": "a list of small functions",
    "tests/purity/corpus/impure_writes.py": "a list of small functions",
    "tests/purity/corpus/pure_constants.py": "a list of small functions",
    "tests/purity/corpus/pure_fresh.py": "a list of small functions",
    "tests/purity/corpus/impure_handed.py": "a list of small functions",
    "tests/purity/corpus/pure_handed.py": "a list of small functions",
    "tests/purity/corpus/pure_local.py": "a list of small functions",
}

# Bottom to top; a part may import its own floor and those below. What is not named is a surface.
FLOORS = (
    "errors config effects jax_settings",
    "core",
    "threads",
    "ops",
    "transforms",
    "control",
    "api",
    "lax",
    "numpy flatten_util",
    "random scipy nn",
)
SURFACE = len(FLOORS)
LEVEL = {part: level for level, parts in enumerate(FLOORS) for part in parts.split()}
# Parts beside the front wing see only these (and themselves), however high they stand.
BASE = {"errors", "config", "core", "threads"}
SEES = {
    "compile": BASE,
    "runtime": BASE | {"compile"},
    "purity": BASE | {"effects"},
}
FRONT_FLOORS_UNDER_API = LEVEL["api"]

FILES = sorted((ROOT / "fnarray").rglob("*.py")) + sorted((ROOT / "kernels").rglob("*.py"))


@functools.cache
def read(path: Path) -> tuple[list[tuple[int, tuple[str, ...]]], list[tuple[int, str, int]]]:
    """What a file imports, and its functions: line, name, lines but for the docstring."""
    package = path.relative_to(ROOT).with_suffix("").parts
    names, functions = [], []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += ((node.lineno, tuple(a.name.split("."))) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            names += ((node.lineno, (*base, a.name)) for a in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False)
            lines = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
            functions.append((node.lineno, node.name, lines))
    return names, functions


def imports(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """Every absolute dotted name a file imports, inside functions too, with its line."""
    return read(path)[0]


def allowed(importer: str, imported: str) -> bool:
    """Say whether one part of ``fnarray`` may import another."""
    if importer in {imported, "__init__", "__main__"}:
        return True
    if importer in SEES:
        return imported in SEES[importer]
    level = LEVEL.get(importer, SURFACE)
    if imported == "purity":  # whatever traces a function checks it first
        return level >= LEVEL["control"]
    if imported in SEES:  # only the api and what stands on it joins the wings
        return level >= FRONT_FLOORS_UNDER_API
    return LEVEL.get(imported, SURFACE) <= level


def part_of(name: str) -> str:
    return name.removesuffix(".py")


def test_imports_point_down():
    """No part of fnarray imports from a floor above its own, not even inside a function."""
    bad = []
    for path in FILES:
        parts = path.relative_to(ROOT).parts
        if parts[0] != "fnarray":
            continue
        for line, name in imports(path):
            # The bare package (its version, say) is above every floor: only the api's users see it.
            target = name[1] if name[0] == "fnarray" and len(name) > 1 else None
            if target and not allowed(part_of(parts[1]), target):
                bad.append(f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}")
    assert not bad, "\n".join(bad)


def test_the_kit_names_no_family():
    """What operations are declared with imports none of them: it calls them by the registry."""
    bad = [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}"
        for path in FILES
        if path.is_relative_to(ROOT / "fnarray/ops/kit")
        for line, name in imports(path)
        if name[:2] == ("fnarray", "ops") and name[2] != "kit"
    ]
    assert not bad, "\n".join(bad)


def test_imports_run_in_no_circle():
    """No file imports, over whatever others and inside functions or for types alone, itself."""
    stems = {path.relative_to(ROOT).with_suffix("").parts for path in FILES}
    homes = {(s[:-1] if s[-1] == "__init__" else s): s for s in stems}
    graph = {}
    for path in FILES:
        stem = path.relative_to(ROOT).with_suffix("").parts
        found = (homes.get(name) or homes.get(name[:-1]) for _, name in imports(path))
        graph[stem] = {home for home in found if home not in (None, stem)}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" <- ".join("/".join(stem) for stem in error.args[1]))


def test_kernels_know_only_numpy_and_numba():
    """Kernels import the standard library, NumPy, Numba, llvmlite and each other."""
    known = {"numpy", "numba", "llvmlite", "kernels", "fnarray_kernels"} | sys.stdlib_module_names
    bad = [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}"
        for path in FILES
        if path.is_relative_to(ROOT / "kernels")
        for line, name in imports(path)
        if name[0] not in known
    ]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("forbidden", ["jax", "jaxlib", "kernels"])
def test_no_file_imports(forbidden):
    """JAX is only an oracle, and the kernels have one import name."""
    bad = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in FILES
        for line, name in imports(path)
        if name[0] == forbidden and path.relative_to(ROOT).parts[0] != forbidden
    ]
    assert not bad, f"import of {forbidden}: {bad}"


def test_files_are_short():
    """No source or test file is longer than the law allows, save those listed with a reason."""
    trees = ("fnarray", "kernels", "tests", "asv_bench", "examples")
    for path in itertools.chain.from_iterable((ROOT / tree).rglob("*.py") for tree in trees):
        name = str(path.relative_to(ROOT))
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= MAX_LINES or name in LONG_FILES, f"{name} has {lines} lines: split by idea"


def test_functions_are_short():
    """A function fits on a screen; its docstring does not count."""
    long = [
        f"{path.relative_to(ROOT)}:{line} {name}: {lines} lines"
        for path in FILES
        for line, name, lines in read(path)[1]
        if lines > MAX_FUNCTION
    ]
    assert not long, "\n".join(long)


def test_every_package_is_installed():
    """The list in setup.cfg names every folder that holds Python files, under its import name."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    folders = {path.parent.relative_to(ROOT).parts for path in FILES}
    names = {".".join(("fnarray_kernels" if p[0] == "kernels" else p[0], *p[1:])) for p in folders}
    assert listed == names, "set [options] packages in setup.cfg to: " + " ".join(sorted(names))


def test_every_folder_is_a_package():
    """Each folder of Python files has an __init__.py: without one, import-linter passes it over."""
    bad = {str(path.parent.relative_to(ROOT)) for path in FILES} - {
        str(path.parent.relative_to(ROOT)) for path in FILES if path.name == "__init__.py"
    }
    assert not bad, f"no __init__.py in {sorted(bad)}"


def test_import_is_light():
    """Importing fnarray loads no compiler and no optional or oracle library."""
    heavy = {"numba", "llvmlite", "scipy", "jax", "pandas", "fnarray_kernels"}
    code = f"import fnarray, sys; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []
