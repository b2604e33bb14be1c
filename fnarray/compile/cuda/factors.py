"""Factors of matrices that a block works out: QR and what is made of its reflections, eigenvectors,
Schur's form, square roots, factors of what is added to.

A step is known by its primitive and parameters, whatever routine the processor's target has for it.
CuPy's libraries compute some of these too; where they do, and are there, they are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from math import prod
from typing import Any, Final

import numpy as np

from ...core.graph import Var
from ..ir import Node
from . import vendor
from .calls import Calls, Launch
from .grids import BLOCKS, LANES, WARP, Grid

#: Orders up to which a block has a matrix: one of 132 multiprocessors does the host's work beyond
#: (by counts of operations and of barriers; not measured).
ITERATED, REFLECTED = 256, 1024
#: Entries beyond which matrices are scaled, and under whose inverse.
_LARGE: Final = {4: 1e9, 8: 1e75}


def runs_here(node: Node) -> bool:
    """Whether a step is kernels of blocks that have a matrix each."""
    known = _STEPS.get(node.eqn.primitive.name)
    if known is None or not all(
        isinstance(a, Var) and a.aval.size for a in (*node.ins, *node.outs)
    ):
        return False
    return max(node.ins[0].aval.shape[-2:]) <= known[1] and _wanted(node)


def launches_of(node: Node, wanted: Set[Var]) -> tuple[Launch, ...]:
    """Return the kernels of a step."""
    calls = Calls(node, wanted)
    _STEPS[node.eqn.primitive.name][0](_Matrices(calls))
    return calls.launches()


def _wanted(node: Node) -> bool:
    """Whether no library computes it, and the host needs not be asked which values come first."""
    return not node.eqn.params.get("sort_eig_vals") and not vendor.covers(node)


class _Matrices:
    """The matrices of a step, and the kernels that work on them.

    Parameters
    ----------
    calls : Calls
    """

    def __init__(self, calls: Calls):
        self.calls = calls
        node = calls.node
        self.x, *self.others = node.ins
        self.outs, self.params = node.outs, node.eqn.params
        *batch, self.m, self.n = self.x.aval.shape
        self.batch = prod(batch)
        self.dtype: np.dtype = self.x.aval.dtype
        self.real = np.dtype(self.dtype.type(0).real.dtype)
        self.complex = np.dtype(f"c{2 * self.real.itemsize}")
        self.is_real = self.dtype.kind != "c"
        self.eps = self.real.type(np.finfo(self.real).eps)
        self.large = self.real.type(_LARGE[self.real.itemsize])

    def call(self, function: str, *args: Any) -> None:
        """Add a kernel, by its module and name: a block for each matrix."""
        lanes = min(max(1 << (max(self.m, self.n) - 1).bit_length(), WARP), LANES)
        grid = Grid(min(self.batch, BLOCKS), lanes)
        self.calls.call(function, grid, *args)

    def part(self, dtype: np.dtype | str, size: int) -> str:
        """Return the name of an array in between, of so many elements for each matrix."""
        return self.calls.part(dtype, self.batch * size)

    def square(self, dtype: np.dtype) -> str:
        """Return the name of an array of square matrices."""
        return self.part(dtype, self.n**2)

    def schur(self, x: Any, t: Any, z: Any) -> None:
        """Write Schur's form."""
        name = "spectral.schur" if self.is_real else "spectral.schur_complex"
        self.call(name, x, t, z, self.batch, self.n, self.eps, self.large)

    def triangles(self, x: Any) -> tuple[str, str]:
        """Return Schur's form of complex numbers."""
        t, z = self.square(self.dtype), self.square(self.dtype)
        self.schur(x, t, z)
        if not self.is_real:
            return t, z
        whole, vectors = self.square(self.complex), self.square(self.complex)
        self.call("spectral.to_triangles", t, z, whole, vectors, self.batch, self.n)
        return whole, vectors


def _qr(of: _Matrices) -> None:
    m, n = of.m, of.n
    q, r, *order = of.outs
    work = of.part(of.dtype, m * n), of.part(of.dtype, min(m, n))
    sizes = (of.batch, m, n, q.aval.shape[-1])
    if order:
        norms = of.part(of.real, 2 * n)
        of.call("reflections.qr_pivoted", of.x, q, r, *order, *work, norms, *sizes, of.eps)
    else:
        of.call("reflections.qr", of.x, q, r, *work, *sizes)


def _schur(of: _Matrices) -> None:
    t, *z = of.outs
    of.schur(of.x, t, z[0] if z else of.square(of.dtype))


def _eig(of: _Matrices) -> None:
    w, *vectors = of.outs
    balanced, scales = of.square(of.dtype), of.part(of.real, of.n)
    of.call("spectral.balance", of.x, balanced, scales, of.batch, of.n, of.large)
    t, z = of.triangles(balanced)
    of.call("triangles.diagonals", t, w, of.batch, of.n)
    work = of.square(of.complex)
    sides = [of.params["compute_left_eigenvectors"], of.params["compute_right_eigenvectors"]]
    lefts = [left for left, asked in zip((True, False), sides, strict=True) if asked]
    for left, out in zip(lefts, vectors, strict=True):
        of.call(
            "triangles.eigenvectors",
            t,
            z,
            scales,
            work,
            out,
            of.batch,
            of.n,
            left,
            of.is_real,
            of.eps,
        )


def _sqrtm(of: _Matrices) -> None:
    t, z = of.triangles(of.x)
    work = of.square(of.complex), of.square(of.complex)
    of.call("triangles.roots", t, z, *work, of.outs[0], of.batch, of.n)


def _geqrf(of: _Matrices) -> None:
    of.call("reflections.packed", of.x, *of.outs, of.batch, of.m, of.n)


def _householder(of: _Matrices) -> None:
    (taus,) = of.others
    sizes = (of.batch, of.m, of.n, taus.aval.shape[-1])
    of.call("reflections.unpacked", of.x, taus, *of.outs, *sizes)


def _ormqr(of: _Matrices) -> None:
    taus, c = of.others
    sizes = (of.batch, of.m, of.n, taus.aval.shape[-1], *c.aval.shape[-2:])
    how = bool(of.params["left"]), bool(of.params["transpose"])
    of.call("reflections.multiplied", of.x, taus, c, *of.outs, *sizes, *how)


def _update(of: _Matrices) -> None:
    work = of.part(of.dtype, of.n)
    of.call("reflections.updated", of.x, *of.others, *of.outs, work, of.batch, of.n)


#: By primitive: how its kernels are called, and up to which order of a matrix.
_STEPS: Final[dict[str, tuple[Callable[[_Matrices], None], int]]] = {
    "qr": (_qr, REFLECTED),
    "schur": (_schur, ITERATED),
    "eig": (_eig, ITERATED),
    "sqrtm": (_sqrtm, ITERATED),
    "geqrf": (_geqrf, REFLECTED),
    "householder_product": (_householder, REFLECTED),
    "ormqr": (_ormqr, REFLECTED),
    "cholesky_update": (_update, REFLECTED),
}
