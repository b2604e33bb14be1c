"""Typed settings: one row each, set by environment, by `Config.update`, or for a scope.

Precedence, lowest first: the default in the row; ``JAX_<NAME>``; ``FNARRAY_<NAME>``;
``config.update(name, value)``, seen by all threads; ``with enable_x64(True):``, seen by the
thread inside the block.  Every name may be spelled ``x``, ``fnarray_x`` or ``jax_x``.

Global values are class attributes of a `threading.local`, scoped ones its instance
attributes: Python's own attribute lookup then finds the scoped value first, and a read
costs one attribute access with no lock.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ContextDecorator, ExitStack
from types import NoneType, SimpleNamespace
from typing import Any, Final, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

__all__ = [
    "SETTINGS", "Config", "Setting", "check_determinism", "check_tracer_leaks", "checking_leaks",
    "config", "debug_infs", "debug_nans", "default_device", "default_matmul_precision",
    "default_prng_impl", "disable_jit", "effects", "enable_checks", "enable_custom_prng",
    "enable_x64", "explain_cache_misses", "legacy_prng_key", "log_compiles", "make_user_context",
    "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion", "threefry_partitionable",
    "transfer_guard", "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]  # fmt: skip

Effects = Literal["error", "warn", "off"]
PRNGImpl = Literal["threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"]
# Names of accuracies, then of algorithms (`lax.DotAlgorithmPreset`).
# fmt: off
MatmulPrecision = Literal[
    "default", "high", "highest", "bfloat16", "bfloat16_3x", "tensorfloat32", "float32",
    "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32",
    "F64_F64_F64",
]
# fmt: on
TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
FALSE: Final = frozenset({"0", "false", "f", "no", "n", "off"})
_DEVICE_COUNT_FLAG: Final = re.compile(r"--xla_force_host_platform_device_count=(\d+)")
_ABSENT: Final = object()


class Setting(NamedTuple):
    """One row of the table, with the law its values obey."""

    name: str
    kind: type
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    optional: bool = False
    minimum: int | None = None
    affects_tracing: bool = False

    def check(self, value: Any, where: str = "config.update") -> Any:
        """Return `value` unchanged; raise if the row does not admit it.

        Raises
        ------
        TypeError
            `value` has the wrong type.
        ValueError
            `value` is none of the choices, or below the minimum.
        """
        if value is None and self.optional:
            return value
        # bool is an int to Python; a setting that counts must not accept True.
        if not isinstance(value, self.kind) or (self.kind is int and isinstance(value, bool)):
            raise TypeError(
                f"{where}: {self.name!r} must be {self.admits()}, "
                f"got {value!r} of type {type(value).__name__}."
            )
        below = self.minimum is not None and cast("int", value) < self.minimum
        if below or (self.choices and value not in self.choices):
            raise ValueError(f"{where}: {self.name!r} must be {self.admits()}, got {value!r}.")
        return value

    def parse(self, text: str, where: str) -> Any:
        """Read an environment value; raise ``ValueError`` naming the variable `where`."""
        word = text.strip().lower()
        if self.optional and word == "none":
            return None
        if self.kind is bool and word in TRUE | FALSE:
            return word in TRUE
        if self.kind is int and re.fullmatch(r"[+-]?\d+", word):
            return self.check(int(word), where)
        if self.kind in (str, object):
            return self.check(text, where)
        raise ValueError(f"{where}: {self.name!r} must be {self.admits()}, got {text!r}.")

    def admits(self) -> str:
        """Say in words which values are accepted."""
        if self.choices:
            words = "one of " + ", ".join(map(repr, self.choices))
        elif self.kind is bool:
            words = "a bool (in the environment: 1/true/yes/on or 0/false/no/off)"
        elif self.minimum is not None:
            words = f"an int of at least {self.minimum}"
        else:
            words = f"a {self.kind.__name__}"
        return words + " or None" if self.optional else words


def _row(default: Any, doc: str, *, minimum: int | None = None, traced: bool = False) -> Any:
    """Write one line of the table below; name, type and choices come from the annotation.

    `traced` marks a setting whose value can change what a trace or its compiled form
    computes, or whether it may be used at all (`disable_jit`): compiled functions are then
    kept apart by it.
    """
    return default, doc, minimum, traced


class Config(threading.local):
    """The settings; read one as an attribute: ``config.enable_x64``.

    Attributes
    ----------
    trace_token : int
        Names the tuple of all trace-affecting values: equal tuples have equal tokens, for
        the life of the process.  Compiled-function caches use it as part of their key.
    """

    trace_token: int

    enable_x64: bool = _row(False, "Keep 64-bit dtypes instead of narrowing them.", traced=True)
    numpy_dtype_promotion: Literal["standard", "strict"] = _row(
        "standard", "Whether operands of different strong dtypes promote or raise.", traced=True
    )
    numpy_rank_promotion: Literal["allow", "warn", "raise"] = _row(
        "allow", "What fnarray.numpy does when operands of different rank broadcast.", traced=True
    )
    default_matmul_precision: MatmulPrecision | None = _row(
        None, "Precision of products that name none.", traced=True
    )
    default_prng_impl: PRNGImpl = _row(
        "threefry2x32", "Generator behind random.key and random.PRNGKey.", traced=True
    )
    enable_custom_prng: bool = _row(
        False, "Let random.PRNGKey make keys with a type, as random.key does.", traced=True
    )
    legacy_prng_key: Literal["allow", "warn", "error"] = _row(
        "allow", "What random functions do with keys that have no type.", traced=True
    )
    threefry_partitionable: bool = _row(
        True, "Draw threefry bits so that any slice of an array can be drawn alone.", traced=True
    )
    no_tracing: bool = _row(False, "Refuse to trace functions that are to be compiled.")
    user_contexts: object = _row((), "Values of what make_user_context made.", traced=True)
    transfer_guard: (
        Literal["allow", "log", "disallow", "log_explicit", "disallow_explicit"] | None
    ) = _row(None, "What to do where a GPU's program works on the host: None warns once.")
    default_device: object = _row(None, "Device of new arrays; None is the first.", traced=True)
    platforms: str | None = _row(
        None, "Platforms that may be used, the first the default: 'cpu', 'cuda,cpu'; None is all."
    )
    mesh: object = _row(None, "Mesh about the program; see `set_mesh`.", traced=True)
    abstract_mesh: object = _row(
        None, "Its axes and their types, where they are others than the mesh's own.", traced=True
    )
    num_cpu_devices: int | None = _row(
        None,
        "CPU devices offered to pmap; None is one per core.",
        minimum=1,
        traced=True,
    )
    disable_jit: bool = _row(False, "Run compiled functions op by op.", traced=True)
    effects: Effects = _row("error", "What to do with an impure function.", traced=True)
    check_determinism: bool = _row(
        False, "Trace twice and compare, to catch what analysis cannot see.", traced=True
    )
    recheck: Literal["off", "sampled", "always"] = _row(
        "off", "When a compiled function is traced again, and compared.", traced=True
    )
    check_tracer_leaks: bool = _row(
        False, "Raise at the end of a trace whose tracers are still referenced.", traced=True
    )
    debug_nans: bool = _row(False, "Raise FloatingPointError when a result has NaN.", traced=True)
    debug_infs: bool = _row(False, "Raise FloatingPointError when a result has inf.", traced=True)
    captured_array_limit: int = _row(
        2**20, "Bytes of a NumPy array that programs may capture.", minimum=0, traced=True
    )
    enable_checks: bool = _row(False, "Check internal invariants as programs are built.")
    verify: bool = _row(False, "Check the graph between all stages.")
    log_compiles: bool = _row(False, "Log every trace and compilation.")
    explain_cache_misses: bool = _row(False, "Log why a compiled function was traced again.")
    traceback_filtering: Literal[
        "auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"
    ] = _row("auto", "How library frames are hidden in tracebacks.")
    compiler: Literal["auto", "native", "numba"] = _row(
        "auto", "What compiles kernels; auto is native, and Numba for what native cannot read."
    )
    cuda_fma: bool = _row(
        True, "Whether kernels of a GPU round products and sums once together, where CPUs do twice."
    )
    gpu_deterministic_ops: bool = _row(
        False,
        "Whether updates that meet in one place of an array on a GPU are made in order.",
        traced=True,
    )
    first_call: Literal["wait", "evaluate"] = _row(
        "wait", "What a first call does: wait for the compiler, or evaluate op by op meanwhile."
    )
    profile: Literal["off", "summary"] = _row(
        "off", "Whether a table of where time went is printed when the process ends."
    )
    num_threads: int | None = _row(
        None, "Threads that kernels may use; None follows CPU affinity and cgroup.", minimum=1
    )
    cache_dir: str | None = _row(None, "Where compiled programs are kept; None is per user.")
    cache_size_limit: int = _row(2**30, "Bytes the disk cache may hold.", minimum=0)

    def update(self, name: str, value: Any) -> None:
        """Set a value for the process: every thread without a scoped one sees it.

        Raises
        ------
        AttributeError
            There is no such setting.
        TypeError, ValueError
            The setting does not admit `value`.
        """
        row = _find(name)
        if isinstance(row, str):
            jax_settings().update(row, value)
            return
        if value == "" and row.optional:  # as in the environment
            value = None
        row.check(value)
        with _lock:
            setattr(Config, row.name, value)
            Config.trace_token = common.token = _token({})
            for scoped in _scoped_threads.values():
                scoped["trace_token"] = _token(scoped)
        if follow := followers.get(row.name):
            follow(value)

    def read(self, name: str) -> Any:
        """Value of a setting under any of its three spellings."""
        row = _find(name)
        return jax_settings().read(row) if isinstance(row, str) else getattr(self, row.name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.read(name)

    def parse_flags_with_absl(self) -> None:
        """Set what ``--jax_NAME=VALUE`` on the command line says, and take it off ``sys.argv``."""
        for name, text in jax_settings().flags():
            row = _find(name)
            self.update(name, text if isinstance(row, str) else row.parse(text, f"--{name}"))

    config_with_absl = parse_flags_with_absl

    @property
    def values(self) -> dict[str, Any]:
        """All values as this thread sees them."""
        return {name: getattr(self, name) for name in SETTINGS}

    def __setattr__(self, name: str, value: Any) -> None:
        # A plain assignment would be a scoped value that never ends.
        raise AttributeError(
            f"config.{name} cannot be assigned. Use config.update({name!r}, {value!r}), "
            f"or a context manager such as enable_x64(True)."
        )

    def __iter__(self) -> Iterator[str]:
        return iter(SETTINGS)


def _read_rows() -> dict[str, Setting]:
    """Turn the annotated lines of `Config` into rows and leave each default in its place."""
    rows = {}
    for name, hint in get_type_hints(Config).items():
        if name == "trace_token":
            continue
        default, doc, minimum, traced = vars(Config)[name]
        members = (hint,) if get_origin(hint) in (None, Literal) else get_args(hint)
        (base,) = (m for m in members if m is not NoneType)
        choices = get_args(base) if get_origin(base) is Literal else ()
        rows[name] = Setting(
            name=name,
            kind=str if choices else base,
            default=default,
            doc=doc,
            choices=choices,
            optional=NoneType in members,
            minimum=minimum,
            affects_tracing=traced,
        )
        setattr(Config, name, default)
        alias = property(lambda self, name=name: getattr(self, name), doc=doc)
        setattr(Config, f"fnarray_{name}", alias)
        setattr(Config, f"jax_{name}", alias)
    return rows


SETTINGS: Final[Mapping[str, Setting]] = _read_rows()
_TRACED: Final = tuple(row.name for row in SETTINGS.values() if row.affects_tracing)

#: Who is told of a setting that is updated, by its name.
followers: Final[dict[str, Callable[[Any], None]]] = {}

_lock: Final = threading.Lock()
_tokens: Final[dict[tuple[Any, ...], int]] = {}
# Threads inside a scope, by the id of their dict of scoped values: their tokens must
# follow a global update too.
_scoped_threads: Final[dict[int, dict[str, Any]]] = {}
#: Ids of what threads have of their own: scoped values, a trace. Where there is none at all, calls
#: need not ask their thread, which costs 0.1 us for each value.
threads_own: Final[dict[int, None]] = {}
#: Their ``config.trace_token``, as ``common.token``.
common: Final = SimpleNamespace(token=0)


def _token(scoped: Mapping[str, Any]) -> int:
    """Token of the global values as overridden by `scoped`; call it under the lock."""
    values = tuple(scoped.get(name, getattr(Config, name)) for name in _TRACED)
    return _tokens.setdefault(values, len(_tokens))


def jax_settings() -> Any:
    """Return what is known of settings that JAX alone has; few programs name one."""
    from . import jax_settings

    return jax_settings


def _find(name: str) -> Setting | str:
    """Row of a setting under any spelling; the bare name of one that JAX alone has.

    ``AttributeError`` with the nearest names if there is neither.
    """
    bare = name.lower().removeprefix("fnarray_").removeprefix("jax_")
    if bare not in SETTINGS:
        bare = jax_settings().ALIASES.get(bare, bare)
    if bare in SETTINGS:
        return SETTINGS[bare]
    if jax_settings().is_known(bare):
        return bare
    import difflib

    near = difflib.get_close_matches(bare, SETTINGS, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise AttributeError(
        f"config: there is no setting {name!r}. {hint}The settings are {', '.join(SETTINGS)}."
    )


class _Setting(ContextDecorator):
    """Give one setting a value in this thread; a context manager and a decorator."""

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._value = SETTINGS[name].check(value, name)
        self._before: list[Any] = []

    def _recreate_cm(self) -> _Setting:
        return _Setting(self._name, self._value)

    def __enter__(self) -> None:
        self._before.append(vars(config).get(self._name, _ABSENT))
        _override(self._name, self._value)

    def __exit__(self, *exc: object) -> None:
        _override(self._name, self._before.pop())


def _override(name: str, value: Any) -> None:
    """Set, or with `_ABSENT` drop, this thread's own value of a setting."""
    mine = vars(config)
    with _lock:
        if value is _ABSENT:
            mine.pop(name, None)
        else:
            mine[name] = value
        mine.pop("trace_token", None)
        if mine:
            _scoped_threads[id(mine)] = mine
            threads_own[id(mine)] = None
            mine["trace_token"] = _token(mine)
        else:
            _scoped_threads.pop(id(mine), None)
            threads_own.pop(id(mine), None)


