"""What is emitted for a GPU: its text, and what LLVM and the linker make of it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cuda import toolkit
from fnarray.compile.cuda.lower import lower, ptx
from fnarray.compile.emit.source import KernelSource
from fnarray.config import config, scoped
from fnarray.errors import UnsupportedOnTarget
from fnarray.ops.linalg_orthogonal import geqrf
from tests.compile import functions as f

from .programs import EVERY_NAME, PROGRAMS, floats


def assembly(fun, *args) -> str:
    return fnarray.jit(fun).lower(*args).compile(target="sm_90").as_text("ptx")


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_kernel_becomes_ptx(name: str) -> None:
    """LLVM takes what emission writes, and asks for no function that a GPU lacks."""
    fun, args = EVERY_NAME[name]
    text = fnarray.jit(fun).lower(*args).compile(target="sm_90")
    for kernel in text.kernels:
        assert kernel.code
    assert ".extern" not in text.as_text("ptx")


def test_maps_load_128_bits() -> None:
    """Four float32 are one access; eight bytes each, they are two."""
    text = assembly(lambda x, y: jnp.tanh(x) * y, floats(64), floats(64))
    assert text.count("ld.global.nc.v4.b32") == 2
    assert text.count("st.global.v4.b32") == 1


def test_index_arithmetic_of_maps_divides_nothing() -> None:
    """Neither maps, nor rows, nor whole folds hold a division of integers."""
    for fun in (f.polynomial, f.softmax, f.layer_norm, jnp.sum):
        text = assembly(fun, floats(6, 300))
        assert not re.search(r"\b(div|rem)\.[su](32|64)", text)


def test_additions_of_the_user_contract_and_those_of_words_do_not() -> None:
    """``x * y + z`` is rounded once, unless told otherwise; ``exp`` keeps the processor's bits."""

    def fun(x, y, z):
        return x * y + z

    args = floats(64), floats(64), floats(64)
    assert "fma.rn.f32" in assembly(fun, *args)
    with scoped("cuda_fma", False):
        assert "fma.rn.f32" not in assembly(fun, *args)
    assert config.cuda_fma
    for sums in (lambda x, y: x.reshape(8, 8) @ y.reshape(8, 8), lambda x, y: jnp.sum(x * y)):
        assert "fma.rn.f32" in assembly(sums, *args[:2])


def test_functions_of_the_hardware_are_of_float32_alone() -> None:
    """Other types have the processor's; float64 asked for its own rule without end."""
    with scoped("enable_x64", True):
        for code in "?bhilBHILefdFD":
            x = np.ones(8, code)
            both = jnp.tanh(x) / jnp.exp(x)
            assert both.dtype.kind in "fc"
            text = assembly(lambda x: jnp.tanh(x) / x, x)
            assert ("div.full.f32" in text) == (both.dtype.itemsize <= 4)
    text = assembly(jnp.exp, floats(64))
    assert "add.f32" not in text  # only add.rn.f32, which nothing contracts
    assert "mul.f32" not in text


def test_what_a_gpu_lacks_is_refused() -> None:
    """A call of a function with no text for a GPU names it."""
    source = KernelSource("def kernel(out):\n    out[0] = np.linalg.norm(2.0)\n", ("f64[1]",))
    with pytest.raises(UnsupportedOnTarget, match="norm"):
        lower("k", source)


def test_an_unknown_architecture_is_refused() -> None:
    """The error lists those that are known."""
    lowered = fnarray.jit(jnp.sin).lower(floats(4))
    with pytest.raises(ValueError, match=r"sm_90.*got 'sm_1'"):
        lowered.compile(target="sm_1")
    with pytest.raises(RuntimeError, match="compiled ahead for sm_80"):
        lowered.compile(target="sm_80")(floats(4))


