"""Words of keys, which loops take: LLVM is not told how they were made."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import config, lax, random
from fnarray import numpy as jnp
from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.cpu.native import kernel

pytestmark = pytest.mark.cpu

KEY = """
def k(x, out, w, n):
    a = x[0]
    b = sc.to_uint32(w[1])
    {around}
        for i in range({turns}):
            out[i] = fk.threefry.mixed(a, b, a, sc.to_uint32(i))
"""


def words(text: str) -> int:
    """Return how many words a kernel hides."""
    src = KernelSource(text.lstrip(), ("u32[1]", "u32[1]", "u64[1]", "i64"))
    return kernel.lower("k", src, None).count('call i32 asm "", "=r,0"')


def test_words_are_hidden_between_loops():
    """Those that loops of many turns take are; elements of loops, and what few turns take, not."""
    assert words(KEY.format(around="if n > 0:", turns="n")) == 2
    inside = KEY.replace("    a = x[0]\n", "").replace("a, b, a", "x[0], b, x[0]")
    assert words(inside.format(around="if n > 0:", turns="n")) == 1
    again = KEY.replace("    a = x[0]\n", "").replace("for i", "a = x[0]\n        for i")
    assert words(again.format(around="while n > 0:", turns="n")) == 2
    assert words(again.format(around="while n > 0:", turns="3")) == 1


@pytest.mark.parametrize("compiler", ["native", "numba"])
@pytest.mark.parametrize("n", [0, 1, 7, 33])
def test_keys_that_loops_make_are_those_of_evaluation(compiler, n, tmp_path):
    """A key that is split in each turn, with what is drawn from its parts."""
    before = config.cache_dir, config.compiler
    config.update("cache_dir", str(tmp_path))
    config.update("compiler", compiler)

    def walk(seed):
        def turn(carry, _):
            key, x = carry
            key, part = random.split(key)
            return (key, x + random.randint(part, (n,), 0, 10)), random.bits(part, (n,))

        return lax.scan(turn, (random.key(seed), jnp.zeros(n, int)), None, length=3)

    try:
        (key, x), bits = fnarray.jit(walk)(5)
    finally:
        config.update("cache_dir", before[0])
        config.update("compiler", before[1])
    one, total = random.key(5), np.zeros(n, int)
    for row in np.asarray(bits):
        one, part = random.split(one)
        total += np.asarray(random.randint(part, (n,), 0, 10))
        np.testing.assert_array_equal(row, random.bits(part, (n,)))
    np.testing.assert_array_equal(x, total)
    np.testing.assert_array_equal(random.key_data(key), random.key_data(one))
