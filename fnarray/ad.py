"""Where the cotangents of a function go that `vjp` returned. See ``vjp(...)[1].with_refs``."""

from .api.pullback import DidntWant as DidntWant
from .api.pullback import DontWant as DontWant
from .api.pullback import GradRef as GradRef
from .api.pullback import GradValue as GradValue
