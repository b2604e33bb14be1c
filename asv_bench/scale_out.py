"""Print what a program on workers costs: ratios of one run, against the targets of issue 13.

``python asv_bench/scale_out.py [--repeats N]``

A data-parallel step of 50 ms of work on each of two workers and 1 MB of gradients against one
worker; a step with next to no work; an all-reduce of 100 MB against the loopback's bandwidth, which
a pair of plain sockets measures in the same minute. The fastest of the repeats counts. The exit
status is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fnarray as fa
from fnarray import NamedSharding, P, distributed, lax

GRADIENT = 250_000  # float32: 1 MB
LARGE = 25_000_000  # float32: 100 MB


def fastest(repeats: int, *calls: Callable[[], Any]) -> list[float]:
    """Seconds of the fastest of each call, in turn, after one of each that is not counted.

    In turn, so that whoever else uses the machine slows all of them.
    """
    for call in calls:
        call()
    found = [float("inf")] * len(calls)
    for _ in range(repeats):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            found[k] = min(found[k], time.perf_counter() - start)
    return found


def placed(devices: Any, x: np.ndarray) -> tuple[Any, Any]:
    """A mesh, and rows on it."""
    mesh = fa.make_mesh((len(devices),), ("i",), devices=devices)
    return mesh, fa.device_put(x, NamedSharding(mesh, P("i")))


def worker(turns: int) -> Callable[[Any], Any]:
    """A step: work that takes a while, and gradients that all get the mean of."""

    def step(x: Any) -> Any:
        w = lax.fori_loop(0, turns, lambda k, w: w * 0.999 + 0.001, x[0])
        return lax.pmean(w, "i")

    return step


def data_parallel(devices: Any, repeats: int) -> float:
    """How many times the work of one worker two do in the same time."""
    x = np.ones((2, GRADIENT), np.float32)
    mesh, one = placed(devices[:1], x[:1])
    turns = 100
    while True:
        f = fa.shard_map(worker(turns), mesh=mesh, in_specs=P("i"), out_specs=P())
        (alone,) = fastest(repeats, lambda f=f: f(one).block_until_ready())
        if alone > 0.05:
            break
        turns = int(turns * max(1.5, 0.055 / alone))
    mesh, two = placed(devices, x)
    g = fa.shard_map(worker(turns), mesh=mesh, in_specs=P("i"), out_specs=P())
    alone, both = fastest(
        4 * repeats,
        lambda: f(one).block_until_ready(),
        lambda: g(two).block_until_ready(),
    )
    print(f"step of {1e3 * alone:.1f} ms on one worker: {1e3 * both:.1f} ms on two")
    return 2 * alone / both


def overhead(devices: Any, repeats: int) -> float:
    """Milliseconds of a step with next to no work."""
    mesh, x = placed(devices, np.ones((2, 4), np.float32))
    f = fa.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    (took,) = fastest(20 * repeats, lambda: f(x).block_until_ready())
    return 1e3 * took


def loopback(data: np.ndarray) -> None:
    """Send bytes over a pair of sockets."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as out,
        server.accept()[0] as there,
    ):
        sender = threading.Thread(target=out.sendall, args=(data,))
        sender.start()
        room, got = bytearray(1 << 20), 0
        while got < data.nbytes:
            got += there.recv_into(room)
        sender.join()


def all_reduce(devices: Any, repeats: int) -> float:
    """Time of an all-reduce of 100 MB, by that of its bytes over the loopback."""
    mesh, x = placed(devices, np.ones((2, LARGE), np.float32))
    f = fa.shard_map(
        lambda x: lax.psum(x, "i").sum()[None], mesh=mesh, in_specs=P("i"), out_specs=P()
    )
    # To the other worker and back: each link carries the value once.
    data = np.ones(2 * 4 * LARGE, np.uint8)
    took, bytes_take = fastest(
        2 * repeats,
        lambda: f(x).block_until_ready(),
        lambda: loopback(data),
    )
    print(f"all-reduce of 100 MB: {1e3 * took:.0f} ms, its bytes {1e3 * bytes_take:.0f} ms")
    return took / bytes_take


def main() -> int:
    """Measure all, print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with distributed.connect(processes=2, timeout=300) as cluster:
        rows = [
            ("two workers over one (1.7)", data_parallel(cluster.devices, repeats), 1.7, True),
            ("overhead, ms (5)", overhead(cluster.devices, repeats), 5.0, False),
            ("all-reduce by bytes (1.5)", all_reduce(cluster.devices, repeats), 1.5, False),
        ]
    missed = 0
    for name, value, target, more in rows:
        met = value >= target if more else value <= target
        missed += not met
        print(f"{name:32}{value:8.2f}  {'met' if met else 'missed'}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
