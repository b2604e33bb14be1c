"""Programs as libraries hand them on: closures with keywords, registries, decorators, records, modes."""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import logging
import math
import operator
import string
import typing
from collections import ChainMap, Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, partialmethod, reduce, singledispatch, wraps
from types import MappingProxyType, SimpleNamespace
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Protocol,
    TypeVar,
    cast,
    overload,
)

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, random, tree, value_and_grad, vmap

T = TypeVar("T")
Scalar = NewType("Scalar", float)
Shape = tuple[int, ...]
Init = Callable[[Any, Shape], Any]
log = logging.getLogger(__name__)
DEBUG = False
VERBOSE: Final = False
_EPS = 1e-6
GRAVITY: Final[float] = 9.81
ORDER: Literal["C", "F"] = "C"
Unit = Annotated[float, "metres"]
half_pi = math.pi / 2
coefficients = (1.0, -0.5, 1 / 24)
stencil = np.array([1.0, -2.0, 1.0])
stencil.setflags(write=False)


# ---- layers as closures --------------------------------------------------------------------------


def dense(features, *, bias=True, init_scale=1.0, **kwargs):
    """Return a layer as a pair of functions."""

    def init(key, shape):
        w = random.normal(key, (shape[-1], features)) * init_scale
        return (w, jnp.zeros(features)) if bias else (w,)

    def apply(params, x, **call_kwargs):
        options = {**kwargs, **call_kwargs}
        y = x @ params[0]
        if bias:
            y = y + params[1]
        return y * options.get("gain", 1.0)

    return init, apply


def elementwise(fun, **fun_kwargs):
    """Return a layer of a function."""
    init = lambda key, shape: ()
    apply = lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)
    return init, apply


