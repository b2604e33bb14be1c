"""Programs of the kinds that others write: see README.md."""

from . import algebra as algebra
from . import factors as factors
from . import kernels as kernels
from . import networks as networks
from . import ocean as ocean
from . import signals as signals
from . import simulations as simulations
from . import stencils as stencils
from .registry import PROGRAMS as PROGRAMS
from .registry import Program as Program
