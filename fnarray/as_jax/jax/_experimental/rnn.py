"""``jax.experimental.rnn``: LSTMs whose weights lie as cuDNN's do.

A direction of a layer is a pseudo-layer: forward 0, reverse 0, forward 1, and so on. Each has a
matrix for inputs and one for the state, ``(4 * hidden_size, ...)``, and a bias with each; their
rows are the gates input, forget, cell, output. All matrices lie before all biases. Hochreiter &
Schmidhuber (1997), with forget gates (Gers et al. 2000).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from fnarray import Array, jit, lax, nn, random
from fnarray import numpy as jnp

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_ref",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> list[tuple[int, ...]]:
    """Return shapes of the matrices in their order, then of the biases."""
    directions = 2 if bidirectional else 1
    shapes: list[tuple[int, ...]] = []
    for layer in range(directions * num_layers):
        size = input_size if layer < directions else directions * hidden_size
        shapes += [(4 * hidden_size, size), (4 * hidden_size, hidden_size)]
    return shapes + [(4 * hidden_size,)] * len(shapes)


def _parts(weights: Array, shapes: list[tuple[int, ...]]) -> Iterator[Array]:
    at = 0
    for shape in shapes:
        yield weights[at : at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """Return how many weights there are."""
    return sum(map(math.prod, _shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Return weights, uniform within ``hidden_size ** -0.5`` of zero."""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = math.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), jnp.float32, -k, k)


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Exchange the last two gates of each part: other libraries have them so."""
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    swapped = []
    for part in _parts(jnp.asarray(weights), shapes):
        i, f, g, o = jnp.split(part, 4)
        swapped.append(jnp.concatenate([i, f, o, g]).ravel())
    return jnp.concatenate(swapped)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """Return matrices for inputs and for the state, and their biases, by pseudo-layer."""
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    parts = list(_parts(weights, shapes))
    half = len(parts) // 2
    kinds = parts[:half:2], parts[1:half:2], parts[half::2], parts[half + 1 :: 2]
    w_ih, w_hh, b_ih, b_hh = (dict(enumerate(kind)) for kind in kinds)
    return w_ih, w_hh, b_ih, b_hh


def _reversed(x: Array, lengths: Array) -> Array:
    """Reverse each sequence (steps, batch, size) within its length."""
    steps = jnp.arange(x.shape[0])[:, None]
    at = jnp.where(steps < lengths, lengths - 1 - steps, steps)
    return jnp.take_along_axis(x, at[:, :, None], 0)


def _direction(x: Array, h: Array, c: Array, lengths: Array, *weights: Array) -> Any:
    """Return a pseudo-layer's outputs, zeros after a sequence's end, and its last state."""
    w_ih, w_hh, b_ih, b_hh = weights

    def step(carry: tuple[Array, Array], now: tuple[Array, Array]) -> Any:
        (h, c), (x, t) = carry, now
        gates = x @ w_ih.T + b_ih + h @ w_hh.T + b_hh
        i, f, g, o = jnp.split(gates, 4, -1)
        cell = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        out = nn.sigmoid(o) * jnp.tanh(cell)
        on = (t < lengths)[:, None]
        return (jnp.where(on, out, h), jnp.where(on, cell, c)), jnp.where(on, out, 0)

    (h, c), y = lax.scan(step, (h, c), (x, jnp.arange(x.shape[0])))
    return y, h, c


@partial(jit, static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: dict[int, Array],
    W_hh: dict[int, Array],
    b_ih: dict[int, Array],
    b_hh: dict[int, Array],
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Run an LSTM; see `lstm`.

    Raises
    ------
    NotImplementedError
        Lengths are not int32, or some are to be dropped: the mask would be cuDNN's.
    """
    if seq_lengths.dtype != jnp.int32:
        raise NotImplementedError(f"lstm: seq_lengths must be int32, got {seq_lengths.dtype}.")
    if dropout != 0.0:
        raise NotImplementedError(f"lstm: dropout must be 0, got {dropout}: drop between layers.")
    directions = 2 if bidirectional else 1
    x = jnp.swapaxes(x, 0, 1)
    hs, cs = [], []
    for layer in range(num_layers):
        ys = []
        for direction in range(directions):
            k = layer * directions + direction
            taken = _reversed(x, seq_lengths) if direction else x
            y, h, c = _direction(
                taken, h_0[k], c_0[k], seq_lengths, W_ih[k], W_hh[k], b_ih[k], b_hh[k]
            )
            ys.append(_reversed(y, seq_lengths) if direction else y)
            hs.append(h)
            cs.append(c)
        x = jnp.concatenate(ys, -1)
    return jnp.swapaxes(x, 0, 1), jnp.stack(hs), jnp.stack(cs)


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """Run an LSTM of several layers, in one direction or both.

    Parameters
    ----------
    x : array
        Sequences (batch, steps, input_size).
    h_0, c_0 : array
        States to begin with, (pseudo-layers, batch, hidden_size).
    weights : array
        As `init_lstm_weight` makes them.
    seq_lengths : int32 array
        Steps of each sequence; outputs after them are zero.
    input_size, hidden_size, num_layers : int
    dropout : float
        0.
    bidirectional : bool
    precision : optional
        Accepted; products are in the operands' dtype.

    Returns
    -------
    y : array
        Outputs (batch, steps, directions * hidden_size).
    h_n, c_n : array
        States after each sequence's last step.
    """
    sizes = input_size, hidden_size, num_layers
    parts = unpack_lstm_weights(weights, *sizes, bidirectional)
    return lstm_ref(x, h_0, c_0, *parts, seq_lengths, *sizes, dropout, bidirectional)
