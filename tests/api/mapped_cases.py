"""Functions of one example that exchange values with the others: the same table for every map.

Each is ``make(module) -> fun(x)`` for JAX and fnarray alike, on an axis ``"i"`` of size 4.

Run as a script, the file writes what JAX's ``pmap`` makes of each, as the oracle of ours; and so
for functions of blocks of arrays on a mesh.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 4
GROUPS = ((0, 3), (2, 1))

RING = ((0, 1), (1, 2), (2, 3), (3, 0))

#: Name, example's shape, function.
CASES = {
    "psum": ((3,), lambda m: lambda x: m.lax.psum(x, "i")),
    "psum_of_a_tree": (
        (3,),
        lambda m: lambda x: m.lax.psum({"a": x, "b": (x * 2, x[0] > 1)}, "i"),
    ),
    "pmean": ((3,), lambda m: lambda x: x - m.lax.pmean(x, "i")),
    "pmax": ((3,), lambda m: lambda x: m.lax.pmax(-x, "i")),
    "pmin": ((3,), lambda m: lambda x: m.lax.pmin(m.numpy.cos(x), "i")),
    "count": ((), lambda m: lambda x: x * m.lax.psum(1, "i") + m.lax.axis_size("i")),
    "axis_index": ((), lambda m: lambda x: m.lax.axis_index("i") * 2),
    "all_gather": ((2,), lambda m: lambda x: m.lax.all_gather(x, "i")),
    "all_gather_last": ((2, 3), lambda m: lambda x: m.lax.all_gather(x, "i", axis=-1)),
    "all_gather_tiled": ((2, 3), lambda m: lambda x: m.lax.all_gather(x, "i", axis=1, tiled=True)),
    "psum_scatter": ((4, 2), lambda m: lambda x: m.lax.psum_scatter(x, "i")),
    "psum_scatter_tiled": (
        (2, 8),
        lambda m: lambda x: m.lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    ),
    "all_to_all": ((4, 2), lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 0)),
    "all_to_all_moved": ((2, 4, 3), lambda m: lambda x: m.lax.all_to_all(x, "i", 1, 2)),
    "all_to_all_back": ((2, 3, 4), lambda m: lambda x: m.lax.all_to_all(x, "i", 2, 0)),
    "all_to_all_tiled": ((2, 8), lambda m: lambda x: m.lax.all_to_all(x, "i", 1, 0, tiled=True)),
    "all_to_all_tiled_in_place": (
        (8, 2),
        lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 0, tiled=True),
    ),
    "ring": (
        (2,),
        lambda m: lambda x: m.lax.ppermute(x, "i", [(k, (k + 1) % 4) for k in range(4)]),
    ),
    "pshuffle": ((2,), lambda m: lambda x: m.lax.pshuffle(x, "i", [2, 0, 3, 1])),
    "pswapaxes": ((3, 4), lambda m: lambda x: m.lax.pswapaxes(x, "i", 1)),
    "softmax": (
        (3,),
        lambda m: lambda x: m.numpy.exp(x) / m.lax.psum(m.numpy.exp(x).sum(), "i"),
    ),
    "in_jit": ((3,), lambda m: m.jit(lambda x: m.lax.psum(x, "i") * m.lax.axis_index("i"))),
    "in_scan": (
        (5,),
        lambda m: lambda x: m.lax.scan(lambda c, r: (m.lax.pmean(c, "i") + r, c * r), x[0], x),
    ),
    "in_fori_loop": (
        (3,),
        lambda m: lambda x: m.lax.fori_loop(0, 4, lambda k, c: m.lax.pmean(c, "i") - 0.1 * x, x),
    ),
    "in_while_loop": (
        (),
        lambda m: (
            lambda x: m.lax.while_loop(
                lambda c: m.lax.psum(c, "i") < 50.0, lambda c: c * 1.5 + m.lax.pmax(c, "i"), x
            )
        ),
    ),
    "in_cond": (
        (3,),
        lambda m: (
            lambda x: m.lax.cond(
                m.lax.psum(x.sum(), "i") > 0,
                lambda v: m.lax.psum(v, "i"),
                lambda v: v * m.lax.axis_index("i"),
                x,
            )
        ),
    ),
    "inner_vmap": (
        (3,),
        lambda m: m.vmap(lambda x: m.lax.psum(x, ("i", "j")) - m.lax.pmean(x, "j"), axis_name="j"),
    ),
    "inner_index": (
        (3,),
        lambda m: m.vmap(lambda x: m.lax.axis_index(("i", "j")) + 0 * x, axis_name="j"),
    ),
    "inner_all_gather": (
        (3, 2),
        lambda m: m.vmap(lambda x: m.lax.all_gather(x, "i", axis=1), axis_name="j"),
    ),
    "inner_all_to_all": ((3, 4, 2), lambda m: m.vmap(lambda x: m.lax.all_to_all(x, "i", 0, 1))),
    "inner_psum_scatter": ((3, 4), lambda m: m.vmap(lambda x: m.lax.psum_scatter(x, "i"))),
    "grad": ((3,), lambda m: m.grad(lambda x: m.lax.psum((x**3).sum(), "i"))),
    "grad_of_pmean": ((3,), lambda m: m.grad(lambda x: (x * m.lax.pmean(x, "i")).sum())),
    "grad_of_all_gather": (
        (3,),
        lambda m: m.grad(lambda x: (m.lax.all_gather(x, "i") ** 2 * x).sum()),
    ),
    "grad_of_ppermute": (
        (3,),
        lambda m: m.grad(lambda x: (x**2 * m.lax.ppermute(x, "i", RING)).sum()),
    ),
    "grad_of_all_to_all": (
        (4, 2),
        lambda m: m.grad(lambda x: (x * m.lax.all_to_all(x, "i", 0, 0) ** 2).sum()),
    ),
    "grad_of_psum_scatter": (
        (4, 2),
        lambda m: m.grad(lambda x: (m.lax.psum_scatter(x, "i") ** 2).sum()),
    ),
    "jvp": (
        (3,),
        lambda m: lambda x: m.jvp(lambda v: m.lax.psum(v**2, "i") * v, (x,), (m.numpy.cos(x),)),
    ),
    "hessian": ((2,), lambda m: m.hessian(lambda x: m.lax.psum((x**3).sum(), "i"))),
    "grad_of_scan": (
        (4,),
        lambda m: m.grad(
            lambda x: m.lax.scan(lambda c, r: (m.lax.pmean(c * r, "i"), None), x[0], x)[0]
        ),
    ),
}


def argument(shape: tuple[int, ...]) -> np.ndarray:
    """Return a batch of examples: distinct, about 1, float32."""
    count = SIZE * int(np.prod(shape))
    values = np.random.default_rng(count).uniform(0.5, 1.5, count)
    return values.astype(np.float32).reshape(SIZE, *shape)


#: Mesh sizes by name are x: 2, y: 2. Name, specs (a string of names for each axis; "-" for none)
#: of arguments and of the result, function of blocks. Arguments are of shape (8, 4).
SHARDED = {
    "blocks": (["x,y"], "x,y", lambda m: lambda a: a * 2 + m.lax.axis_index("x")),
    "rows": (["x"], "x", lambda m: lambda a: m.numpy.cumsum(a, 0)),
    "both_on_one_axis": (["xy"], "xy", lambda m: lambda a: a - a.sum(0, keepdims=True)),
    "reversed_names": (["yx"], "xy", lambda m: lambda a: a + m.lax.axis_index(("x", "y"))),
    "columns": (["-,xy"], "-,xy", lambda m: lambda a: a / a.max()),
    "sum_of_columns": (["x,y"], "x", lambda m: lambda a: m.lax.psum(a, "y")),
    "sum_of_all": (["x,y"], "-", lambda m: lambda a: m.lax.psum(a.sum(), ("x", "y"))[None]),
    "product": (["x", "y"], "x,y", lambda m: lambda a, b: a @ b.T),
    "product_over_blocks": (
        ["-,y", "-,y"], "-", lambda m: lambda a, b: m.lax.psum(a @ b.T, "y"),
    ),
    "ring": (["x"], "x", lambda m: lambda a: m.lax.ppermute(a, "x", [(0, 1), (1, 0)])),
    "transposed": (
        ["xy"], "-,xy", lambda m: lambda a: m.lax.all_to_all(a, "x", 1, 0, tiled=True)[:, :1],
    ),
    "gathered": (["x"], "-", lambda m: lambda a: m.lax.all_gather(a, "x", tiled=True)),
    "scattered": (
        ["-,y"], "x,y", lambda m: lambda a: m.lax.psum_scatter(a, "x", tiled=True),
    ),
}  # fmt: skip


def spec_of(module: Any, text: str) -> Any:
    """Return a partition spec written as names for each axis, ``-`` for none."""
    entries = [None if e == "-" else tuple(e) for e in text.split(",")]
    return module.sharding.PartitionSpec(*entries)


def sharded(module: Any, name: str) -> tuple[Any, list[np.ndarray]]:
    """Return a case's function on whole arrays, and its arguments."""
    ins, out, make = SHARDED[name]
    mesh = module.sharding.Mesh(np.array(module.devices()[:4]).reshape(2, 2), ("x", "y"))
    specs = tuple(spec_of(module, s) for s in ins)
    fun = module.shard_map(
        make(module), mesh=mesh, in_specs=specs, out_specs=spec_of(module, out), check_vma=False
    )
    rng = np.random.default_rng(len(name))
    return fun, [rng.uniform(0.5, 1.5, (8, 4)).astype(np.float32) for _ in ins]


