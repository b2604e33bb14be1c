"""Kinds of memory, as programs name them: all arrays of the processor lie in the host's."""

from .runtime.device import Space as Space
