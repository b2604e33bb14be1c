"""What is asked of the driver and of the linker, beside NVIDIA's own description of them."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import struct
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.compile.cuda import build, device, graphs, launching, libcuda, staging, toolkit
from fnarray.compile.emit.source import KernelSource

pytestmark = pytest.mark.cuda
if importlib.util.find_spec("cuda") is None:
    pytest.skip("fnarray[cuda] is not installed", allow_module_level=True)

driver = pytest.importorskip("cuda.bindings.driver")


def test_numbers_are_the_drivers() -> None:
    """Attributes, flags and errors by their names in ``cuda.h``."""
    names = {
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: device._MAJOR,
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: device._MINOR,
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: device._MULTIPROCESSORS,
        driver.CUstream_flags.CU_STREAM_NON_BLOCKING: device._NON_BLOCKING,
        driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: device._RELEASE_THRESHOLD,
        driver.CUevent_flags.CU_EVENT_DISABLE_TIMING: device._NO_TIMING,
        driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: device._ORDINAL,
        driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: device._MAX_THREADS,
        driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE: device._ON_DEVICE,
        driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE: device._READ_AND_WRITE,
        driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY: device._OUT_OF_MEMORY,
        driver.CUresult.CUDA_ERROR_NOT_READY: staging._NOT_READY,
    }
    for theirs, ours in names.items():
        assert int(theirs) == ours, theirs
    for number in libcuda._ADVICE:
        assert driver.CUresult(number).name


#: Types of the driver's arguments that are no handles and no addresses, as ctypes has them.
_NUMBERS: dict[str, Any] = {
    "int": ctypes.c_int, "CUdevice": ctypes.c_int, "unsigned int": ctypes.c_uint,
    "size_t": ctypes.c_size_t, "unsigned char": ctypes.c_ubyte, "unsigned short": ctypes.c_ushort,
    "unsigned long long": ctypes.c_uint64,
}  # fmt: skip


def _is_address(kind: Any) -> bool:
    return kind in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(kind, "contents")


def test_functions_are_the_drivers() -> None:
    """Each name is one that NVIDIA's own package calls, and each argument of the type there."""
    declared = Path(driver.__file__).with_name("cydriver.pxd").read_text()
    # Macros of cuda.h name the versions: the package calls this one by its plain name.
    renamed = {"cuGraphInstantiateWithFlags": "cuGraphInstantiate"}
    for name, types in libcuda._FUNCTIONS.items():
        plain = name.removesuffix("_v2")
        found = re.search(rf"CUresult {renamed.get(plain, plain)}\(([^)]*)\)", declared)
        assert found, name
        for theirs, ours in zip(found[1].split(", "), types, strict=True):
            kind = theirs.rpartition(" ")[0].removeprefix("const ")
            wanted = ctypes.c_int if kind.endswith("_attribute") else _NUMBERS.get(kind)
            assert ours is wanted or (wanted is None and _is_address(ours)), (name, theirs)


def _bytes(theirs: Any, size: int) -> bytes:
    return ctypes.string_at(theirs.getPtr(), size)


def test_who_may_reach_memory_is_laid_out_as_the_drivers() -> None:
    """``CUmemAccessDesc``, byte by byte."""
    theirs = driver.CUmemAccessDesc()
    theirs.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    theirs.location.id = 5
    theirs.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    ours = device._Access(device._ON_DEVICE, 5, device._READ_AND_WRITE)
    assert bytes(ours) == _bytes(theirs, ctypes.sizeof(ours))


def test_a_graphs_node_is_laid_out_as_the_drivers() -> None:
    """``CUDA_KERNEL_NODE_PARAMS_v2``, field by field."""
    declared = Path(driver.__file__).with_name("cydriver.pxd").read_text()
    fields = re.search(r"struct CUDA_KERNEL_NODE_PARAMS_v2_st:\n((?:        .*\n)+)", declared)
    assert fields
    kinds = [
        ctypes.c_uint if "unsigned int" in line else ctypes.c_void_p
        for line in fields[1].splitlines()
    ]
    assert [kind for _, kind in graphs.KernelNode._fields_] == kinds


#: All kinds of scalars, between arrays: each begins at a multiple of its own size.
_ALL_KINDS = ("f32[1]", "b1", "i8", "f32", "u16[1]", "u8", "i16", "f64", "u32", "i64", "i32", "u64")
_PLACE, _TOTAL = 0x17, 0x19  # EIATTR_KPARAM_INFO, EIATTR_CBANK_PARAM_SIZE


