"""The miniature works: it is the page that explains the project, and it runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "docs/explanation/miniature.py"


@pytest.fixture(scope="module")
def mini():
    """The page, as a module."""
    spec = importlib.util.spec_from_file_location("miniature", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["miniature"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["miniature"]


@pytest.fixture
def problem(mini):
    """Parameters and data of its main job."""
    rng = np.random.default_rng(1)
    w, b, v = rng.normal(size=(1, mini.HIDDEN)), *rng.normal(size=(2, mini.HIDDEN))
    return w, b, v, rng.normal(size=(5, 1)), rng.normal(size=5)


@pytest.mark.parametrize(
    ("plain", "steps", "error"), [("0", 2000, 1e-3), ("1", 100, 0.1)], ids=["compiled", "plain"]
)
def test_it_trains_in_a_process_of_its_own(plain, steps, error) -> None:
    """``main`` fits its curve: by machine code, and by the emitted Python as it stands."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": plain}
    code = f"import miniature; assert miniature.main({steps}) < {error}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PATH.parent, env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


def test_compiled_is_eager(mini, problem) -> None:
    """Emitted loops compute what NumPy computes."""
    for found, expected in zip(mini.jit(mini.step)(*problem), mini.step(*problem), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_vmap_of_grad_is_a_loop(mini, problem) -> None:
    """One gradient for each example, compiled, equals the gradients one by one."""
    *params, x, y = problem
    slopes = mini.grad(mini.loss, argnums=(0, 1, 2))
    each = mini.jit(mini.vmap(slopes, (False, False, False, True, True)))
    found = each(*params, x[:, None, :], y[:, None])
    for i in range(len(x)):
        for row, expected in zip(found, slopes(*params, x[[i]], y[[i]]), strict=True):
            np.testing.assert_allclose(row[i], expected, rtol=1e-12)


def test_every_partial_agrees_with_differences(mini) -> None:
    """First and second derivatives of a function of all operations."""

    def fun(x):
        return mini.log(mini.exp(x * x) + 1.0) / (2.0 - mini.tanh(x)) - 3.0 / x

    def slope(x):
        return mini.grad(fun)(x)[0]

    for function in (fun, slope):
        differences = (function(0.7 + 1e-5) - function(0.7 - 1e-5)) / 2e-5
        np.testing.assert_allclose(mini.grad(function)(0.7)[0], differences, rtol=1e-8)
        np.testing.assert_allclose(mini.jit(mini.grad(function))(0.7), differences, rtol=1e-8)


def test_python_branches_on_values_that_are_known(mini) -> None:
    """Outside of a program ``if`` works under a derivative; inside, it is an error that says so."""

    def folded(x):
        return x if x > 0.0 else 2.0 * -x

    assert mini.grad(folded)(3.0) == (1.0,)
    assert mini.grad(folded)(-3.0) == (-2.0,)
    with pytest.raises(TypeError, match="no value here"):
        mini.jit(folded)(1.0)


SEEN = [1.0]
rate = 0.1


def appends(x):
    SEEN.append(x)
    return x


def stores(x):
    x[0] = 1.0
    return x


def rebinds(x):
    global rate
    rate = x
    return x


def reads(x):
    return rate * x


def local(x):
    parts = []
    parts.append(x)
    return parts[0]


@pytest.mark.parametrize("fun", [appends, stores, rebinds, reads], ids=lambda f: f.__name__)
def test_impure_functions_are_refused(mini, fun) -> None:
    """Each kind of effect is named with its line, by every transform."""
    for transform in (mini.jit, mini.grad):
        with pytest.raises(mini.ImpureError, match=rf"{fun.__name__} is not pure:\n  line \d+: "):
            transform(fun)


def test_local_state_is_free(mini) -> None:
    """What a call makes, it may change."""
    assert mini.jit(local)(2.0) == 2.0
