"""Programs on the workers of a Dask cluster: the same as on local devices.

Needs the extra: ``pip install fnarray[distributed]``. Nothing of it is imported without.
"""

from .cluster import Cluster as Cluster
from .connecting import connect as connect
