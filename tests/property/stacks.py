"""Transforms of random programs, nested: what `test_transforms` draws and `fuzz` runs for long.

A stack is a list of steps, applied from the first to the last; each makes of a function of arrays
that returns a tuple of arrays another such. The same stack applies to either package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from .programs import Program, Shape, programs

Fun = Callable[..., tuple[Any, ...]]
#: Entries that all results of a program together may have.
LIMIT = 3000
REVERSE = ("grad", "jacrev")


@dataclass(frozen=True)
class Step:
    """A transform and its settings."""

    name: str
    axes: tuple[int | None, ...] = ()
    size: int = 0

    def __call__(self, module: Any, f: Fun) -> Fun:
        """Return the transformed function."""
        return getattr(self, f"_{self.name}")(module, f)

    def shapes(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the shapes of the transformed function's arguments."""
        if self.name != "vmap":
            return tuple(shapes)
        return tuple(
            s if a is None else (*s[:a], self.size, *s[a:])
            for s, a in zip(shapes, self.axes, strict=True)
        )

    def _jit(self, module: Any, f: Fun) -> Fun:
        return module.jit(f)

    def _checkpoint(self, module: Any, f: Fun) -> Fun:
        return module.checkpoint(f)

    def _vmap(self, module: Any, f: Fun) -> Fun:
        return module.vmap(f, in_axes=self.axes)

    def _jvp(self, module: Any, f: Fun) -> Fun:
        def forward(*xs: Any) -> tuple[Any, ...]:
            outs, tangents = module.jvp(f, xs, tuple(module.lax.cos(x) for x in xs))
            return (*outs, *tangents)

        return forward

    def _grad(self, module: Any, f: Fun) -> Fun:
        lax = module.lax

        def loss(*xs: Any) -> Any:
            sums = [lax.reduce_sum(lax.sin(y), tuple(range(y.ndim))) for y in f(*xs)]
            return sum(sums[1:], sums[0])

        def gradient(*xs: Any) -> tuple[Any, ...]:
            return module.grad(loss, argnums=tuple(range(len(xs))))(*xs)

        return gradient

    def _jacobian(self, transform: Any, f: Fun) -> Fun:
        def jacobian(*xs: Any) -> tuple[Any, ...]:
            return tuple(d for row in transform(f, argnums=(0, len(xs) - 1)[: len(xs)])(*xs)
                         for d in row)  # fmt: skip

        return jacobian

    def _jacfwd(self, module: Any, f: Fun) -> Fun:
        return self._jacobian(module.jacfwd, f)

    def _jacrev(self, module: Any, f: Fun) -> Fun:
        return self._jacobian(module.jacrev, f)


@dataclass(frozen=True)
class Stacked:
    """A program under transforms."""

    program: Program
    steps: tuple[Step, ...]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of the arguments."""
        shapes = self.program.shapes
        for step in self.steps:
            shapes = step.shapes(shapes)
        return shapes

    def under(self, module: Any) -> Fun:
        """Return the transformed program as a function of one package's arrays."""
        program, lax = self.program, module.lax

        def fun(*xs: Any) -> tuple[Any, ...]:
            return program(lax, *xs)

        for step in self.steps:
            fun = step(module, fun)
        return fun


@st.composite
def steps(draw: Any, names: Sequence[str], count: int) -> Step:
    """Draw one transform of a function of ``count`` arguments."""
    name = draw(st.sampled_from(names))
    if name != "vmap":
        return Step(name)
    axes = tuple(draw(st.sampled_from([0, 0, None])) for _ in range(count))
    if all(a is None for a in axes):
        axes = (0, *axes[1:])
    return Step(name, axes, draw(st.sampled_from([1, 2, 3])))


@st.composite
def stacked(draw: Any, jax: Any, control: bool = True, most: int = 3) -> Stacked:
    """Draw a program and up to ``most`` transforms of it."""
    program = draw(programs(control=control, max_steps=5))
    names = ["jit", "jvp", "vmap", "jacfwd", "checkpoint"]
    if program.reversible:
        names += [*REVERSE, *REVERSE]
    count = len(program.shapes)
    drawn = tuple(draw(steps(names, count)) for _ in range(draw(st.integers(1, most))))
    case = Stacked(program, drawn)
    assume(size(jax, case) <= LIMIT)
    return case


def size(jax: Any, case: Stacked) -> int:
    """Return the number of entries of all results, or of those of the first transforms."""
    most = 0
    for k in range(1, len(case.steps) + 1):
        part = Stacked(case.program, case.steps[:k])
        structs = [jax.ShapeDtypeStruct(s, np.float32) for s in part.shapes]
        most = max(
            most, sum(int(np.prod(y.shape)) for y in jax.eval_shape(part.under(jax), *structs))
        )
        if most > LIMIT:
            break
    return most
