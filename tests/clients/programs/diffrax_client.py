"""Diffrax: an oscillator by explicit, implicit and stochastic solvers, and a fitted parameter."""

import sys

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np


def field(t, y, args):
    return jnp.array([y[1], args * (1 - y[0] ** 2) * y[1] - y[0]])


def solved(mu, solver, controller, adjoint=None, **settings):
    return dfx.diffeqsolve(
        dfx.ODETerm(field),
        solver,
        0.0,
        3.0,
        0.05,
        jnp.array([1.0, 0.5]),
        args=mu,
        saveat=dfx.SaveAt(ts=jnp.linspace(0, 3, 7)),
        stepsize_controller=controller,
        adjoint=adjoint or dfx.RecursiveCheckpointAdjoint(),
        **settings,
    )


def main():
    jax.config.update("jax_enable_x64", True)  # the steps taken are counted
    pid = dfx.PIDController(rtol=1e-5, atol=1e-6)
    truth = solved(1.2, dfx.Tsit5(), pid).ys

    def misfit(mu, adjoint=None):
        return jnp.mean((solved(mu, dfx.Tsit5(), pid, adjoint).ys - truth) ** 2)

    @jax.jit
    def fit(mu):
        return jax.lax.fori_loop(0, 5, lambda _, m: m - 0.2 * jax.grad(misfit)(m), mu)

    noise = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=jax.random.key(3))
    terms = dfx.MultiTerm(
        dfx.ODETerm(lambda t, y, _: -y),
        dfx.ControlTerm(lambda t, y, _: jnp.diag(jnp.array([0.3, 0.2])), noise),
    )
    sde = dfx.diffeqsolve(
        terms, dfx.Euler(), 0.0, 1.0, 0.05, jnp.ones(2), saveat=dfx.SaveAt(steps=True), max_steps=32
    )
    tsit = solved(1.0, dfx.Tsit5(), pid)
    event = dfx.diffeqsolve(
        dfx.ODETerm(lambda t, y, _: jnp.array([y[1], -9.8])),
        dfx.Tsit5(),
        0.0,
        5.0,
        0.05,
        jnp.array([3.0, 0.0]),
        event=dfx.Event(lambda t, y, args, **kwargs: y[0] < 0),
    )
    dense = dfx.diffeqsolve(
        dfx.ODETerm(field),
        dfx.Dopri5(),
        0.0,
        2.0,
        0.1,
        jnp.array([1.0, 0.5]),
        args=1.0,
        saveat=dfx.SaveAt(dense=True),
    )
    return {
        "tsit": tsit.ys,
        "steps": tsit.stats["num_accepted_steps"],
        "dopri8": solved(1.0, dfx.Dopri8(), pid).ys,
        "heun": solved(1.0, dfx.Heun(), dfx.ConstantStepSize()).ys,
        "kvaerno": solved(5.0, dfx.Kvaerno5(), pid).ys,
        "grad": jax.jit(jax.grad(misfit))(0.8),
        "grad_backsolve": jax.grad(misfit)(0.8, dfx.BacksolveAdjoint()),
        "jvp": jax.jvp(lambda m: misfit(m, dfx.ForwardMode()), (0.8,), (1.0,))[1],
        "vmap": jax.vmap(lambda m: solved(m, dfx.Tsit5(), pid).ys[-1])(jnp.array([0.5, 1.0, 2.0])),
        "fit": fit(jnp.array(0.8)),
        "sde": sde.ys[:20],
        "event": event.ts,
        "dense": jax.vmap(dense.evaluate)(jnp.linspace(0, 2, 9)),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
