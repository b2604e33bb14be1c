"""Every public name is in the reference, with a docstring; so is every error, and every setting."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fnarray
from fnarray import errors
from fnarray.config import SETTINGS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/_ext"))
import parameters  # noqa: E402
import reference  # noqa: E402
import results  # noqa: E402
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
    assert [name.full for name in surfaces.every_name() if name.place is None] == []
    assert "Source: ``fnarray/numpy/_reductions.py``" in pages["fnarray.numpy.reductions"]


def _rows(text):
    """Return the parameters' section of what a page says."""
    own = parameters._HEADS.split(f"{text}\n")
    return own[own.index("Parameters") + 1].strip() + "\n" if "Parameters" in own else ""


def test_functions_and_classes_say_what_their_parameters_are():
    """Each, in the order of the signature; the table has what a docstring leaves out."""
    asked = [key for n in surfaces.every_name() for key in parameters.sources(n)]
    assert [key for key in asked if key[1] is None] == []
    told = {n.full: parameters.described(n) for n in surfaces.every_name()}
    assert "\nParameters\n----------\na : array_like\n" in told["fnarray.numpy.median"]
    rows = re.findall(r"^(\w+) : ", told["fnarray.numpy.argsort"], re.MULTILINE)
    assert rows == ["a", "axis", "kind", "order", "stable", "descending", "dtype"]
    shown = {
        full: re.findall(r"^\S.*\n(?![ ]{4})", _rows(text), re.M) for full, text in told.items()
    }
    assert {full: bare for full, bare in shown.items() if bare} == {}
    assert "\nx : array_like\n    The operand.\n" in told["fnarray.numpy.tanh"]
    assert "\nkey : hashable\n    The key in the dictionary" in told["fnarray.tree_util.DictKey"]
    assert "Of the operand's shape; of its dtype made floating." in told["fnarray.numpy.tanh"]
    assert "Of the operands' shape, broadcast where" in told["fnarray.numpy.hypot"]


def test_the_table_of_parameters_has_what_is_used():
    """No entry is of a parameter that no function of its scope has, undescribed; none is twice."""
    used = {key[1:] for n in surfaces.every_name() for key in parameters.sources(n)}
    table = parameters._table()
    assert {(scope, key) for scope, rows in table.items() for key in rows} == used
    scopes = parameters._SECTION.findall(parameters.TABLE.read_text(encoding="utf-8"))
    assert len(scopes) == len(set(scopes))


def test_modules_list_their_public_names_alone():
    """`dir`, and so what an editor completes, has no name that a module merely imports.

    Primitives are listed as ``<name>_p`` where they have been declared.
    """
    for module in (m for m in surfaces.modules() if m not in surfaces.ACTING):
        listed = {name for name in dir(sys.modules[module]) if name[0] != "_"}
        public = {n.name for n in surfaces.names(module) if n.name[0] != "_"}
        assert public <= listed, module
        assert {name for name in listed - public if not name.endswith("_p")} == set(), module


FUNCTIONS = [n for n in surfaces.every_name() if n.kind == "function" and n.ours]


def test_functions_say_what_they_give_and_raise():
    """Each has its result and its errors, or that it has none; examples are asked for elsewhere."""
    told = {name.full: parameters.described(name) for name in FUNCTIONS}
    assert [
        k for k, text in told.items() if not re.search(r"^(Return|Yield)s\n-", text, re.M)
    ] == []
    silent = [n for n in FUNCTIONS if "\nRaises\n------\n" not in told[n.full]]
    assert [n.full for n in silent if not results.no_errors(n)] == []
    median = told["fnarray.numpy.median"]
    heads = ["Parameters", "Returns", "Raises"]
    assert re.findall(r"^(\w+)\n---+$", median, re.MULTILINE) == heads


def test_the_table_of_results_has_what_is_used():
    """Nothing in it is of no function's page; names that share a heading share its rows."""
    shown = {
        tuple(results.table()[scope][word])
        for name in FUNCTIONS
        for word in ("returns", "raises")
        if (scope := results.scope(name, word))
    }
    rows = {tuple(rows): scope for scope, said in results.table().items() for rows in said.values()}
    assert [scope for said, scope in rows.items() if said not in shown] == []


