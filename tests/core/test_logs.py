"""Loggers that are imported once there is somebody to hear."""

from __future__ import annotations

import subprocess
import sys

from fnarray.core.logs import Log

QUIET = """
import sys
from fnarray.core.logs import Log
log = Log("fnarray.compile")
log.debug("few want to know")
log.info("what happens")
assert "logging" not in sys.modules
log.warning("entry %s is damaged", "k_1")
import logging
logging.getLogger("fnarray").setLevel(logging.DEBUG)
logging.basicConfig(format="%(name)s %(funcName)s %(levelname)s %(message)s", stream=sys.stdout)
def f():
    log.debug("seen by %d", 1)
    log.log(20, "and %s", "this")
f()
"""


def test_warnings_are_always_heard_and_others_once_logging_is_there():
    """Before, nothing but the last resort listens; after, levels, names and callers are right."""
    done = subprocess.run(
        [sys.executable, "-c", QUIET], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.splitlines() == ["entry k_1 is damaged"]
    lines = ["fnarray.compile f DEBUG seen by 1", "fnarray.compile f INFO and this"]
    assert done.stdout.splitlines() == lines


def test_it_is_the_logger_of_the_name(caplog):
    """Handlers of the standard library's logger get the records."""
    with caplog.at_level("INFO", logger="fnarray.some"):
        Log("fnarray.some").info("%s turns", 3)
        Log("fnarray.some").debug("unheard")
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("fnarray.some", "INFO", "3 turns")
    ]
