"""Nothing goes stale: whatever is changed, the next call sees it, or the first was refused."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.errors import EffectError

from .stale import Row, arrays, containers, names, objects

ROWS: dict[str, Row] = {
    f"{module.__name__.rpartition('.')[2]}: {name}": row
    for module in (arrays, containers, names, objects)
    for name, row in module.ROWS.items()
}
X = jnp.float32(1.5)


def module_of(row: Row, folder, number: int) -> types.ModuleType:
    """Import a row's module, from a file as a user's is."""
    path = folder / f"stale_{number}.py"
    path.write_text(row.source())
    made = types.ModuleType(path.stem)
    made.__file__ = str(path)
    sys.modules[path.stem] = made
    exec(compile(path.read_text(), path, "exec"), made.__dict__)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return where the modules of this file are written."""
    return tmp_path_factory.mktemp("stale")


def result(program):
    """Return what a call gives, or the findings for which it is refused."""
    try:
        return np.asarray(program(X))
    except EffectError as error:
        return [f.code for f in error.findings]


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", ROWS)
def test_a_change_is_seen(name, folder):
    """The new value, or a finding at the first call or the next: never the old value."""
    made = module_of(ROWS[name], folder, list(ROWS).index(name))
    before = result(made.f)
    program = fnarray.jit(made.f)
    first = result(program)
    if isinstance(first, list):
        assert first
        return
    np.testing.assert_allclose(first, before, rtol=1e-6)
    exec(made.CHANGE, made.__dict__)
    after = result(made.f)
    assert not np.array_equal(before, after), "the change changes nothing"
    seen = result(program)
    if isinstance(seen, list):
        assert seen
    else:
        np.testing.assert_allclose(seen, after, rtol=1e-6)


def test_there_are_enough_of_them():
    """The suite covers all kinds of things that can be captured."""
    assert len(ROWS) >= 400
