"""What `fnarray.compile.cpu.jit` uses of Numba below its dispatcher."""

from typing import Any

from . import codegen as codegen
from . import types as types

compiler: Any
config: Any
serialize: Any
