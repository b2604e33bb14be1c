"""Programs of the kinds that others write give NumPy's results and JAX's gradients."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import fnarray

# The programs are the benchmarks', a package beside this one.
sys.path.append(str(Path(__file__).parents[2] / "asv_bench"))
from programs import PROGRAMS
from programs.ocean import density
from programs.oracle import array, numpy_module

pytestmark = pytest.mark.usefixtures("x64")


def alike(got, want):
    """Compare trees: shapes, and values relative to the largest of each array."""
    got, want = fnarray.tree.leaves(got), jax.tree.leaves(want)
    assert len(got) == len(want)
    for a, b in zip(map(np.asarray, got), map(np.asarray, want), strict=True):
        assert a.shape == b.shape
        assert np.isfinite(b).all()
        scale = np.abs(b).max() if b.size and b.dtype != bool else 1.0
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * scale)


def oracle(name, fun, *arrays):
    """Run JAX in double precision; pools as it compiles by default (see tests/conftest.py).

    Without its optimisations it computes an activation twice, differently rounded, finds no element
    equal to the maximum of a pool, and divides its gradient by a count of zero.
    """
    options = {"xla_backend_optimization_level": 3} if name.startswith("convnet") else {}
    with jax.enable_x64(True):
        return jax.jit(fun, compiler_options=options)(*arrays)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_numpy_does(name):
    """The same text, compiled, and run by NumPy; by JAX where it transforms functions."""
    program = PROGRAMS[name]
    size = program.sizes["test"]
    ours, arrays = program.build(fnarray, **size)
    if program.numpy:
        want = program.build(numpy_module, **size)[0](*map(array, arrays))
    else:
        want = oracle(name, program.build(jax, **size)[0], *arrays)
    alike(fnarray.jit(ours)(*arrays), want)


#: Gradients that take long to compile, most of it in the oracle.
DEAR = {"isoneutral_mixing", "turbulent_kinetic_energy"}


def _dear(name):
    return pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name


@pytest.mark.parametrize("name", [_dear(n) for n, p in PROGRAMS.items() if p.grad])
def test_a_gradient_is_that_of_jax(name):
    """The mean square of all results, differentiated in the first argument."""
    program = PROGRAMS[name]
    size = program.sizes["test"]
    ours, arrays = program.gradient(fnarray, **size)
    alike(fnarray.jit(ours)(*arrays), oracle(name, program.gradient(jax, **size)[0], *arrays))


def test_density_is_that_of_sea_water():
    """Density and speed of sound at the surface agree with EOS-80, to the accuracy of the fits."""
    salinity = np.array([35.16504, 35.16504, 35.16504])
    rho, *_, rho_p = density(np, salinity, np.array([0.0, 10.0, 25.0]), np.zeros(3))
    np.testing.assert_allclose(rho, [1028.106, 1026.952, 1023.343], rtol=0, atol=2e-3)
    np.testing.assert_allclose(100 / np.sqrt(rho_p), [1449.1, 1489.8, 1534.4], rtol=0, atol=0.3)
