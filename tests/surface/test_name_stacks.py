"""Names of scopes are set, reset and put in transforms, as in ``jax.extend.source_info_util``."""

from __future__ import annotations

import jax
import jax.extend.source_info_util
import pytest

import fnarray
import fnarray.extend


def _names(lib):
    util = lib.extend.source_info_util
    seen = []
    note = lambda: seen.append(str(util.current_name_stack()))  # noqa: E731
    with lib.named_scope("before"):
        with util.set_name_stack(util.new_name_stack("hey")):
            note()
            with util.extend_name_stack("you"):
                note()
                with util.reset_name_stack():
                    note()
                with util.set_name_stack(util.new_name_stack("a").extend("b")):
                    note()
                note()
            with util.transform_name_stack("vmap"), util.extend_name_stack("in"):
                note()
            text = lib.make_jaxpr(lib.numpy.sin)(1.0).pretty_print(name_stack=True)
        note()
    return seen, text


@pytest.mark.filterwarnings("ignore")
def test_names_are_jaxs():
    """What is current after each, and what is beside an equation of a graph that begins within."""
    assert _names(fnarray) == _names(jax)
