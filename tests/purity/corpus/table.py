"""How good both front ends are on the corpus: ``python -m tests.purity.corpus.table``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fnarray.purity import check
from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint

from ..test_lint_corpus import traced_source
from . import FILES, Case, cases


@dataclass(frozen=True)
class Row:
    """The figures of one front end.

    ``recall`` is the share of impure functions, or marked lines, in which something was found;
    ``wrong`` that of pure functions in which something was; ``exact`` that of findings that stand
    on a marked line.
    """

    name: str
    impure: int
    pure: int
    recall: float
    wrong: float
    exact: float

    def __str__(self) -> str:
        return (
            f"{self.name:8} {self.impure:6} impure {self.pure:5} pure   recall {self.recall:7.2%}"
            f"   false positives {self.wrong:6.2%}   exact line {self.exact:7.2%}"
        )


def live() -> Row:
    """Return the figures of the live checker."""
    found = [(case, check(case.function)) for module in FILES for case in cases(module)]
    impure = [f for case, f in found if case.impure]
    pure = [f for case, f in found if not case.impure]
    lines = [(case, x) for case, f in found if case.impure for x in f]
    exact = sum(_is_marked(case, x.file, x.line) for case, x in lines)
    return Row(
        "live", len(impure), len(pure), sum(map(bool, impure)) / len(impure),
        sum(map(bool, pure)) / len(pure), exact / len(lines),
    )  # fmt: skip


def _is_marked(case: Case, file: str, line: int) -> bool:
    return file == case.file and (line in case.lines or not case.lines)


def static() -> Row:
    """Return the figures of the linter, which sees lines in files, not functions."""
    folder = Path(__file__).parent
    paths = [folder / f"{name}.py" for name in FILES]
    marked = {
        (path.name, i)
        for path in paths
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"# !", line)
    }
    result = lint([traced_source(path) for path in paths], Settings(root=folder))
    found = {(Path(f.file).name, f.line) for f in result.findings}
    every = [case for name in FILES for case in cases(name)]
    return Row(
        "linter", sum(c.impure for c in every), sum(not c.impure for c in every),
        len(marked & found) / len(marked), len(found - marked) / len(found),
        len(found & marked) / len(found),
    )  # fmt: skip


if __name__ == "__main__":
    print(live())
    print(static())
