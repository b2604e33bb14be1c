"""What a report of a fault should say of where it happened."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

from ..runtime.device import devices

__all__ = ["print_environment_info"]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices and the platform; or return them as text."""
    packages = {name: version(name) for name in ("fnarray", "numpy", "numba", "scipy")}
    facts = {
        **packages,
        "python": sys.version.replace("\n", " "),
        "device info": f"{devices()[0].device_kind}, {len(devices())} local devices",
        "platform": platform.uname(),
    }
    text = "\n".join(f"{name}: {fact}" for name, fact in facts.items())
    if return_string:
        return text
    print(text)  # noqa: T201 - what it is for
    return None
