"""Checkpointed functions have JAX's derivatives and graphs, and keep less for them."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.ad_checkpoint
import jax.numpy
import numpy as np
import pytest

import fnarray
import fnarray.ad_checkpoint
import fnarray.numpy
from fnarray.compile.cpu.target import CPU
from fnarray.compile.simplify import simplified
from fnarray.core.graph import subgraphs

W = fnarray.numpy.asarray(
    np.array([[0.1, 0.2, 0.3], [-0.2, 0.5, 0.1], [0.7, -0.3, 0.2]], np.float32)
)
X = fnarray.numpy.asarray(np.array([1, 2, 3], np.float32))
POLICIES = (
    None,
    "everything_saveable",
    "nothing_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "save_only_these_names('a')",
    "save_any_names_but_these('b')",
    "save_anything_except_these_names('a')",
    "save_from_both_policies(p.dots_saveable, p.save_only_these_names('a'))",
)


def _policy(m: Any, text: str | None) -> Any:
    return text and eval(f"p.{text}", {"p": m.checkpoint_policies})


def _arrays(m: Any) -> tuple[Any, Any]:
    return tuple(m.numpy.asarray(np.asarray(a)) for a in (W, X))


def _layers(m: Any, jit: bool = True) -> Any:
    def f(w, x):
        y = m.ad_checkpoint.checkpoint_name(m.numpy.sin(m.numpy.tanh(w @ x)), "a")
        last = lambda y: m.numpy.exp(w @ y)  # noqa: E731
        z = m.jit(last)(y) if jit else last(y)
        return (z * z).sum()

    return f


def _close(got: Any, wanted: Any) -> None:
    for x, y in zip(fnarray.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize("text", POLICIES)
def test_policies_change_no_value(text):
    """Whatever is kept, derivatives are those of the plain function, to second order."""
    f = _layers(fnarray)
    c = fnarray.checkpoint(f, policy=_policy(fnarray, text))
    _close(c(W, X), f(W, X))
    _close(fnarray.grad(c, (0, 1))(W, X), fnarray.grad(f, (0, 1))(W, X))
    _close(fnarray.jvp(c, (W, X), (W, X)), fnarray.jvp(f, (W, X), (W, X)))
    twice, plain = (fnarray.grad(lambda x, f=f: fnarray.grad(f, 1)(W, x).sum()) for f in (c, f))
    _close(twice(X), plain(X))


@pytest.mark.parametrize("text", [None, "dots_saveable"])
def test_compositions_agree_with_jax(text):
    """Under jit and vmap, inside and around, gradients are JAX's."""

    def program(m):
        c = m.checkpoint(_layers(m), policy=_policy(m, text))
        w, x = _arrays(m)
        both = m.numpy.stack([x, 2 * x])
        return (
            m.jit(m.grad(c))(w, x),
            m.vmap(m.grad(c, 1), (None, 0))(w, both),
            m.grad(lambda w: m.vmap(c, (None, 0))(w, both).sum())(w),
            m.jit(m.hessian(c, 1))(w, x),
        )

    _close(program(fnarray), program(jax))


def _text(m: Any, f: Any) -> str:
    return re.sub(r"0x\w+", "0x", str(m.make_jaxpr(f)(*_arrays(m))))


@pytest.mark.parametrize(
    "program",
    [
        lambda m, c: c,
        lambda m, c: m.grad(c),
        lambda m, c: m.grad(c, (0, 1)),
        lambda m, c: lambda *a: m.jvp(c, a, a),
        lambda m, c: m.vmap(c, (None, None), axis_size=2),
    ],
    ids=["call", "grad", "grads", "jvp", "vmap"],
)
def test_printed_graphs_are_those_of_jax(program):
    """Calls print as JAX's; the backward pass holds what is computed again."""

    def f(m):
        return lambda w, x: m.numpy.sin(w @ m.numpy.sin(w @ x)).sum()

    texts = [_text(m, program(m, m.checkpoint(f(m)))) for m in (fnarray, jax)]
    assert texts[0] == texts[1]


def _kept(m: Any, f: Any, *args: Any) -> list[str]:
    if m is fnarray:
        return [
            f"{aval.str_short(True).lstrip('~')} {text}"
            for aval, text in fnarray.ad_checkpoint.saved_residuals(f, *args)
        ]
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        jax.ad_checkpoint.print_saved_residuals(f, *args)
    return out.getvalue().splitlines()


