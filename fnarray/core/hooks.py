"""The late bindings, which are made when something first needs them.

Everything else is imported downwards. These run upwards on purpose: arrays get their operators
from ``fnarray.numpy``, graphs their text from ``core.pretty``, which reads them, control flow
called eagerly runs through the compile wing, and a rule may name an operation of a family that
nobody imported yet. Nothing is imported here, not even to name a type: whatever is bound late may
import this, and ``import fnarray`` costs a linter nothing. Who measures what is done listens here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any, Final
from weakref import WeakKeyDictionary

# Those of `core.graph`, which stands above.
Graph = Any
ClosedGraph = Any

_importers: dict[str, Callable[[], Any]] = {}


def bind_with(**importers: Callable[[], Any]) -> None:
    """Set what imports the upper floors; each returns what it is called for."""
    _importers.update(importers)


@cache
def _bound(name: str) -> Any:
    if name not in _importers:
        raise RuntimeError("fnarray is only partly imported: import fnarray first")
    return _importers[name]()


def gpus() -> Any:
    """Return what evaluates, and puts values, on the GPU that is the default device."""
    return _bound("gpus")


def install_operators() -> None:
    """Give arrays and tracers their operators and methods, unless they have them."""
    _bound("operators")


def declare(primitive: str) -> None:
    """Import the family that declares a primitive, if there is one."""
    _bound("families")(primitive)


def convert(x: Any, dtype: Any, weak_type: bool) -> Any:
    """Return an array in a dtype, weakly typed or not."""
    return _bound("convert")(x, dtype, weak_type)


def seen_ref(ref: Any, how: str, *args: Any) -> Any:
    """Return a Ref of the elements of another, seen in another way."""
    return getattr(_bound("ref_views"), how)(ref, *args)


def extension_name(self: Any, name: str) -> Any:
    """Look an attribute up that extensions know: what ``__getattr__`` is of classes that have some.

    They are set on the classes by what is imported here, when one is first asked for.
    """
    if not name.startswith("_"):
        _bound("extension_names")
    return object.__getattribute__(self, name)


def graph_text(graph: Graph, **options: Any) -> str:
    """Return a graph as text."""
    return _bound("graph_text")(graph, **options)


def eqn_text(eqn: Any) -> str:
    """Return an equation as text."""
    return _bound("eqn_text")(eqn)


def prepared(graph: ClosedGraph) -> Callable[..., Sequence[Any]]:
    """Compile a closed graph, unless it is; return what runs it on NumPy arrays."""
    return _bound("prepared")(graph)


def compiled_call(graph: ClosedGraph, args: Sequence[Any]) -> Sequence[Any]:
    """Run a closed graph on NumPy arrays; returns NumPy arrays."""
    return _bound("compiled_call")(graph, args)


def report(lowered: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Explain a lowered function, run on the arguments if there are any."""
    return _bound("report")(lowered, args, kwargs)


# ---- spans of time -------------------------------------------------------------------------------

#: Who is told of spans, called with ``(kind, name, begin, end)``, in seconds of `perf_counter`.
listeners: Final[list[Callable[[str, str, float, float], None]]] = []


class span:  # noqa: N801 - a context manager, lighter than a generator's
    """Measure a stage of tracing or compiling, and tell those who listen.

    Attributes
    ----------
    seconds : float
        What the block took, once it has ended.
    """

    __slots__ = ("begin", "kind", "name", "seconds")

    def __init__(self, kind: str, name: str):
        self.kind = kind
        self.name = name

    def __enter__(self) -> span:
        self.begin = perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        end = perf_counter()
        self.seconds = end - self.begin
        for tell in listeners:
            tell(self.kind, self.name, self.begin, end)


# ---- drivers -------------------------------------------------------------------------------------

#: The drivers of compiled programs, each with what labels the kernels and steps that it calls.
drivers: Final[WeakKeyDictionary[Callable[..., Any], Callable[[], Mapping[str, str]]]]
drivers = WeakKeyDictionary()
#: Called with each driver that is made.
binders: Final[list[Callable[[Callable[..., Any]], None]]] = []


def bound(main: Callable[..., Any], labels: Callable[[], Mapping[str, str]]) -> None:
    """Make a driver known to who measures: what it calls are its globals, and can be exchanged."""
    drivers[main] = labels
    for tell in binders:
        tell(main)


def place_of(sharding: Any, rank: int) -> Any:
    """Return what a sharding says of the type of arrays of a rank: a `Place`, or None."""
    return _bound("mesh").place_of(sharding, rank)


def sharding_of_type(aval: Any) -> Any:
    """Return how arrays of a type are cut, as a sharding."""
    return _bound("ambient").sharding_of_type(aval)


def cut_eqn(trace: Any, prim: Any, atoms: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the operands and the avals of the results of an equation on arrays of a mesh."""
    return _bound("cutting").cut_eqn(trace, prim, atoms, params)


def placed_as(x: Any, aval: Any) -> Any:
    """Return a value on a mesh as an aval says."""
    return _bound("cutting").placed_as(x, aval)


def varied(x: Any, axes: Sequence[Any]) -> Any:
    """Return a value as one that may differ between devices along axes."""
    return _bound("cutting").varied(x, axes)


def kind_along(aval: Any, axis: Any) -> str:
    """Return what devices along an axis of a `shard_map` have: see ``ops.placing``."""
    return _bound("cutting").kind_along(aval, axis)


def cast(x: Any, axes: Sequence[Any], to: str) -> Any:
    """Return a value of another kind along axes of a `shard_map`."""
    return _bound("cutting").cast(x, axes, to)


def evaluate_placed(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply an operation to arrays of which it is said where they are."""
    return _bound("places").evaluate(prim, args, params)


def cut_as(where: Any, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, and return its result on the device, or cut, as is said."""
    return _bound("resharding").cut_as(where, f, *args, **kwargs)


def named(what: str, where: Any) -> Any:
    """Return the sharding that a spec stands for, on the mesh about the program."""
    return _bound("resharding").named(what, where)


def put(x: Any, where: Any) -> Any:
    """Return an array said to be somewhere."""
    return _bound("resharding").moved(x, where, "sharding_constraint")


def placed_like(x: Any, like: Any) -> Any:
    """Return an array of an array's shape, where that is."""
    return _bound("resharding").placed_like(x, like)


def placed_result(x: Any) -> Any:
    """Return an array of a type that is cut, on the devices of its mesh."""
    return _bound("places").of_type(x)
