"""Run other libraries' own tests under fnarray, and what fails there under the real JAX.

``python tests/clients/suites.py NAME [PATHS] [-k WORDS] [--timeout S] [--wall S] [--into FOLDER]``
fetches the source of the library's installed version from the package index (once, to a cache folder),
runs its tests with ``-p fnarray.as_jax``, those that fail again without, each in a process of its
own, and prints a row of counts and the tests that fail under fnarray alone. PATHS are relative to
the library's source. The environment holds fnarray, the pinned JAX, the library, what its tests
import, and ``pytest-timeout``. ``--list`` prints the libraries known, others run with ``tests``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import platformdirs

HERE = Path(__file__).parent
#: Where a run writes a line for each test; also what tells this module that it is pytest's plugin.
RECORD = "FNARRAY_SUITE_RECORD"


@dataclass(frozen=True, slots=True)
class Suite:
    """Where a library keeps its tests, and what of them is left out, and why."""

    folders: tuple[str, ...] = ("tests",)
    ignore: tuple[str, ...] = ()
    why: str = ""
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


LIBRARIES = {
    "blackjax": Suite(ignore=("tests/test_benchmarks.py",), why="timings"),
    "flax": Suite(
        ("tests/linen", "tests/nnx", "tests/core"),
        ("tests/nnx/summary_test.py", "tests/linen/summary_test.py"),
        "counts of floating-point operations, which XLA makes",
    ),
    "numpyro": Suite(("test",)),
}


def fetch(name: str, into: Path) -> Path:
    """Return the unpacked source of the installed version of a library."""
    version = importlib.metadata.version(name)
    folder = into / f"{name}-{version}"
    if not folder.exists():
        into.mkdir(parents=True, exist_ok=True)
        alone = ["--no-deps", "--no-binary", name, "--dest", str(folder) + ".sdist"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", *alone]
        subprocess.run([*pip, f"{name}=={version}"], check=True)
        (archive,) = Path(str(folder) + ".sdist").iterdir()
        with tarfile.open(archive) as source:
            source.extractall(str(folder) + ".part", filter="data")
        Path(str(folder) + ".part").rename(folder)
    (root,) = folder.iterdir()
    return root


class Record:
    """Pytest's side: a line for each test begun and ended, so that a crash keeps what was found."""

    def __init__(self, path: str) -> None:
        self.path, self.begun = path, time.monotonic()
        self.session, self.wall = None, float(os.environ.get(RECORD + "_WALL", "inf"))

    def write(self, test: str, outcome: str, text: str = "") -> None:
        """Append one line."""
        with Path(self.path).open("a") as file:
            file.write(json.dumps([test, outcome, text[-400:]]) + "\n")

    def pytest_sessionstart(self, session) -> None:
        """Keep the session, to stop it."""
        self.session = session

    def pytest_collectreport(self, report) -> None:
        """A file that does not import fails as one test."""
        if report.failed:
            self.write(report.nodeid, "failed", str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        """What has begun and does not end took the process with it."""
        self.write(nodeid, "died")

    def pytest_runtest_logreport(self, report) -> None:
        """The worst of set-up, call and tear-down counts."""
        if report.when == "call" or not report.passed:
            self.write(report.nodeid, report.outcome, str(report.longrepr or ""))
        if self.session is not None and time.monotonic() - self.begun > self.wall:
            self.session.shouldstop = f"{self.wall} seconds are over"


def pytest_configure(config) -> None:
    """Record, where `outcomes` below asks for it by ``-p suites``."""
    if RECORD in os.environ:
        config.pluginmanager.register(Record(os.environ[RECORD]))


def outcomes(
    suite: Suite,
    root: Path,
    tests: list[str],
    words: str | None,
    under: str,
    limits: tuple[int, int],
) -> dict[str, tuple[str, str]]:
    """Return what became of each test: passed, failed, skipped or died, and the error's end."""
    record = root.parent / f"{under}.jsonl"
    record.unlink(missing_ok=True)
    each, wall = limits
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-p",
        "suites",
        "-p",
        "no:randomly",
    ]
    command += ["-p", "fnarray.as_jax"] if under == "fnarray" else []
    command += ["-o", "addopts=", "-o", "filterwarnings=", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", f"--timeout={each}", *suite.options]
    command += [f"--ignore={path}" for path in suite.ignore]
    command += ["-k", words] if words else []
    here = {"PYTHONPATH": str(HERE), RECORD: str(record), RECORD + "_WALL": str(wall)}
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **here, **dict(suite.environment)}
    with (root.parent / f"{under}.log").open("w") as log:
        try:
            subprocess.run(
                [*command, *tests],
                cwd=root,
                env=env,
                stdout=log,
                stderr=log,
                timeout=wall + each + 60,
            )
        except subprocess.TimeoutExpired:
            print(f"{under}: stopped in a test that does not heed its timeout", file=sys.stderr)
    found: dict[str, tuple[str, str]] = {}
    for line in record.read_text().splitlines() if record.exists() else ():
        test, outcome, text = json.loads(line)
        if found.get(test, ("",))[0] != "failed":
            found[test] = (outcome, text)
    return found


def compare(
    name: str,
    root: Path,
    suite: Suite,
    paths: list[str],
    words: str | None,
    limits: tuple[int, int],
) -> None:
    """Print a library's row, and each test that fails under fnarray alone with its error's end."""
    here = outcomes(suite, root, paths or list(suite.folders), words, "fnarray", limits)
    bad = [test for test, (outcome, _) in here.items() if outcome in ("failed", "died")]
    there = outcomes(suite, root, bad, None, "jax", limits) if bad else {}
    ours = [test for test in bad if there.get(test, ("",))[0] == "passed"]
    # A file that does not import under fnarray has no test of its own name under JAX.
    ours += [test for test in bad if "::" not in test and test not in there]
    unsaid = [test for test in bad if "::" in test and test not in there]
    passed = sum(outcome == "passed" for outcome, _ in here.values())
    print("| library | passed | failed | here only |")
    print(f"| {name} | {passed} | {len(bad)} | {len(ours)} |")
    for test in ours:
        end = (here[test][1].strip().splitlines() or [here[test][0]])[-1]
        print(f"{test}\n    {end}")
    if unsaid:
        print(f"not reached under jax: {len(unsaid)}: {' '.join(unsaid[:5])}")


def main() -> None:
    """Read the command line, and run one library's tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("-k", dest="words")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for each test")
    parser.add_argument("--wall", type=int, default=480, help="seconds for each of the two runs")
    parser.add_argument("--into", type=Path, default=platformdirs.user_cache_path("fnarray-suites"))
    parser.add_argument("--list", action="store_true", help="print the libraries known")
    given = parser.parse_args()
    if given.list or given.name is None:
        for name, suite in LIBRARIES.items():
            out = f", without {' '.join(suite.ignore)}: {suite.why}" if suite.ignore else ""
            print(f"{name}: {' '.join(suite.folders)}{out}")
        return
    suite = LIBRARIES.get(given.name, Suite())
    root = fetch(given.name, given.into)
    compare(given.name, root, suite, given.paths, given.words, (given.timeout, given.wall))


if __name__ == "__main__":
    main()
