"""What the array API standard asks of a namespace about itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..config import config
from ..core.dtypes import ALL, bfloat16, canonicalize_dtype, isdtype
from ..runtime.device import Device, devices

__all__ = ["__array_api_version__", "__array_namespace_info__"]

#: The version of the array API standard that is followed.
__array_api_version__ = "2024.12"


class NamespaceInfo:
    """What `fnarray.numpy` can do, in the standard's words."""

    def capabilities(self) -> dict[str, Any]:
        """Say what the standard leaves open: neither holds while tracing."""
        return {
            "boolean indexing": False,
            "data-dependent shapes": False,
            "max dimensions": 64,
        }

    def default_device(self) -> Device | None:
        """Return the device of new arrays; None is the first."""
        return config.default_device  # type: ignore[return-value]

    def devices(self) -> list[Device | None]:
        """Return what may be given as a device."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of arrays of Python numbers, and of indices."""
        names = {
            "real floating": float,
            "complex floating": complex,
            "integral": int,
            "indexing": int,
        }
        return {name: canonicalize_dtype(kind) for name, kind in names.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """Return the standard's dtypes that arrays may have, by name; those of a kind if given."""
        held = [d for d in ALL if d != bfloat16 and d.name != "float16"]
        return {
            d.name: d
            for d in held
            if canonicalize_dtype(d) == d and (kind is None or isdtype(d, kind))
        }


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """Return what the standard asks of a namespace: devices, dtypes and capabilities."""
    return NamespaceInfo()
