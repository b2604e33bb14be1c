"""Methods that arrays have are members of their class too, before any was used."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import fnarray as fa
late = {name for name, x in vars(fa.Array).items() if type(x).__name__ == "_Late"}
assert fa.Array.astype.__name__ == "astype", fa.Array.astype
assert not [name for name, x in vars(fa.Array).items() if type(x).__name__ == "_Late"]
from fnarray.numpy._methods import array_methods
print(sorted(late ^ set(array_methods())))
"""


def test_every_late_member():
    """What stands for members not installed yet is what is installed, and all of it."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
