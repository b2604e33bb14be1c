"""Graphs as plain data, and back: lists, text and numbers, of which none is ever run.

A value that is no plain datum is a list whose first item tells what it is. Classes come back by
name only where they hold data alone: named tuples, enumerations and frozen values of this package.
"""

from __future__ import annotations

import base64
import enum
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

import numpy as np

from .. import control, ops
from ..core.array import Array, ArrayImpl
from ..core.avals import ShapedArray
from ..core.dtypes import as_dtype
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var
from ..core.primitive import Primitive
from ..core.source import Source
from ..core.trace import Tracer
from ..core.verify import verify
from ..ops.kit.registry import registry

_PACKAGE = __name__.partition(".")[0]


class Unencodable(NotImplementedError):
    """A program holds something that is no data, such as a Python function."""


# ---- to data -------------------------------------------------------------------------------------


def encoded_aval(aval: ShapedArray) -> list[Any]:
    """Return an aval as data."""
    return ["aval", list(aval.shape), aval.dtype.name, aval.weak_type]


def encoded_array(x: Any) -> list[Any]:
    """Return an array as data."""
    if isinstance(x, Tracer):
        raise Unencodable(f"{x!r}, a traced array of outside: export the function around")
    data = np.asarray(x._data if type(x) is ArrayImpl else x)
    weak = isinstance(x, Array) and x.aval.weak_type
    text = base64.b64encode(np.ascontiguousarray(data).tobytes()).decode()
    return ["array", list(data.shape), data.dtype.name, weak, text]


def _encoded_number(x: Any) -> Any:
    """Return a number as data; whole ones as such, as they may be sizes."""
    x = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, complex):
        return ["complex", x.real.hex(), x.imag.hex()]
    if isinstance(x, float):
        return ["float", int(x)] if x.is_integer() and str(x) != "-0.0" else ["float", x.hex()]
    return x


def encoded(x: Any) -> Any:
    """Return a parameter of an operation as data.

    Raises
    ------
    Unencodable
        It is none.
    """
    if x is None or type(x) in (bool, int, str):
        return x
    if type(x) in (float, complex):
        return _encoded_number(x)
    if isinstance(x, enum.Enum):
        return ["enum", *_named(type(x)), x.name]
    if isinstance(x, int):  # the mapped axis is one with a name
        return int(x)
    if isinstance(x, tuple):
        if type(x) is tuple:
            return ["tuple", *map(encoded, x)]
        return ["record", *_named(type(x)), *map(encoded, x)]
    if isinstance(x, np.dtype):
        return ["dtype", x.name]
    if isinstance(x, np.generic):
        return ["scalar", x.dtype.name, _encoded_number(x) if x.dtype.kind != "V" else str(x)]
    if isinstance(x, np.ndarray | ArrayImpl):
        return encoded_array(x)
    if isinstance(x, ShapedArray):
        return encoded_aval(x)
    if isinstance(x, ClosedGraph):
        return ["graph", encoded_graph(x)]
    if isinstance(x, frozenset):
        return ["set", *sorted(map(encoded, x), key=repr)]
    if type(x).__module__.startswith(f"{_PACKAGE}.") and hasattr(type(x), "__dataclass_params__"):
        fields = type(x).__dataclass_fields__
        return ["value", *_named(type(x)), *(encoded(getattr(x, f)) for f in fields)]
    raise Unencodable(f"{x!r} of type {type(x).__qualname__}")


def _named(cls: type) -> tuple[str, str]:
    if not cls.__module__.startswith(f"{_PACKAGE}."):
        raise Unencodable(f"an instance of {cls.__module__}.{cls.__qualname__}")
    return cls.__module__, cls.__qualname__


def encoded_graph(closed: ClosedGraph) -> dict[str, Any]:
    """Return a graph as data: values are numbered in the order in which they are made."""
    g = closed.jaxpr
    numbers: dict[Var, int] = {}

    def made(var: Var) -> list[Any]:
        numbers[var] = len(numbers)
        return encoded_aval(var.aval)

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            value = (
                _encoded_number(np.asarray(atom.val)[()]) if atom.aval.dtype.kind != "V" else None
            )
            if value is None:
                value = ["float", float(atom.val).hex()]
            return ["literal", value, encoded_aval(atom.aval)]
        return numbers[atom]

    return {
        "name": g.debug_name,
        "consts": [encoded_array(c) for c in closed.consts],
        "constvars": [made(v) for v in g.constvars],
        "invars": [made(v) for v in g.invars],
        "eqns": [_encoded_eqn(eqn, read, made) for eqn in g.eqns],
        "outvars": [read(a) for a in g.outvars],
    }


