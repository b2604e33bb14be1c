"""COO, CSR and CSC: matrices without batches, made of the same parts as SciPy's.

They have products and conversions; what else there is to do with sparse arrays, `BCOO` does.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...tree_util import register_pytree_node_class
from ._array import SparseArray
from ._bcoo import BCOO, _as_array, bcoo_fromdense
from ._bcsr import BCSR
from ._linear import matmul

__all__ = [
    "COO",
    "CSC",
    "CSR",
    "coo_fromdense",
    "coo_matmat",
    "coo_matvec",
    "coo_todense",
    "csr_fromdense",
    "csr_matmat",
    "csr_matvec",
    "csr_todense",
]


class SparseMatrix(SparseArray):
    """A sparse array of two axes, kept as three arrays."""

    #: What the three are called; the first is `data`.
    _parts: tuple[str, str, str]

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        name = type(self).__name__
        if len(args) != 3:
            raise ValueError(f"{name}: args must be {', '.join(self._parts)}; got {len(args)}.")
        self.shape = tuple(map(operator.index, shape))
        if len(self.shape) != 2:
            raise ValueError(f"{name}: the shape must have two axes, got {self.shape}. BCOO more.")
        for part, x in zip(self._parts, args, strict=True):
            setattr(self, part, _as_array(x))

    @property
    def nse(self) -> int:  # type: ignore[override]
        """Number of elements stored."""
        return self.data.size

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return what transforms see, and the rest."""
        return tuple(getattr(self, part) for part in self._parts), {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Self:
        """Return the matrix, of leaves that may be no arrays."""
        self = object.__new__(cls)
        for part, x in zip(cls._parts, children, strict=True):
            setattr(self, part, x)
        for name, x in aux.items():
            setattr(self, name, x)
        return self

    def _with(self, data: Any) -> Self:
        """Return a matrix of other elements at the same places."""
        (_, *places), aux = self.tree_flatten()
        return self.tree_unflatten(aux, (data, *places))

    def _like(self, other: type[Any], **more: Any) -> Any:
        """Return the same three arrays as the transpose, in the format that makes them that."""
        parts, _ = self.tree_flatten()
        return other(parts, shape=self.shape[::-1], **more)

    def to_bcoo(self) -> BCOO:
        """Return the matrix as coordinates that may have batches."""
        raise TypeError(f"{type(self).__name__} does not say where its elements are")

    def astype(self, dtype: Any) -> Self:
        """Return the matrix with elements of another dtype."""
        return self._with(self.data.astype(dtype))

    def todense(self) -> Array:
        """Return the array with its zeros."""
        return self.to_bcoo().todense()

    def _transposed(self) -> Any:
        raise TypeError(f"{type(self).__name__} does not say how it is transposed")

    def transpose(self, axes: Any = None) -> Any:
        """Return the transpose; it shares its arrays with the matrix."""
        order = (1, 0) if axes is None else tuple(operator.index(a) % 2 for a in axes)
        if sorted(order) != [0, 1]:
            raise ValueError(f"{type(self).__name__}.transpose: {axes} is no order of 2 axes.")
        return self._transposed() if order == (1, 0) else self

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseArray):
            raise TypeError(
                f"{type(self).__name__} @ {type(other).__name__}: one operand must be dense. "
                "Products of two sparse arrays are BCOO's."
            )
        return matmul(self.to_bcoo(), jnp.asarray(other))

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(jnp.asarray(other), self.to_bcoo())


