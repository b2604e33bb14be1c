"""Eigenvalues, and the condensed forms on the way to them: Schur, Hessenberg, tridiagonal."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import is_complex, to_complex, to_real
from ..core.eager import replayed
from ..core.forms import HOST, Library
from ..core.libraries import library
from ..core.primitive import Missing
from ..core.record import known_of
from ..core.trace import bind
from ..errors import MissingRuleError
from .contract import exact_matmul as matmul
from .kit import calls
from .kit.calls import (
    argmax,
    broadcast_in_dim,
    conj,
    convert_like,
    div,
    eq,
    imag,
    iota,
    mul,
    real,
    reduce_sum,
    select,
    sub,
)
from .kit.canonical import as_array
from .kit.matrix import (
    adjoint,
    alone,
    by_lapack,
    check_square,
    cut,
    diagonal,
    differences,
    hermitian_part,
    inverse_off_diagonal,
    lapack,
    per_matrix,
    workspace,
)
from .kit.rules import Tangents
from .linalg_orthogonal import by_library, subset_size
from .linalg_solve import linear_solve_p

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "eig",
    "eigh",
    "hessenberg",
    "schur",
    "tridiagonal",
]


class EighImplementation(enum.Enum):
    """Names of algorithms; all run LAPACK's divide and conquer here."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Names of algorithms; all run LAPACK's shifted QR here."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# ---- Hermitian matrices --------------------------------------------------------------------------


def _eigh_aval(
    x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, algorithm: Any
) -> tuple[ShapedArray, ShapedArray]:
    batch, n = check_square("eigh", x)
    k = n if subset_by_index is None else subset_size("eigh", subset_by_index, n)
    values = x.update(shape=(*batch, k), dtype=to_real(x.dtype))
    return x.update(shape=(*batch, n, k)), values


def _eigh_eval(x: np.ndarray, **params: Any) -> tuple[np.ndarray, ...]:
    if not x.size:
        return x, np.zeros(x.shape[:-1], to_real(x.dtype))
    one, outs = _eigh_of(x.shape, x.dtype, **params)
    return per_matrix(one, (x,), (2,), outs, finite=True)


def _eigh_of(
    shape: tuple[int, ...],
    dtype: np.dtype,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: Any,
    algorithm: Any,
) -> tuple[Any, Any]:
    n = shape[-1]
    low, high = subset_by_index or (0, n)
    # SciPy's LAPACK is JAX's too: signs of vectors agree, where those of NumPy's differ. And a
    # call costs 2 us against the 12 us of `numpy.linalg`.
    routine = lapack("heevd" if is_complex(dtype) else "syevd", dtype)
    lengths = dict(zip(("lwork", "liwork", "lrwork"), _work(dtype, n, lower), strict=False))

    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w, v, info = routine(a, lower=lower, **lengths)
        if info:
            raise np.linalg.LinAlgError
        return v[:, low:high], w[low:high]

    return one, [((n, high - low), dtype), ((high - low,), to_real(dtype))]


known_of[_eigh_eval] = alone(_eigh_of, finite=True)


def _work(dtype: np.dtype, n: int, lower: bool) -> tuple[int, ...]:
    return workspace("heevd" if is_complex(dtype) else "syevd", dtype, n, lower=lower)


