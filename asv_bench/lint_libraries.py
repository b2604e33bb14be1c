"""The linter on code that people ship: what it finds in JAX's libraries, and how long it takes.

``python asv_bench/lint_libraries.py [FOLDER]`` installs the libraries below, without what they
depend on, into the folder (a temporary one by itself), and prints findings per thousand lines, by
library and by rule, and CPU time beside pyflakes: once without the cache and in one process, once
more with it. ``--findings`` also prints each finding, to be judged by reading; ``--more`` takes
further packages.

Its numbers decide whether a rule may stay as it is: a finding that is not true where it stands
costs a reader more than a missed one. Nothing here is a dependency of the package.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

LIBRARIES = {
    "blackjax": "blackjax",
    "chex": "chex",
    "diffrax": "diffrax",
    "distrax": "distrax",
    "dm-haiku": "haiku",
    "equinox": "equinox",
    "evosax": "evosax",
    "flax": "flax",
    "flowjax": "flowjax",
    "jaxlie": "jaxlie",
    "jaxopt": "jaxopt",
    "jraph": "jraph",
    "lineax": "lineax",
    "mctx": "mctx",
    "numpyro": "numpyro",
    "optax": "optax",
    "optimistix": "optimistix",
    "rlax": "rlax",
    "tinygp": "tinygp",
}
#: More that `docs/explanation/linter-on-libraries.md` judges, for findings and not for time.
MORE = {
    **{name: name for name in
       ("brax", "gpjax", "jax", "jaxtyping", "netket", "pennylane", "penzai", "scico", "bayex",
        "coix", "coreax", "dynamax", "exojax", "gymnax", "jaxley", "jaxwt", "jumanji", "matfree",
        "oryx", "pgx", "probdiffeq", "quadax", "s2fft", "sbijax", "torax")},
    "dm_pix": "dm_pix", "e3nn-jax": "e3nn_jax", "orbax-checkpoint": "orbax",
    "jax-cosmo": "jax_cosmo", "jax-md": "jax_md", "kfac-jax": "kfac_jax", "mujoco-mjx": "mujoco",
    "neural-tangents": "neural_tangents", "ott-jax": "ott",
}  # fmt: skip
ROOT = Path(__file__).parents[1]


def install(folder: Path, libraries: dict[str, str]) -> None:
    """Install the libraries and pyflakes into a folder that has none of them yet."""
    if (folder / "pyflakes").exists():
        return
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*pip, "pyflakes", *libraries], check=True)


def seconds(command: list[str], folder: Path) -> float:
    """Run a command in a folder; return the CPU time that it and its children took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    paths = os.pathsep.join([str(ROOT), str(folder)])
    environment = os.environ | {"PYTHONPATH": paths, "FNARRAY_CACHE_DIR": str(folder / ".cache")}
    subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lines_of(folder: Path) -> int:
    """Count the lines of the Python files below a folder."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def report(folder: Path, libraries: dict[str, str], *, findings: bool) -> None:
    """Print what is found in the libraries of a folder, and how long it took."""
    modules = [module for module in libraries.values() if (folder / module).is_dir()]
    out = folder / "findings.json"
    given = ["fnarray", "lint", "--isolated", "--format", "json", "-o", str(out), *modules]
    flakes = min(seconds(["pyflakes", *modules], folder) for _ in range(3))
    alone = min(seconds([*given, "--no-cache", "--jobs", "1"], folder) for _ in range(3))
    first = seconds(given, folder)
    second = min(seconds(given, folder) for _ in range(3))
    rows = json.loads(out.read_text(encoding="utf-8"))
    lines = {module: lines_of(folder / module) for module in modules}
    by_module = Counter(row["file"].partition("/")[0] for row in rows)
    if findings:
        for row in rows:
            print(f"{row['file']}:{row['line']}: {row['code']} {row['message']}")
    print(f"{'library':12} {'lines':>8} {'findings':>9} {'a thousand lines':>17}")
    for module in modules:
        n, found = lines[module], by_module[module]
        print(f"{module:12} {n:8} {found:9} {1000 * found / n:17.2f}")
    total, found = sum(lines.values()), len(rows)
    print(f"{'all':12} {total:8} {found:9} {1000 * found / total:17.2f}\n")
    for (code, name), n in Counter((row["code"], row["name"]) for row in rows).most_common():
        print(f"{n:5}  {code}  {name}")
    print(f"\n{'':24} {'CPU s':>7} {'lines a s':>10} {'pyflakes':>9}")
    for label, took in (
        ("pyflakes", flakes), ("one process, no cache", alone), ("all cores, empty cache", first),
        ("the second run", second),
    ):  # fmt: skip
        print(f"{label:24} {took:7.2f} {total / took:10.0f} {took / flakes:8.2f}x")


def main() -> None:
    """Install, lint, print."""
    parser = argparse.ArgumentParser(description="Lint JAX's libraries.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--findings", action="store_true", help="print each of them")
    parser.add_argument("--more", action="store_true", help="lint further packages too")
    args = parser.parse_args()
    libraries = LIBRARIES | MORE if args.more else LIBRARIES
    if args.folder is not None:
        args.folder.mkdir(parents=True, exist_ok=True)
        install(args.folder, libraries)
        report(args.folder.resolve(), libraries, findings=args.findings)
        return
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder), libraries)
        report(Path(folder).resolve(), libraries, findings=args.findings)


if __name__ == "__main__":
    main()
