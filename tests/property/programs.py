"""Random typed programs over ``lax``, for comparing ways of running them.

A program is a list of instructions; each names the values it reads by position among those made
so far. The same program runs on any module with JAX's ``lax`` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, ...]
SIZES = (1, 2, 3, 5, 17)


@dataclass(frozen=True)
class Program:
    """Shapes of the arguments, instructions ``(name, run)``, and which values are returned."""

    shapes: tuple[Shape, ...]
    steps: tuple[tuple[str, Callable[[Any, list[Any]], Any]], ...]
    returned: tuple[int, ...]

    def __call__(self, lax: Any, *args: Any) -> tuple[Any, ...]:
        values = list(args)
        for _, run in self.steps:
            values.append(run(lax, values))
        return tuple(values[i] for i in self.returned)

    def __repr__(self) -> str:
        names = "; ".join(f"v{len(self.shapes) + k}={n}" for k, (n, _) in enumerate(self.steps))
        return f"Program(args={self.shapes}: {names}; returns {self.returned})"


UNARY = ("sin", "tanh", "exp", "neg", "abs", "floor", "logistic", "square", "erf")
BINARY = ("add", "sub", "mul", "max", "min", "atan2")


def half(lax: Any, x: Any) -> Any:
    """Shrink, so that values stay small however often they are combined."""
    return lax.tanh(x)


@st.composite
def programs(draw: Any, *, control: bool = True, max_steps: int = 7) -> Program:
    """Draw a program."""
    count = draw(st.integers(1, 3))
    rank = st.lists(st.sampled_from(SIZES), min_size=0, max_size=3).map(tuple)
    shapes = [draw(rank) for _ in range(count)]
    arguments = tuple(shapes)
    steps: list[tuple[str, Callable[[Any, list[Any]], Any]]] = []
    makers = [_unary, _binary, _reduce, _broadcast, _transpose, _reshape, _slice, _rev, _concat,
              _pad, _select, _dynamic_slice, _update, _dot, _cumulative, _gather]  # fmt: skip
    if control:
        makers += [_scan, _fori, _cond, _while]
    for _ in range(draw(st.integers(1, max_steps))):
        maker = draw(st.sampled_from(makers))
        made = maker(draw, shapes)
        if made is None:
            continue
        name, shape, run = made
        steps.append((name, run))
        shapes.append(shape)
    count = len(shapes)
    returned = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    return Program(arguments, tuple(steps), tuple(dict.fromkeys([*returned, count - 1])))


def arguments(program: Program, seed: int) -> list[np.ndarray]:
    """Return float32 arguments for a program."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-2, 2, s).astype(np.float32) for s in program.shapes]


def _pick(draw: Any, shapes: list[Shape], min_rank: int = 0) -> int | None:
    fit = [i for i, s in enumerate(shapes) if len(s) >= min_rank]
    return draw(st.sampled_from(fit)) if fit else None


def _pair(draw: Any, shapes: list[Shape]) -> tuple[int, int]:
    i = draw(st.integers(0, len(shapes) - 1))
    same = [j for j, s in enumerate(shapes) if s == shapes[i]]
    return i, draw(st.sampled_from(same))


def _unary(draw: Any, shapes: list[Shape]) -> Any:
    i, op = _pick(draw, shapes), draw(st.sampled_from(UNARY))
    return f"{op} v{i}", shapes[i], lambda lax, v: getattr(lax, op)(half(lax, v[i]))


def _binary(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    op = draw(st.sampled_from(BINARY))
    return f"{op} v{i} v{j}", shapes[i], lambda lax, v: getattr(lax, op)(v[i], v[j])


def _reduce(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    rank = len(shapes[i])
    axes = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1))))
    op = draw(st.sampled_from(["reduce_sum", "reduce_max", "reduce_min"]))
    shape = tuple(n for a, n in enumerate(shapes[i]) if a not in axes)
    return f"{op}{axes} v{i}", shape, lambda lax, v: getattr(lax, op)(half(lax, v[i]), axes)


