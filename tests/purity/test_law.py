"""The law: a read is an effect only where what is computed from it is kept."""

from __future__ import annotations

import copy
import functools
import sys

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import errors, lax
from fnarray.config import config, scoped
from fnarray.control import tracing

X = jnp.float32(1.5)
ROW = jnp.ones(3)
table = {"k": 2.0, "f": jnp.sin}
matrix = np.eye(3, dtype=np.float32)
rate = 2.0
rate = 3.0  # bound twice: a variable


class Box:
    def __init__(self, scale):
        self.scale = scale
        self.weights = [1.0, 2.0]


box = Box(2.0)

#: What eager transforms may read: a function of ``x``, by what it reads.
READS = {
    "variable": lambda x: x * rate,
    "dict": lambda x: x * table["k"],
    "function in a dict": lambda x: table["f"](x),
    "array": lambda x: x * matrix[0, 0] * matrix.sum() + matrix.T[0, 0],
    "attribute": lambda x: x * box.scale,
    "list of an object": lambda x: x * sum(box.weights),
    "vars": lambda x: x * vars(box)["scale"],
    "getattr": lambda x: x * getattr(box, "".join(["sc", "ale"])),
}

#: Eager transforms of a function of a scalar; each reads it at every call.
EAGER = {
    "grad": lambda f: fnarray.grad(f)(X),
    "value_and_grad": lambda f: fnarray.value_and_grad(f)(X)[0],
    "vjp": lambda f: fnarray.vjp(f, X)[0],
    "vjp of vjp": lambda f: fnarray.vjp(f, X)[1](X)[0],
    "jvp": lambda f: fnarray.jvp(f, (X,), (X,))[1],
    "linearize": lambda f: fnarray.linearize(f, X)[1](X),
    "jacfwd": lambda f: fnarray.jacfwd(f)(X),
    "jacrev": lambda f: fnarray.jacrev(f)(X),
    "hessian": lambda f: fnarray.hessian(lambda x: f(x) ** 2)(X),
    "vmap": lambda f: fnarray.vmap(f)(ROW),
    "checkpoint": lambda f: fnarray.grad(fnarray.checkpoint(f))(X),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), X, ROW)[1],
    "scan itself": lambda f: lax.scan(pair(f), X, ROW)[1],
    "map": lambda f: lax.map(f, ROW),
    "fori_loop": lambda f: lax.fori_loop(0, 2, lambda i, c: f(c), X),
    "while_loop": lambda f: lax.while_loop(lambda c: c < 2, lambda c: c + 2 + abs(f(c)), X),
    "cond": lambda f: lax.cond(X > 0, f, lambda x: x, X),
    "switch": lambda f: lax.switch(0, [f, f], X),
    "associative_scan": lambda f: lax.associative_scan(lambda a, b: f(a) + b, ROW),
    "custom_jvp": lambda f: with_rule(f)(X),
    "eval_shape": lambda f: fnarray.eval_shape(f, X),
}


def pair(f):
    """Return a body of a scan, always the same one for a function."""
    if f not in _pairs:
        _pairs[f] = lambda c, x: (c, f(x))
    return _pairs[f]


_pairs: dict = {}


def with_rule(f):
    """Return a function with a derivative of its own."""
    made = fnarray.custom_jvp(f)
    made.defjvp(lambda xs, ts: (f(xs[0]), ts[0]))
    return made


@pytest.mark.cpu
@pytest.mark.parametrize("how", EAGER)
@pytest.mark.parametrize("what", READS)
def test_an_eager_transform_refuses_no_read(how, what):
    """What is read is read now, and kept nowhere."""
    EAGER[how](READS[what])


@pytest.mark.cpu
@pytest.mark.parametrize("how", [k for k in EAGER if k != "eval_shape"])
def test_an_eager_transform_reads_anew_at_each_call(how):
    """The same function, called again after a change of what it reads, gives the new value."""
    held = {"k": 2.0}
    numbers = np.ones(2, np.float32)
    thing = Box(1.0)

    def f(x):
        return x * held["k"] * numbers[0] * thing.scale

    seen = [np.asarray(EAGER[how](f))]
    for change in (
        lambda: held.update(k=5.0),
        lambda: numbers.__setitem__(0, 7.0),
        lambda: setattr(thing, "scale", 3.0),
    ):
        change()
        new = np.asarray(EAGER[how](f))
        fresh = np.asarray(EAGER[how](lambda x: f(x)))
        np.testing.assert_array_equal(new, fresh)
        assert not np.array_equal(new, seen[-1])
        seen.append(new)