#: Results that have no derivative, in JAX or at all.
FLAT = {"pmax", "pmin", "in_while_loop", "axis_index"}
SMOOTH = [n for n in CASES if "grad" not in n and n != "hessian" and n not in FLAT]


def loss(module: Any, name: str) -> Any:
    """Return a number that all results of a case under vmap have a part in."""
    mapped = module.vmap(CASES[name][1](module), axis_name="i")

    def fun(x: Any) -> Any:
        outs = module.tree_util.tree_leaves(mapped(x))
        return sum((o * (1.0 + o)).sum() for o in outs if o.dtype == np.float32)

    return fun


def main(path: str) -> None:
    """Write what JAX's ``pmap``, ``shard_map`` and derivatives of maps give."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    import jax

    results = {}
    for name, (shape, make) in CASES.items():
        out = jax.pmap(make(jax), axis_name="i")(argument(shape))
        results[name] = jax.tree_util.tree_leaves(jax.device_get(out))
    for name in SMOOTH:
        gradient = jax.jit(jax.grad(loss(jax, name)))(argument(CASES[name][0]))
        results["gradient", name] = np.asarray(gradient)
    for name in SHARDED:
        fun, args = sharded(jax, name)
        results["sharded", name] = np.asarray(fun(*args))
        squared = jax.grad(lambda *a, fun=fun: (fun(*a) ** 2).sum())
        results["grad", name] = np.asarray(jax.jit(squared)(*args))
    Path(path).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
