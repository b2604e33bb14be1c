"""The checker through the real transforms: what is refused, what passes, and what is said."""

from __future__ import annotations

import functools
import pickle
import warnings

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import errors, lax
from fnarray.config import config, effects
from fnarray.purity import assume_pure

log: list = []
rate = 2.0
rate = 3.0  # bound twice: a variable
SCALE = 2.0
X = jnp.float32(1.5)
ROW = jnp.ones(3)


def same(x):
    return x


def custom_jvp(f, rule=same):
    """Return a function with a derivative of its own, in which ``rule`` is called."""
    made = fnarray.custom_jvp(f)
    made.defjvp(lambda xs, ts: (f(xs[0]), rule(ts[0])))
    return made


def custom_vjp(f, fwd=same, bwd=same):
    """Return a function with a backward pass of its own."""
    made = fnarray.custom_vjp(f)
    made.defvjp(lambda x: (fwd(x), None), lambda _, ct: (bwd(ct),))
    return made


USES = {
    "jit": lambda f: fnarray.jit(f)(X),
    "jit.lower": lambda f: fnarray.jit(f).lower(X),
    "jit.trace": lambda f: fnarray.jit(f).trace(X),
    "jit.eval_shape": lambda f: fnarray.jit(f).eval_shape(X),
    "inner jit": lambda f: fnarray.jit(lambda x: fnarray.jit(f)(x))(X),
    "make_jaxpr": lambda f: fnarray.make_jaxpr(f)(X),
    "eval_shape": lambda f: fnarray.eval_shape(f, X),
    "grad": lambda f: fnarray.grad(f)(X),
    "value_and_grad": lambda f: fnarray.value_and_grad(f)(X),
    "jvp": lambda f: fnarray.jvp(f, (X,), (X,)),
    "vjp": lambda f: fnarray.vjp(f, X),
    "linearize": lambda f: fnarray.linearize(f, X),
    "linear_transpose": lambda f: fnarray.linear_transpose(f, X),
    "jacfwd": lambda f: fnarray.jacfwd(f)(X),
    "jacrev": lambda f: fnarray.jacrev(f)(X),
    "hessian": lambda f: fnarray.hessian(f)(X),
    "vmap": lambda f: fnarray.vmap(f)(ROW),
    "pmap": lambda f: fnarray.pmap(f)(ROW[:1]),
    "checkpoint": lambda f: fnarray.checkpoint(f)(X),
    "custom_jvp": lambda f: custom_jvp(f)(X),
    "custom_jvp rule": lambda f: fnarray.jvp(custom_jvp(same, f), (X,), (X,)),
    "custom_vjp": lambda f: custom_vjp(f)(X),
    "custom_vjp fwd": lambda f: fnarray.grad(custom_vjp(same, fwd=f))(X),
    "custom_vjp bwd": lambda f: fnarray.grad(custom_vjp(same, bwd=f))(X),
    "jit of grad": lambda f: fnarray.jit(fnarray.grad(f))(X),
    "jit of partial": lambda f: fnarray.jit(functools.partial(f))(X),
    "cond": lambda f: lax.cond(True, same, f, X),
    "cond of two operands": lambda f: lax.cond(True, X, same, X, f),
    "switch": lambda f: lax.switch(0, [same, f], X),
    "switch of one": lambda f: lax.switch(0, [f], X),
    "while_loop": lambda f: lax.while_loop(lambda x: x < 0, f, X),
    "while_loop test": lambda f: lax.while_loop(lambda x: f(x) < 0, same, X),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), X),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), X, ROW),
    "map": lambda f: lax.map(f, ROW),
    "associative_scan": lambda f: lax.associative_scan(lambda a, b: f(a) * b, ROW),
    "platform_dependent": lambda f: lax.platform_dependent(X, default=f),
}


#: Uses whose traces are kept; the others are eager.
STAGED = {
    "jit", "jit.lower", "jit.trace", "jit.eval_shape", "inner jit", "make_jaxpr", "pmap",
    "jit of grad", "jit of partial",
}  # fmt: skip


