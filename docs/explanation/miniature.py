"""The whole of fnarray in about three hundred lines of code: read it from top to bottom.

    function --check--> function --grad, vmap, trace--> graph --emit--> source --njit--> numbers

The house in miniature: purity by syntax, transforms as traces that run the function, graphs,
reverse mode by transposing what forward mode recorded, and Python loops as the compiler's output.
Left out is what makes the real one large: dtypes, pytrees, control flow, scheduling, the cache. It
needs NumPy and Numba; with ``NUMBA_DISABLE_JIT=1`` the emitted loops run as the Python they are.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce, wraps
from typing import Any

import numba
import numpy as np

# -- 1. Purity ------------------------------------------------------------------------------------
# A traced function's Python runs once, its program many times: an effect would be lost, silently.


class ImpureError(TypeError):
    """A function does what its program would not do again, or reads what may change."""


def check(fun: Callable) -> None:
    """Raise `ImpureError` that lists the effects of ``fun``; what it makes itself it may change."""
    if hasattr(fun, "__wrapped__"):  # made by a transform, which checked what it was given
        return
    if fun.__name__ == "<lambda>":
        raise ImpureError("a lambda's text cannot be told from its line's: write a def")
    lines, first = inspect.getsourcelines(fun)
    outside = inspect.getclosurevars(fun)
    captured = {**outside.globals, **outside.nonlocals}
    code = fun.__code__
    own = {*code.co_varnames[code.co_argcount :], *code.co_cellvars}
    found = []

    def note(node: ast.AST, text: str) -> None:
        found.append(f"line {first + node.lineno - 1}: {text}")

    for node in ast.walk(ast.parse(textwrap.dedent("".join(lines)))):
        match node:
            case ast.Global(names) | ast.Nonlocal(names):
                note(node, f"rebinds {', '.join(names)}: return the new value instead")
            case ast.Call(ast.Name("print" | "input" | "open" as name)):
                note(node, f"calls {name}, which would run once, when it is traced")
            case (
                ast.Subscript(ast.Name(name), ctx=ast.Store())
                | ast.Attribute(ast.Name(name), ctx=ast.Store())
                | ast.Call(ast.Attribute(ast.Name(name), "append" | "update" | "pop"))
            ) if name not in own:
                note(node, f"changes {name!r}, which the call does not own: return a new one")
            case ast.Name(name) if isinstance(captured.get(name), int | float | list | dict | set):
                if not name.isupper():
                    note(node, f"reads {name!r}, which may change: pass it, or use CAPITALS")
    if found:
        raise ImpureError("\n  ".join([f"{fun.__name__} is not pure:", *found]))


# -- 2. Values and traces -------------------------------------------------------------------------
# One door: a primitive applied to tracers is handed to the innermost trace among them, which takes
# its own tracers apart and applies primitives to what they hold. So transforms nest by themselves.


class Tracer:
    """Stands for a value while a trace runs the function; ``held`` is for its trace to read."""

    __array_ufunc__ = None  # NumPy's operators leave the work to these

    def __init__(self, trace: Trace, shape: tuple[int, ...], held: Any):
        self.trace, self.shape, self.held = trace, shape, held

    T = property(lambda a: permute(a, axes=tuple(range(len(a.shape)))[::-1]))

    def sum(self) -> Tracer:
        """Sum of all elements."""
        return reduce(lambda x, _: total(x), self.shape, self)


def operators(**methods: Callable) -> None:
    """Give tracers Python's operators."""
    for name, method in methods.items():
        setattr(Tracer, f"__{name}__", method)


operators(
    add=lambda a, b: add(*broadcast(a, b)),
    radd=lambda a, b: add(*broadcast(b, a)),
    sub=lambda a, b: a + -b,
    rsub=lambda a, b: b + -a,
    mul=lambda a, b: mul(*broadcast(a, b)),
    rmul=lambda a, b: mul(*broadcast(b, a)),
    truediv=lambda a, b: div(*broadcast(a, b)),
    rtruediv=lambda a, b: div(*broadcast(b, a)),
    matmul=lambda a, b: matmul(a, b),
    rmatmul=lambda a, b: matmul(b, a),
    neg=lambda a: neg(a),
    gt=lambda a, b: value(a) > value(b),
    lt=lambda a, b: value(a) < value(b),
)