def test_kernels_are_kept_by_architecture(monkeypatch) -> None:
    """The second build reads the cache; another architecture is another entry; damage is mended."""
    from fnarray.compile.cache import store
    from fnarray.compile.cuda import build

    source = KernelSource("def kernel(x, out):\n    out[0] = x[0] * f32(2)\n", ("f32[1]",) * 2)
    one, other = (build.build(source, c) for c in ("sm_90", "sm_80"))
    assert one.name != other.name
    build.forget()
    with monkeypatch.context() as patched:
        patched.setattr(build, "_made", None)
        assert build.build(source, "sm_90") == one
    build.forget()
    store.put(one.name, b"no kernel")
    assert build.build(source, "sm_90") == one


def test_without_a_linker_kernels_are_ptx(monkeypatch) -> None:
    """PTX needs no package; the driver that runs it compiles it."""
    monkeypatch.setattr(toolkit, "linker", lambda: "")
    kernel = fnarray.jit(jnp.cos).lower(floats(4)).compile(target="sm_80").kernels[0]
    assert kernel.kind == "ptx"
    assert b".target sm_80" in kernel.code
    assert kernel.cost is None


needs_linker = pytest.mark.skipif(not toolkit.linker(), reason="fnarray[cuda] is not installed")
#: Registers that each kernel may take, and still fill a multiprocessor to a half; to a third, where
#: sums are in registers; and to a quarter where the next terms are as well, so that none waits.
REGISTERS = 64
MANY = {"product_is_a_block_for_a_tile": 128, "cumsum_of_a_long_line_is_a_block": 85}


@pytest.mark.cuda
@needs_linker
def test_what_a_linker_has_dropped_is_ptx(caplog) -> None:
    """CUDA 13 has no code for Volta: its driver compiles the text, as where no linker is."""
    kernel = fnarray.jit(jnp.sin).lower(floats(4)).compile(target="sm_70").kernels[0]
    old = int(toolkit.linker().split()[-1].split(".")[0]) < 13
    assert (kernel.kind, toolkit.links("sm_70")) == (("cubin", True) if old else ("ptx", False))
    assert old or "has no code for sm_70, so the driver links" in caplog.text


@pytest.mark.cuda
@needs_linker
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_spills_nothing(name: str) -> None:
    """Kernels fit the registers of a multiprocessor that is half full, and its shared memory."""
    fun, args = PROGRAMS[name]
    for kernel in fnarray.jit(fun).lower(*args).compile(target="sm_90").kernels:
        assert kernel.kind == "cubin"
        assert kernel.code[:4] == b"\x7fELF"
        assert kernel.cost.spills == 0
        assert 0 < kernel.cost.registers <= MANY.get(name, REGISTERS)
        assert kernel.cost.shared <= 16 << 10


@pytest.mark.cuda
@needs_linker
@pytest.mark.parametrize(("length", "lanes"), [(1024, 256), (8192, 512), (32768, 1024)])
def test_rows_are_registers(length: int, lanes: int) -> None:
    """A row is read once and spills nothing; its block has the lanes that the text says."""
    lowered = fnarray.jit(f.softmax).lower(np.ones((300, length), np.float32))
    assert f"launch(kernel0, 300, {lanes}" in lowered.as_text("cuda")
    (kernel,) = lowered.compile(target="sm_90").kernels
    assert (kernel.cost.spills, kernel.cost.registers <= 64) == (0, True)


@pytest.mark.cuda
@needs_linker
@pytest.mark.slow
def test_kernels_take_many_arrays() -> None:
    """Text of an older version of PTX may have 4,352 bytes of arguments; newer drivers take 32K."""
    xs = [np.ones(3, np.float32)] * 600
    few, many = (fnarray.jit(lambda *xs: jnp.concatenate(xs)).lower(*xs[:n]) for n in (10, len(xs)))
    for lowered in (few, many):
        assert lowered.compile(target="sm_90").kernels[0].kind == "cubin"


