"""What traces what: the one table of transforms, loops, branches and host calls, by name.

Live functions and files both ask it, the engine for the callbacks of a call, the linter for the
functions that a file hands to a transform; how long a trace is kept, `law` reads off it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

#: Packages whose array functions and transforms have the names below.
ARRAY_PACKAGES: Final = ("fnarray", "jax")
#: Where an argument is a function: its position, if it has one, and the keywords it goes by.
Slot = tuple[int | None, tuple[str, ...]]


class Transform(NamedTuple):
    """How a call traces its arguments.

    Attributes
    ----------
    name : str
    slots : tuple of Slot
        The arguments that are functions.
    now : bool
        Whether the call itself traces; else its result is a function that does.
    abstract : bool
        Whether traced values have no numbers.
    body : bool
        Whether the function is traced inside another trace: a loop or a branch.
    staged, compiled : bool
        Whether what was traced is kept, and run again; and whether it is compiled for that.
    several : bool
        Whether an argument is a sequence of functions.
    carry : tuple of int
        For a loop: which argument it starts from, and which parameter of its body that becomes.
    known : int
        How many leading parameters of the function are no traced values: of a rule for `vmap`, the
        size of the axis, and which arguments have it.
    """

    name: str
    slots: tuple[Slot, ...] = ((0, ("fun", "f", "func")),)
    now: bool = False
    abstract: bool = True
    body: bool = False
    staged: bool = False
    compiled: bool = False
    several: bool = False
    carry: tuple[int, int] | None = None
    known: int = 0

    @property
    def decorates(self) -> bool:
        """Whether it may stand above a function, and is replaced by what it makes."""
        return not self.body and not self.setter

    @property
    def setter(self) -> bool:
        """Whether it gives a function its rule: a method of what ``custom_jvp`` makes."""
        return self.name.startswith("def")


def _plain(
    names: str, *, now: bool = False, abstract: bool = True, staged: bool = False,
    compiled: bool = False,
) -> Iterator[Transform]:  # fmt: skip
    for name in names.split():
        yield Transform(name, now=now, abstract=abstract, staged=staged, compiled=compiled)


def _body(
    name: str, *slots: Slot, now: bool = True, several: bool = False,
    carry: tuple[int, int] | None = None,
) -> Transform:  # fmt: skip
    return Transform(name, slots, now=now, body=True, several=several, carry=carry)


_TRANSFORMS = (
    *_plain("jit pjit pmap", staged=True, compiled=True),
    *_plain("make_jaxpr", staged=True),
    *_plain("vmap xmap checkpoint remat custom_vmap fwd_and_bwd"),
    *_plain("named_call", abstract=False),
    Transform("shard_map", ((0, ("f", "fun")),)),
    *_plain("eval_shape linear_transpose", now=True),
    *_plain("grad value_and_grad jacfwd jacrev jacobian hessian", abstract=False),
    *_plain("custom_jvp custom_vjp custom_gradient", abstract=False),
    *_plain("jvp vjp linearize closure_convert", now=True, abstract=False),
    Transform("defjvp", ((0, ("jvp",)),), abstract=False),
    Transform("defjvps", ((0, ()), (1, ()), (2, ()), (3, ())), abstract=False),
    Transform("defvjp", ((0, ("fwd",)), (1, ("bwd",))), abstract=False),
    Transform("def_vmap", ((0, ("vmap_rule",)),), known=2),
)
_CONTROL = (
    _body("cond", (1, ("true_fun",)), (2, ("false_fun",))),
    _body("switch", (1, ("branches",)), several=True),
    _body("while_loop", (0, ("cond_fun",)), (1, ("body_fun",)), carry=(2, 0)),
    _body("fori_loop", (2, ("body_fun",)), carry=(3, 1)),
    _body("scan", (0, ("f",)), carry=(1, 0)),
    _body("map", (0, ("f",))),
    _body("associative_scan", (0, ("fn",))),
    _body("custom_root", (0, ("f",)), (2, ("solve",)), (3, ("tangent_solve",))),
    _body(
        "custom_linear_solve", (0, ("matvec",)), (2, ("solve",)), (3, ("transpose_solve",)),
    ),
    _body("reduce", (2, ("computation",))),
    _body("reduce_window", (2, ("computation",))),
    _body(
        "platform_dependent",
        *((None, (place,)) for place in ("default", "cpu", "cuda", "tpu")),
    ),
)  # fmt: skip
_BY_NAME: Final = {t.name: t for t in _TRANSFORMS}
#: These names mean something else outside of the modules of control flow.
_IN_CONTROL: Final = {t.name: t for t in _CONTROL}
#: Transforms by other names, of other packages, and what they do.
_ALIASES = {
    **{f"{p}.numpy.{name}": "vmap" for p in ARRAY_PACKAGES for name in
       ("vectorize", "apply_along_axis")},
    **{f"equinox.filter_{name}": name for name in
       ("jit", "grad", "value_and_grad", "vmap", "pmap", "checkpoint", "jvp", "vjp", "make_jaxpr",
        "eval_shape")},
}  # fmt: skip
JIT: Final = _BY_NAME["jit"]
#: Names of transforms whose trace is kept.
STAGED: Final = frozenset(t.name for t in _TRANSFORMS if t.staged)
#: What gives rules to the function that ``custom_jvp`` and its kin made.
SETTERS: Final = {t.name: t for t in _TRANSFORMS if t.setter}
#: Host callbacks: what they are given runs outside of the program, so it may be impure.
_HOST_CALLS: Final = frozenset(
    {"breakpoint", "callback", "debug_breakpoint", "debug_callback", "io_callback", "pure_callback"}
)
#: Warp's, or a copy of it: what they are given runs on the host when the program does.
_FOREIGN_CALLS: Final = frozenset({"jax_callable", "jax_kernel"})
PARTIALS: Final = frozenset({"functools.partial", "jax.tree_util.Partial", "jax.util.partial",
                             "fnarray.tree_util.Partial"})  # fmt: skip


def transform_of(ref: str) -> Transform | None:
    """Return the transform, loop or branch of a qualified name."""
    package, _, rest = ref.partition(".")
    if package not in ARRAY_PACKAGES:
        found = _ALIASES.get(ref)
        # The filtered transforms leave what is no array as it is: nothing is surely traced.
        return _BY_NAME[found]._replace(abstract=False) if found is not None else None
    short = rest.rpartition(".")[2]
    found = _BY_NAME.get(short)
    if found is not None:
        return found
    if short in _IN_CONTROL:
        known = ("lax" in rest or "control" in rest) and ".tree" not in ref
        return _IN_CONTROL[short] if known else None
    other = _ALIASES.get(ref)
    return _BY_NAME[other] if other is not None else None


def is_control(ref: str) -> bool:
    """Say whether the name is one of a loop or branch."""
    found = transform_of(ref)
    return found is not None and found.body


def is_host_call(ref: str) -> bool:
    """Say whether the name is one of ``debug.callback``, ``pure_callback``, ``io_callback``."""
    package, _, rest = ref.partition(".")
    last = rest.rpartition(".")[2]
    if last in _FOREIGN_CALLS and "warp" in ref:
        return True
    return package in ARRAY_PACKAGES and last in _HOST_CALLS


def last_names() -> frozenset[str]:
    """Return the last parts of all names in the table."""
    aliases = (name.rpartition(".")[2] for name in _ALIASES)
    return frozenset({*_BY_NAME, *_IN_CONTROL, *aliases})
