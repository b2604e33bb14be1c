"""Rows of linear algebra's operations: decompositions are unique up to what LAPACK chooses."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from .opcase import OpCase

_rng = np.random.default_rng(0)


def _matrices(kind: str, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Return matrices of a kind, far from singular."""
    x = _rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * _rng.normal(size=shape)
    if kind == "positive":
        x = x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1])
    elif kind == "hermitian":
        x = x + x.conj().swapaxes(-1, -2)
    elif kind == "dominant":
        x = x + 3 * np.eye(*shape[-2:])
    return x.astype(dtype)


def _row(name: str, *values: np.ndarray, ulp: float = 200, **params: object) -> OpCase:
    label, settings = name.split(":")[0], MappingProxyType(params)
    return OpCase(
        name,
        lambda lax: lambda *xs: getattr(lax.linalg, label)(*xs, **settings),
        values=values,
        ulp=ulp,
    )


def _reflections(*shape: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    packed, taus = np.linalg.qr(_matrices("", *shape, dtype=dtype), "raw")
    return np.ascontiguousarray(np.swapaxes(packed, -1, -2)), taus


CASES = []
for _dtype in ("float32", "complex64"):
    _a = _matrices("dominant", 3, 4, 4, dtype=_dtype)
    _h = _matrices("hermitian", 3, 4, 4, dtype=_dtype)
    _p = _matrices("positive", 3, 4, 4, dtype=_dtype)
    _tall, _wide = (_matrices("", 2, *s, dtype=_dtype) for s in ((5, 3), (3, 5)))
    _b = _matrices("", 3, 4, 2, dtype=_dtype)
    _packed, _taus = _reflections(2, 5, 3, dtype=_dtype)
    _c = _matrices("", 2, 5, 5, dtype=_dtype)
    _diagonals = [_matrices("", 3, 4, dtype=_dtype) + k for k in (0, 3, 0)]
    CASES += [
        _row(f"cholesky:{_dtype}", _p),
        _row(f"cholesky:raw-{_dtype}", _p, symmetrize_input=False),
        _row(f"cholesky:indefinite-{_dtype}", -_p),
        *(_row(f"lu:{_dtype}-{x.shape}", x) for x in (_a, _tall, _wide, _a[:0], _a[:, :0])),
        *(
            _row(f"qr:{_dtype}-{x.shape}-{full}-{p}", x, full_matrices=full, pivoting=p)
            for x in (_a, _tall, _wide)
            for full in (True, False)
            for p in (True, False)
        ),
        *(
            _row(f"svd:{_dtype}-{x.shape}-{full}", x, full_matrices=full)
            for x in (_tall, _wide, _a[:, :0])
            for full in (True, False)
        ),
        _row(f"svd:values-{_dtype}", _wide, compute_uv=False),
        _row(f"eigh:{_dtype}", _h),
        _row(f"eig:{_dtype}", _a, ulp=1000),
        _row(f"eig:values-{_dtype}", _a, ulp=1000, compute_left_eigenvectors=False),
        _row(f"schur:{_dtype}", _a, ulp=1000),
        _row(f"schur:alone-{_dtype}", _a, ulp=1000, compute_schur_vectors=False),
        _row(f"hessenberg:{_dtype}", _a),
        *(_row(f"tridiagonal:{_dtype}-{low}", _h, ulp=2000, lower=low) for low in (True, False)),
        *(
            _row(
                f"triangular_solve:{_dtype}-{left}-{low}-{turn}-{unit}",
                _a,
                _b if left else np.swapaxes(_b, 1, 2).copy(),
                ulp=4000,
                left_side=left,
                lower=low,
                transpose_a=turn,
                conjugate_a=turn,
                unit_diagonal=unit,
            )
            for left in (True, False)
            for low in (True, False)
            for turn, unit in ((True, True), (False, False))
        ),
        _row(f"triangular_solve:vector-{_dtype}", _a, _b[..., 0], left_side=True, ulp=1000),
        _row(f"tridiagonal_solve:{_dtype}", *_diagonals, _b, ulp=1000),
        _row(f"householder_product:{_dtype}", _packed, _taus),
        *(
            _row(f"ormqr:{_dtype}-{left}-{turn}", _packed, _taus, _c, left=left, transpose=turn)
            for left in (True, False)
            for turn in (True, False)
        ),
    ]
_pivots = np.array([[3, 2, 2], [1, 1, 2]], np.int32)
_upper, _w = np.triu(_matrices("dominant", 4, 4)), _matrices("", 4)
CASES += [
    _row("lu_pivots_to_permutation", _pivots, permutation_size=5),
    _row("symmetric_product", _matrices("", 4, 3), _matrices("hermitian", 4, 4), beta=2.0),
    _row("cholesky_update", _upper, _w, ulp=2000),
    OpCase(
        "qdwh",
        lambda lax: lambda x: lax.linalg.qdwh(x)[:2],
        values=(_matrices("", 5, 3),),
        ulp=1000,
    ),
]

_one, _square = np.ones(3, np.float32), np.ones((3, 3), np.float32)
_long, _int = np.ones((2, 3), np.float32), np.ones((3, 3), np.int32)


def _error(name: str, *values: np.ndarray, match: str, raises=ValueError, **params) -> OpCase:
    return OpCase(
        name,
        lambda lax: lambda *xs: getattr(lax.linalg, name.split(":")[0])(*xs, **params),
        values=values,
        raises=raises,
        jax_raises=Exception,
        match=match,
    )


ERRORS = [
    _error("cholesky", _long, match=r"square matrices, got shape \(2, 3\)"),
    _error("lu", _one, raises=TypeError, match=r"rank at least 2, got shape \(3,\)"),
    _error("qr", _int, raises=TypeError, match="int32"),
    _error("svd", _one, raises=TypeError, match="rank at least 2"),
    _error("eigh", _long, match=r"\(2, 3\)"),
    _error("eigh:range", _square, match="within 3 values", subset_by_index=(2, 5)),
    _error("eig", _long, match=r"\(2, 3\)"),
    _error("schur", _long, match=r"\(2, 3\)"),
    _error("hessenberg", _long, match=r"\(2, 3\)"),
    _error("tridiagonal", _long, match=r"\(2, 3\)"),
    _error("triangular_solve", _long, _long, match=r"\(2, 3\)"),
    _error("triangular_solve:sizes", _square, _long, match="3 rows", left_side=True),
    _error(
        "triangular_solve:dtypes",
        _square,
        _long.astype(np.float16),
        raises=TypeError,
        match="float32, float16",
    ),
    _error("tridiagonal_solve", _one, _one, _one, _one, raises=TypeError, match="diagonals"),
    _error("householder_product", _long, _one, match="as many rows as columns"),
    _error("ormqr", _long.T.copy(), _one[:2], _long, match="3 rows", left=True),
    _error("symmetric_product", _long, _square, match=r"\(2, 3\) and \(3, 3\)"),
    _error("cholesky_update", _long, _one, match=r"\(2, 3\)"),
    _error("lu_pivots_to_permutation", _int[0], match="no shorter", permutation_size=2),
    _error("qdwh", _long, match=r"\(2, 3\)"),
]