@pytest.mark.parametrize("how", USES)
@pytest.mark.parametrize("jitted", [True, False], ids=["compiled", "disable_jit"])
def test_every_transform_checks(how, jitted):
    """An impure function is refused by each transform before anything of it has run."""
    if not jitted and how.startswith("switch"):
        how = "switch of one"  # op by op, the other branches are never looked at

    def impure(x):
        log.append(x)
        return x * rate

    with fnarray.disable_jit(not jitted), pytest.raises(errors.WriteEffectError) as caught:
        USES[how](impure)
    expected = ["FNA103", "FNA203"] if how in STAGED else ["FNA103"]
    assert [f.code for f in caught.value.findings] == expected
    assert "log.append(x)" in str(caught.value)
    assert log == []


@pytest.mark.cpu
@pytest.mark.parametrize("how", USES)
@pytest.mark.parametrize("jitted", [True, False], ids=["compiled", "disable_jit"])
def test_a_read_is_refused_where_the_trace_is_kept(how, jitted):
    """What a variable holds is an effect for a staged transform, and for no eager one."""
    table = {"k": 2.0}
    table.update(k=3.0)

    def reads(x):
        return x * rate * table["k"] if how != "linear_transpose" else x * rate

    def use():
        with fnarray.disable_jit(not jitted):
            return USES[how](reads)

    if how in STAGED:
        with pytest.raises(errors.ReadEffectError, match="FNA203"):
            use()
    else:
        use()


@pytest.mark.cpu
@pytest.mark.parametrize("how", USES)
@pytest.mark.parametrize("jitted", [True, False], ids=["compiled", "disable_jit"])
def test_every_transform_lets_pure_functions_pass(how, jitted):
    """Local state, constants, nested loops and helpers are no effects in any transform."""
    if how == "linear_transpose":
        USES[how](lambda x: x * SCALE)
        return

    def pure(x):
        parts, table = [], {"k": SCALE}

        def body(i, c):
            return c * table["k"] + parts[0] * 0 + i * 0

        parts.append(x)
        return lax.fori_loop(0, 2, body, x)

    with fnarray.disable_jit(not jitted):
        USES[how](pure)


# ---- callables of every form ---------------------------------------------------------------------


class Model:
    RATE = 2.0

    def __init__(self):
        self.scale = 3.0

    def step(self, x):
        return x * self.scale

    def fine(self, x):
        return x * self.RATE

    __call__ = step

    @classmethod
    def make(cls, x):
        log.append(x)
        return x

    @staticmethod
    def show(x):
        print(x)
        return x

    @functools.partial(fnarray.jit, static_argnums=0)
    def held(self, x):
        return x * self.scale


def noisy(f):
    @functools.wraps(f)
    def wrapped(x):
        print(x)
        return f(x)

    return wrapped


def apply(f, x):
    return f(x)


FORMS = {
    "method": (Model().step, "FNA204"),
    "callable object": (Model(), "FNA204"),
    "classmethod": (Model.make, "FNA103"),
    "staticmethod": (Model.show, "FNA311"),
    "partial": (functools.partial(apply, Model().step), "FNA204"),
    "partial of a partial": (functools.partial(functools.partial(apply), f=Model().step), ""),
    "decorated": (noisy(same), "FNA311"),
    "lambda": (lambda x: log.append(x) or x, "FNA103"),
    "jitted": (fnarray.jit(lambda x: print(x) or x), "FNA311"),
    "method with a class constant": (Model().fine, ""),
    "numpy function": (jnp.sin, ""),
    "builtin": (abs, ""),
}


@pytest.mark.cpu
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_callables(form):
    """Methods, objects, partials, decorated and built-in functions are seen through."""
    fun, code = FORMS[form]
    if "partial of" in form:
        with pytest.raises(errors.EffectError):
            fnarray.jit(fun)(x=X)
    elif code:
        with pytest.raises(errors.EffectError) as caught:
            fnarray.jit(fun)(X)
        assert code in [f.code for f in caught.value.findings]
    else:
        fnarray.jit(fun)(X)


@pytest.mark.cpu
def test_static_arguments_are_looked_into():
    """A static function is followed; attributes of a static object are guarded, for others not."""
    with pytest.raises(errors.WriteEffectError, match="log"):
        fnarray.jit(apply, static_argnums=0)(Model.make, X)
    assert fnarray.jit(apply, static_argnums=0)(jnp.negative, X) == -1.5
    model = Model()
    assert model.held(X) == 1.5 * model.scale
    model.scale += 1.0
    assert model.held(X) == 1.5 * model.scale
    assert str(fnarray.make_jaxpr(Model.step, static_argnums=0)(model, X)).count("mul") == 1
    with pytest.raises(errors.ReadEffectError, match=r"\.scale"):
        fnarray.jit(model.step)(X)


