"""The names that kernel text may use, and the text as a file to read."""

from __future__ import annotations

import functools
import importlib
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..cache.key import KernelSource, versions

#: NumPy's types by their codes in kernels.
CODES: Final[dict[str, Any]] = {
    "b1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
# Kernels claim to live in a module that can be imported: Numba looks it up to rebuild a cached
# kernel, and crashes if there is none.
_HOME: Final = "fnarray.compile.cpu.build"


@functools.cache
def namespace() -> dict[str, Any]:
    """Names that kernel text may use; the text refers to nothing else."""
    scalar = importlib.import_module("fnarray_kernels.scalar")
    return {
        "__name__": _HOME,
        "np": np,
        "math": math,
        "inf": math.inf,
        "nan": math.nan,
        "fk": importlib.import_module("fnarray_kernels"),
        "sc": scalar,
        "vm": importlib.import_module("fnarray_kernels.vmath"),
        "u": scalar.u,
        "flat": scalar.flat,
        **CODES,
    }


def spell(name: str, src: KernelSource) -> str:
    """Write the kernel as a file to read: a header, and the function under its own name.

    Raises
    ------
    ValueError
        The text does not define ``kernel`` exactly once.
    """
    body, found = re.subn(r"(?m)^def kernel\(", f"def {name}(", src.text)
    if found != 1:
        raise ValueError(
            f"compile.cpu.build: kernel text must hold 'def kernel(' at the start of one line, "
            f"got {found} such lines in:\n{src.text}"
        )
    return (
        f"# {name}({', '.join(src.signature)})\n"
        f"# {', '.join(versions())}\n"
        f"# sc = fnarray_kernels.scalar (u, flat), vm = fnarray_kernels.vmath, "
        f"fk = fnarray_kernels\n{body.rstrip()}\n"
    )


def python_function(name: str, text: str, path: Path | str) -> Callable[..., None]:
    """Execute kernel text as the file `path` and return the Python function."""
    for module in set(re.findall(r"\bfk\.(\w+)\.", text)):
        importlib.import_module(f"fnarray_kernels.{module}")  # only what the kernel names
    scope = dict(namespace())
    exec(compile(text, str(path), "exec"), scope)
    return scope[name]


def disabled() -> bool:
    """Whether ``NUMBA_DISABLE_JIT`` asks for kernels to run as plain Python."""
    numba = sys.modules.get("numba.core.config")  # where it may have been set at run time
    if numba is not None:
        return bool(numba.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
