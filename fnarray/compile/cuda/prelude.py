"""What a file for `numba-cuda` alone begins with, and words of a grid as its functions."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..cpu.namespace import CODES

#: The code of a dtype in kernels.
CODE: Final = {np.dtype(t): code for code, t in CODES.items()}
_TYPES: Final = "\n".join(
    f"{code} = np.{'bool_' if code == 'b1' else dtype.name}" for dtype, code in CODE.items()
)

HEAD: Final = f'''"""A program of fnarray for a GPU: needs NumPy and numba-cuda.

`main` takes arrays of the device, those that the function captured first, and returns such.
Those of halves are their bits, as uint16; a scalar is an array of one element.
"""

import math

import numpy as np
from numba import cuda

inf, nan = math.inf, math.nan
{_TYPES}


def empty(shape, dtype):
    return cuda.device_array(shape or 1, dtype)


def copy(x):
    y = cuda.device_array(x.shape or 1, x.dtype)
    y.copy_to_device(x)
    return y


def launch(kernel, blocks, lanes, *args):
    lines = [x.reshape(x.size) if hasattr(x, "reshape") and x.ndim != 1 else x for x in args]
    kernel[blocks, lanes](*lines)
'''

#: Words that are the same for all dtypes, by what they return.
GRID: Final = {
    "block": "return i64(cuda.blockIdx.x)",
    "blocks": "return i64(cuda.gridDim.x)",
    "lane": "return i64(cuda.threadIdx.x)",
    "lanes": "return i64(cuda.blockDim.x)",
    "thread": "return i64(cuda.blockIdx.x) * i64(cuda.blockDim.x) + i64(cuda.threadIdx.x)",
    "threads": "return i64(cuda.gridDim.x) * i64(cuda.blockDim.x)",
    "sync": "cuda.syncthreads()",
}

_FOLD: Final = """def {name}_{code}(x):
    shown = cuda.shared.array(1024, {code})
    shown[lane()] = x
    cuda.syncthreads()
    for step in (16, 8, 4, 2, 1):
        has_other = lane() % 32 + step < min(lanes(), 32)
        other = shown[lane() + step if has_other else lane()]
        cuda.syncthreads()
        if has_other:
            x = {combine}(x, other)
            shown[lane()] = x
        cuda.syncthreads()
    x = shown[0]
    k = 32
    while k < lanes():
        x = {combine}(x, shown[k])
        k += 32
    cuda.syncthreads()
    return x
"""

#: What the folds of a block combine two numbers by: functions of `fnarray_kernels.scalar`.
FOLDS: Final = {"block_sum": "add", "block_max": "maximum", "block_min": "minimum"}

#: Words that are a function for each dtype.
LANES: Final = {
    **dict.fromkeys(FOLDS, _FOLD),
    "from_lane": """def from_lane_{code}(x, distance):
    shown = cuda.shared.array(1024, {code})
    shown[lane()] = x
    cuda.syncthreads()
    there = lane() + distance
    y = shown[there if 0 <= there < lanes() else lane()]
    cuda.syncthreads()
    return y
""",
    "from_first": """def from_first_{code}(x):
    shown = cuda.shared.array(1, {code})
    if lane() == 0:
        shown[0] = x
    cuda.syncthreads()
    y = shown[0]
    cuda.syncthreads()
    return y
""",
    "load4": """def load4_{code}(x, i):
    return x[i], x[i + 1], x[i + 2], x[i + 3]
""",
    "store4": """def store4_{code}(x, i, values):
    for k in range(4):
        x[i + k] = values[k]
""",
    "atomic_add": """def atomic_add_{code}(x, i, value):
    cuda.atomic.add(x, i, {code}(value))
""",
    "swap": """def swap_{code}(x, i, old, new):
    return {back}(cuda.atomic.cas(x.view({bits}), i, {there}(old), {there}(new)))
""",
    "same": """def same_{code}(x, y):
    return {there}(x) == {there}(y)
""",
}

_WHOLE_FROM: Final = 2.0**52

#: What functions of scalars name, each before those that it names.
HELPERS: Final = {
    "quotient": """def quotient(x, y):
    q = x // y
    return q + 1 if q * y != x and (x < 0) != (y < 0) else q
""",
    "rest_of_floats": """def rest_of_floats(x, y):
    return math.fmod(x, y) if abs(x) < inf and y != 0.0 else x * nan
""",
    "zeros_before": """def zeros_before(x):
    y = u64(x)
    for k in (1, 2, 4, 8, 16, 32):
        y = y | (y >> u64(k))
    return 64 - i64(cuda.popc(y))
""",
    "rest_of": """def rest_of(x, y):
    return x - quotient(x, y) * y
""",
    "whole": f"""def whole(x):
    return math.copysign(f64(i64(x)), x) if abs(x) < {_WHOLE_FROM} else f64(x)
""",
    "down": """def down(x):
    y = whole(x)
    return y - 1.0 if y > x else y
""",
    "up": """def up(x):
    y = whole(x)
    return math.copysign(y + 1.0, x) if y < x else y
""",
    "nearest": f"""def nearest(x):
    y = whole(x)
    rest = abs(x - y) if abs(x) < {_WHOLE_FROM} else 0.0
    odd = whole(0.5 * y) * 2.0 != y
    return y + math.copysign(1.0, x) if rest > 0.5 or (rest == 0.5 and odd) else y
""",
    "root": """def root(x):
    return math.sqrt(x) if x >= 0.0 else x * nan
""",
    "least": """def least(x, y):
    below = x < y or (x == y and math.copysign(1.0, x) < math.copysign(1.0, y))
    return x if x != x or below else y
""",
    "greatest": """def greatest(x, y):
    above = x > y or (x == y and math.copysign(1.0, x) > math.copysign(1.0, y))
    return x if x != x or above else y
""",
    "clipped": """def clipped(x, low, high):
    y = f64(0.0) if x != x else f64(x)
    return i64(low) if y <= low else i64(high) if y >= high else i64(y)
""",
    **{
        f"{new}_of_{old}": f"""def {new}_of_{old}(x):
    room = cuda.local.array(1, {old})
    room[0] = x
    return room.view({new})[0]
"""
        for pair in (("i32", "f32"), ("i64", "f64"))
        for new, old in (pair, pair[::-1])
    },
}