def test_generators_and_coroutines():
    """They cannot be traced; JAX's TypeError, and an effect."""

    def generator(x):
        yield x

    async def coroutine(x):
        return x

    with pytest.raises(errors.IteratorEffectError) as caught:
        fnarray.jit(generator)
    assert isinstance(caught.value, TypeError)
    with pytest.raises(errors.IteratorEffectError, match="FNA404"):
        fnarray.jit(coroutine)(X)


def test_effects_come_before_errors_of_arguments():
    """What cannot be an argument at all is reported as the effect it causes."""

    def step(batches, x):
        return x + next(batches)

    with pytest.raises(errors.IteratorEffectError, match="batches"):
        fnarray.jit(step)(iter([1.0]), X)


# ---- the line: who owns the object ---------------------------------------------------------------


@pytest.mark.cpu
def test_a_local_of_the_traced_function_is_its_own():
    """Inner functions may append to, and rebind, what the traced function made."""

    @fnarray.jit
    def f(x):
        seen, count = [], 0

        def inner(y):
            nonlocal count
            count += 1
            seen.append(y)
            return y * 2

        return inner(inner(x)), seen[0] + count

    assert f(X) == (6.0, 3.5)


@pytest.mark.parametrize("write", ["append", "nonlocal"])
@pytest.mark.parametrize("user", ["fori_loop", "scan", "cond", "while_loop", "jit", "vmap", "grad"])
@pytest.mark.parametrize("outer", [fnarray.jit, lambda f: f], ids=["in jit", "eager"])
def test_a_callback_owns_nothing_around_it(write, user, outer):
    """A loop body, branch or traced callback leaves tracers in what it changes: refused."""

    def f(x):
        seen, last = [], x

        def appends(y):
            seen.append(y)
            return y * 2

        def rebinds(y):
            nonlocal last
            last = y
            return y * 2

        body = appends if write == "append" else rebinds
        if user == "fori_loop":
            return lax.fori_loop(0, 3, lambda i, c: body(c), x)
        if user == "scan":
            return lax.scan(lambda c, _: (body(c), c), x, None, 3)[0]
        if user == "cond":
            return lax.cond(x > 0, body, same, x)
        if user == "while_loop":
            return lax.while_loop(lambda c: c < 9, body, x)
        return {"jit": fnarray.jit, "vmap": fnarray.vmap, "grad": fnarray.grad}[user](body)(x)

    with pytest.raises(errors.WriteEffectError):
        outer(f)(ROW if user == "vmap" else X)


@pytest.mark.cpu
def test_callbacks_may_read_what_the_traced_function_holds():
    """Dicts and lists that are arguments or locals of the function around are read freely."""

    @fnarray.jit
    def f(params, x):
        table, parts = {"k": x * 2}, [x, x]

        def body(i, c):
            return c + params["w"] * table["k"] + parts[1]

        def loss(w):
            return (w * table["k"] + params["w"]).sum()

        return lax.fori_loop(0, 2, body, x) + fnarray.grad(loss)(x)

    assert f({"w": 2.0}, X) == 1.5 + 2 * (2 * 3 + 1.5) + 3


@pytest.mark.cpu
def test_a_helper_may_change_what_its_caller_made():
    """Ownership is followed across calls, for lists and NumPy arrays."""

    def fill(items, table, x):
        items.append(x)
        table[0] = 2.0

    @fnarray.jit
    def f(x):
        items, table = [], np.zeros(2, np.float32)
        fill(items, table, x)
        return items[0] * table[0]

    assert f(X) == 3.0


# ---- modes ---------------------------------------------------------------------------------------


def counting():
    calls = []

    def f(x):
        calls.append(1)
        return x * 2

    return f, calls


@pytest.mark.cpu
def test_off_by_scope_option_and_configuration():
    """Each way to switch the checker off traces as JAX does; the others still refuse."""
    f, calls = counting()
    with effects("off"):
        fnarray.jit(f)(X)
        fnarray.jit(f)(X)
    assert calls == [1]
    fnarray.jit(f, effects="off")(X)
    assert calls == [1]
    config.update("effects", "off")
    try:
        fnarray.jit(f)(X)
        fnarray.grad(lambda x: calls.append(2) or x)(X)
    finally:
        config.update("effects", "error")
    with pytest.raises(errors.EffectError):
        fnarray.jit(f)(X)
    with effects("off"), pytest.raises(errors.EffectError):
        fnarray.jit(f, effects="error")(X)