def override(name: str, value: Any) -> Any:
    """Give a setting a value in this thread from here on; return its value before, to undo it."""
    before = vars(config).get(name, _ABSENT)
    _override(name, value)
    return before


def scoped_values() -> list[tuple[str, Any]]:
    """Return what this thread has of its own, for another thread that works for it."""
    return [(name, value) for name, value in vars(config).items() if name in SETTINGS]


def scoped(name: str, value: Any) -> _Setting:
    """Give a setting a value in this thread and block."""
    return _Setting(name, value)


def scoped_all(values: Iterable[tuple[str, Any]]) -> ExitStack:
    """Give settings the values that another thread has: what `scoped_values` returned there."""
    with ExitStack() as stack:
        for name, value in values:
            stack.enter_context(scoped(name, value))
        return stack.pop_all()


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Values the environment sets, ``FNARRAY_`` before ``JAX_``; an empty one sets nothing."""
    values = {}
    for name, row in SETTINGS.items():
        for variable in (f"FNARRAY_{name.upper()}", f"JAX_{name.upper()}"):
            if text := environ.get(variable, ""):
                values[name] = row.parse(text, variable)
                break
    if "platforms" not in values and (text := environ.get("JAX_PLATFORM_NAME", "")):
        values["platforms"] = text
    flag = _DEVICE_COUNT_FLAG.search(environ.get("XLA_FLAGS", ""))
    if flag and "num_cpu_devices" not in values:
        values["num_cpu_devices"] = SETTINGS["num_cpu_devices"].parse(flag[1], "XLA_FLAGS")
    return values


#: What was set when fnarray was imported.
first_read: Final = from_environment(os.environ)
for _name, _value in first_read.items():
    setattr(Config, _name, _value)
Config.trace_token = common.token = _token({})
config: Final = Config()


def enable_x64(value: bool = True) -> _Setting:
    """Keep 64-bit dtypes (or with ``False`` narrow them) in this thread and block."""
    return _Setting("enable_x64", value)


def disable_jit(disable: bool = True) -> _Setting:
    """Run compiled functions op by op in this thread and block."""
    return _Setting("disable_jit", disable)


def debug_nans(value: bool = True) -> _Setting:
    """Raise ``FloatingPointError`` where a result has NaN, in this thread and block."""
    return _Setting("debug_nans", value)


def debug_infs(value: bool = True) -> _Setting:
    """Raise ``FloatingPointError`` where a result has an infinity, in this thread and block."""
    return _Setting("debug_infs", value)


def log_compiles(value: bool = True) -> _Setting:
    """Log every trace and compilation in this thread and block."""
    return _Setting("log_compiles", value)


def explain_cache_misses(value: bool = True) -> _Setting:
    """Log why functions are traced again, in this thread and block."""
    return _Setting("explain_cache_misses", value)


def enable_checks(value: bool = True) -> _Setting:
    """Check internal invariants in this thread and block."""
    return _Setting("enable_checks", value)


def check_determinism(value: bool = True) -> _Setting:
    """Trace twice and raise where the two programs differ, in this thread and block."""
    return _Setting("check_determinism", value)


def check_tracer_leaks(value: bool = True) -> _Setting:
    """Raise where `jit`'s trace ends and its tracers live on, in this thread and block."""
    return _Setting("check_tracer_leaks", value)