def _eigh_jvp(primals: Any, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
    """``V^H dA V`` has the values' derivatives on its diagonal, the vectors' turns off it."""
    subset, params["subset_by_index"] = params["subset_by_index"], None
    v, w = bind(eigh_p, primals[0], **params)
    inner = matmul(matmul(adjoint(v), tangents[0]), v)
    dw = diagonal(real(inner) if is_complex(v.dtype) else inner)
    inverse = convert_like(inverse_off_diagonal(differences(w)), v)
    dv = matmul(v, mul(inverse, inner))
    if subset is None:
        return [v, w], [dv, dw]
    axis = v.ndim - 1
    return (
        [cut(v, axis, *subset), cut(w, axis - 1, *subset)],
        [cut(dv, axis, *subset), cut(dw, axis - 1, *subset)],
    )


def _eigh_call(ins: Any, outs: Any, *, lower: bool, subset_by_index: Any, **params: Any) -> Library:
    (x,) = ins
    return HOST if subset_by_index is not None else by_lapack("eigh", x, x.shape[-1], lower)


eigh_p = by_library("eigh", _eigh_aval, _eigh_eval, jvp=_eigh_jvp, call=_eigh_call)


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Return eigenvectors and eigenvalues, ascending, of Hermitian matrices.

    Parameters
    ----------
    x : array
        Matrices (n, n) along the last two axes.
    lower : bool
        Which triangle is read where ``symmetrize_input`` is False.
    symmetrize_input : bool
        Whether to decompose ``(x + x^H) / 2``.
    sort_eigenvalues : bool
        They are sorted in any case.
    subset_by_index : (int, int), optional
        Range of the values wanted, from the smallest.
    implementation : EighImplementation, optional
        Accepted for compatibility.

    Returns
    -------
    (v, w) : arrays
        Vectors in columns, and real values. NaN for matrices that hold NaN.

    Raises
    ------
    TypeError
        For ranks below 2, or dtypes other than single and double precision.
    ValueError
        For matrices that are not square.
    """
    x = as_array(x)
    check_square("eigh", x.aval)
    v, w = bind(
        eigh_p,
        hermitian_part(x) if symmetrize_input else x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=None if subset_by_index is None else tuple(map(index, subset_by_index)),
        algorithm=implementation,
    )
    return v, w


# ---- general matrices ----------------------------------------------------------------------------


def _eig_aval(
    x: ShapedArray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> tuple[ShapedArray, ...]:
    batch, n = check_square("eig", x)
    x = x.update(dtype=to_complex(x.dtype))
    vectors = int(compute_left_eigenvectors) + int(compute_right_eigenvectors)
    return (x.update(shape=(*batch, n)), *(x,) * vectors)


def _geev(x: np.ndarray, left: bool, right: bool) -> tuple[np.ndarray, ...]:
    outs = lapack("geev", x.dtype)(x, compute_vl=left, compute_vr=right)
    if outs[-1]:
        raise np.linalg.LinAlgError
    *values, vl, vr, _ = outs
    w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
    vectors = [v for v, wanted in ((vl, left), (vr, right)) if wanted]
    if x.dtype.kind != "c":
        vectors = [_paired(v, w.imag) for v in vectors]
    return (w, *vectors)


def _paired(v: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Return complex vectors of LAPACK's real storage: real and imaginary part, side by side."""
    out = v.astype(to_complex(v.dtype))
    first = np.flatnonzero(imaginary > 0)
    out[:, first] = v[:, first] + 1j * v[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def _eig_eval(
    x: np.ndarray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> tuple[np.ndarray, ...]:
    n, dtype = x.shape[-1], to_complex(x.dtype)
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    outs = [((n,), dtype), *[((n, n), dtype)] * (left + right)]
    if not x.size:
        return tuple(np.zeros((*x.shape[:-2], *shape), dtype) for shape, _ in outs)
    return per_matrix(lambda a: _geev(a, left, right), (x,), (2,), outs, finite=True)


def _turns(w: Any, v: Any, change: Any) -> tuple[Any, Any]:
    """Return derivatives of eigenvalues and vectors (Giles 2008, section 3.1).

    ``V^-1 dA V`` holds the former on its diagonal. LAPACK's vectors have length 1 and a real
    largest entry, which settles what multiple of itself each vector changes by.
    """
    rows = v.ndim - 2
    inner = bind(linear_solve_p, v, matmul(change, v))
    dv = matmul(v, mul(inverse_off_diagonal(differences(w)), inner))
    along = real(reduce_sum(mul(conj(v), dv), (rows,)))
    largest = argmax(calls.abs(v), rows)
    places = iota(v.shape, rows)
    here = eq(places, _rows(largest, v))
    turned, held = (
        reduce_sum(part(select(here, x, 0)), (rows,)) for part, x in ((imag, dv), (real, v))
    )
    factor = calls.complex(along, div(turned, held))
    return diagonal(inner), sub(dv, mul(v, _rows(factor, v)))


def _rows(x: Any, like: Any) -> Any:
    """Repeat vectors as the rows of matrices."""
    axes = (*range(like.ndim - 2), like.ndim - 1)
    return broadcast_in_dim(x, like.shape, axes)


def _eig_jvp(primals: Any, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
    (x,) = primals
    left, right = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]
    if (left or right) and not params["enable_eigvec_derivs"]:
        raise MissingRuleError(
            "jvp",
            "eig",
            "eigenvectors of matrices that are not Hermitian have no phase of their own; use "
            "eigvals, or lax.linalg.eig with enable_eigvec_derivs=True where the result does not "
            "depend on phases",
        )
    params["compute_right_eigenvectors"] = True
    w, *vectors = bind(eig_p, x, **params)
    change = convert_like(tangents[0], w)
    dw, dv = _turns(w, vectors[-1], change)
    outs, douts = [w], [dw]
    if left:
        # They are the right ones of the adjoint.
        outs.append(vectors[0])
        douts.append(_turns(conj(w), vectors[0], adjoint(change))[1])
    if right:
        outs.append(vectors[-1])
        douts.append(dv)
    return outs, douts


#: Kernels, by whether left and right vectors are wanted.
_EIG = {
    (False, False): "eigvals",
    (True, False): "eig_left",
    (False, True): "eig_right",
    (True, True): "eig_both",
}


def _eig_call(ins: Any, outs: Any, **params: Any) -> Library:
    (x,) = ins
    vectors = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]
    return by_lapack(_EIG[vectors], x, x.shape[-1])


eig_p = by_library("eig", _eig_aval, _eig_eval, jvp=_eig_jvp, call=_eig_call)


@replayed
def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Return eigenvalues and eigenvectors of square matrices, all complex.

    Parameters
    ----------
    x : array
        Matrices (n, n) along the last two axes.
    compute_left_eigenvectors, compute_right_eigenvectors : bool
        Which vectors to return after the values, left ones first; in columns, of length 1.
    enable_eigvec_derivs : bool
        Whether the vectors have derivatives. Their phases are arbitrary: results that depend on
        them have no derivative.
    implementation, use_magma : optional
        Accepted for compatibility.

    Raises
    ------
    TypeError
        For ranks below 2, or dtypes other than single and double precision.
    ValueError
        For matrices that are not square.
    """
    return bind(
        eig_p,
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


# ---- condensed forms -----------------------------------------------------------------------------


def _schur_aval(
    x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> tuple[ShapedArray, ...]:
    check_square("schur", x)
    return (x, x) if compute_schur_vectors else (x,)


def _schur_eval(
    x: np.ndarray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> tuple[np.ndarray, ...]:
    linalg = library("scipy.linalg")

    n = x.shape[-1]
    sort = select_callable if sort_eig_vals else None

    def one(a: np.ndarray) -> tuple[np.ndarray, ...]:
        t, z, *_ = linalg.schur(a, sort=sort, check_finite=False)
        return (t, z) if compute_schur_vectors else (t,)

    outs = [((n, n), x.dtype)] * (1 + compute_schur_vectors)
    if not x.size:
        return (x,) * len(outs)
    t, *z = per_matrix(one, (x,), (2,), outs, finite=True)
    return np.where(np.isnan(t).any((-2, -1), keepdims=True), np.triu(t), t), *z


def _schur_call(
    ins: Any, outs: Any, *, compute_schur_vectors: bool, sort_eig_vals: bool, **params: Any
) -> Library:
    (x,) = ins
    name = "schur" if compute_schur_vectors else "schur_form"
    return HOST if sort_eig_vals else by_lapack(name, x, x.shape[-1])


schur_p = by_library(
    "schur",
    _schur_aval,
    _schur_eval,
    call=_schur_call,
    jvp=Missing("the Schur form jumps where eigenvalues meet; use eigvals, expm or solve"),
)


@replayed
def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Return the Schur form: ``z @ t @ z^H = x`` with ``t`` upper triangular.

    Of real matrices, ``t`` has blocks of size 2 for pairs of complex eigenvalues.

    Parameters
    ----------
    x : array
        Matrices (n, n) along the last two axes.
    compute_schur_vectors : bool
        Whether to return ``[t, z]``, or ``[t]``.
    sort_eig_vals : bool
        Whether eigenvalues for which ``select_callable`` is true come first.
    select_callable : callable, optional
        Predicate of an eigenvalue.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    return bind(
        schur_p,
        x,
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=bool(sort_eig_vals),
        select_callable=select_callable,
    )


_CONDENSED = Missing("reflections are LAPACK's storage; differentiate eigh, eigvals or solve")


def _hessenberg_aval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    batch, n = check_square("hessenberg", a)
    return a, a.update(shape=(*batch, max(n - 1, 0)))


def _hessenberg_eval(a: np.ndarray) -> tuple[np.ndarray, ...]:
    n = a.shape[-1]
    if not a.size:
        return a, np.zeros((*a.shape[:-2], max(n - 1, 0)), a.dtype)
    routine = lapack("gehrd", a.dtype)
    outs = [((n, n), a.dtype), ((n - 1,), a.dtype)]
    return per_matrix(lambda x: routine(x)[:2], (a,), (2,), outs)


def _condensed_call(ins: Any, outs: Any, **params: Any) -> Library:
    (x,) = ins
    n = x.shape[-1]
    return HOST if n < 2 else by_lapack(_NAMES[len(outs)], x, n, *params.values())


#: Kernels, by how many results they have.
_NAMES = {2: "hessenberg", 4: "tridiagonal"}

hessenberg_p = by_library(
    "hessenberg", _hessenberg_aval, _hessenberg_eval, jvp=_CONDENSED, call=_condensed_call
)


def hessenberg(a: Any) -> list[Array]:
    """Reduce square matrices to upper Hessenberg form by reflections.

    Returns
    -------
    packed, taus : arrays
        The form on and above the first subdiagonal, reflections below it, and their scales, as
        `householder_product` takes them.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    return bind(hessenberg_p, a)


def _tridiagonal_aval(a: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    batch, n = check_square("tridiagonal", a)
    if not n:
        raise TypeError("lax.linalg.tridiagonal takes matrices of at least one row.")
    real = to_real(a.dtype)
    off = (*batch, n - 1)
    return (
        a,
        a.update(shape=(*batch, n), dtype=real),
        a.update(shape=off, dtype=real),
        a.update(shape=off),
    )


def _tridiagonal_eval(a: np.ndarray, *, lower: bool) -> tuple[np.ndarray, ...]:
    n = a.shape[-1]
    routine = lapack("hetrd" if a.dtype.kind == "c" else "sytrd", a.dtype)
    real = to_real(a.dtype)
    outs = [((n, n), a.dtype), ((n,), real), ((n - 1,), real), ((n - 1,), a.dtype)]
    return per_matrix(lambda x: routine(x, lower=lower)[:4], (a,), (2,), outs)


tridiagonal_p = by_library(
    "tridiagonal", _tridiagonal_aval, _tridiagonal_eval, jvp=_CONDENSED, call=_condensed_call
)


def tridiagonal(a: Any, *, lower: bool = True) -> list[Array]:
    """Reduce Hermitian matrices to real tridiagonal form by reflections.

    Parameters
    ----------
    a : array
        Matrices (n, n) along the last two axes, of which one triangle is read.
    lower : bool
        Which.

    Returns
    -------
    packed, d, e, taus : arrays
        The reflections, the diagonal, the one beside it, and the reflections' scales.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    return bind(tridiagonal_p, a, lower=bool(lower))
