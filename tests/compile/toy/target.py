"""The target: limits and orders of its own, text, and an interpreter of that text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fnarray.compile.emit.bodies import Bodies
from fnarray.compile.emit.driver import emit
from fnarray.compile.emit.source import Kernel, KernelSource, Scratch
from fnarray.compile.emit.values import CODES, Storage, Values
from fnarray.compile.ir import Node
from fnarray.compile.schedule.nests import plain_order
from fnarray.compile.schedule.plan import Plan, Region, row_major
from fnarray.compile.schedule.select import CONTROL
from fnarray.compile.target import Limits, LoopAxis, Target, one_by_one
from fnarray.core.forms import Library, Reduce
from fnarray.errors import UnsupportedOnTarget

from .writer import CWriter

_LOOP = re.compile(r"for \(long (\w+) = 0; \w+ < (\w+); \w+\+\+\) \{")


def columns_first(node: Node, fold: Reduce | None) -> list[LoopAxis]:
    """Let the first axis of a result run innermost, as column-major machines like it."""
    plain = plain_order(node, fold)
    return plain if fold is not None else plain[::-1]


def refuse(node: Node, limits: Limits) -> bool:
    """Take no step: there is no library."""
    if isinstance(node.form, (Library, *CONTROL)):
        raise UnsupportedOnTarget(
            f"{node.eqn.primitive} at {node.eqn.source}: the toy target has loops of elementwise "
            "operations and folds only. Compile it for the cpu."
        )
    return False


def kernel(region: Region, plan: Plan) -> Kernel:
    """Write a region as a C function."""
    assert region.body is not None
    writer = CWriter()
    values = Values(writer, plan.limits, plan.sizes)
    params: list[tuple[str, str]] = []
    arrays: dict[Any, Storage] = {}
    new = [v for v in region.outputs if v not in region.aliases]
    for prefix, group in (("x", region.inputs), ("out", new)):
        for var in group:
            name = writer.declare(writer.fresh(prefix))
            params.append((name, f"{values.code(var.aval.dtype)}[{var.aval.ndim}]"))
            arrays[var] = Storage(name, row_major(var.aval.shape))
    values.storage.update((v, arrays[v]) for v in region.inputs)
    Bodies(values).emit(region.body, {v: arrays[v] for v in new})
    params += [(name, f"{code}[1]") for name, (code, _) in values.scratch.items()]
    params += [(name, code) for (code, _), name in values.scalars.items()]
    spelled = ", ".join(f"{code.partition('[')[0]} {'*' * ('[' in code)}{n}" for n, code in params)
    return Kernel(
        KernelSource(
            f"void kernel({spelled}) {{\n{writer.render()}}}\n", tuple(c for _, c in params)
        ),
        region.inputs,
        tuple(new),
        tuple(Scratch(code, length) for code, length in values.scratch.values()),
        tuple(value for _, value in values.scalars),
    )


def build(source: KernelSource) -> Callable[..., None]:
    """Interpret the C text: Python once its syntax is taken off."""
    from fnarray.compile.cpu.jit import namespace

    head, *lines = source.text.splitlines()
    names = re.findall(r"\*?(\w+)[,)]", head)
    body = []
    for line in lines:
        text = re.sub(
            r"for \(long (\w+) = 0; \w+ < (\w+); \w+\+\+\) \{", r"for \1 in range(\2):", line
        )
        text = re.sub(r"if \((.+)\) \{", r"if \1:", text).replace("&&", "and")
        text = re.sub(r"\bauto ", "", text).rstrip(";").replace("//", "#")
        if text.strip() != "}":
            body.append(text)
    scope = dict(namespace())
    exec("\n".join([f"def kernel({', '.join(names)}):", *body]), scope)

    def kernel(*args: Any) -> None:
        scope["kernel"](*(a.reshape(-1) if isinstance(a, np.ndarray) else a for a in args))

    return kernel


def no_step(node: Node, limits: Limits, compiled: Any) -> Callable[..., Any]:
    """Return what computes a step: nothing does."""
    raise UnsupportedOnTarget(f"{node.eqn.primitive}: the toy target has no library")


def names(limits: Limits) -> dict[str, Any]:
    """Return what a driver calls."""
    codes = {code: name for name, code in CODES.items()}
    return {"empty": np.empty, **{c: np.dtype(n).type for c, n in codes.items()}}


NEVER = 1 << 62
TOY = Target(
    name="toy",
    limits=Limits(library=NEVER, parallel=NEVER, shared=NEVER, split=NEVER, workspace=0),
    loop_order=columns_first,
    is_step=refuse,
    emit=partial(emit, kernel),
    build=one_by_one(build),
    step=no_step,
    key=lambda: ("toy",),
    names=names,
)
