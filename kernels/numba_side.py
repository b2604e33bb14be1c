"""What Numba is told of the kernels: scalar texts as intrinsics, loops as functions to compile.

The one module of kernels that imports Numba; whoever compiles with Numba imports it first.
"""

# pyright: reportAttributeAccessIssue=false
# typings/ declares what fnarray uses of Numba, less than this.

from __future__ import annotations

import numpy as np
from llvmlite import ir
from llvmlite.binding import address_of_symbol
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.core.types import IntegerLiteral, unliteral
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, overload, register_jitable, types
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype, from_dtype

from fnarray_kernels._ir import LLVM
from fnarray_kernels.registry import listen
from fnarray_kernels.routines import LETTERS

# --- scalar texts -------------------------------------------------------------------------------

_IR = {
    "i1": ir.IntType(1), "i8": ir.IntType(8), "i16": ir.IntType(16), "i32": ir.IntType(32),
    "i64": ir.IntType(64), "float": ir.FloatType(), "double": ir.DoubleType(),
    "void": ir.VoidType(), "ptr": ir.IntType(8).as_pointer(),
}  # fmt: skip


class _Pasted(ir.Instruction):
    """A template's instructions as one of llvmlite's, which prints it and does no more."""

    def __init__(self, block, template, operands):
        kind = LLVM[template.dtype] if template.result else "void"
        super().__init__(block, _IR[kind], "text", [], name="text")
        names = [a.get_reference() for a in operands]
        text, _ = template.pasted(self.name, names, self.get_reference())
        self.text = text.replace("\n", "\n  ")

    def __str__(self):
        return self.text


def _paste(builder, template, operands):
    """Append a template's instructions; return its result."""
    module = builder.module
    for name, (result, args) in template.declared.items():
        if name not in module.globals:
            ir.Function(module, ir.FunctionType(_IR[result], [_IR[a] for a in args]), name)
    for name, table in template.tables.items():
        if name not in module.globals:
            element = _IR[LLVM[table.dtype]]
            data = ir.GlobalVariable(module, ir.ArrayType(element, len(table)), name)
            data.global_constant, data.linkage = True, "internal"
            data.initializer = ir.Constant(data.value_type, [element(v) for v in table.tolist()])
    if template.result.startswith("%~") and template.result[2].isalpha():
        return operands[ord(template.result[2]) - ord("a")]  # a text may give an argument back
    pasted = _Pasted(builder.block, template, operands)
    builder._insert(pasted)
    return pasted


def _common(face, args):
    """Return the one dtype that arguments of Numba types share, integer literals aside."""
    firm = [a for a in args if not isinstance(a, IntegerLiteral)] or args[:1]
    try:
        dtypes = {as_dtype(unliteral(a)) for a in firm}
        face.rule.check(dtypes)
    except (NotImplementedError, TypeError) as error:
        raise TypingError(f"fnarray_kernels: {error}; called with {args}") from None
    return dtypes.pop()


def _scalar(face, _):
    class Template(AbstractTemplate):
        key, prefer_literal = face, True

        def generic(self, args, kws):
            return signature(from_dtype(face.rule.result or _common(face, args)), *args)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, types.VarArg(types.Any))
    def lower(context, builder, sig, args):
        dtype = _common(face, sig.args)
        kinds = (dtype if as_dtype(unliteral(t)) == dtype else t.literal_value for t in sig.args)
        return _paste(builder, face.traced(tuple(kinds)), args)


def _power(face, _):
    class Template(AbstractTemplate):
        key, prefer_literal = face, True

        def generic(self, args, kws):
            if not isinstance(args[1], IntegerLiteral):
                raise TypingError(f"ipow: the exponent must be a literal integer, got {args[1]}")
            return signature(unliteral(args[0]), *args)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, types.Any, IntegerLiteral)
    def lower(context, builder, sig, args):
        kinds = as_dtype(unliteral(sig.args[0])), sig.args[1].literal_value
        return _paste(builder, face.traced(kinds), args)


# --- indices and views --------------------------------------------------------------------------


def _index(face, _):
    class Template(AbstractTemplate):
        key = face

        def generic(self, args, kws):
            if not isinstance(args[0], types.Integer):
                raise TypingError(f"fnarray_kernels.u: an integer index is needed, got {args[0]}")
            return signature(types.uint64, *args)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, types.Integer)
    def lower(context, builder, sig, args):
        return context.cast(builder, args[0], sig.args[0], types.uint64)


