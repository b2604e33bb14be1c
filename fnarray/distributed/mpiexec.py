"""Workers that ``mpiexec`` started: what they exchange goes through MPI, the rest through Dask.

Process 0 runs the program, and Dask's scheduler; the others are workers, and go no further.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import socket
import sys
from typing import Any

from distributed import LocalCluster, Worker

from . import ranks
from .cluster import Cluster
from .connecting import connect


def mpi(
    *, host: str | None = None, timeout: float | None = 3600.0, memory_limit: Any = "auto",
    **options: Any,
) -> Cluster:  # fmt: skip
    """Connect to the other processes that ``mpiexec`` started with this one, as workers.

    Process 0 returns, and goes on; for the others this call is the end: they serve it until it
    closes the connection, or ends, and exit. Programs and results are those of any other cluster.
    MPI replaces no process: the loss of one ends all, and checkpoints are what is left.

    Parameters
    ----------
    host : str, optional
        Name or address of the machine of process 0 on the network of all; by default what its name
        stands for, or the loopback where all are on one machine.
    timeout : float, optional
        As in `connect`.
    memory_limit : int, float or str
        Of each worker, as in `distributed.Worker`.
    **options
        Of `connect`: ``patience=``, ``lineage=``.

    Returns
    -------
    Cluster
        In process 0.

    Raises
    ------
    ModuleNotFoundError
        There is no mpi4py.
    RuntimeError
        There is one process alone, or MPI may not be called by several threads.
    """
    MPI = _library()
    comm = MPI.COMM_WORLD.Dup()
    if comm.Get_size() < 2:
        raise RuntimeError(
            "mpi: this is the only process. Start the program by mpiexec with one process more "
            "than there are to be workers: mpiexec -n 5 python program.py"
        )
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            f"mpi: MPI may not be called by several threads (level {MPI.Query_thread()} of "
            f"{MPI.THREAD_MULTIPLE}). Let mpi4py.rc.thread_level be 'multiple', its default, and "
            "use an MPI that has it."
        )
    together = len(set(comm.allgather(MPI.Get_processor_name()))) == 1
    if comm.Get_rank():
        _serve(comm, comm.bcast(None), memory_limit)
    found = host or ("127.0.0.1" if together else socket.gethostbyname(socket.gethostname()))
    scheduler = LocalCluster(n_workers=0, host=found, dashboard_address=f"{found}:0")
    comm.bcast(scheduler.scheduler_address)
    workers = comm.Get_size() - 1
    cluster = connect(
        address=scheduler.scheduler_address, workers=workers, timeout=timeout, **options
    )
    cluster._own.append(scheduler)
    atexit.register(cluster.close)  # the others wait for it
    return cluster


def _library() -> Any:
    try:
        from mpi4py import MPI
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "fnarray.distributed.mpi needs mpi4py, and an MPI library: pip install mpi4py",
            name=error.name,
        ) from error
    return MPI


def _serve(comm: Any, scheduler: str, memory_limit: Any) -> None:
    """Be a worker until the scheduler ends."""
    ranks.world, ranks.library = comm, _library()

    async def serve() -> None:
        # As those of a local cluster: what is no warning would be told of, with a traceback, at
        # the end of each connection.
        async with Worker(
            scheduler,
            name=comm.Get_rank() - 1,
            nthreads=1,
            memory_limit=memory_limit,
            silence_logs=logging.WARNING,
        ) as worker:
            await worker.finished()

    asyncio.run(serve())
    sys.exit(0)
