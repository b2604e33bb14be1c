"""Random typed programs over ``lax``, for comparing ways of running them.

A program is a list of instructions; each names the values it reads by position among those made
so far. The same program runs on any module with JAX's ``lax`` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

import fnarray

#: Settings of every property: the same draws on every machine, however slow it is.
COMMON: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
}
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

    @property
    def reversible(self) -> bool:
        """Whether reverse mode applies: there is no loop of unknown length."""
        return not any(name.startswith("while") for name, _ in self.steps)

    def __repr__(self) -> str:
        names = "; ".join(f"v{len(self.shapes) + k}={n}" for k, (n, _) in enumerate(self.steps))
        return f"Program(args={self.shapes}: {names}; returns {self.returned})"


UNARY = ("sin", "tanh", "exp", "neg", "abs", "floor", "logistic", "square", "erf", "expm1", "atan")
POSITIVE = ("log", "sqrt", "rsqrt", "log1p", "cbrt", "reciprocal")
BINARY = ("add", "sub", "mul", "max", "min", "atan2")


def number(x: Any, value: float) -> np.generic:
    """Return a number in the dtype of an array."""
    return np.dtype(x.dtype).type(value)


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
              _pad, _select, _dynamic_slice, _update, _dot, _cumulative, _gather, _positive, _power,
              _clamp, _sort, _prod, _batched_dot]  # fmt: skip
    if control:
        makers += [_scan, _fori, _cond, _while, _switch, _map, _call, _associative]
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


def arguments(program: Program, seed: int, dtype: Any = np.float32) -> list[np.ndarray]:
    """Return arguments for a program."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-2, 2, s).astype(dtype) for s in program.shapes]


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
    return f"pad{config} v{i}", shape, lambda lax, v: lax.pad(v[i], number(v[i], 0.5), config)


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
    total = lax.add(lax.mul(total, number(x, 1.3)), number(x, 0.2))
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

    def run(lax: Any, v: list[Any]) -> Any:
        # Not of ``v[i]``: XLA may write the update in place before it has read the operand.
        mean = lax.reduce_sum(lax.tanh(v[j]), tuple(range(len(v[j].shape))))
        new = lax.broadcast_in_dim(lax.sin(mean), box, ())
        return lax.dynamic_update_slice(v[i], new, [_index_of(lax, v[j])] * len(box))

    return f"update v{i} at v{j}", shapes[i], run


def _gather(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    rows = draw(st.lists(st.integers(0, shapes[i][0] - 1), min_size=1, max_size=4).map(tuple))
    shape = (len(rows), *shapes[i][1:])
    return (
        f"take v{i}", shape,
        lambda lax, v: lax.index_take(v[i], (np.array(rows, np.int32),), (0,)),
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

        (c, k), ys = lax.scan(body, (v[j], number(v[i], 0)), v[i], reverse=back)
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
            lax.gt(total, number(v[i], 0)), lambda a, b: lax.add(lax.sin(a), b), lambda a, b: b,
            v[i], v[j],
        )  # fmt: skip

    return f"cond v{i} v{j}", shapes[i], run


def _positive(draw: Any, shapes: list[Shape]) -> Any:
    i, op = _pick(draw, shapes), draw(st.sampled_from(POSITIVE))

    def run(lax: Any, v: list[Any]) -> Any:
        x = lax.add(lax.square(half(lax, v[i])), number(v[i], 0.3))
        return lax.integer_pow(x, -1) if op == "reciprocal" else getattr(lax, op)(x)

    return f"{op} v{i}", shapes[i], run


def _power(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    op = draw(st.sampled_from(["pow", "div", "cube"]))

    def run(lax: Any, v: list[Any]) -> Any:
        if op == "cube":
            return lax.integer_pow(half(lax, v[i]), 3)
        base = lax.add(lax.abs(half(lax, v[i])), number(v[i], 0.4))
        return getattr(lax, op)(half(lax, v[j]), base) if op == "div" else lax.pow(base, v[j])

    return f"{op} v{i} v{j}", shapes[i], run


def _clamp(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes)
    return (
        f"clamp v{i}", shapes[i],
        lambda lax, v: lax.clamp(number(v[i], -0.4), v[i], number(v[i], 0.7)),
    )  # fmt: skip


def _sort(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    axis = draw(st.integers(0, len(shapes[i]) - 1))
    return f"sort{axis} v{i}", shapes[i], lambda lax, v: lax.sort(v[i], dimension=axis)


def _prod(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    axis = draw(st.integers(0, len(shapes[i]) - 1))
    if draw(st.booleans()):
        return f"cumprod{axis} v{i}", shapes[i], lambda lax, v: lax.cumprod(half(lax, v[i]), axis)
    shape = tuple(n for a, n in enumerate(shapes[i]) if a != axis)
    return f"prod{axis} v{i}", shape, lambda lax, v: lax.reduce_prod(half(lax, v[i]), (axis,))


def _batched_dot(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    if len(shapes[i]) < 2:
        return None
    dims = (((1,), (1,)), ((0,), (0,)))
    rest = shapes[i][2:]
    shape = (shapes[i][0], *rest, *rest)
    return (
        f"batched dot v{i} v{j}", shape,
        lambda lax, v: lax.dot_general(half(lax, v[i]), half(lax, v[j]), dims),
    )  # fmt: skip


def _switch(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)

    def run(lax: Any, v: list[Any]) -> Any:
        mine = v[j]
        branches = (lambda x: lax.sin(x), lambda x: lax.mul(x, mine), lambda x: lax.neg(mine))
        return lax.switch(_index_of(lax, v[j]), branches, v[i])

    return f"switch v{i} v{j}", shapes[i], run


def _map(draw: Any, shapes: list[Shape]) -> Any:
    i = _pick(draw, shapes, 1)
    if i is None:
        return None
    size = draw(st.sampled_from([None, 1, 2]))

    def run(lax: Any, v: list[Any]) -> Any:
        def row(x: Any) -> Any:
            return lax.mul(lax.cumsum(x, 0) if x.shape else x, number(x, 0.3))

        return lax.map(row, v[i], batch_size=size)

    return f"map v{i} by {size}", shapes[i], run


def _call(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    name = draw(st.sampled_from(["jit", "checkpoint"]))

    def run(lax: Any, v: list[Any]) -> Any:
        module = jax if lax is jax.lax else fnarray
        wrap = module.jit if name == "jit" else module.checkpoint
        return wrap(lambda a, b: lax.add(lax.mul(lax.sin(a), b), lax.cos(b)))(v[i], v[j])

    return f"{name} v{i} v{j}", shapes[i], run


def _associative(draw: Any, shapes: list[Shape]) -> Any:
    i, j = _pair(draw, shapes)
    if not shapes[i]:
        return None

    def run(lax: Any, v: list[Any]) -> Any:
        def combine(a: Any, b: Any) -> Any:
            return lax.mul(a[0], b[0]), lax.add(lax.mul(b[0], a[1]), b[1])

        return lax.associative_scan(combine, (half(lax, v[i]), v[j]))[1]

    return f"associative_scan v{i} v{j}", shapes[i], run