@pytest.mark.parametrize("how", EAGER)
def test_an_eager_transform_refuses_writes(how):
    """A write, a draw, a print happen to tracers in eager transforms as well."""
    log, batches = [], iter([1.0])
    with pytest.raises(errors.WriteEffectError, match="log"):
        EAGER[how](lambda x: log.append(x) or x)
    with pytest.raises(errors.IteratorEffectError, match="batches"):
        EAGER[how](lambda x: x * next(batches))
    with pytest.raises(errors.IOEffectError):
        EAGER[how](lambda x: print(x) or x)
    assert log == []
    assert next(batches) == 1.0


@pytest.mark.cpu
def test_a_function_swapped_in_a_container_is_judged_anew():
    """No verdict of an eager transform outlives what it was made from."""
    held = {"f": jnp.sin}

    def f(x):
        return held["f"](x)

    def each(x):
        return sum(g(x) for g in held.values())

    for g in (f, each):
        held["f"] = jnp.sin
        fnarray.grad(g)(X)
        held["f"] = lambda x: print(x) or x
        with pytest.raises(errors.IOEffectError):
            fnarray.grad(g)(X)


@pytest.mark.cpu
def test_jit_inside_an_eager_transform_is_staged():
    """A program made under an eager transform is kept, so that its reads are effects."""

    @fnarray.jit
    def program(x):
        return x * table["k"]

    with pytest.raises(errors.ReadEffectError, match="table"):
        fnarray.grad(lambda x: program(x) * rate)(X)


@pytest.mark.cpu
def test_an_eager_transform_inside_jit_is_staged():
    """All that a staged transform reaches is kept with its program."""
    with pytest.raises(errors.ReadEffectError, match="table"):
        fnarray.jit(fnarray.grad(lambda x: x * table["k"]))(X)
    with pytest.raises(errors.ReadEffectError, match="rate"):
        fnarray.jit(lambda x: lax.scan(lambda c, _: (c * rate, None), x, None, 2)[0])(X)


# ---- what a staged transform accepts -------------------------------------------------------------

