"""Optimistix: roots, least squares, minima and fixed points, and derivatives through them."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx


def rosenbrock(x, args):
    return (1 - x[0]) ** 2 + args * (x[1] - x[0] ** 2) ** 2


def residuals(p, args):
    t, y = args
    return p["a"] * jnp.exp(-p["k"] * t) - y


def system(x, args):
    return jnp.array([x[0] ** 2 + x[1] - args, x[1] ** 2 - x[0]])


def main():
    t = jnp.linspace(0, 2, 20)
    y = 2.5 * jnp.exp(-1.3 * t)
    start = {"a": jnp.array(1.0), "k": jnp.array(0.5)}
    newton = optx.Newton(rtol=1e-5, atol=1e-5)

    def root(level):
        return optx.root_find(system, newton, jnp.array([1.0, 1.0]), level).value

    lm = optx.least_squares(residuals, optx.LevenbergMarquardt(1e-6, 1e-6), start, (t, y))
    gauss = optx.least_squares(residuals, optx.GaussNewton(1e-6, 1e-6), start, (t, y))
    dogleg = optx.least_squares(residuals, optx.Dogleg(1e-6, 1e-6), start, (t, y))
    bfgs = optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), jnp.array([-1.0, 1.0]), 10.0)
    nelder = optx.minimise(rosenbrock, optx.NelderMead(1e-4, 1e-4), jnp.array([-1.0, 1.0]), 10.0)
    fixed = optx.fixed_point(
        lambda x, a: jnp.cos(a * x), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(0.5), 0.9
    )
    bisection = optx.root_find(
        lambda x, _: x**3 - 2,
        optx.Bisection(1e-5, 1e-5),
        jnp.array(1.0),
        options={"lower": 0.0, "upper": 2.0},
    )
    return {
        "root": root(2.0),
        "root_jit": jax.jit(root)(3.0),
        "root_jac": jax.jacrev(root)(2.0),
        "root_fwd": jax.jacfwd(root)(2.0),
        "root_vmap": jax.vmap(root)(jnp.array([2.0, 2.5, 3.0])),
        "lm": jnp.stack([lm.value["a"], lm.value["k"]]),
        "gauss": jnp.stack([gauss.value["a"], gauss.value["k"]]),
        "dogleg": jnp.stack([dogleg.value["a"], dogleg.value["k"]]),
        "bfgs": bfgs.value,
        "nelder": nelder.value,
        "fixed": fixed.value,
        "bisection": bisection.value,
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
