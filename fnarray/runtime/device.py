"""Devices: the CPU cores that `pmap` may spread its rows over, and GPUs."""

from __future__ import annotations

import platform as machine
from collections.abc import Callable
from enum import Enum, auto
from functools import cache
from typing import Any, Protocol

from ..config import config
from ..core import hooks
from ..core.array import default
from ..core.frozen import frozen
from ..core.logs import Log
from ..threads.cores import available_cores, has_driver

#: How many CPU devices there are where no setting says; another number where JAX is stood in for.
default_count: Callable[[], int] = available_cores


#: Names of kinds of memory, the default first: of the processor, they are one.
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class Space(Enum):
    """Where `device_put` is to put an array: a word only, where there is one memory."""

    Device = auto()
    Host = auto()
    Any = auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


@frozen
class Memory:
    """Where a device keeps arrays."""

    kind: str
    platform: str
    process_index: int
    device: int

    @property
    def id(self) -> int:
        """Its number among all: each device has one of each kind."""
        kinds = _kinds_of(self.platform)
        return self.device * len(kinds) + kinds.index(self.kind)

    @property
    def _name(self) -> str:
        return f"{self.platform}_device" if self.kind == "device" else self.kind

    def __repr__(self) -> str:
        return f"{self._name}_{self.id}".upper()

    def __str__(self) -> str:
        name = self._name.title().replace("_", "") + "Memory"
        return f"{name}(id={self.id}, process_index={self.process_index}, client={self.platform})"


def _kinds_of(platform: str) -> tuple[str, ...]:
    return MEMORY_KINDS[:1] if platform == "gpu" else MEMORY_KINDS


@frozen
class Device:
    """A place where arrays live and programs run.

    Attributes
    ----------
    id : int
        Unique in the process.
    platform : str
        ``"cpu"`` or ``"gpu"``.
    device_kind : str
        What the machine calls itself.
    process_index : int
        Of the process that owns it; 0.
    """

    id: int
    platform: str = "cpu"
    process_index: int = 0

    @property
    def device_kind(self) -> str:
        """Name of the kind of hardware; a GPU's own."""
        return self._gpu().name if self.platform == "gpu" else self.platform

    @property
    def host_id(self) -> int:
        """The owning process."""
        return self.process_index

    @property
    def client(self) -> Client:
        """All devices of the platform."""
        return Client(self.platform)

    @property
    def local_hardware_id(self) -> int:
        """Number of the device in its process."""
        return self.id

    @property
    def compute_capability(self) -> str:
        """Of a GPU, such as ``"9.0"``.

        Raises
        ------
        AttributeError
            The device is none.
        """
        if self.platform != "gpu":
            raise AttributeError(f"{self!r} has no compute_capability: it is no GPU")
        number = self._gpu().capability.removeprefix("sm_")
        return f"{number[:-1]}.{number[-1]}"

    def memory_stats(self) -> dict[str, int] | None:
        """Return bytes that arrays hold on a GPU, now and at most, and its memory; else None."""
        return self._gpu().memory_stats() if self.platform == "gpu" else None

    def default_memory(self) -> Memory:
        """Return the memory where its arrays are."""
        return self.addressable_memories()[0]

    def addressable_memories(self) -> list[Memory]:
        """Return its memories: of the processor, one under each name."""
        own = self.platform, self.process_index, self.id
        return [Memory(kind, *own) for kind in _kinds_of(self.platform)]

    def memory(self, kind: str) -> Memory:
        """Return the memory of a kind, one of `MEMORY_KINDS`.

        Raises
        ------
        ValueError
            The device has none of that kind.
        """
        found = {memory.kind: memory for memory in self.addressable_memories()}
        if kind not in found:
            raise ValueError(
                f"Could not find memory addressable by {self!r} of kind {kind!r}: it has "
                f"{', '.join(found)}."
            )
        return found[kind]

    def _gpu(self) -> Any:
        from ..compile.cuda.device import gpu

        return gpu(self.id)

    @property
    def architecture(self) -> str:
        """The machine's instruction set."""
        return machine.machine()

    def __str__(self) -> str:
        return f"{'cuda' if self.platform == 'gpu' else self.platform}:{self.id}"

    def __repr__(self) -> str:
        kind = "Cuda" if self.platform == "gpu" else self.platform.capitalize()
        return f"{kind}Device(id={self.id})"


