"""Functions with derivatives of their own give JAX's values, graphs and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.custom_derivatives
import jax.numpy
import numpy as np
import pytest

import fnarray
import fnarray.custom_derivatives
import fnarray.numpy
from fnarray.custom_derivatives import SymbolicZero
from fnarray.errors import UnexpectedTracerError

from ..oracle import in_one

O3 = np.ones(3, np.float32)
R3 = np.arange(3, dtype=np.float32)
O3.flags.writeable = R3.flags.writeable = False  # programs capture them


# ---- programs, written once for both packages ----------------------------------------------------


def _ten(m: Any) -> Callable[..., Any]:
    """``sin(x) * y`` with a derivative by x that is ten times too large: rules are told apart."""

    @m.custom_jvp
    def f(x, y):
        return m.numpy.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 10 * m.numpy.cos(x) * dx * y + m.numpy.sin(x) * dy

    return f


def _ten_back(m: Any) -> Callable[..., Any]:
    """The same in reverse."""

    @m.custom_vjp
    def g(x, y):
        return m.numpy.sin(x) * y

    def fwd(x, y):
        return g(x, y), {"x": x, "rest": (y, None)}

    def bwd(held, ct):
        x, (y, _) = held["x"], held["rest"]
        return 10 * ct * m.numpy.cos(x) * y, ct * m.numpy.sin(x)

    g.defvjp(fwd, bwd)
    return g


def _scan(m: Any, f: Any) -> Callable[..., Any]:
    def program(x):
        c, ys = m.lax.scan(lambda c, y: (f(c, y), c * 2), x, R3)
        return c + ys.sum()

    return program


def _nested(m: Any) -> Callable[..., Any]:
    """A rule that calls another function with a rule."""
    inner = _ten(m)

    @m.custom_jvp
    def outer(x):
        return inner(x, 2.0) ** 2

    outer.defjvp(lambda p, t: (outer(*p), inner(p[0], t[0]) * 3))
    return outer


def _branching(m: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(x):
        return x if x > 0 else -x

    f.defjvp(lambda p, t: (f(*p), 2 * t[0] * p[0] if p[0] > 0 else t[0]))
    return f


def _tree(m: Any) -> Callable[..., Any]:
    @m.custom_vjp
    def f(d, n):
        return {"o": d["a"][0] * n, "i": n}

    def fwd(d, n):
        return f(d, n), {"n": n, "s": (d, None)}

    f.defvjp(fwd, lambda r, ct: ({"a": [ct["o"] * r["n"], None], "b": None}, None))
    return lambda d: f(d, 2)["o"]


def _method(m: Any) -> Callable[..., Any]:
    """Functions as arguments that are not differentiated."""

    @partial(m.custom_vjp, nondiff_argnums=(0, 2))
    def f(fun, x, power):
        return fun(x) ** power

    def bwd(fun, power, x, ct):
        return (ct * fun(x) * power,)

    f.defvjp(lambda fun, x, power: (f(fun, x, power), x), bwd)
    return lambda x: f(m.numpy.sin, x, 3)


def _named(m: Any) -> Callable[..., Any]:
    @partial(m.custom_jvp, nondiff_argnames=("n",))
    def f(x, n):
        return x**n

    f.defjvp(lambda n, p, t: (f(p[0], n), t[0] * n * 5))
    return lambda x: f(x, n=3)


def _each(m: Any) -> Callable[..., Any]:
    f = m.custom_jvp(lambda x, y, z=1.0: x * y * z)
    f.defjvps(lambda t, out, x, y, z: t * y * z, None, lambda t, out, x, y, z: t * out / z)
    return lambda x: f(x, 3.0) + f(x, y=x, z=x)


def _own_gradient(m: Any) -> Callable[..., Any]:
    @m.custom_gradient
    def f(x, y):
        return {"o": x**2 * y}, lambda ct: (ct["o"] * x * 3.0, ct["o"])

    return lambda x: f(x, 2.0 * x)["o"]


def _converted(m: Any) -> Callable[..., Any]:
    @partial(m.custom_vjp, nondiff_argnums=(0,))
    def squared(fun, y, *hoisted):
        return fun(y, *hoisted) ** 2

    def fwd(fun, y, *hoisted):
        return squared(fun, y, *hoisted), (y, hoisted)

    def bwd(fun, held, ct):
        y, hoisted = held
        _, back = m.vjp(fun, y, *hoisted)
        return back(7 * ct)

    squared.defvjp(fwd, bwd)

    def program(x):
        fun, hoisted = m.closure_convert(lambda y: m.numpy.sin(y) * x, 2.0)
        return squared(fun, 2.0, *hoisted)

    return program


def _at_zeros(m: Any) -> Callable[..., Any]:
    f = m.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        zero = m.custom_derivatives.SymbolicZero
        marks = [0.0 if isinstance(t, zero) else t for t in tangents]
        return primals[0] * primals[1], 3 * marks[0] + 5 * marks[1]

    f.defjvp(rule, symbolic_zeros=True)
    return lambda x: f(x, 2.0) + f(3.0, x)


def _perturbed(m: Any) -> Callable[..., Any]:
    f = m.custom_vjp(lambda x, y: (x * y, y))

    def fwd(x, y):
        return (x.value * y.value, y.value), 2.0 * x.perturbed + 3.0 * y.perturbed

    def bwd(r, cts):
        zero = m.custom_derivatives.SymbolicZero
        return r * cts[0], None if isinstance(cts[1], zero) else cts[1]

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return lambda x: f(x, 2.0)[0] + f(3.0, x)[0]


def _clip(m: Any) -> Callable[..., Any]:
    """The example of gradient clipping, in a loop."""

    @partial(m.custom_vjp, nondiff_argnums=(0,))
    def clipped(bound, x):
        return x

    clipped.defvjp(
        lambda bound, x: (x, None), lambda bound, _, ct: (m.numpy.clip(ct, -bound, bound),)
    )
    return lambda x: m.lax.fori_loop(0, 3, lambda i, c: clipped(1.0, c) * 4.0, x)


def _root(m: Any) -> Callable[..., Any]:
    def root(a):
        def newton(f, x):
            return m.lax.while_loop(lambda s: abs(f(s)) > 1e-5, lambda s: s - f(s) / (2 * s), x)

        return m.lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))

    return lambda x: root(x + 4.0)


A3 = fnarray.numpy.asarray(
    np.array([[3.0, 1.0, 0.0], [0.5, 2.0, 0.2], [0.1, 0.0, 1.5]], np.float32)
)


def _linear(m: Any) -> Callable[..., Any]:
    """Richardson's iteration; the same for the transposed system."""

    def solve(matvec, b):
        return m.lax.fori_loop(0, 60, lambda i, s: s + 0.3 * (b - matvec(s)), b)

    def program(x):
        a = m.numpy.asarray(np.asarray(A3)) * (1.0 + 0.1 * x)
        b = m.numpy.stack([x, 2 * x, x * x])
        return m.lax.custom_linear_solve(lambda v: a @ v, b, solve, solve).sum()

    return program


