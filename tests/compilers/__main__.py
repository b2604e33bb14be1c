"""``python -m tests.compilers [--every N]``: do both compilers give the same bits?

Every kernel of the corpus of `tests.replay` is compiled by Numba and by the native compiler, and
run on the same arguments. Prints the kernels that the native one left to Numba, with its reasons;
exit status 1 where results differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

from fnarray.config import config

from .compare import compare


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.compilers", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="compare each N-th program only")
    parser.add_argument("--show", type=int, default=3, help="differences to print in full")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        config.update("cache_dir", cache)
        report = compare(args.every)
    for text in report.differences[: args.show]:
        print(text)
    kernels, left = len(report.kernels), len(report.fallbacks)
    print(f"{kernels} kernels, {len(report.differences)} differences")
    print(f"{len(report.reordered)} with sums in another order")
    print(f"{left} left to Numba ({100 * left / max(kernels, 1):.1f} %)")
    for reason, count in report.reasons().most_common():
        print(f"  {count} {reason}")
    return int(bool(report.differences))


if __name__ == "__main__":
    sys.exit(main())