def checking_leaks() -> _Setting:
    """Raise where `jit`'s trace ends and its tracers live on: `check_tracer_leaks` switched on."""
    return _Setting("check_tracer_leaks", True)


def no_tracing(value: bool = True) -> _Setting:
    """Refuse to trace functions for `jit` in this thread and block: what was traced may run."""
    return _Setting("no_tracing", value)


class UserContext:
    """A value of the user's that compiled functions depend on: see `make_user_context`."""

    def __init__(self, default_value: object):
        self._default = default_value

    @property
    def value(self) -> object:
        """What it is in this thread and block."""
        return dict(cast("Any", config.user_contexts)).get(self, self._default)

    def __call__(self, value: object) -> _Setting:
        """Give it another value, hashable, in this thread and block."""
        others = [pair for pair in cast("Any", config.user_contexts) if pair[0] is not self]
        return _Setting("user_contexts", (*others, (self, value)))


def make_user_context(default_value: object = None) -> UserContext:
    """Make a context whose value compiled functions depend on.

    ``with context(value): f(x)`` traces ``f`` once for each value; ``context.value`` reads it.

    Parameters
    ----------
    default_value : object
        Its value outside of such blocks.
    """
    return UserContext(default_value)


def threefry_partitionable(value: bool = True) -> _Setting:
    """Choose the order of threefry counters in this thread and block."""
    return _Setting("threefry_partitionable", value)


