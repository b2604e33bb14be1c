"""Memory of kernels that `ptx` runs, and what goes wrong there."""

from __future__ import annotations

import numpy as np


class Fault(Exception):
    """What a GPU would have punished."""


class Memory:
    """Bytes that threads share or own, and who touched them.

    Attributes
    ----------
    bytes : ndarray
    open : ndarray of bool
        Which bytes belong to somebody.
    """

    def __init__(self, size: int):
        size = -(-size // 16) * 16
        self.bytes = np.full(size, 0xA5, np.uint8)
        self.open = np.zeros(size, bool)
        self.writer, self.reader = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.written, self.read = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.constant = np.zeros(size, bool)

    def view(self, width: int) -> np.ndarray:
        """Return the bytes as words."""
        return self.bytes.view(f"u{width}")
