"""Operations as ``jax.lax`` names them: strict about dtypes and ranks.

Every primitive is here as ``<name>_p`` too.
"""

from __future__ import annotations

from ..control import *
from ..ops.bitwise import *
from ..ops.collective import *
from ..ops.contract import *
from ..ops.conv import *
from ..ops.convert import *
from ..ops.cumulative import *
from ..ops.dynamic import *
from ..ops.elementwise import *
from ..ops.exchange import *
from ..ops.fft import *
from ..ops.fill import *
from ..ops.gather import *
from ..ops.kit.registry import registry as _registry
from ..ops.log_sums import *
from ..ops.parts import *
from ..ops.queries import *
from ..ops.reduce import *
from ..ops.scatter import *
from ..ops.shape import *
from ..ops.slicing import *
from ..ops.sort import *
from ..ops.special import *
from ..ops.transcendental import *
from ..ops.window import *
from . import linalg as linalg

globals().update({f"{name.replace('-', '_')}_p": prim for name, prim in _registry.items()})
