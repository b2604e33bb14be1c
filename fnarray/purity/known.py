"""What is known of functions and methods by name alone: one table for both front ends."""

from __future__ import annotations

import builtins
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from .rules import RULES

#: Qualified name, or the beginning of one up to a dot, and the code of the rule it breaks: what the
#: rules watch. The longest match wins; "" declares an exception.
EFFECTS: Final[dict[str, str]] = {
    **{name: rule.code for rule in RULES.values() for name in rule.watches.split()},
    **{name: "" for rule in RULES.values() for name in rule.spares.split()},
}

#: Rules of places that are streams or mappings: naming them is an effect, no call needed.
EFFECT_OBJECTS: Final = frozenset(rule.code for rule in RULES.values() if rule.on_sight)


_found: dict[str, str] = {}


def effect_of(ref: str) -> str:
    """Return the code of the rule that a use of the named object breaks, or ""."""
    known = _found.get(ref)
    if known is None:
        name = ref
        while name and name not in EFFECTS:
            name = name.rpartition(".")[0]
        known = _found[ref] = EFFECTS.get(name, "")
    return known


@contextmanager
def declared(names: Iterable[str], code: str) -> Generator[None, None, None]:
    """Know further functions and packages to be impure, inside of a block."""
    new = dict.fromkeys(set(names) - EFFECTS.keys(), code)
    if not new:
        yield
        return
    EFFECTS.update(new)
    _found.clear()
    try:
        yield
    finally:
        for name in new:
            del EFFECTS[name]
        _found.clear()


#: Kind of what a call returns, by qualified name.
RESULTS: Final[dict[str, str]] = {
    **{f"builtins.{k}": k for k in ("list", "dict", "set", "bytearray")},
    "builtins.sorted": "list",
    **dict.fromkeys(
        ("collections.defaultdict", "collections.OrderedDict", "collections.Counter"), "dict"
    ),
    **dict.fromkeys(
        (
            f"{package}.{k}"
            for package in ("fnarray", "fnarray.core.ref", "fnarray.ref", "jax", "jax.ref")
            for k in ("new_ref", "empty_ref", "array_ref", "mutable_array")
        ),
        "ref",
    ),
    "collections.ChainMap": "dict",
    "collections.deque": "deque",
    **dict.fromkeys(("array.array", "heapq", "queue.deque", "types.SimpleNamespace"), "container"),
    **dict.fromkeys(
        ("builtins.memoryview", "mmap.mmap", "threading.Lock", "threading.RLock"), "container"
    ),
    **dict.fromkeys(
        (f"builtins.{k}" for k in ("iter", "map", "filter", "zip", "enumerate", "reversed")),
        "iterator",
    ),
    **dict.fromkeys(
        (
            f"itertools.{k}"
            for k in (
                "count", "cycle", "repeat", "chain", "islice", "product", "permutations",
                "combinations", "accumulate", "starmap", "takewhile", "dropwhile", "groupby",
                "pairwise", "batched", "zip_longest", "compress", "filterfalse",
                "combinations_with_replacement", "chain.from_iterable",
            )
        ),
        "iterator",
    ),
    **dict.fromkeys(("csv.reader", "numpy.nditer"), "iterator"),
    **dict.fromkeys(("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary"), "dict"),
    **dict.fromkeys(
        ("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "queue.SimpleQueue",
         "contextvars.ContextVar"), "container"
    ),
    **dict.fromkeys(
        (
            "numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator",
            "random.Random", "random.SystemRandom",
        ),
        "rng",
    ),
    **dict.fromkeys(
        (
            f"numpy.{k}"
            for k in (
                "array", "zeros", "ones", "empty", "full", "arange", "linspace", "eye", "identity",
                "zeros_like", "ones_like", "empty_like", "full_like", "asarray", "copy", "stack",
                "concatenate", "tile", "diag", "logspace", "ascontiguousarray", "load", "where",
                "fromfunction", "frombuffer", "loadtxt", "atleast_1d", "ravel", "outer", "dot",
                "random.rand", "random.randn", "random.normal", "random.uniform",
            )
        ),
        "ndarray",
    ),
    **dict.fromkeys(("builtins.open", "io.open"), "file"),
    "io.StringIO": "container",
    "io.BytesIO": "container",
    "logging.getLogger": "logger",
    **dict.fromkeys(
        (f"builtins.{k}" for k in ("int", "float", "complex", "bool", "str", "bytes", "len", "abs",
                                   "round", "min", "max", "sum", "ord", "chr", "repr", "format")),
        "scalar",
    ),
    **dict.fromkeys(
        ("builtins.tuple", "builtins.frozenset", "builtins.range", "builtins.slice",
         "types.MappingProxyType", "builtins.type", "builtins.object"),
        "frozen",
    ),
}  # fmt: skip

