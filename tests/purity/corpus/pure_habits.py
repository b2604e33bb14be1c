"""What people write around a traced function: classes, records, registries, decorators, generators."""

import abc
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import types
import typing
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import grad, jit, lax, random, vmap

T = TypeVar("T")
GRAVITY: Final = 9.81
LAYERS = (16, 16, 1)
NODES = np.polynomial.legendre.leggauss(4)[0]
NODES.flags.writeable = False
alpha = 0.5
epsilon = np.float32(1e-6)
Point = namedtuple("Point", "x y")
ACTIVATIONS = types.MappingProxyType({"relu": jnp.tanh, "tanh": jnp.tanh})


class Kind(enum.Enum):
    LINEAR = "linear"
    SQUARE = "square"


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float = 0.1
    kind: Kind = Kind.LINEAR
    widths: tuple[int, ...] = (4, 4)
    scale: ClassVar[float] = 2.0

    @property
    def half(self):
        return self.rate / 2

    @classmethod
    def small(cls):
        return cls(rate=0.01)

    def step(self, x, g):
        return x - self.rate * g


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    mass: float = 1.0

    def energy(self, v):
        return 0.5 * self.mass * v**2


class Options(NamedTuple):
    order: int = 2
    tol: float = 1e-6


class Module(abc.ABC):
    @abc.abstractmethod
    def __call__(self, params, x): ...

    def __or__(self, other):
        return Chain(self, other)


class Dense(Module):
    __slots__ = ()

    def __call__(self, params, x):
        return x * params["w"] + params["b"]


class Chain(Module):
    def __init__(self, *parts):
        self.parts = parts

    def __call__(self, params, x):
        for part, p in zip(self.parts, params, strict=True):
            x = part(p, x)
        return x


class Potential(Protocol):
    def energy(self, v): ...


class Base(Generic[T]):
    factor = 3.0

    def scaled(self, x):
        return self.factor * x

    @staticmethod
    def shift(x):
        return x + 1.0

    @classmethod
    def make(cls):
        return cls()


class Derived(Base[float]):
    factor = 4.0

    def scaled(self, x):
        return super().scaled(x) + self.shift(x)


CONFIG = Config()
SMALL = Config.small()
OPTIONS = Options()
SLOTTED = Slotted(2.0)


def logged(fun):
    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        return fun(*args, **kwargs)

    return wrapper


def scaled_by(factor):
    def decorate(fun):
        @functools.wraps(fun)
        def wrapper(x):
            return factor * fun(x)

        return wrapper

    return decorate


def make_layer(**options):
    def layer(x):
        return options.get("gain", 1.0) * x + options["bias"]

    return layer


def powers(x, n) -> Iterator[Any]:
    y = x
    for _ in range(n):
        yield y
        y = y * x


@contextlib.contextmanager
def nothing():
    yield 2.0


@functools.singledispatch
def combine(a, b):
    return a + b


@combine.register
def _(a: tuple, b):
    return a[0] + b


@functools.lru_cache
def coefficients(n: int) -> tuple[float, ...]:
    return tuple(1.0 / math.factorial(k) for k in range(n))


@jit
def p_frozen_config_method(x):
    return CONFIG.step(x, 2 * x) * CONFIG.half


@jit
def p_frozen_config_from_a_class_method(x):
    return SMALL.step(x, x)


@jit
def p_config_replaced(x):
    return dataclasses.replace(CONFIG, rate=0.2).step(x, x)


@jit
def p_config_made_inside(x):
    config = Config(rate=0.3, kind=Kind.SQUARE)
    return config.step(x, x) if config.kind is Kind.SQUARE else x


@jit
def p_fields_of_a_config(x):
    return sum(getattr(CONFIG, f.name) * x for f in dataclasses.fields(CONFIG) if f.name == "rate")


@jit
def p_slots(x):
    return SLOTTED.energy(x)


@jit
def p_named_tuple(x):
    order, tol = OPTIONS
    return x**order + tol + OPTIONS._replace(order=3).order


@jit
def p_enum_switch(x):
    match CONFIG.kind:
        case Kind.LINEAR:
            return x
        case Kind.SQUARE:
            return x * x


@jit
def p_enum_by_value(x):
    return x * len(Kind) if Kind("linear") is Kind.LINEAR else x


@jit
def p_flags(x):
    level = Level.LOW | Level.HIGH
    return x * level.value if Level.HIGH in level else x


@jit
def p_modules_composed(x):
    net = Dense() | Dense()
    return net([{"w": 2.0, "b": 1.0}, {"w": x, "b": x}], x)


@jit
def p_inherited_method(x):
    return Derived().scaled(x) + Derived.make().factor


@jit
def p_generic_and_protocol(x):
    model: Potential = SLOTTED
    return typing.cast("Any", model).energy(x)


@jit
@logged
@scaled_by(3.0)
def p_own_decorators(x):
    return x + GRAVITY


@jit
def p_closure_over_keywords(x):
    return make_layer(gain=2.0, bias=1.0)(x)


LAYER = make_layer(gain=2.0, bias=0.5)


@jit
def p_closure_over_keywords_made_before(x):
    return LAYER(x)


@jit
def p_partial_of_a_method(x):
    return functools.partial(CONFIG.step, g=x)(x)


@jit
def p_reduce(x):
    return functools.reduce(operator.mul, (x, x + 1, x + 2))


@jit
def p_accumulate(x):
    return sum(itertools.accumulate([x, x, x], operator.add))


@jit
def p_itertools(x):
    pairs = itertools.chain.from_iterable(itertools.combinations([x, x + 1, x + 2], 2))
    return sum(itertools.islice(pairs, 4)) + sum(itertools.starmap(jnp.add, [(x, x)]))


