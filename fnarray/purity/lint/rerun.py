"""Run a script as its user would, and write down the effects that end it: for ``lint --verify``.

``python -m fnarray.purity.lint.rerun OUT SCRIPT`` runs user code, and so needs NumPy and Numba;
nothing else in this package does.
"""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from ...errors import EffectError


def main(out: str, script: str) -> None:
    """Run `script`; write ``{"findings": ..., "text": ..., "frames": ...}`` when an effect ends it.

    ``findings`` holds what the analysis found; it is empty when two traces differed. ``frames`` are
    the places the error went through, outermost first.
    """
    sys.argv[:] = [script]
    sys.path.insert(0, str(Path(script).parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except EffectError as error:
        stopped: Any = error
        found: tuple[Any, ...] = stopped.findings
        frames = traceback.extract_tb(error.__traceback__)
        report = {
            "findings": [one.as_dict() for one in found],
            "text": str(error),
            "frames": [(frame.filename, frame.lineno) for frame in frames],
        }
        Path(out).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