class Trace:
    """One run of a function. A trace begun later is further inside."""

    count = itertools.count()

    def __init__(self):
        self.level = next(Trace.count)

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is a tracer of this very trace; all else is a constant to it."""
        return isinstance(x, Tracer) and x.trace is self


@dataclass(eq=False)
class Primitive:
    """An operation and its rules. Nothing else in this file knows it by name.

    ``form`` is all the compiler asks: a string is a template for one element; a function maps an
    index of the result to one of the operand; None adds up the last axis.
    """

    name: str
    eval: Callable
    form: str | Callable | None
    shape: Callable  # (*operands, **params) -> shape
    partials: tuple[Callable, ...]  # one an operand: (tangent, result, *operands) -> tangent
    transpose: Callable | None = None  # (ct, *operands, linear ones as Var) -> their cotangents
    batch: Callable = lambda **params: params  # params, when operands have one more axis in front

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Evaluate, or hand over to the innermost trace."""
        traces = [x.trace for x in args if isinstance(x, Tracer)]
        if not traces:
            return self.eval(*args, **params)
        return max(traces, key=lambda trace: trace.level).process(self, args, params)


def shape_of(x: Any) -> tuple[int, ...]:
    """Shape of a number, an array, a tracer or a variable."""
    return x.shape if isinstance(x, Tracer | Var) else np.shape(x)


def value(x: Any) -> Any:
    """What Python may branch on: a derivative knows its values, a program does not yet."""
    if isinstance(x, Tracer) and not isinstance(x.trace, Derivative):
        raise TypeError("the program being traced has no value here to branch on")
    return value(x.held[0]) if isinstance(x, Tracer) else x


# -- 3. Operations: one, one block ----------------------------------------------------------------


def elementwise(name: str, template: str, function: Callable, *partials: Callable, **rules: Any):
    """Declare an operation on elements of equal shapes; a plain number fits every shape."""
    return Primitive(name, function, template, widest, partials, **rules)


def widest(*xs: Any) -> tuple[int, ...]:
    """Shape with the most axes."""
    return max(map(shape_of, xs), key=len)


def is_linear(x: Any) -> bool:
    """Whether the operand of a recorded tangent operation is a tangent: all else is known."""
    return isinstance(x, Var)


neg = elementwise("neg", "(-{0})", np.negative, lambda t, y, x: neg(t),
                  transpose=lambda ct, x: (neg(ct),))  # fmt: skip
add = elementwise("add", "({0} + {1})", np.add, lambda t, y, a, b: t, lambda t, y, a, b: t,
                  transpose=lambda ct, a, b: (ct, ct))  # fmt: skip
mul = elementwise("mul", "({0} * {1})", np.multiply,
                  lambda t, y, a, b: mul(t, b), lambda t, y, a, b: mul(a, t),
                  transpose=lambda ct, a, b: (
                      (mul(ct, b), 0) if is_linear(a) else (0, mul(a, ct))))  # fmt: skip
div = elementwise("div", "({0} / {1})", np.divide,
                  lambda t, y, a, b: div(t, b), lambda t, y, a, b: neg(mul(t, div(y, b))),
                  transpose=lambda ct, a, b: (div(ct, b), 0))  # fmt: skip
exp = elementwise("exp", "math.exp({0})", np.exp, lambda t, y, x: t * y)
log = elementwise("log", "math.log({0})", np.log, lambda t, y, x: t / x)
tanh = elementwise("tanh", "math.tanh({0})", np.tanh, lambda t, y, x: t * (1.0 - y * y))

# Spreading puts an axis of n equal slices last, summing takes the last axis away: each undoes the
# other's shape, and is its transpose.
spread = Primitive(
    "spread", lambda x, n: np.repeat(np.expand_dims(x, -1), n, -1), lambda i, n: i[:-1],
    lambda x, n: (*shape_of(x), n), (lambda t, y, x, n: spread(t, n=n),),
    transpose=lambda ct, x, n: (total(ct),),
)  # fmt: skip
total = Primitive(
    "sum", lambda x: np.sum(x, -1), None,
    lambda x: shape_of(x)[:-1], (lambda t, y, x: total(t),),
    transpose=lambda ct, x: (spread(ct, n=shape_of(x)[-1]),),
)  # fmt: skip
permute = Primitive(
    "permute", lambda x, axes: np.transpose(x, axes),
    lambda i, axes: tuple(i[axes.index(a)] for a in range(len(axes))),
    lambda x, axes: tuple(shape_of(x)[a] for a in axes),
    (lambda t, y, x, axes: permute(t, axes=axes),),
    transpose=lambda ct, x, axes: (permute(ct, axes=tuple(map(axes.index, range(len(axes))))),),
    batch=lambda axes: {"axes": (0, *(a + 1 for a in axes))},
)  # fmt: skip


