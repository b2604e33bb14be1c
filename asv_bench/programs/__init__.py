"""Programs of the kinds that others write: see README.md."""

from . import ocean as ocean
from .registry import PROGRAMS as PROGRAMS
from .registry import Program as Program