SCALAR = {
    "custom_jvp": lambda m: lambda x: _ten(m)(x, 2.0 * x),
    "custom_jvp-repeated": lambda m: lambda x: _ten(m)(_ten(m)(x, x), 2.0),
    "custom_jvp-of-jit": lambda m: m.jit(lambda x: _ten(m)(x, 2.0)),
    "custom_jvp-scan": lambda m: _scan(m, _ten(m)),
    "custom_jvp-nested": _nested,
    "custom_jvp-cond": lambda m: lambda x: m.lax.cond(x > 0, lambda x: _ten(m)(x, x), abs, x),
    "custom_vjp": lambda m: lambda x: _ten_back(m)(x, 2.0 * x),
    "custom_vjp-scan": lambda m: _scan(m, _ten_back(m)),
    "custom_vjp-of-jit": lambda m: m.jit(lambda x: _ten_back(m)(x, 2.0)),
    "nondiff_argnums": _method,
    "nondiff_argnames": _named,
    "defjvps": _each,
    "custom_gradient": _own_gradient,
    "closure_convert": _converted,
    "symbolic-zeros-jvp": _at_zeros,
    "symbolic-zeros-vjp": _perturbed,
    "clip": _clip,
    "custom_root": _root,
    "custom_linear_solve": _linear,
}
TRANSFORMS = {
    "value": lambda m, f: f(0.7),
    "grad": lambda m, f: m.grad(f)(0.7),
    "grad-grad": lambda m, f: m.grad(m.grad(f))(0.7),
    "vmap-grad": lambda m, f: m.vmap(m.grad(f))(m.numpy.asarray(R3) + 0.5),
    "grad-vmap": lambda m, f: m.grad(lambda x: m.vmap(f)(x).sum())(R3 + 0.5),
}
COMPILED = {
    "grad-jit": lambda m, f: m.grad(m.jit(f))(0.7),
    "jit-grad-vmap-jit": lambda m, f: m.jit(m.grad(lambda x: m.vmap(m.jit(f))(x).sum()))(R3 + 0.5),
}


