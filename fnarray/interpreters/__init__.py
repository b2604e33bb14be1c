"""What extensions say of transforms and of compiling, named as in ``jax.interpreters``."""

from . import ad as ad
from . import batching as batching
from . import mlir as mlir
from . import partial_eval as partial_eval
from . import pxla as pxla
from . import xla as xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]
