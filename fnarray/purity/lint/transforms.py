"""Which calls trace a function: the transforms and control-flow primitives, by dotted name."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Transform:
    """How a call traces its arguments.

    ``slots`` are the positions and keywords that hold functions; ``abstract`` says that traced
    values have no numbers, ``callback`` that the function is a body inside another trace.
    """

    name: str
    slots: tuple[tuple[int, str], ...] = ((0, "fun"),)
    abstract: bool = True
    callback: bool = False
    decorates: bool = True
    several: bool = False


def _body(name: str, *slots: tuple[int, str], several: bool = False) -> Transform:
    return Transform(name, slots, callback=True, decorates=False, several=several)


_PLAIN = [
    Transform("jit"),
    Transform("pjit"),
    Transform("pmap"),
    Transform("vmap"),
    Transform("shard_map", ((0, "f"),)),
    Transform("checkpoint"),
    Transform("remat"),
    Transform("make_jaxpr"),
    Transform("eval_shape"),
    Transform("named_call"),
    Transform("grad", abstract=False),
    Transform("value_and_grad", abstract=False),
    Transform("jvp", abstract=False),
    Transform("vjp", abstract=False),
    Transform("linearize", abstract=False),
    Transform("linear_transpose"),
    Transform("jacfwd", abstract=False),
    Transform("jacrev", abstract=False),
    Transform("jacobian", abstract=False),
    Transform("hessian", abstract=False),
    Transform("custom_jvp", abstract=False),
    Transform("custom_vjp", abstract=False),
    Transform("custom_gradient", abstract=False),
    Transform("closure_convert", abstract=False),
]
_CONTROL = [
    _body("cond", (1, "true_fun"), (2, "false_fun")),
    _body("switch", (1, "branches"), several=True),
    _body("while_loop", (0, "cond_fun"), (1, "body_fun")),
    _body("fori_loop", (2, "body_fun")),
    _body("scan", (0, "f")),
    _body("map", (0, "f")),
    _body("associative_scan", (0, "fn")),
    _body("custom_root", (0, "f"), (2, "solve"), (3, "tangent_solve")),
    _body("custom_linear_solve", (0, "matvec"), (2, "solve"), (3, "transpose_solve")),
    _body("reduce", (2, "computation")),
    _body("reduce_window", (2, "computation")),
]
# Methods of an object made by custom_jvp or custom_vjp.
RULE_SETTERS = {
    "defvjp": ((0, "fwd"), (1, "bwd")),
    "defjvp": ((0, "jvp"),),
}
_OTHERS = [
    ("jax.experimental.pjit.pjit", "pjit"),
    ("jax.experimental.shard_map.shard_map", "shard_map"),
    ("jax.experimental.maps.xmap", "vmap"),
    ("jax.ad_checkpoint.checkpoint", "checkpoint"),
    ("jax.custom_derivatives.custom_jvp", "custom_jvp"),
    ("jax.custom_derivatives.custom_vjp", "custom_vjp"),
    ("jax.custom_derivatives.custom_gradient", "custom_gradient"),
    ("jax.numpy.vectorize", "vmap"),
    ("jax.numpy.apply_along_axis", "vmap"),
    ("equinox.filter_jit", "jit"),
    ("equinox.filter_grad", "grad"),
    ("equinox.filter_value_and_grad", "value_and_grad"),
    ("equinox.filter_vmap", "vmap"),
    ("equinox.filter_pmap", "pmap"),
    ("equinox.filter_checkpoint", "checkpoint"),
    ("equinox.filter_jvp", "jvp"),
    ("equinox.filter_vjp", "vjp"),
    ("equinox.filter_make_jaxpr", "make_jaxpr"),
    ("equinox.filter_eval_shape", "eval_shape"),
]


def _table() -> dict[str, Transform]:
    plain = {t.name: t for t in _PLAIN}
    found: dict[str, Transform] = {}
    for package in ("jax", "fnarray"):
        found |= {f"{package}.{name}": t for name, t in plain.items()}
        found |= {f"{package}.api.{name}": t for name, t in plain.items()}
        for module in ("lax", "control"):
            found |= {f"{package}.{module}.{t.name}": t for t in _CONTROL}
    for dotted, name in _OTHERS:
        # equinox's filtered transforms leave what is no array as it is: nothing is surely traced.
        sure = plain[name].abstract and not dotted.startswith("equinox.")
        found[dotted] = replace(plain[name], abstract=sure)
        if dotted.startswith("jax."):
            found["fnarray." + dotted.removeprefix("jax.")] = plain[name]
    return found


TRANSFORMS = _table()

# Host callbacks: what they are given runs outside the compiled program, so it may be impure.
CALLBACKS = frozenset(
    f"{package}.{name}"
    for package in ("jax", "fnarray")
    for name in (
        "pure_callback", "debug.callback", "debug.print", "experimental.io_callback",
        "experimental.host_callback.call", "experimental.host_callback.id_tap", "io_callback",
    )
)  # fmt: skip

PARTIALS = frozenset({"functools.partial", "jax.tree_util.Partial", "jax.util.partial",
                      "fnarray.tree_util.Partial"})  # fmt: skip