def _same(got: Any, wanted: Any) -> None:
    got, wanted = fnarray.tree.leaves(got), jax.tree.leaves(wanted)
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted, strict=True):
        assert x.dtype == jax.numpy.asarray(y).dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize("name", SCALAR)
def test_derivatives_agree_with_jax(name):
    """Any nesting of transforms applies the rule where JAX does."""
    ours, theirs = SCALAR[name](fnarray), SCALAR[name](jax)
    compiled = COMPILED if name in ("custom_jvp", "custom_vjp", "clip") else {}
    chosen = {**TRANSFORMS, **compiled}
    if name in ("custom_gradient", "closure_convert"):
        del chosen["grad-grad"]  # their residuals are rules: tested below
    wanted = in_one(lambda: {how: f(jax, theirs) for how, f in chosen.items()})
    for how, transform in chosen.items():
        try:
            _same(transform(fnarray, ours), wanted[how])
        except AssertionError as error:
            raise AssertionError(f"{how}: {error}") from error


FORWARD = ("custom_jvp", "custom_jvp-nested", "nondiff_argnames", "defjvps", "symbolic-zeros-jvp")


@pytest.mark.parametrize("name", [*FORWARD, "custom_root"])
def test_forward_mode_agrees_with_jax(name):
    """Rules of forward mode serve ``jvp``, ``linearize`` and ``hessian``."""
    ours, theirs = SCALAR[name](fnarray), SCALAR[name](jax)
    _same(fnarray.jvp(ours, (0.7,), (1.0,)), jax.jvp(theirs, (0.7,), (1.0,)))
    _same(fnarray.linearize(ours, 0.7)[1](2.0), jax.linearize(theirs, 0.7)[1](2.0))
    _same(fnarray.hessian(ours)(0.7), jax.hessian(theirs)(0.7))


@pytest.mark.parametrize("make", [_ten, _ten_back], ids=["custom_jvp", "custom_vjp"])
def test_printed_graphs_are_those_of_jax(make):
    """Calls are printed as JAX prints them, alone and under transforms."""
    ours, theirs = make(fnarray), make(jax)

    def text(m, fun, *args):
        return re.sub(r"<lambda>|0x\w+", "_", str(m.make_jaxpr(fun)(*args)))

    for wrap, args in (
        (lambda m, f: f, (1.0, 2.0)),
        (lambda m, f: m.grad(f), (1.0, 2.0)),
        (lambda m, f: m.grad(m.jit(f)), (1.0, 2.0)),
        (lambda m, f: m.vmap(f, (0, None)), (O3, 2.0)),
    ):
        assert text(fnarray, wrap(fnarray, ours), *args) == text(jax, wrap(jax, theirs), *args)


def test_python_branches_on_values():
    """Outside of jit, functions and rules may ask for values, under grad to any order."""
    ours, theirs = _branching(fnarray), _branching(jax)
    for x in 2.0, -2.0:
        _same(fnarray.grad(ours)(x), jax.grad(theirs)(x))
        _same(fnarray.grad(fnarray.grad(ours))(x), jax.grad(jax.grad(theirs))(x))


