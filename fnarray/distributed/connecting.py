"""`connect`: from a Dask cluster, or none, to devices."""

from __future__ import annotations

import platform
import secrets
from typing import Any

from distributed import Client, LocalCluster

import fnarray

from ..runtime.device import Device, platforms
from ..threads.cores import available_cores
from .cluster import Cluster
from .devices import clusters
from .running import Platform
from .session import Runtime

_current: list[Cluster] = []


def connect(
    client: Any = None,
    address: str | None = None,
    processes: int | None = None,
    *,
    workers: int = 1,
    timeout: float | None = 3600.0,
    patience: float = 60.0,
    lineage: int = 64,
    **options: Any,
) -> Cluster:
    """Connect to a Dask cluster, whose workers then are the devices of ``devices("dask")``.

    With nothing given a cluster of processes on this machine is started, one for each core. In a
    script that needs ``if __name__ == "__main__":``, as all that starts processes does.

    Parameters
    ----------
    client : distributed.Client, optional
        Of a cluster that runs.
    address : str, optional
        Of a scheduler.
    processes : int, optional
        How many workers to start here.
    workers : int
        How many to wait for, of a cluster that is starting.
    timeout : float, optional
        Seconds after which a wait for a result is an error, which names who did not answer; None
        for no limit. Whoever is waited for longer than 30 s is logged (``fnarray.distributed``).
    patience : float
        Seconds to wait for a worker in the place of one that was lost.
    lineage : int
        After this many steps that come of each other results get a second copy, on the next
        device: so many steps at most are done again when a worker is lost.
    **options
        Of `distributed.LocalCluster` (``memory_limit=``, ``security=``) or, with an address, of
        `distributed.Client`.

    Returns
    -------
    Cluster
        Has ``devices``, ``dashboard_link`` and ``close``; is a context manager.

    Raises
    ------
    ConnectionError
        Nothing answers at the address, or workers cannot be reached from here.
    RuntimeError
        Versions on workers are others than here, or there are no workers.
    """
    if sum(x is not None for x in (client, address, processes)) > 1:
        raise ValueError("connect: give one of client, address and processes, or none.")
    own: list[Any] = []
    if client is None:
        client = _client(address, processes, options, own)
    try:
        return _connected(client, own, timeout, patience, lineage, workers)
    except BaseException:
        for thing in own:
            thing.close()
        raise


def _client(
    address: str | None, processes: int | None, options: dict[str, Any], own: list[Any]
) -> Any:
    if address is not None:
        try:
            client = Client(address, **{"set_as_default": False, **options})
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionError(
                f"connect: no Dask scheduler answers at {address!r}: {error} Check the address "
                "(client.scheduler.address of a running cluster), the network between, and that "
                "both sides use TLS or neither does (security=)."
            ) from error
        own.append(client)
        return client
    cluster = LocalCluster(
        **{
            "n_workers": processes or available_cores(),
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": "127.0.0.1:0",
            **options,
        }  # type: ignore[arg-type]
    )
    own.append(cluster)
    client = Client(cluster, set_as_default=True)  # its own: Dask's collections use it
    own.insert(0, client)
    return client


def _connected(
    client: Any, own: list[Any], timeout: float | None, patience: float, lineage: int, count: int
) -> Cluster:
    found = _checked_versions(client, count)
    client.register_plugin(Runtime())
    workers = client.sync(client.scheduler.identity)["workers"]
    names = [workers[a]["name"] for a in sorted(found, key=lambda a: _order(workers[a]["name"]))]
    token = secrets.token_hex(16)
    cluster = Cluster(client, token, names, timeout, patience, lineage, own)
    clusters[token] = cluster
    try:
        cluster.bring_up(range(len(names)))
    except Exception as error:
        cluster.close()
        raise ConnectionError(
            f"connect: the workers of {client.scheduler.address} cannot be reached from here: "
            f"{error} Programs go to workers directly: run this process where their addresses can "
            "be reached (on the cluster's network)."
        ) from error
    _current.append(cluster)
    platforms["dask"] = Platform(_devices)
    return cluster


def _devices() -> list[Device]:
    while _current and _current[-1].closed:  # then the one before it counts
        _current.pop()
    if not _current:
        raise RuntimeError(
            "devices('dask'): no cluster is connected. Call fnarray.distributed.connect() first."
        )
    return list(_current[-1].devices)


def _order(name: Any) -> tuple[Any, ...]:
    return (0, name, "") if isinstance(name, int) else (1, 0, str(name))


# ---- versions ------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Return what must be the same here and on workers."""
    return {
        "fnarray": fnarray.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }


def _checked_versions(client: Any, workers: int) -> dict[str, dict[str, str]]:
    """Return versions by worker.

    Raises
    ------
    RuntimeError
        There are no workers, or their versions are others.
    """
    here = versions()
    try:
        client.wait_for_workers(workers, timeout=60)
    except TimeoutError as error:
        there = len(client.sync(client.scheduler.identity)["workers"])
        raise RuntimeError(
            f"connect: the cluster at {client.scheduler.address} has {there} workers after 60 s, "
            f"and {workers} are needed. Start workers (dask worker {client.scheduler.address})."
        ) from error
    try:
        found = client.run(versions)
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"connect: a worker has not got {error.name!r}. Install fnarray[distributed] "
            f"{here['fnarray']} on all workers."
        ) from error
    for address, there in found.items():
        for name, version in here.items():
            if there[name] != version:
                raise RuntimeError(
                    f"connect: {name} is {version} here and {there[name]} on the worker at "
                    f"{address}. Programs and kernels are tied to it: install {name} {version} "
                    "there, or start this process with what the workers have."
                )
    return found
