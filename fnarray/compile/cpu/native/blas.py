"""BLAS routines for object code, which names them: addresses differ from process to process.

They are those that Numba's code calls, SciPy's, found when the first kernel that wants one is.
"""

from __future__ import annotations

import ctypes
import functools
import re
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....threads.onethread import look_again

#: What BLAS calls a product of vectors of each kind of number.
DOT: Final = {"s": "sdot", "d": "ddot", "c": "cdotu", "z": "zdotu"}
_ROUTINES: Final = {
    f"fnarray_{routine}": routine
    for kind, dot in DOT.items()
    for routine in (dot, f"{kind}gemv", f"{kind}gemm")
}


def address(symbol: str) -> int | None:
    """Return the address of what object code calls ``fnarray_sgemm``; None if nobody has it."""
    routine = _ROUTINES.get(symbol)
    return None if routine is None else of_wheel(routine) or of_scipy(routine)


def of_wheel(routine: str) -> int | None:
    """Return the address of a routine in the library that SciPy's wheels bring; None in others.

    SciPy is not imported: that takes 200 ms, and loading the library 3.
    """
    found = getattr(_library(), f"scipy_{routine}_", None)
    return found and ctypes.cast(found, ctypes.c_void_p).value


def lapack(routine: str) -> int | None:
    """Return the address of a routine of LAPACK, SciPy's; None if nobody has it."""
    return of_wheel(routine) or of_scipy(routine, "lapack")


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


def of_scipy(routine: str, library: str = "blas") -> int | None:
    """Return the address that SciPy documents; None without SciPy, or where integers are long."""
    try:
        capsule: Any = import_module(f"scipy.linalg.cython_{library}").__pyx_capi__[routine]
    except ImportError:
        return None
    text, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    text.restype, text.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    signature = text(capsule)
    return pointer(capsule, signature) if re.search(rb"\bint \*", signature) else None


@functools.cache
def _library() -> Any:
    """Load the module of SciPy's that is linked to BLAS; None where there is no such file."""
    scipy = find_spec("scipy")
    places = [str(Path(p, "linalg")) for p in (scipy and scipy.submodule_search_locations) or ()]
    found = PathFinder.find_spec("cython_blas", places)
    try:
        return ctypes.CDLL(found.origin) if found else None
    except OSError:
        return None
    finally:
        look_again()
