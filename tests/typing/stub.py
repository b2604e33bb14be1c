"""The stubs: of what arrays answer to, and of the surfaces whose names come from many modules.

``python -m tests.typing.stub`` writes them, from what is installed in arrays and the surfaces'
tables; a test compares. Where a surface said ``from ._sets import *``, an editor that completes
a name read thirty modules for it (jedi: 1.7 s the first time, 0.5 after that).
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import fnarray.numpy as jnp
from fnarray import lax
from fnarray.core.array import ArrayImpl
from fnarray.lax._primitives import NAMES
from fnarray.numpy._methods import array_methods

ROOT = Path(__file__).parents[2]
PATH = ROOT / "fnarray/core/installed.pyi"

_HEAD = '''\
"""What `install_methods` gives to `Array`, for type checkers and editors.

Made by ``python -m tests.typing.stub`` from the functions themselves; a test compares.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..numpy._at import IndexUpdateHelper
from ..runtime.spec import Sharding
from ..typing import ArrayLike, DTypeLike
from .array import Array

Axis = int | Sequence[int] | None
Axes = int | Sequence[int] | None

class _Converts(Protocol):
    def __jax_array__(self) -> Any: ...

Operand = ArrayLike | _Converts

class Installed:
    __slots__ = ()
'''

_SHAPE = "*shape: Any, order: str = 'C', copy: bool | None = None, out_sharding: Any = None"
#: Where the function has no signature, or a wider one than the method.
_WRITTEN = {
    "reshape": f"(self, {_SHAPE}) -> Array",
    "transpose": "(self, *axes: Any) -> Array",
    "flatten": "(self, order: str = 'C', *, out_sharding: Any = None) -> Array",
    "compress": "(self, condition: Any, axis: int | None = None, *, size: int | None = None, "
    "fill_value: Any = 0, out: None = None) -> Array",
    "byteswap": "(self) -> Array",
    "clone": "(self) -> Array",
    "on_device_size_in_bytes": "(self) -> int",
    "copy_to_host_async": "(self) -> None",
    "platform": "(self) -> str",
    "unsafe_buffer_pointer": "(self) -> int",
    "addressable_data": "(self, index: int) -> Array",
    "devices": "(self) -> set[Any]",
    "__getitem__": "(self, index: Any) -> Array",
}
_PROPERTIES = {
    "at": "IndexUpdateHelper",
    "flat": "Iterator[Array]",
    "device": "Any",
    "sharding": "Sharding",
    "addressable_shards": "list[Any]",
    "global_shards": "list[Any]",
    "committed": "bool",
    "is_fully_addressable": "bool",
    "is_fully_replicated": "bool",
}
#: What arrays with a value have; tracers answer with an error that says what to do instead.
_OF_VALUES = """
__array__ __bool__ __complex__ __dlpack__ __dlpack_device__ __float__ __hash__ __index__ __int__
block_until_ready delete is_deleted is_ready item tobytes tolist
""".split()  # noqa: SIM905 - a table of words
_UNARY = {"__neg__", "__pos__", "__invert__", "__abs__"}
_DIVMOD = {"__divmod__", "__rdivmod__"}


def stub() -> str:
    """Return the text of the stub."""
    table = array_methods()
    operators = sorted(n for n in table if n.startswith("__"))
    methods = sorted(n for n in table if not n.startswith("__"))
    lines = [_entry(name, table[name]) for name in [*operators, *methods]]
    lines += [_of_value(name) for name in _OF_VALUES]
    return _formatted(_HEAD + "".join(lines))


def _entry(name: str, member: Any) -> str:
    if isinstance(member, property):
        kind = _PROPERTIES.get(name, "Array")
        return f"    @property\n    def {name}(self) -> {kind}:{_says(member)}"
    if name in ("__eq__", "__ne__"):
        ignored = "# type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]"
        return f"    def {name}(self, other: object, /) -> Array: ...  {ignored}\n"
    shown = member if name.startswith("__") else getattr(jnp, name, member)
    return f"    def {name}{_signature(name, member)}:{_says(shown)}"


def _signature(name: str, member: Any) -> str:
    if name in _WRITTEN:
        return _WRITTEN[name]
    if name in _UNARY:
        return "(self) -> Array"
    if not name.startswith("__") and hasattr(jnp, name):
        return _without_first(inspect.signature(getattr(jnp, name)))
    found = inspect.signature(member)
    if name.startswith("__") and [*found.parameters] == ["self", "other"]:
        result = "tuple[Array, Array]" if name in _DIVMOD else "Array"
        return f"(self, other: Operand, /) -> {result}"
    return _without_first(found)


def _without_first(found: inspect.Signature) -> str:
    """Return a method's signature: its first argument is the array."""
    first, *rest = found.parameters.values()
    del first
    if all(p.kind is p.POSITIONAL_ONLY for p in rest):  # as of ``astype(x, dtype, /)``
        rest = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) for p in rest]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    if not rest or rest[0].kind is not rest[0].POSITIONAL_ONLY:
        own = own.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return _text(found.replace(parameters=[own, *rest]))


def _of_value(name: str) -> str:
    found = inspect.signature(getattr(ArrayImpl, name))
    return f"    def {name}{_text(found)}:{_says(getattr(ArrayImpl, name))}"


def _text(found: inspect.Signature) -> str:
    """Return a signature as it is written: annotations are strings."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(found))
    text = text.replace("ArrayImpl", "Array").replace("np.ndarray", "np.ndarray[Any, Any]")
    return text if "->" in text else f"{text} -> Any"


def _says(member: Any) -> str:
    doc = inspect.getdoc(member)
    if not doc or doc.startswith(("partial", "The function")):
        return " ...\n"
    return f'\n        """{doc.split(chr(10) + chr(10))[0]}"""\n'


def surface(module: ModuleType) -> str:
    """Return the text of a surface's stub."""
    primitives = NAMES.split() if module is lax else []
    homes = {home: sorted(names.split()) for home, names in module._HOMES.items()}
    rows = [f"from {home} import {n} as {n}\n" for home in sorted(homes) for n in homes[home]]
    listed = {name for names in homes.values() for name in names}
    inner = sorted(({"fft", "linalg"} & set(dir(module))) - listed)
    rows += [f"from . import {name} as {name}\n" for name in inner]
    rows += ["from ..core.primitive import Primitive as _Primitive\n"] if primitives else []
    rows += [f"{name}: _Primitive\n" for name in primitives]
    doc = f'"""Names of `{module.__name__}`, made by ``python -m tests.typing.stub``."""\n\n'
    return _formatted(doc + "".join(rows))


def stubs() -> dict[Path, str]:
    """Return the text of each stub, by its place."""
    surfaces = {Path(m.__file__ or "").with_suffix(".pyi"): surface(m) for m in (jnp, lax)}
    return {PATH: stub(), **surfaces}


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PATH), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