COEFFICIENTS = "\n".join(f"c{i:03d} = {i * 0.25 - 3}" for i in range(48))
PROGRAM = f"""
{COEFFICIENTS}
def density(t):
    return {" + t * (".join(f"c{i:03d}" for i in range(48))}{")" * 47}
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a maker of modules from source, imported as a user's are."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(text):
        name = f"law_{len(made)}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{name}.py").write_text(text)
        made.append(name)
        return __import__(name)

    yield make
    for name in made:
        sys.modules.pop(name, None)


@pytest.mark.cpu
def test_coefficients_bound_once(module):
    """A module of lower-case numbers is one of constants, each guarded."""
    law = module(PROGRAM)
    density = fnarray.jit(law.density)
    before = density(X)
    law.c000 += 1.0
    np.testing.assert_allclose(density(X), before + 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "g = 0.0\ndef f(x): return x * g\ng = 10.0\n",
        "g = 0.0\ng += 1\ndef f(x): return x * g\n",
        "for g in (1.0, 2.0): pass\ndef f(x): return x * g\n",
        "g = 0.0\ndef f(x): return x * g\ndef turn():\n    global g\n    g = 1.0\n",
        "g = 0.0\ndef f(x): return x * g\ndef turn():\n    global g\n    del g\n",
        "if True: g = 0.0\ng = 1.0\ndef f(x): return x * g\n",
        "if True: g = 0.0\nelse: g = 1.0; g = 2.0\ndef f(x): return x * g\n",
        "try: g = 0.0\nfinally: g = 1.0\ndef f(x): return x * g\n",
        "try: g = 0.0\nexcept ValueError as g: pass\ndef f(x): return x * g\n",
        "with open(__file__) as g: g = 1.0\ndef f(x): return x * g\n",
        "(g := 1.0)\ng = 2.0\ndef f(x): return x * g\n",
        "while True:\n    g = 1.0\n    break\ndef f(x): return x * g\n",
        "g, h = 1.0, 2.0\n[g] = [3.0]\ndef f(x): return x * g\n",
        "exec('g = 1.0')\ndef f(x): return x * g\n",
    ],
)
def test_a_name_bound_twice_is_a_variable(module, text):
    """More than one binding, of any form, or none that is seen: refused."""
    with pytest.raises(errors.ReadEffectError, match="FNA203"):
        fnarray.jit(module(text).f)(X)


BRANCHES = [
    "if True: g = 0.0\nelse: g = 1.0\ndef f(x): return x * g\n",
    "if False: g = 1.0\nelif True: g = 0.0\nelse: g = 2.0\ndef f(x): return x * g\n",
    "try: g = 0.0\nexcept ValueError: g = 1.0\ndef f(x): return x * g\n",
    "class C:\n    g = 0.0\ndef f(x): return x * C.g\n",
    "DEBUG = False\ndef f(x):\n    if DEBUG: print(x)\n    return x * 0.0\n",
    "DEBUG = False\ndef f(x):\n    if not DEBUG: return x * 0.0\n    print(x)\n",
]


@pytest.mark.cpu
@pytest.mark.parametrize("text", BRANCHES)
def test_one_binding_on_each_way_is_one(module, text):
    """Of the branches of a test one is run; what a constant keeps from being run has no effect."""
    law = module(text)
    program = fnarray.jit(law.f)
    assert program(X) == 0.0
    if "g = 0.0" in text:
        (getattr(law, "C", law)).g = 5.0
        assert program(X) == 5.0 * X
    else:
        law.DEBUG = True
        with pytest.raises(errors.IOEffectError):
            program(X)


@pytest.mark.parametrize(
    "text",
    [
        "class C:\n    g = 0.0\nC.g = 1.0\ndef f(x): return x * C.g\n",
        "class C:\n    g = 0.0\n    g = 1.0\ndef f(x): return x * C.g\n",
        "class C:\n    g = 0.0\n    def put(self): self.g = 1.0\ndef f(x): return x * C.g\n",
        "class C:\n    g = [0.0]\ndef f(x): return x * C.g[0]\n",
    ],
)
def test_an_attribute_that_is_set_is_a_variable(module, text):
    """A class's attribute that something in its module sets, or that can change: refused."""
    with pytest.raises(errors.ReadEffectError):
        fnarray.jit(module(text).f)(X)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "text",
    [
        "g: float = 2.0\ndef f(x): return x * g\n",
        "(g := 2.0)\ndef f(x): return x * g\n",
        "g, h = 2.0, 3.0\ndef f(x): return x * g\n",
        "from math import tau as g\ndef f(x): return x * g\n",
        "if True:\n    g = 2.0\ndef f(x): return x * g\n",
        "g = (1.0, ('a', 2))\ndef f(x): return x * g[0]\n",
        "g = 2.0\ndef f(x): return x * g\ndef h():\n    g = 1.0\n    return [g for g in (1,)]\n",
        "class K:\n    g = 1.0\ng = 2.0\ndef f(x): return x * g\n",
        "import numpy as np\ng = np.ones(3)\ndef f(x): return x * g.T\n",
    ],
)
def test_a_name_bound_once_is_a_constant(module, text):
    """One binding of any form; a local of the same name is another name."""
    fnarray.jit(module(text).f)(X)


EARLY = "import numpy as np\ndata = np.arange(3.0)\n"