#: Unseeded, these read the system's entropy.
SEEDED: Final = frozenset(
    {f"numpy.random.{k}" for k in ("default_rng", "RandomState", "SeedSequence", "PCG64",
                                   "PCG64DXSM", "MT19937", "Philox", "SFC64")}
    | {"random.Random"}
)  # fmt: skip

#: Methods that change their receiver: fewest and most positional arguments, whether the result is
#: None (so that code that uses the result means something else).
MUTATORS: Final[dict[str, tuple[int, int, bool]]] = {
    "append": (1, 1, True),
    "appendleft": (1, 1, True),
    "extend": (1, 1, True),
    "extendleft": (1, 1, True),
    "insert": (2, 2, True),
    "remove": (1, 1, True),
    "clear": (0, 0, True),
    "sort": (0, 0, True),
    "reverse": (0, 0, True),
    "rotate": (0, 1, True),
    "update": (0, 1, True),
    "add": (1, 1, True),
    "discard": (1, 1, True),
    "subtract": (0, 1, True),
    "intersection_update": (0, 9, True),
    "difference_update": (0, 9, True),
    "symmetric_difference_update": (1, 1, True),
    "pop": (0, 2, False),
    "popleft": (0, 0, False),
    "popitem": (0, 1, False),
    "setdefault": (1, 2, False),
    "move_to_end": (1, 2, True),
    "__setitem__": (2, 2, True),
    "__delitem__": (1, 1, True),
    "__iadd__": (1, 1, False),
    "__ior__": (1, 1, False),
    "__setattr__": (2, 2, True),
    "__delattr__": (1, 1, True),
    "write": (1, 1, False),
    "writelines": (1, 1, True),
    "truncate": (0, 1, False),
    "seek": (1, 2, False),
    "read": (0, 1, False),
    "readline": (0, 1, False),
    "put": (1, 3, True),
    "put_nowait": (1, 1, True),
    "get_nowait": (0, 0, False),
    "set": (1, 1, False),
    "reset": (1, 1, True),
}
#: Of these, what a plain name of unknown kind may answer to without harm.
QUIET_ON_UNKNOWN: Final = frozenset(
    {
        "read",
        "readline",
        "seek",
        "write",
        "writelines",
        "truncate",
        "rotate",
        "subtract",
        "put",
        "put_nowait",
        "get_nowait",
        "set",
        "reset",
    }
)
#: Methods that write into a NumPy array.
ARRAY_MUTATORS: Final = frozenset(
    {"fill", "sort", "partition", "put", "resize", "itemset", "setfield", "setflags", "byteswap",
     "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__"}
)  # fmt: skip
#: Methods that change buffers, mapped files, locks: what else is called so, nobody knows.
BUFFER_MUTATORS: Final = frozenset(
    {"byteswap", "frombytes", "fromlist", "fromfile", "fromunicode", "release", "acquire", "resize",
     "move", "flush", "read_byte", "write_byte", "close"}
)  # fmt: skip
#: Methods that give a view of a buffer's memory.
MEMORY_VIEWS: Final = frozenset({"cast", "getbuffer"})
#: Functions and methods that give a view of a NumPy array: what is written into it, the array has.
VIEWS: Final = frozenset(
    {"reshape", "view", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "asarray",
     "asanyarray", "atleast_1d", "atleast_2d", "atleast_3d", "moveaxis", "rollaxis", "expand_dims",
     "ascontiguousarray", "asfortranarray", "require", "split", "array_split", "hsplit", "vsplit",
     "dsplit", "flip", "fliplr", "flipud", "rot90", "real", "imag", "asmatrix", "ma.array",
     "ma.asarray", "ma.masked_array", "ma.MaskedArray", "lib.stride_tricks.as_strided"}
)  # fmt: skip
_UFUNCS = (
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "power", "mod",
    "remainder", "maximum", "minimum", "fmax", "fmin", "logical_or", "logical_and", "logical_xor",
    "bitwise_or", "bitwise_and", "bitwise_xor", "negative", "square", "hypot",
)  # fmt: skip
#: Functions that change one argument: its position.
MUTATING_FUNCTIONS: Final[dict[str, int]] = {
    **dict.fromkeys(("operator.setitem", "operator.delitem", "operator.iadd", "operator.ior"), 0),
    **dict.fromkeys(("operator.isub", "operator.imul", "operator.iconcat", "operator.itruediv"), 0),
    **dict.fromkeys(("heapq.heappush", "heapq.heappop", "heapq.heapify", "heapq.heapreplace"), 0),
    **dict.fromkeys(("heapq.heappushpop", "bisect.insort", "bisect.insort_left"), 0),
    **dict.fromkeys(("bisect.insort_right", "random.shuffle", "numpy.random.shuffle"), 0),
    **dict.fromkeys(("numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask"), 0),
    **dict.fromkeys(("numpy.fill_diagonal", "numpy.put_along_axis"), 0),
    "struct.pack_into": 1,
    **dict.fromkeys((f"numpy.{ufunc}.at" for ufunc in _UFUNCS), 0),
    **{
        f"builtins.{kind}.{method}": 0
        for kind in ("list", "dict", "set", "bytearray")
        for method, _ in MUTATORS.items()
        if hasattr(getattr(builtins, kind), method)
    },
    **dict.fromkeys(("collections.deque.append", "collections.deque.appendleft"), 0),
    **{f"numpy.ndarray.{method}": 0 for method in ARRAY_MUTATORS},
}  # fmt: skip
#: What that argument is called, where it may be given by a keyword.
MUTATED_NAMES: Final[dict[str, str]] = {
    "numpy.copyto": "dst",
    **dict.fromkeys(("numpy.put", "numpy.putmask", "numpy.fill_diagonal"), "a"),
    **dict.fromkeys(("numpy.place", "numpy.put_along_axis"), "arr"),
    **dict.fromkeys((f"bisect.{k}" for k in ("insort", "insort_left", "insort_right")), "a"),
    **dict.fromkeys(("random.shuffle", "numpy.random.shuffle"), "x"),
}
MUTATING_FUNCTIONS_ATTR: Final = frozenset(
    {"builtins.setattr", "builtins.delattr", "builtins.object.__setattr__",
     "builtins.object.__delattr__", "builtins.type.__setattr__", "builtins.type.__delattr__"}
)  # fmt: skip
#: Where functions of NumPy take ``out`` by position.
OUT_AT: Final[dict[str, int]] = {
    **dict.fromkeys(
        (
            f"numpy.{k}"
            for k in (
                "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "power",
                "maximum", "minimum", "fmax", "fmin", "mod", "remainder", "arctan2", "hypot", "dot",
                "matmul", "logaddexp", "copysign", "equal", "less", "greater", "not_equal",
                "logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor", "outer",
            )
        ),
        2,
    ),
    **dict.fromkeys(
        (
            f"numpy.{k}"
            for k in (
                "sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
                "sqrt", "square", "abs", "absolute", "fabs", "negative", "positive", "sign",
                "floor", "ceil", "rint", "trunc", "tanh", "sinh", "cosh", "arcsin", "arccos",
                "arctan", "reciprocal", "conjugate", "isnan", "isfinite", "logical_not",
            )
        ),
        1,
    ),
    **dict.fromkeys(
        (f"numpy.{k}" for k in ("sum", "prod", "mean", "cumsum", "cumprod", "clip", "take")), 3
    ),
    **dict.fromkeys((f"numpy.{k}" for k in ("max", "min", "amax", "amin", "any", "all")), 2),
}  # fmt: skip

