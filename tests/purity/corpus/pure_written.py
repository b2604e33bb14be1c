"""Pure programs as people write them: classes, records, decorators, registries, layers of helpers."""

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import pathlib
import re
import string
import types
import typing
import weakref
from collections import ChainMap, Counter, OrderedDict
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import scipy.special

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, vmap

GRAVITY = 9.81
UNITS = types.MappingProxyType({"m": 1.0, "km": 1000.0})
NODES = tuple(np.polynomial.legendre.leggauss(3)[0].tolist())
HERE = pathlib.PurePath("data")
PATTERN = re.compile(r"\d+")
EPOCH = datetime(2020, 1, 1, tzinfo=timezone.utc)
HALF = Fraction(1, 2)
TENTH = Decimal("0.1")
MISSING = object()
coefficients = (1.0, -0.5, 0.25)
identity = np.eye(2, dtype=np.float32)


class Boundary(enum.Enum):
    PERIODIC = "periodic"
    FIXED = "fixed"

    def pad(self, x):
        return jnp.roll(x, 1) if self is Boundary.PERIODIC else x


class Options(enum.IntFlag):
    FAST = 1
    SAFE = 2

    @property
    def gain(self):
        return 2.0 if Options.SAFE in self else 1.0


class Kernel(abc.ABC):
    @abc.abstractmethod
    def __call__(self, r): ...

    def gram(self, x):
        return vmap(lambda a: vmap(lambda b: self(a - b))(x))(x)

    def __add__(self, other):
        return Total((self, other))


@dataclasses.dataclass(frozen=True)
class Gaussian(Kernel):
    width: float = 1.0

    def __call__(self, r):
        return jnp.exp(-((r / self.width) ** 2))


@dataclasses.dataclass(frozen=True)
class Total(Kernel):
    parts: tuple

    def __call__(self, r):
        return sum(part(r) for part in self.parts)


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    width: int
    act: typing.Callable = jnp.tanh
    names: tuple = dataclasses.field(default=("w", "b"))

    def __post_init__(self):
        if self.width < 1:
            raise ValueError(f"width must be at least 1, got {self.width}")

    def __call__(self, params, x):
        w, b = (params[name] for name in self.names)
        return self.act(x * w + b)


class Chain:
    """Built in the traced function, and called there."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.calls = 0

    def then(self, step):
        self.steps.append(step)
        return self

    def __call__(self, x):
        for step in self.steps:
            self.calls += 1
            x = step(x)
        return x

    def __len__(self):
        return len(self.steps)

    def __iter__(self):
        yield from self.steps


class Bounded:
    """A descriptor that checks what is set."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name)

    def __set__(self, obj, value):
        setattr(obj, self.name, value)


class Spring:
    stiffness = Bounded()

    def __init__(self, stiffness):
        self.stiffness = stiffness

    @property
    def energy(self):
        return lambda x: 0.5 * self.stiffness * x * x


class State(typing.NamedTuple):
    position: typing.Any
    velocity: typing.Any = 0.0

    def moved(self, dt):
        return self._replace(position=self.position + dt * self.velocity)


class Shape(typing.Protocol):
    def area(self): ...


class Disc:
    def __init__(self, r):
        self.r = r

    def area(self):
        return math.pi * self.r**2


def logged(fun):
    """Decorates, and keeps the signature."""

    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        return fun(*args, **kwargs)

    return wrapper


def scaled(by, *, offset=0.0):
    def decorate(fun):
        @functools.wraps(fun)
        def wrapper(x):
            return fun(x) * by + offset

        return wrapper

    return decorate


class memo:
    """A decorator that is a class, without state of its own."""

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self.fun = fun

    def __call__(self, *args):
        return self.fun(*args)


@logged
@scaled(2.0, offset=1.0)
def wrapped_twice(x):
    return jnp.sin(x)


@functools.singledispatch
def measure(a):
    return jnp.sum(jnp.asarray(a))


@measure.register
def _(a: tuple):
    return sum(map(measure, a))


@contextlib.contextmanager
def scope(value):
    yield value


polynomial = functools.partial(jnp.polyval, jnp.array(coefficients))
compose = lambda *fs: functools.reduce(lambda f, g: lambda x: g(f(x)), fs)
pipeline = compose(jnp.sin, jnp.cos, functools.partial(jnp.multiply, 2.0))


@jit
def constant_of_module(t):
    return 0.5 * GRAVITY * t**2


@jit
def table_of_units(x):
    return x * UNITS["km"] + UNITS.get("cm", 0.01)


@jit
def quadrature(x):
    return sum(jnp.exp(-((x - node) ** 2)) for node in NODES)


@jit
def decorated(x):
    return wrapped_twice(x)


