"""``jaxlib.xla_client``: its name of a device, which libraries annotate with."""

from __future__ import annotations

from fnarray import Device as Device
