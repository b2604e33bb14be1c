"""`connect`: from a Dask cluster, or none, to devices."""

from __future__ import annotations

import asyncio
import platform
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dask.config import get as configured
from dask.utils import parse_timedelta
from distributed import Client, LocalCluster, Security
from distributed.comm.core import connect as open_comm

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
    TypeError, ValueError
        The client is none, the address no string, or the number of processes not positive.
    """
    if sum(x is not None for x in (client, address, processes)) > 1:
        raise ValueError("connect: give one of client, address and processes, or none.")
    if client is not None and not isinstance(client, Client):
        raise TypeError(
            f"connect: client must be a distributed.Client, got {client!r}. The address of a "
            "scheduler is given as address=, a number of processes as processes=."
        )
    if processes is not None and (not isinstance(processes, int) or processes < 1):
        raise ValueError(
            f"connect: processes must be a positive number of workers to start here, got "
            f"{processes!r}. With nothing given there is one for each core."
        )
    if address is not None and not isinstance(address, str):
        raise TypeError(
            f"connect: address must be a scheduler's, such as 'tcp://host:8786', got {address!r}."
        )
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
            _check_scheduler(address, options)
            client = Client(address, **{"set_as_default": False, **options})
        except (OSError, TypeError, ValueError) as error:
            raise ConnectionError(
                f"connect: no Dask scheduler answers at {address!r}: {str(error).rstrip('.')}. "
                "Check the address (client.scheduler.address of a running cluster), the network "
                "between, and that both sides use TLS or neither does (security=)."
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


def _check_scheduler(address: str, options: Mapping[str, Any]) -> None:
    """Raise where no scheduler answers: Dask's client would wait for ever for one that is mute."""
    if address.startswith("inproc:"):  # of this process: it answers
        return
    seconds = parse_timedelta(configured("distributed.comm.timeouts.connect"))
    security = options.get("security") or Security()
    if not isinstance(security, Security):  # True or a dict, as the client reads them
        security = Security.temporary() if security is True else Security(**security)

    async def kind() -> str:
        arguments = security.get_connection_args("client")
        try:
            async with asyncio.timeout(1.5 * seconds):  # one that accepts and is mute has no other
                comm = await open_comm(address, timeout=seconds, **arguments)
                try:
                    await comm.write({"op": "identity", "reply": True})
                    return (await comm.read())["type"]
                finally:
                    comm.abort()
        except TimeoutError as error:
            raise TimeoutError(f"what is there is silent for {1.5 * seconds:g} s.") from error

    with ThreadPoolExecutor(1) as pool:  # this thread may have an event loop that runs
        found = pool.submit(asyncio.run, kind()).result()
    if found != "Scheduler":
        raise ValueError(f"it is the address of a {found}.")


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