def _broadcast(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes)
    if len(shapes[i]) > 2:
        return None
    n, at = draw(st.sampled_from(SIZES)), draw(st.integers(0, len(shapes[i])))
    shape = (*shapes[i][:at], n, *shapes[i][at:])
    dims = tuple(a for a in range(len(shape)) if a != at)
    return f"broadcast v{i}->{shape}", shape, lambda lax, v: lax.broadcast_in_dim(v[i], shape, dims)


def _transpose(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 2)
    if i is None:
        return None
    order = tuple(draw(st.permutations(range(len(shapes[i])))))
    shape = tuple(shapes[i][a] for a in order)
    return f"transpose{order} v{i}", shape, lambda lax, v: lax.transpose(v[i], order)


def _reshape(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes)
    size = int(np.prod(shapes[i], dtype=int))
    split = [d for d in range(1, size + 1) if size % d == 0]
    a = draw(st.sampled_from(split))
    shape = draw(st.sampled_from([(size,), (a, size // a)]))
    return f"reshape v{i}->{shape}", shape, lambda lax, v: lax.reshape(v[i], shape)


def _slice(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    starts = tuple(draw(st.integers(0, n - 1)) for n in shapes[i])
    limits = tuple(draw(st.integers(s + 1, n)) for s, n in zip(starts, shapes[i], strict=True))
    strides = tuple(draw(st.integers(1, 3)) for _ in shapes[i])
    shape = tuple(-(-(b - a) // k) for a, b, k in zip(starts, limits, strides, strict=True))
    return f"slice v{i}", shape, lambda lax, v: lax.slice(v[i], starts, limits, strides)


def _rev(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    axis = draw(st.integers(0, len(shapes[i]) - 1))
    return f"rev v{i}", shapes[i], lambda lax, v: lax.rev(v[i], (axis,))


def _concat(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    if not shapes[i]:
        return None
    axis = draw(st.integers(0, len(shapes[i]) - 1))
    shape = tuple(n * 2 if a == axis else n for a, n in enumerate(shapes[i]))
    return f"concat v{i} v{j}", shape, lambda lax, v: lax.concatenate([v[i], v[j]], axis)


def _pad(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    config = tuple(
        (draw(st.integers(-1 if n > 2 else 0, 2)), draw(st.integers(0, 2)), draw(st.integers(0, 1)))
        for n in shapes[i]
    )
    shape = tuple(
        lo + hi + n + max(n - 1, 0) * k for n, (lo, hi, k) in zip(shapes[i], config, strict=True)
    )
    return f"pad{config} v{i}", shape, lambda lax, v: lax.pad(v[i], np.float32(0.5), config)


def _select(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    return (
        f"select v{i} v{j}", shapes[i],
        lambda lax, v: lax.select(lax.gt(v[i], v[j]), lax.sin(v[i]), v[j]),
    )  # fmt: skip


def _index_of(lax: Any, x: Any) -> Any:
    """Return an int32 scalar that depends on data.

    Off the values that sums of bounded functions like to take (0 and 1), where a last-bit
    difference would change the integer.
    """
    total = lax.reduce_sum(lax.sin(x), tuple(range(len(x.shape))))
    total = lax.add(lax.mul(total, np.float32(1.3)), np.float32(0.2))
    return lax.convert_element_type(lax.abs(lax.floor(total)), np.int32)


def _dynamic_slice(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pick(draw, shapes, 1), _pick(draw, shapes)
    if i is None:
        return None
    shape = tuple(draw(st.integers(1, n)) for n in shapes[i])
    return (
        f"dynamic_slice v{i} at v{j}", shape,
        lambda lax, v: lax.dynamic_slice(v[i], [_index_of(lax, v[j])] * len(shape), shape),
    )  # fmt: skip


def _update(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pick(draw, shapes, 1), _pick(draw, shapes)
    if i is None:
        return None
    box = tuple(draw(st.integers(1, n)) for n in shapes[i])
    zero = (0,) * len(box)

    def run(lax: Any, v: list[Any]) -> Any:
        new = lax.sin(lax.slice(v[i], zero, box))
        return lax.dynamic_update_slice(v[i], new, [_index_of(lax, v[j])] * len(box))

    return f"update v{i} at v{j}", shapes[i], run


def _gather(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    rows = np.array(draw(st.lists(st.integers(0, shapes[i][0] - 1), min_size=1, max_size=4)))
    shape = (len(rows), *shapes[i][1:])
    return (
        f"take v{i}", shape,
        lambda lax, v: lax.index_take(v[i], (rows.astype(np.int32),), (0,)),
    )  # fmt: skip


def _dot(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pick(draw, shapes, 1), _pick(draw, shapes, 1)
    if i is None or j is None:
        return None
    pairs = [(a, b) for a, n in enumerate(shapes[i]) for b, m in enumerate(shapes[j]) if n == m]
    if not pairs:
        return None
    a, b = draw(st.sampled_from(pairs))
    shape = (*(n for k, n in enumerate(shapes[i]) if k != a),
             *(n for k, n in enumerate(shapes[j]) if k != b))  # fmt: skip
    if len(shape) > 3:
        return None
    dims = (((a,), (b,)), ((), ()))
    return (
        f"dot v{i} v{j}", shape,
        lambda lax, v: lax.dot_general(half(lax, v[i]), half(lax, v[j]), dims),
    )  # fmt: skip


def _cumulative(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    axis, op = draw(st.integers(0, len(shapes[i]) - 1)), draw(st.sampled_from(["cumsum", "cummax"]))
    back = draw(st.booleans())
    return (
        f"{op} v{i}", shapes[i],
        lambda lax, v: getattr(lax, op)(half(lax, v[i]), axis=axis, reverse=back),
    )  # fmt: skip


def _scan(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    j = _pick(draw, shapes)
    back, which = draw(st.booleans()), draw(st.integers(0, 2))

    def run(lax: Any, v: list[Any]) -> Any:
        def body(carry: Any, x: Any) -> Any:
            c, k = carry
            mean = lax.reduce_sum(lax.tanh(x), tuple(range(len(x.shape))))
            new = lax.tanh(lax.add(lax.rev(c, (0,)) if c.shape else c, lax.full_like(c, 0.1)))
            new = lax.mul(new, lax.broadcast_in_dim(lax.cos(mean), new.shape, ()))
            return (new, lax.add(k, mean)), lax.add(x, lax.broadcast_in_dim(k, x.shape, ()))

        (c, k), ys = lax.scan(body, (v[j], np.float32(0)), v[i], reverse=back)
        return (c, k, ys)[which]

    return f"scan v{j} over v{i}", (shapes[j], (), shapes[i])[which], run


def _fori(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    n = draw(st.integers(0, 4))

    def run(lax: Any, v: list[Any]) -> Any:
        def body(k: Any, x: Any) -> Any:
            row = lax.dynamic_index_in_dim(x, k, 0)
            return lax.dynamic_update_slice_in_dim(x, lax.cos(lax.add(row, row)), k, 0)

        return lax.fori_loop(0, n, body, v[i])

    return f"fori {n} v{i}", shapes[i], run


def _while(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes)

    def run(lax: Any, v: list[Any]) -> Any:
        bound = _index_of(lax, v[i])

        def cond(state: Any) -> Any:
            return lax.lt(state[0], lax.min(bound, np.int32(5)))

        def body(state: Any) -> Any:
            k, x, y = state
            return lax.add(k, np.int32(1)), lax.sin(lax.add(x, y)), x

        return lax.while_loop(cond, body, (np.int32(0), v[i], lax.neg(v[i])))[1]

    return f"while v{i}", shapes[i], run


def _cond(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)

    def run(lax: Any, v: list[Any]) -> Any:
        total = lax.reduce_sum(v[i], tuple(range(len(v[i].shape))))
        return lax.cond(
            lax.gt(total, np.float32(0)), lambda a, b: lax.add(lax.sin(a), b), lambda a, b: b,
            v[i], v[j],
        )  # fmt: skip

    return f"cond v{i} v{j}", shapes[i], run