def _view(face, _):
    class Template(AbstractTemplate):
        key = face

        def generic(self, args, kws):
            (a,) = args
            if not isinstance(a, types.Array) or (a.layout != "C" and a.ndim):
                raise TypingError(f"fnarray_kernels.flat: a C-contiguous array is needed, got {a}")
            return signature(a.copy(ndim=1, layout="C"), a)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, types.Array)
    def lower(context, builder, sig, args):
        old = make_array(sig.args[0])(context, builder, args[0])
        new = make_array(sig.return_type)(context, builder)
        one = ir.Constant(old.nitems.type, 1)
        populate_array(
            new,
            data=old.data,
            shape=cgutils.pack_array(builder, [builder.mul(old.nitems, one)]),
            strides=cgutils.pack_array(builder, [old.itemsize]),
            itemsize=old.itemsize,
            meminfo=old.meminfo,
            parent=old.parent,
        )
        return impl_ret_borrowed(context, builder, sig.return_type, new._getvalue())


# --- functions that are their own text ----------------------------------------------------------


def _text(function, _):
    register_jitable(error_model="numpy")(function)


def _in_double(face, core):
    """Compile `core`, which works in float64, so that it gives back its arguments' dtype."""

    @overload(face, jit_options={"error_model": "numpy"})
    def chosen(*args):
        if all(a == types.float32 for a in args):
            return lambda *args: np.float32(core(*args))
        return lambda *args: core(*args)


def _complex(face, _):
    @overload(face, inline="always")
    def chosen(re, im):
        return lambda re, im: complex(re, im)


#: What products of matrices take where the process has routines of its own for them, under these
#: names: ``ptr`` of the matrices, sizes, strides (`fnarray.compile.cpu.native.gemm`).
PRODUCTS = {types.float32: "fnarray_product_s", types.float64: "fnarray_product_d"}
_TAKES = signature(types.void, *[types.intp] * 15)


def _of_dtype(texts, dtype):
    """Return the text of a product: by BLAS, of integers, of bools."""
    if isinstance(dtype, types.Float | types.Complex):
        return texts[0]
    return texts[2 if isinstance(dtype, types.Boolean) else 1]


def _product(face, texts):
    dot = texts[0]
    by_blas = register_jitable(error_model="numpy")(dot)

    @overload(face, jit_options={"error_model": "numpy"})
    def chosen(a, b, out, m, k, n, left, right):
        text = _of_dtype(texts, out.dtype)
        if text is not dot:
            return text
        name = PRODUCTS.get(out.dtype)
        if name is None or address_of_symbol(name) is None:
            return dot
        ours = types.ExternalFunction(name, _TAKES)

        def product(a, b, out, m, k, n, left, right):
            if m == 1 or n == 1:
                by_blas(a, b, out, m, k, n, left, right)
            else:
                x, y, z = a.ctypes.data, b.ctypes.data, out.ctypes.data
                lda, ldb = m if left else k, k if right else n
                ours(x, y, z, m, k, n, lda, ldb, n, left, right, 1, 0, 0, 0)

        return product


def _block(face, texts):
    @overload(face, jit_options={"error_model": "numpy"})
    def chosen(a, b, out, m, k, n, left, right, low, high):
        return _of_dtype(texts, out.dtype)


def _mode(face, template):
    """Compile a function of integers that does more than compute: no text over scalars."""
    takes = [types.int64] * face.__code__.co_argcount

    class Template(AbstractTemplate):
        key = face

        def generic(self, args, kws):
            return signature(types.int64 if template.result else types.none, *takes)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, *takes)
    def lower(context, builder, sig, args):
        result = _paste(builder, template, args)
        return result if template.result else context.get_dummy_value()


def _routine(face, name):
    """Compile a call of one of LAPACK's routines, whose symbols the process has."""

    class Template(AbstractTemplate):
        key = face

        def generic(self, args, kws):
            return signature(types.none, *args)

    infer_global(face, types.Function(Template))

    @lower_builtin(face, types.VarArg(types.Any))
    def lower(context, builder, sig, args):
        symbol = f"fnarray_{LETTERS[as_dtype(sig.args[0].dtype).name]}{name}"
        arrays = [
            make_array(t)(context, builder, a) for t, a in zip(sig.args[1:], args[1:], strict=True)
        ]
        takes = ir.FunctionType(ir.VoidType(), [_IR["ptr"]] * len(arrays))
        routine = cgutils.get_or_insert_function(builder.module, takes, symbol)
        builder.call(routine, [builder.bitcast(a.data, _IR["ptr"]) for a in arrays])
        return context.get_dummy_value()


_KINDS = {
    "scalar": _scalar,
    "power": _power,
    "index": _index,
    "view": _view,
    "text": _text,
    "in double": _in_double,
    "complex": _complex,
    "product": _product,
    "few": _product,
    "block": _block,
    "pieces": _text,
    "mode": _mode,
    "routine": _routine,
}

listen(lambda kind, function, what: _KINDS[kind](function, what))
