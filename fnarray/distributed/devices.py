"""Devices that are workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from ..runtime.device import Device

#: Clusters by their secret tokens, which devices carry.
clusters: WeakValueDictionary[str, Any] = WeakValueDictionary()


class WorkerDevice(Device):
    """A worker: a place where arrays live and programs run.

    Attributes
    ----------
    name : str
        The worker's.
    token : str
        Of the cluster.
    """

    __slots__ = ("name", "token")

    def __init__(self, number: int, name: str, token: str):
        super().__init__(number, "dask", number)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "token", token)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerDevice) and (self.id, self.token) == (other.id, other.token)

    def __hash__(self) -> int:
        return hash((self.id, self.token))

    def __repr__(self) -> str:
        return f"DaskDevice(id={self.id}, worker={self.name!r})"


def cluster_of(devices: Iterable[Any], what: str) -> Any:
    """Return the cluster that devices belong to.

    Raises
    ------
    ValueError
        They are of several, or of none that is connected.
    """
    tokens = {getattr(d, "token", None) for d in devices}
    if len(tokens) != 1 or None in tokens:
        raise ValueError(
            f"{what}: devices of one cluster are needed, got {sorted(map(str, devices))}. A mesh "
            "is of workers (fnarray.devices('dask')) or of local devices, not of both."
        )
    (token,) = tokens
    found = clusters.get(str(token))
    if found is None or found.closed:
        raise RuntimeError(
            f"{what}: the cluster of these devices is closed. connect() anew, and make the mesh of "
            "its devices."
        )
    return found
