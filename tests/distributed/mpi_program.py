"""Programs with collectives on workers that mpiexec started, beside local devices."""

import sys

import numpy as np

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import NamedSharding, P, distributed, lax
from fnarray.sharding import AxisType

if __name__ == "__main__":
    cluster = distributed.mpi(timeout=100)

    n = len(cluster.devices)
    fa.config.update("num_cpu_devices", n)
    X = np.random.default_rng(0).standard_normal((n * n, 50_000 * n)).astype(np.float32)
    there = fa.make_mesh((n,), ("i",), devices=cluster.devices)
    here = fa.make_mesh((n,), ("i",), devices=fa.devices("cpu"), axis_types=AxisType.Auto)

    def body(x):
        def turn(c, _):
            return c + lax.psum(jnp.sum(c), "i") * 0.01, lax.pmean(c[0, 0], "i")

        total = lax.psum(x, "i")
        parts = lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True)
        turned = lax.ppermute(x, "i", [(k, (k + 1) % n) for k in range(n)])
        looped = lax.scan(turn, x, None, length=3)
        exchanged = lax.all_to_all(x, "i", 0, 0, tiled=True)
        return total, parts, turned, looped, lax.pmax(x, "i"), exchanged

    specs = (P(), P("i"), P("i"), (P("i"), P()), P(), P("i"))
    found, expected = (
        fa.tree.leaves(fa.shard_map(body, mesh=m, in_specs=P("i"), out_specs=specs)(X))
        for m in (there, here)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    x = fa.device_put(X, NamedSharding(there, P("i")))
    np.testing.assert_array_equal(fa.device_put(x, NamedSharding(there, P(None, "i"))), X)
    np.testing.assert_allclose(jnp.sum(x * 2), (X * 2).sum(dtype=np.float64), rtol=1e-3, atol=1)

    def kinds(dask_worker):
        (one,) = dask_worker.plugins["fnarray"].sessions.values()
        return [type(q.records).__name__ if q else "comm" for q in one.queues.values()]

    print(len(found), sorted({k for ks in cluster.client.run(kinds).values() for k in ks}))
    cluster.close()
    sys.exit(0)