@jit
def partial_of_library(x):
    return polynomial(x)


@jit
def composed(x):
    return pipeline(x)


@jit
def sum_of_kernels(x):
    return (Gaussian(0.5) + Gaussian(2.0)).gram(x)


@jit
def frozen_layers(params, x):
    for layer in (Layer(3), Layer(1, act=jnp.abs)):
        x = layer(params, x)
    return x


@jit
def object_of_ones_own(x):
    chain = Chain(jnp.sin).then(jnp.cos).then(lambda y: y * 2)
    return chain(x) * len(chain) * chain.calls


@jit
def iterated_object(x):
    return sum(step(x) for step in Chain(jnp.sin, jnp.cos))


@jit
def descriptor_of_ones_own(x):
    spring = Spring(3.0)
    spring.stiffness = spring.stiffness * 2
    return grad(spring.energy)(x)


@jit
def named_tuple_that_moves(x):
    return lax.fori_loop(0, 3, lambda i, s: s.moved(0.1), State(x, x * 0 + 1.0)).position


@jit
def protocol_by_duck(x):
    shapes: list[Shape] = [Disc(x), Disc(2 * x)]
    return sum(shape.area() for shape in shapes)


@jit
def enumeration_with_method(x):
    return Boundary.PERIODIC.pad(x) + Boundary("fixed").pad(x)


@jit
def flags(x):
    return x * (Options.FAST | Options.SAFE).gain


@jit
def enumeration_as_switch(x):
    match Boundary.FIXED:
        case Boundary.PERIODIC:
            return jnp.roll(x, 1)
        case Boundary.FIXED:
            return x


@jit
def record_in_a_match(x):
    match State(x, 1.0):
        case State(position=p, velocity=v):
            return p + v


@jit
def dispatched(x):
    return measure((x, x * 2))


@jit
def managed(x):
    with scope(x * 2) as y, contextlib.suppress(KeyError):
        return y + 1
    return x


@jit
def counted_words(x):
    words = Counter("the cat and the dog".split())
    return x * words["the"] + words.most_common(1)[0][1]


@jit
def grouped(x):
    rows = sorted([("a", 1.0), ("b", 2.0), ("a", 3.0)], key=operator.itemgetter(0))
    groups = {k: sum(v for _, v in g) for k, g in itertools.groupby(rows, key=lambda r: r[0])}
    return x * groups["a"]


@jit
def accumulated(x):
    return sum(itertools.accumulate([x, x * 2, x * 3], operator.add))


@jit
def merged_settings(x):
    merged = ChainMap({"scale": 2.0}, {"scale": 1.0, "shift": 0.5})
    return x * merged["scale"] + merged["shift"]


@jit
def ordered(x):
    layers = OrderedDict(first=jnp.sin, second=jnp.cos)
    layers.move_to_end("first")
    for f in layers.values():
        x = f(x)
    return x


@jit
def text_that_names(params):
    pattern = string.Template("layer_$n")
    return sum(params[pattern.substitute(n=n)] for n in range(2))


@jit
def matched_names(params):
    return sum(v for k, v in params.items() if PATTERN.search(k))


@jit
def paths_as_names(params):
    return params[str(HERE / "w")] + params[(HERE / "b").name]


@jit
def exact_numbers(x):
    return x * float(HALF) + float(TENTH)


@jit
def seconds_of_a_day(x):
    return x * timedelta(days=1).total_seconds() + (EPOCH.year - 2000)


@jit
def sentinel(x, y=MISSING):
    return x if y is MISSING else x + y


@jit
def installed_library(x):
    return x * float(scipy.special.gamma(5.0))


@jit
def small_array_of_module(x):
    return x @ identity + identity.shape[0]


@jit
def table_by_loop(x):
    table = np.zeros((3, 3), np.float32)
    for i, j in itertools.product(range(3), repeat=2):
        table[i, j] = 1.0 / (1 + abs(i - j))
    return x @ table


@jit
def filled_dictionary(x):
    out = collections.defaultdict(list)
    for i in range(3):
        out[i % 2].append(x * i)
    return {k: jnp.stack(v) for k, v in out.items()}


@jit
def recursion(x):
    def tree_sum(node):
        return sum(map(tree_sum, node)) if isinstance(node, (list, tuple)) else node

    return tree_sum([x, (x, [x * 2])])


@jit
def memoised_inside(x):
    @functools.lru_cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return x * fib(10)


