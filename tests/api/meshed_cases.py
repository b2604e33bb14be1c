"""Programs on a mesh, some of them wrong: the same table for JAX and fnarray.

Run as a script, ``python -m tests.api.meshed_cases FILE``, it writes what JAX makes of each, as the
oracle: values, types as `typeof` prints them, and how results are cut; of one that raises, the
class of the error. That takes JAX half a minute: it is kept, in ``meshed_oracle.npz``, and a slow
test compares.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .meshed_programs import CASES, A, W, cut, mesh_of, over

# ---- what is wrong -------------------------------------------------------------------------------


def wrong(kind: str, name: str, fun: Any) -> None:
    """Enter a program that raises."""
    CASES[f"wrong: {name}"] = kind, fun


_E = partial(wrong, "Explicit")
_A = partial(wrong, "Auto")
_E("add", lambda m: cut(m, A, "x") + cut(m, A, "y"))
_E("add twice", lambda m: cut(m, A, "x") + cut(m, A, None, "x"))
_E("add in jit", lambda m: m.jit(lambda a, b: a + b)(cut(m, A, "x"), cut(m, A, None, "x")))
_E("dot", lambda m: cut(m, A, "x", "y") @ cut(m, W, "y"))
_E("dot unlike", lambda m: cut(m, A, None, "x") @ cut(m, W, "y"))
_E("dot twice", lambda m: cut(m, A, "x") @ cut(m, W, None, "x"))
_E("reshape", lambda m: cut(m, A, "x", "y").reshape(2, 4, 4))
_E("reshape inner", lambda m: cut(m, A, None, "x").reshape(32))
_E("concatenate", lambda m: m.numpy.concatenate([cut(m, A, "x"), cut(m, A, "x", "y")]))
_E("sort", lambda m: m.numpy.sort(cut(m, A, "x"), 0))
_E("cumsum", lambda m: m.numpy.cumsum(cut(m, A, "x"), 0))
_E("gather", lambda m: cut(m, A, "x")[np.array([0, 1])])
_E("set", lambda m: cut(m, A, "x").at[0].set(1.0))
_E("roll", lambda m: m.numpy.roll(cut(m, A, "x"), 1, 0))
_E("scan rows", lambda m: m.lax.scan(lambda c, a: (c, a), 0.0, cut(m, A, "x")))
_E("scan carry", lambda m: m.lax.scan(lambda c, a: (c + a, a), m.numpy.zeros(8), cut(m, A, "x").T))
_E("loop", lambda m: m.lax.fori_loop(0, 2, lambda i, a: m.reshard(a, m.P("y")), cut(m, A, "x")))
_E("cond", lambda m: m.lax.cond(True, lambda a: m.reshard(a, m.P()), lambda a: a, cut(m, A, "x")))
_E("vmap", lambda m: m.vmap(lambda a, b: a + b)(cut(m, A, "x"), m.numpy.ones((8, 4))))
_E("uneven", lambda m: m.reshard(A[:6], m.P("x")))
_E("unknown", lambda m: m.reshard(A, m.P("z")))
_E("twice", lambda m: m.device_put(A, m.P("x", "x")))
_E("uneven put", lambda m: m.device_put(A[:6], m.P("x")))
_E("none", lambda m: m.reshard(A, None))
_E("asserted", lambda m: m.lax.with_sharding_constraint(cut(m, A, "x"), m.P("y")))
_E("in_shardings", lambda m: m.jit(lambda a: a, in_shardings=m.P("y"))(cut(m, A, "x")))
_E("no out_sharding", lambda m: m.sharding.auto_axes(lambda a: a)(A))
_E("other mesh", lambda m: cut(m, A, "x") + m.device_put(A, m.NamedSharding(
    m.make_mesh((8,), ("z",)), m.P("z"))))  # fmt: skip
_E("in_specs", lambda m: over(m, lambda a: a, m.P("x"), m.P("x"))(A))
_A("auto reshard", lambda m: m.reshard(A, m.P("x")))
_A("two trees", lambda m: m.jit(lambda a, b: a, in_shardings=(m.P("x"),))(A, A))
_A("by name", lambda m: m.jit(lambda a: a, in_shardings=m.P("x"))(a=A))
_A("uneven argument", lambda m: m.jit(lambda a: a, in_shardings=m.P("x"))(A[:6]))
_A("rank of result", lambda m: m.jit(lambda a: a.sum(), out_shardings=m.P("x"))(A))
_A("promise", lambda m: over(m, lambda a: a, m.P("x"), m.P())(A))
_A("promise of index", lambda m: over(m, lambda a: m.lax.axis_index("x"), m.P(), m.P())(A))
_A("carry", lambda m: over(m, lambda a: m.lax.scan(
    lambda c, r: (c + r, None), m.numpy.zeros(4), a)[0], m.P("x"), m.P("x"))(A))  # fmt: skip
_A("branches", lambda m: over(m, lambda a: m.lax.cond(
    a[0, 0] > 3, lambda: a.sum(0), lambda: m.numpy.zeros(4)), m.P("x"), m.P("x"))(A))  # fmt: skip
_A("pcast", lambda m: over(m, lambda a: m.lax.pcast(a, "x", to="varying"), m.P("x"), m.P("x"))(A))
_A("other axis", lambda m: over(
    m, lambda a: m.lax.psum(a, "y"), m.P("x"), m.P("x"), axis_names={"x"})(A))  # fmt: skip
_A("spec of other axis", lambda m: over(
    m, lambda a: a, m.P("x", "y"), m.P("x"), axis_names={"x"})(A))  # fmt: skip
_A("no such axis", lambda m: over(m, lambda a: a, m.P("x"), m.P("x"), axis_names={"q"})(A))
_A("parts", lambda m: m.make_array_from_callback((8, 4), m.NamedSharding(
    mesh_of(m, "Auto"), m.P("x")), lambda at: A))  # fmt: skip
_A("part types", lambda m: m.make_array_from_single_device_arrays((8, 4), m.NamedSharding(
    mesh_of(m, "Auto"), m.P("x")), [A]))  # fmt: skip
_A("devices", lambda m: m.device_put(A, m.devices()[3]) + m.device_put(A, m.devices()[2]))
_A("too large", lambda m: m.make_mesh((16,), ("x",)))


def outcome(m: Any, name: str) -> Any:
    """Return what a program gives: texts and leaves, or the class of its error."""
    kind, fun = CASES[name]
    with m.set_mesh(mesh_of(m, kind)):
        try:
            out = fun(m)
        except Exception as error:
            if not name.startswith("wrong"):
                raise
            return error
        texts = out["text"] if isinstance(out, dict) and "text" in out else []
        leaves = m.tree_util.tree_leaves(out["arrays"] if texts else out)
        said = [(str(m.typeof(x)), _spec(x)) for x in leaves]
    return texts, json.loads(json.dumps(said)), [np.asarray(x) for x in leaves]


def _spec(x: Any) -> list[Any]:
    """Return how an array is cut: names for each axis, as many as are cut."""
    spec = [None if p is None else p if isinstance(p, tuple) else (p,) for p in x.sharding.spec]
    while spec and not spec[-1]:
        spec.pop()
    return spec


#: What JAX gives, as this file writes it.
KEPT = Path(__file__).with_name("meshed_oracle.npz")


def main(path: str) -> None:
    """Write what JAX gives."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax

    arrays, told = {}, {}
    for name in CASES:
        found = outcome(jax, name)
        if isinstance(found, Exception):
            told[name] = [type(found).__name__]
            continue
        texts, said, values = found
        told[name] = [texts, said]
        arrays |= {f"{name}/{k}": x for k, x in enumerate(values)}
    np.savez_compressed(path, told=np.array(json.dumps(told)), **arrays)


def read(path: Path) -> dict[str, Any]:
    """Return what was written: texts, types and specs, and values; or an error's name."""
    with np.load(path) as kept:
        told = json.loads(str(kept["told"]))
        for name, entry in told.items():
            if not name.startswith("wrong"):
                count = range(len(entry[1]))
                entry.append([kept[f"{name}/{k}"] for k in count])
    return told


if __name__ == "__main__":
    main(sys.argv[1])