class Platform(Protocol):
    """Devices of a kind of their own, and how arrays and programs get to them.

    Whoever provides one registers it in `platforms`. Its arrays are `ArrayElsewhere`.
    """

    def devices(self) -> list[Device]:
        """Return its devices."""
        ...

    def put(self, x: Any, sharding: Any) -> Any:
        """Return an array's elements on devices, by a sharding."""
        ...

    def from_callback(self, shape: Any, sharding: Any, data_callback: Any, dtype: Any) -> Any:
        """Return an array whose parts a function makes where they are."""
        ...

    def spmd(self, t: Any, leaves: Any, mesh: Any, ins: Any, outs: Any, name: str) -> Any:
        """Run a function that was traced on one device's part on all."""
        ...

    def on_host(
        self, values: Any, jaxpr: Any, mesh: Any, in_names: Any, out_names: Any, name: str
    ) -> Any:
        """Run what is written for each device on arrays of this process."""
        ...

    def caller(self, graph: Any, consts: Any, out_spec: Any) -> Any:
        """Return a call of a program of whole arrays."""
        ...

    def evaluate(self, prim: Any, args: Any, params: Any) -> Any:
        """Run one operation where its operands lie."""
        ...


#: By the name that devices have for it; none is of this process's own.
platforms: dict[str, Platform] = {}


def platform_of(devices: Any) -> Platform | None:
    """Return the platform of some devices; None for this process's own."""
    for device in devices if platforms else ():
        if found := platforms.get(getattr(device, "platform", "")):
            return found
    return None


@cache
def _device(i: int) -> Device:
    return Device(i)


def processor() -> Device:
    """Return the device whose memory is the host's."""
    return _device(0)


_NAMES = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}


def allowed() -> tuple[str, ...]:
    """Return the platforms that the settings allow, the default first.

    Raises
    ------
    RuntimeError
        They name one that there is not.
    """
    if not config.platforms:
        return ("gpu", "cpu") if has_driver() and _gpus() else ("cpu", "gpu")
    names = [n.strip() for n in config.platforms.split(",") if n.strip()]
    if unknown := [n for n in names if n not in _NAMES]:
        raise RuntimeError(
            f"Unknown backend {unknown[0]!r} in the setting platforms (FNARRAY_PLATFORMS, "
            "JAX_PLATFORMS). Available backends are ['cpu', 'gpu']."
        )
    return tuple(_NAMES[n] for n in names)


@cache
def _gpus() -> tuple[Device, ...]:
    """Return the GPUs of a machine that has a driver; none where it cannot be used."""
    from ..compile.cuda.device import count

    try:
        return tuple(Device(i, "gpu") for i in range(count()))
    except RuntimeError as error:
        Log("fnarray").warning("the GPU is not used: %s", error)
        return ()


def default_device() -> Device:
    """Return the device of values that are nowhere yet."""
    chosen = config.default_device
    if isinstance(chosen, Device):
        return chosen
    return devices(None if chosen is None else str(chosen))[0]


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of a platform.

    Parameters
    ----------
    backend : str, optional
        ``"cpu"``, ``"gpu"`` (also ``"cuda"``), or ``"dask"``: workers of the cluster that was
        connected last. By default GPUs where there are any, and the setting ``platforms``
        (``FNARRAY_PLATFORMS``) does not say otherwise.

    Raises
    ------
    RuntimeError
        There is no such platform, or none of its devices.
    """
    if backend in platforms:
        return platforms[backend].devices()
    if backend == "dask":
        raise RuntimeError(
            "devices('dask'): no cluster is connected. Call fnarray.distributed.connect() first."
        )
    if backend is not None and backend not in _NAMES:
        raise RuntimeError(f"Unknown backend {backend!r}. Available backends are ['cpu', 'gpu'].")
    if backend is None:
        platform = allowed()[0]
    elif (platform := _NAMES[backend]) not in allowed():
        raise RuntimeError(
            f"Unknown backend {backend!r}: the setting platforms allows {config.platforms!r} alone."
        )
    if platform == "gpu":
        from ..compile.cuda.device import count

        found = [Device(i, "gpu") for i in range(count())]
        # Where no file told of a driver (Jetson), or settings came late: from here on they count.
        default.find = find_default
        return found
    return [_device(i) for i in range(config.num_cpu_devices or default_count())]


class Client:
    """The devices of one platform.

    Attributes
    ----------
    platform : str
    platform_version, runtime_type : str
    """

    platform_version = runtime_type = "fnarray"

    def __init__(self, platform: str):
        self.platform = platform

    def devices(self) -> list[Any]:
        """Return them."""
        return list(devices(self.platform))

    local_devices = devices

    def device_count(self) -> int:
        """Say how many there are."""
        return len(self.devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """Return 0: there is one process."""
        return 0


def find_default() -> Any:
    """Return GPUs as the place of what is nowhere yet, where one is the default device."""
    return hooks.gpus() if default_device().platform == "gpu" else None


if has_driver() or allowed()[0] == "gpu":
    default.find = find_default