class COOInfo(NamedTuple):
    """What is known of coordinates."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_pytree_node_class
class COO(SparseMatrix):
    """A sparse matrix as coordinates and values.

    Parameters
    ----------
    args : (Array, Array, Array)
        ``data``, ``row`` and ``col``, of one length.
    shape : sequence of int
    rows_sorted, cols_sorted : bool
        What is known of the order.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental import sparse
    >>> M = sparse.COO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> M, (M @ jnp.ones(2)).tolist(), M.T.row.tolist()
    (COO(float32[2, 2], nse=2), [1.0, 2.0], [1, 0])
    """

    row: Any
    col: Any
    _parts = ("data", "row", "col")

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return what transforms see, and the rest."""
        parts, aux = super().tree_flatten()
        order = {"_rows_sorted": self._rows_sorted, "_cols_sorted": self._cols_sorted}
        return parts, {**aux, **order}

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """Return the matrix of the elements of another that are not zero."""
        data, row, col = _found(mat, nse, index_dtype)
        # What is left over of nse is zero at the first element, as it is in JAX.
        row, col = (jnp.where(row < jnp.shape(mat)[0], x, 0) for x in (row, col))
        return cls((data, row, col), shape=jnp.shape(mat), rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        none = jnp.zeros(0, index_dtype)
        return cls(
            (jnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True
        )

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        row, col = (jnp.asarray(x, index_dtype) for x in np.nonzero(np.eye(N, M, k)))
        ones = jnp.ones(row.size, dtype)
        return cls((ones, row, col), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def to_bcoo(self) -> BCOO:
        """Return the matrix as coordinates that may have batches."""
        return BCOO(
            (self.data, jnp.stack([self.row, self.col], -1)),
            shape=self.shape, indices_sorted=self._rows_sorted and self._cols_sorted,
        )  # fmt: skip

    def _sort_indices(self) -> COO:
        """Return the matrix with its rows in order, and its columns in each row."""
        order = jnp.lexsort((self.col, self.row))
        parts = (self.data[order], self.row[order], self.col[order])
        return COO(parts, shape=self.shape, rows_sorted=True)

    def _transposed(self) -> COO:
        return COO(
            (self.data, self.col, self.row), shape=self.shape[::-1],
            rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted,
        )  # fmt: skip


@register_pytree_node_class
class CSR(SparseMatrix):
    """A sparse matrix as compressed rows.

    Parameters
    ----------
    args : (Array, Array, Array)
        ``data``, ``indices`` of columns, and ``indptr``: where each row begins, and the last ends.
    shape : sequence of int

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental import sparse
    >>> M = sparse.CSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> M.indptr.tolist(), (M @ jnp.ones(2)).tolist(), M.T
    ([0, 1, 3], [1.0, 5.0], CSC(float32[2, 2], nse=3))
    """

    indices: Any
    indptr: Any
    _parts = ("data", "indices", "indptr")

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """Return the matrix of the elements of another that are not zero."""
        data, row, col = _found(mat, nse, index_dtype)
        rows, columns = jnp.shape(mat)
        indptr = jnp.searchsorted(row, jnp.arange(rows + 1, dtype=row.dtype)).astype(row.dtype)
        return cls((data, jnp.where(col < columns, col, 0), indptr), shape=(rows, columns))

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        _two(cls, shape)
        starts = jnp.zeros(shape[0] + 1, index_dtype)
        return cls((jnp.zeros(0, dtype), jnp.zeros(0, index_dtype), starts), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        ones = cls.fromdense(np.eye(N, M, k), index_dtype=np.dtype(index_dtype))
        return ones.astype(jnp.float32 if dtype is None else dtype)

    def to_bcoo(self) -> BCOO:
        """Return the matrix as coordinates that may have batches."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def _transposed(self) -> CSC:
        return self._like(CSC)


@register_pytree_node_class
class CSC(SparseMatrix):
    """A sparse matrix as compressed columns.

    Parameters
    ----------
    args : (Array, Array, Array)
        ``data``, ``indices`` of rows, and ``indptr``: where each column begins.
    shape : sequence of int

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental import sparse
    >>> M = sparse.CSC.fromdense(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> M.data.tolist(), (M @ jnp.ones(2)).tolist()
    ([2.0, 1.0, 3.0], [1.0, 5.0])
    """

    indices: Any
    indptr: Any
    _parts = ("data", "indices", "indptr")

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """Return the matrix of the elements of another that are not zero."""
        return CSR.fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        _two(cls, shape)
        return CSR._empty(shape[::-1], dtype=dtype, index_dtype=index_dtype).T

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        return CSR._eye(M, N, -k, dtype=dtype, index_dtype=index_dtype).T

    def to_bcoo(self) -> BCOO:
        """Return the matrix as coordinates that may have batches."""
        return self._transposed().to_bcoo().T

    def _transposed(self) -> CSR:
        return self._like(CSR)


def _two(cls: type[Any], shape: Sequence[int]) -> None:
    if len(shape) != 2:
        raise ValueError(f"{cls.__name__}: the shape must have two axes, got {tuple(shape)}.")


def _found(mat: Any, nse: int | None, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Return what is not zero, its rows and columns; padding is out of bounds."""
    if jnp.ndim(mat) != 2:
        raise ValueError(f"fromdense: a matrix has two axes, got shape {jnp.shape(mat)}.")
    coo = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return coo.data, coo.indices[:, 0], coo.indices[:, 1]


def _product(name: str, mat: SparseMatrix, other: Any, ndim: int, transpose: bool) -> Array:
    if jnp.ndim(other) != ndim:
        raise ValueError(
            f"{name}: the dense operand must have {ndim} axes, got shape {jnp.shape(other)}."
        )
    return (mat.T if transpose else mat) @ other


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """Return the coordinates and values of the elements of a matrix that are not zero."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Array:
    """Return a matrix of coordinates with its zeros."""
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a vector."""
    return _product("coo_matvec", mat, v, 1, transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a dense matrix."""
    return _product("coo_matmat", mat, B, 2, transpose)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """Return the compressed rows of the elements of a matrix that are not zero."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Array:
    """Return a matrix of compressed rows with its zeros."""
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a vector."""
    return _product("csr_matvec", mat, v, 1, transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a dense matrix."""
    return _product("csr_matmat", mat, B, 2, transpose)
