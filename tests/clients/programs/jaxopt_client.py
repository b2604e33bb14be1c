"""JAXopt: minima by gradient descent, L-BFGS and projection, and derivatives through them."""

import sys

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np


def main():
    k1, k2 = jax.random.split(jax.random.key(0))
    x = jax.random.normal(k1, (30, 4))
    y = x @ jnp.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * jax.random.normal(k2, (30,))

    def ridge(w, penalty):
        return jnp.mean((x @ w - y) ** 2) + penalty * jnp.sum(w**2)

    def solved(penalty):
        return jaxopt.LBFGS(ridge, maxiter=30, tol=1e-6).run(jnp.zeros(4), penalty).params

    def least(w, penalty):
        return jnp.mean((x @ w - y) ** 2)

    gradient = jaxopt.GradientDescent(ridge, maxiter=200, tol=1e-5)
    # As close as single precision goes: stopped before, its last step depends on every rounding.
    projected = jaxopt.ProjectedGradient(
        least, projection=jaxopt.projection.projection_non_negative, maxiter=500, tol=1e-6
    )
    lasso = jaxopt.ProximalGradient(
        jaxopt.objective.least_squares, prox=jaxopt.prox.prox_lasso, maxiter=50
    )
    newton = jaxopt.GaussNewton(lambda w: jnp.tanh(x @ w) - jnp.tanh(y), maxiter=10)
    root = jaxopt.Bisection(lambda x, a: x**3 - a, 0.0, 3.0, tol=1e-5)
    return {
        "lbfgs": solved(0.1),
        "gradient": gradient.run(jnp.zeros(4), 0.1).params,
        "implicit": jax.jacobian(solved)(0.1),
        "projected": projected.run(jnp.zeros(4), hyperparams_proj=None, penalty=0.0).params,
        "lasso": lasso.run(jnp.zeros(4), hyperparams_prox=0.1, data=(x, y)).params,
        "newton": newton.run(0.1 * jnp.ones(4)).params,
        "root": root.run(None, a=5.0).params,
        "simplex": jaxopt.projection.projection_simplex(jnp.array([0.3, 1.2, -0.5])),
        "logistic": jaxopt.loss.multiclass_logistic_loss(1, jnp.array([0.1, 0.5, -0.2])),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
