"""BLAS routines for object code, which names them: addresses differ from process to process.

They are those that Numba's code calls, SciPy's, found when the first kernel that wants one is.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

# Found by the install's import hook, which pyright cannot follow.
import fnarray_kernels.routines as _routines  # pyright: ignore

from ....threads.onethread import look_again

routines: Any = _routines

#: What BLAS calls a product of vectors of each kind of number.
DOT: Final = {"s": "sdot", "d": "ddot", "c": "cdotu", "z": "zdotu"}
_ROUTINES: Final = {
    f"fnarray_{routine}": routine
    for kind, dot in DOT.items()
    for routine in (dot, f"{kind}gemv", f"{kind}gemm")
}
#: Of how many cycles, as a power of 2, an idle thread of OpenBLAS stays awake; read at its start.
_TIMEOUT: Final = "OPENBLAS_THREAD_TIMEOUT"


def address(symbol: str) -> int | None:
    """Return the address of what object code calls ``fnarray_sgemm``; None if nobody has it."""
    routine = _ROUTINES.get(symbol)
    if routine is None:
        name = symbol.removeprefix("fnarray_")
        return lapack(name) if name in routines.ROUTINES else None
    return of_wheel(routine) or routines.in_scipy(routine, "blas")


def of_wheel(routine: str) -> int | None:
    """Return the address of a routine in the library that SciPy's wheels bring; None in others.

    SciPy is not imported: that takes 200 ms, and loading the library 3.
    """
    found = getattr(_library(), f"scipy_{routine}_", None)
    return found and ctypes.cast(found, ctypes.c_void_p).value


def lapack(routine: str) -> int | None:
    """Return the address of a routine of LAPACK, SciPy's; None if nobody has it."""
    return of_wheel(routine) or routines.in_scipy(routine)


def of_numpy(routine: str) -> int | None:
    """Return the address of a routine in the library of NumPy's wheels; its integers have 64 bits.

    It is what `numpy.matmul` calls: products are the same whether they are shared out or not.
    """
    linked = find_spec("numpy.linalg._umath_linalg")
    try:
        library = ctypes.CDLL(linked.origin) if linked and linked.origin else None
    except OSError:
        return None
    found = getattr(library, f"scipy_{routine}_64_", None)
    return found and ctypes.cast(found, ctypes.c_void_p).value


@functools.cache
def _library() -> Any:
    """Load the module of SciPy's that is linked to BLAS; None where there is no such file."""
    scipy = find_spec("scipy")
    places = [str(Path(p, "linalg")) for p in (scipy and scipy.submodule_search_locations) or ()]
    found = PathFinder.find_spec("cython_blas", places)
    try:
        with _dozing():
            return ctypes.CDLL(found.origin) if found else None
    except OSError:
        return None
    finally:
        look_again()


@contextmanager
def _dozing() -> Generator[None, None, None]:
    """Have threads of OpenBLAS, which is loaded inside, sleep after .4 ms in wait of work.

    They begin awake, and by themselves stay so for 2**26 cycles: 28 ms, in which a first call
    compiles and is short of cores. What the user has said holds.
    """
    given = _TIMEOUT in os.environ
    os.environ.setdefault(_TIMEOUT, "20")
    try:
        yield
    finally:
        if not given:
            os.environ.pop(_TIMEOUT, None)
