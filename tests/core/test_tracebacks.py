"""config.traceback_filtering: an error shows the user's lines."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
import sys
import traceback

import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.config import scoped
from fnarray.core.source import user_source

X = jnp.arange(3.0)


def wrong(x):
    """Fail, as a user's line does."""
    return x + jnp.ones(4)


def fails(x):
    """Fail, by an error of one's own with a cause."""
    try:
        wrong(x)
    except ValueError as error:
        raise RuntimeError("mine") from error


@fa.custom_jvp
def custom(x):
    """Have a rule that fails."""
    return x


custom.defjvp(lambda primals, tangents: (wrong(*primals), *tangents))

CALLS = {
    "operator": lambda: X + jnp.ones(4),
    "function": lambda: jnp.dot(X, jnp.ones(4)),
    "method": lambda: X.reshape(2, 2),
    "index": lambda: X["a"],
    "update": lambda: X.at[0].set(X),
    "random": lambda: fa.random.normal(3),
    "tree": lambda: fa.tree.map(lambda a, b: a, [1], [2, 3]),
    "jit": lambda: fa.jit(wrong)(X),
    "lower": lambda: fa.jit(wrong).lower(X),
    "eval_shape": lambda: fa.eval_shape(wrong, X),
    "jaxpr": lambda: fa.make_jaxpr(wrong)(X),
    "grad": lambda: fa.grad(lambda x: wrong(x).sum())(X),
    "vjp": lambda: fa.vjp(wrong, X),
    "jvp": lambda: fa.jvp(wrong, (X,), (X,)),
    "hessian": lambda: fa.jit(fa.hessian(lambda x: wrong(x).sum()))(X),
    "vmap": lambda: fa.vmap(wrong)(jnp.ones((2, 3))),
    "axes": lambda: fa.vmap(wrong, in_axes=3)(X),
    "scan": lambda: lax.scan(lambda c, x: (wrong(c), x), X, X),
    "while": lambda: lax.while_loop(lambda x: True, wrong, X),
    "cond": lambda: lax.cond(True, wrong, wrong, X),
    "checkpoint": lambda: fa.grad(fa.checkpoint(lambda x: wrong(x).sum()))(X),
    "custom": lambda: fa.grad(lambda x: custom(x).sum())(X),
    "nested": lambda: fa.jit(fa.vmap(lambda x: lax.fori_loop(0, 3, lambda _, x: fails(x), x)))(
        jnp.ones((2, 3))
    ),
}


def _raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def _files(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def _is_ours(file):
    return "/fnarray/" in file.replace(chr(92), "/").replace(fa.__file__, "/fnarray/")


@pytest.mark.parametrize("name", CALLS)
def test_the_users_lines_are_left(name):
    """Every frame is of this file; the same error with all of them says the same."""
    with scoped("traceback_filtering", "off"):
        all_frames = _raised(CALLS[name])
    with scoped("traceback_filtering", "auto"):
        error = _raised(CALLS[name])
    assert set(_files(error)) == {__file__}
    assert {*_files(all_frames)} > {__file__}
    assert (type(error), str(error)) == (type(all_frames), str(all_frames))
    assert not hasattr(error, "__notes__")
    own = [f.name for f in traceback.extract_tb(all_frames.__traceback__) if f.filename == __file__]
    assert [f.name for f in traceback.extract_tb(error.__traceback__)] == own
    while error := error.__cause__:
        assert set(_files(error)) == {__file__}


def test_modes():
    """Frames are removed and that is said, or marked, or left."""
    with scoped("traceback_filtering", "remove_frames"):
        error = _raised(CALLS["nested"])
    assert ["own frames are left out" in note for note in error.__notes__] == [True]
    with scoped("traceback_filtering", "tracebackhide"):
        error = _raised(CALLS["nested"])
    for frame, _ in traceback.walk_tb(error.__traceback__):
        hidden = frame.f_locals.get("__tracebackhide__", False)
        assert hidden == (frame.f_code.co_filename != __file__)


def test_other_code_between_stays():
    """Frames of libraries between the user's and ours are not ours to hide."""
    with scoped("traceback_filtering", "auto"):
        error = _raised(lambda: fa.vmap(lambda x: copy.deepcopy(Fails(x)))(jnp.ones((2, 3))))
    assert copy.__file__ in _files(error)
    assert {*_files(error)} == {__file__, copy.__file__}


class Fails:
    """What cannot be copied."""

    def __init__(self, x):
        self.x = x

    def __deepcopy__(self, memo):
        return wrong(self.x)


def test_a_script_that_fails_is_short(tmp_path):
    """The default, as a user sees it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import fnarray, fnarray.numpy as jnp\n"
        "def f(x):\n    return jnp.dot(x, jnp.ones(4))\n"
        "fnarray.jit(fnarray.grad(f))(jnp.ones(3))\n"
    )
    default = {k: v for k, v in os.environ.items() if "TRACEBACK_FILTERING" not in k}
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env=default
    )
    lines = [line for line in run.stderr.splitlines() if line.startswith('  File "')]
    assert [line.split('"')[1] for line in lines] == [str(script)] * 2
    assert run.stderr.splitlines()[-1].startswith("fnarray.errors.ShapeError: numpy.dot")


def test_errors_in_a_ring():
    """A chain of errors that leads back to the first is gone through once."""
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first

    def f(x):
        raise first

    with scoped("traceback_filtering", "auto"):
        assert _raised(lambda: fa.tree.map(f, [1])) is first


def test_functools_is_no_users():
    """Where a property that is found once stands between, the line is that of who asked for it."""
    names = {"cached": functools.cached_property, "user_source": user_source}
    text = "class A:\n w = cached(lambda s: user_source())\n"
    exec(compile(text, "<frozen ours>", "exec"), names)
    assert names["A"]().w.file == __file__
