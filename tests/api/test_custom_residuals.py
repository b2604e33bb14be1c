"""What a forward rule hands to the way back."""

from __future__ import annotations

import numpy as np

import fnarray
from fnarray import lax


def test_numbers_among_residuals():
    """Python's numbers reach the way back as they are, under every transform: it may branch."""

    def bwd(residuals, ct):
        double, times, x = residuals
        return (ct * (2.0 if double else 1.0) * times * lax.cos(x),)

    @fnarray.custom_vjp
    def f(x):
        return lax.sin(x)

    f.defvjp(lambda x: (lax.sin(x), (True, 3, x)), bwd)
    x, want = np.float32(0.5), 6 * np.cos(np.float32(0.5))

    def scanned(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]

    for g in (f, fnarray.jit(f), fnarray.checkpoint(f), scanned):
        np.testing.assert_allclose(fnarray.grad(g)(x), want, rtol=1e-6)
        np.testing.assert_allclose(fnarray.jit(fnarray.grad(g))(x), want, rtol=1e-6)
    np.testing.assert_allclose(fnarray.vmap(fnarray.grad(f))(np.array([x, x])), want, rtol=1e-6)


def _affine():
    """Return a function whose rule adds 5, as rules that keep statistics do; and one's of None."""
    f = fnarray.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct + 5,))
    stop = fnarray.custom_vjp(lambda x: lax.sin(x))
    stop.defvjp(lambda x: (lax.sin(x), None), lambda _, ct: (None,))
    return f, stop


def test_rules_are_asked_where_the_cotangent_is_none():
    """A rule that another's None follows gets zeros; one whose result is unused is not called."""
    f, stop = _affine()

    def once(g, x):
        return lax.scan(lambda c, _: (g(c), None), x, None, length=1)[0]

    def both(x):
        return fnarray.jit(lambda x: (f(x), x))(x)

    def first_stopped(a, b):
        return stop(a) + b

    def rows(x):
        return lax.scan(lambda c, _: (c, f(c)), x, None, length=1)[1][0]

    programs = {
        "beside": (lambda x: stop(f(x)) + x, 6),
        "twice": (lambda x: stop(f(f(x))), 15),
        "sum": (lambda x: stop(lax.sin(f(x) + f(x))), 10),
        "inner": (lambda x: stop(fnarray.jit(f)(x)), 5),
        "outer": (lambda x: fnarray.jit(lambda x: stop(f(x)))(x), 5),
        "checkpoint": (lambda x: stop(fnarray.checkpoint(f)(x)), 5),
        "cond": (lambda x: stop(lax.cond(x > 0, f, lax.sin, x)), 5),
        "scan": (lambda x: stop(once(f, x)), 5),
        "rows": (lambda x: stop(rows(x)), 5),
        "body": (lambda x: once(lambda c: stop(f(c)), x), 5),
        "one of two": (
            lambda x: (lambda a, b: stop(a) + b)(*fnarray.jit(lambda x: (f(x), x))(x)),
            6,
        ),
        "unused": (lambda x: (f(x), x)[1], 1),
        "unused of two": (lambda x: both(x)[1], 1),
    }
    x = np.float32(1.5)

    def gradients(x):
        return {name: fnarray.grad(g)(x) for name, (g, _) in programs.items()}

    found = gradients(x)
    assert found == {name: want for name, (_, want) in programs.items()}
    assert fnarray.jit(gradients)(x) == found
    mapped = fnarray.vmap(fnarray.grad(programs["twice"][0]))(np.array([x, x]))
    np.testing.assert_array_equal(mapped, [15, 15])


def test_rules_whose_graphs_mix_values_and_tangents():
    """What no tangent reaches within a rule's jit, loop, branch or checkpoint is a value there."""

    def ratio(pair):
        return pair[1] / pair[0]

    def turn(_, c):
        return c[0] * 1.5 + 1, 2 * c[1] + c[1] * c[0]

    def scanned(d, s):
        c, rows = lax.scan(lambda c, x: (c + s * x, (2 * x, c)), s, np.float32([1, 2]) * d)
        return rows[1][1] / rows[0][1] + c

    def both(d, s):
        return 2 * d, s * d

    solves = {
        "loop": lambda d, s: ratio(lax.fori_loop(0, 3, turn, (d, s))),
        "jit": lambda d, s: ratio(fnarray.jit(both)(d, s)),
        "cond": lambda d, s: ratio(lax.cond(d > 0, both, lambda d, s: (d, s), d, s)),
        "checkpoint": lambda d, s: ratio(fnarray.checkpoint(both)(d, s)),
        "rows": scanned,
    }

    def ruled(solve):
        f = fnarray.custom_jvp(lambda x: solve(x, x))
        f.defjvp(lambda xs, ts: (f(xs[0]), solve(xs[0], ts[0])))
        return f

    def found(x):
        fs = {name: ruled(solve) for name, solve in solves.items()}
        return {
            name: (
                fnarray.grad(f)(x),
                fnarray.grad(lambda x, f=f: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])(x),
                fnarray.vmap(fnarray.grad(f))(lax.broadcast(x, (2,)))[1],
                fnarray.linearize(f, x)[1](np.float32(1)),
            )
            for name, f in fs.items()
        }

    x = np.float32(1.5)
    got = fnarray.jit(found)(x)
    assert fnarray.grad(ruled(solves["loop"]))(x) == got["loop"][0]
    for name, solve in solves.items():
        once = solve(x, np.float32(1))
        twice = solve(np.float32(solve(x, x)), np.float32(once))
        np.testing.assert_allclose(got[name], [once, twice, once, once], rtol=1e-5, err_msg=name)
