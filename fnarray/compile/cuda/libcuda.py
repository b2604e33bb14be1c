"""The driver's own interface, through `ctypes`: the functions that are used, and their errors.

`libcuda.so.1` comes with the driver of a GPU; no package of the index is needed.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint,
    c_uint64,
    c_ushort,
    c_void_p,
)
from typing import Any, Final

from ...errors import JaxRuntimeError
from .recording import current

#: The oldest driver with stream-ordered memory and the PTX that kernels are written in.
OLDEST: Final = 12000
#: Taken by whoever opens the driver, or a device: there is one object for each.
opening: Final = threading.RLock()
#: Errors of a thread from which another library took the context, or to which it gave its own.
LOST: Final = (201, 400)
_NOT_FOUND: Final = 500

_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuPointerGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuGraphCreate": (POINTER(c_void_p), c_uint),
    "cuGraphAddKernelNode_v2": (
        POINTER(c_void_p), c_void_p, POINTER(c_void_p), c_size_t, c_void_p,
    ),
    "cuGraphInstantiateWithFlags": (POINTER(c_void_p), c_void_p, c_uint64),
    "cuGraphExecKernelNodeSetParams_v2": (c_void_p, c_void_p, c_void_p),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuLaunchKernel": (
        c_void_p, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_void_p, c_void_p,
        c_void_p,
    ),
    "cuEventQuery": (c_void_p,),
    "cuEventSynchronize": (c_void_p,),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemAllocAsync": (POINTER(c_void_p), c_size_t, c_void_p),
    "cuMemFreeAsync": (c_void_p, c_void_p),
    "cuMemsetD8Async": (c_void_p, c_ubyte, c_size_t, c_void_p),
    "cuMemsetD16Async": (c_void_p, c_ushort, c_size_t, c_void_p),
    "cuMemsetD32Async": (c_void_p, c_uint, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyPeerAsync": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuDeviceGetDefaultMemPool": (POINTER(c_void_p), c_int),
    "cuMemPoolSetAttribute": (c_void_p, c_int, POINTER(c_uint64)),
    "cuMemPoolSetAccess": (c_void_p, c_void_p, c_size_t),
    "cuDeviceCanAccessPeer": (POINTER(c_int), c_int, c_int),
}  # fmt: skip

#: What to do about an error, by the driver's number.
_ADVICE: Final = {
    2: "Free arrays, or compute in parts.",
    34: "libcuda.so.1 is the toolkit's stub: install the driver, or take the stub off the path.",
    36: "Install a newer driver of the GPU.",
    200: "The kernel's code is damaged: clear the cache (fnarray cache clear).",
    218: "The kernel's code is damaged: clear the cache (fnarray cache clear).",
    100: "There is no GPU, or CUDA_VISIBLE_DEVICES hides it.",
    101: "The device's number is out of range.",
    46: "Another process has the device for itself (see nvidia-smi).",
    214: "The device's memory has an error that cannot be mended: reset it (nvidia-smi -r).",
    802: "The system is not ready: start NVIDIA's fabric manager (nvidia-fabricmanager).",
    999: "The driver does not answer: see what nvidia-smi says; load its modules again.",
    201: "A process that forked after it used the GPU cannot use it: use the 'spawn' method.",
    3: "A process that forked after it used the GPU cannot use it: use the 'spawn' method.",
    209: "The kernel was built for another architecture: clear the cache (fnarray cache clear).",
    222: "The driver is older than the kernel's PTX: install a newer one.",
    801: "The device has no stream-ordered memory, or the driver does not know the code.",
    803: "The driver's library and its kernel module differ: restart after its update.",
    804: "The driver is older than the compatibility library allows: install a newer one.",
    700: "A kernel touched memory that is not its own; please report the program.",
    701: "The kernel asks for more registers or shared memory than a multiprocessor has.",
    716: "A kernel took memory to begin where it does not; please report the program.",
    719: "A kernel failed; the process cannot use the GPU any more. Please report the program.",
}


class DriverError(JaxRuntimeError):
    """What the driver of a GPU refused.

    Attributes
    ----------
    number : int
        The driver's.
    """

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


class Libcuda:
    """The driver, each function checked."""

    def __init__(self) -> None:
        try:
            self._lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise JaxRuntimeError(
                f"Unknown backend 'cuda': no driver of a GPU was found ({error}). Install NVIDIA's "
                "driver; without one programs run on the cpu."
            ) from error
        for name, types in _FUNCTIONS.items():
            function = getattr(self._lib, name, None)
            if function is None:
                setattr(self, name, _absent(name))
                continue
            function.argtypes, function.restype = types, c_int
            setattr(self, name, self._checked(name, function))
        self.cuInit(0)
        version = c_int()
        self.cuDriverGetVersion(byref(version))
        self.version = version.value
        if self.version < OLDEST:
            raise JaxRuntimeError(
                f"the driver of the GPU is for CUDA {self.version // 1000}."
                f"{self.version % 1000 // 10}, and {OLDEST // 1000}.0 is the oldest that is "
                "supported. Install a newer one."
            )
        self.launch = self._lib.cuLaunchKernel

    def __getattr__(self, name: str) -> Callable[..., None]:
        raise AttributeError(name)  # for type checkers: functions are attributes

    def _checked(self, name: str, function: Any) -> Callable[..., None]:
        def call(*args: Any) -> None:
            code = function(*args)
            if code in LOST and self.regained():
                code = function(*args)
            if code:
                raise self.error(name, code)

        return call

    def regained(self) -> bool:
        """Take the context of the calling thread's device again, if it has entered one.

        To ask at each call whether it is still there would take as long as a launch.
        """
        where = current.context
        return where is not None and not self._lib.cuCtxSetCurrent(where.context)

    def error(self, what: str, code: int) -> DriverError:
        """Return the driver's error of a number, with what to do about it."""
        spelled = c_char_p()
        ask = getattr(self._lib, "cuGetErrorString", None)
        if ask is not None:
            ask(code, byref(spelled))
        text = (spelled.value or b"unknown").decode()
        return DriverError(f"{what}: {text} ({code}). {_ADVICE.get(code, '')}".strip(), code)


def _absent(name: str) -> Callable[..., None]:
    def call(*args: Any) -> None:
        raise DriverError(
            f"the driver of the GPU has no {name}, so it is older than {OLDEST // 1000}.0. "
            "Install a newer one.",
            _NOT_FOUND,
        )

    return call


def libcuda() -> Libcuda:
    """Return the driver, loaded once."""
    with opening:
        return _loaded()


@functools.cache
def _loaded() -> Libcuda:
    return Libcuda()


libcuda.cache_clear = _loaded.cache_clear  # type: ignore[attr-defined]
