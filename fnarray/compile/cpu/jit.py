"""Numba's side of a kernel: compile it, turn it into bytes, and back.

The only file of the compile wing that imports Numba, and `fnarray.compile.cpu.build` imports it
when the first kernel is Numba's.  It uses Numba below its dispatcher: a kernel has one
signature, known beforehand, and is never called from other compiled code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import codegen, compiler, serialize, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target as _cpu_target
from numba.core.runtime.nrt import rtsys

import fnarray_kernels.numba_side  # noqa: F401 # pyright: ignore - tells Numba of the kernels

from ...core.fork import holding_through_forks
from .key import OPTIONS
from .namespace import namespace
from .native import blas, gemm, load
from .native.call import TOLD, named
from .native.machine import wide_vectors

__all__ = ["compile_kernel", "dump", "rebuild"]

_CODE: Final = re.compile(r"([a-z]+\d+)(?:\[(\d)\])?")
cpu_target: Any = _cpu_target  # its attributes are cached properties, opaque to type checkers
_TYPES: Final = {
    "b1": types.boolean,
    "i8": types.int8,
    "i16": types.int16,
    "i32": types.int32,
    "i64": types.int64,
    "u8": types.uint8,
    "u16": types.uint16,
    "u32": types.uint32,
    "u64": types.uint64,
    "f32": types.float32,
    "f64": types.float64,
    "c64": types.complex64,
    "c128": types.complex128,
}


# Kernels call the same products, whoever compiles them.
for _letter in gemm.KINDS:
    _name = gemm.symbol(_letter)
    if _name and (_address := load.product(_name)):
        llvm.add_symbol(_name, _address)
for _name in blas.routines.ROUTINES:
    if _address := blas.lapack(_name):
        llvm.add_symbol(f"fnarray_{_name}", _address)
llvm.add_symbol(TOLD, named(TOLD) or 0)


class KernelLibrary(codegen.JITCodeLibrary):
    """Machine code of one kernel, which shares no helper with any other kernel.

    Numba links helpers into each caller as weak symbols, named by a counter that starts anew
    in every process.  Two objects cached by two processes can hold different helpers of one
    name, and the loader keeps the first for both: wrong results, seen with Numba 0.68.  Made
    internal, helpers cannot meet.
    """

    def add_ir_module(self, ir_module: Any) -> None:
        """Take a module in, its functions marked with the width to vectorise to."""
        if wide_vectors():
            for function in ir_module.functions:
                if function.blocks:
                    # llvmlite checks names of attributes against a list that has no key-value ones.
                    set[str].add(function.attributes, '"prefer-vector-width"="512"')
        super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
                # LLVM's loader enters internal names in its table of symbols too, and lets a weak
                # definition that comes later give way to them: without a name of its own, a
                # helper of a cached kernel would stand in for one of the user's Numba code.
                function.name = f"{function.name}.{self.name}"
        # Numba optimises twice, the first time to bring reference counts together that it then
        # prunes. Kernels count no references: the second run finds nothing to do (the assembly
        # of all benchmarks was the same to the line without it), in a fifth of the time.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


# A fork waits for the compilation in progress in another thread: the child would inherit its
# lock, held by nobody, and LLVM half-way through.
holding_through_forks(global_compiler_lock.acquire, global_compiler_lock.release)


@global_compiler_lock
def compile_kernel(function: Callable[..., None], signature: tuple[str, ...]) -> Any:
    """Compile a kernel for one signature; return Numba's compile result."""
    target = cpu_target.target_context
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, dict(OPTIONS))
    library = KernelLibrary(target.codegen(), function.__name__)
    library.enable_object_caching()
    return compiler.compile_extra(
        cpu_target.typing_context,
        target,
        function,
        args=tuple(map(_numba_type, signature)),
        return_type=types.none,
        flags=flags,
        locals={},
        library=library,
    )


@global_compiler_lock
def dump(result: Any) -> bytes | None:
    """Turn a compile result into bytes, or None if its code holds addresses of this process."""
    if result.library.has_dynamic_globals or any(not lift.can_cache for lift in result.lifted):
        return None
    functions = result.library._final_module.functions
    external = [f.name for f in functions if f.is_declaration and not f.name.startswith("llvm.")]
    return serialize.dumps((external, result._reduce()))


@global_compiler_lock
def rebuild(payload: bytes) -> Callable[..., None]:
    """Return the callable of a dumped compile result.

    Raises
    ------
    LookupError
        The code calls a function that this process does not have.
    """
    external, state = serialize.loads(payload)
    target = cpu_target.target_context
    # The runtime is all that most kernels need.  Numba would refresh the whole target here:
    # 0.3 s in a new process, half of it to import scipy.linalg.
    rtsys.initialize(target)
    if _missing(external):
        namespace()
        target.refresh()
    if missing := _missing(external):
        # LLVM ends the process when it meets a symbol it cannot resolve.
        raise LookupError(f"cached kernel calls {', '.join(missing)}, which cannot be found")
    return compiler.CompileResult._rebuild(target, *state).entry_point


def _missing(symbols: list[str]) -> list[str]:
    return [name for name in symbols if llvm.address_of_symbol(name) is None]


def _numba_type(code: str) -> types.Type:
    match = _CODE.fullmatch(code)
    if match is None or match[1] not in _TYPES:
        raise ValueError(
            f"compile.cpu.build: a signature has codes such as 'i64' or 'f32[2]', got {code!r}. "
            f"The dtypes are {', '.join(_TYPES)}."
        )
    dtype = _TYPES[match[1]]
    return dtype if match[2] is None else types.Array(dtype, int(match[2]), "C")