def test_trees_none_and_integers():
    """None stands for zeros, for a whole argument or a part; integers need no cotangent."""
    d = {"a": [3.0, 4.0], "b": (1.0,)}
    wanted = jax.grad(_tree(jax))(d)
    _same(fnarray.grad(_tree(fnarray))(d), wanted)
    _same(fnarray.jit(fnarray.grad(fnarray.jit(_tree(fnarray))))(d), wanted)


def test_batched_operands_in_every_combination():
    """What is the same for all examples gets the sum of its cotangents."""
    for make in _ten, _ten_back:
        for axes in (0, None), (None, 0), (0, 0):
            args = [O3 * 0.3 if a == 0 else 0.3 for a in axes]

            def total(m, make=make, axes=axes):
                return lambda x, y: m.vmap(make(m), axes)(x, y).sum()

            for number in 0, 1:
                got = fnarray.grad(total(fnarray), number)(*args)
                _same(got, jax.grad(total(jax), number)(*args))
                if axes == (0, None):
                    _same(fnarray.grad(fnarray.jit(total(fnarray)), number)(*args), got)
    twice = fnarray.vmap(fnarray.vmap(_ten(fnarray), (0, None)), (None, 0))
    wanted = jax.vmap(jax.vmap(_ten(jax), (0, None)), (None, 0))
    got = fnarray.grad(lambda x, y: twice(x, y).sum(), (0, 1))(R3, O3)
    _same(got, jax.grad(lambda x, y: wanted(x, y).sum(), (0, 1))(R3, O3))


def test_collectives_in_rules():
    """Rules run within the mapped axis of their call."""

    def program(m):
        @m.custom_vjp
        def f(x):
            return x * m.lax.axis_size("i")

        f.defvjp(lambda x: (f(x), None), lambda _, ct: (m.lax.psum(ct, "i") * 0.5,))
        return m.grad(lambda x: (m.vmap(f, axis_name="i")(x) * R3).sum())

    _same(program(fnarray)(O3), program(jax)(O3))


def test_tracers_that_are_not_differentiated():
    """Arrays listed in nondiff_argnums of custom_jvp are constants, under jit then grad too."""

    @partial(fnarray.custom_jvp, nondiff_argnums=(0,))
    def f(a, x):
        return a * x

    f.defjvp(lambda a, p, t: (a * p[0], a * t[0] * 10))
    for fun in f, fnarray.jit(f):
        assert [float(g) for g in fnarray.grad(fun, (0, 1))(2.0, 3.0)] == [0.0, 20.0]
    got = fnarray.vmap(fnarray.grad(f, 1))(R3, O3)
    np.testing.assert_allclose(np.asarray(got), 10 * R3)


def test_third_order():
    """Rules are differentiated in turn."""
    f, g = (lambda x, m=m: _ten(m)(x, x) for m in (fnarray, jax))
    ours, theirs = f, g
    for _ in range(3):
        ours, theirs = fnarray.grad(ours), jax.grad(theirs)
    _same(ours(0.3), theirs(0.3))


def test_custom_gradient_twice():
    """The returned rule is differentiated as the function it is."""
    f = fnarray.custom_gradient(lambda x: (x**2, lambda ct: ct * x * x))
    assert float(fnarray.grad(fnarray.grad(f))(3.0)) == 6.0


def test_linear_functions_are_transposed():
    """linear_transpose goes through a call to its function."""
    f = fnarray.custom_jvp(lambda x: 3 * x)
    f.defjvp(lambda p, t: (f(*p), f(*t)))
    assert float(fnarray.linear_transpose(f, 1.0)(2.0)[0]) == 6.0
    assert float(fnarray.grad(f)(1.0)) == 3.0


def test_zero_from_primal():
    """Zeros of a value's tangents, as symbols and as arrays."""
    zero = fnarray.custom_derivatives.zero_from_primal(O3, symbolic_zeros=True)
    assert isinstance(zero, SymbolicZero)
    assert zero.aval.shape == (3,)
    assert not np.asarray(fnarray.custom_derivatives.zero_from_primal(O3)).any()
    assert fnarray.custom_derivatives.zero_from_primal(1).dtype == fnarray.float0


# ---- errors --------------------------------------------------------------------------------------


