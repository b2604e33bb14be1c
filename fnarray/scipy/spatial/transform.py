"""Rotations of space, and what lies between them; named as in ``scipy.spatial.transform``.

A rotation is a unit quaternion ``(x, y, z, w)``. What divides by an angle is written so that it has
the right value and derivative where the angle is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ... import numpy as jnp
from ... import random
from ...core.array import Array
from ...core.dtypes import is_inexact

__all__ = ["Rotation", "Slerp"]
__dir__ = __all__.copy


def _floating(name: str, x: Any, size: tuple[int, ...]) -> Array:
    x = jnp.asarray(x)
    x = x if is_inexact(x.dtype) else x.astype(float)
    if x.ndim not in (len(size), len(size) + 1) or x.shape[x.ndim - len(size) :] != size:
        raise ValueError(
            f"Rotation.{name}: expected an array of shape {size} or (n, {str(size)[1:-1]}), got "
            f"{x.shape}."
        )
    return x


def _norm(x: Array) -> Array:
    """Return lengths, whose derivative at 0 is 0."""
    squares = (x * x).sum(-1)
    zero = squares == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, squares)))


def _product(p: Array, q: Array) -> Array:
    """Return the quaternion of ``p`` after ``q``."""
    a, b = p[..., :3], q[..., :3]
    s, t = p[..., 3:], q[..., 3:]
    vector = s * b + t * a + jnp.cross(a, b)
    return jnp.concatenate([vector, s * t - (a * b).sum(-1, keepdims=True)], -1)


def _normalized(quat: Array) -> Array:
    return quat / jnp.linalg.norm(quat, axis=-1, keepdims=True)


class Rotation(NamedTuple):
    """A rotation of space, or several along an axis in front.

    Attributes
    ----------
    quat : Array
        Unit quaternions ``(x, y, z, w)``, of shape ``(4,)`` or ``(n, 4)``.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.scipy.spatial.transform import Rotation
    >>> quarter = Rotation.from_euler("z", 90.0, degrees=True)
    >>> [round(float(v), 5) + 0.0 for v in quarter.apply(jnp.array([1.0, 0.0, 0.0]))]
    [0.0, 1.0, 0.0]
    """

    quat: Array

    # ---- from ----

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Return several rotations as one."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Return the rotation that leaves all as it is."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Return rotations drawn uniformly."""
        shape = (4,) if num is None else (num, 4)
        return cls(_normalized(random.normal(random_key, shape)))

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """Return the rotation of quaternions ``(x, y, z, w)`` of any length."""
        return cls(_normalized(_floating("from_quat", quat, (4,))))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Return the rotation of orthogonal matrices."""
        m = _floating("from_matrix", matrix, (3, 3))
        d = [m[..., i, i] for i in range(3)]
        trace = d[0] + d[1] + d[2]
        # Four ways to the quaternion, each scaled by another component of it: that of the largest
        # component divides by no small number (Shepperd, 1978).
        rows = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            row: list[Any] = [None] * 4
            row[i] = 1 - trace + 2 * d[i]
            row[j] = m[..., j, i] + m[..., i, j]
            row[k] = m[..., k, i] + m[..., i, k]
            row[3] = m[..., k, j] - m[..., j, k]
            rows.append(jnp.stack(row, -1))
        turned = [
            m[..., (i + 2) % 3, (i + 1) % 3] - m[..., (i + 1) % 3, (i + 2) % 3] for i in range(3)
        ]
        rows.append(jnp.stack([*turned, 1 + trace], -1))
        choice = jnp.argmax(jnp.stack([*d, trace], -1), -1)[..., None]
        quat = jnp.select([choice == k for k in range(4)], rows)
        return cls(_normalized(quat))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Return the rotation about axes by their lengths."""
        v = _floating("from_rotvec", rotvec, (3,))
        v = jnp.deg2rad(v) if degrees else v
        angle = _norm(v)[..., None]
        # sin(a/2) / a is 1/2 - a^2/48 + a^4/3840 to the last digit of a small angle.
        small = angle <= 1e-3
        safe = jnp.where(small, 1, angle)
        square = (v * v).sum(-1, keepdims=True)
        near = 0.5 - square / 48 + square * square / 3840
        scale = jnp.where(small, near, jnp.sin(safe / 2) / safe)
        return cls(jnp.concatenate([v * scale, jnp.cos(angle / 2)], -1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Return the rotation of modified Rodrigues parameters: axes by tan(angle / 4)."""
        p = _floating("from_mrp", mrp, (3,))
        square = (p * p).sum(-1, keepdims=True)
        return cls(jnp.concatenate([2 * p, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Return the rotation of angles about axes in turn.

        Parameters
        ----------
        seq : str
            Up to three of ``"xyz"``, fixed axes, or of ``"XYZ"``, axes that turn along.
        angles : array_like
            One for each letter, along the last axis.
        degrees : bool
        """
        axes, intrinsic = _axes(seq)
        given = jnp.asarray(angles)
        given = given if is_inexact(given.dtype) else given.astype(float)
        given = jnp.deg2rad(given) if degrees else given
        if len(axes) == 1 and (given.ndim == 0 or given.shape[-1:] != (1,)):
            given = given[..., None]
        if given.shape[-1] != len(axes) or given.ndim > 2:
            raise ValueError(
                f"Rotation.from_euler: expected {len(axes)} angles for {seq!r} along the last "
                f"axis, got shape {given.shape}."
            )
        total: Any = None
        for k, axis in enumerate(axes):
            half = given[..., k] / 2
            parts = [jnp.zeros_like(half)] * 3
            parts[axis] = jnp.sin(half)
            turn = jnp.stack([*parts, jnp.cos(half)], -1)
            if total is None:
                total = turn
            else:
                total = _product(total, turn) if intrinsic else _product(turn, total)
        return cls(total)

    # ---- as ----

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return quaternions; of a pair that means one rotation that with the positive scalar."""
        q = self.quat
        if canonical:
            # The first of w, x, y, z that is not 0 decides.
            order = q[..., np.array([3, 0, 1, 2])]
            first = jnp.take_along_axis(order, jnp.argmax(order != 0, -1)[..., None], -1)
            q = jnp.where(first < 0, -q, q)
        return q[..., np.array([3, 0, 1, 2])] if scalar_first else q

    def as_matrix(self) -> Array:
        """Return orthogonal matrices."""
        x, y, z, w = (self.quat[..., k] for k in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return axes as long as the angles."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        vector, scalar = q[..., :3], q[..., 3:]
        length = _norm(vector)[..., None]
        angle = 2 * jnp.arctan2(length, scalar)
        small = angle <= 1e-3
        near = 2 + angle**2 / 12 + 7 * angle**4 / 2880
        scale = jnp.where(small, near, angle / jnp.where(small, 1, jnp.sin(angle / 2)))
        found = scale * vector
        return jnp.rad2deg(found) if degrees else found

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters."""
        sign = jnp.where(self.quat[..., 3:] < 0, -1, 1).astype(self.quat.dtype)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return the angles about three axes in turn; see `from_euler`.

        The middle angle lies in [0, pi] where the first axis is the last, else in [-pi/2, pi/2].
        Where it is at an end, the third angle is 0.

        Bernardes & Viollet, *Quaternion to Euler angles conversion* (2022).
        """
        axes, intrinsic = _axes(seq)
        if len(axes) != 3:
            raise ValueError(f"Rotation.as_euler: expected 3 axes, got {seq!r}.")
        i, j, k = axes if not intrinsic else axes[::-1]
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = self.quat
        if symmetric:
            a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
        else:
            a, b = q[..., 3] - q[..., j], q[..., i] + q[..., k] * sign
            c, d = q[..., j] + q[..., 3], q[..., k] * sign - q[..., i]
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        low, high = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
        total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        locked = low | high
        # Of the angle that is applied first and the one that is applied last.
        first = jnp.where(
            locked,
            0 if intrinsic else jnp.where(low, 2 * total, -2 * difference),
            total - difference,
        )
        last = jnp.where(
            locked,
            (jnp.where(low, 2 * total, 2 * difference) if intrinsic else 0),
            total + difference,
        )
        if not symmetric:
            last, middle = last * sign, middle - np.pi / 2
        angles = [last, middle, first] if intrinsic else [first, middle, last]
        wrapped = [
            jnp.where(x < -np.pi, x + 2 * np.pi, jnp.where(x > np.pi, x - 2 * np.pi, x))
            for x in angles
        ]
        found = jnp.stack(wrapped, -1).astype(q.dtype)
        return jnp.rad2deg(found) if degrees else found

    # ---- operations ----

    @property
    def single(self) -> bool:
        """Whether it is one rotation, without an axis in front."""
        return self.quat.ndim == 1

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Rotate vectors of shape ``(3,)`` or ``(n, 3)``, or rotate them back."""
        vectors = _floating("apply", vectors, (3,))
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.einsum("...jk,...k->...j", matrix, vectors)

    def inv(self) -> Rotation:
        """Return the rotation back."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """Return angles, in [0, pi]."""
        vector, scalar = self.quat[..., :3], self.quat[..., 3]
        return 2 * jnp.arctan2(_norm(vector), jnp.abs(scalar))

    def mean(self, weights: Any = None) -> Rotation:
        """Return the rotation that is least far from all, in the mean of squares."""
        quat = self.quat.reshape(-1, 4)
        w = jnp.ones(quat.shape[:1], quat.dtype) if weights is None else jnp.asarray(weights)
        _, vectors = jnp.linalg.eigh((w * quat.T) @ quat)
        return Rotation(vectors[:, -1])

    def __mul__(self, other: Any) -> Rotation:  # type: ignore[override]
        """Return the rotation that is ``other`` and then this one."""
        return Rotation(_product(self.quat, other.quat))

    def __len__(self) -> int:
        """Return how many rotations it is."""
        if self.single:
            raise TypeError("a single rotation has no len()")
        return self.quat.shape[0]

    def __getitem__(self, indexer: Any) -> Rotation:  # type: ignore[override]
        """Return some of the rotations."""
        if self.single:
            raise TypeError("a single rotation has no parts")
        return Rotation(self.quat[indexer])


def _axes(seq: str) -> tuple[list[int], bool]:
    """Return axes as numbers, and whether they turn along."""
    low = seq.lower()
    plain = 1 <= len(seq) <= 3 and set(low) <= set("xyz") and seq in (low, seq.upper())
    if not plain or any(a == b for a, b in pairwise(low)):
        raise ValueError(
            "Rotation: axes must be up to three of 'xyz' or of 'XYZ', none twice in a row, got "
            f"{seq!r}."
        )
    return ["xyz".index(c) for c in low], seq != low


class Slerp(NamedTuple):
    """What lies between rotations at times, on the shortest way at a constant speed.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_euler("z", jnp.array([0.0, 90.0]), degrees=True)
    >>> slerp = Slerp.init(jnp.array([0.0, 1.0]), turns)
    >>> round(float(slerp(0.5).magnitude()), 4)
    0.7854
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Return the interpolation between rotations at ascending times."""
        if rotations.single or len(rotations) < 2:
            raise ValueError("Slerp: rotations must be at least 2.")
        times = jnp.asarray(times)
        times = times if is_inexact(times.dtype) else times.astype(rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(
                f"Slerp: times must be a vector of as many elements as rotations, got shape "
                f"{times.shape} for {len(rotations)}."
            )
        first, second = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), first, (first.inv() * second).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """Return the rotations at times."""
        at = jnp.asarray(times, self.times.dtype)
        k = jnp.clip(jnp.searchsorted(self.times, at, side="right") - 1, 0, len(self.timedelta) - 1)
        part = (at - self.times[k]) / self.timedelta[k]
        return Rotation(self.rotations.quat[k]) * Rotation.from_rotvec(
            self.rotvecs[k] * part[..., None]
        )
