"""Functions that kernels call: compiled once for all of them, into the cache under their text.

Functions of numbers that a kernel uses often. A loop that is vectorised calls the version for as
many numbers as it works on at a time: the same operations, hence the same bits, as where the text
is pasted.

Functions of many lines that call others, products of matrices. LLVM took 20 ms to put the cases of
one into a kernel, for each call, and what surrounds them had to wait for its passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, cast

from ....core.store import digest
from ...cache import store
from ..key import key as machine_code_key
from . import load
from .types import LLVM, Array, Scalar, Template, Value, operands_of, registry, shape_of
from .writer import Shared

if TYPE_CHECKING:
    from .writer import Module, Writer

#: From so many uses of one function in a kernel on it is called: three calls in place of three
#: texts ran 5 % longer (Black and Scholes' formula) to 20 % (sin, cos and log together).
USES = 3
#: And in a recurrence, whose loops may be shorter than one vector (30 numbers, each 16 tanh: 101 us
#: where pasted, 249 where called). A body of 250 tanh took LLVM 6.6 s, and takes 0.3.
MANY = 100
#: Shorter texts are pasted always.
LINES = 12
#: Sizes up to which loops over matrices are no longer than a vector, and LLVM's passes write them
#: out in vain: to solve six equations took 183 ms to compile and takes 109, 2.7 us a call each; a
#: factor of Cholesky of 20 took 199 and takes 68, 2.0 and 2.1 us a call.
SMALL = 24

#: Functions of many lines that were written, by what they are of: their text and results, and those
#: that they call.
_Alone = tuple[str, Any, dict[str, "Shared"]]
_alone: Final[dict[Any, _Alone]] = {}
#: How a function is written into a module: returns its name and its results.
Define = Callable[["Module", Callable[..., Any], list[Any]], tuple[str, Any]]


def call(
    to: Writer, name: str, kinds: tuple[Any, ...], template: Template, numbers: list[Scalar]
) -> str:
    """Write a call of a template's function; return its result."""
    key = name, kinds
    if key not in to.module.shared:
        to.module.shared[key] = _declare(to.module, kinds, template)
    function, attributes = to.module.shared[key]
    args = ", ".join(f"{LLVM[x.dtype]} {x.ir}" for x in numbers)
    return to.new(f"call {LLVM[template.dtype]} @{function}({args}) #{attributes}")


def _declare(module: Module, kinds: tuple[Any, ...], template: Template) -> tuple[str, int]:
    """Declare both versions of a function; return its name, and the attributes of its calls."""
    lanes, kind, args = module.lanes, LLVM[template.dtype], [LLVM[k] for k in kinds]
    from .widen import widened  # which few kernels need

    def begun() -> Module:
        own = type(module)(lanes, module.width)
        own.declared.update(template.declared)
        own.tables.update(template.tables)
        return own

    body, result = template.pasted("t", [f"%a{k}" for k in range(len(args))])
    params = ", ".join(f"{t} %a{k}" for k, t in enumerate(args))
    single, several = begun(), begun()
    single.texts.append(f"define {kind} @this({params}) #0 {{\n{body}\nret {kind} {result}\n}}")
    wide = widened(f"{body}\nret {kind} {result}", lanes)
    if wide is None:
        several.texts.append(_loop(several, kind, args, body, result))
    else:
        text, declared = wide
        several.declared.update(declared)
        params = ", ".join(f"<{lanes} x {t}> %a{k}" for k, t in enumerate(args))
        several.texts.append(f"define <{lanes} x {kind}> @this({params}) #0 {{\n{text}\n}}")
    one, many = (
        _entered(module, own.text(), straight=wide is not None) for own in (single, several)
    )
    module.declared[one] = kind, tuple(args)
    module.declared[many] = f"<{lanes} x {kind}>", tuple(f"<{lanes} x {t}>" for t in args)
    module.used.append(many)
    module.vectors[one] = many
    module.attributes.append(
        "nounwind willreturn memory(none) "
        f'"vector-function-abi-variant"="_ZGV_LLVM_N{lanes}{"v" * len(args)}_{one}({many})"'
    )
    return one, len(module.attributes) + 1


