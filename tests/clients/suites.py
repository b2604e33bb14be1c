"""Run other libraries' own tests under fnarray, and what fails there under the real JAX.

``python tests/clients/suites.py NAME [PATHS] [-k WORDS] [--every N] [--timeout S] [--wall S]``
fetches the source of the library's installed version from the package index (once, to a cache),
runs its tests with ``-p fnarray.as_jax``, those that fail again without, in another process, and
prints a row of counts and the tests that fail under fnarray alone. PATHS are in the source. The
environment holds fnarray, JAX, the library, what its tests import, and ``pytest-timeout``.
``--list`` prints the libraries known; others are run with their folder ``tests``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
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
    #: What the environment says, of libraries that compute by one of several packages.
    environment: tuple[tuple[str, str], ...] = ()


LIBRARIES = {
    "blackjax": Suite(ignore=("tests/test_benchmarks.py",), why="timings"),
    "brainevent": Suite(("brainevent",)),
    "brainstate": Suite(("brainstate",)),
    "brax": Suite(("brax",)),
    "coordax": Suite(("coordax",)),
    "distrax": Suite(("distrax",)),
    "dynamax": Suite(("dynamax",)),
    "flax": Suite(("tests/linen", "tests/nnx", "tests/core")),
    "flowjax": Suite(),
    "jax_galsim": Suite(("tests/jax",)),
    "jaxley": Suite(
        ("tests",), ("tests/jaxley_vs_neuron", "tests/test_regression.py"), "NEURON, and timings"
    ),
    "jaxoplanet": Suite(),
    "jaxsim": Suite(ignore=("tests/test_benchmark.py",), why="timings"),
    "keras": Suite(
        ("keras",), ("keras/src/backend/torch",), "another backend", (("KERAS_BACKEND", "jax"),)
    ),
    "kfac-jax": Suite(),
    "numpyro": Suite(("test",)),
    "oryx": Suite(("oryx",)),
    "probdiffeq": Suite(),
    "saiunit": Suite(("saiunit",)),
    "tensorly": Suite(("tensorly",), environment=(("TENSORLY_BACKEND", "jax"),)),
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
    # Records and logs of runs lie beside it.
    (root,) = (path for path in folder.iterdir() if path.is_dir())
    return root


class Record:
    """Pytest's side: a line for each test begun and ended, so that a crash keeps what was found."""

    def __init__(self, wall: str, every: str, path: str) -> None:
        self.path, self.wall, self.every = path, float(wall), int(every)
        self.session, self.end = None, math.inf

    def write(self, test: str, outcome: str, text: str = "") -> None:
        """Append one line."""
        with Path(self.path).open("a") as file:
            file.write(json.dumps([test, outcome, text[-400:]]) + "\n")

    def pytest_collection_modifyitems(self, items) -> None:
        """Keep one test of so many."""
        items[:] = items[:: self.every]

    def pytest_collection_finish(self, session) -> None:
        """The clock starts once all files are imported."""
        self.session, self.end = session, time.monotonic() + self.wall

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
        if self.session is not None and time.monotonic() > self.end:
            self.session.shouldstop = "the time for this run is over"


def pytest_configure(config) -> None:
    """Record, where `outcomes` below asks for it by ``-p suites``."""
    if RECORD in os.environ:
        config.pluginmanager.register(Record(*os.environ[RECORD].split(" ", 2)))


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for a test and for a run, and of how many tests one is run."""

    timeout: int = 60
    wall: int = 480
    every: int = 1


def outcomes(
    suite: Suite, root: Path, tests: list[str], words: str | None, under: str, limits: Limits
) -> dict[str, tuple[str, str]]:
    """Return what became of each test: passed, failed, skipped or died, and the error's end."""
    record = root.parent / f"{under}.jsonl"
    record.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "suites"]
    command += ["-p", "fnarray.as_jax"] if under == "fnarray" else []
    command += ["-o", "addopts=", "-o", "filterwarnings=", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly", "--continue-on-collection-errors"]
    command += [f"--timeout={limits.timeout}", *(f"--ignore={path}" for path in suite.ignore)]
    command += ["-k", words] if words else []
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(HERE)}
    env |= dict(suite.environment)
    env |= {RECORD: f"{limits.wall} {limits.every} {record}"}
    # A test that hangs in machine code heeds neither limit; imports may take three minutes.
    last = limits.wall + limits.timeout + 180
    with (root.parent / f"{under}.log").open("w") as log:
        try:
            subprocess.run(
                [*command, *tests], cwd=root, env=env, stdout=log, stderr=log, timeout=last
            )
        except subprocess.TimeoutExpired:
            print(f"{under}: killed after {last} seconds", file=sys.stderr)
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
    limits: Limits,
) -> None:
    """Print a library's row, and each test that fails under fnarray alone with its error's end."""
    here = outcomes(suite, root, paths or list(suite.folders), words, "fnarray", limits)
    bad = [test for test, (outcome, _) in here.items() if outcome in ("failed", "died")]
    there = (
        outcomes(suite, root, bad, None, "jax", Limits(limits.timeout, limits.wall)) if bad else {}
    )
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
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run one test of N")
    parser.add_argument("--into", type=Path, default=platformdirs.user_cache_path("fnarray-suites"))
    parser.add_argument("--list", action="store_true", help="print the libraries known")
    given = parser.parse_args()
    if given.list or given.name is None:
        for name, suite in LIBRARIES.items():
            out = f", without {' '.join(suite.ignore)}: {suite.why}" if suite.ignore else ""
            print(f"{name}: {' '.join(suite.folders)}{out}")
        return
    suite = LIBRARIES.get(given.name, Suite())
    limits = Limits(given.timeout, given.wall, given.every)
    compare(given.name, fetch(given.name, given.into), suite, given.paths, given.words, limits)


if __name__ == "__main__":
    main()
