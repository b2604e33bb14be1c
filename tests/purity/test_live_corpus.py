"""The corpus, case by case and as figures."""

from __future__ import annotations

import pytest

from fnarray.purity import check

from .corpus import FILES, Case, cases
from .corpus.table import live, static

CASES = [case for module in FILES for case in cases(module)]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_verdict(case: Case):
    """A pure function is silent, an impure one is found, at the marked lines and no other."""
    found = check(case.function)
    assert bool(found) == case.impure, [f.concise() for f in found]
    lines = {f.line for f in found if f.file == case.file}
    if case.lines:
        assert lines == case.lines, [f.concise() for f in found]


def test_every_case_is_there_once():
    """Names are unique, and impure cases say where they are so."""
    names = [(c.file, c.name) for c in CASES]
    assert len(set(names)) == len(names)
    assert [c.name for c in CASES if c.impure and not c.lines] == []


@pytest.mark.parametrize("figures", [live, static], ids=lambda f: f.__name__)
def test_figures(figures):
    """Recall of 99%, false positives of 1%, 95% on the exact line, over 150 functions each."""
    row = figures()
    print(row)
    assert min(row.impure, row.pure) >= 150
    assert row.recall >= 0.99
    assert row.wrong <= 0.01
    assert row.exact >= 0.95
