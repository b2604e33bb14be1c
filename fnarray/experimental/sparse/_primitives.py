"""What products and conversions of COO and CSR are called as primitives, in JAX.

Libraries with sparse classes of their own bind them with the matrix's parts. Each is a function
of operations on dense arrays here, so a `bind` is a call of it: there is nothing to give rules to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.array import Array
from ...extend._primitive import Primitive
from ._matrices import COO, CSR, COOInfo, coo_fromdense, csr_fromdense

__all__ = [
    "coo_fromdense_p",
    "coo_matmat_p",
    "coo_matvec_p",
    "coo_todense_p",
    "csr_fromdense_p",
    "csr_matmat_p",
    "csr_matvec_p",
    "csr_todense_p",
]


class _Composed(Primitive):
    """A name for a function on arrays, which every transform sees through."""

    __slots__ = ("fun",)

    def __init__(self, name: str, fun: Callable[..., Any], multiple_results: bool = False):
        super().__init__(name)
        self.fun = self.def_impl(fun)
        self.multiple_results = multiple_results

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Call the function, in the trace in progress."""
        return self.fun(*args, **params)


def _coo(data: Any, row: Any, col: Any, info: COOInfo) -> COO:
    return COO(
        (data, row, col), shape=info.shape, rows_sorted=info.rows_sorted,
        cols_sorted=info.cols_sorted,
    )  # fmt: skip


def _coo_todense(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Array:
    return _coo(data, row, col, spinfo).todense()


def _coo_fromdense(mat: Any, *, nse: int, index_dtype: Any) -> list[Array]:
    return list(coo_fromdense(mat, nse=nse, index_dtype=index_dtype).tree_flatten()[0])


def _coo_product(
    data: Any, row: Any, col: Any, other: Any, *, spinfo: COOInfo, transpose: bool
) -> Array:
    mat = _coo(data, row, col, spinfo)
    return (mat.T if transpose else mat) @ other


def _csr_todense(data: Any, indices: Any, indptr: Any, *, shape: tuple[int, int]) -> Array:
    return CSR((data, indices, indptr), shape=shape).todense()


def _csr_fromdense(mat: Any, *, nse: int, index_dtype: Any) -> list[Array]:
    return list(csr_fromdense(mat, nse=nse, index_dtype=index_dtype).tree_flatten()[0])


def _csr_product(
    data: Any, indices: Any, indptr: Any, other: Any, *, shape: tuple[int, int], transpose: bool
) -> Array:
    mat = CSR((data, indices, indptr), shape=shape)
    return (mat.T if transpose else mat) @ other


coo_todense_p = _Composed("coo_todense", _coo_todense)
coo_fromdense_p = _Composed("coo_fromdense", _coo_fromdense, multiple_results=True)
coo_matvec_p = _Composed("coo_matvec", _coo_product)
coo_matmat_p = _Composed("coo_matmat", _coo_product)
csr_todense_p = _Composed("csr_todense", _csr_todense)
csr_fromdense_p = _Composed("csr_fromdense", _csr_fromdense, multiple_results=True)
csr_matvec_p = _Composed("csr_matvec", _csr_product)
csr_matmat_p = _Composed("csr_matmat", _csr_product)
