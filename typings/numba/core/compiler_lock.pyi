"""Numba's lock."""

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

class _CompilerLock:
    def acquire(self) -> None: ...
    def release(self) -> None: ...
    def __call__(self, func: F) -> F: ...

global_compiler_lock: _CompilerLock
