"""A program for a GPU as one file that `numba-cuda` runs: kernels, what they call, launches.

Kernels' texts name words of a grid and functions of `fnarray_kernels`. Here each text is read as
it is for LLVM, which tells of what every call is and of which dtypes; the call then names a
function of the file. Where kernels have one, it has the same operations in the same order.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from fnarray_kernels import grid

from ...errors import UnsupportedOnTarget
from ..cpu.namespace import namespace
from ..cpu.native.reader import Text, read_function, read_kernel
from ..cpu.native.statements import Statements, settled
from ..cpu.native.types import Array, Fallback, Known, Scalar, Value, dtype_of
from ..cpu.native.words import call
from ..cpu.native.writer import Module
from ..emit.source import KernelSource, Source
from .lower import GridStatements
from .prelude import CODE, FOLDS, GRID, HEAD, HELPERS, LANES
from .spelled import function_of, tables_of
from .words import HALVES, WORDS

_RULES: Final = {word: rule for word, rule in WORDS.items() if word not in HALVES}
_NONE: Final = "no file for numba-cuda alone"
#: Elements of arrays that a file holds.
_FEW: Final = 1 << 10
_INFIX: Final = {"add": "+", "sub": "-", "mul": "*", "radd": "+", "rmul": "*", "div": "/"}
#: Functions of Python and NumPy that Numba has for a GPU too.
_SHARED: Final = frozenset((range, min, max, abs, complex, len, float, int, bool))

_MATH: Final = {
    np.abs: "abs", np.exp: "math.exp", np.log: "math.log", np.log1p: "math.log1p",
    np.expm1: "math.expm1", np.sin: "math.sin", np.cos: "math.cos", np.arctan2: "math.atan2",
    np.hypot: "math.hypot", np.sqrt: "root", np.copysign: "math.copysign", np.floor: "down",
    np.ceil: "up", np.trunc: "whole", np.isnan: "math.isnan",
}  # fmt: skip

#: A statement that stands for a line of the user's.
_MARK: Final = re.compile(r"(?m)^( *)remark_(\d+)_$")
_COPY: Final = re.compile(r"\b(\w+)\.copy\(\)")
_WORD_NAMES: Final = {function: name for name, function in grid.WORDS.items()}


def file_of(source: Source) -> str:
    """Return a program as a file.

    Raises
    ------
    UnsupportedOnTarget
        A step is a library's, or the host's, or a text has something that Numba has not.
    """
    if source.steps:
        name = source.steps[0].eqn.primitive.name
        raise UnsupportedOnTarget(
            f"{_NONE}: {name} is no kernel, but a step of the driver's. as_text('cuda') shows it."
        )
    file = _File()
    kernels = [file.kernel(f"kernel{k}", x.source) for k, x in enumerate(source.kernels)]
    constants = "".join(f"k{j} = {_constant(x)}\n" for j, x in enumerate(source.constants))
    driver = _COPY.sub(r"copy(\1)", source.text)
    parts = [HEAD, *file.parts(kernels), constants + driver]
    return "\n\n".join(x.rstrip("\n") + "\n" for x in parts)


def _constant(x: Any) -> str:
    if isinstance(x, np.dtype | type):
        dtype = np.dtype(x)
        narrow = dtype.kind == "V" or dtype == np.float16
        return "u16" if narrow else CODE[dtype]
    if isinstance(x, np.ndarray) and x.size <= _FEW and x.dtype in CODE:
        return f"cuda.to_device(np.array({np.atleast_1d(x).tolist()!r}, {CODE[x.dtype]}))"
    if isinstance(x, int | float):
        return repr(x)
    if isinstance(x, np.generic) and x.dtype in CODE:
        return f"{CODE[x.dtype]}({x.item()!r})"
    raise UnsupportedOnTarget(f"{_NONE}: the program holds {x!r:.60}")


class _Calls(dict):  # type: ignore[type-arg]
    """Rules of words, each of which notes the call that it is asked to write."""

    def __init__(self, note: Callable[..., None]):
        super().__init__(_RULES)
        self._note = note

    def get(self, function: Any, default: Any = None) -> Any:
        """Return a rule that writes a call as it is written for a GPU, and notes it."""

        def rule(to: Any, args: list[Value]) -> Value:
            to.module.words = _RULES
            try:
                result = call(to, function, args)
            finally:
                to.module.words = self
            self._note(to, function, args, result)
            return result

        return rule


class _Noting(GridStatements):
    """Statements that know which call is written."""

    def __init__(self, module: Module, text: Text):
        super().__init__(module, text)
        self.now: list[ast.Call] = []

    def call(self, node: ast.Call) -> Value:
        """Write a call."""
        self.now.append(node)
        try:
            return super().call(node)
        finally:
            self.now.pop()


def _place(node: ast.expr) -> tuple[Any, ...]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


class _File:
    """The functions of a file, in the order in which they name each other."""

    def __init__(self) -> None:
        self._functions: dict[str, str] = {}
        self._tables: dict[str, np.ndarray] = {}
        self._named: dict[Any, str] = {}

    def parts(self, kernels: Sequence[str]) -> list[str]:
        """Return tables, the functions that kernels name, and the kernels."""
        tables = [
            f"{name} = np.array({x.tolist()!r}, {CODE[x.dtype]})\n"
            for name, x in self._tables.items()
        ]
        texts = [*self._functions.values(), *kernels]
        used = [name for name in HELPERS if any(f"{name}(" in t for t in texts)]
        used = [n for n in HELPERS if n in used or any(f"{n}(" in HELPERS[u] for u in used)]
        decorated = [f"@cuda.jit(device=True)\n{HELPERS[name]}" for name in used]
        own = [f"@cuda.jit(device=True)\n{text}" for text in self._functions.values()]
        return [*tables, *decorated, *own, *kernels]

    def kernel(self, name: str, source: KernelSource) -> str:
        """Return a kernel by a name."""
        read = read_kernel(source.text, {**namespace(), **grid.WORDS})
        kinds = map(dtype_of, source.signature)
        values: list[Value] = [_some(d) if rank is None else Array(d, "%x") for d, rank in kinds]
        return f"@cuda.jit\n{self._written(source.text, read, values, name)}"

    def _written(self, text: str, read: Text, values: list[Value], name: str) -> str:
        notes: dict[tuple[Any, ...], Any] = {}

        def note(to: Any, function: Any, args: list[Value], result: Value) -> None:
            if isinstance(to, _Noting) and to.now:
                given = [
                    to.constant(a.value)
                    if isinstance(a, Known) and isinstance(a.value, int | float)
                    else a
                    for a in args
                ]
                notes[_place(to.now[-1])] = function, given, result

        def begin() -> tuple[Statements, list[Value]]:
            body = _Noting(Module(words=_Calls(note)), read)
            return body, values

        try:
            settled(read.name, begin)
        except Fallback as reason:
            raise UnsupportedOnTarget(f"{_NONE}: {read.name} has {reason}") from reason
        return _Renamed(self, notes, read).text(text, name)

    # -- what is named -----------------------------------------------------------------------

    def function(self, function: Callable[..., Any], args: Sequence[Any]) -> str:
        """Return the name of a function that is its own text, for arguments of such kinds."""
        key = function, tuple(map(_kind, args))
        if key not in self._named:
            name = self._fresh(function.__name__.lstrip("_"), _codes(args))
            self._named[key] = name
            source = textwrap.dedent(inspect.getsource(function))
            read = read_function(function)
            values = [_alike(a) for a in args]
            self._functions[name] = self._written(source, read, values, name)
        return self._named[key]

    def scalar(self, function: Any, kinds: tuple[Any, ...]) -> str:
        """Return the name of a scalar text, for dtypes and literals."""
        if (function, kinds) not in self._named:
            firm = [k for k in kinds if isinstance(k, np.dtype)]
            literals = "".join(f"_{k}".replace("-", "m") for k in kinds if k not in firm)
            name = self._fresh(function.__name__.rstrip("_"), CODE[firm[0]] + literals)
            try:
                template = function.traced(kinds)
            except TypeError as error:
                raise UnsupportedOnTarget(f"{_NONE}: {error}") from error
            self._tables.update(tables_of(template))
            self._functions[name] = "\n".join(function_of(name, template, kinds)) + "\n"
            self._named[function, kinds] = name
        return self._named[function, kinds]

    def word(self, name: str, dtype: np.dtype) -> str:
        """Return the name of a word, for a dtype where it has one."""
        if name in GRID:
            self._functions.setdefault(name, f"def {name}():\n    {GRID[name]}\n")
            return name
        own = f"{name}_{CODE[dtype]}"
        if own not in self._functions:
            for other in ("lane", "lanes"):
                self.word(other, dtype)
            values = {"code": CODE[dtype], "name": name, **_by_bits(dtype)}
            if name in FOLDS:
                combine = getattr(namespace()["sc"], FOLDS[name])
                values["combine"] = self.scalar(combine, (dtype, dtype))
            self._functions[own] = LANES[name].format(**values)
        return own

    def _fresh(self, name: str, suffix: str) -> str:
        new, k = f"{name}_{suffix}" if suffix else name, 1
        while new in self._named.values() or new in self._functions:
            new, k = f"{name}_{suffix}_{k}", k + 1
        return new


def _by_bits(dtype: np.dtype) -> dict[str, str]:
    """Return how numbers are compared bit by bit: as what, and what goes there and back."""
    code, bits = CODE[dtype], f"i{8 * dtype.itemsize}"
    if dtype.kind != "f":
        return {"bits": code, "there": code, "back": code}
    return {"bits": bits, "there": f"{bits}_of_{code}", "back": f"{code}_of_{bits}"}


def _some(dtype: np.dtype) -> Scalar:
    """Return a number that is not known; its text is not kept."""
    return Scalar(dtype, ("%x", "%y") if dtype.kind == "c" else "%x")


def _alike(x: Any) -> Value:
    """Return a value of the same kind."""
    if isinstance(x, tuple):
        return tuple(map(_alike, x))
    if isinstance(x, Array):
        return Array(x.dtype, "%x", None if x.size is None else "%n")
    return _some(x.dtype)


def _kind(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_kind, x))
    return type(x), x.dtype


def _codes(args: Sequence[Any]) -> str:
    """Return the code of the first array or number that is not an index."""
    firm = [a for a in args if not isinstance(a, tuple)]
    real = [a for a in firm if isinstance(a, Array) or a.dtype != np.int64] or firm
    return CODE[real[0].dtype] if real else ""


class _Renamed(ast.NodeTransformer):
    """A function whose calls name functions of the file."""

    def __init__(self, file: _File, notes: Mapping[tuple[Any, ...], Any], read: Text):
        self._file, self._notes, self._read = file, notes, read
        self._own = {*read.params}
        self._remarks: dict[int, str] = {}
        self._marked: list[str] = []

    def text(self, text: str, name: str) -> str:
        """Return the function by a name, with the user's lines where they were."""
        (node,) = ast.parse(text).body
        assert isinstance(node, ast.FunctionDef)
        node.name, node.decorator_list, node.returns = name, [], None
        for a in node.args.args:
            a.arg, a.annotation = _apart(a.arg), None
        if ast.get_docstring(node) is not None:
            del node.body[0]
        self._own |= {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self._remarks = dict(enumerate(text.splitlines(), 2))
        node = self.visit(node)
        ast.fix_missing_locations(node)
        return _MARK.sub(lambda m: f"{m[1]}{self._marked[int(m[2])]}", ast.unparse(node)) + "\n"

    def visit(self, node: ast.AST) -> Any:
        """Keep the user's lines, as statements that become comments."""
        remark = self._remarks.get(node.lineno, "").strip() if isinstance(node, ast.stmt) else ""
        node = super().visit(node)
        if not remark.startswith("# "):
            return node
        self._marked.append(remark)
        return [ast.Expr(ast.Name(f"remark_{len(self._marked) - 1}_")), node]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Name a function of the file."""
        found = self._notes.get(_place(node))
        args = [self.visit(a) for a in node.args]
        if found is None:  # loops whose turns are written out ask no range for them
            if isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
                return ast.Call(node.func, args, [])
            raise UnsupportedOnTarget(f"{_NONE}: {ast.unparse(node)} is never reached")
        function, given, result = found
        return self._called(function, given, result, args)

    def _called(self, function: Any, given: list[Any], result: Any, args: list[ast.expr]) -> Any:
        file = self._file
        if isinstance(function, type) and issubclass(function, np.generic):
            return _call(CODE[np.dtype(function)], args)
        name = _WORD_NAMES.get(function) if _is_hashable(function) else None
        if name is not None:
            return self._word(name, given, result, args)
        if hasattr(function, "traced"):
            return self._scalar(function, given, args)
        own = getattr(function, "__name__", "")
        if function is np.empty and type(getattr(given[0], "literal", None)) is int:
            return _room("local", given[0], result.dtype)
        if function is np.conjugate:
            return ast.Call(ast.Attribute(args[0], own), [], [])
        if function in _SHARED:
            return _call(own, args)
        if function in _MATH or getattr(function, "__module__", "") == "math":
            return _call(_MATH.get(function, f"math.{own}"), args)
        if own in ("u", "flat") and len(args) == 1:
            return _call("u64", args) if own == "u" else args[0]
        if own == "make":  # a complex number of its parts
            return _call(CODE[result.dtype], [_call("complex", args)])
        if inspect.isfunction(function):
            return _call(file.function(function, given), args)
        raise UnsupportedOnTarget(f"{_NONE}: no text of {own}")

    def _word(self, name: str, given: list[Any], result: Any, args: list[ast.expr]) -> Any:
        dtype = getattr(given[0], "dtype", np.dtype(np.int64)) if given else np.dtype(np.int64)
        match name:
            case "share":
                return ast.Constant(_number(given[2]))
            case "held":
                return _room("local", given[3], dtype)
            case "four":
                return _room("local", 4, dtype)
            case "room":
                return _room("shared", given[1], dtype)
            case "part":
                end = ast.BinOp(args[1], ast.Add(), args[2])
                return ast.Subscript(args[0], ast.Slice(args[1], end))
            case "array":
                return ast.Subscript(args[0], ast.Slice(None, args[1]))
        return _call(self._file.word(name, dtype), args)

    def _scalar(self, function: Any, given: list[Any], args: list[ast.expr]) -> Any:
        firm = [x.dtype for x in given if not (type(x.literal) is int and x.dtype == np.int64)]
        dtype = firm[0] if firm else given[0].dtype
        name = function.__name__
        if name in _INFIX and dtype.kind == "f" and all(x.dtype == dtype for x in given):
            operator = ast.parse(f"a {_INFIX[name]} b", mode="eval").body.op  # type: ignore[attr-defined]
            return ast.BinOp(args[0], operator, args[1])
        kinds = tuple(x.dtype if x.dtype == dtype else x.literal for x in given)
        passed = [a for a, k in zip(args, kinds, strict=True) if isinstance(k, np.dtype)]
        return _call(self._file.scalar(function, kinds), passed)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Write numbers that a module holds as they are."""
        if node.id in self._own:
            return ast.Name(_apart(node.id), node.ctx)
        if node.id in ("inf", "nan"):
            return node
        value = self._read.globals.get(node.id)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ast.Constant(value)
        if isinstance(value, tuple):
            return ast.parse(repr(cast("tuple[Any, ...]", value)), mode="eval").body
        return node


def _apart(name: str) -> str:
    """Return what a variable is called that has the name of a function of the file's."""
    return f"{name}_" if name in HELPERS or name in GRID else name


def _is_hashable(x: Any) -> bool:
    return getattr(x, "__hash__", None) is not None


def _number(x: Any) -> int:
    assert isinstance(x, Scalar)
    assert type(x.literal) is int
    return x.literal


def _room(where: str, size: Any, dtype: np.dtype) -> ast.Call:
    size = size if isinstance(size, int) else _number(size)
    return _call(f"cuda.{where}.array", [ast.Constant(size), ast.Name(CODE[dtype])])


def _call(name: str, args: list[Any]) -> ast.Call:
    return ast.Call(ast.Name(name), args, [])
