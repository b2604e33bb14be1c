"""Every public name of JAX's is there, or says why it is not."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import fnarray

LINES = Path(__file__).with_name("names.txt").read_text(encoding="utf-8").splitlines()
NAMES = {
    module: names.split()
    for module, _, names in (line.partition(": ") for line in LINES)
    if names and not module.startswith("#")
}
#: What is not there and does not say why yet; whoever adds one takes it off. References to arrays
#: and exported programs are made elsewhere.
OPEN = {
    "jax": "Ref empty_ref free_ref freeze new_ref",
    "jax.debug": ("DebugEffect OrderedDebugEffect"),
    "jax.custom_derivatives": "remat_opt_p",
    "jax.Array (instance)": "device_buffer device_buffers format traceback",
}


def missing(module):
    """Return names of a module that are not there."""
    try:
        home = importlib.import_module(module.replace("jax", "fnarray", 1))
    except ModuleNotFoundError:
        home = fnarray.numpy.ones((2, 2))
    return {name for name in NAMES[module] if not hasattr(home, name)}


def reasoned(module):
    """Return names of a module that say why they are not there."""
    home = importlib.import_module(module.replace("jax", "fnarray", 1))
    table = getattr(home, "_MISSING", {})
    return {name for names in table.values() for name in names.split()}


@pytest.mark.parametrize("module", [m for m in NAMES if m != "jax.export"])
def test_names_are_there_or_say_why_not(module):
    """What is not there is known, and most of it says why."""
    lacking = missing(module)
    if "instance" not in module:
        for name in reasoned(module):
            home = importlib.import_module(module.replace("jax", "fnarray", 1))
            with pytest.raises(AttributeError, match=f"{name}': .*"):
                getattr(home, name)
        lacking -= reasoned(module)
    assert lacking <= set(OPEN.get(module, "").split())