def _with_jvp(m, rule):
    f = m.custom_jvp(lambda x: {"a": m.numpy.sin(x)})
    f.defjvp(rule)
    return lambda x: m.jvp(f, (x,), (x,))


def _with_vjp(m, fwd, bwd):
    f = m.custom_vjp(lambda x, y: m.numpy.sin(x))
    f.defvjp(fwd, bwd)
    return lambda x: m.grad(lambda x: f(x, x[0]).sum())(x)


def _fwd(x, y):
    return x, None


BAD_RULES = {
    "no pair": (_with_jvp, (lambda p, t: {"a": p[0]},), "pair"),
    "three": (_with_jvp, (lambda p, t: (p[0], t[0], 1),), "pair"),
    "structures": (_with_jvp, (lambda p, t: ({"a": p[0]}, t[0]),), "structures"),
    "shape": (_with_jvp, (lambda p, t: ({"a": p[0]}, {"a": t[0][0]}),), r"result\['a'\]"),
    "dtype": (
        _with_jvp,
        (lambda p, t: ({"a": p[0]}, {"a": t[0].astype("int32")}),),
        r"float32\[3\].*int32\[3\]",
    ),
    "None": (_with_jvp, (lambda p, t: ({"a": p[0]}, {"a": None}),), "structures"),
    "forward no pair": (_with_vjp, (lambda x, y: x, lambda r, c: (c, c[0])), "residuals"),
    "backward no tuple": (_with_vjp, (_fwd, lambda r, c: c), "tuple of length"),
    "backward None": (_with_vjp, (_fwd, lambda r, c: None), "tuple of length"),
    "backward short": (_with_vjp, (_fwd, lambda r, c: (c,)), "tuple of length"),
    "backward tree": (_with_vjp, (_fwd, lambda r, c: ((c,), None)), "structure"),
    "backward shape": (_with_vjp, (_fwd, lambda r, c: (c[0], None)), r"output\[0\].*shapes"),
}


@pytest.mark.parametrize("name", BAD_RULES)
def test_rules_that_return_the_wrong_thing(name):
    """The error is of JAX's type, and names the rule's line and the leaf."""
    make, rules, said = BAD_RULES[name]
    with pytest.raises((TypeError, ValueError), match=said) as ours:
        make(fnarray, *rules)(O3)
    assert "test_custom_derivatives.py:" in str(ours.value)
    with pytest.raises((TypeError, ValueError)) as theirs:
        make(jax, *rules)(jax.numpy.asarray(O3))
    assert type(ours.value) is type(theirs.value)


def test_cotangents_of_the_wrong_dtype():
    """A cotangent of another dtype is an error, where JAX hands it on."""
    bad = _with_vjp(fnarray, _fwd, lambda r, c: (c.astype("int32"), None))
    with pytest.raises(ValueError, match="dtypes do not match"):
        bad(O3)


@pytest.mark.parametrize("under", [lambda f: f, fnarray.jit], ids=["eager", "jit"])
def test_rules_unlike_the_function(under):
    """Where the function has run, its rules' results are compared with its own."""
    f = fnarray.custom_jvp(fnarray.numpy.sin)
    f.defjvp(lambda p, t: (p[0][0], t[0][0]))
    g = fnarray.custom_vjp(fnarray.numpy.sin)
    g.defvjp(lambda x: ((x,), None), lambda r, c: c)
    if under is fnarray.jit:
        with pytest.raises(TypeError, match=r"float32\[\] while the function's is float32\[3\]"):
            fnarray.jvp(under(f), (O3,), (O3,))
        with pytest.raises(TypeError, match="structure"):
            fnarray.vjp(under(g), O3)
    else:
        assert fnarray.jvp(under(f), (O3,), (O3,))[0].shape == ()


def test_missing_rules():
    """A function without its rule cannot be called, as in JAX."""
    for m in fnarray, jax:
        with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function"):
            m.custom_jvp(lambda x: x)(1.0)
        with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function"):
            m.custom_vjp(lambda x: x)(1.0)