def expand(x: Any, shape: tuple[int, ...]) -> Any:
    """Give ``x`` the axes of ``shape`` that it lacks, in front; a number needs none."""
    if isinstance(x, int | float):
        return x
    own, new = len(shape_of(x)), len(shape) - len(shape_of(x))
    for n in shape[:new]:
        x = spread(x, n=n)
    return permute(x, axes=(*range(own, own + new), *range(own))) if own and new else x


def broadcast(*xs: Any) -> list[Any]:
    """Expand all to the largest shape among them."""
    return [expand(x, widest(*xs)) for x in xs]


def matmul(a: Any, b: Any) -> Any:
    """Product of matrices or vectors: rows times columns, then their sum; compiled to one loop."""
    if len(shape_of(b)) == 2:
        if len(shape_of(a)) == 2:  # (n, k) becomes (n, m, k)
            a = permute(spread(a, n=shape_of(b)[1]), axes=(0, 2, 1))
        b = permute(b, axes=(1, 0))
    return total(mul(*broadcast(a, b)))


# -- 4. Graphs ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Var:
    """A value in a graph."""

    shape: tuple[int, ...]


@dataclass
class Eqn:
    """One operation in a graph; an argument that is no `Var` is a constant."""

    prim: Primitive
    args: tuple
    params: dict
    out: Var


@dataclass
class Graph(Trace):
    """A trace that records. Of a program, it is what gets compiled; of tangents, the tape."""

    inputs: list[Var] = field(default_factory=list)
    eqns: list[Eqn] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    __post_init__ = Trace.__init__

    def input(self, shape: tuple[int, ...]) -> Tracer:
        """Add an input."""
        self.inputs.append(Var(shape))
        return Tracer(self, shape, self.inputs[-1])

    def atom(self, x: Any) -> Any:
        """Return the variable of a tracer of its own; of all else, the constant."""
        return x.held if self.holds(x) else x

    def process(self, prim: Primitive, args: tuple, params: dict) -> Tracer:
        """Record."""
        out = Var(prim.shape(*args, **params))
        self.eqns.append(Eqn(prim, tuple(map(self.atom, args)), params, out))
        return Tracer(self, out.shape, out)

    def __str__(self) -> str:
        names = {x: f"v{i}" for i, x in enumerate([*self.inputs, *(e.out for e in self.eqns)])}

        def show(xs: Iterable) -> str:
            return " ".join(names[x] if isinstance(x, Var) else f"{x}" for x in xs)

        lines = [f"inputs {show(self.inputs)}"]
        for e in self.eqns:
            params = "".join(f"[{k}={v}]" for k, v in e.params.items())
            lines.append(f"  {names[e.out]}:{e.out.shape} = {e.prim.name}{params} {show(e.args)}")
        return "\n".join([*lines, f"outputs {show(self.outputs)}"])


# -- 5. Transforms --------------------------------------------------------------------------------


class Derivative(Trace):
    """Forward mode: its tracers hold a value and a tangent."""

    def process(self, prim: Primitive, args: tuple, params: dict) -> Tracer:
        """Apply to the values; add up what the tangent of each operand gives."""
        xs = [x.held[0] if self.holds(x) else x for x in args]
        y = prim(*xs, **params)
        terms = [
            partial(x.held[1], y, *xs, **params)
            for x, partial in zip(args, prim.partials, strict=True)
            if self.holds(x)
        ]
        return Tracer(self, shape_of(y), (y, reduce(add, terms)))


