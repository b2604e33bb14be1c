"""Control flow rejects what does not fit: JAX's error types, messages that say what to do."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.lax
from fnarray.errors import ConcretizationTypeError

A = np.arange(3, dtype=np.float32)
B = np.ones(4, np.float32)
A.flags.writeable = B.flags.writeable = False  # functions here capture them
S = np.float32(2)


def one():
    return 1


def half():
    return 0.5


def same(c):
    return c


def keep(c, x):
    return c, x


# name, call, error, what the message must say
REJECTED = (
    ("cond-pred-shape", lambda lax: lax.cond(A, one, one), TypeError, "scalar.*shape \\(3,\\)"),
    ("cond-pred-none", lambda lax: lax.cond(None, one, one), TypeError, "pred"),
    ("cond-pred-str", lambda lax: lax.cond("a", one, one), TypeError, "pred.*'a'"),
    ("cond-pred-list", lambda lax: lax.cond([], one, one), TypeError, "pred"),
    ("cond-pred-complex", lambda lax: lax.cond(1j, one, one), TypeError, "boolean or a real"),
    ("cond-callable", lambda lax: lax.cond(True, one, 2), TypeError, "false_fun.*callable"),
    ("cond-dtype", lambda lax: lax.cond(True, one, half), TypeError, "dtypes do not match"),
    (
        "cond-structure",
        lambda lax: lax.cond(True, one, lambda: (1,)),
        TypeError,
        r"PyTreeDef\(\*\).*PyTreeDef\(\(\*,\)\)",
    ),
    (
        "cond-path",
        lambda lax: lax.cond(True, lambda: {"a": A}, lambda: {"a": S}),
        TypeError,
        r"path \['a'\] has type float32\[3\].*type float32\[\], so the shapes",
    ),
    ("cond-operand", lambda lax: lax.cond(True, same, same, "s"), TypeError, "'s' of type"),
    ("cond-arity", lambda lax: lax.cond(True, same, same), TypeError, "argument"),
    ("switch-float", lambda lax: lax.switch(1.0, [one, one]), TypeError, "integer"),
    ("switch-bool", lambda lax: lax.switch(True, [one, one]), TypeError, "integer"),
    ("switch-shape", lambda lax: lax.switch(A, [one, one]), TypeError, "scalar"),
    ("switch-empty", lambda lax: lax.switch(0, []), ValueError, "empty"),
    ("switch-callable", lambda lax: lax.switch(0, [one, 2]), TypeError, "callable"),
    ("switch-number", lambda lax: lax.switch(0, 3), TypeError, "iterable"),
    (
        "switch-dtype",
        lambda lax: lax.switch(0, [one, one, half]),
        TypeError,
        r"branches\[2\] has type ~?float32\[\]",
    ),
    ("while-callable", lambda lax: lax.while_loop(1, same, 0), TypeError, "cond_fun.*callable"),
    (
        "while-test-dtype",
        lambda lax: lax.while_loop(same, same, 0),
        TypeError,
        "boolean scalar.*int32",
    ),
    (
        "while-test-tree",
        lambda lax: lax.while_loop(lambda c: (True,), same, 0),
        TypeError,
        "boolean scalar.*PyTreeDef",
    ),
    (
        "while-test-shape",
        lambda lax: lax.while_loop(lambda c: lax.lt(A, A), same, 0),
        TypeError,
        "boolean scalar.*bool\\[3\\]",
    ),
    (
        "while-structure",
        lambda lax: lax.while_loop(lambda c: True, lambda c: (c,), 0),
        TypeError,
        "same pytree structure",
    ),
    (
        "while-type",
        lambda lax: lax.while_loop(lambda c: True, lambda c: {"w": S}, {"w": A}),
        TypeError,
        r"carry component c\['w'\] has type float32\[3\].*type float32\[\]",
    ),
    ("while-init", lambda lax: lax.while_loop(same, same, "s"), TypeError, "'s' of type"),
    ("fori-callable", lambda lax: lax.fori_loop(0, 3, 1, 0), TypeError, "body_fun.*callable"),
    ("fori-float", lambda lax: lax.fori_loop(0, 1.5, keep, 0), TypeError, "upper.*integer"),
    ("fori-array", lambda lax: lax.fori_loop(A, 3, keep, 0), TypeError, "lower.*integer"),
    (
        "fori-dtypes",
        lambda lax: lax.fori_loop(np.int16(0), np.uint8(3), keep, 0),
        TypeError,
        "equal types, got int16 and uint8",
    ),
    (
        "fori-structure",
        lambda lax: lax.fori_loop(0, 3, lambda i, c: (c,), 0),
        TypeError,
        "same pytree structure",
    ),
    ("scan-callable", lambda lax: lax.scan(1, 0, A), TypeError, "callable"),
    ("scan-pair", lambda lax: lax.scan(lambda c, x: c, 0, A), TypeError, "must be a pair"),
    ("scan-triple", lambda lax: lax.scan(lambda c, x: (c, x, x), 0, A), TypeError, "pair"),
    (
        "scan-structure",
        lambda lax: lax.scan(lambda c, x: ({"w": S, "v": S}, x), {"w": S}, A),
        TypeError,
        r"The input has no leaf c\['v'\]",
    ),
    (
        "scan-type",
        lambda lax: lax.scan(lambda c, x: ({"w": B}, x), {"w": A}, A),
        TypeError,
        r"c\['w'\] has type float32\[3\] but the corresponding output.*float32\[4\]",
    ),
    ("scan-sizes", lambda lax: lax.scan(keep, 0, (A, B)), ValueError, r"xs\[0\].*xs\[1\]"),
    ("scan-none", lambda lax: lax.scan(keep, 0, None), ValueError, "length"),
    ("scan-length", lambda lax: lax.scan(keep, 0, A, length=4), ValueError, "length=4"),
    ("scan-unroll", lambda lax: lax.scan(keep, 0, A, unroll=-1), ValueError, "unroll"),
    ("scan-xs", lambda lax: lax.scan(keep, 0, "abc"), TypeError, "'abc' of type"),
    ("scan-init", lambda lax: lax.scan(keep, "s", A), TypeError, "'s' of type"),
    ("scan-result", lambda lax: lax.scan(lambda c, x: (c, "a"), 0, A), TypeError, r"\[1\]"),
    ("map-callable", lambda lax: lax.map(1, A), TypeError, "callable"),
    ("map-empty", lambda lax: lax.map(same, ()), ValueError, "no values"),
    ("associative-callable", lambda lax: lax.associative_scan(1, A), TypeError, "callable"),
    (
        "associative-sizes",
        lambda lax: lax.associative_scan(lax.add, (A, B)),
        ValueError,
        r"\(3,\), \(4,\)",
    ),
    ("associative-rank", lambda lax: lax.associative_scan(lax.add, S), ValueError, "axis 0"),
    ("associative-axis", lambda lax: lax.associative_scan(lax.add, A, axis=2), ValueError, "2"),
    (
        "associative-structure",
        lambda lax: lax.associative_scan(lambda x, y: (x, y), A),
        ValueError,
        "as many arrays",
    ),
)
IDS = [row[0] for row in REJECTED]


@pytest.mark.parametrize(("name", "call", "error", "says"), REJECTED, ids=IDS)
def test_rejected(name, call, error, says, jax):
    """Both packages raise the same type; ours names the offender, with the path to it."""
    with pytest.raises(error, match=f"(?s){says}"):
        call(fnarray.lax)
    if not name.startswith("associative-structure"):  # in JAX an IndexError of its own code
        with pytest.raises(error):
            call(jax.lax)


OURS = (
    ("negative", lambda lax: lax.scan(keep, 0, None, length=-1), ValueError, "negative"),
    ("fraction", lambda lax: lax.scan(keep, 0, None, length=2.5), TypeError, "int"),
    ("rank-0", lambda lax: lax.scan(keep, 0, (A, S)), ValueError, r"xs\[1\]: float32\[\]"),
    ("none", lambda lax: lax.associative_scan(lax.add, ()), ValueError, "no arrays"),
    (
        "shape",
        lambda lax: lax.associative_scan(lambda x, y: lax.slice(x, (0,), (1,)), B),
        ValueError,
        "element by element",
    ),
    ("batch", lambda lax: lax.map(same, A, batch_size=-1), ValueError, "batch_size"),
    ("platform", lambda lax: lax.platform_dependent(A, cuda=same), ValueError, "cuda"),
)


@pytest.mark.parametrize(("name", "call", "error", "says"), OURS, ids=[r[0] for r in OURS])
def test_rejected_here(name, call, error, says):
    """What JAX lets pass, or stumbles over, is rejected here with a message."""
    with pytest.raises(error, match=f"(?s){says}"):
        call(fnarray.lax)


def test_traced_length():
    """A traced length is an error that says which argument it is and offers other loops."""
    jitted = fnarray.jit(lambda n: fnarray.lax.scan(keep, 0, None, length=n))
    with pytest.raises(ConcretizationTypeError, match=r"(?s)the argument n of .*fori_loop"):
        jitted(3)


def test_unroll_of_traced_bounds():
    """Turns of a number that is not known cannot be laid out in a row."""
    jitted = fnarray.jit(lambda n: fnarray.lax.fori_loop(0, n, keep, 0, unroll=2))
    with pytest.raises(ValueError, match="unroll"):
        jitted(3)


def test_messages_name_the_function_and_line():
    """A mismatch shows the body's name and where it is defined."""

    def growing(c, x):
        return (c, c), x

    with pytest.raises(TypeError, match=r"growing \(.*test_errors\.py:\d+\)"):
        fnarray.lax.scan(growing, 0, A)
