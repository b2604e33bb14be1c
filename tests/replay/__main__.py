"""``python -m tests.replay [COMMIT]``: what this checkout emits that COMMIT (default HEAD) did not.

Every program of `corpus` is traced and emitted, by the package as it stands and as it was, under
two hash seeds; nothing is compiled. Comments, which name lines of source, do not count. Exit
status 1 where a text differs.
A commit that claims to restructure only must show none; others explain what they change.
"""

from __future__ import annotations

import argparse
import difflib
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bare(text: str) -> str:
    """Return emitted text without comments, and without kernels' names, which hash the compiler."""
    text = re.sub(r"\bk_[0-9a-f]{16}\b", "kernel", text)
    return "\n".join(x for x in text.splitlines() if not x.lstrip().startswith("#"))


def emit(out: Path) -> None:
    """Write the emitted text of every program, by name."""
    from .corpus import texts

    out.write_bytes(pickle.dumps({name: bare(text) for name, text in texts()}))


def emitted_by(package: Path, work: Path, hash_seed: int) -> dict[str, str]:
    """Return the texts that the package in a checkout emits for this checkout's corpus."""
    names = work / f"names-{hash_seed}"
    names.mkdir()
    (names / "fnarray").symlink_to(package / "fnarray")
    (names / "fnarray_kernels").symlink_to(package / "kernels")
    out = names / "texts.pickle"
    paths = [str(names), str(ROOT), str(ROOT / "asv_bench")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-P", "-m", "tests.replay", "--emit", str(out)]
    subprocess.run(command, env=env, check=True, cwd=names)
    return pickle.loads(out.read_bytes())


def compare(commit: str, shown: int) -> int:
    """Compare with a commit and print what differs; return how many texts do."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), commit], check=True)
        try:
            before = emitted_by(tree, Path(work), 1)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        now = emitted_by(ROOT, Path(work), 2)
    differ = [name for name in sorted(before.keys() | now) if before.get(name) != now.get(name)]
    for name in differ[:shown]:
        old, new = (texts.get(name, "").splitlines() for texts in (before, now))
        print(*difflib.unified_diff(old, new, f"{commit}: {name}", name, lineterm=""), sep="\n")
    print(f"{len(now)} programs, {len(differ)} differ from {commit}")
    print(*differ, sep="\n")
    return len(differ)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--show", type=int, default=3, help="differences to print in full")
    parser.add_argument("--emit", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.emit:
        emit(args.emit)
        return 0
    return int(compare(args.commit, args.show) > 0)


if __name__ == "__main__":
    sys.exit(main())
