"""Time three programs of libraries written for JAX, under fnarray and under JAX.

``python asv_bench/clients.py [--repeats N] [NAME ...]`` starts processes of the two in turn. Each
reports the seconds of its first run, tracing and compiling included, and of a later one; the table
has the least of each, which a busy neighbour disturbed least. Needs the extra ``clients``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

STEADY = 20


def optax_loop():
    """Train a network of two layers for 200 steps of Adam, in a scan."""
    import jax
    import jax.numpy as jnp
    import optax

    keys = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(keys[0], (128, 8))
    y = jnp.sin(x.sum(1, keepdims=True))
    params = {
        "w1": jax.random.normal(keys[1], (8, 32)),
        "b1": jnp.zeros(32),
        "w2": jax.random.normal(keys[2], (32, 1)),
    }
    optimizer = optax.adam(1e-2)

    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] - y) ** 2)

    @jax.jit
    def train(params):
        def step(carry, _):
            params, state = carry
            value, grads = jax.value_and_grad(loss)(params)
            updates, state = optimizer.update(grads, state)
            return (optax.apply_updates(params, updates), state), value

        return jax.lax.scan(step, (params, optimizer.init(params)), length=200)

    return lambda: train(params)[1]


def diffrax_solve():
    """Solve a stiff-ish oscillator by Tsit5 with an adaptive step, for 32 parameters."""
    import diffrax as dfx
    import jax
    import jax.numpy as jnp

    def field(t, y, mu):
        return jnp.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def solve(mu):
        return dfx.diffeqsolve(
            dfx.ODETerm(field),
            dfx.Tsit5(),
            0.0,
            20.0,
            0.05,
            jnp.array([1.0, 0.5]),
            args=mu,
            stepsize_controller=dfx.PIDController(rtol=1e-6, atol=1e-8),
            saveat=dfx.SaveAt(ts=jnp.linspace(0, 20, 50)),
        ).ys

    run = jax.jit(jax.vmap(solve))
    mus = jnp.linspace(0.5, 3.0, 32)
    return lambda: run(mus)


def blackjax_nuts():
    """Draw 300 samples of a ten-dimensional density by NUTS."""
    import blackjax
    import jax
    import jax.numpy as jnp

    def density(x):
        return -0.5 * jnp.sum((x / jnp.linspace(0.5, 2.0, 10)) ** 2) - 0.1 * jnp.sum(x**4)

    nuts = blackjax.nuts(density, 0.2, jnp.ones(10))

    @jax.jit
    def run(key):
        def step(state, key):
            state, _ = nuts.step(key, state)
            return state, state.position

        return jax.lax.scan(step, nuts.init(jnp.zeros(10)), jax.random.split(key, 300))[1]

    return lambda: run(jax.random.key(0))


PROGRAMS = {f.__name__: f for f in (optax_loop, diffrax_solve, blackjax_nuts)}


def timed(name: str) -> dict[str, float]:
    """Run a program here; return the seconds of its first run and of a later one."""
    start = time.perf_counter()
    run = PROGRAMS[name]()
    run().block_until_ready()
    first = time.perf_counter() - start
    later = []
    for _ in range(STEADY):
        start = time.perf_counter()
        run().block_until_ready()
        later.append(time.perf_counter() - start)
    return {"first": first, "steady": min(later)}


def spawned(name: str, under: str, cache: str) -> dict[str, float]:
    """Run a program in a process of its own, with one thread and empty caches."""
    before = ["-m", "fnarray", "run"] if under == "fnarray" else []
    env = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "FNARRAY_CACHE_DIR": cache,
        "FNARRAY_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    }
    done = subprocess.run(
        [sys.executable, *before, __file__, "--here", name],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} under {under}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", help="run this program in this process")
    args = parser.parse_args()
    if args.here:
        print(json.dumps(timed(args.here)))
        return
    print(f"{'program':16}{'':8}{'fnarray':>10}{'JAX':>10}{'ratio':>8}")
    for name in args.names or PROGRAMS:
        best: dict[str, dict[str, float]] = {"fnarray": {}, "jax": {}}
        for _ in range(args.repeats):
            for under, known in best.items():
                with tempfile.TemporaryDirectory() as cache:
                    for kind, seconds in spawned(name, under, cache).items():
                        known[kind] = min(seconds, known.get(kind, seconds))
        for kind in ("first", "steady"):
            ours, theirs = best["fnarray"][kind], best["jax"][kind]
            print(f"{name:16}{kind:8}{ours:9.4f}s{theirs:9.4f}s{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