def lent(module: Module) -> None:
    """Write functions of numbers as one number of those of vectors, where they end loops alone.

    They have the same bits and take as long, for as many turns as a vector has numbers. To compile
    one of its own took 10 ms of 75 that a first program of ten operations with three tanh takes.
    """
    if not module.straight:  # their calls may be most of a loop that stays one, or become vectors
        return
    for one, many in module.vectors.items():
        if not module.library[many].straight or not any(f"@{one}(" in x for x in module.texts):
            continue
        del module.library[one]
        kind, args = module.declared.pop(one)
        (wide, wides), params = module.declared[many], range(len(args))
        lines = [
            f"%v{k} = insertelement {wides[k]} zeroinitializer, {args[k]} %a{k}, i64 0"
            for k in params
        ]
        given = ", ".join(f"{wides[k]} %v{k}" for k in params)
        taken = ", ".join(f"{args[k]} %a{k}" for k in params)
        module.texts.append(
            f"define internal {kind} @{one}({taken}) #1 {{\n"
            + "\n".join([*lines, f"%all = call {wide} @{many}({given})"])
            + f"\n%first = extractelement {wide} %all, i64 0\nret {kind} %first\n}}"
        )


def _entered(
    module: Module,
    text: str,
    *,
    straight: bool,
    light: bool = False,
    calls: Mapping[str, Shared] | None = None,
) -> str:
    """Enter a function of a module's library, ``@this`` in its text; return its symbol."""
    symbol = load.symbol(text)
    called = calls or {}
    module.library.update(called)
    text = text.replace("@this(", f"@{symbol}(")
    module.library[symbol] = Shared(text, straight, tuple(called), light)
    return symbol


def _loop(module: Module, kind: str, args: list[str], body: str, result: str) -> str:
    """Return the function of vectors as a loop over their numbers, which LLVM vectorises."""
    lanes = module.lanes
    wide = [f"<{lanes} x {t}>" for t in args]
    lines = [f"define <{lanes} x {kind}> @this("]
    lines[0] += ", ".join(f"{t} %v{k}" for k, t in enumerate(wide)) + ") #0 {"
    lines.append(f"%to = alloca <{lanes} x {kind}>")
    for k, t in enumerate(wide):
        lines += (f"%from{k} = alloca {t}", f"store {t} %v{k}, ptr %from{k}")
    lines += ("br label %turn", "turn:", "%i = phi i64 [ 0, %0 ], [ %next, %turn ]")
    for k, t in enumerate(args):
        lines.append(f"%at{k} = getelementptr inbounds {t}, ptr %from{k}, i64 %i")
        lines.append(f"%a{k} = load {t}, ptr %at{k}")
    lines += (
        body,
        f"%out = getelementptr inbounds {kind}, ptr %to, i64 %i",
        f"store {kind} {result}, ptr %out",
        "%next = add nuw nsw i64 %i, 1",
        f"%more = icmp slt i64 %next, {lanes}",
        f"br i1 %more, label %turn, label %end{module.loop('plain')}",
        "end:",
        f"%all = load <{lanes} x {kind}>, ptr %to",
        f"ret <{lanes} x {kind}> %all",
        "}",
    )
    return "\n".join(lines)


def is_alone(function: Callable[..., Any], args: list[Value], loops: int) -> bool:
    """Whether a function is object code of its own, called in so many loops of its caller."""
    found = registry.outsides.get(function)
    if found is None or (loops and not found.loops):
        return False
    return found.integers or all(x.dtype.kind in "fc" for x in args if isinstance(x, Array))


