"""Orbax: a tree of arrays is written and read, a manager keeps the last steps of a training."""

import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

tree = {
    "w": jax.random.normal(jax.random.key(0), (4, 3)),
    "narrow": [jnp.arange(3, dtype=jnp.bfloat16), np.arange(3)],
    "step": 7,
}
out = {}
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    with ocp.StandardCheckpointer() as keeper:
        keeper.save(folder / "one", tree)
        keeper.wait_until_finished()
        for k, target in enumerate((None, jax.tree.map(ocp.utils.to_shape_dtype_struct, tree))):
            read = keeper.restore(folder / "one", target)
            assert jax.tree.structure(read) == jax.tree.structure(tree)
            out[f"exact_w{k}"] = np.asarray(read["w"])
            out[f"exact_narrow{k}"] = np.asarray(read["narrow"][0], np.float32)
            out[f"step{k}"] = np.asarray(read["step"])
            out[f"dtypes{k}"] = np.array([str(x.dtype) for x in jax.tree.leaves(read)[:2]])

    def step(w):
        return w - 0.1 * jax.grad(lambda w: jnp.sum((w - 1) ** 2))(w)

    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(folder / "many", options=options) as manager:
        w = tree["w"]
        for k in range(4):
            w = jax.jit(step)(w)
            manager.save(k, args=ocp.args.StandardSave({"w": w}))
        manager.wait_until_finished()
        out["steps"] = np.array(manager.all_steps())
        wanted = {"w": jax.ShapeDtypeStruct(w.shape, w.dtype, sharding=w.sharding)}
        read = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(wanted))
        out["trained"] = np.asarray(step(read["w"]))

np.savez(sys.argv[1], **out)