def grad(fun: Callable, argnums: Iterable[int] = (0,)) -> Callable:
    """Return a function for the gradients of the scalar ``fun``, a tuple in the order asked for.

    Forward mode with tangents that are recorded, not computed: the record is linear, its constants
    are the values that reverse mode needs, and reading it backwards gives all partial derivatives.
    """
    check(fun)

    @wraps(fun)
    def gradients(*args: Any) -> tuple:
        tape, trace = Graph(), Derivative()
        duals = list(args)
        for i in argnums:
            shape = shape_of(args[i])
            duals[i] = Tracer(trace, shape, (args[i], tape.input(shape)))
        y = fun(*duals)
        if shape_of(y) != ():
            raise TypeError(
                f"grad of {fun.__name__}: the result must be a scalar, not {shape_of(y)}"
            )
        cts = {tape.atom(y.held[1]): 1.0} if trace.holds(y) else {}
        for eqn in reversed(tape.eqns):
            if (ct := cts.pop(eqn.out, None)) is None:
                continue
            for x, c in zip(eqn.args, eqn.prim.transpose(ct, *eqn.args, **eqn.params), strict=True):
                if is_linear(x):
                    cts[x] = add(cts[x], c) if x in cts else c
        return tuple(cts.get(x, np.zeros(x.shape)) for x in tape.inputs)

    return gradients


class Batch(Trace):
    """Its tracers hold arrays with one more axis, always in front."""

    def process(self, prim: Primitive, args: tuple, params: dict) -> Tracer:
        """Apply to whole batches; what all share is expanded, which costs no copy when compiled."""
        size = next(x.held.shape[0] for x in args if self.holds(x))
        xs = [x.held if self.holds(x) else expand(x, (size, *shape_of(x))) for x in args]
        y = prim(*xs, **prim.batch(**params))
        return Tracer(self, shape_of(y)[1:], y)


def vmap(fun: Callable, mapped: tuple[bool, ...]) -> Callable:
    """Return ``fun`` for whole arrays of the arguments that are ``mapped``, by their first axis."""
    check(fun)

    @wraps(fun)
    def batched(*args: Any) -> Any:
        trace = Batch()
        pairs = list(zip(args, mapped, strict=True))
        if len(sizes := {shape_of(x)[0] for x, m in pairs if m}) != 1:
            raise ValueError(f"vmap of {fun.__name__}: first axes must agree, got {sorted(sizes)}")
        size = sizes.pop()
        out = fun(*(Tracer(trace, shape_of(x)[1:], x) if m else x for x, m in pairs))
        outs = out if isinstance(out, tuple) else (out,)
        whole = [y.held if trace.holds(y) else expand(y, (size, *shape_of(y))) for y in outs]
        return tuple(whole) if isinstance(out, tuple) else whole[0]

    return batched


# -- 6. The compiler: a graph becomes Python loops, and Numba makes machine code of them -----------


def emit(graph: Graph) -> tuple[str, list[np.ndarray]]:
    """Return source, and arrays that are constants: they follow the arguments.

    Loops are written only for what is kept: sums, results, and maps with several readers or with
    one that would ask for an element again. All else is an expression inside its reader, so that
    spreading and permuting are index arithmetic and never copies.
    """
    made = {e.out: e for e in graph.eqns}
    needed = [x for x in dict.fromkeys(graph.outputs) if isinstance(x, Var)]
    reads = Counter(dict.fromkeys(needed, 2))
    for x in needed:  # grows while it is read: what the results need, and what that needs
        for y in (y for y in (made[x].args if x in made else ()) if isinstance(y, Var)):
            needed += [] if y in reads else [y]
            reads[y] += 2 if callable(made[x].prim.form) else 1
    names: dict[Any, str] = {x: f"x{i}" for i, x in enumerate(graph.inputs)}
    constants: list[np.ndarray] = []
    lines: list[str] = []

    def line(depth: int, text: str) -> None:
        lines.append("    " * (depth + 1) + text)

    def whole(x: Any) -> str:
        if isinstance(x, Var):
            return names[x]
        if shape_of(x) == ():
            return repr(float(x))
        constants.append(np.asarray(x, float))
        return f"c{len(constants) - 1}"

    def element(x: Any, index: tuple[str, ...]) -> str:
        if not isinstance(x, Var) or x in names:
            return f"{whole(x)}[{', '.join(index)}]" if shape_of(x) else whole(x)
        e = made[x]
        if callable(e.prim.form):
            return element(e.args[0], e.prim.form(index, **e.params))
        return e.prim.form.format(*(element(a, index) for a in e.args))

    for e in graph.eqns:
        is_sum, inside = e.prim.form is None, callable(e.prim.form) or reads[e.out] == 1
        if not reads[e.out] or (inside and not is_sum and e.out not in graph.outputs):
            continue
        name, depth = f"t{len(names)}", len(e.out.shape)
        index = tuple(f"i{d}" for d in range(depth))
        if depth:
            line(0, f"{name} = np.empty({e.out.shape})")
        for d, n in enumerate(e.out.shape):
            line(d, f"for i{d} in range({n}):")
        if is_sum:
            line(depth, "total = 0.0")
            line(depth, f"for i{depth} in range({shape_of(e.args[0])[-1]}):")
            line(depth + 1, f"total += {element(e.args[0], (*index, f'i{depth}'))}")
        result = "total" if is_sum else element(e.out, index)
        line(depth, f"{name}[{', '.join(index)}] = {result}" if depth else f"{name} = {result}")
        names[e.out] = name
    line(0, f"return ({', '.join(whole(x) for x in graph.outputs)},)")
    heads = [names[x] for x in graph.inputs] + [f"c{i}" for i in range(len(constants))]
    return "\n".join([f"def kernel({', '.join(heads)}):", *lines]), constants