def alone(
    define: Define, module: Module, function: Callable[..., Any], args: list[Any]
) -> tuple[str, Any]:
    """Declare a function without results that is object code of its own; return what `define` does.

    Parameters
    ----------
    define : callable
        Writes a function into a module.
    """
    outside = registry.outsides[function]
    operands = [operand for a in args for operand in operands_of(a)]
    sizes = compiled_for(function, args)
    key = function, module.width, tuple(map(shape_of, args)), sizes
    if key not in _alone:
        place = _place(key)
        _alone[key] = (place and _noted(place)) or _note(
            place, _written(define, module, function, args, sizes)
        )
    text, returns, calls = _alone[key]
    light = bool(sizes) and all(_value(x) <= SMALL for x in sizes if x)
    symbol = _entered(module, text, straight=not outside.improves, light=light, calls=calls)
    module.declared[symbol] = "void", tuple(x.partition(" ")[0] for x in operands)
    return symbol, returns


def _written(
    define: Define, module: Module, function: Callable[..., Any], args: list[Any], sizes: Any
) -> _Alone:
    own = type(module)(width=module.width, free=registry.outsides[function].free)
    name, returns = define(own, function, args)
    if sizes:
        own.texts.append(_sized(name, [operand for a in args for operand in operands_of(a)]))
    text = own.text()
    if not sizes:
        text = text.replace(f"define internal void @{name}(", "define void @this(")
    return text, returns, own.library


def _place(key: Any) -> str:
    """Return where the text of a function is kept: by what it is of, and what writes it.

    Nothing where two functions could have one name.
    """
    function, *kinds = key
    try:
        of = (_identity(function), kinds)
    except TypeError:
        return ""
    return "t_" + digest(repr((machine_code_key(), of)).encode()).hexdigest()[:32]


def _identity(x: Any) -> Any:
    """Return what tells a function from others of its sources: its name, and what it closes over.

    Raises
    ------
    TypeError
        It closes over something that is no number, text, type or function.
    """
    if isinstance(x, FunctionType):
        cells = [_identity(cell.cell_contents) for cell in x.__closure__ or ()]
        return x.__module__, x.__qualname__, x.__code__.co_firstlineno, cells, x.__defaults__
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if isinstance(x, type):
        return x.__module__, x.__qualname__
    if isinstance(x, tuple):
        return tuple(map(_identity, cast("tuple[Any, ...]", x)))
    raise TypeError(type(x).__name__)


def _noted(place: str) -> _Alone | None:
    """Return a text that another process wrote. To write that of `top_k` takes 20 ms of 46."""
    found = store.get(place)
    if found is None:
        return None
    text, single, calls = json.loads(found)
    return text, ([], single), {symbol: Shared(t, s, tuple(c), w) for symbol, t, s, c, w in calls}


def _note(place: str, made: _Alone) -> _Alone:
    text, (returns, single), library = made
    if place and not returns:
        calls = [(symbol, *called) for symbol, called in library.items()]
        store.put(place, json.dumps((text, single, calls)).encode())
    return made


def compiled_for(function: Callable[..., Any], args: list[Any]) -> tuple[str | None, ...]:
    """Return the operands whose values a function is compiled for, and None for each other one.

    Empty where there is none: calls that differ in these are calls of different functions.
    """
    if not registry.outsides[function].sized:
        return ()
    found = [x if _is_known(x) else None for a in args for x in operands_of(a)]
    return tuple(found) if any(found) else ()


def _is_known(operand: str) -> bool:
    """Whether an operand, after its type, is a size or a truth that the text holds."""
    kind, _, value = operand.partition(" ")
    return kind[0] == "i" and value[0] != "%"


def _value(operand: str) -> int:
    """Return the size that a known operand is; a truth is none."""
    value = operand.partition(" ")[2]
    return int(value) if value.isdigit() else 0


def _sized(name: str, operands: list[str]) -> str:
    """Return the function that hands on what it is given, but for the sizes that are known."""
    kinds = [x.partition(" ")[0] for x in operands]
    params = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
    given = ", ".join(
        x if _is_known(x) else f"{kind} %a{k}"
        for k, (x, kind) in enumerate(zip(operands, kinds, strict=True))
    )
    return f"define void @this({params}) #0 {{\ncall void @{name}({given})\nret void\n}}"
