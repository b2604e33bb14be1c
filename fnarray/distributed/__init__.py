"""Programs on the workers of a Dask cluster: the same as on local devices.

Needs the extra: ``pip install fnarray[distributed]``. Nothing of it is imported without.
"""

try:
    import distributed as _dask  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "fnarray.distributed needs Dask: pip install 'fnarray[distributed]'", name=error.name
    ) from error

from .checkpoints import checkpoint as checkpoint
from .checkpoints import restore as restore
from .chunks import as_chunk as as_chunk
from .cluster import Cluster as Cluster
from .collections import from_dask as from_dask
from .collections import to_dask as to_dask
from .connecting import connect as connect
from .mpiexec import mpi as mpi
from .sweeps import SweepError as SweepError
from .sweeps import map as map

__all__ = [
    "Cluster",
    "SweepError",
    "as_chunk",
    "checkpoint",
    "connect",
    "from_dask",
    "map",
    "restore",
    "to_dask",
]
__dir__ = __all__.copy