@pytest.mark.cpu
def test_the_option_holds_for_what_is_inside():
    """``jit(f, effects="off")`` covers the loops in ``f``, and no other call of their bodies."""

    def body(c, x):
        log.append(1)
        return c + x, c

    def f(x):
        return lax.scan(body, x, ROW)[0]

    off = fnarray.jit(f, effects="off")
    assert off(X) == off(X) == 4.5
    assert len(log) == 1
    log.clear()
    with pytest.raises(errors.EffectError):
        lax.scan(body, X, ROW)


@pytest.mark.cpu
def test_off_holds_inside_other_functions():
    """A function jitted with ``effects="off"`` may be called by checked ones."""
    f, calls = counting()
    inner = fnarray.jit(f, effects="off")
    assert fnarray.jit(lambda x: inner(x) + 1)(X) == 4
    assert calls == [1]


def test_errors_can_be_pickled():
    """Also where they are of several groups at once."""
    with pytest.raises(errors.EffectError) as caught:
        fnarray.jit(lambda x: log.append(x) or x * rate)(X)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert isinstance(again, errors.WriteEffectError)
    assert isinstance(again, errors.ReadEffectError)
    assert again.findings == caught.value.findings


@pytest.mark.cpu
def test_warn_traces_once_and_says_where():
    """A warning points at the user's call, and the function runs as without the checker."""
    f, calls = counting()
    jitted = fnarray.jit(f)
    with effects("warn"):
        with pytest.warns(errors.EffectWarning, match="FNA103") as caught:
            jitted(X)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jitted(X)
    assert calls == [1]


@pytest.mark.cpu
def test_warn_does_not_guard_what_the_function_rebinds_itself():
    """Or every call would trace again."""
    space = {"n": 0}
    exec("def f(x):\n    global n\n    n = n + 1\n    return x * n\n", space)
    jitted = fnarray.jit(space["f"], effects="warn")
    with pytest.warns(errors.EffectWarning):
        jitted(X)
    jitted(X)
    assert space["n"] == 1


def test_bad_mode():
    """A mode that does not exist is a ValueError that lists them."""
    with pytest.raises(ValueError, match="'error', 'warn', 'off'"):
        fnarray.jit(same, effects="quiet")


@pytest.mark.cpu
def test_assumed_functions_are_not_looked_into():
    """Neither the function marked nor what is inside it, loops included."""

    @assume_pure
    def trusted(x):
        log.append(1)

        def body(i, c):
            log.append(2)
            return c

        return lax.fori_loop(0, 2, body, x)

    assert fnarray.jit(lambda x: trusted(x) + 1)(X) == 2.5
    assert log == [1, 2]
    log.clear()


def test_each_transform_names_itself():
    """A function checked under one transform and then another shows the path of each."""

    def helper(x):
        print(x)
        return x

    def f(x):
        return helper(x)

    for name, use in (("jit", fnarray.jit), ("grad", fnarray.grad), ("vmap", fnarray.vmap)):
        with pytest.raises(errors.EffectError, match=rf"{name}\(f\) -> helper"):
            use(f)(ROW)


def test_findings_survive_as_data():
    """The error holds its findings, in order of place, with columns in characters."""
    with pytest.raises(errors.EffectError) as caught:
        fnarray.jit(lambda x: ("é", x * rate)[1])(X)
    (finding,) = caught.value.findings
    assert finding.source[finding.column - 1 : finding.end_column - 1] == "rate"


@pytest.mark.cpu
def test_accepted_without_noise():
    """What the issue lists as accepted, in one function."""
    import contextlib
    import io
    import sys

    @fnarray.jit
    def f(x):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            warnings.warn("told", stacklevel=1)
        text = io.StringIO()
        text.write(f"{__name__} {sys.version_info}")
        rng = np.random.default_rng(0)
        for item in {1, 2}:
            x += item
        with contextlib.suppress(KeyError):
            {}["a"]
        assert x.ndim == 0, "told"
        match x.shape:
            case ():
                x = x + rng.normal() * 0
        return x

    assert f(X) == 4.5
