"""Graphs that differ in what they read are told apart, however many results equations have."""

from __future__ import annotations

from typing import Any

import numpy as np

import fnarray
from fnarray import lax
from fnarray import numpy as fnp
from fnarray.compile.equal import content


def turn(which: int) -> Any:
    """Return a body of an equation of three results and four of one, of which it gives one."""

    def body(x: Any) -> Any:
        several = lax.cond(x > 0, lambda x: (x, x * 2, x * 3), lambda x: (-x, x - 1, x - 2), x)
        every = (*several, fnp.sin(x), fnp.cos(x), fnp.exp(x), fnp.tanh(x))
        return every[which] + sum(every) * 0.1

    return body


def test_the_content_of_a_graph_says_which_result_is_read() -> None:
    found = [content(fnarray.make_jaxpr(turn(k))(1.0)) for k in range(7)]
    assert len(set(found)) == 7
    assert content(fnarray.make_jaxpr(turn(2))(1.0)) == found[2]


def test_loops_that_read_different_results_are_not_one() -> None:
    """The third of three results, and what comes two equations later, were taken for one."""

    bodies = turn(2), turn(4)

    def loops(x: Any) -> Any:
        return [lax.scan(lambda y, _, f=f: (f(y), None), x, None, 3)[0] for f in bodies]

    got = fnarray.jit(loops)(0.5)
    with fnarray.disable_jit():
        want = loops(fnp.float32(0.5))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got[0] != got[1]