def trace(fun: Callable, *args: Any) -> Graph:
    """Run ``fun`` on tracers of the arguments' shapes: its program."""
    graph = Graph()
    out = fun(*(graph.input(shape_of(x)) for x in args))
    graph.outputs = [graph.atom(y) for y in (out if isinstance(out, tuple) else (out,))]
    return graph


def jit(fun: Callable) -> Callable:
    """Return ``fun`` compiled, once for each signature; inside a transform it is ``fun`` itself."""
    check(fun)
    programs: dict = {}

    @wraps(fun)
    def compiled(*args: Any) -> Any:
        if any(isinstance(x, Tracer) for x in args):
            return fun(*args)
        signature = tuple(map(shape_of, args))
        if signature not in programs:
            source, constants = emit(trace(fun, *args))
            space = {"np": np, "math": math}
            exec(source, space)
            programs[signature] = numba.njit(space["kernel"]), constants
        kernel, constants = programs[signature]
        plain = (float(x) if np.ndim(x) == 0 else np.ascontiguousarray(x, float) for x in args)
        out = kernel(*plain, *constants)
        return out if len(out) > 1 else out[0]

    return compiled


# -- 7. The whole at work -------------------------------------------------------------------------

HIDDEN, RATE = 16, 0.2


def predict(w, b, v, x):
    """A curve through a hidden layer, for points ``x`` (n, 1) or one point (1,)."""
    return tanh(x @ w + b) @ v


def loss(w, b, v, x, y):
    """Mean squared error."""
    error = predict(w, b, v, x) - y
    return (error * error).sum() / y.shape[0]


def step(w, b, v, x, y):
    """Go down along the gradient."""
    dw, db, dv = grad(loss, argnums=(0, 1, 2))(w, b, v, x, y)
    return w - RATE * dw, b - RATE * db, v - RATE * dv


def noisy(x):
    """Do what a traced function must not."""
    print("tracing", x)
    return x


def main(steps: int = 2000) -> float:
    """Fit a sine: look at a graph and at what is emitted, train, and be refused."""
    random = np.random.default_rng(0)
    x = np.linspace(-2, 2, 64)[:, None]
    y = np.sin(2 * x[:, 0])
    start = random.normal(size=(1, HIDDEN)), random.normal(size=HIDDEN), np.zeros(HIDDEN)
    print(trace(loss, *start, x, y), emit(trace(step, *start, x, y))[0], sep="\n\n")

    fast, params = jit(step), start
    for _ in range(steps):
        params = fast(*params, x, y)
    fit = float(loss(*params, x, y))
    print(f"mean squared error after {steps} steps: {fit:.6f}")
    assert fit < 0.2 * float(loss(*start, x, y))

    try:
        jit(noisy)
    except ImpureError as error:
        print(error)
    else:
        raise AssertionError("an impure function was let in")
    return fit


if __name__ == "__main__":
    main()
