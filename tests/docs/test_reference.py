"""Every public name is in the reference, with a docstring; so is every error, and every setting."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import fnarray
from fnarray import errors
from fnarray.config import SETTINGS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/_ext"))
import parameters  # noqa: E402
import reference  # noqa: E402
import surfaces  # noqa: E402
import tables  # noqa: E402


@pytest.fixture(scope="module")
def pages():
    """The pages as they are written for the site, by name."""
    return dict(reference.every_page())


def test_every_public_name_has_a_docstring():
    """Functions and classes in their docstrings, data in a comment."""
    assert [name.full for name in surfaces.every_name() if not name.doc.strip()] == []


def test_every_public_name_is_on_a_page(pages):
    """Each has one entry, under the module it is reached by, with where it is written."""
    entry = re.compile(r"^\.\. py:\w+:: (\w+).*\n   :module: ([\w.]+)$", re.MULTILINE)
    written = [f"{m[2]}.{m[1]}" for text in pages.values() for m in entry.finditer(text)]
    assert sorted(written) == sorted(name.full for name in surfaces.every_name())
    assert "Source: ``fnarray/numpy/_reductions.py``" in pages["fnarray.numpy.reductions"]


def test_functions_say_what_their_parameters_are():
    """All but a few of those with parameters; what a docstring leaves out is in the table."""
    asked = [n for n in surfaces.every_name() if n.kind == "function" and n.ours]
    asked = [n for n in asked if parameters.names(n)]
    told = [n for n in asked if parameters.has(n) or parameters.section(n)]
    assert len(told) > 0.95 * len(asked)
    median = next(n for n in told if n.full == "fnarray.numpy.median")
    assert "\nParameters\n----------\na : array_like\n" in parameters.described(median)


def test_the_table_of_parameters_has_what_is_used():
    """No entry is of a parameter that no function of its scope has, undescribed."""
    used = {key for n in surfaces.every_name() for key in parameters.sources(n)}
    table = parameters._table()
    assert {(scope, key) for scope, rows in table.items() for key in rows} == used


def test_pages_link_to_the_same_name_elsewhere(pages):
    """NumPy's, SciPy's and JAX's pages, where they have the name."""
    text = pages["fnarray.numpy.reductions"]
    assert "https://numpy.org/doc/stable/reference/generated/numpy.sum.html" in text
    assert "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.sum.html" in text
    assert "generated/scipy.special.erf.html" in pages["fnarray.scipy.special"]
    assert "numpy.absolute.html" in pages["fnarray.numpy.ufuncs"]


def test_signatures_show_what_is_called():
    """Also of functions that are objects; without annotations and addresses."""
    assert surfaces.signature(fnarray.numpy.add) == "(x, y, /)"
    assert surfaces.signature(fnarray.numpy.full).startswith("(shape, fill_value, dtype=None, *")
    assert not [n.full for n in surfaces.every_name() if " at 0x" in surfaces.signature(n.value)]


@pytest.mark.parametrize(
    ("doc", "escaped"),
    [
        ("of (n, *shape), |x|, ``a * b`` and r_.", r"of (n, \*shape), \|x\|, ``a * b`` and r\_."),
        ("`name` of x_y.", "`name` of x_y."),
        ("As::\n\n    a * b\n\nand *c", "As::\n\n    a * b\n\nand \\*c"),
    ],
)
def test_docstrings_are_taken_as_they_stand(doc, escaped):
    """Stars, bars and underscores mean themselves; code is left alone."""
    assert reference._escaped(doc) == escaped


def test_every_error_has_a_program_that_gives_it():
    """Each exception has a heading on the page of errors, or is the base of some that do."""
    text = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (\w+)$", text, re.MULTILINE))
    bases = {"FnarrayError", "FnarrayTypeError", "JAXTypeError", "JAXIndexError", "EffectError"}
    assert headings == set(errors.__all__) - bases


def test_every_setting_and_operation_is_in_its_table():
    """Settings with their variables; operations with form, rules and targets."""
    text = tables.settings()
    assert all(f"``FNARRAY_{name.upper()}``" in text for name in SETTINGS)
    found = {prim.name for prim in tables.every_operation()}
    assert {"add", "scan", "cholesky", "gather", "threefry2x32", "remat2"} <= found
    text = tables.operations()
    row = text[text.index("``exp``") :].split("* -")[0]
    assert [line.strip(" -") for line in row.splitlines()[1:7]] == [
        "Map", "yes", "yes", "kernel", "kernel", "1",
    ]  # fmt: skip
