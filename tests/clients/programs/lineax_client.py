"""Lineax: linear systems by several solvers, and derivatives through their solutions."""

import sys

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np


def main():
    k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
    a = jax.random.normal(k1, (5, 5))
    spd = a @ a.T + 5 * jnp.eye(5)
    tall = jax.random.normal(k2, (8, 5))
    b, long = jax.random.normal(k3, (5,)), jnp.arange(8.0)
    psd = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)

    def of(matrix, solver, vector, **settings):
        operator = lx.MatrixLinearOperator(matrix, **settings)
        return lx.linear_solve(operator, vector, solver).value

    def quadratic(x):
        return jnp.sum(x**2) + jnp.sum(jnp.sin(x)) + x @ spd @ x

    hessian = lx.JacobianLinearOperator(
        lambda x, _: jax.grad(quadratic)(x), b, tags=lx.positive_semidefinite_tag
    )
    return {
        "auto": of(a, lx.AutoLinearSolver(well_posed=True), b),
        "lu": of(a, lx.LU(), b),
        "qr": of(tall, lx.QR(), long),
        "svd": of(tall, lx.SVD(), long),
        "cholesky": lx.linear_solve(psd, b, lx.Cholesky()).value,
        "cg": lx.linear_solve(psd, b, lx.CG(rtol=1e-6, atol=1e-6)).value,
        "gmres": of(a, lx.GMRES(rtol=1e-5, atol=1e-5), b),
        "bicgstab": of(spd, lx.BiCGStab(rtol=1e-6, atol=1e-6), b),
        "hessian": lx.linear_solve(hessian, b, lx.CG(rtol=1e-6, atol=1e-6)).value,
        "diagonal": lx.linear_solve(lx.DiagonalLinearOperator(jnp.arange(1.0, 6)), b).value,
        "tridiagonal": lx.linear_solve(
            lx.TridiagonalLinearOperator(4 * jnp.ones(5), jnp.ones(4), -jnp.ones(4)), b
        ).value,
        "grad": jax.grad(lambda m: jnp.sum(of(m, lx.LU(), b) ** 2))(a),
        "jit_grad": jax.jit(jax.grad(lambda m: jnp.sum(of(m, lx.QR(), long) ** 2)))(tall),
        "vmap": jax.vmap(lambda v: of(a, lx.LU(), v))(jnp.eye(5)),
        "jvp": jax.jvp(lambda m: of(m, lx.LU(), b), (a,), (jnp.eye(5),))[1],
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
