"""Arrays that begin with a line of the caches.

NumPy's begin 16 bytes behind one, mostly. A vector of 64 bytes lies in two lines there, and takes
two reads: a hundred steps of Adam on 800 x 200 took 1.18 ms of a processor's time, and take 0.95
(Zen 5, whose vectors of 512 bits are computed whole); 400 turns of a stencil on 30,000 1.76, and
1.44. A line takes 240 ns more than `numpy.empty`.
"""

from __future__ import annotations

from ctypes import c_void_p
from math import prod
from typing import Any, Final, cast

import numpy as np

#: Bytes of a line, and of the widest vector.
LINE: Final = 64
#: Bytes of a result from which on it begins with one, and of what is copied, or read often.
LARGE, OFTEN = 1 << 15, 1 << 11
#: Where NumPy's array object holds where its elements begin.
_DATA: Final = object.__basicsize__

_word: Final = c_void_p.from_address


def _is_known() -> bool:
    array = np.empty(1)
    return _word(id(array) + _DATA).value == array.ctypes.data


_KNOWN: Final = _is_known()


def aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a new array, which is not filled, that begins with a line."""
    if not _KNOWN:
        return np.empty(shape, dtype)
    room = np.empty(prod(shape) * dtype.itemsize + LINE, np.uint8)
    return np.ndarray(shape, dtype, room, -cast(int, _word(id(room) + _DATA).value) % LINE)


def copied(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a copy in the order of rows, in a dtype; one that is not small begins with a line."""
    if data.size * dtype.itemsize < OFTEN:
        return data.astype(dtype, "C", subok=False)
    out = aligned(data.shape, dtype)
    np.copyto(out, data, casting="unsafe")
    return out


def rows(count: int, length: int, kind: Any) -> list[np.ndarray]:
    """Return new arrays of one axis, which are not filled; each begins with a line if it can."""
    dtype = np.dtype(kind)
    line = LINE // dtype.itemsize
    apart = (max(length, 1) + line - 1) // line * line
    room = aligned((count * apart,), dtype)
    return [room[k : k + length] for k in range(0, count * apart, apart)]
