"""jaxlie: rotations and rigid motions, and a pose found by descent on its manifold."""

import sys

import jax
import jax.numpy as jnp
import jaxlie
import numpy as np


def main():
    key = jax.random.key(0)
    target = jaxlie.SE3.exp(jnp.array([0.5, -0.2, 0.3, 0.4, 0.1, -0.3]))
    points = jax.random.normal(key, (10, 3))
    seen = jax.vmap(target.apply)(points)

    def loss(pose):
        return jnp.sum((jax.vmap(pose.apply)(points) - seen) ** 2)

    @jax.jit
    def step(pose):
        return jaxlie.manifold.rplus(pose, -0.01 * jaxlie.manifold.grad(loss)(pose))

    pose, values = jaxlie.SE3.identity(), []
    for _ in range(20):
        values.append(loss(pose))
        pose = step(pose)
    rotation = jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3)
    return {
        "values": jnp.stack(values),
        "pose": pose.log(),
        "matrix": rotation.as_matrix(),
        "product": (rotation @ rotation.inverse()).as_matrix(),
        "adjoint": target.adjoint(),
        "random": jaxlie.SO3.sample_uniform(key).wxyz,
        "batch": jaxlie.SO3.exp(points).as_matrix(),
        "planar": jaxlie.SE2.from_xy_theta(1.0, 2.0, 0.5).as_matrix(),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
