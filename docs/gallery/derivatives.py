"""A function and its derivatives, to the fourth.

`grad` of `grad` of `grad`; `vmap` evaluates each of them along a line.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp


def wave(x):
    """A wave in a bell."""
    return jnp.exp(-0.5 * x * x) * jnp.sin(2.0 * x)


def main():
    """Differentiate, compare with differences, draw."""
    x = np.linspace(-4, 4, 400, dtype=np.float32)
    figure = Figure(figsize=(6.8, 3.4))
    axes = figure.subplots()
    function, last = wave, None
    for order in range(5):
        values = np.asarray(fa.jit(fa.vmap(function))(x))
        if last is not None:
            near = np.gradient(last, x)[2:-2]
            np.testing.assert_allclose(near, values[2:-2], rtol=0.01, atol=0.03)
        axes.plot(
            x, values / np.abs(values).max(), label=f"order {order}", lw=2 if order == 0 else 1
        )
        function, last = fa.grad(function), values
    axes.set_xlabel("x")
    axes.set_ylabel("derivative, its largest value 1")
    axes.legend(fontsize=8)
    return figure
