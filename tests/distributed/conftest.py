"""Clusters of processes on loopback: one for all tests that lose no worker."""

import warnings

import dask
import pytest

#: Seconds after which a wait is an error: far beyond what anything here takes.
TIMEOUT = 120


@pytest.fixture(scope="module", autouse=True)
def _no_ports():
    """Dask looks for an address to show, and warns where a port is taken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def connected(count, **options):
    """Connect to a cluster of processes that this makes."""
    from fnarray import distributed

    # Half the time of starting and restarting processes.
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    return distributed.connect(processes=count, timeout=TIMEOUT, **options)


@pytest.fixture(scope="session")
def cluster():
    """Four workers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with connected(4) as found:
            yield found
