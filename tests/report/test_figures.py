"""What a report counts: operations of library steps, of loops, of shards; figures in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, tree
from fnarray.report import words

n, k = 256, 40
SQUARE = jnp.eye(n) * 3 + 0.001


def told(f, *args):
    return fa.explain(f)(*args).facts.kernels


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (jnp.linalg.cholesky, (SQUARE,), n**3 / 3),
        (lax.linalg.lu, (jnp.ones((300, n)) + jnp.eye(300, n),), 300 * n**2 - n**3 / 3),
        (jnp.linalg.solve, (SQUARE, jnp.ones((n, k))), 2 * n**3 / 3 + 2 * n**2 * k),
        (jnp.linalg.qr, (jnp.ones((300, n)),), 4 * (300 * n**2 - n**3 / 3)),
        (jnp.linalg.slogdet, (SQUARE,), 2 * n**3 / 3),
        (
            lambda x: jnp.linalg.cholesky(x).sum(),
            (jnp.tile(jnp.eye(128), (4, 1, 1)),),
            4 * 128**3 / 3,
        ),
    ],
    ids=["cholesky", "lu", "solve", "qr", "slogdet", "stack"],
)
def test_steps_count_what_textbooks_do(f, args, expected):
    """A factorisation takes some n**3 operations: one for each element of its result was told."""
    kernels = told(f, *args)
    assert sum(step.flops for step in kernels) == pytest.approx(expected, rel=0.15)
    assert all(step.is_counted for step in kernels)


def test_what_is_not_known_is_not_told():
    """A sort, a callback and a while loop do as many as they need: no number, and no roofline."""
    spec = fa.ShapeDtypeStruct((1000,), jnp.float32)

    def called(x):
        return fa.pure_callback(lambda v: np.cumsum(v, dtype=np.float32), spec, x)

    x = jnp.linspace(0.0, 1.0, 1000)
    for f in (jnp.sort, called):
        step = next(s for s in told(f, x) if s.is_step)
        assert (words.operations(step), words.roofline(step)) == ("–", "–")

    def root(a):
        return lax.while_loop(lambda y: jnp.abs(y * y - a) > 1e-5, lambda y: (y + a / y) / 2, a)

    report = fa.explain(root)(2.0)
    assert words.operations(report.facts.kernels[0]).endswith(" or more")
    assert words.roofline(report.facts.kernels[0]) == "–"
    assert "or more operations" in report.text(200)
    assert "or more" in report.html


def test_a_scan_is_counted():
    """Turns that are known are multiplied: 300 of two operations."""
    (kernel,) = told(lambda x: lax.scan(lambda c, _: (c * 0.5 + 1, None), x, None, 300)[0], 1.0)
    assert kernel.flops == 600
    assert kernel.is_counted


def test_the_program_of_each_shard_is_shown():
    """A ``pmap`` is a step that runs a program on each device: its graph and kernels are there."""

    def step(x):
        y = jnp.tanh(x)
        return x - lax.pmean(y, "i")

    report = fa.explain(fa.pmap(step, axis_name="i"))(jnp.ones((fa.local_device_count(), 100)))
    facts = report.facts
    assert [o.name for o in facts.operations if o.parent == 0].count("tanh") == 1
    shards = [kernel for kernel in facts.kernels if kernel.label.startswith("h0.kernel")]
    assert any("tanh" in kernel.summary for kernel in shards)
    assert all(line for kernel in shards for line in kernel.text.lines[:1])
    held = {number for kernel in facts.kernels for number in kernel.operations}
    assert held == set(range(len(facts.operations)))
    assert [kernel.label for kernel in facts.regions] == ["h0"]
    count = fa.local_device_count()  # tanh, and a division and a subtraction
    assert facts.flops == count * 300
    assert facts.flops == sum(kernel.flops for kernel in shards) * count
    assert all(b.last < len(facts.regions) for b in facts.buffers)


def _pmapped(x):
    return fa.pmap(lambda x: x - lax.pmean(jnp.tanh(x), "i"), axis_name="i")(x)


def _sharded(x):
    mesh = fa.sharding.Mesh(np.array(fa.devices()), ("i",))
    part = fa.sharding.PartitionSpec("i")
    return fa.shard_map(lambda x: jnp.sin(x) / 3, mesh=mesh, in_specs=part, out_specs=part)(x) + 1


@pytest.mark.parametrize("f", [_pmapped, _sharded])
def test_what_each_shard_runs_is_timed(f):
    """Kernels and collectives of a shard have times and phases, no longer than the step's own."""
    x = jnp.linspace(0.0, 1.0, 60000).reshape(fa.local_device_count(), -1)
    facts = fa.explain(f)(x).facts
    (step,) = (k for k in facts.kernels if k.label == "h0")
    inside = [k for k in facts.kernels if k.label.startswith("h0.")]
    assert inside
    assert all(k.seconds is not None and 0 < k.seconds <= step.seconds for k in inside)
    assert all(k.bound for k in inside if not k.is_step)
    assert "h0 build" in dict(facts.stages)
    np.testing.assert_allclose(fa.jit(f)(x), f(x), rtol=1e-6)  # what was timed runs as before