def numpy_dtype_promotion(value: Literal["standard", "strict"]) -> _Setting:
    """Let strong dtypes promote, or raise, in this thread and block."""
    return _Setting("numpy_dtype_promotion", value)


def numpy_rank_promotion(value: Literal["allow", "warn", "raise"]) -> _Setting:
    """Choose what broadcasting between ranks does in this thread and block."""
    return _Setting("numpy_rank_promotion", value)


def default_matmul_precision(value: MatmulPrecision | None) -> _Setting:
    """Precision of products that name none, in this thread and block."""
    return _Setting("default_matmul_precision", value)


def default_prng_impl(value: PRNGImpl) -> _Setting:
    """Generator behind new keys, and keys without a type, in this thread and block."""
    return _Setting("default_prng_impl", value)


def enable_custom_prng(value: bool = True) -> _Setting:
    """Let `random.PRNGKey` make keys with a type, in this thread and block."""
    return _Setting("enable_custom_prng", value)


def legacy_prng_key(value: Literal["allow", "warn", "error"]) -> _Setting:
    """Choose what random functions do with keys that have no type, in this thread and block."""
    return _Setting("legacy_prng_key", value)


def default_device(value: object) -> _Setting:
    """Device of new arrays in this thread and block."""
    return _Setting("default_device", value)


def effects(value: Effects) -> _Setting:
    """Choose what happens to impure functions in this thread and block."""
    return _Setting("effects", value)


def transfer_guard(value: str) -> _Setting:
    """Say what to do about transfers between host and devices in this thread and block.

    The CPU's arrays are in the host's memory. A GPU's program that copies operands to the host, for
    want of a kernel, warns where this is None, is refused by ``"disallow"``, says so in the log by
    ``"log"``, and is accepted by ``"allow"``.
    """
    return _Setting("transfer_guard", value)


transfer_guard_host_to_device = transfer_guard_device_to_host = transfer_guard
transfer_guard_device_to_device = transfer_guard
