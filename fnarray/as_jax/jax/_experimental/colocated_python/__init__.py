"""``jax.experimental.colocated_python``: Python beside the devices, which is this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """Return the CPU devices beside some: those themselves, or a mesh's."""
    is_many = isinstance(devices_or_mesh, Sequence)
    return tuple(devices_or_mesh) if is_many else devices_or_mesh


def colocated_python(fun: F) -> F:
    """Let a function run where its arguments are."""

    @wraps(fun)
    def here(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    def specialize(**options: Any) -> Any:
        """Return the function: what it is told of devices and results holds here anyway."""
        return here

    here.specialize = specialize  # type: ignore[attr-defined]
    return here  # type: ignore[return-value]


def colocated_python_class(cls: C) -> C:
    """Let an object live where the arguments of its methods are."""
    return cls