def test_donated_arguments_are_told():
    """The report says which a call deletes, however they are named: those that are deleted."""
    ways: list[dict[str, Any]] = [
        {"donate_argnums": (1, 3)},
        {"donate_argnames": ("w", "k", "n")},
        {"donate_argnums": (1, 3), "donate_argnames": "n"},
    ]
    for options in ways:
        f = fa.jit(
            lambda m, w, g, k, *, n: (w["a"] - g, n.sum() * m, k), static_argnums=0, **options
        )
        args = {"a": jnp.ones((5, 4))}, jnp.ones((5, 4)), jnp.arange(7)
        n = jnp.ones(9)
        report = fa.explain(f)(2, *args, n=n)
        notes = {b.name: b.note for b in report.facts.buffers if b.kind == "argument"}
        arrays = dict(zip(["w['a']", "g", "k", "n"], [*tree.leaves(args), n], strict=True))
        assert notes.keys() == arrays.keys()
        assert not any(x.is_deleted() for x in arrays.values())
        if "donate_argnames" in options:
            with pytest.warns(UserWarning, match="not usable"):
                f(2, *args, n=n)
        else:
            f(2, *args, n=n)
        gone = {name for name, x in arrays.items() if x.is_deleted()}
        assert gone == {name for name, note in notes.items() if "deleted" in note}
        assert notes["g"] == ""
        assert ("like no result" in notes["n"]) == ("donate_argnames" in options)
        assert "donated: deleted after the call" in report.text(160)
        assert "donated: deleted after the call" in report.html


def test_a_kernel_of_a_product_alone_is_not_called_scalar():
    """BLAS computes it, on vectors that are in no assembly of ours; a copy computes nothing."""
    x = jnp.ones((64, 16))
    kernels = told(lambda a, b: jnp.tanh(a @ b), x, jnp.ones((16, 10)))
    assert all(words.vectors(kernel) != "scalar" for kernel in kernels)
    moved = told(lambda a: jnp.tile(a[::2], (3, 1)), x)
    assert "scalar" not in [words.vectors(kernel) for kernel in moved]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (words.size(1000), "1000 B"),
        (words.size(1023.7), "1 KiB"),
        (words.size(1018 * 1024), "1018 KiB"),
        (words.number(999_700), "1 M"),
        (words.number(123_456), "123 k"),
        (words.seconds(0.99999), "1 s"),
        (words.seconds(0.0123), "12.3 ms"),
    ],
)
def test_figures_are_written_out(shown, expected):
    """No powers of ten: 1018 KiB were 1.02e+03."""
    assert shown == expected


def test_a_symbol_is_refused_with_what_to_do():
    """A program of symbolic sizes is not compiled: the report says to give it numbers."""
    (size,) = fa.export.symbolic_shape("a,")
    report = fa.explain(lambda x: x - x.mean())(fa.ShapeDtypeStruct((size,), jnp.float32))
    assert "a shape of numbers" in report.text(200)
    assert "unknown place" not in report.text(200)
