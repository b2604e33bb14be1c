"""A loop of a kernel that threads share: its body is a function, which the pool runs in parts.

The text says so by ``fk.threads.share(cores, most)`` before the loop. What the body reads of the
kernel is written side by side on its stack, and read back by whoever runs a part.
"""

from __future__ import annotations

import ast
from typing import Any

from .call import LINE, POOL
from .reader import inside
from .sharing import NOTED
from .types import I64, LLVM, Array, Scalar, Value, part

#: The function that is written, `Statements`, which begins another one here.
Statements = Any
#: Chunks for each thread, as `launch` has them.
_FINER = 4
_FLUSHED = ast.parse("mode = fk.rounding.flush_subnormal()").body
_RESTORED = ast.parse("fk.rounding.restore(mode)").body


def outlined(to: Statements, loop: ast.For, stop: str, cores: Scalar, most: Scalar) -> bool:
    """Write a loop from 0 that threads share; return False, and nothing, where it has to stay."""
    names = [x for x in inside(*loop.body) if isinstance(x, ast.Name)]
    if any(isinstance(x.ctx, ast.Store) and x.id in to.slots for x in names):
        return False  # what the loop leaves behind
    read = dict.fromkeys(x.id for x in names if isinstance(x.ctx, ast.Load))
    held = {name: to.name(ast.Name(name, ast.Load())) for name in read if to.knows(name)}
    number = len(to.module.texts)
    function = f"shared.{number}"
    arrays = {name for name, value in held.items() if isinstance(value, Array)}
    apart = not (arrays & to.text.slots and arrays & to.text.aliased)
    own, body, passed = _written(to, loop, held, apart=apart)
    _define(to, function, own, body)
    _call(to, function, passed, stop, cores, most)
    return True


def _written(
    to: Statements, loop: ast.For, held: dict[str, Value], *, apart: bool
) -> tuple[list[str], Statements, list[str]]:
    """Write the body of the function; return its parameters, itself, and the operands."""
    inside = type(to)(to.module, to.text)
    inside.kinds, inside.returns, inside.single = to.kinds, [], True
    inside.own, inside.recurrent = to.own, to.recurrent
    params = ["i64 %from", "i64 %to"]
    operands: list[str] = []

    def taken(kind: str, ir: str, mark: str = "") -> str:
        name = f"%h{len(operands)}"
        params.append(f"{kind}{mark} {name}")
        operands.append(f"{kind} {ir}")
        return name

    for name, value in held.items():
        inside.env[name] = _held(value, taken, " noalias" if apart else "")
    inside.env |= {".from": Scalar(I64, "%from"), ".to": Scalar(I64, "%to")}
    ends: list[ast.expr] = [ast.Name(".from", ast.Load()), ast.Name(".to", ast.Load())]
    span = ast.Call(ast.Name("range", ast.Load()), ends, [])
    part = ast.For(loop.target, span, loop.body, [])
    flushes = to.module.flushes
    inside.suite([*(_FLUSHED if flushes else []), part, *(_RESTORED if flushes else [])])
    inside.lines.append("ret void")
    return params, inside, operands


def _held(value: Value, taken: Any, mark: str) -> Value:
    """Return what a value of the kernel is in the function."""
    if isinstance(value, Array):
        size = None if value.size is None else taken("i64", value.size)
        return Array(value.dtype, taken("ptr", value.ir, mark), size)
    if isinstance(value, tuple):
        return tuple(_held(x, taken, mark) for x in value)
    if not isinstance(value, Scalar) or value.literal is not None:
        return value
    if value.dtype.kind == "c":
        kind = LLVM[part(value.dtype)]
        return Scalar(value.dtype, tuple(taken(kind, ir) for ir in value.ir))
    return Scalar(value.dtype, taken(LLVM[value.dtype], value.ir))


def _define(to: Statements, function: str, params: list[str], inside: Statements) -> None:
    """Write the function, and the one by which the pool calls it."""
    body = "\n".join([*inside.allocas, *inside.lines])
    to.module.texts.append(
        f"define internal void @{function}.text({', '.join(params)}) #1 {{\nentry:\n{body}\n}}"
    )
    lines: list[str] = []
    operands = ["i64 %start", "i64 %stop"]
    for k, param in enumerate(params[2:]):
        kind = param.partition(" ")[0]
        lines += (
            f"%at{k} = getelementptr i64, ptr %held, i64 {k}",
            f"%h{k} = load {kind}, ptr %at{k}",
        )
        operands.append(f"{kind} %h{k}")
    to.module.texts.append(
        f"define internal void @{function}(ptr %held, i64 %start, i64 %stop, i64 %chunk) #0 {{\n"
        + "\n".join([*lines, f"call void @{function}.text({', '.join(operands)})", "ret void\n}"])
    )


def _call(
    to: Statements, function: str, operands: list[str], stop: str, cores: Scalar, most: Scalar
) -> None:
    """Write the call: to the pool, or where nothing is to be shared, to the function itself."""
    alone, several, end = to.label(), to.label(), to.label()
    fine = to.new(f"mul i64 {cores.ir}, {_FINER}")
    count = to.new(f"call i64 @llvm.umin.i64(i64 {fine}, i64 {most.ir})")
    count = to.new(f"call i64 @llvm.umin.i64(i64 {count}, i64 {stop})")
    to.module.declared["llvm.umin.i64"] = "i64", ("i64", "i64")
    enough = to.new(f"icmp sgt i64 {count}, 1")
    more = to.new(f"icmp sgt i64 {cores.ir}, 1")
    to.fork(to.new(f"and i1 {enough}, {more}"), several, alone)
    to.begin(alone)
    to.lines.append(f"call void @{function}.text({', '.join([f'i64 0, i64 {stop}', *operands])})")
    to.go(end)
    to.begin(several)
    held = to.place(f"[{max(len(operands), 1)} x i64]")
    for k, operand in enumerate(operands):
        at = to.new(f"getelementptr i64, ptr {held}, i64 {k}")
        to.lines.append(f"store {operand}, ptr {at}")
    padded = to.new(f"sub i64 {to.new(f'add i64 {stop}, {count}')}, 1")
    step = to.new(f"udiv i64 {padded}, {count}")
    pool = f"@{POOL} = external global i8"
    if pool not in to.module.texts:
        to.module.texts.append(pool)
    at = to.new(f"getelementptr i8, ptr @{POOL}, i64 {LINE * NOTED}")
    address = to.new(f"load ptr, ptr {at}")
    to.lines.append(
        f"call void {address}(ptr @{function}, ptr {held}, i64 {stop}, i64 {step}, i64 {cores.ir})"
    )
    to.go(end)
    to.begin(end)
