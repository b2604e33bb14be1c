"""Uses that checkers refuse: each comment would be reported if its line were accepted.

Run by ``pyright`` (strict) and ``mypy``, not by pytest.
"""

from __future__ import annotations

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import Array

x = jnp.ones(3)
x + "one"  # type: ignore[operator]  # pyright: ignore
x.summ()  # type: ignore[attr-defined]  # pyright: ignore
x.sum(axes=0)  # type: ignore[call-arg]  # pyright: ignore
jnp.sum()  # type: ignore[call-arg]  # pyright: ignore
jnp.summ(x)  # type: ignore[attr-defined]  # pyright: ignore


@fa.jit
def doubled(x: Array) -> Array:
    """Compiled."""
    return 2 * x


doubled(x, x)  # type: ignore[call-arg]  # pyright: ignore
doubled("one")  # type: ignore[arg-type]  # pyright: ignore
doubled(x).summ()  # type: ignore[attr-defined]  # pyright: ignore
fa.vmap(doubled)(x, x)  # type: ignore[call-arg]  # pyright: ignore
fa.grad(doubled)(1, 2)  # type: ignore[call-arg, arg-type]  # pyright: ignore
