"""Interpreters as libraries write them for JAX: run by `test_as_jax`, in a process of its own."""

import fnarray.as_jax  # noqa: F401  isort: skip

import weakref

import jax
import jax.numpy as jnp
from jax._src import core as private
from jax._src import source_info_util
from jax.extend import core as extend


class CountTracer(jax.core.Tracer):
    """A value, as the interpreter below carries it; its aval is a property, as some have it."""

    __slots__ = ("value",)

    def __init__(self, trace, value):
        self._trace = trace
        self.value = value

    @property
    def aval(self):
        """What is known of the value."""
        return jax.typeof(self.value)


class CountTrace(jax.core.Trace):
    """Writes down which operations ran, and hands each on to the trace outside."""

    def __init__(self, parent, tag):
        super().__init__()
        self.parent_trace, self.tag, self.seen = parent, tag, []

    def values(self, xs):
        """Take values out of this trace's tracers."""
        mine = [isinstance(x, CountTracer) and x._trace.tag is self.tag for x in xs]
        return [x.value if m else x for x, m in zip(xs, mine, strict=True)]

    def hand_on(self, name, primitive, tracers, params):
        """Apply an operation outside."""
        self.seen.append(name)
        values = self.values(tracers)
        avals = [jax.typeof(v) for v in values]
        return primitive.bind_with_trace(self.parent_trace, values, avals, params)

    def process_primitive(self, primitive, tracers, params):
        """Apply an operation."""
        out = self.hand_on(str(primitive), primitive, tracers, params)
        many = primitive.multiple_results
        return [CountTracer(self, x) for x in out] if many else CountTracer(self, out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        """Call a function that has a rule, and keep the rule."""
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        out = self.hand_on("custom_jvp", primitive, tracers, params)
        return [CountTracer(self, x) for x in out]

    def process_custom_vjp_call(
        self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros
    ):
        """Call a function that has rules, and keep the rules."""
        params = {"subfuns": (fun, fwd, bwd), "out_trees": out_trees}
        params["symbolic_zeros"] = symbolic_zeros
        out = self.hand_on("custom_vjp", primitive, tracers, params)
        return [CountTracer(self, x) for x in out]


def counted(fun):
    """Return a function that gives a result, and which operations made it."""

    def run(*args):
        with extend.take_current_trace() as parent:
            trace = CountTrace(parent, extend.TraceTag())
            with extend.set_current_trace(trace):
                out = fun(*(CountTracer(trace, x) for x in args))
            return trace.values([out])[0], trace.seen

    return run


@jax.custom_vjp
def doubled(x):
    """Sine, of which the derivative is said to be twice what it is."""
    return jnp.sin(x)


doubled.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cos, ct: (2 * ct * cos,))


@jax.custom_jvp
def tripled(x):
    """The square, of which the derivative is said to be three."""
    return x * x


tripled.defjvp(lambda primals, tangents: (primals[0] ** 2, 3.0 * tangents[0]))


def program(x):
    """A function that calls each kind of operation; slope 2 cos(x) + 3 + 5."""
    return doubled(x) + tripled(x) + jax.jit(lambda y: 5.0 * y)(x)


X = jnp.float32(0.5)
SLOPE = 2 * jnp.cos(X) + 8
SEEN = ["custom_vjp", "custom_jvp", "add", "jit", "add"]
value, seen = counted(program)(X)
assert seen == SEEN, seen
assert abs(value - program(X)) < 1e-6
assert isinstance(value, jax.Array)

# Outside of transforms and inside of them, and across them: rules are kept.
inside = lambda x: counted(program)(x)[0]  # noqa: E731
assert abs(jax.grad(inside)(X) - SLOPE) < 1e-5
assert abs(jax.jit(jax.grad(inside))(X) - SLOPE) < 1e-5
assert jnp.allclose(jax.vmap(jax.grad(inside))(jnp.stack([X, X])), SLOPE)
slope, seen = counted(jax.grad(program))(X)
assert abs(slope - SLOPE) < 1e-5
assert {"cos", "mul", "add_any"} <= set(seen)
batch, seen = counted(jax.vmap(program))(jnp.stack([X, X]))
assert jnp.allclose(batch, value)
assert seen == SEEN
# Two interpreters, one within the other, each see everything.
(value2, inner), outer = counted(lambda x: counted(program)(x)[0])(X), SEEN
assert inner == outer
assert abs(value2 - value) < 1e-6

# Params are JAX's, and are taken back; graphs can be referred to weakly.
params = {}


class ParamTrace(CountTrace):
    """Keeps the params of the last operation of each name."""

    def process_primitive(self, primitive, tracers, given):
        """Apply an operation."""
        params[str(primitive)] = given
        return super().process_primitive(primitive, tracers, given)


ones = jnp.ones(3)
with extend.take_current_trace() as parent:
    trace = ParamTrace(parent, extend.TraceTag())
    with extend.set_current_trace(trace):
        y = CountTracer(trace, ones)
        jax.jit(lambda x: x + 1)(jnp.broadcast_to(y, (2, 3)).astype(int).sum())
assert params["jit"]["inline"] is False
assert "jaxpr" in params["jit"]
assert {"shape", "broadcast_dimensions", "sharding"} <= set(params["broadcast_in_dim"])
assert {"new_dtype", "weak_type", "sharding"} <= set(params["convert_element_type"])
assert weakref.ref(params["jit"]["jaxpr"])() is not None
assert jax.lax.after_all_p.name == "after_all"

# What is current where nothing is traced evaluates; a tracer left behind says so.
assert private.find_top_trace(()) is private.eval_trace
assert private.trace_ctx.is_top_level()
with extend.take_current_trace() as parent:
    assert parent is private.eval_trace
    assert parent.stage_value(1).shape == ()
try:
    jnp.sin(y)
except jax.errors.UnexpectedTracerError:
    pass
else:
    raise AssertionError("a tracer was used outside of its trace")


# A loop over equations, as in JAX's own `eval_jaxpr`.
def evaluated(jaxpr, consts, *args):
    """Run a graph by binding its equations; return the results, and names of scopes."""
    env, scopes = {}, []
    read = lambda v: v.val if isinstance(v, extend.Literal) else env[v]  # noqa: E731
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
        scopes.append(str(stack))
        bind_params = eqn.primitive.get_bind_params(eqn.params)
        with (
            source_info_util.user_context(eqn.source_info.traceback, name_stack=stack),
            eqn.ctx.manager,
        ):
            out = eqn.primitive.bind(*map(read, eqn.invars), **bind_params)
        outs = out if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars], scopes


def scoped(x):
    """A program with names, and a loop."""
    with jax.named_scope("outer"), jax.named_scope("inner"):
        y = program(x)
    return jax.lax.fori_loop(0, 3, lambda i, c: c + y, x)


closed = jax.make_jaxpr(scoped)(X)
(out,), scopes = evaluated(closed.jaxpr, closed.consts, X)
assert abs(out - scoped(X)) < 1e-5
assert scopes[0] == "outer/inner"
assert scopes[-1] == ""
again = jax.grad(lambda x: evaluated(closed.jaxpr, closed.consts, x)[0][0])(X)
assert abs(again - 3 * SLOPE - 1) < 1e-4
print("ok")
