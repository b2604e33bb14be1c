"""Print what of JAX is missing: public names, names that libraries fetch, programs that fail.

``python tests/clients/gaps.py [--programs] [--names FILE] [--libraries FILE]``. Names of JAX's
modules are read from the JAX that is installed, or from a file of ``module: name name ...`` lines;
what libraries fetch from a file of ``name:count`` lines; programs run where their libraries are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

MODULES = """
    jax jax.numpy jax.numpy.linalg jax.numpy.fft jax.lax jax.lax.linalg jax.random jax.nn
    jax.nn.initializers jax.scipy.special jax.scipy.stats jax.scipy.linalg jax.scipy.signal
    jax.scipy.ndimage jax.scipy.optimize jax.tree jax.tree_util jax.flatten_util jax.ops jax.debug
    jax.dtypes jax.custom_derivatives jax.custom_batching jax.errors jax.sharding jax.dlpack
    jax.test_util jax.typing jax.stages jax.export jax.experimental jax.core jax.extend.core
    jax.extend.linear_util jax.extend.source_info_util jax.interpreters.ad jax.interpreters.batching
    jax.interpreters.mlir jax.interpreters.partial_eval jax.interpreters.xla jax.api_util
"""

#: Reads names in a process of its own, of the real JAX or of what stands in for it.
ASK = """
import importlib, json, sys
if sys.argv[1] == "fnarray":
    import fnarray.as_jax
found = {}
for module, names in json.load(sys.stdin).items():
    try:
        there = importlib.import_module(module)
    except ImportError:
        found[module] = None
        continue
    if names is None:
        names = getattr(there, "__all__", None) or [n for n in dir(there) if n[:1] != "_"]
        names = [n for n in names if not hasattr(getattr(there, n, None), "__spec__")]
        names = [n for n in names if n not in ("annotations", "Any", "TYPE_CHECKING")]
        found[module] = sorted(names)
        continue
    found[module] = []
    for name in names:
        if hasattr(there, name):
            continue
        try:
            importlib.import_module(f"{module}.{name}")
        except ImportError:
            found[module].append(name)
print(json.dumps(found))
"""


def ask(under: str, modules: dict[str, list[str] | None]) -> dict[str, list[str] | None]:
    """Return the names of modules (None asks for them), or of those given the missing ones."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASK, under],
        input=json.dumps(modules), capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def listed(path: Path) -> dict[str, list[str] | None]:
    """Read a file of lines ``module: name name ...``, comments left out."""
    lines = [x for x in path.read_text().splitlines() if ":" in x and not x.startswith("#")]
    pairs = [x.partition(":") for x in lines]
    return {m.strip(): names.split() for m, _, names in pairs if " " not in m.strip()}


def fetched(path: Path) -> dict[str, list[str] | None]:
    """Read a file of lines ``name:count``, by module."""
    found: dict[str, list[str] | None] = {}
    for line in path.read_text().splitlines():
        if line.startswith("#") or ":" not in line:
            continue
        module, _, name = line.partition(":")[0].rpartition(".")
        known = found.setdefault(module, [])
        assert known is not None
        known.append(name)
    return found


def report(title: str, asked: dict[str, list[str] | None]) -> int:
    """Print the names that are missing; return how many."""
    missing = ask("fnarray", asked)
    total = sum(len(names or ()) for names in asked.values())
    gone = 0
    lines = []
    for module, names in missing.items():
        lost = asked[module] or [] if names is None else names
        gone += len(lost)
        if lost:
            lines.append(f"  {module}: {'no module' if names is None else ' '.join(lost)}")
    print(f"{title}: {total - gone} of {total}")
    print(*lines, sep="\n")
    return gone


def programs() -> int:
    """Run the programs; print those that fail or differ, and return how many."""
    from tests.clients.processes import differences, results
    from tests.clients.test_programs import PROGRAMS

    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for program in PROGRAMS:
            try:
                both = [results(program, Path(folder), under) for under in ("fnarray", "jax")]
                lost = differences(*both, rtol=1e-4, atol=1e-4)
            except RuntimeError as error:
                lost = [str(error).strip().splitlines()[-1]]
            if lost:
                bad.append(f"  {program.stem}: {'; '.join(lost)}")
    print(f"programs: {len(PROGRAMS) - len(bad)} of {len(PROGRAMS)}")
    print(*bad, sep="\n")
    return len(bad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", action="store_true", help="run the client programs too")
    parser.add_argument("--names", type=Path, help="public names, in place of the installed JAX's")
    parser.add_argument("--libraries", type=Path, help="names that libraries fetch")
    args = parser.parse_args()
    public = listed(args.names) if args.names else ask("jax", dict.fromkeys(MODULES.split()))
    report("public names", {m: names for m, names in public.items() if names is not None})
    if args.libraries:
        report("names that libraries fetch", fetched(args.libraries))
    if args.programs:
        programs()


if __name__ == "__main__":
    main()
