"""What a process imports, by list and by count: a start is no longer than what it loads.

Nothing is timed here. A module that turns up in vain is found by ``python -X importtime``; one that
is needed raises the number below, with the reason in the commit.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: Never on the way to a result: another compiler, what reads metadata or the network, SciPy,
#: OpenSSL. Of llvmlite the library is loaded, and none of its modules.
NEVER = """
    numba scipy jax opt_einsum rich cloudpickle threadpoolctl importlib.metadata email socket select
    ssl http urllib.request platformdirs asyncio subprocess multiprocessing argparse decimal
    fractions sysconfig llvmlite importlib.resources tempfile zipfile lzma bz2 random hashlib
"""
#: Not for a program that an earlier process left: LLVM, tracing's checks, operations' rules, and
#: what those import.
WARM = """
    json fnarray.purity.live fnarray.compile.pipeline fnarray.compile.schedule
    fnarray.compile.cpu.native.kernel fnarray.transforms fnarray.numpy._ufuncs
    fnarray.numpy._methods logging
"""
IMPORT = "import fnarray.numpy as jnp"
ARRAY = f"{IMPORT}; x = jnp.ones(3)"
CALL = """
import fnarray, fnarray.numpy as jnp
@fnarray.jit
def f(x):
    return jnp.where(x > 0, jnp.tanh(x), 0) + 1
def main():
    return f(jnp.ones(3)).block_until_ready()
"""


@pytest.fixture
def imported(tmp_path):
    """Return what runs a program in a new process: the modules it had beyond NumPy's."""

    def imported(code):
        (tmp_path / "program.py").write_text(code)
        main = (
            "import sys, numpy; before = set(sys.modules); import program\n"
            "getattr(program, 'main', int)()\n"
            "found = sorted(set(sys.modules) - before); import json; print(json.dumps(found))"
        )
        env = {"PYTHONPATH": str(tmp_path), "FNARRAY_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", main], capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return imported


def ours(modules):
    return [name for name in modules if name.split(".")[0] in ("fnarray", "fnarray_kernels")]


def met(modules, words):
    return [m for m in modules if any(f"{m}.".startswith(f"{w}.") for w in words.split())]


def test_import(imported):
    """What every program needs: tables of names, arrays, `jit`, what finds a program on disk.

    No operation, transform or compiler is behind it.
    """
    modules = imported(IMPORT)
    assert not met(modules, NEVER + WARM + " fnarray.compile.emit fnarray.lax fnarray.api.stages")
    assert not met(modules, "fnarray.ops.elementwise fnarray.control.scan fnarray.control.cond")
    assert len(ours(modules)) <= 80, ours(modules)


def test_the_root_imports_nothing(imported):
    """`import fnarray` is a table of names: linters pass through it."""
    modules = imported("import fnarray")
    assert not met(modules, NEVER + WARM + " optree ml_dtypes fnarray.ops fnarray.core.array")
    assert len(ours(modules)) <= 10, ours(modules)


def test_platforms_named_late(imported):
    """Devices, which nothing is loaded of otherwise, are there once a program names platforms."""
    late = "import fnarray; fnarray.config.update('jax_platforms', 'cpu')"
    assert "fnarray.runtime.device" in imported(f"{IMPORT}\n{late}")


def test_completion_imports_nothing(imported):
    """Python's completer and IPython's, jedi, list what there is without importing what it is.

    jedi asks as in `listed`; for what stands before a dot it asks from elsewhere, and is answered.
    """
    modules = imported("""
import rlcompleter
import fnarray, fnarray.numpy
def listed(**spaces):
    jedi = dict(spaces, __name__="jedi.inference.compiled.access")
    exec("def ask(module, name): return getattr(module, name, None)", jedi)
    def api_type(module, name):
        return jedi["ask"](module, name)
    return jedi["ask"], api_type
def main():
    found = rlcompleter.Completer(globals())
    found.complete("fnarray.", 0)
    assert {"fnarray.jit", "fnarray.numpy", "fnarray.lax"} <= {w.strip("(") for w in found.matches}
    ask, api_type = listed()
    assert api_type(fnarray, "jit") is api_type(fnarray.numpy, "sum") is None
    assert api_type(fnarray, "random") is None
    lax = ask(fnarray, "lax")
    assert {"add", "add_p", "scan", "scan_p"} <= set(dir(lax))
    assert api_type(lax, "scan") is api_type(lax, "scan_p") is None
""")
    unused = "fnarray.api.gradients fnarray.control.scan fnarray.ops.elementwise fnarray.random"
    assert not met(modules, unused)


def test_dictionaries_hold_all_names():
    """`vars(fnarray.numpy)` is whole: SymPy's `lambdify` and `mock.patch.dict` read it."""
    code = "import fnarray.numpy as m; print(sorted({*m.__all__} - vars(m).keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_array(imported):
    """To make an array takes the few operations that make arrays, beside the import."""
    modules = imported(ARRAY)
    assert not met(modules, NEVER + WARM + " fnarray.compile.emit fnarray.control.scan")
    assert len(ours(modules)) <= 89, ours(modules)


def test_a_first_call_cold_and_warm(imported):
    """A call that compiles imports no other compiler; one that finds its program, none at all."""
    cold = imported(CALL)
    assert not met(cold, NEVER)
    assert len(ours(cold)) <= 248, ours(cold)
    warm = imported(CALL)
    assert not met(warm, NEVER + WARM)
    # Between the import and the first result nothing is imported: that call takes under 10 ms.
    late = set(ours(warm)) - set(ours(imported(ARRAY)))
    assert not late
    assert len(ours(warm)) <= 91, ours(warm)


def test_a_product_that_is_found(imported):
    """A program whose driver multiplies matrices is found without what plans and writes one.

    Where the processor has no AVX-512 the product is BLAS's, which threadpoolctl keeps to a thread.
    """
    code = CALL.replace("jnp.where(x > 0, jnp.tanh(x), 0) + 1", "jnp.tanh(jnp.matmul(x, x))")
    code = code.replace("ones(3)", "ones((128, 128))")
    assert met(imported(code), "fnarray.compile.cpu.blas fnarray.compile.schedule")
    warm = imported(code)
    assert "fnarray.compile.cpu.blas" in warm
    never = NEVER.replace("threadpoolctl", "")
    assert not met(warm, never + WARM + " fnarray.compile.emit fnarray.compile.simplify")