#: Functions that draw from all, or some, of their iterable arguments.
DRAWING: Final = frozenset(
    {f"builtins.{k}" for k in ("next", "list", "tuple", "set", "dict", "sum", "min", "max", "any",
                               "all", "sorted", "frozenset", "bytes", "bytearray")}
    | {"functools.reduce", "collections.deque", "math.fsum", "math.prod", "collections.Counter",
       "operator.length_hint", "statistics.mean"}
)  # fmt: skip
#: Functions that wrap an iterator in another: the result is as much outside as what it wraps.
WRAPPING: Final = frozenset(k for k, kind in RESULTS.items() if kind == "iterator")
#: Functions whose effect ``warnings.catch_warnings`` undoes.
FILTERS: Final = frozenset(
    {"warnings.filterwarnings", "warnings.simplefilter", "warnings.resetwarnings"}
)
#: Functions that never look at the contents of an argument.
INDIFFERENT: Final = frozenset(
    {f"builtins.{k}" for k in ("isinstance", "type", "callable", "issubclass")}
)
#: Container constructors and copies: a new object, with the elements of the old.
SHALLOW: Final = frozenset(
    {f"builtins.{k}" for k in ("list", "dict", "set", "tuple", "frozenset", "sorted", "reversed",
                               "iter", "zip", "enumerate", "map", "filter")}
    | {"copy.copy", "collections.OrderedDict", "collections.deque", "collections.defaultdict",
       "collections.ChainMap", "types.MappingProxyType", "itertools.chain"}
)  # fmt: skip
