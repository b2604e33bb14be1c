"""What purity costs: the first check of fifty helpers in five files, and guards at each call.

``python asv_bench/first_check.py [--repeats N]``

Each of five new modules has ten helpers of seventeen lines (850 in all), each of another kind, that
call each other from file to file; one function calls the first of each. Each repeat writes and
imports modules of its own, so that nothing of them is known, and measures by the processor's clock:
the check, Python's parser on the same functions, pyflakes on the same files if it is there, and a
loop of 300,000 turns, in which machines can be compared. The least of each is printed; ``first`` is
the check that comes first in the process, which imports what it needs. Guards are those of a
function that reads five names, a hundred thousand calls in a loop, less the loop.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from fnarray.purity.live import examine, verify

FILES, HELPERS = 5, 10
HEAD = """
import functools
import math
from typing import NamedTuple

import numpy as np

import fnarray.numpy as jnp
from fnarray import lax

EPSILON = 1e-6
ORDER = 4
"""
#: Ten helpers of seventeen lines: `{i}` is the file, `{next}` the helper that is called.
KINDS = (
    """
def norm_{i}(x, axis=-1, scale=None, bias=None):
    mean = jnp.mean(x, axis=axis, keepdims=True)
    centred = x - mean
    variance = jnp.mean(centred * centred, axis=axis, keepdims=True)
    out = centred / jnp.sqrt(variance + EPSILON)
    if scale is not None:
        out = out * scale
    if bias is not None:
        out = out + bias
    extra = {next}(out)
    parts = [out, extra]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    if total.ndim > 2:
        total = jnp.reshape(total, (-1, total.shape[-1]))
    return total
""",
    """
def chain_{i}(x):
    def layer(weight, value):
        return jnp.tanh(value * weight)
    weights = [1.0, 0.5, 0.25]
    outs = []
    value = x
    for weight in weights:
        value = layer(weight, value)
        outs.append(value)
    stacked = jnp.stack(outs)
    best = jnp.max(stacked, axis=0)
    worst = jnp.min(stacked, axis=0)
    spread = best - worst
    result = {next}(spread)
    if len(outs) > 2:
        result = result + outs[-1]
    return result * EPSILON
""",
    """
def series_{i}(x):
    term = jnp.ones_like(x)
    total = term
    for n in range(1, ORDER):
        term = term * x / n
        total = total + term
    known = dict(low=jnp.min(total), high=jnp.max(total))
    known["range"] = known["high"] - known["low"]
    scaled = (total - known["low"]) / (known["range"] + EPSILON)
    names = sorted(known)
    values = [known[name] for name in names]
    mixed = sum(values)
    try:
        rest = {next}(scaled)
    except ValueError:
        rest = scaled
    return rest + mixed
""",
    """
class State_{i}(NamedTuple):
    position: object
    speed: object
    def moved(self, dt):
        return self._replace(position=self.position + dt * self.speed)

def walk_{i}(x, steps=3, dt=0.1):
    state = State_{i}(x, jnp.zeros_like(x))
    for _ in range(steps):
        force = -state.position
        state = State_{i}(state.position, state.speed + dt * force)
        state = state.moved(dt)
    energy = 0.5 * jnp.sum(state.speed ** 2)
    energy = energy + 0.5 * jnp.sum(state.position ** 2)
    return {next}(state.position) + energy
""",
    """
def scanned_{i}(x):
    def body(carry, value):
        carry = carry * 0.9 + value
        return carry, jnp.sin(carry)
    start = jnp.zeros(())
    last, outs = lax.scan(body, start, jnp.ravel(x))
    mean = jnp.mean(outs)
    limit = math.sqrt(2.0) * EPSILON
    outs = jnp.where(jnp.abs(outs) < limit, mean, outs)
    shape = x.shape
    if len(shape) == 1:
        outs = outs + last
    elif len(shape) == 2:
        outs = jnp.reshape(outs, shape)
    else:
        outs = jnp.reshape(outs, shape) * 2.0
    return {next}(outs)
""",
    """
def config_{i}(x, **options):
    order = options.get("order", ORDER)
    kind = options.pop("kind", "even")
    powers = [x ** n for n in range(order)]
    if kind == "even":
        chosen = powers[::2]
    elif kind == "odd":
        chosen = powers[1::2]
    else:
        raise ValueError(f"kind must be even or odd, got {{kind!r}}")
    total = functools.reduce(lambda a, b: a + b, chosen)
    weights = np.linspace(0.0, 1.0, len(chosen))
    mixed = sum(w * c for w, c in zip(weights, chosen))
    low, high = jnp.min(total), jnp.max(mixed)
    both = jnp.clip(total, low, high)
    other = {next}(both)
    return other + mixed
""",
    """