@pytest.mark.cpu
@pytest.mark.parametrize(
    "text",
    [
        "data -= data.mean()\ndata = data / data.std()\n",
        "for _ in range(3):\n    data = data * 0.5\n",
        "with np.errstate(all='ignore'):\n    data = data / data.max()\ndata[data > 0.9] = 0.0\n",
        "if data.any():\n    data = data[::-1]\n",
        "def put(): data = 1\n",
    ],
)
def test_an_array_is_final_once_its_readers_are_made(module, text):
    """However often a module binds an array before: the reader finds what it is for good."""
    law = module(EARLY + text + "def f(x): return x * data\n")
    program = fnarray.jit(law.f)
    np.testing.assert_allclose(program(X), X * law.data, rtol=1e-6)
    law.data[1] = 7.0
    np.testing.assert_allclose(program(X), X * law.data, rtol=1e-6)
    law.data = np.ones(3)
    np.testing.assert_allclose(program(X), X * law.data, rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x * data\ndata = data + 1\n",
        "def f(x): return g(x)\ndef g(x): return x * data\ndata += 1\n",
        "f = lambda x: x * data\nfor _ in range(2):\n    data = data + 1\n",
        "for _ in range(2):\n    data = data + 1\n    def f(x): return x * data\n",
        "data = data + 1\ndef f(x): return x * data\ndef put():\n    global data\n    data = 1\n",
    ],
)
def test_an_array_that_is_bound_after_its_readers_is_a_variable(module, text):
    """What reads it may run between two bindings: refused."""
    with pytest.raises(errors.ReadEffectError, match="FNA202"):
        fnarray.jit(module(EARLY + text).f)(X)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "text",
    [
        "    data /= data.sum()\n",
        "    for k in range(3):\n        data = data * k\n    data += 1\n",
        "    if data.any():\n        data *= 2\n    else:\n        data = data[::-1]\n",
    ],
)
def test_so_is_an_array_of_the_enclosing_call(module, text):
    """In place, or in loops that are over: the closure finds what it is for good."""
    law = module(f"{EARLY}def make(data):\n{text}    return (lambda x: x * data), data\n")
    f, data = law.make(law.data)
    program = fnarray.jit(f)
    np.testing.assert_allclose(program(X), X * data, rtol=1e-6)
    data[1] = 7.0
    np.testing.assert_allclose(program(X), X * data, rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "    f = lambda x: x * data\n    data += 1\n",
        "    for _ in range(2):\n        f = lambda x: x * data\n        data = data + 1\n",
        "    while True:\n        data += 1\n        f = lambda x: x * data\n        break\n",
        "    f = lambda x: x * data\n    for data in (data, data + 1): pass\n",
        "    f = lambda x: x * data\n    def put():\n        nonlocal data\n        data = 1\n",
    ],
)
def test_not_if_it_may_be_bound_again(module, text):
    """Later, in a further turn of a loop, or by a function that reaches out for it."""
    law = module(f"{EARLY}def make(data):\n{text}    return f\n")
    with pytest.raises(errors.ReadEffectError, match=r"FNA20[25]"):
        fnarray.jit(law.make(law.data))(X)


@pytest.mark.cpu
def test_a_star_binds_what_a_module_exports(module):
    """``from module import *`` is one binding of each name, listed in ``__all__`` or public."""
    plain = module("g = 2.0\n_h = 3.0\n").__name__
    listed = module("__all__ = ['_h']\ng = 4.0\n_h = 5.0\n").__name__
    last = "def f(x): return x * g * _h * pi\n"
    law = module(f"from math import *\nfrom {plain} import *\nfrom {listed} import *\n{last}")
    program = fnarray.jit(law.f)
    np.testing.assert_allclose(program(X), X * 2.0 * 5.0 * np.pi, rtol=1e-6)
    law.g = 1.0
    np.testing.assert_allclose(program(X), X * 5.0 * np.pi, rtol=1e-6)
    for text in (
        f"from {plain} import *\nfrom {plain} import *\n",
        f"from {plain} import *\ng = 1.0\ng = 2.0\n",
    ):
        with pytest.raises(errors.ReadEffectError, match="FNA203"):
            fnarray.jit(module(text + "def f(x): return x * g\n").f)(X)


def layer(**kw):
    def apply(x):
        return jnp.sum(x, **kw)

    return apply


@pytest.mark.cpu
def test_keywords_of_the_enclosing_function():
    """A layer's own options are its own: two layers are two programs."""
    rows = jnp.ones((2, 3))
    assert fnarray.jit(layer(axis=0))(rows).shape == (3,)
    assert fnarray.jit(layer(axis=1))(rows).shape == (2,)
    kept = layer(axis=0)
    program = fnarray.jit(kept)
    assert program(rows).shape == (3,)
    kept.__closure__[0].cell_contents["axis"] = 1  # what no source shows, the guard sees
    assert program(rows).shape == (2,)


