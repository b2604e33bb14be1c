"""Refs: mutable arrays, and what is done with them. See `new_ref`."""

from .core.ref import AbstractRef as AbstractRef
from .core.ref import Ref as Ref
from .core.ref import addupdate as addupdate
from .core.ref import empty_ref as empty_ref
from .core.ref import free_ref as free_ref
from .core.ref import freeze as freeze
from .core.ref import get as get
from .core.ref import new_ref as new_ref
from .core.ref import set as set
from .core.ref import swap as swap
