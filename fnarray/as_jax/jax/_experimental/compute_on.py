"""``jax.experimental.compute_on``: where a part of a program is to run; here, with the rest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["compute_on", "compute_on2"]

_KINDS = ("device_host", "device", "tpu_sparsecore")


def _check(kind: str) -> None:
    if kind not in _KINDS and not kind.startswith("gpu_stream:"):
        raise ValueError(
            f"compute_on: no such kind, {kind!r}. Known are {', '.join(_KINDS)} and gpu_stream:#."
        )


@contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Say where operations are to run: on a CPU they run there.

    Raises
    ------
    ValueError
        No kind is called that.
    """
    _check(compute_type)
    yield


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Any = None,
) -> Any:
    """Return the function itself, or what takes one; see `compute_on`."""
    _check(compute_type)
    if f is None:
        return functools.partial(
            compute_on2, compute_type=compute_type, out_memory_spaces=out_memory_spaces
        )
    return f
