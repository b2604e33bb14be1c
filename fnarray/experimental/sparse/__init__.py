"""Sparse arrays, as ``jax.experimental.sparse`` names them.

`BCOO` holds coordinates and values, `BCSR` compressed rows; both may have batches in front and
dense axes behind. `COO`, `CSR` and `CSC` are matrices. `sparsify` applies
functions written for dense arrays. All is made of operations on dense arrays, so that every
transform applies; `linalg` solves equations and finds eigenvalues.
"""

from __future__ import annotations

from . import linalg as linalg
from ._array import SparseArray as JAXSparse
from ._bcoo import *
from ._bcsr import *
from ._convolution import *
from ._derivatives import *
from ._linear import *
from ._matrices import *
from ._primitives import *
from ._random import *
from ._shape import *
from ._sparsify import sparsify as sparsify
from ._sparsify import todense as todense

# ruff: noqa: F403 - the modules say in __all__ what is public
__all__ = [  # noqa: F405
    "BCOO", "BCSR", "COO", "CSC", "CSR", "JAXSparse", "bcoo_broadcast_in_dim",
    "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_extract", "bcoo_fromdense",
    "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum",
    "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract",
    "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_fromdense_p",
    "coo_matmat", "coo_matmat_p", "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p",
    "csr_fromdense", "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec", "csr_matvec_p",
    "csr_todense", "csr_todense_p",
    "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev", "linalg", "random_bcoo", "sparsify",
    "todense", "value_and_grad",
]  # fmt: skip
__dir__ = __all__.copy
