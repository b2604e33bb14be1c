"""``jax.experimental.custom_partitioning``: functions that say how they are cut over devices.

Here operations on arrays that are cut run by blocks, or gather what they need: such a function is
partitioned as what it calls is. Its rules have nothing to say, but must be there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

#: The leading axes of an operand, any number of them.
BATCHING = "…"


class ArrayMapping(tuple):
    """Names of the factors of an array's axes."""

    def __new__(cls, *dims: Any) -> ArrayMapping:
        """Make one of factors, a name or a `CompoundFactor` for each axis."""
        return super().__new__(cls, dims)


class CompoundFactor(tuple):
    """Names of the factors of one axis."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Make one of two or more names.

        Raises
        ------
        ValueError
            There are fewer.
        """
        if len(factors) < 2:
            raise ValueError(f"CompoundFactor takes two factors or more, got {factors}.")
        return super().__new__(cls, factors)


@dataclass(frozen=True)
class SdyShardingRule:
    """How factors of operands are those of results."""

    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    factor_sizes: dict[str, int]

    def __init__(self, operand_mappings: Any, result_mappings: Any, **factor_sizes: int):
        object.__setattr__(self, "operand_mappings", tuple(operand_mappings))
        object.__setattr__(self, "result_mappings", tuple(result_mappings))
        object.__setattr__(self, "factor_sizes", factor_sizes)


class custom_partitioning:  # noqa: N801
    """A function with rules of its own for how it is cut.

    Parameters
    ----------
    fun : callable
    static_argnums : sequence of int
        Arguments that are no arrays. `fun` gets all as they are.

    Raises
    ------
    AttributeError
        When called before `def_partition` gave the rules.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = static_argnums
        self.partition: Callable[..., Any] | None = None

    def def_partition(self, partition: Callable[..., Any], *rules: Any, **named: Any) -> Any:
        """Take the rules; return the function that makes the computation of a block."""
        self.partition = partition
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.partition is None:
            raise AttributeError(
                f"custom_partitioning: {self.fun!r} has no rules yet. Give them before it is "
                "called: f.def_partition(partition=..., sharding_rule=...)."
            )
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        return self.fun(*bound.args, **bound.kwargs)