def _shorn(lines: list[str]) -> list[str]:
    return [re.sub(r" from /.*", "", line) for line in lines]


@pytest.mark.parametrize("text", ["plain", *POLICIES[:6]])
def test_what_is_kept_is_what_jax_keeps(text):
    """print_saved_residuals names the same values, in the same order."""

    def kept(m):
        f = _layers(m, jit=False)
        f = f if text == "plain" else m.checkpoint(f, policy=_policy(m, text))
        return _shorn(_kept(m, f, *_arrays(m)))

    assert kept(fnarray) == kept(jax)


def test_residuals_name_the_users_line(capsys):
    """Each value is shown with the line that computed it."""
    fnarray.ad_checkpoint.print_saved_residuals(_layers(fnarray), W, X)
    out = capsys.readouterr().out
    assert re.search(r"f32\[3\] output of cos from \S+test_checkpoint.py:\d+ \(_layers", out)
    assert "f32[3,3] from the argument w" in out


def test_names_are_identities():
    """checkpoint_name goes through trees and transforms without a trace in the result."""

    def f(x):
        return fnarray.ad_checkpoint.checkpoint_name({"a": x * 2, "b": 1.0}, "n")["a"].sum()

    assert float(fnarray.grad(lambda x: f(x))(3.0)) == 2.0
    np.testing.assert_array_equal(np.asarray(fnarray.vmap(f)(X)), 2 * np.asarray(X))
    np.testing.assert_array_equal(np.asarray(fnarray.jit(fnarray.grad(f))(X)), 2.0)


# ---- computed again, and kept apart --------------------------------------------------------------


def _count(graph: Any, name: str) -> int:
    return sum(node.eqn.primitive.name == name for node in simplified(graph, CPU).nodes)


def _chain(m: Any) -> Any:
    return lambda x: m.numpy.tanh(m.numpy.tanh(m.numpy.tanh(x))).sum()


def test_forward_and_recomputation_are_not_merged():
    """prevent_cse keeps the second computation; without it the compiler shares the first."""
    counts = []
    for prevent in True, False:
        f = fnarray.checkpoint(_chain(fnarray), prevent_cse=prevent)
        graph = fnarray.make_jaxpr(fnarray.value_and_grad(f))(X).jaxpr
        counts.append(_count(graph, "tanh"))
    assert counts[1] == 3
    assert counts[0] > counts[1]


def test_optimization_barrier_keeps_equal_work_apart():
    """What is behind a barrier is not shared with what is before it."""

    def f(x, barrier):
        y = fnarray.lax.optimization_barrier(x) if barrier else x
        return fnarray.numpy.tanh(x) + fnarray.numpy.tanh(y)

    for barrier in True, False:
        graph = fnarray.make_jaxpr(lambda x, b=barrier: f(x, b))(X).jaxpr
        assert _count(graph, "tanh") == 1 + barrier
    np.testing.assert_allclose(
        np.asarray(fnarray.jit(lambda x: f(x, True))(X)), 2 * np.tanh(np.asarray(X)), rtol=1e-6
    )


def _scanned(m: Any, wrap: Any) -> Any:
    def f(x):
        def body(c, i):
            return m.numpy.sin(m.numpy.tanh(m.numpy.cos(c) * i)), c.sum()

        c, ys = m.lax.scan(wrap(body), x, np.arange(1, 6, dtype=np.float32))
        return c.sum() + ys.sum()

    return f


def test_scan_bodies_stack_less():
    """A checkpointed body stacks its carry alone for the backward scan."""

    def stacked(f):
        (forward, *_) = [
            e for e in fnarray.make_jaxpr(fnarray.grad(f))(X).eqns if e.primitive.name == "scan"
        ]
        return len(forward.outvars) - forward.params["num_carry"]

    plain, less = _scanned(fnarray, lambda b: b), _scanned(fnarray, fnarray.checkpoint)
    assert stacked(less) == 2  # the results of the body, and its carry
    assert stacked(plain) > stacked(less)
    _close(fnarray.grad(less)(X), jax.grad(_scanned(jax, jax.checkpoint))(np.asarray(X)))
    _close(fnarray.jit(fnarray.grad(less))(X), fnarray.grad(plain)(X))