@jit
def p_groups(x):
    rows = [("a", x), ("a", 2 * x), ("b", x)]
    return sum(v for _, group in itertools.groupby(rows, key=lambda r: r[0]) for _, v in group)


@jit
def p_pairwise_zip(x):
    widths = (1, *LAYERS)
    return sum(x * a * b for a, b in zip(widths[:-1], widths[1:], strict=True))


@jit
def p_generator(x):
    return sum(powers(x, 3))


@jit
def p_generator_sent_to(x):
    def running():
        total = 0.0
        while True:
            total = total + (yield total)

    add = running()
    next(add)
    add.send(x)
    return add.send(x)


@jit
def p_context_manager(x):
    with nothing() as two, contextlib.suppress(ValueError):
        return two * x
    return x


@jit
def p_exit_stack(x):
    with contextlib.ExitStack() as stack:
        two = stack.enter_context(nothing())
        return two * x


@jit
def p_name_scope(x):
    with fnarray.named_scope("layer"), fnarray.enable_x64(False):
        return jnp.sin(x)


@jit
def p_comprehensions(x):
    table = {n: n * x for n in range(3)}
    return sum(v for k, v in table.items() if k in {1, 2}) + sum([x * i for i in range(2)])


@jit
def p_walrus(x):
    return y + 1 if (y := x * 2) is not None else x


@jit
def p_match_on_structure(x):
    match {"op": "scale", "by": 2.0}:
        case {"op": "scale", "by": float(by), **rest}:
            return x * by * (1 + len(rest))
        case _:
            return x


@jit
def p_match_class(x):
    match Point(x, 2.0):
        case Point(x=a, y=b):
            return a * b


@jit
def p_dispatch_on_type(x):
    return combine((x, 1), x) + combine(x, x)


@jit
def p_registry_of_functions(x):
    return ACTIVATIONS["relu"](x)


@jit
def p_local_registry(x):
    registry = {}

    def register(fun):
        registry[fun.__name__] = fun
        return fun

    @register
    def double(y):
        return 2 * y

    return registry["double"](x)


@jit
def p_cache_of_plain_numbers(x):
    return sum(c * x**k for k, c in enumerate(coefficients(4)))


@jit
def p_numpy_constants(x):
    return jnp.sum(x * NODES) + epsilon * alpha + np.pi


@jit
def p_numpy_tables_inside(x):
    grid = np.linspace(0, 1, 5)
    grid[0] = 1.0
    np.maximum(grid, 0.5, out=grid)
    return jnp.sum(x * grid)


@jit
def p_collections(x):
    counts, groups, window = Counter("aab"), defaultdict(list), deque([x], maxlen=2)
    groups["a"].append(x)
    window.append(2 * x)
    both = ChainMap({"a": x}, OrderedDict(b=x))
    return x * counts["a"] + groups["a"][0] + window[-1] + both["a"]


@jit
def p_dictionary_of_layers(x):
    params = {f"layer{i}": {"w": x, "b": jnp.zeros(())} for i in range(2)}
    for name in sorted(params):
        layer = params[name]
        x = jnp.tanh(layer["w"] * x + layer["b"])
    return x


@jit
def p_tree_update(x):
    params = {"w": x, "b": (x, x)}
    grads = grad(lambda p: p["w"] * p["b"][0] + p["b"][1])(params)
    return fnarray.tree.map(lambda p, g: p - CONFIG.rate * g, params, grads)


@jit
def p_list_of_keys(x):
    keys = list(random.split(random.key(0), 3))
    return x + sum(random.normal(keys.pop()) for _ in range(2))


@jit
def p_scan_over_a_record(x):
    def step(state, _):
        state = Point(state.x + state.y, state.y)
        return state, state.x

    return lax.scan(step, Point(x, x), None, length=3)[1]


@jit
def p_fold_over_functions(x):
    def compose(*functions: Callable):
        return functools.reduce(lambda f, g: lambda y: g(f(y)), functions)

    return compose(jnp.sin, jnp.cos, lambda y: y + 1)(x)


@jit
def p_class_made_inside(x):
    class Box:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Box(self.value + other.value)

    total = Box(x) + Box(x)
    total.value = total.value * 2
    return total.value


@jit
def p_errors_of_arguments(x):
    if x.ndim > 3:
        raise ValueError(f"expected at most 3 dimensions, got {x.shape}")
    assert x.dtype == jnp.float32, f"{x.dtype}"
    return x


@jit
def p_vmap_of_a_bound_method(x):
    return jnp.sum(vmap(SLOTTED.energy)(jnp.stack([x, x])))


@jit
def p_keywords_forwarded(x):
    def inner(y, *, scale=1.0, **rest):
        return y * scale + sum(rest.values())

    options = {"scale": 2.0, "shift": x}
    return inner(x, **options)


@jit
def p_annotations(x: jnp.ndarray, /, n: int = 2, *rest: float, flag: bool = True) -> jnp.ndarray:
    total: Any = x
    values: Iterable[float] = (1.0, 2.0)
    table: Mapping[str, float] = {"a": 1.0}
    for value in values:
        total = total + value * table["a"]
    return total * n if flag else x


@jit
def p_recursion(x):
    def horner(coefs, y):
        match coefs:
            case []:
                return 0.0
            case [first, *rest]:
                return first + y * horner(rest, y)

    return horner([1.0, 2.0, 3.0], x)


@jit
def p_text_of_shapes(x):
    name = "_".join(str(n) for n in x.shape) or "scalar"
    return x * len(f"{name}:{x.dtype!s:>8}")