def _encoded_eqn(eqn: Eqn, read: Callable[[Atom], Any], made: Callable[[Var], Any]) -> list[Any]:
    params = {}
    for name, x in eqn.params.items():
        try:
            params[name] = encoded(x)
        except Unencodable as error:
            if "parameter" in str(error):
                raise
            raise Unencodable(
                f"the parameter {name} of {eqn.primitive} at {eqn.source}: {error}"
            ) from None
    source = [eqn.source.file, eqn.source.line, eqn.source.function]
    ins = [read(a) for a in eqn.invars]
    return [eqn.primitive.name, ins, params, [made(v) for v in eqn.outvars], source]


# ---- from data -----------------------------------------------------------------------------------


def decoded_aval(data: Any) -> ShapedArray:
    """Return the aval that `encoded_aval` was given."""
    _, shape, dtype, weak = data
    return ShapedArray(tuple(map(int, shape)), as_dtype(dtype), bool(weak))


def decoded_array(data: Any) -> ArrayImpl:
    """Return the array that `encoded_array` was given."""
    _, shape, dtype, weak, text = data
    flat = np.frombuffer(base64.b64decode(text, validate=True), cast("np.dtype", as_dtype(dtype)))
    return ArrayImpl(flat.reshape(shape).copy(), ShapedArray(tuple(shape), flat.dtype, bool(weak)))


def _decoded_number(data: Any) -> Any:
    if isinstance(data, list):
        kind, *parts = data
        if kind == "complex":
            return complex(*map(float.fromhex, parts))
        return float.fromhex(parts[0]) if isinstance(parts[0], str) else float(parts[0])
    return data


def decoded(data: Any) -> Any:
    """Return the parameter that `encoded` was given.

    Raises
    ------
    ValueError
        No such thing is known here.
    """
    if data is None or isinstance(data, bool | int | str):
        return data
    kind, *parts = data
    match kind:
        case "float" | "complex":
            return _decoded_number(data)
        case "tuple":
            return tuple(map(decoded, parts))
        case "set":
            return frozenset(map(decoded, parts))
        case "dtype":
            return as_dtype(parts[0])
        case "scalar":
            dtype = as_dtype(parts[0])
            return np.asarray(_decoded_number(parts[1]), cast("np.dtype", dtype))[()]
        case "array":
            return decoded_array(data)
        case "aval":
            return decoded_aval(data)
        case "graph":
            return decoded_graph(parts[0])
        case "enum" | "record" | "value":
            return _instance(kind, *parts)
    raise ValueError(f"{kind!r} is no kind of value")


def _instance(kind: str, module: str, name: str, *parts: Any) -> Any:
    if not module.startswith(f"{_PACKAGE}."):
        raise ValueError(f"{module}.{name} is no class of this package")
    found: Any = sys.modules.get(module) or import_module(module)
    for part in name.split("."):
        found = vars(found).get(part)
    if kind == "enum" and isinstance(found, type) and issubclass(found, enum.Enum):
        return found[parts[0]]
    record = isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")
    if kind == "record" and record:
        return found(*map(decoded, parts))
    params = getattr(found, "__dataclass_params__", None)
    if kind == "value" and isinstance(found, type) and params is not None and params.frozen:
        return found(*map(decoded, parts))
    raise ValueError(f"{module}.{name} is no class of data")


def operation(name: str) -> Primitive:
    """Return an operation by its name, whose module this process need not have used yet.

    Raises
    ------
    KeyError
        There is none of this name.
    """
    if name not in registry:
        for package in (ops, control):
            for module in iter_modules(package.__path__, f"{package.__name__}."):
                import_module(module.name)
    return registry[name]


def decoded_graph(data: dict[str, Any]) -> ClosedGraph:
    """Return the graph that `encoded_graph` was given."""
    known: list[Var] = []

    def made(avals: list[Any]) -> tuple[Var, ...]:
        new = tuple(Var(decoded_aval(a)) for a in avals)
        known.extend(new)
        return new

    def read(atoms: list[Any]) -> Iterator[Atom]:
        for a in atoms:
            if isinstance(a, list):
                aval = decoded_aval(a[2])
                yield Literal(np.asarray(_decoded_number(a[1]), aval.dtype)[()], aval)
            elif 0 <= a < len(known):
                yield known[a]
            else:
                raise ValueError(f"value {a} is read before it is made")

    constvars, invars = made(data["constvars"]), made(data["invars"])
    eqns = []
    for name, ins, params, outs, (file, line, function) in data["eqns"]:
        try:
            prim = operation(name)
        except KeyError:
            raise ValueError(f"the operation {name!r} is not known here") from None
        operands = tuple(read(ins))
        given = {key: decoded(x) for key, x in params.items()}
        eqns.append(Eqn(prim, operands, made(outs), given, Source(file, int(line), function)))
    consts = tuple(decoded_array(c) for c in data["consts"])
    graph = Graph(constvars, invars, tuple(eqns), tuple(read(data["outvars"])), data["name"])
    verify(graph)
    return ClosedGraph(graph, consts)
