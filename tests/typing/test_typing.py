"""What is declared for type checkers and editors is what runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import jedi
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import errors
from fnarray.core.array import Array
from fnarray.random import key

from . import stub

HERE = Path(__file__).parent
SURFACES = """
fnarray fnarray.numpy fnarray.numpy.fft fnarray.numpy.linalg fnarray.lax fnarray.lax.linalg
fnarray.nn fnarray.random fnarray.scipy fnarray.scipy.special fnarray.scipy.linalg fnarray.tree
fnarray.tree_util fnarray.sharding fnarray.extend fnarray.purity fnarray.experimental
""".split()  # noqa: SIM905 - a table of words


def test_the_stubs_are_what_there_is() -> None:
    """Each operator, method and property of arrays, each name of a surface, and no other."""
    for path, text in stub.stubs().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python -m tests.typing.stub"


def test_arrays_answer_to_every_name_of_the_stub() -> None:
    """Nothing is declared that an array has not."""
    x = jnp.ones((2, 2))
    for line in stub.stub().split("class Installed")[1].splitlines():
        if line.startswith("    def "):
            assert hasattr(x, line.split()[1].split("(")[0]), line


@pytest.mark.parametrize("surface", SURFACES)
def test_completion_lists_every_public_name(surface) -> None:
    """``dir`` of a surface has each name that it says is public."""
    module = importlib.import_module(surface)
    assert set(getattr(module, "__all__", ())) <= set(dir(module))
    assert all(hasattr(module, name) for name in getattr(module, "__all__", ()))


def test_completion_of_values() -> None:
    """``dir`` of arrays, keys and compiled functions lists what they have."""
    assert {"at", "sum", "reshape", "T", "block_until_ready"} <= set(dir(jnp.ones(3)))
    assert {"at", "reshape", "shape"} <= set(dir(key(0)))
    assert {"lower", "trace", "eval_shape", "clear_cache"} <= set(dir(fnarray.jit(jnp.sin)))


@pytest.mark.parametrize("transform", [fnarray.jit, fnarray.grad, fnarray.vmap])
def test_completion_of_what_is_traced(transform) -> None:
    """``dir`` of a tracer, in a debugger, lists what arrays have, and nothing that it keeps."""
    seen: list[set[str]] = []

    def f(x):
        seen.append(set(dir(x)))
        return x * 1.0

    with fnarray.effects("off"):
        transform(f)(1.0 if transform is fnarray.grad else jnp.ones(3))
    assert {"at", "sum", "shape", "T", "aval"} <= seen[0]
    kept = {"frame", "origin", "where_from", "atom", "primal", "tangent", "batch"}
    assert not kept & seen[0]


@pytest.mark.parametrize(
    "call",
    ["f(x)", "g(x)", "pair(x)[0]", "smooth(x)", "Model().step(x)", "fa.vmap(f)(x)"],
)
def test_completion_after_calls(call) -> None:
    """jedi, IPython's completer, knows what transformed functions return, annotated or not."""
    code = f"""
import fnarray as fa
import fnarray.numpy as jnp

@fa.jit
def f(x):
    return jnp.sin(x)

@fa.jit
def g(x: fa.Array) -> fa.Array:
    return x

@fa.jit
def pair(x: fa.Array) -> tuple[fa.Array, fa.Array]:
    return x, x

@fa.custom_jvp
def smooth(x: fa.Array) -> fa.Array:
    return x

class Model:
    @fa.jit
    def step(self, x: fa.Array) -> fa.Array:
        return x

x = jnp.ones(3)
{call}."""
    names = {found.name for found in jedi.Script(code).complete()}
    assert {"at", "reshape", "sum", "T"} <= names


def test_accepted_uses_run() -> None:
    """The file of uses that checkers accept is a program: each value has the type it says."""
    from . import accepted

    path = HERE / "accepted.py"
    assert path.read_text(encoding="utf-8").count("\nassert_type(") >= 140
    assert isinstance(accepted.x, Array)


def test_lambdas_run() -> None:
    """So are the files of lambdas: those whose types are known, and those to which none objects."""
    from . import inferred, lambdas

    assert [*map(jnp.shape, lambdas.programs)] == [(), (3,), (), (1, 3), (3,)]
    assert inferred.stepped["w"].tolist() == pytest.approx([0.9] * 3)


def test_notebooks_show_arrays_and_graphs() -> None:
    """As HTML, in which what is a sign of HTML's is escaped; graphs say which line is whose."""
    shown = jnp.ones((2, 2))._repr_html_()
    assert "float32[2,2], 16 bytes" in shown
    assert "[1. 1.]" in shown
    assert "key&lt;fry>[] over" in key(3)._repr_html_()
    graph = fnarray.make_jaxpr(lambda x: jnp.where(x < 1, x, 0))(1.0)
    shown = graph._repr_html_()
    assert "lt" in shown
    assert "x &lt; 1" in shown
    assert "<1" not in shown
    assert "test_typing.py" in shown


def test_notebooks_show_errors() -> None:
    """One that was caught is shown with the user's line marked."""
    with pytest.raises(errors.ShapeError) as caught:
        jnp.ones((3, 4)) @ jnp.ones((3, 4))
    shown = caught.value._repr_html_()
    assert re.search(r"<mark>----&gt; +\d+ .*jnp\.ones\(\(3, 4\)\) @", shown)
    assert "fnarray.errors.ShapeError: " in shown


def test_notebooks_show_stages() -> None:
    """Each says what it is, with its signature, and folds away graph, plan and source."""
    traced = fnarray.jit(lambda x: jnp.where(x < 1, x, 0)).trace(jnp.ones(3))
    lowered = traced.lower()
    for stage, said in ((traced, "traced"), (lowered, "lowered"), (lowered.compile(), "compiled")):
        shown = stage._repr_html_()
        assert f"(float32[3]) -&gt; float32[3]</code></b>, {said}<details>" in shown
        assert "<summary>graph</summary>" in shown
        assert ("<summary>source</summary>" in shown) == (said != "traced")
        assert "<1" not in shown.replace(" ", "")


def test_ipython_shows_errors_by_the_users_lines() -> None:
    """Frames of the user's alone, with the line at fault marked, and the whole message."""

    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        fnarray.jit(f)(1.0)
    shown = caught.value._render_traceback_()
    marked = [line.split(maxsplit=2)[2] for line in shown if line.startswith("---->")]
    assert marked[0] == "fnarray.jit(f)(1.0)"
    assert marked[-1] == "if x > 0:"
    assert len(marked) == 2
    assert "lax.cond" in shown[-1]
