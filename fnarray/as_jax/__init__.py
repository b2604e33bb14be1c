"""Standing in for jax: after ``import fnarray.as_jax``, ``import jax`` gives fnarray.

``jax.numpy`` is then ``fnarray.numpy``, the module itself, and so is every other module that both
have. What only JAX has a module for, and libraries ask for, stands in ``as_jax/jax`` under JAX's
names. Effects that JAX lets pass are not looked for, unless ``FNARRAY_EFFECTS`` is set: programs
written for JAX keep what it promised them, and no more.
"""

from __future__ import annotations

from .finder import install as _install

__all__: list[str] = []

_install()