def _said_of(code: bytes, name: str) -> list[tuple[int, Any]]:
    """Return the attributes of a kernel in machine code: their numbers and values."""
    (heads,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<3H", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", code, heads + size * k) for k in range(count)]
    known = {
        code[at:].partition(b"\0")[0]: s for s in sections for at in [sections[names][4] + s[0]]
    }
    *_, at, length = known[f".nv.info.{name}".encode()]
    found, end = [], at + length
    while at < end:
        form, number, value = struct.unpack_from("<BBH", code, at)
        at += 4
        long = form == 4  # the value is the number of bytes that follow
        found.append((number, code[at : at + value] if long else value))
        at += value if long else 0
    return found


@pytest.mark.skipif(not toolkit.linker(), reason="the linker of fnarray[cuda] is not installed")
def test_arguments_lie_where_machine_code_reads_them() -> None:
    """Places and sizes are written beside the code; a launch packs arguments so."""
    names = [f"a{k}" for k in range(len(_ALL_KINDS))]
    kernel = build.build(
        KernelSource(f"def kernel({', '.join(names)}):\n    a0[0] = a3\n", _ALL_KINDS), "sm_90"
    )
    said = _said_of(kernel.code, kernel.name)
    layout = launching.packer_of(_ALL_KINDS)
    letters = layout.format.removeprefix("@")
    ends = [struct.calcsize("@" + letters[: k + 1]) for k in range(len(letters))]
    sizes = [struct.calcsize("@" + x) for x in letters]
    places = sorted(struct.unpack("<IHHI", value)[1:] for number, value in said if number == _PLACE)
    assert [(k, at, bits >> 18 & 0x3FFF) for k, at, bits in places] == [
        (k, end - n, n) for k, (end, n) in enumerate(zip(ends, sizes, strict=True))
    ]
    assert dict(said)[_TOTAL] == layout.size


def _disassembler() -> str | None:
    found = Path(sysconfig.get_paths()["purelib"]).glob("nvidia/*/bin/nvdisasm")
    return next(map(str, found), shutil.which("nvdisasm"))


def _machine_code(kernel, folder: Path) -> str:
    path = folder / "kernel.cubin"
    path.write_bytes(kernel.code)
    command = [str(_disassembler()), "-c", path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(not toolkit.linker(), reason="the linker of fnarray[cuda] is not installed")
@pytest.mark.skipif(_disassembler() is None, reason="nvidia-cuda-nvdisasm is not installed")
def test_products_and_convolutions_multiply_from_registers(tmp_path) -> None:
    """Sixteen terms of sixteen sums: eight numbers come by two loads of 128 bits for each term."""
    x, w = np.ones((4, 16, 16, 64), np.float32), np.ones((3, 3, 64, 64), np.float32)
    layout = ("NHWC", "HWIO", "NHWC")
    programs: tuple[Any, ...] = (
        (jnp.matmul, x[0].reshape(256, 64), w[0, 0]),
        (
            lambda x, w: fnarray.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", (1, 1), (1, 1), layout
            ),
            x,
            w,
        ),
    )
    for fun, *args in programs:
        kernel = fnarray.jit(fun).lower(*args).compile(target="sm_90").kernels[0]
        text = _machine_code(kernel, tmp_path)
        assert text.count("FFMA") == 256
        assert text.count("LDS.128") == 32
        assert kernel.cost.spills == 0


@pytest.mark.skipif(not toolkit.linker(), reason="the linker of fnarray[cuda] is not installed")
@pytest.mark.skipif(_disassembler() is None, reason="nvidia-cuda-nvdisasm is not installed")
@pytest.mark.parametrize(
    ("name", "loads"),
    [("map", 2), ("sum", 1), ("halves", 0), ("scan", 1)],
)
def test_machine_code_loads_128_bits(name, loads, tmp_path) -> None:
    """Four float32 are one load of the machine's; nothing calls a division of integers."""
    big, small = np.ones(1 << 16, np.float32), np.ones(64, np.float32)
    programs = {
        "map": (lambda x, y: 2 * x + y, (big, big)),
        "sum": (jnp.sum, (big,)),
        "halves": (lambda x: x + x, (big.astype(np.float16),)),  # four are 64 bits
        "scan": (
            lambda c, ts: fnarray.lax.scan(lambda c, t: (0.99 * c + t, None), c, ts)[0],
            (big, small),
        ),
    }
    fun, args = programs[name]
    kernel = fnarray.jit(fun).lower(*args).compile(target="sm_90").kernels[0]
    text = _machine_code(kernel, tmp_path)
    assert min(text.count("LDG.E.128"), loads) == loads
    assert "CALL" not in text
    assert kernel.cost.spills == 0
