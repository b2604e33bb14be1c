"""What a program is: a text over a module, its sizes, and what its results are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

Build = Callable[..., tuple[Callable, tuple[numpy.ndarray, ...]]]


@dataclass(frozen=True, slots=True)
class Program:
    """One program: ``build(module, **size)`` gives a function of arrays, and the arrays.

    Attributes
    ----------
    sizes : mapping
        ``test``, ``small`` and ``large``: keyword arguments of ``build``.
    numpy : bool
        Whether NumPy runs the text (``oracle.py``); programs that transform functions need JAX.
    grad : bool
        Whether the first argument is differentiated, by tests, with JAX as the oracle.
    rtol : float
        How far single-precision results may be apart, relative to the largest entry.
    """

    name: str
    family: str
    build: Build
    sizes: Mapping[str, Mapping[str, int]]
    numpy: bool
    grad: bool
    rtol: float

    def gradient(self, m: Any, **size: int) -> tuple[Callable, tuple[numpy.ndarray, ...]]:
        """Build the gradient, in the first argument, of the mean square of all real results."""
        run, arrays = self.build(m, **size)

        def loss(*args: Any) -> Any:
            leaves = m.tree.leaves(run(*args))
            real = [x for x in leaves if m.numpy.issubdtype(x.dtype, m.numpy.floating)]
            return sum(m.numpy.mean(x * x) for x in real)

        return m.grad(loss), arrays


PROGRAMS: dict[str, Program] = {}


def program(
    *, numpy: bool = True, grad: bool = False, rtol: float = 1e-3, **sizes: dict[str, int]
) -> Callable[[Build], Build]:
    """Register a builder under its own name, in the family of its file."""

    def register(build: Build) -> Build:
        name, family = build.__name__, build.__module__.rpartition(".")[2]
        PROGRAMS[name] = Program(name, family, build, sizes, numpy, grad, rtol)
        return build

    return register


def numbers(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> numpy.ndarray:
    """Double-precision uniform numbers, the same on every call."""
    return numpy.random.default_rng(seed).uniform(low, high, shape)
