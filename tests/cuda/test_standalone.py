"""Programs as files that `numba-cuda` runs alone: read, and run in Numba's simulator of a GPU."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fnarray
from fnarray.config import scoped
from fnarray.errors import UnsupportedOnTarget

from .programs import EVERY_NAME

#: Small grids of all families: the simulator has a thread of Python for each of a GPU's.
SIMULATED = (
    "chain_is_a_map_of_fours",
    "odd_sizes_are_a_map_of_ones",
    "layer_norm_keeps_sums_in_registers",
    "narrow_sum_is_a_thread_for_each_column",
    "argmax_keeps_the_first",
    "scatter_add_is_atomic",
    "scatter_max_exchanges",
    "scan_of_rows_is_a_thread_for_each",
    "halves_are_bits_in_memory",
    "complex",
    "tridiagonal_systems",
    "factors_are_a_block_for_each_matrix",
    "convolution_of_halves",
    "branch_is_one_thread",
    "small_product_is_a_thread_for_each_element",
)
SOFTMAX = "softmax_is_a_block_for_each_row"
#: What runs the files: a process of its own, whose Numba simulates.
RUN = """
import pickle, sys
import numpy as np
from numba import cuda

np.seterr(all="ignore")
out = {}
for name, (text, arrays) in pickle.load(sys.stdin.buffer).items():
    scope = {}
    exec(compile(text, name, "exec"), scope)
    results = scope["main"](*map(cuda.to_device, arrays))
    out[name] = [x.copy_to_host() for x in results]
sys.stdout.buffer.write(pickle.dumps(out))
"""


def bits(x) -> np.ndarray:
    """Return an array, of halves as their bits."""
    x = np.asarray(x)
    return x.view(np.uint16) if x.dtype.name in ("float16", "bfloat16") else x


def lowered(name: str):
    """Return a program, lowered, with what its main takes."""
    fun, args = EVERY_NAME[name]
    f = fnarray.jit(lambda *xs: fun(*xs))
    with scoped("effects", "off"):
        low = f.lower(*args)
    return f, low, [*low._traced.consts, *fnarray.tree.leaves(args)]


@pytest.mark.parametrize(
    "names", [SIMULATED[::2], pytest.param(SIMULATED[1::2], marks=pytest.mark.slow)], ids=len
)
def test_files_run_in_the_simulator(names: tuple[str, ...]) -> None:
    """Results are the processor's, but for the order of sums and how products are rounded."""
    given, wanted = {}, {}
    for name in names:
        f, low, args = lowered(name)
        given[name] = low.as_text("numba-cuda"), [np.ascontiguousarray(bits(a)) for a in args]
        wanted[name] = [bits(x) for x in fnarray.tree.leaves(f(*EVERY_NAME[name][1]))]
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-W", "ignore", "-c", RUN]
    done = subprocess.run(command, input=pickle.dumps(given), capture_output=True, env=env)
    assert not done.returncode, done.stderr.decode()
    found = pickle.loads(done.stdout)
    for name, want in wanted.items():
        for g, w in zip(found[name], want, strict=True):
            assert (g.shape, g.dtype) == (w.shape or (1,), w.dtype), name
            size = abs(w).max(initial=0) if w.dtype.kind in "fc" else 0
            np.testing.assert_allclose(
                g.reshape(w.shape), w, rtol=1e-5, atol=1e-5 * size, err_msg=name
            )


def test_files_name_nothing_of_ours() -> None:
    """Every name is the file's, NumPy's or Numba's; the user's lines are there; twice the same."""
    for name in (SOFTMAX, "sorted", "product_is_a_block_for_a_tile"):
        _, low, _ = lowered(name)
        text = low.as_text("numba-cuda")
        code = compile(text, name, "exec")
        assert "fnarray_kernels" not in text
        assert not {"sc", "vm", "fk", "u"} & {n for c in functions(code) for n in c.co_names}
        assert "@cuda.jit\ndef kernel0(" in text
        assert text == lowered(name)[1].as_text("numba-cuda")
    assert "    # functions.py:" in lowered("softmax_is_a_block_for_each_row")[1].as_text(
        "numba-cuda"
    )


def functions(code):
    """Yield a code object, and those in it."""
    yield code
    for x in code.co_consts:
        if hasattr(x, "co_names"):
            yield from functions(x)


def test_steps_of_the_drivers_have_no_file() -> None:
    """The error says which step, and where to look."""
    with pytest.raises(UnsupportedOnTarget, match=r"while is no kernel.*as_text\('cuda'\)"):
        lowered("large_while")[1].as_text("numba-cuda")
