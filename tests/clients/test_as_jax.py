"""Standing in for jax: what is imported, what is refused, JAX's tutorials on extending it."""

from __future__ import annotations

import json

import pytest

from .processes import HERE, differences, results, run

ASK = """
import json, sys
import fnarray.as_jax
import fnarray, importlib.metadata, jax, jax.numpy as jnp, jaxlib
from jax.scipy.stats import norm
said = {}
def ask(code):
    try:
        exec(code, {"jax": jax, "jnp": jnp})
    except Exception as error:
        said[code] = [isinstance(error, ImportError), isinstance(error, AttributeError), str(error)]
    else:
        said[code] = None
for line in sys.argv[1:]:
    ask(line)
import jax.core, fnarray.core
said["facts"] = [
    jnp is fnarray.numpy, jnp.__spec__.name, jax.numpy.__name__, norm is fnarray.scipy.stats.norm,
    jax.core is fnarray.core, jax.grad is fnarray.grad, jax.__version__,
    importlib.metadata.version("jax"), jaxlib.__version__, jax.__version_info__[:2] == (0, 10),
    hasattr(jnp, "nothing_of_that_name"), hasattr(jnp, "__array_namespace_info__"),
    fnarray.config.effects,
]
print(json.dumps(said))
"""


def said(tmp_path, *lines, **environment):
    done = run(["-c", ASK, *lines], tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_modules_are_fnarrays_own(tmp_path):
    """A module that both have is one module; version, and the name of ``jax.numpy``, are JAX's.

    By that name `array_api_compat`, and what asks it, knows whose arrays it was given.
    """
    facts = said(tmp_path, FNARRAY_EFFECTS="warn")["facts"]
    same = [True, "fnarray.numpy", "jax.numpy", True, False, True]
    assert facts == [*same, "0.10.2", "0.10.2", "0.10.2", True, False, True, "warn"]


def test_effects_are_let_pass(tmp_path):
    """Programs for JAX keep what it promised them, unless asked otherwise."""
    assert said(tmp_path)["facts"][-1] == "off"


@pytest.mark.parametrize(
    ("before", "after", "count"), [("", "", 1), ("=8", "", 8), ("", "=3", 3)], ids=str
)
def test_variables_that_a_program_sets(tmp_path, before, after, count):
    """Before it imports jax; of devices, before it asks for them. There is one otherwise."""
    program = f"""
import os, fnarray.as_jax
flags = "--xla_force_host_platform_device_count{before}"
if {bool(before)}:
    os.environ["XLA_FLAGS"] = flags
os.environ["JAX_ENABLE_X64"] = "1"
import jax, jax.numpy as jnp
if {bool(after)}:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count{after}"
print(jax.device_count(), jnp.ones(()).dtype)
"""
    nothing = dict.fromkeys(("FNARRAY_NUM_CPU_DEVICES", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS"), "")
    done = run(["-c", program], tmp_path, **nothing)
    assert (done.stderr, done.stdout) == ("", f"{count} float64\n")


def test_private_modules(tmp_path):
    """What libraries and their tests fetch of them; a private one is the public one it has not."""
    private = [
        "from jax._src.scipy.special import gammaln; assert gammaln is jax.scipy.special.gammaln",
        "import jax._src.numpy.linalg as la; assert la is jnp.linalg",
        (
            "from jax._src.tree_util import prefix_errors as f; assert f(0, [1]) == []; "
            "(e,) = f({'a': [1]}, {'a': 2.0}); assert str(e('x')).startswith("
            "'pytree structure error at x[\\'a\\']: ')"
        ),
        "from jax._src.lax import slicing; assert slicing is jax.lax",
        "from jax._src import mesh; assert mesh.Mesh is jax.sharding.Mesh",
        (
            "from jax._src.numpy.util import promote_dtypes_complex as f; "
            "assert [str(x.dtype) for x in f(1, 2.0)] == ['complex64'] * 2"
        ),
        (
            "from jax._src.numpy.util import ensure_arraylike as f; "
            "assert f('g', 1).shape == () and len(f('g', 1, jnp.ones(2))) == 2"
        ),
        (
            "from jax._src.public_test_util import check_close as f; "
            "f({'a': jnp.ones(3)}, {'a': jnp.ones(3) + 1e-7})"
        ),
    ]
    private += [
        (
            "from jax._src.public_test_util import check_close as f; "
            "f([jnp.ones(3)], [jnp.ones(3) + 1e-4], rtol={'float32': 1e-3})"
        ),
        "with jax.softmax_custom_jvp(False), jax.thread_guard(False): assert jnp.sin(0.0) == 0",
        "assert jax._src.numpy.util.promote_dtypes_inexact(1)[0].dtype == 'float32'",
        "from jax._src.interpreters.batching import is_vmappable as f; assert not f(1.0)",
        "from jax._src.util import safe_map as f; assert f(max, (1, 5), [4, 2]) == [4, 5]",
        (
            "from jax._src import util as u; assert u.split_list([1, 2, 3], [1]) == [[1], [2, 3]]; "
            "cut = u.partition_list([True, False], 'ab'); assert cut == (['b'], ['a']); "
            "assert u.merge_lists([True, False], *cut) == ['a', 'b']; "
            "assert u.unzip2(u.safe_zip([1, 2], 'ab')) == ((1, 2), ('a', 'b')); "
            "assert not jax.lax.sin_p.call_primitive"
        ),
    ]
    private += [
        "from jax.experimental import pjit; assert pjit.pjit is jax.jit",
        (
            "from jax import monitoring as m; heard = []; "
            "f = lambda *a, **k: heard.append((a, k)); "
            "m.register_event_duration_secs_listener(f); m.record_event('no'); "
            "m.record_event_duration_secs('e', 0.5, kind='x'); "
            "m.unregister_event_duration_listener(f); m.record_event_duration_secs('e', 1.0); "
            "assert heard == [(('e', 0.5), {'kind': 'x'})]"
        ),
        (
            "import jax._src.distributed as d; assert d.global_state.process_id == 0; "
            "jax.distributed.initialize(None, 1); assert not jax.distributed.is_initialized()"
        ),
        (
            "from jax.experimental import colocated_python as c; devices = jax.devices(); "
            "assert c.colocated_cpu_devices(devices) == tuple(devices); "
            "assert c.colocated_python(lambda x: x + 1).specialize(devices=devices)(1) == 2"
        ),
        (
            "from jax.experimental import pallas as pl; "
            "from jax.experimental.pallas import mosaic_gpu, tpu, triton; "
            "s = jax.ShapeDtypeStruct((8,), jnp.float32); "
            "f = lambda x, o: o.set(x[...] * pl.num_programs(0), ...); "
            "y = pl.pallas_call(f, s, grid=(2,), interpret=True)(jnp.ones(8)); "
            "assert (y == 2).all()"
        ),
        (
            "from jaxlib._jax import PjitFunction as P; assert isinstance(jax.jit(jnp.sin), P); "
            "assert not isinstance(jnp.sin, P)"
        ),
        (
            "import inspect; from jax._src.api_util import infer_argnums_and_argnames as f; "
            "s = inspect.signature(lambda a, b, /, c, d=1, *e, g=2: 0); "
            "assert f(s, (2, 3), None) == ((2, 3), ('c', 'd')); "
            "assert f(s, None, 'd') == ((3,), ('d',)); "
            "assert f(s, 1, ['g']) == ((1,), ('g',)) and f(s, None, None) == ((), ()); "
            "assert f(s, None, ('g', 'b', 'c')) == ((2,), ('g', 'b', 'c'))"
        ),
        "assert jax.Array.all.__name__ == 'all' and jax.Array.item.__doc__",
        "from jax.experimental.array_serialization import serialization as s; assert s.__doc__",
        (
            "d = jax.devices()[0]; "
            "kinds = [m.kind for m in d.addressable_memories()]; "
            "assert kinds == ['device', 'pinned_host', 'unpinned_host']; "
            "assert d.memory('device') == d.default_memory() and d.client.device_count() == 1; "
            "from jax.extend.backend import get_backend as g; assert type(g()) is type(d.client)"
        ),
        (
            "from jax._src.typing import SupportsDType; from jax._src.pjit import auto_axes; "
            "from jax._src.sharding_impls import NamedSharding, canonicalize_sharding as f; "
            "assert f(jax.typeof(jnp.ones(2)).sharding, 'f') is f(None, 'f') is None"
        ),
    ]
    private += [
        (  # what the libraries of brainpy, e3x, hamux, jaxadi and oryx fetch
            "from jax._src.core import is_constant_dim as f; from jax import export; "
            "assert f(3) and not f(export.symbolic_shape('b')[0]) and not f(2.5)"
        ),
        (
            "from jax._src.core import JaxprEqnContext, CallPrimitive, call_p, closed_call_p; "
            "from jax._src.sharding_impls import UNSPECIFIED, UnspecifiedValue; "
            "assert isinstance(UNSPECIFIED, UnspecifiedValue) and JaxprEqnContext(None, True); "
            "assert jax.jit(jnp.sin, in_shardings=UNSPECIFIED)(0.0) == 0"
        ),
        (  # every operation is one, as folx asks; a class below knows its own
            "from jax.extend.core import CallPrimitive, Primitive; "
            "from jax.interpreters import mlir; "
            "own, (e,) = Primitive('own'), jax.make_jaxpr(jnp.sin)(1.0).eqns; "
            "assert isinstance(e.primitive, Primitive) and isinstance(own, Primitive); "
            "assert not isinstance(e.primitive, CallPrimitive) and not isinstance(3, Primitive); "
            "assert isinstance(CallPrimitive('c'), Primitive); r = lambda ctx, x: [x]; "
            "assert mlir.register_lowering(e.primitive, r) is r and jax.jit(jnp.sin)(0.0) == 0"
        ),
        (
            "from jax._src.interpreters.batching import make_iota, to_elt, BatchTrace; "
            "assert make_iota(3).tolist() == [0, 1, 2] and to_elt(None, None, 5, None) == 5"
        ),
        (
            "from jax._src.numpy.reductions import _reduction_dims as f; x = jnp.ones((2, 3)); "
            "assert f(x, None) == ((0, 1), (0, 1)) and f(x, -1) == ((1,), (1,)); "
            "assert f(x, ('i', 0)) == ((0,), (0, 'i'))"
        ),
        (
            "from jax._src.nn.initializers import _complex_uniform as u, zeros; "
            "from jax._src.nn.initializers import _complex_truncated_normal as t; "
            "k = jax.random.key(0); assert abs(u(k, (9,), 'complex64')).max() < 2 ** 0.5; "
            "assert abs(t(k, 0.5, [9], 'complex64')).max() < 0.5"
        ),
        "import jax._src as s; assert jax._src is s and s.stages.Lowered is jax.stages.Lowered",
        "from jax.experimental import jax2tf; from jax.extend import sharding",
        (
            "from jax.experimental.pallas.ops.tpu.splash_attention import ("
            "splash_attention_kernel, splash_attention_mask)"
        ),
    ]
    fails = [
        "from jax.experimental.jax2tf import convert",
        "from jax._src.util import safe_zip as f; f([1], [2, 3])",
        "from jax._src.public_test_util import check_close as f; f([1.0], [1.1], rtol=1e-3)",
        "from jax._src.numpy.util import check_arraylike as f; f('g', [1])",
        "import jax._src.numpy.nothing",
        "with jax.no_execution(True): jnp.sin(0.0)",
        "jax.distributed.initialize(num_processes=2)",
        "jax.devices()[0].memory('drawer')",
        "from jax.experimental import nothing",
    ]
    found = said(tmp_path, *private, *fails)
    assert [found[line] for line in private] == [None] * len(private)
    texts = [found[line][-1] for line in fails]
    for text, part in zip(
        texts,
        (
            "no jax.experimental.jax2tf.convert: TensorFlow reads what XLA is given",
            "lengths [1, 2]",
            "Not equal to tolerance",
            "list",
            "jax._src.numpy.nothing",
            "no counterpart",
            "num_processes=2",
            "of kind 'drawer'",
            "jax.experimental.nothing",
        ),
        strict=True,
    ):
        assert part in text


MISSING = {
    "jnp.arrange": "jax.numpy.arange",
    "import jax.nump": "jax.numpy",
    "from jax.numpy import lin_space": "jax.numpy.linspace",
    "from jax import vmapp": "jax.vmap",
    "from jax.core import Trcer": "jax.core.Tracer",
    "from jax.errors import ConcretisationTypeError": "jax.errors.ConcretizationTypeError",
    "from jax.experimental.pallas import core_map": None,
    "import jax.experimental.pallas as pl; pl.core_map": None,
    "import jax.compile": None,
    "from jax._src import hijax": None,
    "import jaxlib.mlir": None,
}


def test_missing_names(tmp_path):
    """What is missing raises the error of its kind, with the nearest name and the page."""
    given = ["from jax.interpreters.xla import Backend", "jax.interpreters.xla.Backend"]
    found = said(tmp_path, *MISSING, *given)
    for line in given:  # a name that was left out for a reason says it
        assert "no jax.interpreters.xla.Backend: there is no XLA: fnarray" in found[line][-1]
    for line, nearest in MISSING.items():
        imports, attribute, text = found[line]
        by_import = not line.endswith(("arrange", "pl.core_map"))
        assert (imports, attribute) == (by_import, not by_import), line
        assert text.startswith("fnarray, which stands in for jax, has no jax"), (line, text)
        assert text.endswith("See docs/how-to/run-a-jax-library.md."), (line, text)
        assert nearest is None or f"The nearest name there is {nearest}." in text, (line, text)


def test_asking_whether_a_module_is_there(tmp_path):
    """`find_spec` and ``__import__(..., fromlist=)`` ask; who imports is told which is missing."""
    program = """
import fnarray.as_jax
from importlib.util import find_spec
import jax
for parent in ("jax", "jax.experimental", "jax.numpy", "jax._src"):
    assert find_spec(f"{parent}.nosuch") is None
    module = __import__(parent, fromlist=["nosuch"])
    assert module.__file__ and not hasattr(module, "nosuch")
    for line, name in (
        (f"import {parent}.nosuch", f"{parent}.nosuch"), (f"from {parent} import nosuch", parent)
    ):
        try:
            exec(line)
        except ModuleNotFoundError as error:
            assert (error.name, "has no " in str(error)) == (name, True), (line, error.name)
        else:
            raise AssertionError(line)
"""
    done = run(["-c", program], tmp_path)
    assert done.returncode == 0, done.stderr


def test_refused_beside_the_real_jax(tmp_path):
    """Once jax is imported it is too late: whoever has it keeps it."""
    done = run(["-c", "import jax, fnarray.as_jax"], tmp_path)
    assert "ImportError: fnarray.as_jax: the real jax is imported already" in done.stderr
    assert "python -m fnarray run" in done.stderr


def test_run(tmp_path):
    """A script or a package runs with fnarray as jax, its own arguments and its own folder."""
    program = "import sys, jax, beside\nprint(jax.numpy.__name__, sys.argv[1:], __name__)\n"
    (tmp_path / "beside.py").touch()
    (tmp_path / "script.py").write_text(program)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(program)
    for command in (["script.py"], ["-m", "package"], ["-m", "script"]):
        done = run(["-m", "fnarray", "run", *command, "-x", "3"], tmp_path)
        assert done.stdout == "jax.numpy ['-x', '3'] __main__\n", done.stderr
    assert run(["-m", "fnarray", "run", "none.py"], tmp_path).returncode == 2
    assert run(["-m", "fnarray", "run"], tmp_path).returncode == 2


CHILDREN = """
import atexit, multiprocessing, os, pickle, sys
import jax, jax.numpy as jnp

def double(x):
    return jax.jit(lambda x: 2 * x)(x)

def told(x):
    return float(double(x)), jax.grad.__module__, type(x).__name__

if __name__ == "__main__":
    print(sys.argv, __package__, os.path.isabs(__file__), __spec__)
    os.chdir("/")
    print(open(__file__).readline() == "\\n", pickle.loads(pickle.dumps(double)) is double)
    atexit.register(lambda: pickle.dumps(double))
    for way in ("spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            print(*pool.apply(told, (jnp.float32(3.0),)))
"""


def test_run_children(tmp_path):
    """A script is Python's main module; processes that it starts have fnarray as jax, too."""
    (tmp_path / "script.py").write_text(CHILDREN)
    done = run(["-m", "fnarray", "run", "script.py", "-x"], tmp_path)
    lines = ["['script.py', '-x'] None True None", "True True"]
    lines += ["6.0 fnarray.api.gradients ArrayImpl"] * 2
    assert (done.stderr, done.stdout.splitlines()) == ("", lines)


def test_pytest_plugin(tmp_path):
    """Tests written for jax run with `-p fnarray.as_jax`."""
    (tmp_path / "test_it.py").write_text(
        "import jax\ndef test_it():\n    assert jax.numpy.sin.__module__ == 'fnarray.numpy._math'\n"
    )
    done = run(["-m", "pytest", "-q", "-p", "no:randomly", "-p", "fnarray.as_jax"], tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


STAGED = """
import fnarray.as_jax
import jax, jax.numpy as jnp, numpy as np

def traced(x):
    try:
        return [bool(x)] * 0
    except jax.errors.TracerBoolConversionError:
        return ["traced"]

def ask(x):
    said.extend(traced(jnp.asarray(False)) + traced(jnp.array(np.True_)))
    return x + jnp.where(jnp.asarray(True), x, 0.0)

said = []
assert ask(1.0) == 2.0 and jax.grad(ask)(1.0) == 2.0
jax.vmap(ask)(jnp.ones(3))
assert said == [], said
def loop(x):
    return jax.lax.scan(lambda c, _: (ask(c), c), x, None, 1)[0]

for f in (jax.jit(ask), jax.jit(jax.grad(ask)), loop):
    assert f(1.0) == 2.0
    assert said == ["traced"] * 2, said
    said.clear()
print("ok")
"""


def test_bools_say_whether_a_function_is_staged(tmp_path):
    """`bool(jnp.asarray(False))` raises where JAX's does: within `jit`, not under `grad` alone.

    `array_api_extra.lazy_apply`, and by it SciPy, calls back from `jit` if it raises.
    """
    done = run(["-c", STAGED], tmp_path)
    assert (done.stderr, done.stdout) == ("", "ok\n")


@pytest.mark.cpu
def test_tutorials(tmp_path):
    """Custom primitives and interpreters of graphs do under every transform what JAX's do."""
    program = HERE / "tutorials.py"
    found, wanted = (results(program, tmp_path, under) for under in ("fnarray", "jax"))
    assert not differences(found, wanted, rtol=1e-5, atol=1e-6)


def test_interpreters(tmp_path):
    """Subclasses of `core.Trace` see every operation, in and across transforms."""
    done = run([HERE / "interpreters.py"], tmp_path)
    assert (done.stderr, done.stdout) == ("", "ok\n")


def test_modules_that_few_know(tmp_path):
    """They compute what JAX's do, and what they cannot do here they leave undone in silence."""
    program = HERE / "modules.py"
    found, wanted = (results(program, tmp_path, under) for under in ("fnarray", "jax"))
    assert len(found) > 50
    assert differences(found, wanted, rtol=2e-5, atol=1e-6) == []


def test_states(tmp_path):
    """Inputs that a trace adds as it goes are the graph's last; calls by a primitive are calls."""
    program = HERE / "states.py"
    found, wanted = (results(program, tmp_path, under) for under in ("fnarray", "jax"))
    assert differences(found, wanted, rtol=1e-6, atol=1e-6) == []