def test_reverse_rules_have_no_forward_mode():
    """jvp of a custom_vjp function, however reached, is a TypeError that says so."""
    f = _ten_back(fnarray)
    for bad in (
        lambda: fnarray.jvp(f, (1.0, 1.0), (1.0, 1.0)),
        lambda: fnarray.jvp(fnarray.jit(f), (1.0, 1.0), (1.0, 1.0)),
        lambda: fnarray.jvp(fnarray.vmap(f), (O3, O3), (O3, O3)),
        lambda: fnarray.linearize(f, 1.0, 1.0)[1](1.0, 1.0),
        lambda: fnarray.jacfwd(f)(1.0, 1.0),
    ):
        with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
            bad()


def test_closing_over_what_is_differentiated():
    """A rule says nothing of what its function closes over: differentiating it is an error."""

    def program(x):
        f = fnarray.custom_jvp(lambda y: x * y)
        f.defjvp(lambda p, t: (f(*p), x * t[0]))
        return f(x)

    with pytest.raises(UnexpectedTracerError, match="pass it as an argument"):
        fnarray.grad(program)(1.0)
    with pytest.raises(UnexpectedTracerError, match="Pass the value as an argument"):
        fnarray.grad(fnarray.jit(program))(1.0)
    np.testing.assert_allclose(np.asarray(fnarray.vmap(program)(R3)), R3 * R3)


def test_arguments_that_do_not_fit():
    """Names, counts and types of arguments are checked at the call."""
    f = _ten(fnarray)
    with pytest.raises(TypeError, match="could not be resolved to positional-only"):
        f(1.0, z=2.0)
    with pytest.raises(TypeError, match=r"args\[0\] of f .*'a'"):
        fnarray.jit(lambda: f("a", 1.0))()
    with pytest.raises(ValueError, match="nondiff_argnames='q'"):
        fnarray.custom_jvp(lambda x: x, nondiff_argnames=("q",))
    with pytest.raises(TypeError, match="Can't use ``defjvps`` with ``nondiff_argnums``"):
        fnarray.custom_jvp(lambda x, y: x, nondiff_argnums=(0,)).defjvps(None)
    held = fnarray.custom_vjp(lambda a, x: a * x, nondiff_argnums=(0,))
    held.defvjp(lambda a, x: (a * x, None), lambda a, r, c: (c,))
    with pytest.raises(UnexpectedTracerError, match="nondiff_argnums"):
        fnarray.jit(held)(1.0, 2.0)


SOLVES = {
    "matvec-tree": (TypeError, lambda lax: _solve(lax, lambda x: (x,), lambda mv, b: b)),
    "matvec-shape": (ValueError, lambda lax: _solve(lax, lambda x: x[0], lambda mv, b: b)),
    "solve-shape": (ValueError, lambda lax: _solve(lax, lambda x: x, lambda mv, b: b[0])),
    "f-tree": (TypeError, lambda lax: _find(lax, lambda x: (x,), lambda f, x: x)),
    "root-tree": (TypeError, lambda lax: _find(lax, lambda x: x, lambda f, x: (x, x))),
    "root-aux": (ValueError, lambda lax: _find(lax, lambda x: x, lambda f, x: x, has_aux=True)),
}


def _solve(lax, matvec, solve):
    return lax.custom_linear_solve(matvec, O3, solve)


def _find(lax, f, solve, **kwargs):
    return lax.custom_root(f, 1.0, solve, lambda g, y: y, **kwargs)


@pytest.mark.parametrize("name", SOLVES)
def test_solvers_that_return_the_wrong_thing(name):
    """Results unlike the unknown get JAX's error types."""
    kind, bad = SOLVES[name]
    with pytest.raises(kind):
        bad(fnarray.lax)
    with pytest.raises(kind):
        bad(jax.lax)


def test_linear_solve_needs_its_transpose():
    """Reverse mode without transpose_solve says what to give; symmetric systems need none."""

    def total(b, **kwargs):
        out = fnarray.lax.custom_linear_solve(lambda x: x * 2, b, lambda mv, b: b / 2, **kwargs)
        return out.sum()

    with pytest.raises(TypeError, match="transpose_solve required"):
        fnarray.grad(total)(O3)
    np.testing.assert_allclose(np.asarray(fnarray.grad(partial(total, symmetric=True))(O3)), 0.5)