def paired_{i}(x):
    grid = jnp.arange(x.size)
    left = {{"x": x, "grid": grid}}
    right = {{k: v * 2 for k, v in left.items()}}
    merged = {{**left, **right}}
    flat = []
    for key, value in merged.items():
        if key.startswith("g"):
            continue
        flat.append(jnp.ravel(value))
    joined = jnp.concatenate(flat)
    half = joined[: joined.shape[0] // 2]
    rest = joined[joined.shape[0] // 2 :]
    dot = half @ rest
    while dot.ndim:
        dot = jnp.sum(dot, axis=-1)
    return {next}(x) * dot
""",
    """
def branch_{i}(x):
    def low(value):
        return value * value
    def high(value):
        return jnp.sqrt(jnp.abs(value) + EPSILON)
    picked = lax.cond(jnp.sum(x) > 0, low, high, x)
    rows = [picked * n for n in (1, 2, 3)]
    first, *others = rows
    for other in others:
        first = jnp.maximum(first, other)
    index = jnp.argmax(jnp.ravel(first))
    updated = jnp.ravel(first).at[index].set(0.0)
    updated = jnp.reshape(updated, x.shape)
    label = f"{{x.ndim}}-{{x.dtype}}"
    if label.endswith("64"):
        updated = updated.astype(x.dtype)
    return {next}(updated)
""",
    """
def solved_{i}(x, tolerance=EPSILON):
    def residual(value):
        return value * value - jnp.abs(x) - 1.0
    def slope(value):
        return 2.0 * value
    guess = jnp.ones_like(x)
    for _ in range(4):
        guess = guess - residual(guess) / slope(guess)
    error = jnp.max(jnp.abs(residual(guess)))
    good = error < tolerance
    guess = jnp.where(good, guess, jnp.sqrt(jnp.abs(x) + 1.0))
    parts = np.array([0.5, 0.25, 0.25])
    weight = float(parts[0]) + float(parts[1])
    mixed = weight * guess + (1.0 - weight) * x
    assert mixed.shape == x.shape, "shapes differ"
    result = {next}(mixed)
    return result, good
""",
    """
def closing_{i}(x):
    count = len(x.shape)
    axes = tuple(range(count))
    total = jnp.sum(x, axis=axes)
    largest = jnp.max(x, axis=axes)
    shifted = jnp.exp(x - largest)
    share = shifted / jnp.sum(shifted)
    entropy = -jnp.sum(share * jnp.log(share + EPSILON))
    scores = {{"total": total, "entropy": entropy}}
    def pick(name, default=0.0):
        return scores.get(name, default)
    chosen = pick("entropy") + pick("absent")
    ends = (pick("total"), chosen)
    low = min(ends, key=lambda pair: 0)
    if count == 0:
        return low
    return low + chosen
""",
)
GUARDED = """
RATE, SHIFT = 0.1, 2.0
def one(x): return x + SHIFT
def f(x): return one(x) * RATE * math.pi
"""


def written(folder: Path, turn: int) -> list[str]:
    """Write the five modules of a repeat; return their names."""
    names = [f"checked_{turn}_{i}" for i in range(FILES)]
    heads = [kind.partition("def " if "class" not in kind else "\ndef ")[2].partition("_")[0]
             for kind in KINDS]  # fmt: skip
    for i, name in enumerate(names):
        text = HEAD
        if i:
            text += f"import {names[i - 1]} as before\n"
        for k, kind in enumerate(KINDS):
            then = f"{heads[k + 1]}_{i}" if k + 1 < HELPERS else ""
            text += "\n" + kind.format(i=i, next=then)
        if i:
            text = text.replace("chosen = pick", f"chosen = before.{heads[0]}_{i - 1}(x) + pick")
        (folder / f"{name}.py").write_text(text)
    (folder / f"entry_{turn}.py").write_text(
        "".join(f"import {name}\n" for name in names)
        + f"def run(x):\n    return {names[-1]}.{heads[0]}_{FILES - 1}(x)\n"
    )
    return names


def took(call: Callable[[], object]) -> float:
    """Return the processor time of a call, in milliseconds."""
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def spin() -> int:
    """Turn 300,000 times."""
    s = 0
    for i in range(300_000):
        s += i & 3
    return s


def guards_of_five_names(folder: Path) -> float:
    """Return what a look at the guards of five names takes, in microseconds."""
    (folder / "guarded.py").write_text("import math\n" + GUARDED)
    guards = verify(importlib.import_module("guarded").f, "jit")
    for _ in range(3):
        guards.holds()
    holds = guards.holds

    def calls(count: int = 100_000) -> None:
        for _ in range(count):
            holds()

    def empty(count: int = 100_000) -> None:
        for _ in range(count):
            pass

    print(f"guarded: {[name for _, _, name, _ in guards.entries()]}")
    return (min(took(calls) for _ in range(15)) - min(took(empty) for _ in range(15))) / 100


def main() -> None:
    """Write, import, check, print."""
    parser = argparse.ArgumentParser(description="The first check of fifty helpers; guards.")
    parser.add_argument("--repeats", type=int, default=25, help="modules made anew (default 25)")
    repeats = parser.parse_args().repeats
    try:
        from pyflakes.checker import Checker
    except ImportError:
        Checker = None
    rows: dict[str, list[float]] = {"check": [], "parser": [], "pyflakes": [], "300,000 turns": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sys.path.insert(0, name)
        for turn in range(repeats):
            names = written(folder, turn)
            importlib.invalidate_caches()
            run = importlib.import_module(f"entry_{turn}").run
            modules = [importlib.import_module(module) for module in names]
            rows["check"].append(took(lambda run=run: examine(run)))
            found = examine(run).findings
            if found:
                raise RuntimeError(f"the helpers are pure: {found[0]}")
            texts = [
                textwrap.dedent(inspect.getsource(one)) for m in modules for one in vars(m).values()
                if inspect.isfunction(one) and one.__module__ == m.__name__
            ]  # fmt: skip
            rows["parser"].append(took(lambda texts=texts: [*map(ast.parse, texts)]))
            if Checker is not None:
                files = [Path(m.__file__ or "").read_text() for m in modules]
                rows["pyflakes"].append(
                    took(lambda files=files: [Checker(ast.parse(f)) for f in files])
                )
            rows["300,000 turns"].append(took(spin))
        print(f"{len(texts)} functions, {sum(t.count(chr(10)) for t in texts)} lines")
        print(f"{'first':14} {rows['check'][0]:7.2f} ms")
        for label, times in rows.items():
            if times:
                print(f"{label:14} {min(times[1:]):7.2f} ms (of {repeats - 1})")
        print(f"{'guards':14} {guards_of_five_names(folder):7.3f} us for five names")


if __name__ == "__main__":
    main()
