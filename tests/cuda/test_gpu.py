"""On a GPU: what this folder's other tests hold on the processor; ``pytest -m gpu tests/cuda``."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.compile.cuda.device import gpu
from fnarray.config import scoped

sys.path.append(str(Path(__file__).parents[2] / "asv_bench"))
from tests.replay import corpus

from .compare import close, same
from .programs import EVERY_NAME

pytestmark = pytest.mark.gpu


def differ(f, args) -> str:
    """Run a function on both; say how results differ."""
    where = fnarray.devices("gpu")[0]
    jitted = fnarray.jit(lambda *xs: f(*xs))
    want = fnarray.tree.leaves(jitted(*args))
    got = fnarray.tree.leaves(jitted(*(fnarray.device_put(a, where) for a in args)))
    for w, g in zip(want, got, strict=True):
        w, g = np.asarray(w), np.asarray(g)
        if w.shape != g.shape or w.dtype != g.dtype or not (same(w, g) or close(w, g)):
            return f"{w}\n{g}\n{jitted.lower(*args).as_text('cuda')}"
    return ""


@pytest.mark.parametrize("name", EVERY_NAME)
def test_programs_agree(name: str) -> None:
    """Results are the processor's."""
    f, args = EVERY_NAME[name]
    with scoped("effects", "off"), scoped("cuda_fma", False):
        assert not differ(f, args)


@pytest.mark.parametrize("part", ["operations", "random_programs"])
def test_the_corpus_agrees(part: str) -> None:
    """Cases of all operations in all dtypes, and random programs."""
    wrong: list[str] = []

    def run(f, *args):
        try:
            wrong.append(differ(f, args))
        except (TypeError, ValueError, NotImplementedError, fnarray.errors.FnarrayError) as error:
            if isinstance(error, fnarray.errors.JaxRuntimeError):
                raise
        return ""

    with mock.patch.object(corpus, "text_of", run), scoped("effects", "off"):
        for _ in getattr(corpus, part)():
            pass
    found = [text for text in wrong if text]
    assert wrong
    assert not found, f"{len(found)} of {len(wrong)} differ, the first:\n{found[0]}"


def test_sums_are_the_same_each_time() -> None:
    """Folds of many blocks have one order."""
    x = np.random.default_rng(0).standard_normal(1 << 22, np.float32)
    f = fnarray.jit(jnp.sum)
    there = fnarray.device_put(x, fnarray.devices("gpu")[0])
    assert len({float(f(there)) for _ in range(20)}) == 1


def test_memory_comes_back() -> None:
    """What programs take for a while is given back."""
    f = fnarray.jit(lambda x: jnp.sum(jnp.exp(x - x.max())))
    x = fnarray.device_put(np.ones(1 << 20, np.float32), fnarray.devices("gpu")[0])
    f(x).block_until_ready()
    held = gpu().held
    for _ in range(50):
        f(x)
    assert gpu().held <= held + 64