SHAPE = "Of the operands' shape, broadcast where there are several; "
#: What is said of the dtype, and what float32, int32 and bool give.
SAID = {
    f"{SHAPE}of their promoted dtype made floating.": ("float32", "float32", "float32"),
    f"{SHAPE}of their promoted dtype.": ("float32", "int32", "bool"),
    f"{SHAPE}of their promoted dtype, of booleans the default integer.": (
        "float32",
        "int32",
        "int32",
    ),
    f"{SHAPE}bool.": ("bool", "bool", "bool"),
    "Of the operand's shape, floating.": ("float32", "float32", "float32"),
    "Of the operand's shape and dtype.": ("float32", "int32", "bool"),
    "Of the operands' shape; bool.": ("bool", "bool", "bool"),
}
ELEMENTWISE = (
    "numpy._math", "numpy._ufuncs", "numpy._floating", "nn._activations",
               "scipy.special", "ops.bitwise", "ops.cumulative", "ops.elementwise")  # fmt: skip


def test_elementwise_functions_give_what_is_said():
    """Shape and dtype of each, as far as it takes the dtype."""
    checked, wrong = 0, []
    for name in FUNCTIONS:
        said = " ".join(results.section(name, "returns").split()).partition("Array ")[2]
        count = len([p for p in parameters.names(name) if p in ("x", "y", "x1", "x2", "a")])
        if said not in SAID or not name.home.endswith(ELEMENTWISE) or not count:
            continue
        shapes = ((2, 3),) * 2 if name.module == "fnarray.lax" else ((2, 1), (3,))
        for dtype, expected in zip(("float32", "int32", "bool"), SAID[said], strict=True):
            args = [fnarray.ShapeDtypeStruct(s, dtype) for s in shapes[:count]]
            try:
                found = fnarray.eval_shape(name.value, *args)
            except (TypeError, ValueError):  # not of this dtype, or another parameter is needed
                continue
            checked += 1
            if (found.shape, found.dtype) != (np.broadcast_shapes(*shapes[:count]), expected):
                wrong.append((name.full, dtype, found.shape, found.dtype.name))
    assert wrong == []
    assert checked > 250


def test_what_is_no_array_is_refused():
    """As the pages of NumPy's functions and their kin say: with one of two errors."""
    general = results.table()["fnarray.numpy"]["raises"], results.table()["fnarray.lax"]["raises"]
    wrong = []
    for name in FUNCTIONS:
        scope = results.scope(name, "raises")
        if scope is None or results.table()[scope]["raises"] not in general:
            continue
        asked = [
            p for p in inspect.signature(name.value).parameters.values() if p.default is p.empty
        ]
        args = [object() for p in asked if p.kind < p.KEYWORD_ONLY]
        named = {p.name: object() for p in asked if p.kind == p.KEYWORD_ONLY}
        try:
            name.value(*args, **named)
        except (TypeError, ValueError):
            continue
        except Exception as error:
            wrong.append((name.full, type(error).__name__))
        else:
            wrong.append((name.full, "nothing"))
    assert wrong == []


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


def test_names_lead_to_the_pages_of_the_same_name() -> None:
    """Those of NumPy, SciPy and JAX: pages of their own, or places on a page of a module."""
    jax = "https://docs.jax.dev/en/latest"
    whole = "jax.example_libraries.optimizers"
    expected = {
        "fnarray.scipy.stats.norm.cdf": [
            "scipy.stats.norm",
            f"{jax}/_autosummary/jax.scipy.stats.norm.cdf.html",
        ],
        "fnarray.experimental.sparse.bcoo_todense": [
            f"{jax}/_autosummary/jax.experimental.sparse.bcoo_todense.html"
        ],
        "fnarray.example_libraries.optimizers.adam": [f"{jax}/{whole}.html#{whole}.adam"],
        "fnarray.errors.TracerBoolConversionError": [
            f"{jax}/errors.html#jax.errors.TracerBoolConversionError"
        ],
        "fnarray.explain": [],
    }
    names = {n.full: n for n in surfaces.every_name()}
    for full, pages in expected.items():
        found = surfaces.links(names[full])
        assert len(found) == len(pages), (full, found)
        for (label, url), page in zip(found, pages, strict=True):
            assert page in (url, label)


def test_every_name_that_jax_documents_is_one() -> None:
    """A line of ``jax_pages.txt`` names what its module has here, or what JAX alone has."""
    lines = (ROOT / "docs/reference/jax_pages.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(": ") for line in lines if not line.startswith("#")]
    assert [module for module, _ in rows] == sorted(module for module, _ in rows)
    ours = {n.full.replace("fnarray", "jax", 1).rpartition(".")[0] for n in surfaces.every_name()}
    assert {module for module, _ in rows} <= ours
