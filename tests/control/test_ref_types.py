"""Refs that are weakly typed, and that functions with derivatives of their own are given."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray


def _weak(jax):
    half, made = jax.numpy.float16(2), jax.new_ref(0.0)
    made[...] = jax.numpy.float32(1)
    inside = jax.jit(lambda x: jax.freeze(jax.new_ref(1.0)) * x)(half)
    closed_over = jax.jit(lambda x: made[...] * x)(half)

    @jax.jit
    def argument(ref, x):
        ref[...] += 1
        return ref[...] * x

    taken = argument(made, half)
    _, rows = jax.lax.scan(lambda c, x: (c, made[...] * x), None, jax.numpy.ones(2, "float16"))
    frozen = jax.freeze(jax.new_ref(1)) * jax.numpy.int8(3)
    return inside, closed_over, taken, made[...] * half, rows, frozen


def _of_custom_vjp(jax):
    @jax.custom_vjp
    def scaled(x, ref):
        return x * ref[...]

    def forward(x, ref):
        return x * ref[...], (ref[...], ref)

    def backward(kept, g):
        factor, ref = kept
        ref[...] = g
        return g * factor, None

    scaled.defvjp(forward, backward)
    ref, x = jax.new_ref(jax.numpy.float32(3)), jax.numpy.float32(2)
    values = [scaled(x, ref), jax.jit(scaled)(x, ref)]
    values += jax.lax.scan(lambda c, _: (scaled(c, ref), c), x, None, length=3)
    y, pull = jax.vjp(scaled, x, ref)
    cotangent = pull(jax.numpy.float32(5))[0]
    return values, y, cotangent, ref[...], jax.jit(jax.grad(scaled))(x, ref), ref[...]


@pytest.mark.parametrize("program", [_weak, _of_custom_vjp])
def test_gives_what_jax_gives(program):
    """Values and dtypes of a program with Refs are JAX's."""
    got, want = jax.tree.leaves(program(fnarray)), jax.tree.leaves(program(jax))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=2e-6)


@pytest.mark.parametrize("value", [0.0, 1, True, 2j, np.float32(3)], ids=str)
def test_gives_way_as_the_first_value_does(value):
    """A Ref of a Python number is weakly typed, whatever is written to it, and prints so."""
    ours, theirs = fnarray.new_ref(value), jax.new_ref(value)
    for ref, lib in ((ours, fnarray), (theirs, jax)):
        ref[...] = lib.numpy.asarray(value).astype(ref.dtype)
    assert ours[...].weak_type == theirs[...].weak_type
    assert fnarray.freeze(ours).weak_type == jax.freeze(theirs).weak_type


def _shared_by_a_loop(jax):
    ref = jax.new_ref(3)
    jax.lax.while_loop(lambda i: i < ref[...], lambda i: i + ref[...], 0)


def _custom(jax, fun):
    custom = jax.custom_vjp(fun)
    custom.defvjp(lambda *refs: (fun(*refs), None), lambda _, g: (None, None))
    return custom


def _twice(jax):
    ref = jax.new_ref(jax.numpy.ones(3))
    _custom(jax, lambda a, b: a[0] + b[0])(ref, ref)


def _twice_in_vjp(jax):
    ref = jax.new_ref(jax.numpy.ones(3))
    jax.vjp(_custom(jax, lambda a, b: a[0] + b[0]), ref, ref)


ERRORS = {
    "bounds-of-an-array": lambda jax: jax.new_ref(jax.numpy.ones(3))[jax.numpy.array(9)],
    "while": _shared_by_a_loop,
    "custom-twice": _twice,
    "custom-twice-vjp": _twice_in_vjp,
    "custom-returned": lambda jax: _custom(jax, lambda ref: ref)(jax.new_ref(1.0)),
    "custom-returned-jit": lambda jax: jax.jit(_custom(jax, lambda ref: ref))(jax.new_ref(1.0)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_refuses_what_jax_refuses(name):
    """What JAX refuses raises the same kind of error, of the same words."""
    with pytest.raises(ValueError, match=r"mutable array reference|Out of bound") as wanted:
        ERRORS[name](jax)
    with pytest.raises(ValueError, match=r"mutable array reference|Out of bound") as got:
        ERRORS[name](fnarray)
    words = "only one reference to a mutable array"
    assert (words in str(wanted.value)) == (words in str(got.value))


def test_derivatives_by_a_ref_lie_in_refs():
    """A gradient by a Ref is added to one; who gives none is told how."""
    ref, gradient = fnarray.new_ref(2.0), fnarray.new_ref(0.5)
    _, pull = fnarray.vjp(lambda r: r[...] * 2, ref)
    with pytest.raises(ValueError, match="with_refs"):
        pull(1.0)
    with pytest.raises(ValueError, match="with_refs"):
        fnarray.grad(lambda r: r[...] * 2)(ref)
    pull.with_refs(gradient)(3.0)
    assert gradient[...] == 6.5


WRITTEN = {
    "int": lambda np_: 1,
    "float": lambda np_: 1.5,
    "bool": lambda np_: True,
    "int32": lambda np_: np.int32(300),
    "int8": lambda np_: np_.ones((), "int8"),
    "uint8": lambda np_: np_.full((), 200, "uint8"),
    "float32": lambda np_: np.float32(2),
    "float16": lambda np_: np_.ones((), "float16"),
}


def _stored(jax, dtype, written):
    """What a Ref holds after a write, eager and compiled; True where it is refused."""

    value = WRITTEN[written](jax.numpy)

    def write(ref):
        ref[1] = value
        return ref[...]

    found = []
    for call in (write, jax.jit(write)):
        ref = jax.new_ref(jax.numpy.zeros(3, dtype))
        try:
            found.append(np.asarray(call(ref)).tolist())
        except ValueError as error:
            found.append("Invalid dtype" in str(error))
    return found


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int8", "int32", "bool"])
def test_what_is_written_takes_the_dtype_where_it_does_in_jax(dtype):
    """Weak floats that of any floats, integers that of any integers; nothing else is cast."""
    for written in WRITTEN:
        assert _stored(fnarray, dtype, written) == _stored(jax, dtype, written), written