@pytest.mark.cpu
def test_a_captured_array_is_copied_and_compared():
    """A write in place is seen by the next call, and by no earlier result."""
    program = fnarray.jit(lambda x: x @ matrix)
    first = program(ROW)
    matrix[0, 0] = 5.0
    try:
        second = program(ROW)
    finally:
        matrix[0, 0] = 1.0
    np.testing.assert_array_equal(first, [1, 1, 1])
    np.testing.assert_array_equal(second, [5, 1, 1])
    np.testing.assert_array_equal(program(ROW), [1, 1, 1])


@pytest.mark.cpu
def test_the_limit_of_captured_arrays():
    """Above ``captured_array_limit`` an array is refused, and the message names repairs."""
    with scoped("captured_array_limit", 8):
        with pytest.raises(errors.ReadEffectError, match="asarray"):
            fnarray.jit(lambda x: x @ matrix)(ROW)
        fnarray.grad(lambda x: jnp.sum(x @ matrix))(ROW)
    assert config.captured_array_limit == 2**20
    fnarray.jit(lambda x: x @ matrix)(ROW)


@pytest.mark.cpu
def test_effects_of_a_library_are_its_own_word():
    """``jit(..., effects="off")`` or ``"warn"`` on a function holds inside of others too."""

    @fnarray.jit(effects="off")
    def quiet(x):
        return x * table["k"]

    assert fnarray.jit(lambda x: quiet(x) + 1)(X) == 4.0

    @fnarray.jit(effects="warn")
    def loud(x):
        return x * table["k"]

    with pytest.warns(errors.EffectWarning, match="table"):
        assert fnarray.jit(lambda x: loud(x) + 2)(X) == 5.0


# ---- what the live checker does not do -----------------------------------------------------------


class Answering:
    """Answers for attributes from a dict, as configuration objects do, or by a KeyError."""

    def __init__(self):
        self.held = {"k": 2.0}

    def __getattr__(self, name):
        return self.__dict__["held"][name]

    def __call__(self, x):
        return x * 2


class Explosive:
    """Its every look-up is the user's code."""

    __slots__ = ()

    def __getattribute__(self, name):
        raise RuntimeError(f"user code ran: {name}")

    @property
    def __class__(self):
        raise RuntimeError("user code ran: __class__")

    def __call__(self, x):
        return x * 2


answering, explosive = Answering(), Explosive()


@pytest.mark.cpu
def test_no_code_of_the_user_runs():
    """Attributes are looked up without ``__getattr__``, descriptors, or ``__class__``."""
    assert fnarray.jit(lambda x: answering(x))(X) == 3.0
    assert fnarray.jit(lambda x: explosive(x))(X) == 3.0


@pytest.mark.cpu
def test_a_copy_of_a_tree_of_tracers():
    """A tracer is an array, which never changes: copied, it is itself."""

    def f(x):
        held = {"a": x, "b": [x + 1]}
        return copy.deepcopy(held)["b"][0] * copy.copy(x) + copy.deepcopy(x)

    assert fnarray.jit(f)(X) == 5.25
    assert fnarray.grad(f)(X) == 5.0


class Base:
    def __call__(self, x):
        return x * 2

    @functools.lru_cache  # noqa: B019
    def count(self):
        return 3.0

    @classmethod
    def made(cls, x):
        return x

    scaled = functools.partialmethod(lambda self, x, k: x * k, k=2.0)


class Derived(Base):
    def __call__(self, x):
        return super().__call__(x)

    def by_cache(self, x):
        return x * self.count()

    def by_partial(self, x):
        return self.scaled(x)

    def by_class(self, x):
        return self.made(x)


derived = Derived()


@pytest.mark.cpu
@pytest.mark.parametrize("method", ["__call__", "by_cache", "by_partial", "by_class"])
@pytest.mark.parametrize("bound", [True, False])
def test_bound_methods_do_not_trace_again(method, bound, monkeypatch):
    """A method is bound anew at each look: what it is made of is guarded, not the method."""
    traces = []
    known = tracing.trace
    monkeypatch.setattr(tracing, "trace", lambda *a, **k: traces.append(a) or known(*a, **k))
    fun = getattr(derived, method)
    program = fnarray.jit(fun if bound else lambda x: getattr(Derived, method)(derived, x))
    for _ in range(3):
        program(X)
    assert len(traces) == 1