@jit
def mutual(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return x if even(4) else -x


@jit
def generator_of_ones_own(x):
    def halves(y):
        for _ in range(3):
            y = y / 2
            yield y

    return sum(halves(x)) + next(halves(x))


@jit
def state_machine(x):
    machine = types.SimpleNamespace(total=0.0, steps=0)

    def feed(v):
        machine.total = machine.total + v
        machine.steps += 1

    for i in range(3):
        feed(x * i)
    return machine.total / machine.steps


@jit
def class_decorator_inside(x):
    @memo
    def twice(y):
        return y * 2

    return twice(x)


@jit
def class_made_inside(x):
    @dataclasses.dataclass
    class Pair:
        a: typing.Any
        b: typing.Any = None

        def total(self):
            return self.a + (0.0 if self.b is None else self.b)

    pair = Pair(x)
    pair.b = x * 2
    return pair.total() + dataclasses.replace(pair, a=0.0).total()


@jit
def exceptions_as_control(x):
    params = {"w": 2.0}
    try:
        return x * params["b"]
    except KeyError as missing:
        return x * params["w"] * len(missing.args)


@jit
def weakly_held(x):
    disc = Disc(x)
    return weakref.ref(disc)().area()


@jit
def star_arguments(x):
    def mean(*values, weights=None, **_):
        weights = weights or [1.0] * len(values)
        return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)

    return mean(x, x * 2, weights=[1.0, 3.0], unused=True)


@jit
def shapes_as_python(x):
    *batch, features = x.shape
    return x.reshape(math.prod(batch), features).mean(axis=tuple(range(1)))


@jit
def einsum_built(x):
    letters = iter(string.ascii_lowercase)
    left = "".join(next(letters) for _ in range(x.ndim))
    return jnp.einsum(f"{left}->{left[::-1]}", x)


@jit
def hooks_as_arguments(x, hooks=(jnp.sin, jnp.cos)):
    for hook in hooks:
        x = hook(x)
    return x


@jit
def walrus(x):
    return y * y if (y := x + 1).ndim == 0 else y


@jit
def sorted_by_key(params):
    return [params[k] for k in sorted(params, key=lambda k: (len(k), k))]


@jit
def asserted(x):
    assert x.ndim <= 2, f"expected at most two axes, got {x.ndim}: {x.shape}"
    return x


@jit
def checked(x):
    if not isinstance(x, fnarray.Array):
        raise TypeError(f"expected an array, got {type(x).__name__}")
    return x


def make_optimiser(rate=0.1, *, momentum=0.9, **options):
    def update(w, m, g):
        m = momentum * m + g
        return w - rate * m * options.get("scale", 1.0), m

    def step(w, m):
        return update(w, m, grad(lambda v: jnp.sum(v**2))(w))

    return step


def make_network(sizes=(3, 2), act=jnp.tanh):
    layers = [functools.partial(lambda n, x: act(x) * n, n) for n in sizes]

    def apply(x):
        for layer in layers:
            x = layer(x)
        return x

    return apply


def make_method():
    class Model:
        depth: typing.ClassVar[int] = 2
        ACT = staticmethod(jnp.tanh)

        @classmethod
        def build(cls):
            return cls()

        def __call__(self, x):
            for _ in range(type(self).depth):
                x = self.ACT(x)
            return x

    return Model.build()


def make_array_of_caller(weights=(1.0, 2.0)):
    weights = np.asarray(weights, np.float32)
    bias = weights.mean()
    return lambda x: x @ weights + bias


def make_config():
    class Config(typing.NamedTuple):
        rate: float = 0.1
        name: str = "a"

    config = Config(rate=0.5)
    return lambda x: x * config.rate * len(config.name)


def make_closure_of_closures():
    def outer(a):
        def middle(b):
            return lambda x: x * a + b

        return middle

    return outer(2.0)(3.0)


def make_named_helper():
    def deprecated(fun):
        @functools.wraps(fun)
        def inner(*args):
            message = f"{fun.__module__}.{fun.__qualname__} and {len.__name__} and {np.sin.__name__}"
            return fun(*args) * (2.0 if fun.__doc__ else len(message) / len(message))

        return inner

    @deprecated
    def old(x):
        return x + 1

    return old


class Shared:
    weights = jnp.ones(3)
    boundary = Boundary.FIXED

    def __call__(self, x):
        return self.boundary.pad(x) @ self.weights


class Below(Shared):
    pass


shared = Shared()


@jit
def w_array_of_class(x):
    return x @ Shared.weights


@jit
def w_array_of_class_by_object(x):
    return shared(x) + Below()(x)


def make_quadrature(n=4):
    weights = [1]
    for i in range(1, n):
        weights.append(4 if i % 2 else 2)
    weights.append(1)
    weights = tuple(weights)

    def integrate(x):
        return sum(w * jnp.sin(i * x / n) for i, w in enumerate(weights)) / (3 * n)

    return integrate