def serial(*layers):
    """Return layers one after the other."""
    nlayers = len(layers)
    init_funs, apply_funs = zip(*layers)

    def init(key, shape):
        keys = random.split(key, nlayers)
        params = []
        for k, one in zip(keys, init_funs):
            params.append(one(k, shape))
        return params

    def apply(params, inputs, **kwargs):
        rng = kwargs.pop("rng", None)
        rngs = random.split(rng, nlayers) if rng is not None else (None,) * nlayers
        for fun, param, key in zip(apply_funs, params, rngs):
            inputs = fun(param, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def make_layers_as_closures():
    _, apply = serial(dense(3, gain=2.0), elementwise(jnp.tanh), dense(1, bias=False))
    params = ((jnp.ones((2, 3)), jnp.zeros(3)), (), (jnp.ones((3, 1)),))
    return lambda x: apply(params, x * jnp.ones((1, 2)))[0, 0]


def make_keywords_with_a_default():
    def build(fun=None, *, rate: float = 0.1, **kwargs):
        kwargs.setdefault("power", 2)

        def step(x):
            return rate * x ** kwargs["power"] if fun is None else fun(x)

        return step

    return build(rate=0.5)


def make_partial_of_keywords():
    def norm(x, *, ord, axis=None, scale=1.0):
        return scale * jnp.linalg.norm(jnp.atleast_1d(x), ord=ord, axis=axis)

    options = dict(ord=2, scale=3.0)
    return partial(norm, **options)


# ---- records -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Physics:
    mass: float = 1.0
    drag: float = field(default=0.1, metadata={"unit": "1"})
    stages: tuple[float, ...] = (0.5, 0.5)
    method: Literal["euler", "heun"] = "heun"
    NAME: ClassVar[str] = "physics"

    def __post_init__(self):
        if self.mass <= 0:
            raise ValueError(f"mass must be positive, got {self.mass}")

    @cached_property
    def inverse(self) -> float:
        return 1.0 / self.mass

    @property
    def table(self):
        return dict(zip(("a", "b"), self.stages, strict=True))

    @classmethod
    def heavy(cls, **changes) -> Physics:
        return cls(**{"mass": 10.0, **changes})

    def with_drag(self, drag):
        return dataclasses.replace(self, drag=drag)

    def force(self, x):
        return -self.drag * x * self.inverse


PHYSICS = Physics(mass=2.0)
physics = Physics.heavy(drag=0.2)


@jit
def record_with_cached_property(x):
    return PHYSICS.force(x) + physics.inverse * x


@jit
def record_replaced(x):
    return physics.with_drag(0.3).force(x)


@jit
def record_by_match(x):
    match physics:
        case Physics(method="heun", mass=m) if m > 1:
            return x * m
        case Physics():
            return x
        case _:
            raise TypeError


@jit
def record_as_items(x):
    total = x
    for f in dataclasses.fields(PHYSICS):
        value = getattr(PHYSICS, f.name)
        if isinstance(value, float):
            total = total + value
    return total


class Carry(NamedTuple):
    position: Any
    velocity: Any = 0.0

    def moved(self, dt):
        return self._replace(position=self.position + dt * self.velocity)

    @classmethod
    def at(cls, x):
        return cls(position=x)


@jit
def named_tuple_in_a_scan(x):
    def body(carry, dt):
        carry = carry.moved(dt)._replace(velocity=carry.velocity - carry.position * dt)
        return carry, carry._asdict()["position"]

    last, path = lax.scan(body, Carry.at(x)._replace(velocity=x * 0.0), jnp.full(4, 0.1))
    return last.position + path.sum()


Point = namedtuple("Point", "x y z", defaults=(0.0, 0.0))
ORIGIN = Point(1.0)


@jit
def named_tuple_of_module(x):
    a, *rest = ORIGIN
    return x * a + sum(rest) + Point._make([x, 1.0, 2.0]).y


# ---- registries and decorators -------------------------------------------------------------------

_ACTIVATIONS: dict[str, Callable] = {}


def register(name):
    def wrap(fun):
        _ACTIVATIONS[name] = fun
        return fun

    return wrap


@register("swish")
def swish(x):
    return x / (1 + jnp.exp(-x))


@register("cube")
def cube(x):
    return x**3


ACTIVATIONS = MappingProxyType(dict(_ACTIVATIONS))


@jit
def registry_read_only(x):
    return ACTIVATIONS["swish"](x) + ACTIVATIONS.get("cube", jnp.tanh)(x)


def get(name: str) -> Callable:
    return ACTIVATIONS[name]


def make_registry_outside():
    act = get("cube")
    return lambda x: act(x)


def timed(fun):
    @wraps(fun)
    def inner(*args, **kwargs):
        result = fun(*args, **kwargs)
        return result

    return inner


def checked(low: float = -math.inf, high: float = math.inf):
    def decorate(fun):
        @functools.wraps(fun)
        def inner(x, *args, **kwargs):
            x = jnp.clip(x, low, high)
            return fun(x, *args, **kwargs)

        inner.low = low
        return inner

    return decorate


def broadcasts(*names):
    def decorate(fun):
        sig = inspect.signature(fun)

        @wraps(fun)
        def inner(*args, **kwargs):
            bound = sig.bind(*args, **kwargs)
            bound.apply_defaults()
            for name in names:
                bound.arguments[name] = jnp.asarray(bound.arguments[name])
            return fun(*bound.args, **bound.kwargs)

        return inner

    return decorate


@jit
@timed
@checked(high=2.0)
def decorators_stacked(x):
    return x * 2


@broadcasts("x", "y")
def added(x, y=1.0):
    return x + y


@jit
def signature_bound(x):
    return added(x) * added(x, y=2.0)


class Memo:
    """A decorator as a class, that holds nothing but its function."""

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self._fun = fun

    def __call__(self, *args):
        return self._fun(*args)

    def __get__(self, obj, cls=None):
        return self if obj is None else partial(self, obj)


@singledispatch
def size_of(value):
    return 1.0


@size_of.register
def _(value: tuple):
    return float(len(value))


@size_of.register(dict)
def _(value):
    return 2.0


@jit
def dispatched_on_containers(x):
    return x * size_of((1, 2)) + size_of({}) + size_of(x)


# ---- classes -------------------------------------------------------------------------------------


class Module(Generic[T]):
    """A base as libraries have it: immutable, by its own __setattr__."""

    _fields: ClassVar[tuple[str, ...]] = ()
    __slots__ = ("__dict__",)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._fields = tuple(cls.__annotations__)

    def __call__(self, x):
        return self.forward(x)

    @abc.abstractmethod
    def forward(self, x): ...

    def scaled(self, x, by=1.0):
        return self(x) * by

    doubled = partialmethod(scaled, by=2.0)


@dataclass(frozen=True)
class Affine(Module[int]):
    scale: float = 1.0
    shift: float = 0.0

    def forward(self, x):
        return x * self.scale + self.shift

    def scaled(self, x, by=1.0):
        return super().scaled(x, by) + 0.0


@dataclass(frozen=True)
class Both(Module):
    first: Module
    second: Module = Affine(2.0)

    def forward(self, x):
        return self.second(self.first(x))

    def __rshift__(self, other):
        return Both(self, other)


model = Both(Affine(3.0, 1.0)) >> Affine(0.5)


@jit
def modules_with_super(x):
    return model(x) + model.doubled(x) + model.second.scaled(x)


class Shift(enum.Enum):
    UP = enum.auto()
    DOWN = enum.auto()

    @property
    def sign(self):
        return {Shift.UP: 1.0, Shift.DOWN: -1.0}[self]

    def __call__(self, x):
        return x + self.sign

    @staticmethod
    def of(text):
        return Shift[text.upper()]


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    BOTH = READ | WRITE


@jit
def enumeration_called(x):
    return Shift.UP(x) * Shift.of("down").sign + len(Shift) + Access.BOTH.value


class Reader(Protocol):
    def read_at(self, x: Any) -> Any: ...


@dataclass(frozen=True)
class Cubic:
    def read_at(self, x):
        return x**3


def through(reader: Reader, x):
    return cast(Any, reader).read_at(x)


@jit
def protocol_by_structure(x):
    return through(Cubic(), x)


class Operator:
    """An object with operators, made inside."""

    def __init__(self, fun):
        self.fun = fun

    def __add__(self, other):
        return Operator(lambda x: self.fun(x) + other.fun(x))

    def __mul__(self, by):
        return Operator(lambda x: by * self.fun(x))

    __rmul__ = __mul__

    def __matmul__(self, other):
        return Operator(lambda x: self.fun(other.fun(x)))

    def __pow__(self, n):
        return reduce(operator.matmul, [self] * n)

    def __call__(self, x):
        return self.fun(x)


@jit
def operators_composed(x):
    d = Operator(jnp.sin)
    return (2.0 * d + d @ d + d**3)(x)


class Builder:
    def __init__(self):
        self.steps = []
        self.count = 0

    def then(self, fun):
        self.steps.append(fun)
        self.count += 1
        return self

    def run(self, x):
        for step in self.steps:
            x = step(x)
        return x / self.count


@jit
def builder_made_inside(x):
    return Builder().then(jnp.sin).then(lambda y: y * 2).run(x)


class Tape(contextlib.AbstractContextManager):
    def __init__(self):
        self.items: list = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.items.clear()
        return None

    def record(self, item):
        self.items.append(item)
        return item


@jit
def context_made_inside(x):
    with Tape() as tape:
        tape.record(x)
        y = sum(tape.items)
    return y


@contextlib.contextmanager
def scaled(by):
    yield lambda v: v * by


@jit
def context_by_generator(x):
    with scaled(3.0) as s, contextlib.suppress(KeyError), contextlib.nullcontext(2.0) as two:
        return s(x) * two


# ---- scopes --------------------------------------------------------------------------------------


@jit
def comprehension_scopes(x):
    rows = [[(i, j) for j in range(i)] for i in range(3)]
    flat = {f"{i}{j}": x * i + j for i, j in itertools.chain.from_iterable(rows)}
    total = sum(v for k, v in flat.items() if k != "10")
    squares = {n: n**2 for n in range(3)}
    return total + squares[2] + sum(a * b for a, b in zip(range(3), (1.0, 2.0, 3.0)))


@jit
def walrus_in_a_comprehension(x):
    values = [last := x * i for i in range(3)]
    if (n := len(values)) > 2 and (half := n // 2):
        return last + half
    return x


@jit
def loop_variable_after(x):
    for i in range(4):
        if i == 2:
            break
    else:
        i = -1
    while (i := i - 1) > 0:
        x = x + 1
    return x * i


@jit
def closure_with_default(x):
    steps = [lambda y, k=k: y + k for k in range(3)]
    return reduce(lambda acc, f: f(acc), steps, x)


@jit
def nested_nonlocal(x):
    total = 0.0
    count = 0

    def add(v):
        nonlocal total, count
        total, count = total + v, count + 1
        return total

    [add(x) for _ in range(3)]
    return total / count


@jit
def unpacked_and_starred(x):
    first, (second, *third), *rest = x, (x * 2, 3, 4), 5, 6
    del rest[0]
    (a, b), c = divmod(7, 2), [*third, *rest]
    return first + second + a + b + sum(c)


@jit
def class_made_in_the_call(x):
    @dataclass
    class State:
        total: Any = 0.0
        seen: list = field(default_factory=list)

        def push(self, v):
            self.seen.append(v)
            self.total += v
            return self

    return State().push(x).push(x * 2).total


@jit
def tables_made_in_the_call(x):
    groups = defaultdict(list)
    for i, name in enumerate("abca"):
        groups[name].append(x * i)
    order = OrderedDict(sorted(groups.items()))
    order.move_to_end("a")
    merged = ChainMap({"z": [x]}, order)
    counts = Counter("abca")
    counts.update(["a"])
    return sum(map(sum, merged.values())) + counts["a"]


@jit
def text_for_keys(x):
    letters = string.ascii_lowercase[: x.ndim + 2]
    spec = f"{letters}->{letters[::-1]}"
    return jnp.einsum(spec, x * jnp.ones((2, 2)))[0, 0]


@jit
def copies_of_arguments(params):
    params = dict(params)
    params["w"] = params["w"] * 2
    other = copy.copy(params)
    other.update(b=1.0)
    deep = copy.deepcopy({"l": [params["w"]]})
    deep["l"].append(other["b"])
    return sum(deep["l"])


@jit
def namespace_made_inside(x):
    ns = SimpleNamespace(a=x)
    ns.b = ns.a * 2
    setattr(ns, "c", ns.b + 1)
    return sum(vars(ns).values())


# ---- modes, logging, asserts ---------------------------------------------------------------------


@jit
def debugged_by_a_flag(x):
    if DEBUG:
        print("x is", x)
    if VERBOSE:
        log.info("x %s", x)
    assert x.ndim == 0, f"a scalar is wanted, got {x.shape}"
    return x * GRAVITY


@jit
def type_checking_block(x):
    if typing.TYPE_CHECKING:
        import nothing_there  # noqa: F401
    y: float = x
    z: "list[int]" = []
    z.append(1)
    return y * z[0] + _EPS


@jit
def shape_logic(x):
    x = jnp.atleast_1d(x)
    if x.ndim > 3 or x.shape[-1] != 1:
        raise ValueError(f"bad shape {x.shape}: expected (..., 1), dtype {x.dtype.name}")
    axes = tuple(a for a in range(x.ndim) if a != 1)
    return x.sum(axis=axes) + np.prod(x.shape) + math.comb(4, 2)


@jit
def errors_as_control(x):
    try:
        shape = x.shape[3]
    except IndexError as error:
        shape = len(error.args)
    else:
        shape = 2
    finally:
        scale = 2.0
    return x * shape * scale


@jit
def stencil_of_module(x):
    return jnp.convolve(x * jnp.ones(5), stencil, mode="valid").sum() + half_pi


@jit
def series_by_horner(x):
    return reduce(lambda acc, c: acc * x**2 + c, reversed(coefficients), 0.0)


@jit
def helper_defined_below(x):
    return below(x, n=3)


def below(x, n):
    return x if n == 0 else below(jnp.sin(x), n - 1)


@overload
def typed(x: int) -> int: ...
@overload
def typed(x: float) -> float: ...
def typed(x):
    return x * 2


@jit
def overloaded(x):
    return typed(x) + Scalar(2.0)


async def unused_fetch(url):
    async with url as session:
        return await session.get()


def unused_generator():
    yield from range(3)


@jit
def generators_made_inside(x):
    def terms():
        y = x
        while True:
            yield y
            y = y / 2

    return sum(itertools.islice(terms(), 4)) + max(unused_generator())


# ---- transforms ----------------------------------------------------------------------------------


def loss(params, batch, *, weight: float = 0.0):
    w, b = params
    pred = batch["x"] @ w + b
    penalty = weight * sum(jnp.sum(p**2) for p in tree.leaves(params))
    return jnp.mean((pred - batch["y"]) ** 2) + penalty, {"pred": pred}


@partial(jit, static_argnames=("lr", "weight"))
def train_step(params, batch, lr=0.1, weight=1e-4):
    (value, aux), grads = value_and_grad(loss, has_aux=True)(params, batch, weight=weight)
    new = tree.map(lambda p, g: p - lr * g, params, grads)
    return new, value, aux["pred"].mean()


@jit
def nested_transforms(x):
    f = vmap(grad(lambda a, b: jnp.sin(a) * b), in_axes=(0, None))
    return f(x * jnp.ones(3), 2.0).sum() + lax.cond(x > 0, lambda a: a, lambda a: -a, x)


@jit
def while_over_a_dict(x):
    state = {"i": 0, "x": x, "best": jnp.inf}

    def cond(s):
        return s["i"] < 5

    def body(s):
        s = dict(s)
        s["x"] = s["x"] * 0.5
        s["best"] = jnp.minimum(s.pop("best"), s["x"])
        return {**s, "i": s["i"] + 1}

    return lax.while_loop(cond, body, state)["best"]


@jit
def loop_of_branches(x):
    branches = [partial(jnp.multiply, k) for k in (1.0, 2.0, 3.0)]
    return lax.fori_loop(0, 3, lambda i, acc: lax.switch(i, branches, acc), x)


@partial(jit, static_argnums=(1,))
def static_structure(x, spec=(("scale", 2.0), ("shift", 1.0))):
    table = {"scale": operator.mul, "shift": operator.add}
    for name, value in spec:
        x = table[name](x, value)
    return x


def make_optimiser_as_closures():
    def sgd(rate: float | Callable[[Any], Any], momentum: float | None = None):
        schedule = rate if callable(rate) else lambda step: rate

        def init(params):
            return tree.map(jnp.zeros_like, params)

        def update(grads, state, step):
            if momentum is not None:
                state = tree.map(lambda m, g: momentum * m + g, state, grads)
                grads = state
            return tree.map(lambda g: -schedule(step) * g, grads), state

        return init, update

    init, update = sgd(lambda step: 0.1 / (1 + step), momentum=0.9)
    return lambda g: update(g, init(g), 3)[0]


def make_curried():
    add: Callable = lambda a: lambda b: lambda c: a + b * c
    return add(1.0)(2.0)


def make_composed_pipeline():
    def pipe(*funs: Callable) -> Callable:
        return lambda x: reduce(lambda v, f: f(v), funs, x)

    return pipe(jnp.sin, partial(jnp.multiply, 2.0), abs, operator.neg, lambda x: x.astype(jnp.float32))


def make_bound_method_of_a_record():
    return physics.force


def make_class_with_call():
    return Both(Affine(2.0))


def make_static_config_object():
    @dataclass(frozen=True)
    class Settings:
        names: tuple[str, ...] = ("a", "b")
        limits: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({"a": 1.0}))

    settings = Settings()
    return lambda x: sum(x * settings.limits.get(n, 2.0) for n in settings.names)