@pytest.mark.cuda
@needs_linker
def test_scalar_words_lower_for_all_dtypes() -> None:
    """Loads and stores of every dtype, and a conversion to each other."""
    codes = ["b1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"]
    names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    for a in codes:
        for name, b in zip((*names, "float32", "float64"), codes, strict=True):
            text = f"def kernel(x, out):\n    out[0] = sc.to_{name}(x[0])\n"
            assert "st.global" in ptx(
                lower("k", KernelSource(text, (f"{a}[1]", f"{b}[1]"))), "sm_90"
            )


def test_few_tiles_share_the_terms() -> None:
    """A product of few entries and many terms runs on all multiprocessors, then adds up."""
    text = fnarray.jit(lambda x: x.T @ x).lower(np.ones((1 << 16, 32), np.float32)).as_text("cuda")
    first, second = re.findall(r"launch\(kernel\d, (\d+), 256", text)
    assert int(first) >= 132
    assert int(second) == 4


def test_neighbours_are_read_where_they_lie() -> None:
    """Rolled arrays are choices by place in their reader: one kernel, no array in between."""
    text = (
        fnarray.jit(
            lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 1) * jnp.pad(x[1:-1], ((1, 1), (0, 0)))
        )
        .lower(floats(64, 64))
        .as_text("cuda")
    )
    assert text.count("launch(") == 1


def test_products_with_vectors_read_lines() -> None:
    """A block folds a row; where columns are folded, neighbouring lanes have neighbouring ones."""
    a, x = np.ones((5000, 4096), np.float32), np.ones(4096, np.float32)
    rows = fnarray.jit(lambda a, x: a @ x).lower(a, x).as_text("cuda")
    assert "launch(kernel0, 5000, 256" in rows
    columns = fnarray.jit(lambda a, x: x @ a).lower(a.T.copy(), x).as_text("cuda")
    assert "across" in columns
    assert "room" not in rows + columns


def pooled(x):
    """Return the maxima of windows of two by two."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")


def convolved(dtype):
    """Return a convolution whose result is of another dtype than its operands."""
    return lambda x: lax.conv_general_dilated(
        x[None, None], x[None, None, :3, :3], (1, 1), "SAME", preferred_element_type=dtype
    )


ALL_KERNELS = {
    "gradient of running products of halves": ("bfloat16", lambda x: lax.cumprod(x)),
    "gradient of running maxima of halves": ("float16", lambda x: lax.cummax(x)),
    "gradient of windows of halves": ("bfloat16", pooled),
    "convolution of halves": ("bfloat16", convolved(np.float32)),
    "convolution of bytes": ("int8", convolved(np.int32)),
    "symmetric product": ("float32", lambda x: lax.linalg.symmetric_product(x, x)),
    "update of a factor": ("float32", lambda x: lax.linalg.cholesky_update(x, x[0])),
    "reflections": ("complex64", lambda x: lax.linalg.ormqr(*geqrf(x), x)),
    "columns of reflections": ("float32", lambda x: lax.linalg.householder_product(*geqrf(x))),
}


@pytest.mark.parametrize("name", ALL_KERNELS)
def test_no_step_of_it_is_the_hosts(name: str) -> None:
    """Operands stay where they are: each step is a kernel."""
    dtype, fun = ALL_KERNELS[name]
    x = fnarray.ShapeDtypeStruct((8, 8), dtype)
    if name.startswith("gradient"):
        fun = fnarray.grad(lambda x, fun=fun: fun(x).sum().astype(np.float32))
    text = fnarray.jit(fun).lower(x).as_text("cuda")
    assert "launch(" in text
    assert "host" not in text


def test_half_precision_moves_four_at_a_time() -> None:
    """Four halves are one access of 64 bits."""
    text = assembly(lambda x: x + x, np.ones(64, np.float16))
    assert "ld.global.nc.v4.b16" in text or "ld.global.nc.v2.b32" in text
