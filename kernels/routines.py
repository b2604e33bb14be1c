"""Routines of LAPACK that kernels call, those of SciPy's library: with arrays, all by address."""

from __future__ import annotations

import ctypes
import functools
import re
from importlib import import_module

from fnarray_kernels.registry import tell

#: What LAPACK puts before the names of routines, by dtype.
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: The names of all routines.
ROUTINES: list[str] = []


def in_scipy(routine, library="lapack"):
    """Return the address that SciPy documents; None without SciPy, or where integers are long."""
    try:
        capsule = import_module(f"scipy.linalg.cython_{library}").__pyx_capi__[routine]
    except (ImportError, KeyError):
        return None
    text, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    text.restype, text.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    signature = text(capsule)
    return pointer(capsule, signature) if re.search(rb"\bint \*", signature) else None


@functools.cache
def _called(name, count):
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(in_scipy(name) or 0)


def _routine(name, letters="sdcz"):
    """Return what calls a routine with arrays, for numbers of the dtype of one before them."""

    def face(like, *arrays):
        letter = LETTERS[like.dtype.name]
        _called(letter + name, len(arrays))(*(x.ctypes.data for x in arrays))

    face.__name__ = name
    ROUTINES.extend(letter + name for letter in letters)
    tell("routine", face, name)
    return face


syevd, heevd = _routine("syevd", "sd"), _routine("heevd", "cz")
gesdd, geev, gees = _routine("gesdd"), _routine("geev"), _routine("gees")
geqp3, orgqr, ungqr = _routine("geqp3"), _routine("orgqr", "sd"), _routine("ungqr", "cz")
gehrd, sytrd, hetrd = _routine("gehrd"), _routine("sytrd", "sd"), _routine("hetrd", "cz")
