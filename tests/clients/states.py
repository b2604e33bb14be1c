"""Variables that a function writes, as BrainPy's libraries trace them; under fnarray and JAX.

The value of a variable becomes an input of the graph when it is first read (``trace.new_arg``).
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.core import trace_ctx
from jax._src.interpreters.batching import BatchTracer
from jax.api_util import shaped_abstractify
from jax.extend import linear_util
from jax.extend.core import CallPrimitive, call_impl, jaxpr_as_fun

#: Of the functions that are being traced: the trace, and the states they have used.
reads = []


class State:
    """A value that functions read and write."""

    def __init__(self, value):
        self._value = value

    @property
    def value(self):
        """The value: within a trace, an input of it."""
        if reads and self not in reads[-1][1]:
            trace, states = reads[-1]
            states.append(self)
            self._value = trace.new_arg(shaped_abstractify(self._value), source_info=None)
        return self._value

    @value.setter
    def value(self, new):
        self.value  # noqa: B018 - an input, too, where it was not read
        self._value = new


def traced(fun, *args):
    """Return a function's graph, the states that it uses, and what they held."""
    held, states = {}, []

    def call(*xs):
        reads.append((trace_ctx.trace, states))
        try:
            out = fun(*xs)
            return out, [s._value for s in states]
        finally:
            reads.pop()

    for s in every:
        held[s] = s._value
    graph = jax.make_jaxpr(call)(*args)
    for s in every:
        s._value = held[s]
    return graph, states


def stateful(fun, *args):
    """Call a function by its graph, compiled, and give the states their values."""
    graph, states = traced(fun, *args)
    assert len(graph.in_avals) == len(args) + len(states)
    out, *news = jax.jit(jaxpr_as_fun(graph))(*args, *(s._value for s in states))
    for s, new in zip(states, news, strict=True):
        s._value = new
    return out


count, total, key = State(jnp.zeros(())), State(jnp.arange(3.0)), State(jax.random.key(4))
every = (count, total, key)


def step(x):
    """Read one state, write two, branch on none."""
    count.value = count.value + 1
    total.value = total.value * x
    return total.value.sum() + count.value


def drawn(x):
    """Read a state of random keys."""
    return x + jax.random.normal(key.value, (2,))


found = {"first": stateful(step, 2.0), "second": stateful(step, 3.0)}
found |= {"count": count._value, "total": total._value}
graph, states = traced(step, 2.0)
again = graph.jaxpr.replace(eqns=graph.jaxpr.eqns, debug_info=graph.jaxpr.debug_info)
found["replaced"] = jax.core.eval_jaxpr(again, graph.consts, 2.0, *(s._value for s in states))[0]
found["slope"] = jax.grad(lambda t: jaxpr_as_fun(graph)(2.0, count._value, t)[0])(total._value)
graph, _ = traced(drawn, 1.0)
found["drawn"] = jax.core.eval_jaxpr(graph.jaxpr, graph.consts, 1.0, key._value)[0]

dims = []


def looked_at(x):
    """Note where the mapped axis of a value is."""
    dims.append(x.batch_dim if isinstance(x, BatchTracer) else None)
    return x


jax.vmap(looked_at)(jnp.ones(2))
found["dims"] = dims

call = CallPrimitive("named")
call.def_impl(call_impl)
info = jax.api_util.debug_info("call", step, (1.0,), {})


def called(x):
    """Call a primitive that calls a function."""
    fun = linear_util.wrap_init(lambda x: [jnp.sin(x) * x], debug_info=info)
    (y,) = call.bind(x, subfuns=(fun,))
    return y


found |= {"called": called(2.0), "mapped": jax.vmap(called)(jnp.arange(3.0))}
found["differentiated"] = jax.jvp(called, (2.0,), (1.0,))[1]
np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in found.items()})