def test_nested_checkpoints():
    """Checkpoints within checkpoints compute again what they need, to second order."""

    def f(m):
        inner = m.checkpoint(m.numpy.sin)
        return m.checkpoint(lambda x: inner(m.numpy.cos(m.checkpoint(m.numpy.tanh)(x))).sum())

    x = np.asarray(X)
    _close(fnarray.grad(f(fnarray))(X), jax.grad(f(jax))(x))
    _close(fnarray.hessian(f(fnarray))(X), jax.hessian(f(jax))(x))


def test_effects_inside_calls_are_kept(capsys):
    """What a called function prints is printed once by the gradient, though nobody reads it."""
    shown = fnarray.jit(lambda x: fnarray.debug.print("seen {}", x))

    @fnarray.checkpoint
    def f(x):
        shown(x)
        return x * x

    assert fnarray.jit(fnarray.grad(f))(3.0) == 6.0
    assert capsys.readouterr().out == "seen 3.0\n"


def test_custom_rules_and_branches_inside():
    """What is computed again may have rules of its own, and branches."""

    def f(m):
        g = m.custom_vjp(m.numpy.sin)
        g.defvjp(lambda x: (g(x), x), lambda x, ct: (10 * ct * m.numpy.cos(x),))
        return m.checkpoint(lambda x: m.lax.cond(x > 0, lambda x: g(g(x)), m.numpy.cos, x))

    for x in 0.5, -0.5:
        _close(fnarray.grad(f(fnarray))(x), jax.grad(f(jax))(x))


def test_closures_trees_and_static_arguments():
    """Closures are differentiated; functions and flags may be static, unhashable ones too."""
    ck = fnarray.checkpoint

    def closed(x):
        return ck(lambda y: fnarray.numpy.sin(x * y).sum())(2 * x)

    wanted = jax.grad(lambda x: jax.numpy.sin(x * 2 * x).sum())(np.asarray(X))
    _close(fnarray.grad(closed)(X), wanted)
    tree = ck(lambda d, n: fnarray.numpy.sin(d["a"] * n)[0])
    got = fnarray.grad(lambda d: tree(d, 3))({"a": X, "b": 1.0})
    assert float(got["b"]) == 0.0
    cosine = np.cos(np.asarray(X))
    by_place = ck(lambda x, f: f(x).sum(), static_argnums=1)
    by_name = ck(lambda x, *, f: f(x).sum(), static_argnames="f")
    by_list = ck(lambda x, fs: fs[0](x).sum(), static_argnums=(-1,))
    _close(fnarray.grad(by_place)(X, fnarray.numpy.sin), cosine)
    _close(fnarray.grad(by_name)(X, f=fnarray.numpy.sin), cosine)
    _close(fnarray.grad(by_list)(X, [fnarray.numpy.sin]), cosine)


def test_static_names_of_keywords_take_no_place():
    """A static argument that is given by name only hides none that is given by position."""

    def f(*xs, n):
        return xs[0] * xs[1] ** n

    g = fnarray.checkpoint(f, static_argnames="n")
    assert fnarray.grad(g, 1)(2.0, 3.0, n=2) == 12.0


def test_remat_is_checkpoint():
    """Both of JAX's names are there."""
    assert fnarray.remat is fnarray.checkpoint


def test_errors():
    """Bad functions, arguments and settings get errors that name them."""
    ck = fnarray.checkpoint
    with pytest.raises(TypeError, match="callable"):
        ck(3)
    with pytest.raises(TypeError, match="policy must be a callable"):
        ck(lambda x: x, policy="dots")
    with pytest.raises(TypeError, match="static_argnums"):
        ck(lambda x: x, concrete=True)
    with pytest.raises(ValueError, match="static_argnums"):
        ck(lambda x, y: x, static_argnums=3)(1.0, 2.0)
    with pytest.raises(TypeError, match=r"argument x of .*'a'"):
        ck(lambda x: x)("a")
    with pytest.raises(TypeError, match="returned 'a'"):
        ck(lambda x: "a")(1.0)
    with pytest.raises(fnarray.errors.TracerBoolConversionError, match="static_argnums"):
        ck(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(ValueError, match="both hold a"):
        fnarray.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def test_graphs_are_closed_over_nothing():
    """The held graphs have no constants of their own, so that equal ones are found."""
    f = fnarray.checkpoint(lambda x: fnarray.numpy.sin(x * W).sum())
    for eqn in fnarray.make_jaxpr(fnarray.grad(f))(X).eqns:
        assert all(not g.constvars for g in subgraphs(eqn.params))
