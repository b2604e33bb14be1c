"""Rotations and what lies between them are SciPy's."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.spatial.transform

import fnarray
import fnarray.numpy as jnp
from fnarray.scipy.spatial.transform import Rotation, Slerp

SciPys = scipy.spatial.transform.Rotation
RNG = np.random.default_rng(0)
QUATS, VECTORS = RNG.normal(size=(7, 4)), RNG.normal(size=(7, 3))
SEQUENCES = [
    "".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] and s[1] != s[2]
]
pytestmark = pytest.mark.usefixtures("x64")


def close(got, wanted, atol=1e-9):
    np.testing.assert_allclose(got, wanted, atol=atol)


def same(got, wanted):
    """Assert that rotations are equal; a quaternion and its negative are one."""
    close(abs((np.asarray(got.as_quat()) * wanted.as_quat()).sum(-1)), 1)


def test_representations():
    """Quaternions, matrices, vectors and Rodrigues parameters go both ways."""
    ours, theirs = Rotation.from_quat(QUATS), SciPys.from_quat(QUATS)
    close(ours.as_matrix(), theirs.as_matrix())
    close(ours.as_rotvec(), theirs.as_rotvec())
    close(ours.as_rotvec(degrees=True), theirs.as_rotvec(degrees=True))
    close(ours.as_mrp(), theirs.as_mrp())
    close(ours.as_quat(canonical=True), theirs.as_quat(canonical=True))
    close(ours.as_quat(scalar_first=True), theirs.as_quat(scalar_first=True))
    same(Rotation.from_matrix(theirs.as_matrix()), theirs)
    same(Rotation.from_mrp(VECTORS), SciPys.from_mrp(VECTORS))
    for scale in (1, 1e-5, 0, 3):
        same(Rotation.from_rotvec(VECTORS * scale), SciPys.from_rotvec(VECTORS * scale))


def test_operations():
    """Rotations apply, combine, invert and average."""
    ours, theirs = Rotation.from_quat(QUATS), SciPys.from_quat(QUATS)
    close(ours.apply(VECTORS), theirs.apply(VECTORS))
    close(ours.apply(VECTORS, inverse=True), theirs.apply(VECTORS, inverse=True))
    close(ours[0].apply(VECTORS), theirs[0].apply(VECTORS))
    close(ours.magnitude(), theirs.magnitude())
    same(ours * ours[::-1], theirs * theirs[::-1])
    same(ours.inv(), theirs.inv())
    same(ours.mean(), theirs.mean())
    same(ours.mean(np.arange(1, 8)), theirs.mean(np.arange(1, 8)))
    assert (len(ours), ours.single, ours[0].single) == (7, False, True)
    assert len(Rotation.concatenate([ours, Rotation.identity()])) == 8
    close(Rotation.random(fnarray.random.key(0), 3).magnitude() <= np.pi, True)


@pytest.mark.parametrize("seq", [*SEQUENCES, *map(str.upper, SEQUENCES)])
def test_euler_angles(seq):
    """All orders of axes, fixed and turning along, and where the middle angle is at an end."""
    close(Rotation.from_quat(QUATS).as_euler(seq), SciPys.from_quat(QUATS).as_euler(seq))
    angles = RNG.uniform(0.1, 1, (5, 3))  # middle angles that come back
    same(Rotation.from_euler(seq, angles), SciPys.from_euler(seq, angles))
    degrees = Rotation.from_euler(seq, angles * 40, degrees=True)
    close(degrees.as_euler(seq, degrees=True), angles * 40)
    ends = (0, np.pi) if seq[0] == seq[2] else (-np.pi / 2, np.pi / 2)
    for middle in ends:
        locked = [0.3, middle, 0.4]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = SciPys.from_euler(seq, locked).as_euler(seq)
        close(Rotation.from_euler(seq, np.array(locked)).as_euler(seq), wanted, 1e-6)


def test_fewer_axes():
    """One axis takes a number or a column, two axes pairs."""
    same(Rotation.from_euler("z", 90.0, degrees=True), SciPys.from_euler("z", 90, degrees=True))
    same(Rotation.from_euler("zx", np.array([0.1, 0.2])), SciPys.from_euler("zx", [0.1, 0.2]))
    with pytest.raises(ValueError, match="expected 2 angles"):
        Rotation.from_euler("zx", np.ones(3))
    for wrong in ("xx", "xY", "xyzx", "a"):
        with pytest.raises(ValueError, match="axes must be"):
            Rotation.from_euler(wrong, np.ones(len(wrong)))


def test_slerp():
    """Rotations between others turn at a constant speed."""
    times, at = np.arange(7.0), np.array([0, 0.5, 2.3, 6.0])
    ours = Slerp.init(times, Rotation.from_quat(QUATS))
    theirs = scipy.spatial.transform.Slerp(times, SciPys.from_quat(QUATS))
    same(ours(at), theirs(at))
    assert ours(0.5).single
    with pytest.raises(ValueError, match="at least 2"):
        Slerp.init(times[:1], Rotation.from_quat(QUATS[:1]))


def test_transforms():
    """Rotations are trees of arrays; derivatives are right where the angle is 0."""
    turned = fnarray.jit(lambda r, v: r.apply(v))(Rotation.from_quat(QUATS), VECTORS)
    close(turned, SciPys.from_quat(QUATS).apply(VECTORS))
    at = jnp.array([1.0, 0, 0])
    close(fnarray.grad(lambda v: Rotation.from_rotvec(v).apply(at).sum())(jnp.zeros(3)), [0, -1, 1])
    close(fnarray.grad(lambda v: Rotation.from_rotvec(v).as_rotvec().sum())(jnp.zeros(3)), 1)
