"""JAX as an oracle, under the names that fnarray has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def oracle(jax):
    """Give JAX with the modules that it does not import by itself, and ``io_callback`` at root."""
    import jax.numpy
    from jax.experimental import io_callback

    return SimpleNamespace(**vars(jax), io_callback=io_callback)
